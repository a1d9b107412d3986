"""What the name of a field or flag tells of its value."""

from __future__ import annotations

import pytest

from daemon.redact.structured import is_field, is_telling, member

TOKEN = "gh" + "p_" + "a1B2" * 9
WORD = "vq7Rm2xZk9Lp"


@pytest.mark.parametrize(
    ("name", "telling", "is_whole_name"),
    [
        ("-u", True, False),
        ("--user", True, False),
        ("--proxy-user", True, False),
        ("user", False, False),
        ("DB_PASSWORD", True, True),
        ("apiKey", True, True),
        ("Cookie", True, False),
        ("the password", True, False),
        ("colour", False, False),
    ],
)
def test_a_name_may_tell_that_its_value_is_a_secret(name: str, telling: bool, is_whole_name: bool) -> None:
    assert (is_telling(name), is_field(name)) == (telling, is_whole_name)


@pytest.mark.parametrize(
    ("name", "item", "expected"),
    [
        ("-u", "bob:abcd", ("curl-user", "abcd")),
        ("--user", ":abcd", ("curl-user", "abcd")),
        ("--proxy-user", "bob:a:b:c", ("curl-user", "a:b:c")),
        ("-u", "bob:abc", None),
        ("-u", "root", None),
        ("cookie", "abcdefg1", ("cookie", "abcdefg1")),
        ("Cookies", "abcdefg1", ("cookie", "abcdefg1")),
        ("cookie", "abcdef1", None),
        ("cookie", "abcdefgh", None),
        ("cookie", "sessions 12", None),
        ("cookie", "[REDACTED:cookie:12345678]", None),
        ("cookie", "a=b1234567", ("cookie", "b1234567")),
        ("password", WORD, ("password", WORD)),
        ("password", "hunter2", ("password", "hunter2")),
        ("password", "REDACTED:a1b2c3d4", None),
        ("password", "${NAME}", None),
        ("api_key", WORD, ("secret", WORD)),
        ("token", "true", None),
        ("Authorization", f"Bearer {WORD}AAAAAAA", ("bearer", f"{WORD}AAAAAAA")),
        ("--header", f"Authorization: Bearer {WORD}AAAAAAA", ("bearer", f"{WORD}AAAAAAA")),
        ("--password", WORD, ("password", WORD)),
        ("note", f"it is {TOKEN}", ("github", TOKEN)),
        ("password", f"{WORD}\n".ljust(4096, "x"), ("password", WORD)),
        ("password", f"{WORD}\n".ljust(4097, "x"), None),
        ("password", f"{TOKEN}\n".ljust(4097, "x"), ("github", TOKEN)),
    ],
)
def test_a_value_is_judged_together_with_its_name(name: str, item: str, expected: tuple[str, str] | None) -> None:
    spans = member(name, item)
    assert [(span.kind, span.secret) for span in spans] == ([expected] if expected else [])
    assert all(item[span.start : span.end] == span.secret for span in spans)
