"""Finds secrets by the form around them: a header, a URL, a cookie, a login file, a command, a call, a private key.

As in `rules`, every pattern begins with literal text and uses possessive quantifiers, so that a search is linear.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from daemon.redact.rules import Rule

_BLANK = r"[ \t]"


def _is_credential(match: re.Match[str]) -> bool:
    """A digit or inner capitals, as base64 has, and not a word: ``Authorization: Basic authentication``."""
    secret = match["secret"]
    return any(c.isdigit() for c in secret) or sum(c.isupper() for c in secret[1:]) >= 2


def _secret_has_digit(match: re.Match[str]) -> bool:
    """Whether there is a digit in the secret of a match."""
    return any(c.isdigit() for c in match["secret"])


def _is_token(match: re.Match[str]) -> bool:
    """A digit, and not words that are joined: ``Bearer YOUR_API_KEY_HERE_1234``, ``Bearer of-a-scheme-v2-rfc6750``."""
    parts = _JOINERS.split(match["secret"])
    words = sum(part.isalpha() and len(part) >= 3 for part in parts)
    return _secret_has_digit(match) and not (words >= 1 and len(parts) >= 3 and all(map(_WORD.match, parts)))


_JOINERS = re.compile(r"[-_.]")
_WORD = re.compile(r"(?:[A-Z]?[a-z]*|[A-Z]*)\d{0,4}\Z")


def _is_curl(match: re.Match[str]) -> bool:
    line = match.string[max(0, match.start() - 400) : match.start()]
    return "curl" in line.rpartition("\n")[2] and _secret_has_digit(match)


_PLACEHOLDERS = frozenset(
    {"password", "pass", "passwd", "pwd", "secret", "pw", "token", "redacted", "user", "username", "example"}
)


def is_reference(secret: str) -> bool:
    """Whether the text in the place of a secret is a variable, a template or a mark of an omission."""
    return (
        secret[0] in "$<{%*[:"
        or "${" in secret
        or "{{" in secret
        or "REDACTED:" in secret
        or set(secret) <= set("*x.X…")
    )


def _is_url_token(match: re.Match[str]) -> bool:
    """``https://TOKEN@host``: a user's name has no mixture of digits and letters of this length."""
    secret = match["secret"]
    digits = sum(c.isdigit() for c in secret)
    return digits >= 2 and any(c.isalpha() for c in secret) and not is_reference(secret)


def _is_netrc(match: re.Match[str]) -> bool:
    """After a machine and its login, word by word as in the file, and not in a sentence."""
    before = match.string[max(0, match.start() - 300) : match.start()]
    return _NETRC_ENTRY.search(before) is not None and _is_no_placeholder(match)


def _is_sql(match: re.Match[str]) -> bool:
    """In a statement about a user, because in prose a library is "identified by" its name, too."""
    before = match.string[max(0, match.start() - 200) : match.start("secret")].lower()
    return any(
        word in before for word in ("user", "role", "login", "grant", "alter", "password for")
    ) and _is_no_placeholder(match)


def _is_no_placeholder(match: re.Match[str]) -> bool:
    """Whether the secret of a match is neither a reference nor a word such as ``password``."""
    secret = match["secret"]
    return not is_reference(secret) and secret.lower() not in _PLACEHOLDERS


