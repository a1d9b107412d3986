"""Secrets known by the name they are given: ``DB_PASSWORD=...``, ``"apiKey": "..."``, ``the password is '...'``.

Finds where a name that means a secret is followed by a value, and judges whether the value is a literal secret or
ordinary code: a call, a variable, a type, a placeholder, a message. Names are matched in lower case, in several
languages. It never goes by randomness without such a name beside it (docs/reliability.md, X2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WORDS = (
    "pass", "pwd", "secret", "token", "key", "credential", "auth",
    "contrase", "senha", "kennwort", "пароль", "密码", "パスワード",
)  # fmt: skip
"""One of these is in every text that `find` can find something in (lower case)."""

_LOGIN_NAMES = (
    r"passwords?|passwd|passphrase|passwort|(?<![a-z])pass|pwd|contraseña|contrasena|senha|kennwort"
    r"|mot_?de_?passe|пароль|密码|パスワード"
)
_KEY_NAMES = (
    r"secret|token|credentials?|\"auth|client-key-data|api[-_ ]?key"
    r"|(?:access|secret|private|account|signing|encryption|master|shared|auth|service|license|deploy)[-_]?key"
)
_BARE = r"[^\s\"'`,;&|<>()\[\]{}\\]"
_ASSIGNMENT = re.compile(
    rf"(?:(?P<password>{_LOGIN_NAMES})|(?P<token>{_KEY_NAMES}))"
    r"(?:"
    # <password>value</password>
    r">(?P<element>[^<>\s]{6,200}+)</"
    # --password value
    rf"|(?:(?<=--password)|(?<=--token)|(?<=--api-key)|(?<=--secret))[ \t]{{1,4}}(?P<flag>(?![-$]){_BARE}{{6,200}}+)"
    # name: "value", name = 'value', name is `value`, name: str = "value"; quotes escaped as in JSON inside JSON
    r"|\\{0,3}[\"'`]?\]?[ \t]{0,16}"
    r"(?P<separator>=>|:=|={1,3}|:|：|(?<=[ \t])(?:is|was|ist|war|est|es|é|это)(?=[ \t]))[ \t]{0,16}"
    r"(?:[a-z]{2,20}[ \t]{0,2}=[ \t]{0,2})?"
    r"(?:[bru]?\\{0,3}\"(?P<double>[^\"\s\\]{4,512}+)\\{0,3}\""
    r"|[bru]?\\{0,3}'(?P<single>[^'\s\\]{4,512}+)\\{0,3}'"
    r"|`(?P<tick>[^`\s]{4,512}+)`"
    rf"|(?P<bare>{_BARE}{{6,512}}+)(?![(\[{{<]))"
    r")",
)
_LONGEST = 512
_MARKER = re.compile(r"\[REDACTED:[a-z-]{1,20}:[0-9a-f]{8}\]")
_REFERENCE = re.compile(
    r"\$[a-z_{(]|[<{%*\[^]|@[a-z]|![a-z]+\Z|arn:|env[:.]|process\.|os\.|secrets?\.|vault:|file:|op://|https?://"
)
_PLACEHOLDER = re.compile(r"\{\{|\}|redacted|placeholder|change[-_]?me|your[-_]|xxx|\*\*\*|\.\.\.|…|process\.env")
_TYPE = re.compile(
    r"(?:int|uint|float|utf|base|sha|md|oauth|jwt|string|str|bcrypt|argon)[-_]?\d{1,3}"
    r"|\b[iufvsx][-_]?\d{1,3}(?![A-Za-z])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:[?!]?\.|::|->)[A-Za-z_$][\w$]*+)*+[!?]?\Z")
_PAIR = re.compile(r"[;?&][\w.-]{0,40}\Z")
_SEGMENTS = re.compile(r"[-_./:|@ #+~^=]+")
_PLAIN_SEGMENT = re.compile(r"(?:[A-Za-z]*|[A-Za-z]*[a-z][A-Za-z]*\d{1,2}|\d{1,4}|[vV]\d+|\d{1,3}[a-z]{1,3})\Z")
_VERSION = re.compile(r"[\^~>=v]{0,2}\d+\.\d+")
_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[^\W\d_]")
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")
_LINE_END = re.compile(r"[ \t]{0,16}(?:\Z|[\r\n#]|\\[nr])")
_HUMPS = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])")
_NAME_PARTS = ("pass", "pwd", "secret", "token", "key", "cred")


def find(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Spans of literal secrets in `text` as (start, end, kind), in order and apart; `lowered` has the same length."""
    position = 0
    while match := _ASSIGNMENT.search(lowered, position):
        start, end = match.span(match.lastgroup or 0)
        is_password = match["password"] is not None
        if text[end - 1] == "." and match["bare"]:
            end -= 1  # a sentence's full stop
        if _is_secret(text[start:end], match, text, is_password=is_password):
            yield start, end, "password" if is_password else "secret"
            position = end
        else:
            # The value may itself hold a name with a value (token=password=...), unless it is too long to be one.
            position = start if end - start < _LONGEST - 1 else end


