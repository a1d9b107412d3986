"""Values that are known to be secrets: which are, for how long, and where they are found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon.redact import known

LONG = "abcdefghijklmnop"


def found(text: str) -> list[tuple[int, int, str]]:
    return list(known.find(text))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("abcdefg1", True),
        ("äbcdefg1", True),
        ("abcdef1", False),  # too short
        ("abcdefgh", False),  # a word
        ("12345678", False),  # a number
        ("1234567!", False),
        ("abcde fg1", True),
        ("abcd\nefg1", False),
        ("abcdefgh!x", True),
        ("abcdefgh!", False),  # with a symbol it needs ten characters
        ("!@#$%^&*+?~", False),
        ("abcdefgXhij", False),
        (LONG, True),
        (LONG[:-1], False),  # a word needs sixteen
        ("correct horse battery", False),
    ],
)
def test_a_value_is_known_by_itself_if_no_ordinary_text_has_it(value: str, expected: bool) -> None:
    assert known.is_distinct(value) is expected


@pytest.mark.parametrize("symbol", "!@#$%^&*+?~")
def test_each_of_these_symbols_tells_a_password_from_a_word(symbol: str) -> None:
    assert known.is_distinct(f"abcdefgh{symbol}x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hunter2x", [(0, 8)]),
        ("a hunter2x, hunter2x.", [(2, 10), (12, 20)]),
        ("-hunter2x_", [(1, 9)]),
        ("ahunter2x", []),
        ("hunter2x9", []),
        ("hunter2xhunter2x hunter2x", [(17, 25)]),
        ("hunter2x " * 4, [(0, 8), (9, 17), (18, 26), (27, 35)]),
        (f"x{LONG}y", [(1, 17)]),
        (f"{LONG}{LONG}", [(0, 16), (16, 32)]),
    ],
)
def test_a_short_value_is_found_as_a_word_and_a_long_one_everywhere(text: str, expected: list[tuple[int, int]]) -> None:
    with known.only({"hunter2x": "password", LONG: "secret"}):
        assert sorted(found(text)) == [
            (*place, "password" if place[1] - place[0] == 8 else "secret") for place in expected
        ]


def test_values_are_known_only_as_long_as_their_work_lasts() -> None:
    known.learn({"outside1": "a"})
    with known.only({"inside12": "b"}):
        assert found("outside1 inside12") == [(9, 17, "b")]
        known.learn({"inside12": "other", "learned3": "c"})
        assert sorted(found("inside12 learned3")) == [(0, 8, "b"), (9, 17, "c")]  # the kind that was known first stays
    with pytest.raises(ValueError, match="x"), known.only({}):
        raise ValueError("x")
    assert found("outside1 inside12") == [(0, 8, "a")]


def test_only_the_latest_4096_values_are_kept() -> None:
    known.learn({f"value{number:05d}": "old" for number in range(4096)})
    assert found("value00000 value04095") == [(0, 10, "old"), (11, 21, "old")]
    known.learn({"value99999": "new"})
    assert found("value99999 value04094 value04095") == [(0, 10, "new"), (11, 21, "old")]


def test_what_is_recognised_is_noted_while_somebody_asks_for_it() -> None:
    known.note([("unheard12", "a")])
    lines = ["A1b2" * 6, "C3d4" * 6 + "x", "E5f6" * 6 + "y ", "Key: " + "G7h8" * 6]  # the first one is too short
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    with known.noting() as noted:
        known.note([("noted123", "b"), ("ordinary", "c"), (key, "private-key")])
    known.note([("too late1", "d")])
    assert noted == {"noted123": "b"} | dict.fromkeys([line.strip() for line in lines[1:]], "private-key")
    with known.noting() as again:
        pass
    assert again == {}


# -- what the user configured ----------------------------------------------------------------------------------------


@pytest.fixture
def _nothing_configured() -> Iterator[None]:
    yield
    known.configure([], [])


@pytest.mark.usefixtures("_nothing_configured")
@pytest.mark.parametrize(
    ("extra", "text", "expected"),
    [
        ([r"acme-\d+"], "acme-1, acme-22", [(0, 6), (8, 15)]),
        ([r"acme-(?P<secret>\d+)"], "acme-1, acme-22", [(5, 6), (13, 15)]),
        ([r"acme-(?P<secret>\d*)"], "acme-, acme-22", [(12, 14)]),
        ([r"(acme)-\d"], "acme-1", [(0, 6)]),
        (["a", "b"], "ba", [(1, 2), (0, 1)]),
        ([], "acme-1", []),
    ],
)
def test_what_the_user_wants_hidden_is_found(extra: list[str], text: str, expected: list[tuple[int, int]]) -> None:
    known.configure(extra, [])
    assert found(text) == [(start, end, "extra") for start, end in expected]


@pytest.mark.usefixtures("_nothing_configured")
@pytest.mark.parametrize(("extra", "allow", "expected"), [([], [], False), ([], ["a"], False), (["a"], [], True)])
def test_patterns_to_hide_are_known_of(extra: list[str], allow: list[str], expected: bool) -> None:
    known.configure(extra, allow)
    assert known.has_patterns() is expected


@pytest.mark.usefixtures("_nothing_configured")
def test_what_the_user_allows_is_no_secret_if_a_pattern_is_all_of_it() -> None:
    assert not known.is_allowed("example1")
    known.configure([], ["no", "example.", "x+"])
    assert [known.is_allowed(secret) for secret in ("example1", "example12", "an example1", "xxx", "")] == [
        True, False, False, True, False,
    ]  # fmt: skip


@pytest.mark.usefixtures("_nothing_configured")
def test_a_pattern_that_takes_too_long_hides_everything_and_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_PATIENCE_S", 0.01)
    known.configure([r"(x+x+)+y"], [r"(x|xx)+"])
    assert found("x" * 5000) == [(0, 5000, "extra")]
    assert not known.is_allowed("x" * 60 + "y")


@pytest.mark.usefixtures("_nothing_configured")
def test_the_fingerprint_is_of_all_patterns_and_of_what_they_are_for() -> None:
    seen = []
    for extra, allow in (
        ([], []),
        (["a"], []),
        ([], ["a"]),
        (["a", "b"], []),
        (["a"], ["b"]),
        (["ab"], []),
        (["\ud800"], []),
    ):
        known.configure(extra, allow)
        seen.append(known.fingerprint())
    assert seen[0] == ""
    assert len(set(seen)) == len(seen)
    assert {len(one) for one in seen[1:]} == {8}
