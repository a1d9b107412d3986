"""The table of secrets with a provider's prefix.

A rule's pattern is tried only if the text contains one of the rule's words, which is a cheap check. Every pattern
begins with literal text, uses possessive quantifiers and starts only at a word, so each character is read only a
constant number of times (docs/reliability.md, X4). The group `secret` is replaced; without it, the whole match. No rule
uses randomness alone: hashes, ids and base64 images have no prefix and stay (docs/reliability.md, X2).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

Check = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `check` may reject a match that the pattern alone cannot judge."""

    kind: str
    words: tuple[str, ...]
    source: str
    check: Check | None = None
    before: int = 0
    """Characters before the match that belong to the secret, for a secret whose mark is at its end."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled on first use, because compiling all of them takes 50 ms and few are used."""
        return _compiled(self.source)

    @property
    def name(self) -> str:
        """Unique among all rules: the kind and the word that leads to it."""
        return f"{self.kind} {self.words[0]}"


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
        return (not is_inside or has_digit(match)) and (check is None or check(match))

    return tuple(Rule(kind, (prefix,), _start(prefix, "_-") + body, is_sure) for prefix in prefixes)


def _is_mixed(match: re.Match[str]) -> bool:
    """Digits and capitals both: a key, and not a CSS class such as ``sk-cube-grid``."""
    text = match[0]
    return any(c.isdigit() for c in text) and any(c.isupper() for c in text)


def has_digit(match: re.Match[str]) -> bool:
    """Whether there is a digit in the match."""
    return any(c.isdigit() for c in match[0])


_WORD = r"[A-Za-z0-9_-]"
_ALNUM = r"[A-Za-z0-9]"
_LOWER = r"[a-z0-9]"
_HEX = r"[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}{_END}"

