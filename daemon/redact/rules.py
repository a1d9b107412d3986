"""The table of secrets that show themselves by their shape: a provider's prefix, a PEM block, a URL with a password.

Each rule names cheap words one of which must be in the text before its pattern is tried. Every pattern begins with
literal text, takes runs possessively and starts only where a word starts, so no character is looked at more than a
constant number of times (docs/reliability.md, X4). The group `secret` is what is replaced; without it, the whole match.
No rule goes by randomness alone: hashes, ids and base64 images have no prefix and stay (docs/reliability.md, X2).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

Check = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `check` may refuse a match the pattern alone cannot judge."""

    kind: str
    words: tuple[str, ...]
    source: str
    check: Check | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is first needed: all of them cost every command 50 ms of its start, hardly one is used."""
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


def _start(literal: str, joiners: str = "") -> str:
    """`literal` where a word starts, or behind one of `joiners`. A marker of ours before it counts as part of the word,
    so that a second pass over redacted text sees the same starts as the first did.
    """
    text = re.escape(literal)
    inside = "".join(sorted(set("_-").difference(joiners)))
    return rf"{text}(?<![A-Za-z0-9{inside}]{text})(?<![0-9a-f]{{8}}\]{text})"


def _prefixed(kind: str, body: str, *prefixes: str, check: Check | None = None) -> tuple[Rule, ...]:
    """One rule for each prefix: the prefix at the start of a word, then `body`."""
    return tuple(Rule(kind, (prefix,), _start(prefix) + body, check) for prefix in prefixes)


def _anywhere(kind: str, body: str, *prefixes: str, check: Check | None = None) -> tuple[Rule, ...]:
    """As `_prefixed`, but also behind a hyphen or underscore (``backup-ghp_...``, ``tool_ghp_...``): for prefixes that
    nothing else has. The body must not fail behind a run without an end: it may begin at every joiner of that run.
    """

    def is_sure(match: re.Match[str]) -> bool:
        is_inside = match.string[max(0, match.start() - 1) : match.start()] in {"-", "_"}
        return (not is_inside or _has_digit(match)) and (check is None or check(match))

    return tuple(Rule(kind, (prefix,), _start(prefix, "_-") + body, is_sure) for prefix in prefixes)


def _is_mixed(match: re.Match[str]) -> bool:
    """Digits and capitals both: a key, and not a CSS class such as ``sk-cube-grid``."""
    text = match[0]
    return any(c.isdigit() for c in text) and any(c.isupper() for c in text)


def _has_digit(match: re.Match[str]) -> bool:
    return any(c.isdigit() for c in match[0])


_KEY_MATERIAL = re.compile(r"[A-Za-z0-9+/=]{24}")


def _holds_key(match: re.Match[str]) -> bool:
    """Whether there is key material between the lines: code that only names the header is left alone."""
    return _KEY_MATERIAL.search(match["body"]) is not None


def _is_credential(match: re.Match[str]) -> bool:
    """A digit or inner capitals, as base64 has, and not a word: ``Authorization: Basic authentication``."""
    secret = match["secret"]
    return any(c.isdigit() for c in secret) or sum(c.isupper() for c in secret[1:]) >= 2


def _is_curl(match: re.Match[str]) -> bool:
    line = match.string[max(0, match.start() - 400) : match.start()]
    return "curl" in line.rpartition("\n")[2] and any(c.isdigit() for c in match["secret"])


_PLAIN_URL_PASSWORDS = frozenset({"password", "pass", "passwd", "pwd", "secret", "pw", "token", "redacted", "user"})


def _is_url_password(match: re.Match[str]) -> bool:
    secret = match["secret"]
    is_reference = secret[0] in "$<{%*[:" or "${" in secret or "{{" in secret or "REDACTED:" in secret
    return not is_reference and secret.lower() not in _PLAIN_URL_PASSWORDS and not set(secret) <= set("*x.X…")


_WORD = r"[A-Za-z0-9_-]"
_ALNUM = r"[A-Za-z0-9]"
_END = r"(?![A-Za-z0-9])"

_PEM = (
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    # To the END line when there is one, else over the lines of key material that follow (output is often cut).
    r"(?P<body>(?>(?:[^-]|-(?!----))*+)(?=-----END )|(?>(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{16,}+(?:\s|\\[nr])*+)*+))"
    r"(?:-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?"
)
_URL = r"""://[^\s/:@"'`<>\[\]{}]{0,128}+:(?P<secret>[^\s/"'`<>\[\]?#]{1,256})@(?=[A-Za-z0-9\[$])"""
_AUTHORIZATION = (
    r"""[aA](?i:uthorization)\\{0,3}["'`]?[ \t]{0,4}[:=,][ \t]{0,4}\\{0,3}["'`]?"""
    r"""(?i:basic|token|apikey|api-key|key|digest|negotiate) {1,4}(?P<secret>[A-Za-z0-9._~+/-]{8,}+={0,2})"""
)
_BEARER = r"[bB](?i:earer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{16,}+={0,2})"
_CURL = r"""-(?:u|-user)[ \t=]{1,2}["']?[^\s:"'\[\]]{1,64}+:(?P<secret>[^\s"'$<\[\]]{6,128}+)"""
_COOKIE = r"""[cC](?i:ookie): {0,4}[\w.-]{1,64}+=(?P<secret>[A-Za-z0-9%._~+/=|:-]{20,}+)"""

