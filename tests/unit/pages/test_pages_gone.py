"""What became of a file that is gone, and who changed one last: told alike by the counts, the lists and its own page."""

from __future__ import annotations

import pytest

from daemon.files import FileHistory
from daemon.model import FileEdit
from daemon.reconstitute.facts import usage
from daemon.reconstitute.pages.folder.overview import known
from daemon.reconstitute.recover import Recovered, recover
from tests.support.pages.file_pages import made
from tests.support.pages.page_material import ROOT, material, pages
from tests.support.stores.replaying import Objects, delete, move, read, snapshot, unclear, world, write

A, B = f"{ROOT}/a", f"{ROOT}/b"
STEP = {"message_id": "msg_step"}
NONE, FIRST, MOVED, CHANGED = "none", "first", "moved", "changed"
CHAIN = (unclear(2, A, **STEP), unclear(2, B, **STEP))
CALL = move(2, A, B, into=False)

WAYS: dict[str, tuple[list[FileEdit], bool]] = {
    "a move": ([write(1, A, "1\n"), CALL], True),
    "a move of what is changed in the same chain": (
        [snapshot(1, FIRST, ROOT), CALL, unclear(2, B), snapshot(3, CHANGED, ROOT)], True,
    ),
    "a chain of which the last part failed": (
        [snapshot(1, FIRST, ROOT), *CHAIN, snapshot(3, MOVED, ROOT, **STEP)], True,
    ),
    "a move, then a doubt and a tree without it": (
        [snapshot(1, FIRST, ROOT), CALL, unclear(3, ROOT), snapshot(4, MOVED, ROOT)], True,
    ),
    "a failed chain, then a doubt and a tree without it": (
        [snapshot(1, FIRST, ROOT), *CHAIN, snapshot(3, MOVED, ROOT, **STEP), unclear(4, A), snapshot(5, MOVED, ROOT)],
        True,
    ),
    "a move, then made anew and deleted": ([write(1, A, "1\n"), CALL, write(3, A, "2\n"), delete(4, A)], False),
    "a deletion": ([write(1, A, "1\n"), delete(2, A)], False),
    "a deletion, then a doubt and a tree without it": (
        [snapshot(1, FIRST, ROOT), delete(2, A), unclear(3, ROOT), snapshot(4, NONE, ROOT)], False,
    ),
}  # fmt: skip


def recovered(edits: list[FileEdit]) -> list[Recovered]:
    objects = Objects()
    for name, files in ((NONE, {}), (FIRST, {"a": b"1\n"}), (MOVED, {"b": b"1\n"}), (CHANGED, {"b": b"2\n"})):
        objects.put({"c": b"3\n"} | files, name)
    seen = world(edits, objects)
    return list(
        recover([one for path in (A, B) if (one := FileHistory(path, seen.history(path).revisions)).latest], ROOT)
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_gone_is_everywhere_moved_or_everywhere_deleted(way: str) -> None:
    edits, is_moved = WAYS[way]
    files = recovered(edits)
    front = pages(material(files))["README.md"]
    own = next(page.text for page in made(material(files)) if page.path.endswith("a.md"))
    assert ("1 was moved away" in known(files), "deleted" not in known(files)) == (is_moved, is_moved)
    assert ("Moved away: [a](a.md) → [b](b.md)." in front, "Deleted: [a]" not in front) == (is_moved, is_moved)
    assert ("It was moved to [b](b.md) on 20" in own, "It was deleted on 20" not in own) == (is_moved, is_moved)
    assert ("- Moved away: " in own, "- Deleted: " not in own) == (is_moved, is_moved)
    assert usage.moved_paths(ROOT, files)["a"] == ("b" if is_moved else "")


OUTSIDE = [write(1, A, "1\n"), read(2, A, "2\n", session_id="ses_reader")]


@pytest.mark.parametrize(
    ("edits", "is_outside"),
    [(OUTSIDE, True), (OUTSIDE[:1], False), ([*OUTSIDE, write(3, A, "3\n")], False)],
)
def test_a_file_that_something_else_changed_last_names_no_session(edits: list[FileEdit], *, is_outside: bool) -> None:
    given = material(recovered(edits))
    row = next(line for line in pages(given)["README.md"].splitlines() if line.startswith("| [a]("))
    assert row.rstrip(" |").endswith(" outside OpenCode") is is_outside
    assert ("A session" in row) is not is_outside
