"""Secrets leave no text, innocent text is never touched, and a second pass changes nothing."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import markdown
from daemon.redact import known, marker, redact, redact_value
from tests.support.examples import examples
from tests.support.secrets.canaries import HOSTILE, SECRETS

MARKER = re.compile(r"\[REDACTED:([a-z-]+):([0-9a-f]{8})\]")


INNOCENT = {
    row["name"]: row["text"] for row in tomllib.loads((HOSTILE / "innocent.toml").read_text(encoding="utf-8"))["text"]
}
FRAGMENTS = [secret for _, secret, _ in SECRETS]
FRAGMENTS += [text.replace("{}", secret) for _, secret, text in SECRETS]
FRAGMENTS += ["password", "token", "=", ":", '"', "'", " ", "\n", "://", "@", "[", "]", "-----BEGIN PRIVATE KEY-----"]
FRAGMENTS += [
    "İ",
    "[REDACTED:aws:01234567]",
    "[REDACTED:password:abcdef12]",
    "-----END PRIVATE KEY-----",
    "a1b2c3d4",
    "Bearer ",
]


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """Whatever other tests learnt is no part of these."""
    with known.only({}):
        yield


@pytest.mark.parametrize(("kind", "secret", "text"), SECRETS, ids=[f"{n}-{row[0]}" for n, row in enumerate(SECRETS)])
def test_a_canary_is_replaced_by_its_kind_and_hash_and_nothing_else_is(kind, secret, text):
    before, after = text.split("{}")
    redacted = redact(before + secret + after)

    assert secret not in redacted
    markers = [match for match in MARKER.finditer(redacted) if match[1] == kind]
    assert len(markers) == 1
    if kind not in {"private-key", "telegram"}:
        assert markers[0][2] == hashlib.sha256(secret.encode()).hexdigest()[:8]
    assert redacted[markers[0].end() :] == after or kind == "private-key"
    assert redacted.startswith(before) or "://x:y@" in before


PREFIXED = {
    "aws", "github", "gitlab", "anthropic", "stripe", "slack", "npm", "pypi", "huggingface", "docker", "digitalocean",
    "shopify", "linear", "figma", "atlassian", "supabase", "tailscale",
}  # fmt: skip


@pytest.mark.parametrize("joined", ['"/tmp/sec-{}"', "tool_{}", "my-dir_{} was made", "--{}", "__{}"])
@pytest.mark.parametrize(
    ("kind", "secret"),
    [pytest.param(kind, secret, id=f"{n}-{kind}") for n, (kind, secret, _) in enumerate(SECRETS) if kind in PREFIXED],
)
def test_a_providers_prefix_is_seen_behind_a_hyphen_or_underscore_too(kind: str, secret: str, joined: str) -> None:
    before, after = joined.split("{}")
    redacted = redact(before + secret + after)
    assert secret not in redacted
    assert MARKER.sub("", redacted) == before + after
    assert [match[1] for match in MARKER.finditer(redacted)] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "task-sk-aBcDeFgHiJkLmNoPqRsTuVwX1",  # too short a prefix to be told from the end of a word
        "SOUTH_ASIAPACIFICREGIONALX",
        "my-npm_abcdefghijklmnopqrstuvwxyzabcdefghijkl",
        "xghp_a8Kd0Zq3Lw7Rt5Yb2Nca8Kd0Zq3Lw7Rt5Yb",
        "const model_hf_hub = load_hf_model_v2()",
    ],
)
def test_what_only_resembles_a_prefix_inside_a_word_stays(text: str) -> None:
    assert redact(text) is text


# lines of a tool's output, and of code that must stay
LINES = [
    ("password: {}", "hunter2pass"),
    ("  db_password: {} # rotate", "hunter2"),
    ("user: bob\r\npassword: {}\r\nhost: x", "passw0rd123"),
    ('{{"out": "user: bob\\npassword: {}\\nok"}}', "token123abc"),
    ("The password: {}.", "s3cret99"),
    ("password: {}", "mypassword1"),
    ("Passwort：{}", "hunter2pass"),
    ("password: {}", "Hunter2Pass"),
]


@pytest.mark.parametrize(("line", "secret"), LINES)
def test_a_line_that_tells_a_password_is_redacted_whatever_word_is_in_it(line: str, secret: str) -> None:
    whole = line.format(secret)
    assert MARKER.sub(secret, redact(whole)) == whole
    assert secret not in redact(whole)
    assert redact(redact(whole)) == redact(whole)


CLOSED = [
    "{}</task_result>", '{{"output":"{}"}}', "'{}'", "`{}`", "({})", "{}, next", "{}; next", "<![CDATA[{}]]>",
    '<x a="{}"/>', "a,{},b", "[{}](https://example.org)", "user: joe {} host: x", "{} and go on", "b'{}'", "``{}``",
]  # fmt: skip
TOLD = [
    ("DB_PASSWORD: {}", "zeb" + "ra99xQ"), ("password: {}", "hor" + "se42pass7"), ("passwd: {}", "Kx" + "94tq71"),
]  # fmt: skip


@pytest.mark.parametrize("mark", CLOSED)
@pytest.mark.parametrize(("line", "secret"), TOLD)
def test_letters_and_digits_are_a_password_before_any_closing_mark(line: str, secret: str, mark: str) -> None:
    whole = mark.format(line.format(secret))
    assert MARKER.sub(secret, redact(whole)) == whole
    assert secret not in redact(whole)


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("password = {}", "zeb" + "ra99xQ"), ("db.password = {}\nhost = x", "zeb" + "ra99xQ"),
        ("db.password={}", "mypa" + "ss123"), ("psk={}", "mywifi" + "pass99"), ("password={}", "sec" + "ret99x"),
        ("password={}", "myto" + "ken2024"), (" password={}", "monkey" + "77pass"),
    ],
)  # fmt: skip
def test_a_setting_in_lower_case_is_hidden_whatever_word_is_in_it(line: str, secret: str) -> None:
    whole = line.format(secret)
    assert MARKER.sub(secret, redact(whole)) == whole
    assert secret not in redact(whole)


@pytest.mark.parametrize(
    "line",
    [
        "On that machine the user can login and the password file is kept in /etc.",
        "The virtual machine asks for login and password twice before it gives up.",
        "machine learning models: user login flow, password reset and the token refresh are covered.",
        "on this machine the user password expires after 90 days until first login; the password is new",
        "密码：至少8位字符", "パスワード：8文字以上で入力してください", "password: Password123Validator",
        "pass: utils/test_x1.py::test_y2", "PASS: check-12-b3", "Authorization: Bearer YOUR_API_KEY_HERE_1234",
        "Bearer authentication-scheme-v2-rfc6750 is defined", "authorization: required-for-v2-endpoints-only-2024",
        "docker build --secret id=aws2024,src=x", "token: 0x7ffeefbff5c8", "password = value1", "password = passwd2",
        "def login(user: User1, password: Secret22Text, host: str)", "login({ user, password: hunter22pass, host })",
    ],
)  # fmt: skip
def test_what_only_speaks_of_a_secret_stays(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "password: user_password2", "password: dbPass1", "password: uint16", "password: v2_password", "password: string",
        "login({ user, password: hunter2pass, host })", "password: s3", "password: settings.password2",
    ],
)  # fmt: skip
def test_a_line_of_code_that_names_a_password_stays(line: str) -> None:
    assert redact(line) is line


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in SECRETS}))
def test_a_marker_that_markdown_has_escaped_is_left_as_it_is(kind: str) -> None:
    escaped = str(markdown.inline(f"why does {marker(kind, 'value')} not work"))
    assert redact(escaped) == escaped


def test_there_are_thirty_kinds_of_canaries():
    assert len({kind for kind, _, _ in SECRETS}) >= 30


@pytest.mark.parametrize("name", sorted(INNOCENT))
def test_innocent_text_comes_back_as_it_is(name):
    for line in INNOCENT[name].splitlines():
        assert redact(line) == line
    assert redact(INNOCENT[name]) == INNOCENT[name]


def test_our_own_source_is_innocent():
    for file in (Path(__file__).parents[3] / "daemon").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert redact(text) == text, file


def test_a_text_without_secrets_is_the_same_object():
    for text in ("", "nothing to see", "the key of the token", "x" * 10_000):
        assert redact(text) is text


def test_equal_secrets_stay_equal_and_others_do_not():
    first, again, other = (redact(f"password: '{value}'") for value in ("abc12345", "abc12345", "abc12346"))
    assert first == again != other


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(SECRETS), st.sampled_from(sorted(INNOCENT)), st.sampled_from(sorted(INNOCENT)))
def test_a_canary_is_found_wherever_it_stands(row, before, after):
    _, secret, text = row
    whole = f"{INNOCENT[before]}\n{text.replace('{}', secret)}\n{INNOCENT[after]}"
    redacted = redact(whole)
    assert secret not in redacted
    assert redacted.startswith(INNOCENT[before])
    assert redacted.endswith(INNOCENT[after])


@pytest.mark.parametrize(
    "unit",
    ["token=", 'password="', "password='a1b2c3d4' ", "sk-", "eyJaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "://a:@",
     "Authorization: Basic ", "curl -u a:b", "Cookie: a=", "password" + " " * 40, "-", " AKIA", ":AA", "key",
     "-----END PRIVATE KEY-----", "\\\\n", "%20", "a+b&c=", "password|", "password: |\n ", "mysql -", "machine x password a ",
     "IDENTIFIED BY '", "00001| a\n", "...", "ghp_...", "a1B2" * 10 + "\n", "\x1b[31m", '""', "aGVsbG8gd29ybGQg" * 4 + " ",
     "-ghp_", "_glpat-", "-sk-ant-", "_AKIA", "-xoxb-", "_AIza", "-pypi-AgE", "password: a1b2c3d4 ",
     "a|password\n", "a|password\n" + "x|..(\n" * 40, "echo -n a1 | ", "zip -q a ", "7z x a ", "htpasswd -b a ", "openssl a ",
     "auth=('a', '", "X-Amz-Signature=", ":5432:a:b:", "echo a:b1 | sudo ", "sudo -S ", "secret set a "],
)  # fmt: skip
def test_text_made_to_be_slow_is_done_in_linear_time(unit):
    # The bound is pytest's own timeout: anything worse than linear takes hours here.
    text = unit * (200_000 // len(unit))
    assert len(redact(text)) > 0


def test_a_json_value_is_redacted_by_its_strings_and_its_keys_stay():
    value = {"password": "hunter2hunter", "note": ["DB_PASSWORD=hunter2hunter", 7, None, True], "token": {"a": "plain"}}
    redacted = redact_value(value)
    assert redacted["password"] == redact("password=hunter2!").replace("hunter2!", "") or MARKER.fullmatch(
        redacted["password"]
    )
    assert MARKER.search(redacted["note"][0])
    assert redacted["note"][1:] == [7, None, True]
    assert redacted["token"] == {"a": "plain"}
    assert list(redacted) == list(value)
    assert redact_value(redacted) == redacted


TOKEN = "Hg0WsSeRs3" + "CDOlD8H3753ZLt"


@pytest.mark.parametrize(
    "record",
    [
        {"ParameterKey": "DbPassword", "ParameterValue": TOKEN}, {"label": "API Key", "value": TOKEN},
        [["password", TOKEN]], {"headers": [["X-Api-Key", TOKEN]]}, {"passcode": TOKEN}, {"passwordConfirm": TOKEN},
        {"cookies": {"sid": TOKEN}}, {"cookies": [{"name": "sid", "value": TOKEN}]}, {"OPENAI_KEY": TOKEN},
    ],
)  # fmt: skip
def test_a_record_of_a_name_and_its_secret_is_told_by_its_name(record: object) -> None:
    redacted = redact_value(record)
    assert TOKEN not in str(redacted)
    assert redact_value(redacted) == redacted


def test_a_file_that_is_named_by_a_cut_off_key_keeps_its_ending() -> None:
    shown = redact("notes on ghp_" + "a1B2" * 6 + ".py.md")
    assert shown.startswith("notes on [REDACTED:github:")
    assert shown.endswith("].py.md")