SHAPES: tuple[Rule, ...] = (
    Rule("private-key", ("PRIVATE KEY",), _PEM, _holds_key),
    *_prefixed("jwt", rf"{_WORD}{{8,}}+\.eyJ{_WORD}{{8,}}+\.{_WORD}{{8,}}+", "eyJ"),
    *_anywhere("aws", rf"[A-Z0-9]{{16}}{_END}", "AKIA", "ASIA", "ABIA", "ACCA"),
    *_anywhere("github", rf"{_ALNUM}{{36,}}+", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_anywhere("github", r"[A-Za-z0-9_]{40,}+", "github_pat_"),
    *_anywhere("gitlab", r"[A-Za-z0-9_.-]{20,}+", "glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-"),
    *_anywhere("anthropic", rf"{_WORD}{{20,}}+", "sk-ant-", check=_is_mixed),
    *_prefixed("openai", rf"{_WORD}{{20,}}+", "sk-", check=_is_mixed),
    *_anywhere("stripe", rf"{_ALNUM}{{16,}}+", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    *_anywhere("stripe", r"[A-Za-z0-9+/=]{24,}+", "whsec_", check=_is_mixed),
    *_anywhere("slack", r"[A-Za-z0-9-]{16,}+", *(f"xox{c}-" for c in "abeoprs"), "xapp-", check=_has_digit),
    Rule("slack-webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{30,}+)"),
    Rule("discord", ("/api/webhooks/",), rf"/api/webhooks/\d{{10,20}}/(?P<secret>{_WORD}{{50,}}+)"),
    *_anywhere("google", rf"{_WORD}{{35}}(?!{_WORD})", "AIza"),
    *_anywhere("google", rf"{_WORD}{{24,}}+", "GOCSPX-"),
    *_prefixed("google", rf"{_WORD}{{24,}}+", "1//0"),
    *_prefixed("google", r"[A-Za-z0-9_.-]{30,}+", "ya29."),
    *_anywhere("npm", rf"{_ALNUM}{{36,}}+", "npm_"),
    *_anywhere("pypi", rf"{_WORD}{{40,}}+", "pypi-AgE"),
    *_anywhere("rubygems", rf"[0-9a-f]{{48}}{_END}", "rubygems_"),
    *_anywhere("docker", rf"{_WORD}{{20,}}+", "dckr_pat_", "dckr_oat_"),
    *_anywhere("huggingface", rf"{_ALNUM}{{30,}}+", "hf_", "api_org_"),
    *_prefixed("sendgrid", rf"{_WORD}{{16,}}+\.{_WORD}{{16,}}+", "SG."),
    *_prefixed("twilio", rf"[0-9a-f]{{32}}{_END}", "SK"),
    *_anywhere("digitalocean", rf"[0-9a-f]{{64}}{_END}", "dop_v1_", "doo_v1_", "dor_v1_"),
    *_prefixed("databricks", rf"[0-9a-f]{{32}}{_END}", "dapi"),
    *_anywhere("shopify", rf"[0-9a-fA-F]{{32}}{_END}", "shpat_", "shpca_", "shppa_", "shpss_"),
    *_prefixed("square", rf"{_WORD}{{22,}}+", "sq0atp-", "sq0csp-"),
    Rule("telegram", (":AA",), rf"(?P<secret>:AA(?<=[0-9]{{8}}:AA){_WORD}{{33}}(?!{_WORD}))"),
    *_prefixed("vault", rf"{_WORD}{{24,}}+", "hvs.", "hvb.", "hvr."),
    Rule("terraform", (".atlasv1.",), rf"\.atlasv1\.(?P<secret>{_WORD}{{40,}}+)"),
    *_anywhere("linear", rf"{_ALNUM}{{32,}}+", "lin_api_", "lin_oauth_"),
    *_prefixed("notion", rf"{_ALNUM}{{40,}}+", "ntn_", "secret_"),
    *_prefixed("grafana", r"[A-Za-z0-9_=+/]{32,}+", "glsa_", "glc_"),
    *_anywhere("newrelic", rf"[A-Z0-9]{{27}}{_END}", "NRAK-"),
    *_anywhere("postman", rf"[0-9a-f]{{24}}-[0-9a-f]{{34}}{_END}", "PMAK-"),
    *_prefixed("doppler", rf"{_ALNUM}{{40,}}+", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa."),
    *_anywhere("age", rf"[0-9A-Z]{{58}}{_END}", "AGE-SECRET-KEY-1"),
    *_prefixed("model-api", rf"{_ALNUM}{{36,}}+", "gsk_", "xai-", "pplx-", "r8_", "fw_", "tgp_v1_"),
    *_anywhere("figma", rf"{_WORD}{{36,}}+", "figd_"),
    *_anywhere("sentry", r"[A-Za-z0-9_=+/]{40,}+", "sntrys_", "sntryu_"),
    *_anywhere("atlassian", r"[A-Za-z0-9_=-]{60,}+", "ATATT3", "ATCTT3"),
    *_anywhere("supabase", rf"[0-9a-f]{{40}}{_END}", "sbp_"),
    *_anywhere("tailscale", rf"(?:auth|api|client|webhook)-{_WORD}{{16,}}+", "tskey-"),
    *_anywhere("planetscale", r"[A-Za-z0-9_.=-]{32,}+", "pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
    *_prefixed("dropbox", rf"{_WORD}{{60,}}+", "sl.", check=_is_mixed),
    *_prefixed("heroku", rf"{_WORD}{{40,}}+", "HRKU-"),
    *_prefixed("flyio", r"[A-Za-z0-9_=+/,]{60,}+", "fm2_", "fm1r_", "fo1_"),
    Rule("azure-sas", ("sig=",), r"(?:[?&]|&amp;)sig=(?P<secret>[A-Za-z0-9%/+=]{40,}+)"),
    Rule("url-password", ("://",), _URL, _is_url_password),
    Rule("authorization", ("uthorization", "UTHORIZATION"), _AUTHORIZATION, _is_credential),
    Rule("bearer", ("earer", "EARER"), _BEARER, lambda match: any(c.isdigit() for c in match["secret"])),
    Rule("curl-user", ("curl",), _CURL, _is_curl),
    Rule("cookie", ("ookie:", "OOKIE:"), _COOKIE, _has_digit),
)
