"""What each session did to each file, all in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.files import Files
from daemon.files.line_diffs import counts
from daemon.reconstitute.facts.session import file_changes
from daemon.reconstitute.facts.session_values import FileChange
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, read, recorded

SHOP = "/home/dev/shop"
Told = tuple[str, str, int | None, int | None, bool]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        made.session("ses_a", SHOP)
        made.session("ses_b", SHOP)
        yield made


def write(house: Recorded, name: str, content: str, sid: str = "ses_a", *, existed: bool = False) -> None:
    made = call("write", filePath=f"{SHOP}/{name}", content=content, metadata={"exists": existed})
    house.say(sid, "assistant", made)


def edit(house: Recorded, name: str, old: str, new: str, sid: str = "ses_a") -> None:
    house.say(sid, "assistant", call("edit", filePath=f"{SHOP}/{name}", oldString=old, newString=new))


def shell(house: Recorded, command: str, sid: str = "ses_a", *, exit: int = 0) -> None:  # noqa: A002 - as recorded
    house.say(sid, "assistant", call("bash", command=command, metadata={"exit": exit}))


def left_over(house: Recorded, name: str, before: str, after: str) -> None:
    """The record of a prompt that a revert removed with its answer, written again with the diff of its turn."""
    house.clock += MINUTE
    diff = {"file": name, "before": before, "after": after, "additions": 1, "deletions": 1, "status": "modified"}
    path = {"cwd": SHOP, "root": SHOP}
    house.put("ses_a", f"msg_left_{house.clock}", "user", (), summary={"diffs": [diff]}, path=path)


def changes(house: Recorded) -> dict[str, list[Told]]:
    found = file_changes.by_session(Files(house.archive).histories(SHOP))
    return {sid: [_told(one) for one in made] for sid, made in found.items()}


def _told(one: FileChange) -> Told:
    return one.path.removeprefix(f"{SHOP}/"), one.kind, one.added, one.removed, one.undone


CASES: dict[str, tuple[Callable[[Recorded], object], dict[str, list[Told]]]] = {
    "a new file": (lambda h: write(h, "a", "1\n2\n"), {"ses_a": [("a", "added", 2, 0, False)]}),
    "one that was overwritten unseen": (
        lambda h: write(h, "a", "1\n", existed=True),
        {"ses_a": [("a", "changed", None, None, False)]},
    ),
    "written, then edited by another session": (
        lambda h: (write(h, "a", "1\n2\n"), edit(h, "a", "2", "3\n4", "ses_b")),
        {"ses_a": [("a", "added", 2, 0, False)], "ses_b": [("a", "changed", 2, 1, False)]},
    ),
    "edited twice, and by another between": (
        lambda h: (write(h, "a", "1\n"), edit(h, "a", "1", "1\n2", "ses_b"), edit(h, "a", "2", "2\n3")),
        {"ses_a": [("a", "added", 2, 0, False)], "ses_b": [("a", "changed", 1, 0, False)]},
    ),
    "an edit of what was never seen": (
        lambda h: edit(h, "a", "1", "2"),
        {"ses_a": [("a", "changed", None, None, False)]},
    ),
    "changed and changed back": (
        lambda h: (write(h, "a", "1\n", "ses_b"), edit(h, "a", "1", "2"), edit(h, "a", "2", "1")),
        {"ses_b": [("a", "added", 1, 0, False)]},
    ),
    "made and removed": (lambda h: (write(h, "a", "1\n"), shell(h, "rm a")), {}),
    "removed": (
        lambda h: (write(h, "a", "1\n2\n", "ses_b"), shell(h, "rm a")),
        {"ses_b": [("a", "added", 2, 0, False)], "ses_a": [("a", "deleted", 0, 2, False)]},
    ),
    "moved": (
        lambda h: (write(h, "a", "1\n2\n", "ses_b"), shell(h, "mv a b"), edit(h, "b", "2", "3")),
        {"ses_b": [("a", "added", 2, 0, False)], "ses_a": [("b", "moved", 1, 1, False)]},
    ),
    "made and moved": (
        lambda h: (write(h, "a", "1\n2\n"), shell(h, "mv a b")),
        {"ses_a": [("b", "added", 2, 0, False)]},
    ),
    "moved away and back": (
        lambda h: (write(h, "a", "1\n", "ses_b"), shell(h, "mv a b"), shell(h, "mv b a")),
        {"ses_b": [("a", "added", 1, 0, False)]},
    ),
    "moved out of the folder": (
        lambda h: (write(h, "a", "1\n", "ses_b"), shell(h, "mv a /home/dev/b")),
        {"ses_b": [("a", "added", 1, 0, False)], "ses_a": [("/home/dev/b", "moved", None, None, False)]},
    ),
    "only read": (lambda h: h.say("ses_a", "assistant", read(f"{SHOP}/a", "1")), {}),
    "in doubt only": (
        lambda h: (write(h, "a", "1\n", "ses_b"), shell(h, "./unknown-program a")),
        {"ses_b": [("a", "added", 1, 0, False)]},
    ),
    "changed from outside": (
        lambda h: (
            h.snapshot("ses_a", SHOP, {"a": b"1\n"}),
            h.snapshot("ses_b", SHOP, {"a": b"1\n2\n"}),
        ),
        {},
    ),
    "removed by force, never seen": (lambda h: shell(h, "rm -f a"), {}),
    "perhaps fetched, and removed by force": (
        lambda h: (shell(h, "curl -o a http://x/a", exit=6), shell(h, "rm -f a", "ses_b")),
        {},
    ),
    "removed, never seen": (lambda h: shell(h, "rm a"), {"ses_a": [("a", "deleted", None, None, False)]}),
    "made by a program before it was first seen": (
        lambda h: (
            h.snapshot("ses_a", SHOP, {"a": b"1\n"}, call("bash", command="./paint a", metadata={"exit": 0})),
            h.snapshot("ses_a", SHOP, {"a": b"2\n"}, call("bash", command="./paint a", metadata={"exit": 0})),
        ),
        {"ses_a": [("a", "changed", None, None, False)]},
    ),
    "made by another session's program before it was first seen": (
        lambda h: (
            h.snapshot("ses_b", SHOP, {"a": b"1\n"}, call("bash", command="./paint a", metadata={"exit": 0})),
            h.snapshot("ses_a", SHOP, {"a": b"2\n"}, call("bash", command="./paint a", metadata={"exit": 0})),
        ),
        {"ses_a": [("a", "changed", 1, 1, False)]},
    ),
    "made by a turn of which only the diff is left, and taken back": (
        lambda h: (
            h.snapshot("ses_b", SHOP, {"a": b"1\n"}),
            left_over(h, "a", "1\n", "2\n"),
            h.say("ses_a", "user", "Leave it as it was."),
            h.snapshot("ses_a", SHOP, {"a": b"1\n"}),
        ),
        {"ses_a": [("a", "changed", 1, 1, True)]},
    ),
    "what a program made of it": (
        lambda h: (
            h.snapshot("ses_b", SHOP, {"a": b"1\n"}),
            h.snapshot("ses_a", SHOP, {"a": b"2\n"}, call("bash", command="./paint a", metadata={"exit": 0})),
        ),
        {"ses_a": [("a", "changed", 1, 1, False)]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_session_did_to_a_file(house: Recorded, name: str) -> None:
    make, expected = CASES[name]
    make(house)
    assert changes(house) == expected


def test_a_move_names_where_the_file_was(house: Recorded) -> None:
    write(house, "a", "1\n", "ses_b")
    shell(house, "mv a b")
    found = file_changes.by_session(Files(house.archive).histories(SHOP))
    assert [(one.path, one.moved_from) for one in found["ses_a"]] == [(f"{SHOP}/b", f"{SHOP}/a")]


LINES: list[tuple[bytes, bytes, tuple[int, int] | None]] = [
    (b"", b"", (0, 0)),
    (b"", b"1\n2", (2, 0)),
    (b"1\n2\n", b"", (0, 2)),
    (b"1\n2\n3\n", b"1\nx\n3\n", (1, 1)),
    (b"1", b"1\n", (1, 1)),
    (b"".join(b"%d\n" % n for n in range(5000)), b"".join(b"%d\n" % n for n in range(1, 5001)), (1, 1)),
    (b"\xff\xfe", b"1\n", None),
    (b"1\0", b"1\n", None),
    (b"x" * (5 << 20), b"1\n", None),
]


@pytest.mark.parametrize(("before", "after", "expected"), LINES)
def test_lines_that_differ_are_counted(before: bytes, after: bytes, expected: tuple[int, int] | None) -> None:
    assert counts(before, after) == expected
