"""Where the secrets of a text begin and end, of what kind they are, and whether the whole secret was seen."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest

from daemon.redact import detection, known
from daemon.redact.detection import Span

KEY = "ghp_" + "a8Kd0Zq3Lw7Rt5Yb2Nc" * 2
AWS = "AKIA" + "IOSFODNN7EXAMQLE"
CUT = "ghp_" + "a1B2" * 5
"""A key whose end is missing."""


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """Whatever other tests learnt is no part of these."""
    with known.only({}):
        yield


def spans(text: str, **options: bool) -> list[tuple[str, str, str, bool]]:
    """What stands in the text, its kind, the secret, and whether all of it was seen."""
    return [(text[s.start : s.end], s.kind, s.secret, s.is_sure) for s in detection.find(text, **options)]


def test_secrets_are_found_in_order_with_their_kinds() -> None:
    text = f"first {AWS}, then {KEY}; password: hunter2pass"
    assert spans(text) == [
        (AWS, "aws", AWS, True),
        (KEY, "github", KEY, True),
        ("hunter2pass", "password", "hunter2pass", True),
    ]


def test_a_secret_in_base64_is_found_by_deep_looks_only() -> None:
    encoded = b64encode(f"export DB_PASSWORD=hunter2pass KEY={KEY}".encode()).decode()
    text = f"data {encoded} end"
    assert spans(text) == [(encoded, "encoded", encoded, True)]
    assert spans(text, deep=False) == []


def test_a_phrase_a_command_and_a_known_value_hide_only_the_secret() -> None:
    phrase = "correct horse battery"
    assert spans(f'password: "{phrase}"\n') == [(phrase, "password", phrase, True)]
    assert spans("mysql -u root -pa1b2c3d4 db") == [("a1b2c3d4", "password", "a1b2c3d4", True)]
    with known.only({"hunter2x9y": "token"}):
        assert spans("say hunter2x9y now") == [("hunter2x9y", "token", "hunter2x9y", True)]


@pytest.fixture
def _nothing_configured() -> Iterator[None]:
    yield
    known.configure([], [])


@pytest.mark.usefixtures("_nothing_configured")
def test_an_allowed_value_is_left() -> None:
    known.configure([], [AWS])
    assert spans(f"{AWS} {KEY}") == [(KEY, "github", KEY, True)]


# -- views -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", ["", "\x1b[31mred\x1b[0m "])
def test_a_key_is_found_across_line_breaks_and_colours(lead: str) -> None:
    wrapped = f"{KEY[:30]}\n{KEY[30:]}"
    coloured = f"{KEY[:10]}\x1b[31m{KEY[10:]}"
    assert spans(f"{lead}first {AWS} then {wrapped}\nend") == [(AWS, "aws", AWS, True), (wrapped, "github", KEY, True)]
    assert spans(f"{lead}first {coloured} end") == [(coloured, "github", KEY, True)]


@pytest.mark.usefixtures("_nothing_configured")
@pytest.mark.parametrize(
    ("extra", "text", "secret", "kind"),
    [
        ([], "> password: |\n>   hunter2hunter9\n", "hunter2hunter9", "password"),  # words, and no long run
        ([], f"see/build/directory/of/release/{KEY[:2]}\n{KEY[2:]}", f"{KEY[:2]}\n{KEY[2:]}", "github"),  # no word
        ([r"(?m)^acme\n\d+$"], "> acme\n> 12", "acme\n> 12", "extra"),  # neither
    ],
)
def test_a_secret_that_only_whole_lines_show_is_found(extra: list[str], text: str, secret: str, kind: str) -> None:
    known.configure(extra, [])
    assert [found[:2] for found in spans(text)] == [(secret, kind)]


def test_a_known_value_is_found_across_a_line_break() -> None:
    value = "q7Rk/2mZp9T4xc8nLd3V5bHs6Wg1yFq0oJ4u"
    with known.only({value: "token"}):
        assert spans(f"> {value[:30]}\n> {value[30:]}") == [(f"{value[:30]}\n> {value[30:]}", "token", value, True)]


def test_places_are_counted_in_characters() -> None:
    text = "ä𝄞 password='hunter2pass' €, DB_PASSWORD='hunter3pass'"
    assert [found[0] for found in spans(text)] == ["hunter2pass", "hunter3pass"]


def test_two_keys_on_two_lines_are_both_hidden() -> None:
    """As one broken line they would look like one key and the rest of a word."""
    two = f"{KEY}\n{KEY.replace('a', 'b')}"
    assert spans(two) == [(two, "github", two, True)]


def test_what_was_cut_off_beneath_colours_is_not_sure() -> None:
    coloured = f"{CUT[:10]}\x1b[31m{CUT[10:]}"
    assert spans(f"first {coloured}... end") == [(coloured, "github", CUT, False)]


def test_base64_is_decoded_beneath_colours_and_line_breaks() -> None:
    encoded = b64encode(f"export DB_PASSWORD=hunter2pass KEY={KEY}".encode()).decode()
    for shown in (f"{encoded[:40]}\x1b[31m{encoded[40:]}", f"{encoded[:40]}\n{encoded[40:]}"):
        assert [found[:2] for found in spans(f"data {shown}\nend")] == [(shown, "encoded")]
        assert spans(f"data {shown}\nend", deep=False) == []


# -- spans that overlap ----------------------------------------------------------------------------------------------


TEN = "0123456789"
NOTE = "[REDACTED:aws:01234567]"
Named = tuple[int, int, str, str, bool]


def a(start: int, end: int, secret: str = "", *, is_sure: bool = True) -> Named:
    return start, end, "a", secret or TEN[start:end], is_sure


def b(start: int, end: int, secret: str = "", *, is_sure: bool = True) -> Named:
    return start, end, "b", secret or TEN[start:end], is_sure


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([a(0, 3), b(3, 6), a(7, 9)], [a(0, 3), b(3, 6), a(7, 9)]),
        ([b(3, 6), a(0, 3)], [a(0, 3), b(3, 6)]),
        ([a(0, 3), b(2, 5)], [a(0, 5)]),
        ([b(2, 5), a(0, 3)], [b(0, 5)]),  # the kind of the first that was found
        ([a(0, 5, "unescaped"), b(0, 5)], [a(0, 5, "unescaped")]),
        ([a(0, 5, "unescaped"), b(2, 4)], [a(0, 5, "unescaped")]),
        ([b(2, 4, "unescaped"), a(0, 5)], [b(0, 5)]),
        ([a(1, 5, "unescaped"), b(1, 6)], [a(1, 6)]),
        ([a(4, 7), a(2, 5), b(0, 3)], [a(0, 7)]),
        ([b(2, 5), a(4, 7), a(0, 3)], [b(0, 7)]),
        ([a(0, 3), b(2, 5, is_sure=False)], [a(0, 5, is_sure=False)]),
        ([a(0, 3, is_sure=False), b(2, 5)], [a(0, 5, is_sure=False)]),
        ([a(0, 3, is_sure=False), b(2, 5, is_sure=False)], [a(0, 5, is_sure=False)]),
    ],
)
def test_spans_that_overlap_become_one(before: list[Named], after: list[Named]) -> None:
    found = detection._apart(TEN, [Span(*named) for named in before])
    assert found == [Span(*named) for named in after]


@pytest.mark.parametrize(
    ("start", "end", "is_kept"),
    [
        (0, 3, True),
        (0, 4, False),
        (4, 8, False),
        (3, 25, False),
        (3, 26, True),
        (0, 29, True),
        (25, 29, False),
        (26, 29, True),
    ],
)
def test_no_span_begins_or_ends_inside_a_marker(start: int, end: int, is_kept: bool) -> None:
    """The marker stands from 3 to 26."""
    text = f"key{NOTE}end more"
    span, behind = Span(start, end, "a", "x"), Span(30, 34, "b", "more")
    assert detection._apart(text, [span, behind]) == ([span, behind] if is_kept else [behind])


# -- keys that were cut off ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (CUT, CUT),
        (f"{CUT}  \n", CUT),
        (f"key {CUT}... more", CUT),
        (f"key {CUT}… more", CUT),
        (f"... {CUT}... more... and more", CUT),
        (f"key {CUT}... [more", CUT),
        (f"key {CUT}... (more", CUT),
        (f"key ({CUT}...)", CUT),
        (f"[{CUT}…]", CUT),
        (f"key {CUT}[12 lines truncated] more", CUT),
        (f"key {CUT} (12 lines omitted) more", CUT),
        (f"key {CUT}\n[3 left out] more", CUT),
        (f"key {CUT} truncated more", CUT),
        (f"[x] {CUT} [12 truncated]", CUT),
        (f"(x) {CUT} (12 truncated)", CUT),
        (f"key {CUT} [{'x' * 39}truncated more", CUT),
        (f"key {CUT} [{'x' * 40}truncated more", ""),  # the bracket belongs to something else
        (f"key {CUT} ({'x' * 39}truncated more", CUT),
        (f"key {CUT} ({'x' * 40}truncated more", ""),
        (f"{CUT} more", ""),
        (f"a... {CUT}$", ""),
        (f"x{CUT}", ""),
        (f"a.{CUT}", CUT),
        (f"notes on {CUT}.py.md", CUT),
        (f"notes on {CUT}.PY", f"{CUT}.PY"),
        (f"{'word ' * 100}{CUT}... more", CUT),
        (f"{'word ' * 100}{CUT} [cut: truncated]", CUT),
        ("ghp_" + "a1B2" * 3, ""),  # too short to be told from a word
        ("ghp_" + "abcd" * 5, ""),
    ],
)
def test_the_beginning_of_a_key_is_hidden_where_a_text_was_cut(text: str, hidden: str) -> None:
    assert spans(text) == ([(hidden, "github", hidden, False)] if hidden else [])


@pytest.mark.parametrize(
    ("prefix", "rest", "kind"),
    [
        ("sk-proj-", "a1B2c3D4e5F6g7", "openai"),
        ("sk-ant-", "a1B2c3D4e5F6g", "anthropic"),
        ("SK", "0a1b2c3d4e5f6a7b8c9d", "twilio"),
        ("SK", "0a1b2c3d4e5f6a7b8c9", ""),
    ],
)
def test_the_prefix_of_a_cut_key_tells_its_kind(prefix: str, rest: str, kind: str) -> None:
    assert [found[1:] for found in spans(prefix + rest)] == ([(kind, prefix + rest, False)] if kind else [])


@pytest.mark.usefixtures("_nothing_configured")
def test_a_cut_key_stands_beside_other_secrets_and_never_in_one() -> None:
    assert spans(f"{AWS} then {CUT}") == [(AWS, "aws", AWS, True), (CUT, "github", CUT, False)]
    assert spans(f"DB_PASSWORD={CUT}") == [(CUT, "password", CUT, True)]
    known.configure(["id:"], [])
    assert spans(f"id:{CUT}") == [("id:", "extra", "id:", True), (CUT, "github", CUT, False)]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("config.sample", False),
        ("Config.Sample", False),
        ("Release.1.2.3", False),
        ("aB1.cD2", True),
        ("aB1", False),
        ("abc1def2gh3i", True),
        ("abc1def2gh3", False),
        ("abc1def2ghij", False),
        ("abcdefghijkl", False),
        ("abCdefghijL1", True),
        ("abCdefghijk1", False),
        ("abcDefgHijKl", False),
    ],
)
def test_digits_among_letters_tell_a_key_from_a_name(rest: str, expected: bool) -> None:
    assert detection._is_random(rest) is expected
