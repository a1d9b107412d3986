"""Finds secrets by the name before them: ``DB_PASSWORD=...``, ``"apiKey": "..."``, ``the password is '...'``.

A name for a secret, in one of several languages, is followed by a value, and the form of both decides whether the value
is a literal. Nothing is hidden only because it looks random (docs/reliability.md, X2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from daemon.redact.values import (
    DIGITS,
    LONGEST,
    NAME_PARTS,
    SEGMENTS,
    SYMBOL,
    TYPE,
    is_literal,
    is_name,
    is_phrase,
    is_plain,
    is_prose_key,
    is_prose_password,
    is_reference,
    is_value,
    is_wordy,
)

WORDS = (
    "pass", "pwd", "secret", "token", "key", "credential", "auth", "psk", "dockerc",
    "contrase", "senha", "kennwort", "пароль", "密码", "パスワード",
)  # fmt: skip
"""Every name of a secret contains one of these (lower case)."""

_LOGINS = (
    r"passwords?", "passwd", "passphrase", "passcode",
    "passwort", r"pass(?<![a-z]pass)", "pwd", "contraseña", "contrasena",
    "senha", "kennwort", r"mot_?de_?passe", "пароль", "密码", "パスワード", r"psk(?<![a-z]psk)",
)  # fmt: skip
_KEY_OWNERS = (
    "access", "secret", "private", "openai", "admin", "subscription", "account", "signing", "encryption", "master",
    "shared", "auth", "service", "license", "deploy", "app",
)  # fmt: skip
_KEYS = (
    "secret", "token", r"credentials?", '"auth', r"_auth(?<![a-z0-9]_auth)", "client-key-data", r"api[-_ ]?key",
    r"dockerc(?:onfigjson|fg)",
    *(rf"{word}[-_ ]?key" for word in _KEY_OWNERS),
)  # fmt: skip
_LOGIN_NAMES, _KEY_NAMES = "|".join(_LOGINS), "|".join(_KEYS)
_IS_LOGIN = re.compile(_LOGIN_NAMES)
STARTS = (
    "pass", "pwd", "contrase", "senha", "kennwort", "mot_de_passe", "mot_depasse", "motde_passe", "motdepasse",
    "пароль", "密码", "パスワード", "psk", "secret", "token", "credential", '"auth', "_auth", "client-key-data",
    "dockerc", *(f"{word}{joiner}key" for word in (*_KEY_OWNERS, "api") for joiner in ("", "-", "_", " ")),
)  # fmt: skip
"""Every name in a match of `find` or `phrases` starts with one of these (lower case)."""
_SUFFIX = (
    r"(?:[-_]?(?:key[-_]base|base|prod|production|dev|test|staging|live|main|root|admin|default|value|hex|raw|plain"
    r"|old|new|current|confirm|confirmation|repeat|v?\d{1,3}))?"
)
_BARE = r"[^\s\"'`,;&|<>()\[\]{}\\]"
_TAG = r"(?:</?[a-z]{1,10}\d?(?:[ \t][^<>\n]{0,80})?>)"
_ASSIGNMENT = re.compile(
    rf"(?P<name>{_LOGIN_NAMES}|{_KEY_NAMES}){_SUFFIX}"
    r"(?:"
    # <password>value</password>
    r"[\"\']?>(?P<element>[^<>\s]{6,200}+)(?:</|\Z)"
    # name: "DB_PASSWORD", value: "value"; - name: DB_PASSWORD, on the next line value: value
    r"|[\"']?,?\s{0,40}[\"']?(?:value|default)[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
    rf"(?:[\"'](?P<pairedquoted>[^\"'\n\[\]]{{4,512}}+)[\"']|(?P<paired>{_BARE}{{6,512}}+))"
    # --password value, "--password", "value"
    r"|(?:[\"'],)?[ \t]{1,4}(?:[\"'](?P<quotedflag>[^\"'\s\[\]$][^\"'\n\[\]]{3,200}+)[\"']"
    rf"|(?P<flag>(?![-$]){_BARE}{{6,200}}+))"
    # a cell of a table, a field of a row: | password | value |, password,value, <td>password</td><td>value</td>
    r"|[\"'`*]{0,3}[ \t]{0,40}(?:[|│,;\t]|</(?:td|th|dt|key|name)>\s{0,40}"
    r"<(?:td|dd|string|value)(?:[ \t][^<>\n]{0,80})?>)"
    rf"[ \t]{{0,40}}[\"'`*]{{0,3}}(?P<cell>(?![*]){_BARE}{{6,512}}+)"
    # password: | and the value on the next line
    r"|[\"']?[ \t]{0,4}:[ \t]{0,4}[|>][-+]?\d?[ \t]{0,4}\r?\n[ \t]{1,60}(?P<block>[^\s\[|>][^\n\[\]]{5,512}+)"
    # process.env.DB_PASSWORD || "value", getenv("DB_PASSWORD") or "value"
    r"|[\"']?[)\]]{0,2}[ \t]{0,4}(?:\|\||\?\?|or)[ \t]{0,4}[\"'](?P<fallback>[^\"'\s]{4,512}+)[\"']"
    # name: "value", name = 'value', name is `value`, name: str = "value", name for bob: value
    rf"|[\"'`*]{{0,3}}\]?{_TAG}?[*]{{0,3}}[ \t]{{0,16}}(?:for[ \t][\w.@-]{{1,64}}+[ \t]{{0,4}})?"
    r"(?P<separator>=>|:=|={1,3}|:|：|(?<=[ \t])(?:is|was|ist|war|est|es|é|это)(?::|(?=[ \t])))"
    rf"[*]{{0,3}}[ \t]{{0,16}}{_TAG}?[*]{{0,3}}"
    r"(?:[a-z]{2,20}[ \t]{0,2}=[ \t]{0,2})?"
    r"(?:[bru]?\\{0,3}\"(?P<double>[^\"\s\\]{4,512}+)(?:\\{0,3}\"|\Z)"
    r"|[bru]?\\{0,3}'(?P<single>[^'\s\\]{4,512}+)(?:\\{0,3}'|\Z)"
    r"|`(?P<tick>[^`\s]{4,512}+)`"
    rf"|(?P<bare>{_BARE}{{6,512}}+)(?![(\[{{])(?!<(?!/|br\b|p\b|div|span|td|tr|li|hr|code|pre|b>|i>|em>|strong)))"
    r")",
)
_PHRASE = re.compile(
    rf"(?:{_LOGIN_NAMES}){_SUFFIX}(?P<key>[\"']?)"
    r"[ \t]{0,16}[:=][ \t]{0,16}(?P<quote>[\"'])(?P<phrase>[^\"'\n\\\[\]]{6,200}+)(?P=quote)"
    r"[ \t]{0,4},?[ \t]{0,8}(?:[#;][^\n]{0,200})?(?=\r?\n|\Z)"
    rf"|(?:{_LOGIN_NAMES}){_SUFFIX}=(?P<plain>[a-z]{{6,64}}+)(?=[ \t]{{0,8}}(?:\r?\n|\Z|</))"
)
_LINE_START = re.compile(r"[ \t]{0,60}(?:export[ \t]{1,4}|set[ \t]{1,4}|-[ \t]{1,4})?[\"']?[\w.-]{0,60}\Z")
"""A line of a configuration file: nothing but a name and a quoted value."""
_MARKER = re.compile(r"\[REDACTED:[a-z-]{1,20}:[0-9a-f]{8}\\?\]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:[?!]?\.|::|->)[A-Za-z_$][\w$]*+)*+[!?]?\Z")
_PAIR = re.compile(r"[;?&][\w.-]{0,40}\Z")
_PAIR_BEFORE = re.compile(r"(?:\A|[\s\"'`])[\w.-]{1,40}=[^\s=,;(){}\[\]<>]{1,80}[ \t]{1,4}[\w.-]{0,40}\Z")
_PAIR_AFTER = re.compile(r"[ \t]{1,4}[\w.-]{1,40}=[^\s=,;(){}\[\]<>]")
_PLAIN_RESULT = re.compile(r"[A-Za-z]{0,16}\d{0,3}\Z")
_WORD_BEFORE = re.compile(r"[\w.\"'-]")
_LINE_END = re.compile(r"[ \t]{0,16}(?:\Z|[\r\n#|│┃]|\\[nr])")
_CLOSED = re.compile(r"</|<br|\\{0,3}[\"'`]|\]\]>|\]\(|&(?=\w)")
"""The end of a value in a tool's output: of its element, its string, its code, its link."""
_GOES_ON = re.compile(r"[ \t]?[,;)][ \t]{0,4}(?:[^\s]|\Z|\n)|[ \t]{1,4}[A-Za-z]")
_CALLED = re.compile(r"[\w)\]>]")
_CALL = re.compile(r"\([ \t]{0,4}[\"'][\w.-]{0,40}\Z")
_CALL_END = re.compile(r"[\"'][ \t]{0,4}\)")
_BUILD_SECRET = re.compile(r"(?:id|src|source|type|env)=")
_FLAG = re.compile(
    r"(?:(?:\A|[\s\"'`=(\[,])--?[a-z0-9-]{0,40}|\b(?:ENV|SETX|configure[ \t]{1,4}set)[ \t]{1,4}[\w.-]{0,40})\Z",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"(?:::|\barn:[^\s\"']{0,60}:)[\w.-]{0,80}\Z")
