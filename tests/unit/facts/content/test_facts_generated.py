"""What programs wrote: told after what was worked on, and the many files of a build as one folder."""

from __future__ import annotations

import pytest

from daemon.files import Grade
from daemon.model import Operation
from daemon.reconstitute.facts.content import is_build_output
from daemon.reconstitute.facts.session.file_changes import by_folder
from daemon.reconstitute.facts.session_values import FileChange
from tests.unit.facts.folder_facts import START, TARGET, call, file, revision, turn

BUILD = call("npm run build", message_id="msg_2")


def change(name: str, what: str = "added", seen_in: str = "msg_2", **fields: object) -> FileChange:
    return FileChange(f"{TARGET}/{name}", what, 1, 0, seen_in=seen_in, **fields)


def told(name: str, what: str = "changed") -> FileChange:
    return change(name, what, "")


def folder(name: str, files: int, command: str = "npm run build") -> FileChange:
    return FileChange(f"{TARGET}/{name}", "written", files=files, command=command)


OUT = [change("out/a"), change("out/b"), change("out/css/c")]
TAKEN_BACK = [change(f"out/{name}", undone=True) for name in "abc"]


@pytest.mark.parametrize(
    ("changes", "calls", "expected"),
    [
        ([*OUT, told("src/z")], [BUILD], [told("src/z"), folder("out", 3)]),
        ([*OUT[:2], told("src/z")], [BUILD], [told("src/z"), *OUT[:2]]),
        ([told("out/a"), *OUT[1:]], [BUILD], [told("out/a"), *OUT[1:]]),
        # What ran is only named where nothing else did.
        (OUT, [], [folder("out", 3, "")]),
        (OUT, [BUILD, call("make", message_id="msg_2")], [folder("out", 3, "")]),
        (OUT, [BUILD, call("make", message_id="msg_9")], [folder("out", 3)]),
        # Files at the top, or elsewhere, are in no folder of the session's; what was taken back is told by itself.
        ([change("a"), change("b"), change("c")], [BUILD], [change("a"), change("b"), change("c")]),
        (TAKEN_BACK, [BUILD], TAKEN_BACK),
        # Lines do not tell of a deletion or a move: they come first.
        ([told("a"), told("b", "deleted"), told("c", "moved")], [], [told("b", "deleted"), told("c", "moved"), told("a")]),
    ],
)  # fmt: skip
def test_the_many_files_that_a_program_wrote_in_a_folder_are_one(changes, calls, expected) -> None:
    assert list(by_folder(changes, [turn("Build it.", *calls)], TARGET)) == expected


def seen(name: str, *contents: str | None, operation: Operation = Operation.SNAPSHOT, **fields: object):
    """A file that trees showed to have come and changed."""
    made = [
        revision(
            one, operation=operation, tool="snapshot", time=START + number, appeared=number == 0, deleted=one is None
        )
        for number, one in enumerate(contents)
    ]
    return file(name, None, *made, **fields)


A, B, C = (seen(f"out/{name}", "1", "2") for name in "abc")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([A, B, C], True),
        ([A, B], False),
        ([A, B, seen("out/c", "1", None)], False),
        ([A, B, C, seen("out/d", "1", None)], True),
        ([A, B, C, file("out/d", "x")], False),
        ([A, B, C, file("out/d", None, revision("x"), revision("y", operation=Operation.SNAPSHOT))], False),
        ([A, B, C, file("out/d", None, revision("x", operation=Operation.SNAPSHOT))], False),  # it was there before
        ([A, B, C, file("out/d", None, revision(None, operation=Operation.UNCLEAR, grade=Grade.LOST))], False),
    ],
)
def test_a_folder_that_programs_alone_wrote_is_told_by_its_trees(files, *, expected: bool) -> None:
    assert is_build_output(files) is expected
