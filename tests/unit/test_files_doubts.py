"""File histories out of a real archive: moves, reverts, and commands that name a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.files import Files
from daemon.files.doubts import PENDING, REMOVED, folders
from daemon.model import Message
from daemon.transcript.edits import edits
from tests.records import BASE, START, apply_patch, bash, edit, message, session, write

PATH = f"{BASE}/src/a.py"


class Recorder:
    """Puts messages into an archive, a second apart."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.files = Files(archive)
        self._number = 0
        self.session()

    def session(self, **fields: Any) -> None:
        batch = self.archive.batch()
        batch.session(session(**fields), "test", 1)
        self.archive.commit(batch)

    def put(self, record: dict[str, Any], message_id: str = "") -> Message:
        self._number += 1
        time = START + 1000 * self._number
        record["state"]["time"] = {"start": time, "end": time}
        made = message(record, role="assistant", id=message_id or f"msg_{self._number:012x}AAAA", created=time)
        batch = self.archive.batch()
        batch.message(made, source="test", generation=1, hash_="h", replay=[], edits=edits(made, session()))
        self.archive.commit(batch)
        return made

    def remove(self, made: Message) -> None:
        batch = self.archive.batch()
        batch.forget_message_source(made.id, "test", START)
        self.archive.commit(batch)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with Archive(tmp_path / "archive") as archive:
        yield Recorder(archive)


def test_a_path_that_nothing_touched_has_no_history(recorder: Recorder) -> None:
    assert recorder.files.history(PATH).revisions == ()
    assert recorder.files.latest(PATH) is None


def test_latest_and_paths(recorder: Recorder) -> None:
    recorder.put(write(PATH, "a\n"))
    recorder.put(write(f"{BASE}/src2/b.py", "b\n"))
    latest = recorder.files.latest(PATH)
    assert latest is not None
    assert latest.content == b"a\n"
    assert recorder.files.paths(f"{BASE}/src") == [PATH]
    assert recorder.files.paths() == [PATH, f"{BASE}/src2/b.py"]


def test_moves_are_followed_through_the_archive_and_back(recorder: Recorder) -> None:
    recorder.put(write(PATH, "# top\nx\n"))
    for origin, target, old, new in (("src/a.py", "src/b.py", "x", "y"), ("src/b.py", "src/a.py", "y", "z")):
        recorder.put(
            apply_patch(
                f"*** Begin Patch\n*** Update File: {origin}\n*** Move to: {target}\n@@\n-{old}\n+{new}\n*** End Patch"
            )
        )
    found = recorder.files.history(PATH)
    assert [(one.content, one.deleted, one.proven) for one in found.revisions] == [
        (b"# top\nx\n", False, True),
        (None, True, True),
        (b"# top\nz\n", False, True),
    ]


def test_a_message_that_a_revert_removed_leaves_a_doubt_behind_its_change(recorder: Recorder) -> None:
    recorder.put(write(PATH, "x = 1\ny = 1\n"))
    undone = recorder.put(edit(PATH, "x = 1", "x = 2"))
    recorder.put(edit(PATH, "y = 1", "y = 2"))
    assert recorder.files.history(PATH).stale is False
    recorder.remove(undone)
    found = recorder.files.history(PATH)
    assert found.stale
    assert next(one.note for one in found.revisions if one.note) == REMOVED
    assert found.latest_proven is not None
    assert found.latest_proven.content == b"x = 2\ny = 1\n"


def test_a_deleted_session_casts_no_doubt_on_its_files(recorder: Recorder) -> None:
    made = recorder.put(write(PATH, "x\n"))
    recorder.remove(made)
    batch = recorder.archive.batch()
    batch.forget_session_source("ses_1", "test", START)
    recorder.archive.commit(batch)
    assert recorder.files.history(PATH).stale is False


@pytest.mark.parametrize("is_text", [False, True])
def test_a_pending_revert_leaves_a_doubt_behind_what_it_covers_also_across_the_wrap_of_ids(
    recorder: Recorder, is_text: bool
) -> None:
    recorder.put(write(PATH, "x = 1\n"), "msg_ffffffffe001AAAA")
    recorder.put(edit(PATH, "1", "2"), "msg_000000000001AAAA")
    revert: Any = {"messageID": "msg_fffffffff001AAAA", "snapshot": "abc", "diff": ""}
    recorder.session(revert=json.dumps(revert) if is_text else revert)
    found = recorder.files.history(PATH)
    assert [(one.content, one.proven) for one in found.revisions] == [
        (b"x = 1\n", True),
        (b"x = 2\n", True),
        (b"x = 2\n", False),
    ]
    assert found.revisions[-1].note == PENDING


def test_a_command_that_names_a_folder_casts_doubt_on_the_files_in_it(recorder: Recorder) -> None:
    recorder.put(write(PATH, "x\n"))
    recorder.put(bash("rm -rf src"))
    found = recorder.files.history(PATH)
    assert found.stale
    assert found.revisions[-1].note == "shell: rm -rf src"
    recorder.put(write(PATH, "y\n"))
    assert recorder.files.history(PATH).stale is False


def test_the_folders_of_a_path_are_named_nearest_first() -> None:
    assert folders("/a/b/c.py") == ["/a/b", "/a"]
    assert folders("/c.py") == []