_URL = r"""://[^\s/:@"'`<>\[\]{}|]{0,128}+:(?P<secret>[^\s/"'`<>\[\]?#]{1,256})@(?=[A-Za-z0-9\[$])"""
_URL_USER = r"""://(?P<secret>[A-Za-z0-9_.~-]{20,255}+):?@(?=[A-Za-z0-9\[])"""
_AUTHORIZATION = (
    rf"""[aA](?i:uthorization)["'`]?{_BLANK}{{0,4}}[:=,]{_BLANK}{{0,4}}["'`]?"""
    r"""(?i:basic|token|apikey|api-key|key|digest|negotiate) {1,4}(?P<secret>[A-Za-z0-9._~+/-]{8,}+={0,2})"""
)
_BARE_AUTHORIZATION = (
    rf"""[aA](?i:uthorization)["'`]?{_BLANK}{{0,4}}[:=]{_BLANK}{{0,4}}["'`]?"""
    r"""(?P<secret>[A-Za-z0-9._~+/-]{20,}+={0,2})(?! ?[A-Za-z(\[{])"""
)
_BEARER = rf"[bB](?i:earer){_BLANK}{{1,4}}(?P<secret>[A-Za-z0-9._~+/-]{{16,}}+={{0,2}})"
_NETRC_ENTRY = re.compile(
    r"(?:(?<![\w,.] )(?<!\w)(?:machine[ \t]{1,8}(?!learning)[^\s]{1,128}|default)\s"
    r"|machine[ \t][^\s]{1,128}[ \t\r]{0,4}\n)"
    r"(?:[^\w\n]{0,12}(?:\d{1,6}[|:\t-])?[^\w\n]{0,12}"
    r"(?:login|user|account)[ \t]{1,8}(?!(?:and|or|is|the|with|flow|name)\b)[^\s]{1,128}\s{1,4}){1,2}[^\w\n]{0,12}\Z"
)
_NETRC = rf"password{_BLANK}{{1,8}}(?P<secret>[^\s\"'`\[\]]{{4,256}}+)"
_SQL = (
    r"""(?:IDENTIFIED|identified|ENCRYPTED|encrypted|WITH|with|SET|set|"""
    r"""(?:ALTER|alter|CREATE|create)(?i: {1,4}(?:role|user) {1,4}["\w]{1,64}))"""
    r"""(?i: {1,4}with {1,4}[\w'"]{1,40})? {1,4}"""
    r"""(?i:by|as|password)(?i: {1,4}password| {1,4}for {1,4}[^\s=]{1,80})? {0,4}"""
    r"""(?i:=? {0,4}password ?\(|[=(]?) {0,4}N?"""
    r"""(?P<quote>["'])(?P<secret>[^"'\n\[\]]{4,128}+)(?P=quote)"""
)
_NUGET = r"""(?i:key="(?:ClearText)?Password")\s{1,8}(?i:value)="(?P<secret>[^"\n\[\]]{4,128}+)\""""
_HASH = (
    r"(?<![\w$])(?=\$)\$(?:(?:[156y]|apr1)\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,32}\$[./A-Za-z0-9]{20,86}+"
    r"|2[aby]\$\d\d\$[./A-Za-z0-9]{53})(?![./\w])"
)
_SLACK_HOOK = r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/]{30,}+)"
_TEAMS = r"\.webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,}+)"
_SIGNATURE = r"X-(?:Amz|Goog)-(?:Signature|Security-Token)=(?P<secret>[A-Za-z0-9%/+=_-]{24,}+)"
_PGPASS = r":5432:[^\s:]{1,64}:[^\s:]{1,64}:(?P<secret>[^\s:\"'`]{4,128}+)"
_VALUE = r"""["']?(?P<secret>[^\s"'`$<>\[\]-][^\s"'`$<>\[\]]{3,128}+)"""
"""An argument that is no variable, option or redirection."""
_ARGUMENTS = r"(?: {1,4}[^\s|]{1,128})"
_CURL = (
    r"""-(?:u|-user)(?:(?<=-u)|[ \t=]{1,2}["']?|["'], {0,2}["'])"""
    r"""[^\s:"'\[\]]{1,64}+:(?P<secret>[^\s"'$<\[\]]{6,128}+)"""
)
_MYSQL = (
    r"""(?:mysql|mysqldump|mysqladmin|mariadb)(?: {1,4}-[^\sp][^\s]{0,64}| {1,4}[^\s-][^\s]{0,64}){0,12}"""
    r""" {1,4}-p(?P<secret>[^\s"'$<\[\]]{6,128}+)"""
)
_PIPED = (
    r"""(?:echo|printf)(?: {1,4}-[neE]{1,3})?(?: {1,4}["']?%s(?:\\n)?["']?)? {1,4}["']?"""
    r"""(?P<secret>[^\s"'`$<>|\[\]-][^\s"'`$<>|\[\]]{3,128}+)["']? {0,4}\|"""
    r"""[^|\n]{1,160}?(?:--password-stdin|--with-token|--stdin|sudo(?: -[a-z]+){0,3} -S)"""
)
_CHPASSWD = (
    r"""echo(?: {1,4}-[neE]{1,3})? {1,4}["']?[\w.$-]{1,64}:"""
    r"""(?P<secret>[^\s"'`$<>|\[\]][^\s"'`$<>|\[\]]{3,128}+)["']? {0,4}\|[^|\n]{1,80}?chpasswd"""
)
_HERE = rf"(?:sudo -S|--password-stdin|--with-token)[^|\n]{{0,80}}?<<< {{0,4}}{_VALUE}"
_CALL = (
    r"""(?:BasicAuth|DigestAuth|\bauth ?= ?)\( ?["'][^"'\n]{1,64}["'], ?["'](?P<secret>[^"'\n\[\]]{4,128}+)["'] ?\)"""
)
_LOGIN = r"""\blogin\( ?["'][^"'\n]{1,64}["'], ?["'](?P<secret>[^\s"'\[\]]{6,128}+)["'] ?\)"""
FORMS: tuple[Rule, ...] = (
    Rule("slack-webhook", ("hooks.slack.com",), _SLACK_HOOK),
    Rule("teams-webhook", (".webhook.office.com",), _TEAMS),
    Rule("discord", ("/api/webhooks/",), r"/api/webhooks/\d{10,20}/(?P<secret>[A-Za-z0-9_-]{50,}+)"),
    Rule("azure-sas", ("sig=",), r"(?:[?&]|&amp;)sig=(?P<secret>[A-Za-z0-9%/+=]{24,}+)"),
    Rule("signature", ("X-Amz-", "X-Goog-"), _SIGNATURE),
    Rule("url-password", ("://",), _URL, _is_no_placeholder),
    Rule("url-password", ("://",), _URL_USER, _is_url_token),
    Rule("authorization", ("uthorization", "UTHORIZATION"), _AUTHORIZATION, _is_credential),
    Rule("authorization", ("uthorization", "UTHORIZATION"), _BARE_AUTHORIZATION, _is_token),
    Rule("bearer", ("earer", "EARER"), _BEARER, _is_token),
    Rule("password", ("machine ", "default login"), _NETRC, _is_netrc),
    Rule("password", (":5432:",), _PGPASS, _is_no_placeholder),
    Rule(
        "password",
        tuple(
            f"{word} "
            for text in (
                "identified by",
                "identified with",
                "encrypted password",
                "with password",
                "set password",
                "alter role",
                "alter user",
                "create role",
                "create user",
            )
            for word in (text, text.upper())
        ),
        _SQL,
        _is_sql,
    ),
    Rule("password", ("assword",), _NUGET, _is_no_placeholder),
    Rule("password-hash", ("$6$", "$5$", "$1$", "$y$", "$apr1$", "$2a$", "$2b$", "$2y$"), _HASH),
    Rule("curl-user", ("curl",), _CURL, _is_curl),
    Rule("password", ("sshpass",), rf"sshpass {{1,4}}-p {{0,4}}{_VALUE}", _is_no_placeholder),
    Rule("password", ("mysql", "mariadb"), _MYSQL, _secret_has_digit),
    Rule(
        "password", ("docker login",), rf"docker login{_ARGUMENTS}{{0,6}}? {{1,4}}-p {{1,4}}{_VALUE}", _secret_has_digit
    ),
    Rule("password", ("-stdin", "sudo ", "--with-token"), _PIPED, _is_no_placeholder),
    Rule("password", ("<<<",), _HERE, _is_no_placeholder),
    Rule("password", ("chpasswd",), _CHPASSWD, _is_no_placeholder),
    Rule(
        "password",
        ("htpasswd",),
        rf"htpasswd {{1,4}}-[A-Za-z]{{0,8}}b[A-Za-z]{{0,8}}(?: {{1,4}}-[^\s]{{1,16}}){{0,4}}"
        rf"(?: {{1,4}}[^\s|<>-][^\s|<>]{{0,128}}){{1,2}} {{1,4}}{_VALUE}",
        _is_no_placeholder,
    ),
    Rule("password", ("zip ",), rf"zip{_ARGUMENTS}{{0,6}}? {{1,4}}-P {{0,4}}{_VALUE}", _is_no_placeholder),
    Rule("password", ("7z",), rf"7z[arz]?{_ARGUMENTS}{{0,6}}? {{1,4}}-p{_VALUE}", _is_no_placeholder),
    Rule("password", ("openssl ",), rf"openssl{_ARGUMENTS}{{1,8}}? {{1,4}}-[kK] {{1,4}}{_VALUE}", _secret_has_digit),
    Rule(
        "password",
        ("net use ",),
        rf"net use(?: {{1,4}}[^\s]{{1,128}}){{1,2}} {{1,4}}{_VALUE} {{1,4}}/user:",
        _secret_has_digit,
    ),
    Rule(
        "secret",
        ("secret set ",),
        rf"secret set{_ARGUMENTS}{{1,6}}? {{1,4}}(?:--body|-b)[ =]{{1,4}}{_VALUE}",
        _secret_has_digit,
    ),
    Rule("password", ("BasicAuth(", "DigestAuth(", "auth=(", "auth = ("), _CALL, _is_no_placeholder),
    Rule("password", ("login(",), _LOGIN, _secret_has_digit),
)
"""The first match determines the kind."""


