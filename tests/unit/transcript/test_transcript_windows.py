"""The text by which a message is found through its neighbours: what was said, in order, within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Kind, Section
from daemon.transcript.chunks import MOST, day, spoken_text, window

NOON = 1_795_262_400_000  # 2026-11-21, 12:00 UTC


def spoken(*texts: tuple[Kind, str]) -> list[Section]:
    return [Section(f"p{n}", kind, text) for n, (kind, text) in enumerate(texts)]


@pytest.mark.parametrize("kind", [Kind.PROMPT, Kind.ANSWER, Kind.REASONING, Kind.TASK, Kind.TITLE])
def test_what_was_said_counts(kind: Kind) -> None:
    assert spoken_text(spoken((kind, " the words \n"))) == "the words"


@pytest.mark.parametrize("kind", [Kind.TOOL_INPUT, Kind.TOOL_OUTPUT])
def test_what_tools_took_and_gave_does_not(kind: Kind) -> None:
    assert (
        spoken_text(spoken((kind, "a dump"), (Kind.ANSWER, "one"), (kind, "more"), (Kind.ANSWER, "two"))) == "one\ntwo"
    )


def test_a_long_message_keeps_its_head_and_its_tail() -> None:
    kept = spoken_text(spoken((Kind.PROMPT, "begin " + "x" * 10_000), (Kind.PROMPT, "y" * 300 + " end")))
    assert kept.startswith("begin x")
    assert kept.endswith("y end")
    assert len(kept) == MOST + 1


def test_title_and_day_stand_before_the_messages_in_their_order() -> None:
    assert window(["first", "", "own"], "Fix the importer", NOON) == (
        "Fix the importer\n2026 november 21 2026-11-21\nfirst\nown"
    )


@pytest.mark.parametrize("texts", [[], [""], ["", "", ""]])
def test_where_nothing_was_said_there_is_no_window(texts: list[str]) -> None:
    assert window(texts, "A title", NOON) == ""


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        (0, "1970 january 1 1970-01-01"),
        (NOON + 12 * 3_600_000 - 1, "2026 november 21 2026-11-21"),
        (NOON + 12 * 3_600_000, "2026 november 22 2026-11-22"),
        (10**18, ""),
        (-(10**18), ""),
    ],
)
def test_the_day_is_spelt_out_in_utc(created: int, expected: str) -> None:
    assert day(created) == expected


@given(st.lists(st.sampled_from(list(Kind)).flatmap(lambda kind: st.tuples(st.just(kind), st.text())), max_size=5))
def test_one_message_never_takes_more_than_its_share(texts: list[tuple[Kind, str]]) -> None:
    assert len(spoken_text(spoken(*texts))) <= MOST + 1
