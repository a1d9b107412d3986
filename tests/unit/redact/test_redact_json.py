"""JSON values lose their secrets, wherever name and value stand; everything else comes back as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from daemon import redact
from daemon.redact import known, marker, redact_value

TOKEN = "gh" + "p_" + "a1B2" * 9
WORD = "vq7Rm2xZk9Lp"
GITHUB, PASSWORD, COOKIE = marker("github", TOKEN), marker("password", WORD), marker("cookie", WORD)


@pytest.fixture
def configured() -> Iterator[None]:
    known.configure(["x+"], [])
    yield
    known.configure([], [])


def test_a_marker_is_made_of_the_kind_and_the_hash_of_the_secret() -> None:
    assert marker("github", "x") == f"[REDACTED:github:{hashlib.sha256(b'x').hexdigest()[:8]}]"
    assert len(marker("a", "\ud800")) == len("[REDACTED:a:12345678]")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": WORD}, {"password": PASSWORD}),
        ({"password": 7, "token": None, "secret": True}, {"password": 7, "token": None, "secret": True}),
        ({"note": WORD}, {"note": WORD}),
        ({"note": f"it is {TOKEN}."}, {"note": f"it is {GITHUB}."}),
        ({TOKEN: 1, 2: WORD}, {GITHUB: 1, 2: WORD}),
        # pairs and flags
        (["password", WORD], ["password", PASSWORD]),
        (["password", [WORD]], ["password", [PASSWORD]]),
        ([WORD, "password"], [WORD, "password"]),
        ([7, WORD], [7, WORD]),
        (["colour", WORD], ["colour", WORD]),
        (["the password", WORD], ["the password", WORD]),
        ({"password": ["9", WORD]}, {"password": ["9", PASSWORD]}),
        (["password", WORD, "more"], ["password", WORD, "more"]),
        ([["password", WORD], ["colour", WORD]], [["password", PASSWORD], ["colour", WORD]]),
        (["psql", "--password", WORD, WORD], ["psql", "--password", PASSWORD, WORD]),
        (["--password", 7, WORD], ["--password", 7, WORD]),
        (["x", "-password", WORD], ["x", "-password", PASSWORD]),
        ({"password": [WORD, "--colour", WORD]}, {"password": [PASSWORD, "--colour", WORD]}),
        # records of one name and its value
        ({"name": "DB_PASSWORD", "value": WORD, "note": WORD}, {"name": "DB_PASSWORD", "value": PASSWORD, "note": WORD}),
        ({"name": 7, "value": WORD}, {"name": 7, "value": WORD}),
        ({"name": "colour", "value": WORD}, {"name": "colour", "value": WORD}),
        ({"password": {"value": WORD, "note": WORD}}, {"password": {"value": PASSWORD, "note": WORD}}),
        ({"password": {"name": "colour", "value": WORD}}, {"password": {"name": "colour", "value": WORD}}),
        # cookies have names of their own
        ({"cookies": {"sid": WORD}}, {"cookies": {"sid": COOKIE}}),
        ({"Cookie": {"sid": WORD}}, {"Cookie": {"sid": COOKIE}}),
        ({"cookies": [{"name": "sid", "value": WORD, "path": WORD}]}, {"cookies": [{"name": "sid", "value": COOKIE, "path": WORD}]}),
        ({"biscuits": {"sid": WORD}}, {"biscuits": {"sid": WORD}}),
    ],
)  # fmt: skip
def test_a_name_and_its_value_are_seen_together(value: Any, expected: Any) -> None:
    assert redact_value(value) == expected
    assert redact_value(expected) == expected


@pytest.mark.parametrize(
    "name",
    ["name", "key", "Name", "Key", "variable", "header", "option", "flag", "label", "parameterKey", "ParameterKey"],
)
@pytest.mark.parametrize(
    "value", ["value", "Value", "val", "secret", "default", "argument", "parameterValue", "ParameterValue"]
)
def test_a_record_names_its_value_in_many_ways(name: str, value: str) -> None:
    assert redact_value({name: "DB_PASSWORD", value: WORD}) == {name: "DB_PASSWORD", value: PASSWORD}


@pytest.mark.parametrize(("before", "after"), [("oldString", "newString"), ("old_string", "new_string")])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TOKEN, WORD, marker("github", WORD)),
        (f' "{TOKEN}"\n', f" '{WORD}'\n", f" '{marker('github', WORD)}'\n"),
        (TOKEN, f"X{WORD}", marker("github", f"X{WORD}")),
        (f"key {TOKEN}", WORD, WORD),
        (TOKEN, "short1", "short1"),
        (TOKEN, "correct horse 9", "correct horse 9"),
        (TOKEN, "os.environ[NAME1]", "os.environ[NAME1]"),
        ("nothing", WORD, WORD),
        (7, WORD, WORD),
        (TOKEN, None, None),
    ],
)
def test_what_an_edit_puts_in_the_place_of_a_secret_is_one(
    before: str, after: str, old: Any, new: Any, expected: Any
) -> None:
    with known.noting() as noted:
        redacted = redact_value({before: old, after: new})
    assert redacted[after] == expected
    assert any(value.endswith(WORD) and kind == "github" for value, kind in noted.items()) is (expected != new)
    assert redact_value({before: old}) == {before: redacted[before]}


@pytest.mark.parametrize(
    ("around", "kind"),
    [
        (lambda inner: [inner], "github"),
        (lambda inner: {"a": inner}, "github"),
        (lambda inner: ["password", inner], "password"),
    ],
)
def test_what_is_nested_too_deep_becomes_its_text(around: Callable[[Any], Any], kind: str) -> None:
    value: Any = [TOKEN, "é"]
    for _ in range(redact.DEEPEST - 1):
        value = around(value)
    assert f"['{marker(kind, TOKEN)}', 'é']" in str(redact_value(value))
    assert f"""'["{GITHUB}", "é"]'""" in str(redact_value(around(value)))
    for _ in range(100_000):
        value = around(value)
    assert "'[nested too deep to be shown]'" in str(redact_value(value))


def test_the_fingerprint_changes_with_what_the_user_configured(configured: None) -> None:
    assert redact.fingerprint() == f"{redact.VERSION} {known.fingerprint()}"
    known.configure([], [])
    assert redact.fingerprint() == redact.VERSION


def test_a_secret_completed_by_another_redaction_is_redacted_too() -> None:
    assert redact.redact(f"{TOKEN} and {TOKEN}: {TOKEN}") == f"{GITHUB} and {GITHUB}: {GITHUB}"
