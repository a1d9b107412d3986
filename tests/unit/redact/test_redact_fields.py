"""What the name of a field or flag tells of its value."""

from __future__ import annotations

import pytest

from daemon.redact import marker, redact_value

TOKEN = "gh" + "p_" + "a1B2" * 9
WORD = "vq7Rm2xZk9Lp"


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
        ("api_key", "hunter2", None),
        ("password", "correcthorse", ("password", "correcthorse")),
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
    whole = item if expected is None else item.replace(expected[1], marker(*expected))
    if name.startswith("-"):
        assert redact_value(["curl", name, item]) == ["curl", name, whole]
    else:
        assert redact_value({name: item}) == {name: whole}
