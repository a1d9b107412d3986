"""Decides whether a value after a secret's name is a secret or ordinary text: a label, path, type or placeholder."""

from __future__ import annotations

import re

ORDINARY = frozenset(
    re.findall(
        r"\w+",
        """password passwords passwort passwd secret token login username user your enter please the and for with must
    should not required optional string text hidden none null true false default example disabled enabled basic bearer
    identifier label reset forgot forgotten invalid missing incorrect wrong field input confirm confirmed confirmation
    change changed changeme current new old repeat again show hide strong weak encrypted hashed plain bcrypt scrypt
    placeholder redacted unknown empty unset undefined value values number boolean object array varchar bytes nullable
    integer credential credentials private public email phone contact contraseña kennwort senha mot passe passphrase
    hint prompt inherit ignore always never manual auto automatic generated random external internal vault keyring
    keychain environment env file path stdin session cookie oauth openid saml ldap kerberos local remote type name
    this that from into when will have has was are can use used using set get see""",
    )
)
TYPE_NOUNS = frozenset(
    re.findall(
        r"\w+",
        """Validator Type Field Input Schema Policy Rule Encoder Hasher Service Provider Handler Manager Factory Config
    Options Request Response Dto Model Form Reset Error Exception Token Component Props State Context Builder""",
    )
)
"""Names of types end with one of these."""
JOINING = frozenset(re.findall(r"\w+", "the and for with this that from into when will have has was are can see"))
"""Words that any sentence has: a passphrase, too."""
LABELS = ORDINARY - JOINING
"""A text of several words with one of these is not a passphrase."""

LONGEST = 512
_REFERENCE = re.compile(
    r"\$[a-z_{(]|[<{%*\[^]|@[a-z]|![a-z]+\Z|arn:|env[:.]|process\.|os\.|secrets?\.|vault:|file:|op://|https?://"
)
_PLACEHOLDER = re.compile(r"\{\{|\}|redacted|placeholder|change[-_]?me|your[-_]|xxx|\*\*\*|\.\.\.|…|process\.env")
TYPE = re.compile(
    r"(?:int|uint|float|utf|base|sha|md|oauth|jwt|string|str|bcrypt|argon)[-_]?\d{1,3}"
    r"|\b[iufvsx][-_]?\d{1,3}(?![A-Za-z])",
    re.IGNORECASE,
)
SEGMENTS = re.compile(r"[-_./:|@ #+~^=]+")
_PLAIN_SEGMENT = re.compile(r"(?:[A-Za-z]*|[A-Za-z]*[a-z][A-Za-z]*\d{1,2}|\d{1,4}|[vV]\d+|\d{1,3}[a-z]{1,3})\Z")
_VERSION = re.compile(r"[\^~>=v]{0,2}\d+\.\d+")
DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[^\W\d_]")
SYMBOL = re.compile(r"[!@#$%^&*+?~]")
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}\Z")
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_HUMP = re.compile(r"[a-z](?=[A-Z])")
_HUMPS = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])")
NAME_PARTS = ("pass", "pwd", "secret", "token", "key", "cred")


def is_reference(lowered: str) -> bool:
    """Whether a value, in lower case, refers to the secret's place, or is a placeholder."""
    return _REFERENCE.match(lowered) is not None or _PLACEHOLDER.search(lowered) is not None


def is_plain(value: str) -> bool:
    """Whether a value is only words, versions and small numbers, joined by punctuation."""
    return all(_PLAIN_SEGMENT.match(segment) for segment in SEGMENTS.split(value))


def is_value(value: str, *, is_password: bool) -> bool:
    """Whether the whole value of a field with a secret's name is a secret."""
    lowered = value.lower()
    if is_reference(lowered) or "\n" in value or len(value) > LONGEST:
        return False
    if " " in value:
        return is_password and is_phrase(value)
    least = value if is_password or len(value) < 10 else value.ljust(12, value[0])
    return is_literal(least, is_password=is_password) or (is_password and is_phrase(value))


def is_phrase(value: str, *, is_plain: bool = True) -> bool:
    """Whether a value after a password's name is a password although it has neither digits nor symbols.

    A label, a message or a type is not one; several words are one only if the name `is_plain`, which it is not in files
    of translations.
    """
    words = value.split(" ")
    lowered = value.lower()
    if is_reference(lowered) or (len(words) == 1 and not value[:1].islower()):
        return False
    if any(not word for word in words) or any(word.strip(".,:;!?") in LABELS for word in lowered.split(" ")):
        return False
    if len(words) == 1:
        return len(value) >= 6 and value.isalpha() and value.isascii() and value.islower()
    return is_plain and len(words) >= 3 and value[-1] not in ".!?:" and all(word.islower() for word in words)


def is_literal(value: str, *, is_password: bool) -> bool:
    """Whether a value that is surely a literal is a secret, and not a word, a label, a rule or an identifier."""
    if len(value) < (6 if is_password else 12) or not _LETTER.search(value) or _CHINESE.search(value):
        return False
    if not is_password and _ADDRESS.match(value.lower()):
        return False
    if not is_password and value.isidentifier() and any(part in value.lower() for part in NAME_PARTS):
        return False  # the name of a type or variable: "secret": "V1SecretVolumeSource"
    if len(_HUMP.findall(value)) * 4 >= len(value) >= 10 and value.isalpha():
        return True  # letters only, but of such a mixture as base64 has and no name
    is_strong = DIGITS.search(value) or (is_password and SYMBOL.search(value))
    return bool(is_strong) and not is_wordy(value, is_password=is_password)


def is_wordy(value: str, *, is_password: bool) -> bool:
    """Words joined by punctuation, as in ``my-app-secret-v2``, ``required|min:8`` or ``/run/secrets/db_1``."""
    if (
        is_password
        and not value.startswith(("/", "./", "../", "~/"))
        and "|" not in value
        and not _VERSION.match(value)
    ):
        # A password may well be a word and a year: only rules, paths and versions are let through.
        return False
    return is_plain(value)


def is_prose_password(value: str) -> bool:
    """Whether an unquoted value in a sentence is a password; it must have two digits and eight characters."""
    digits = sum(c.isdigit() for c in value)
    return digits >= 2 and len(value) >= 8 and bool(_LETTER.search(value)) and not TYPE.search(value)


def is_prose_key(value: str) -> bool:
    """Whether an unquoted value in a sentence is a key: sixteen characters in which digits keep coming."""
    return len(value) >= 16 and len(DIGITS.findall(value)) >= 3 and is_literal(value, is_password=False)


def is_name(value: str) -> bool:
    """``user_password2``, ``dbPass1``: several words, one of which means a secret, with digits only after a word."""
    words = [word for word in _HUMPS.split(value) if word]
    if len(words) > 1 and words[-1] in TYPE_NOUNS:
        return True
    is_written_so = "_" in value or value[0].islower()
    return (
        is_written_so
        and len(words) > 1
        and all(_PLAIN_SEGMENT.match(word) for word in words)
        and any(part in value.lower() for part in NAME_PARTS)
    )