_HEADER = re.compile(r"(?:\A|[^\w-])[xX]-(?:[A-Za-z]{1,20}-){0,3}\Z")
_CELL_START = re.compile(r"(?:(?:\A|\n|[|│,;\t>\"'])[ \t]{0,40}[`*\"']{0,3}[\w.-]{0,40})\Z")
_CELL_END = re.compile(r"[`*\"']{0,3}[ \t]{0,80}(?:\Z|[\r\n|│,;\t<])|[\"'][ \t]{0,4}\)")
_ENDS_IN_NAME = re.compile(rf"(?:(?P<password>{_LOGIN_NAMES})|(?P<token>{_KEY_NAMES}|(?<![a-z])auth)){_SUFFIX}\Z")


def find(text: str, lowered: str, starts: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Spans of literal secrets in `text` as (start, end, kind), ordered and disjoint; `lowered` has the same length.

    `starts` are the places of STARTS in `lowered`, in order.
    """
    position = 0
    for at in starts:
        match = _ASSIGNMENT.match(lowered, at) if at >= position else None
        if match is None:
            continue
        start, end = match.span(match.lastgroup or 0)
        is_password = _IS_LOGIN.match(match["name"]) is not None
        if text[end - 1] == "." and match.lastgroup in {"bare", "cell", "paired"}:
            end -= 1  # a sentence's full stop
        if _is_secret(text[start:end], match, text, is_password=is_password):
            yield start, end, "password" if is_password else "secret"
            position = end
        else:
            # The value may itself hold a name with a value (token=password=...), unless it is too long to be one.
            position = start if end - start < LONGEST - 1 else end


def phrases(text: str, lowered: str, starts: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Passwords of several words, or of letters only, alone in a line of a configuration file; `starts`: see `find`."""
    position = 0
    for at in starts:
        match = _PHRASE.match(lowered, at) if at >= position else None
        if match is None:
            continue
        position = match.end()
        start, end = match.span("plain") if match["plain"] else match.span("phrase")
        value = text[start:end].lower() if match["plain"] else text[start:end]
        begun = max(0, match.start() - 130)
        line = text[begun + text[begun : match.start()].rfind("\n") + 1 : match.start()]
        if begun and "\n" not in text[begun : match.start()]:
            continue
        if not _LINE_START.match(line):
            continue
        if is_phrase(value, is_plain=not match["key"]):
            yield start, end, "password"


def name_kind(name: str) -> str:
    """The kind of a field called `name`: "password", "secret", or "" for neither."""
    lowered = name.lower()
    if not any(map(lowered.__contains__, WORDS)) or len(name) > 100:
        return ""
    match = _ENDS_IN_NAME.search(lowered)
    return "" if match is None else "password" if match["password"] else "secret"


def _is_secret(value: str, match: re.Match[str], text: str, *, is_password: bool) -> bool:
    lowered = match[match.lastgroup or 0]
    if is_reference(lowered) or _in_marker(text, match):
        return False
    if _QUALIFIED.search(text[max(0, match.start() - 80) : match.start()]):
        return False  # AWS::SecretsManager::Secret, arn:...:secret:...: a type, a resource
    judge = _FORMS.get(match.lastgroup or "")
    if judge is None:
        return is_literal(value, is_password=is_password)
    return judge(value, match, text, is_password)


def _is_flag(value: str, match: re.Match[str], text: str, is_password: bool) -> bool:
    before = text[max(0, match.start() - 48) : match.start()]
    is_flag = _FLAG.search(before) is not None and not _BUILD_SECRET.match(value)
    is_defined = _CALL.search(before) is not None and _CALL_END.match(text, match.end(match.lastgroup or 0)) is not None
    return (is_flag or (is_defined and DIGITS.search(value) is not None)) and is_value(value, is_password=is_password)


def _is_block(value: str, _match: re.Match[str], _text: str, is_password: bool) -> bool:
    return is_value(value.strip(), is_password=is_password)


def _is_paired(value: str, _match: re.Match[str], _text: str, is_password: bool) -> bool:
    return is_value(value, is_password=is_password) and not TYPE.search(value) and not is_name(value)


def _is_bare(value: str, match: re.Match[str], text: str, is_password: bool) -> bool:
    if match["separator"] not in {":", "=", ":=", "：", "=>"}:
        return is_prose_password(value) if is_password else is_prose_key(value)
    if match["separator"] == "=" and _FLAG.search(text[max(0, match.start() - 48) : match.start()]):
        return is_value(value, is_password=is_password)
    is_header = match["separator"] == ":" and _HEADER.search(text[max(0, match.start() - 60) : match.start()])
    if is_header or _is_env(match, text):
        is_long = len(value) >= (12 if is_header else 6)
        return is_long and DIGITS.search(value) is not None and not is_wordy(value, is_password=is_password)
    if not is_literal(value, is_password=is_password) or _is_test_result(value, match, text):
        return False
    if not _IDENTIFIER.match(value) and is_name(value):
        return False
    return (
        _is_pair(match, text)
        or not _IDENTIFIER.match(value)
        or _is_bare_secret(value, match, text, is_password=is_password)
    )


def _is_test_result(value: str, match: re.Match[str], text: str) -> bool:
    """``PASS: check-12-b3``, ``pass: tests/test_x1.py::test_y2``: several words or the parts of a path."""
    is_alone = match["name"] == "pass" and not _WORD_BEFORE.match(text[match.start() - 1 : match.start()])
    segments = SEGMENTS.split(value.replace("_", "/"))
    return is_alone and len(segments) > 2 and all(map(_PLAIN_RESULT.match, segments))


def _is_cell(value: str, match: re.Match[str], text: str, is_password: bool) -> bool:
    """A cell beside one that contains only a secret's name, in a table or a CSV file."""
    before = _CELL_START.search(text[max(0, match.start() - 60) : match.start()])
    is_alone = before is not None and _CELL_END.match(text, match.end(match.lastgroup or 0))
    return bool(
        is_alone
        and len(value) >= 8
        and len(DIGITS.findall(value)) + len(SYMBOL.findall(value)) > 0
        and is_literal(value, is_password=is_password)
        and not TYPE.search(value)
        and not (is_password and _IDENTIFIER.match(value) and ("_" in value or "." in value))
        and (is_password or not is_plain(value))
    )


def _in_marker(text: str, match: re.Match[str]) -> bool:
    """Whether the name is the kind in a marker of ours: ``[REDACTED:password:...]``."""
    at = text.rfind("[REDACTED:", max(0, match.start() - 32), match.start())
    marker = _MARKER.match(text, at) if at >= 0 else None
    return marker is not None and marker.end() > match.start()


def _is_env(match: re.Match[str], text: str) -> bool:
    """NAME=value in capitals and without blanks, where the value is a literal, never a variable."""
    name = text[match.start() : match.start("separator")]
    return match["separator"] == "=" and name.isupper() and match.start("bare") == match.end("separator")


def _is_pair(match: re.Match[str], text: str) -> bool:
    """A pair of many, where the value is a literal, too.

    ``;Password=...`` of a connection string, ``&token=...`` of a URL, ``user=app password=... dbname=shop`` of libpq,
    or of a log. Code has no pairs with blanks alone between them.
    """
    if match["separator"] != "=":
        return False
    if _PAIR.search(text[max(0, match.start() - 48) : match.start()]):
        return True
    return match.start("bare") == match.end("separator") and (
        _PAIR_AFTER.match(text, match.end("bare")) is not None
        or _PAIR_BEFORE.search(text[max(0, match.start() - 180) : match.start()]) is not None
    )


def _is_bare_secret(value: str, match: re.Match[str], text: str, *, is_password: bool) -> bool:
    """Whether an unquoted value that could be a variable's name is still a secret (YAML, INI)."""
    if "." in value:
        return False
    if is_password and match["separator"] in {":", "：", "="} and _is_told(value, match, text):
        return not TYPE.search(value) and not is_name(value)
    if any(word in value.lower() for word in NAME_PARTS):
        return False
    if match["name"] == "_auth" and len(value) >= 12 and DIGITS.search(value) and "_" not in value:
        return True
    is_ended = _LINE_END.match(text, match.end("bare")) or _CLOSED.match(text, match.end("bare"))
    if is_ended and not is_password and len(value) >= 12 and "_" not in value and sum(map(str.isdigit, value)) >= 4:
        return True
    return len(DIGITS.findall(value)) >= 3 and len(value) >= 16 and "_" not in value


def _is_told(value: str, match: re.Match[str], text: str) -> bool:
    """Whether a password of letters and digits ends a line or a tool's value, or is in a sentence.

    A form that code may have too needs more evidence: ``password = value1``, ``login(password: Type1, ...)``.
    """
    end = match.end("bare")
    is_spaced = match["separator"] == "=" and match.start("bare") > match.end("separator")
    if not is_spaced and (_LINE_END.match(text, end) or _CLOSED.match(text, end)):
        is_variable = match["separator"] == "=" and _IS_LOGIN.fullmatch(re.sub(r"\d{1,2}\Z", "", value.lower()))
        return DIGITS.search(value) is not None and not is_variable
    if not is_prose_password(value) or "_" in value:
        return False
    if is_spaced:
        return _LINE_END.match(text, end) is not None or _CLOSED.match(text, end) is not None
    return _GOES_ON.match(text, end) is not None and not _is_in_code(text[max(0, match.start() - 200) : match.start()])


def _is_in_code(before: str) -> bool:
    """Whether a bracket of a call or an object is open at the end of `before`, outside of quotes."""
    line = before.rpartition("\n")[2]
    if any(line.count(quote) % 2 for quote in "\"'`"):
        return False
    opened = 0
    for number in range(len(line) - 1, -1, -1):
        opened += (line[number] in "([{") - (line[number] in ")]}")
        if opened > 0:
            return line[number] == "{" or _CALLED.match(line, max(0, number - 1)) is not None
    return False


_FORMS: dict[str, Callable[[str, re.Match[str], str, bool], bool]] = {
    "flag": _is_flag, "quotedflag": _is_flag, "cell": _is_cell, "block": _is_block, "paired": _is_paired,
    "bare": _is_bare,
}  # fmt: skip
"""The check of a value for each form; in all other forms a value is surely a literal."""