_CODE_HOSTS = (
    *_anywhere("github", rf"{_ALNUM}{{36,}}+", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_anywhere("github", r"[A-Za-z0-9_]{40,}+", "github_pat_"),
    *_anywhere(
        "gitlab", r"[A-Za-z0-9_.-]{20,}+", "glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-", "glffct-",
        "glft-",
        "glimt-", "glagent-", "gloas-", "GR1348941", "_gitlab_session=", check=has_digit,
    ),
    *_anywhere("atlassian", r"[A-Za-z0-9_=-]{60,}+", "ATATT3", "ATCTT3"),
    *_anywhere("bitbucket", rf"{_ALNUM}{{20,}}+", "ATBB", check=_is_mixed),
    *_anywhere("sourcegraph", rf"(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}{_END}", "sgp_"),
    *_anywhere("sonar", rf"{_HEX}{{40}}{_END}", "squ_", "sqp_", "sqa_"),
)  # fmt: skip
_MODELS = (
    *_anywhere("anthropic", rf"{_WORD}{{20,}}+", "sk-ant-", check=_is_mixed),
    *_prefixed("openai", rf"{_WORD}{{20,}}+", "sk-", check=_is_mixed),
    *_anywhere("huggingface", rf"{_ALNUM}{{30,}}+", "hf_", "api_org_"),
    *_prefixed("model-api", rf"{_ALNUM}{{36,}}+", "gsk_", "xai-", "pplx-", "r8_", "fw_", "tgp_v1_", check=has_digit),
    *_anywhere(
        "model-api", rf"{_ALNUM}{{24,}}+", "nvapi-", "csk-", "lsv2_pt_", "lsv2_sk_", "jina_", "tvly-", "fc-",
        check=has_digit,
    ),
)  # fmt: skip
_CLOUDS = (
    *_anywhere("aws", rf"[A-Z0-9]{{16}}{_END}", "AKIA", "ASIA", "ABIA", "ACCA"),
    *_prefixed("aws", r"[A-Za-z0-9+/]{109,}+={0,2}", "ABSK"),
    *_anywhere("aws", r"[A-Za-z0-9+/]{20,}+={0,2}", "bedrock-api-key-"),
    *_anywhere("alibaba", rf"{_ALNUM}{{20}}{_END}", "LTAI", check=has_digit),
    *_anywhere("google", rf"{_WORD}{{35}}(?!{_WORD})", "AIza"),
    *_anywhere("google", rf"{_WORD}{{24,}}+", "GOCSPX-"),
    *_prefixed("google", rf"{_WORD}{{24,}}+", "1//0"),
    *_prefixed("google", r"[A-Za-z0-9_.-]{30,}+", "ya29."),
    Rule(
        "azure", ("Q~",),
        r"Q~(?<![A-Za-z0-9_~.-][A-Za-z0-9_~.]{3}\dQ~)(?<=[A-Za-z0-9_~.]{3}\dQ~)[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
        before=4,
    ),
    *_anywhere("digitalocean", rf"{_HEX}{{64}}{_END}", "dop_v1_", "doo_v1_", "dor_v1_"),
    *_prefixed("cloudflare", rf"{_HEX}{{24}}-{_HEX}{{100,}}+", "v1.0-"),
    *_prefixed("heroku", rf"{_WORD}{{40,}}+", "HRKU-"),
    *_prefixed("flyio", r"[A-Za-z0-9_=+/,-]{40,}+", "fm2_", "fm1r_", "fm1a_", "fo1_"),
    *_anywhere("supabase", rf"{_HEX}{{40}}{_END}", "sbp_"),
    *_anywhere("planetscale", r"[A-Za-z0-9_.=-]{32,}+", "pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
    *_prefixed("databricks", rf"{_HEX}{{32}}(?:-\d)?{_END}", "dapi"),
    *_anywhere("pulumi", rf"{_HEX}{{40}}{_END}", "pul-"),
    *_prefixed("scalingo", rf"{_WORD}{{48}}(?!{_WORD})", "tk-us-"),
    *_prefixed("clickhouse", rf"{_ALNUM}{{38}}{_END}", "4b1d", check=_is_mixed),
    *_prefixed("openshift", rf"{_WORD}{{43}}(?!{_WORD})", "sha256~"),
    *_prefixed("yandex", rf"{_WORD}{{35,38}}(?!{_WORD})", "AQVN"),
    *_anywhere("netlify", rf"{_ALNUM}{{36,}}+", "nfp_"),
    *_anywhere("render", rf"{_ALNUM}{{24,}}+", "rnd_", check=has_digit),
    *_anywhere("aiven", r"[A-Za-z0-9+/=]{60,}+", "aivenv1"),
)  # fmt: skip
_PACKAGES = (
    *_anywhere("npm", rf"{_ALNUM}{{36,}}+", "npm_"),
    *_anywhere("pypi", rf"{_WORD}{{40,}}+", "pypi-AgE"),
    *_anywhere("rubygems", rf"{_HEX}{{48}}{_END}", "rubygems_"),
    *_anywhere("docker", rf"{_WORD}{{20,}}+", "dckr_pat_", "dckr_oat_"),
    *_anywhere("clojars", rf"{_LOWER}{{60}}{_END}", "CLOJARS_", "clojars_"),
    *_anywhere("nuget", rf"{_LOWER}{{43}}{_END}", "oy2"),
    *_anywhere("crates", rf"{_ALNUM}{{32}}{_END}", "cio"),
    *_prefixed("artifactory", rf"{_ALNUM}{{69}}{_END}", "AKCp"),
    *_prefixed("artifactory", rf"{_ALNUM}{{59}}{_END}", "cmVmd"),
)
_SHOPS = (
    *_anywhere(
        "stripe", rf"{_ALNUM}{{16,}}+",
        *(f"{key}_{mode}_" for key in ("sk", "rk") for mode in ("live", "test", "prod")),
    ),
    *_anywhere("stripe", r"[A-Za-z0-9+/=]{24,}+", "whsec_", check=_is_mixed),
    *_anywhere("shopify", rf"[0-9a-fA-F]{{32}}{_END}", "shpat_", "shpca_", "shppa_", "shpss_"),
    *_prefixed("square", rf"{_WORD}{{22,}}+", "sq0atp-", "sq0csp-"),
    *_prefixed("square", rf"{_WORD}{{56,60}}(?!{_WORD})", "EAAA", check=_is_mixed),
    *_anywhere("shippo", rf"[0-9a-fA-F]{{40}}{_END}", "shippo_live_", "shippo_test_"),
    *_anywhere("duffel", r"[A-Za-z0-9_=-]{43}", "duffel_live_", "duffel_test_"),
    *_prefixed("easypost", rf"{_ALNUM}{{54}}{_END}", "EZAK", "EZTK"),
    *_anywhere("flutterwave", rf"{_ALNUM}{{12,}}+", "FLWSECK_TEST-", "FLWSECK-", check=has_digit),
    *_prefixed("plaid", _UUID, "access-sandbox-", "access-development-", "access-production-"),
    Rule(
        "paypal", ("access_token$",),
        rf"access_token\$(?:production|sandbox)\${_LOWER}{{16}}\$(?P<secret>{_HEX}{{32}}){_END}",
    ),
    Rule("maxmind", ("_mmk",), rf"_mmk(?<=[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk){_END}", before=36),
)  # fmt: skip
_MESSAGES = (
    *_anywhere("slack", r"[A-Za-z0-9-]{16,}+", *(f"xox{c}-" for c in "abeoprs"), "xapp-", check=has_digit),
    *_prefixed("sendgrid", rf"{_WORD}{{16,}}+\.{_WORD}{{16,}}+", "SG."),
    *_anywhere("sendinblue", rf"{_HEX}{{64}}-{_ALNUM}{{16}}{_END}", "xkeysib-", "xsmtpsib-"),
    *_prefixed("mailgun", rf"{_HEX}{{32}}{_END}", "key-"),
    Rule("mailchimp", ("-us",), rf"-us(?<![0-9A-Za-z]{_HEX}{{32}}-us)(?<={_HEX}{{32}}-us)\d{{1,2}}{_END}", before=32),
    *_prefixed("twilio", rf"{_HEX}{{32}}{_END}", "SK"),
    *_prefixed("facebook", rf"{_ALNUM}{{100,}}+", "EAAM", "EAAC", "EAAB"),
    Rule("telegram", (":AA",), rf"(?P<secret>:AA(?<=[0-9]{{8}}:AA){_WORD}{{20,}}+)"),
    *_prefixed("notion", rf"{_ALNUM}{{40,}}+", "ntn_", "secret_", check=has_digit),
    *_prefixed("airtable", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}{_END}", "pat"),
    *_anywhere("figma", rf"{_WORD}{{36,}}+", "figd_"),
    *_anywhere("typeform", r"[A-Za-z0-9_.=-]{59}", "tfp_"),
    *_anywhere("frameio", r"[A-Za-z0-9_=-]{64}", "fio-u-"),
    *_prefixed("dropbox", rf"{_WORD}{{60,}}+", "sl.", check=_is_mixed),
    *_anywhere("linear", rf"{_ALNUM}{{32,}}+", "lin_api_", "lin_oauth_"),
)  # fmt: skip
_OPERATIONS = (
    *_prefixed("vault", rf"{_WORD}{{24,}}+", "hvs.", "hvb.", "hvr."),
    Rule("terraform", (".atlasv1.",), rf"\.atlasv1\.(?P<secret>{_WORD}{{40,}}+)"),
    *_prefixed("grafana", r"[A-Za-z0-9_=+/]{32,}+", "glsa_", "glc_", check=_is_mixed),
    *_prefixed("grafana", r"[A-Za-z0-9]{60,}+={0,2}", "eyJrIjoi"),
    *_anywhere("newrelic", rf"[A-Z0-9]{{27}}{_END}", "NRAK-"),
    *_anywhere("newrelic", rf"[A-Za-z0-9-]{{32}}{_END}", "NRII-"),
    *_anywhere("newrelic", rf"{_HEX}{{19}}{_END}", "NRJS-"),
    *_anywhere("postman", rf"{_HEX}{{24}}-{_HEX}{{34}}{_END}", "PMAK-"),
    *_prefixed("doppler", rf"{_ALNUM}{{40,}}+", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
    *_anywhere("sentry", r"[A-Za-z0-9_=+/]{40,}+", "sntrys_", "sntryu_"),
    *_anywhere("tailscale", rf"(?:auth|api|client|webhook)-{_WORD}{{16,}}+", "tskey-"),
    *_prefixed("dynatrace", rf"[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}{_END}", "dt0c01."),
    *_prefixed("harness", rf"{_WORD}{{22}}\.{_ALNUM}{{24}}\.{_ALNUM}{{20}}{_END}", "pat.", "sat."),
    *_anywhere("octopus", rf"[A-Z0-9]{{26}}{_END}", "API-", check=has_digit),
    *_anywhere("prefect", rf"{_ALNUM}{{36}}{_END}", "pnu_"),
    *_anywhere("infracost", rf"{_ALNUM}{{32}}{_END}", "ico-", check=has_digit),
    *_anywhere("readme", rf"{_LOWER}{{70}}{_END}", "rdme_"),
    *_anywhere("buildkite", rf"{_ALNUM}{{40}}{_END}", "bkua_"),
    *_anywhere("circleci", rf"{_ALNUM}{{16,}}_{_HEX}{{40}}{_END}", "CCIPAT_"),
    *_prefixed("launchdarkly", _UUID, "sdk-", "mob-", "api-"),
    *_anywhere("settlemint", rf"{_ALNUM}{{16}}{_END}", "sm_aat_", "sm_pat_", "sm_sat_", check=has_digit),
    *_anywhere("nebula", r"[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}", "dnkey-"),
    *_anywhere("intra42", rf"{_HEX}{{64}}{_END}", "s-s4t2ud-", "s-s4t2af-"),
    *_prefixed("adobe", rf"{_ALNUM}{{32}}{_END}", "p8e-", check=has_digit),
    *_anywhere(
        "authress", rf"{_ALNUM}{{5,30}}\.{_ALNUM}{{4,6}}\.acc[_-]{_WORD}{{10,32}}\.[A-Za-z0-9+/_=-]{{30,120}}+",
        "sc_", "ext_", "scauth_", "authress_",
    ),
)  # fmt: skip
_KEYS = (
    *_anywhere("age", rf"[0-9A-Z]{{58}}{_END}", "AGE-SECRET-KEY-1"),
    *_anywhere("age", r"[0-9A-Z]{60,}+", "AGE-PLUGIN-"),
    *_prefixed("1password", r"[A-Za-z0-9+/_-]{200,}+={0,3}", "ops_eyJ"),
    *_prefixed(
        "1password",
        rf"[A-Z0-9]{{6}}-(?:[A-Z0-9]{{11}}|[A-Z0-9]{{6}}-[A-Z0-9]{{5}})-[A-Z0-9]{{5}}-[A-Z0-9]{{5}}-[A-Z0-9]{{5}}{_END}",
        "A3-",
    ),
    *_prefixed("jwt", rf"{_WORD}{{8,}}+\.eyJ{_WORD}{{8,}}+\.{_WORD}{{8,}}+", "eyJ"),
    *_prefixed("jwt", rf"{_WORD}{{8,}}+(?:\.{_WORD}{{0,2000}}+){{3}}\.{_WORD}{{16,}}+", "eyJhbGciOi"),
)  # fmt: skip

VENDORS: tuple[Rule, ...] = (
    *_KEYS, *_CODE_HOSTS, *_MODELS, *_CLOUDS, *_PACKAGES, *_SHOPS, *_MESSAGES, *_OPERATIONS,
)  # fmt: skip
"""All of them; the first match determines the kind."""

UNMISTAKABLE = frozenset((
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-",
    "glffct-", "ATATT3", "ATCTT3", "ATBB", "sgp_", "sk-ant-", "sk-", "hf_", "gsk_", "xai-", "pplx-", "nvapi-",
    "lsv2_pt_", "lsv2_sk_", "tvly-", "AKIA", "ASIA", "AIza", "GOCSPX-", "ya29.", "LTAI", "dop_v1_", "doo_v1_",
    "dor_v1_", "HRKU-", "fm2_", "sbp_", "pscale_tkn_", "pscale_pw_", "dapi", "npm_", "pypi-AgE", "rubygems_",
    "dckr_pat_", "dckr_oat_", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "shpat_", "shpca_", "shppa_",
    "shpss_", "sq0atp-", "sq0csp-", "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-", "SG.",
    "xkeysib-", "ntn_", "figd_", "lin_api_", "lin_oauth_", "hvs.", "hvb.", "hvr.", "glsa_", "NRAK-", "PMAK-",
    "dp.pt.", "dp.st.", "dp.ct.", "sntrys_", "sntryu_", "tskey-", "dt0c01.", "AGE-SECRET-KEY-1", "ops_eyJ",
    "eyJhbGciOi",
))  # fmt: skip
"""Prefixes by which even a part of a key is recognised: of one provider, and the beginning of no word or name."""