_COOKIE = re.compile(
    r"(?:[cC](?i:ookie)[\"'`]?(?::| ?=| ) {0,4}|curl -b ?)[\"'`]?"
    r"(?P<pairs>[\w.-]{1,64}+=[^\r\n\"'`<>]{1,8192}+)"
)
OTHER_WORDS = ("ookie", "curl -b", "private key", "private-mac: ")
"""Every text with a match of `cookies` or `private_keys` contains one of these (lower case)."""
_PAIR = re.compile(r"(?P<name>[\w.-]{1,64}+)=(?P<secret>[^\s;,\"'`]{8,4096}+)")
_NO_SECRETS = frozenset(
    {"path", "domain", "expires", "max-age", "samesite", "version", "lang", "locale", "theme", "language"}
)


def cookies(text: str) -> Iterator[tuple[int, int, str]]:
    """Every cookie of a Cookie or Set-Cookie header that is long enough to mean something, as (start, end, kind)."""
    if not any(map(text.__contains__, ("ookie", "OOKIE", "curl -b"))):
        return
    for header in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *header.span("pairs")):
            secret = pair["secret"]
            if pair["name"].lower() in _NO_SECRETS or is_reference(secret):
                continue
            is_named = any(word in pair["name"].lower() for word in ("sess", "sid", "token", "auth"))
            if is_named or any(c.isdigit() for c in secret) or len(secret) >= 20:
                yield *pair.span("secret"), "cookie"


