"""What makes one text a better answer to words than another."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from daemon.index import PROSE, Entry, Filters, Match
from daemon.index.lexical import Lexical, ranking
from daemon.model import Document, Kind, Section


def _entry(message_id: str, kind: Kind, text: str, window: str = "") -> Entry:
    document = Document(message_id, "ses", (Section(f"prt_{message_id}", kind, text),))
    return Entry(document, "user", 0, 0, "", "prj", "/", window)


@pytest.fixture
def index() -> Iterator[Lexical]:
    made = Lexical()
    yield made
    made.close()


OFTEN = "the quay " * 4 + "and many other things besides that were told us all the long way home"
ONCE = "a quay of stone"
PRINTED = [_entry(f"out{number}", Kind.TOOL_OUTPUT, "printed " * 20) for number in range(60)]


@pytest.mark.parametrize("others", [[], PRINTED], ids=["alone", "among many texts of another kind"])
def test_text_length_is_normalised_within_its_own_kind(index: Lexical, others: list[Entry]):
    index.replace([_entry("once", Kind.PROMPT, ONCE), _entry("often", Kind.PROMPT, OFTEN), *others])
    assert [match.message_id for match in index.search("quay", Filters(), 5)] == ["often", "once"]


@pytest.mark.parametrize("others", [[], PRINTED], ids=["alone", "among many texts without a window"])
def test_how_long_a_window_is_taken_for_does_not_hang_on_what_has_none(index: Lexical, others: list[Entry]):
    windows = [_entry("once", Kind.PROMPT, "x", ONCE), _entry("often", Kind.PROMPT, "x", OFTEN)]
    index.replace([*windows, *others])
    assert [match.message_id for match in index.windows("quay", Filters(), 5)] == ["often", "once"]


WORDS = [
    "quay",
    "stone",
    "ship",
    "crane",
    "sea wall",
    "SeaWall",
    "rate_limit",
    "rateLimit",
    "the",
    "of",
    "harbour-master",
]


def test_ranking_does_not_depend_on_how_phrases_are_looked_up(index: Lexical, monkeypatch: pytest.MonkeyPatch):
    drawn = Random(3)
    texts = [" ".join(drawn.choices(WORDS, k=drawn.randint(2, 9))) for _ in range(400)]
    kinds = (Kind.PROMPT, Kind.REASONING, Kind.TOOL_OUTPUT)
    index.replace([_entry(f"m{number}", kinds[number % 3], text, text) for number, text in enumerate(texts)])
    asked = [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 4))) for _ in range(60)]
    asked += [f'"{query}"' for query in asked[:20]]

    def found(few: int) -> list[tuple[list[Match], list[Match], list[Match]]]:
        monkeypatch.setattr(ranking, "_FEW", few)
        ways = (index.search, index.windows, index.fuzzy)
        return [tuple(way(query, Filters(), 20) for way in ways) for query in asked]  # type: ignore[misc]

    everywhere, among = found(10**9), found(0)
    assert sum(len(one) for some in everywhere for one in some) > 1000
    assert among == everywhere


@pytest.mark.parametrize("least", [0, 1, 3, 5, 20, 40])
def test_enough_conversation_is_returned_despite_much_program_output(index: Lexical, least: int):
    said = [_entry(f"said{n}", (Kind.ANSWER, Kind.REASONING)[n % 2], f"quay {'far ' * (n + 9)}") for n in range(30)]
    index.replace([*PRINTED[:20], *said, *(_entry(f"in{n}", Kind.TOOL_INPUT, "quay") for n in range(30))])
    best = index.search("quay", Filters(), 10)
    assert len(best) == 10
    apart = index.search("quay", Filters(kinds=tuple(sorted(PROSE))), least)
    both = index.search("quay", Filters(), 10, least_prose=least)
    assert both[:10] == best
    assert both[10:] == [match for match in apart if match not in best]


def test_what_fills_a_field_is_found_by_nothing(index: Lexical):
    index.replace(PRINTED[:1])
    assert index.search("~", Filters(), 5) == []
    assert index.windows("~ ~", Filters(), 5) == []
    assert index.fuzzy("~~~~", Filters(), 5) == []
    assert index.regex("~+", Filters(), 5, 1.0) == ([], True)
    assert index.literal("~", Filters(), 5) == []
    assert index.frequencies("~") == (1, {})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("which database did we choose", "in the end we chose the small one"),
        ("where did the build break", "it broke while linking"),
        ("who was taught", "nobody will teach it"),
        ("what is in the indices", "one index of words"),
    ],
)
def test_irregular_forms_lead_to_one_another(index: Lexical, asked: str, said: str):
    index.replace([_entry("other", Kind.PROMPT, "nothing of the kind"), _entry("said", Kind.PROMPT, said, said)])
    assert [match.message_id for match in index.search(asked, Filters(), 5)] == ["said"]
    assert [match.message_id for match in index.windows(asked, Filters(), 5)] == ["said"]


def test_the_form_that_was_asked_for_stands_first(index: Lexical):
    index.replace([_entry("plain", Kind.PROMPT, "they choose it"), _entry("past", Kind.PROMPT, "they chose it")])
    assert index.search("chose", Filters(), 5)[0].message_id == "past"
    assert index.search("choose", Filters(), 5)[0].message_id == "plain"


@pytest.mark.parametrize(("asked", "other"), [("left", "leave"), ("bit", "bite"), ("led", "lead"), ("saw", "saws")])
def test_a_form_that_is_a_word_of_its_own_stays_itself(index: Lexical, asked: str, other: str):
    index.replace([_entry("m", Kind.PROMPT, f"to {other} it")])
    assert index.search(asked, Filters(), 5) == []


def test_pronouns_of_a_question_lead_nowhere(index: Lexical):
    index.replace(
        [_entry("pronoun", Kind.PROMPT, "he told her himself"), _entry("m", Kind.PROMPT, "the quay was sold")]
    )
    assert [match.message_id for match in index.search("did he sell her the quay himself", Filters(), 5)] == ["m"]
    assert [match.message_id for match in index.search("himself", Filters(), 5)] == ["pronoun"]
