"""What the agent undid in a later turn, as the contents of files tell."""

from __future__ import annotations

import pytest

from daemon.files import Disk, Grade
from daemon.model import Operation
from daemon.reconstitute.facts import setbacks
from daemon.reconstitute.facts.values import SetbackKind
from daemon.reconstitute.recover import State
from tests.unit.facts.folder_facts import START, TARGET, file, revision, session, turn

PROMPTS = ("Write it.", "Add a phone number.", "No, as it was, please.", "Now in blue.")
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
        (one.text, one.outcome, one.paths) for one in setbacks.undone([session(*turns)], [file(name, None, *revisions)])
    ]


UNDONE = [("`a` is again as before “Add a phone number.”", "undone after “No, as it was, please.”", (f"{TARGET}/a",))]


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        ([at(0, "x"), at(1, "y"), at(2, "x")], UNDONE),
        ([at(0, "x"), at(1, "y"), doubt(2), at(2, "x", Operation.SNAPSHOT)], UNDONE),
        ([at(0, "x"), at(1, "y"), at(2, "x"), at(2, "x", Operation.READ, part_id="prt9")], UNDONE),
        ([at(0, "x"), at(1, "y"), at(2, "z"), at(3, "x")],
         [(UNDONE[0][0], "undone after “Now in blue.”", UNDONE[0][2])]),
        # It is not so any more, or never was: what it was in the middle of the turn came back.
        ([at(0, "x"), at(1, "y"), at(2, "x"), at(3, "z")], []),
        ([at(0, "x"), at(1, "y"), at(2, "x"), at(3, "y")],
         [("`a` is again as before “No, as it was, please.”", "undone after “Now in blue.”", UNDONE[0][2])]),
        ([at(0, "w"), at(1, "x"), at(1, "y", part_id="prt9"), at(2, "x")], []),
        ([at(0, "w"), doubt(0), at(1, "x"), at(1, "y", part_id="prt9"), at(2, "x")], []),
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


@pytest.mark.parametrize("fields", [{"state": State.STALE}, {"state": State.PARTIAL}, {"disk": Disk.DIFFERS}])
def test_a_file_that_may_be_otherwise_now_is_not_told(fields):
    assert setbacks.undone([session(*TURNS)], [file("a", None, at(0, "x"), at(1, "y"), at(2, "x"), **fields)]) == ()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "`0` is again as before “Add a phone number.”"),
        (2, "`0`, `1` are again as before “Add a phone number.”"),
        (4, "4 files are again as before “Add a phone number.”"),
    ],
)
def test_the_files_that_are_as_before_are_named_not_the_turn_called_undone(count, text):
    states = at(0, "x"), at(1, "y"), at(2, "x")
    kept = file("kept", None, at(0, "x"), at(1, "y"))
    (found,) = setbacks.undone([session(*TURNS)], [*(file(str(n), None, *states) for n in range(count)), kept])
    assert (found.kind, found.text) == (SetbackKind.UNDONE, text)
    assert found.paths == tuple(f"{TARGET}/{n}" for n in range(count))
    assert (found.citation.message_id, found.resolved.message_id) == ("p1", "p2")