_KIND = r"(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?"
_BEGIN = re.compile(rf"----(?:-?BEGIN {_KIND}-----?| BEGIN SSH2 ENCRYPTED PRIVATE KEY ----)")
_FINISH = re.compile(rf"----(?:-?END {_KIND}-----?| END SSH2 ENCRYPTED PRIVATE KEY ----)")
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d[^\x00]{40,8000}?Private-MAC: [0-9a-f]{40,64}")
_MATERIAL = re.compile(r"[A-Za-z0-9+/=]{16,}")
_MOST_KEY = 40_000
_LONGEST_LINE = 4000
"""Characters; no private key is longer."""
_KEY_LINE = re.compile(
    r"[^A-Za-z0-9+/=\n]{0,12}(?:[A-Za-z0-9+/]{1,128}={0,2}|[A-Z][A-Za-z-]{1,20}: [^\n]{1,200}|=[A-Za-z0-9+/]{4})?"
    r"[^A-Za-z0-9\n]{0,12}(?:\n|\Z)"
)


def private_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Private keys, whole or truncated at either end, as (start, end, kind). Code with only a header stays."""
    for match in _PUTTY.finditer(text) if "Private-MAC: " in text else ():
        yield *match.span(), "private-key"
    if "PRIVATE KEY" not in text:
        return
    done = 0
    ends = [match.span() for match in _FINISH.finditer(text)]
    number = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        while number < len(ends) and ends[number][0] < begin.end():
            number += 1
        end = _whole(text, begin.end(), ends[number]) if number < len(ends) else 0
        end = end or _forward(text, begin.end())
        if end:
            yield begin.start(), end, "private-key"
            done = end
    for start, end in ends:
        if start >= done and (begun := _backward(text, start, done)) < start:
            yield begun, end, "private-key"
            done = end


def _whole(text: str, start: int, finish: tuple[int, int]) -> int:
    """The end of a key that has its last line; 0 if the text between is not a key."""
    body = text[start : finish[0]] if finish[0] - start <= _MOST_KEY else ""
    material = sum(len(run) for run in _MATERIAL.findall(body))
    return finish[1] if "-----BEGIN" not in body and material >= 24 and material * 2 >= len(body.strip()) else 0


def _forward(text: str, start: int) -> int:
    """The end of the lines of a key without its last line; 0 if there are none."""
    at, material = start, 0
    while at < len(text) and at - start < _MOST_KEY and (line := _KEY_LINE.match(text, at)) and line.end() > at:
        material += sum(len(run) for run in _MATERIAL.findall(line[0]))
        at = line.end()
    last_run = re.compile(r"\s*[A-Za-z0-9+/=]{16,}").match(text, at)
    if last_run is not None:  # the text goes on behind the key on the same line
        at, material = last_run.end(), material + len(last_run[0])
    return at if material >= 24 else 0


def _backward(text: str, start: int, least: int) -> int:
    """The start of the lines of a key without its first line."""
    at, floor = start, max(least, start - _MOST_KEY)
    while at > floor:
        low = max(floor, at - _LONGEST_LINE)
        begun = text.rfind("\n", low, at - 1) + 1 or low
        line = text[begun:at]
        if begun == low > floor or not _KEY_LINE.fullmatch(line) or (len(line) > 40 and not _MATERIAL.search(line)):
            last_run = _MATERIAL.match(line.rstrip()[::-1])
            return at - len(line) + len(line.rstrip()) - last_run.end() if last_run is not None else at
        at = begun
    return at


_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{40,}+={0,2}")
_JSON = re.compile(r"(?<=/)(?:eyJ|ewo|eyA|ewk)")
"""How JSON begins in base64: ``{"``, or a brace before white space."""
_LATIN = re.compile(rb"[\t\n\r -~]{24,}")
_ASCII = re.compile(r"(?:[A-Za-f].{3}){8}")
"""Base64 of 24 ASCII characters: each group of four begins with a clear bit."""


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Runs of base64 with readable text, as (start, end, that text); not images and hashes."""
    for run in _RUN.finditer(text):
        json = _JSON.search(run[0])  # a path before it is of the same letters
        for start in dict.fromkeys((0, json.start() if json else 0)):
            if _ASCII.match(run[0], start) is None:  # most runs are paths and need not be decoded
                continue
            head = _from_base64(run[0][start : start + 64])
            if _LATIN.match(head) and (whole := _from_base64(run[0][start:])).isascii():
                yield run.start() + start, run.end(), whole.decode()
                break


def _from_base64(run: str) -> bytes:
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(run[: len(run) // 4 * 4] if len(run) % 4 == 1 else run + "=" * (-len(run) % 4))
    except (binascii.Error, ValueError):
        return b""
