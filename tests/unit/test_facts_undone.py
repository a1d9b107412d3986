"""What a later turn undid by hand, as the contents of files tell."""

from __future__ import annotations

import pytest
from folder_facts import START, TARGET, file, revision, session, turn

from daemon.files import Grade
from daemon.model import Operation
from daemon.reconstitute.facts import undone
from daemon.reconstitute.facts.values import SetbackKind

PROMPTS = ("Write it.", "Add a phone number.", "No, as it was, please.")
TURNS = [
    turn(text, prompt_id=f"p{n}", message_ids=(f"p{n}", f"m{n}"), time=START + n) for n, text in enumerate(PROMPTS)
]


def at(number, content, operation=Operation.EDIT, **fields):
    given = {"message_id": f"m{number}", "part_id": f"prt{number}", "time": START + number, "operation": operation}
    return revision(content, **(given | fields))


def doubt(number):
    return at(number, None, Operation.UNCLEAR, grade=Grade.STALE)


def _found(*revisions, turns=TURNS, name="a"):
    return [
        (one.text, one.outcome, one.paths) for one in undone.find([session(*turns)], [file(name, None, *revisions)])
    ]


UNDONE = [("Add a phone number.", "undone after “No, as it was, please.”", (f"{TARGET}/a",))]


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        ([at(0, "x"), at(1, "y"), at(2, "x")], UNDONE),
        ([at(0, "x"), at(1, "y"), doubt(2), at(2, "x", Operation.SNAPSHOT)], UNDONE),
        # Something else may have done it, or it is not surely the same.
        ([at(0, "x"), at(1, "y"), at(2, "z")], []),
        ([at(0, "x"), at(1, "y"), at(2, "x", grade=Grade.STALE)], []),
        ([at(0, "x", grade=Grade.STALE), at(1, "y"), at(2, "x")], []),
        ([at(0, "x"), doubt(0), at(1, "y"), at(2, "x")], []),
        ([at(0, "x"), at(1, "y"), doubt(1), doubt(2), at(2, "x", Operation.SNAPSHOT)], []),
        ([at(0, "x"), at(1, "y"), at(2, "x", Operation.READ)], []),
        ([at(0, "x"), at(1, "y"), at(1, "x", part_id="prt9")], []),
        ([at(0, "x"), at(1, "y"), at(2, "x", Operation.SNAPSHOT, tool="revert")], []),
    ],
)  # fmt: skip
def test_only_a_later_turn_that_surely_brought_the_content_back_is_told(revisions, expected):
    assert _found(*revisions) == expected


def test_files_of_the_same_two_turns_are_one_entry_that_cites_both():
    states = at(0, "x"), at(1, "y"), at(2, "x")
    (found,) = undone.find([session(*TURNS)], [file("a", None, *states), file("b", None, *states)])
    assert (found.kind, found.paths) == (SetbackKind.UNDONE, (f"{TARGET}/a", f"{TARGET}/b"))
    assert (found.citation.message_id, found.resolved.message_id) == ("p1", "p2")