def _is_secret(value: str, match: re.Match[str], text: str, *, is_password: bool) -> bool:
    lowered = match[match.lastgroup or 0]
    if _REFERENCE.match(lowered) or _PLACEHOLDER.search(lowered) or _in_marker(text, match):
        return False
    if match["bare"] is None:
        return _is_literal(value, is_password=is_password)
    if match["separator"] not in {":", "=", ":=", "：", "=>"}:
        return is_password and _is_prose_password(value)
    if _is_env(match, text):
        return len(value) >= 6 and _DIGITS.search(value) is not None and not _is_wordy(value, is_password=is_password)
    if not _is_literal(value, is_password=is_password):
        return False
    return (
        _is_pair(match, text)
        or not _IDENTIFIER.match(value)
        or _is_bare_secret(value, match, text, is_password=is_password)
    )


def _in_marker(text: str, match: re.Match[str]) -> bool:
    """Whether the name is the kind in a marker of ours: ``[REDACTED:password:...]``."""
    at = text.rfind("[REDACTED:", max(0, match.start() - 32), match.start())
    marker = _MARKER.match(text, at) if at >= 0 else None
    return marker is not None and marker.end() > match.start()


def _is_env(match: re.Match[str], text: str) -> bool:
    """NAME=value without blanks and in capitals: the value is what it is, never a variable."""
    name = text[match.start() : match.start("separator")]
    return match["separator"] == "=" and name.isupper() and match.start("bare") == match.end("separator")


def _is_pair(match: re.Match[str], text: str) -> bool:
    """``;Password=...`` of a connection string or ``&token=...`` of a URL: the value is a literal, too."""
    return match["separator"] == "=" and _PAIR.search(text[max(0, match.start() - 48) : match.start()]) is not None


def _is_literal(value: str, *, is_password: bool) -> bool:
    """Whether a value that is surely a literal is a secret, and not a word, a label, a rule or an identifier."""
    if len(value) < (6 if is_password else 12) or not _LETTER.search(value):
        return False
    if not is_password and value.isidentifier() and any(part in value.lower() for part in _NAME_PARTS):
        return False  # the name of a type or variable: "secret": "V1SecretVolumeSource"
    is_strong = _DIGITS.search(value) or (is_password and _SYMBOL.search(value))
    return bool(is_strong) and not _is_wordy(value, is_password=is_password)


def _is_wordy(value: str, *, is_password: bool) -> bool:
    """Words joined by punctuation, as in ``my-app-secret-v2``, ``required|min:8`` or ``/run/secrets/db_1``."""
    if (
        is_password
        and not value.startswith(("/", "./", "../", "~/"))
        and "|" not in value
        and not _VERSION.match(value)
    ):
        # A password may well be a word and a year: only rules, paths and versions are let through.
        return False
    return all(_PLAIN_SEGMENT.match(segment) for segment in _SEGMENTS.split(value))


def _is_prose_password(value: str) -> bool:
    """A sentence that tells the password without quotes: more is asked of such a value."""
    digits = sum(c.isdigit() for c in value)
    return digits >= 2 and len(value) >= 8 and bool(_LETTER.search(value)) and not _TYPE.search(value)


def _is_bare_secret(value: str, match: re.Match[str], text: str, *, is_password: bool) -> bool:
    """Whether an unquoted value that could be a variable's name is a secret all the same (YAML, INI)."""
    if "." in value:
        return False
    if is_password and match["separator"] in {":", "："} and _LINE_END.match(text, match.end("bare")):
        return bool(_DIGITS.search(value)) and not _TYPE.search(value) and not _is_name(value)
    if any(word in value.lower() for word in _NAME_PARTS):
        return False
    return len(_DIGITS.findall(value)) >= 3 and len(value) >= 16 and "_" not in value


def _is_name(value: str) -> bool:
    """``user_password2``, ``dbPass1``: several words, one of which means a secret, digits only behind a word."""
    words = [word for word in _HUMPS.split(value) if word]
    is_written_so = "_" in value or value[0].islower()
    return (
        is_written_so
        and len(words) > 1
        and all(_PLAIN_SEGMENT.match(word) for word in words)
        and any(part in value.lower() for part in _NAME_PARTS)
    )
