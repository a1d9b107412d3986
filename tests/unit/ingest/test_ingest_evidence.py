"""File evidence drawn out of records: also anew, when this version draws more than the one that filled the archive."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.errors import SourceBusy
from daemon.files import Files
from daemon.ingest import Capture, Evidence
from daemon.ingest.evidence import VERSION
from daemon.opencode import RevertMark, Source
from daemon.opencode.json_tree import JsonTree
from daemon.opencode.snapshots import Snapshots
from tests.support.stores import make_opencode as opencode
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import JsonStore
from tests.support.stores.replaying import grade_and_content

NOTE = "file edits"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def evidence_of(archive: Archive, data_dir: Path) -> Evidence:
    return Evidence(archive, Capture(archive, Snapshots(data_dir), data_dir=data_dir), data_dir, 64)


def _store(root: Path, count: int = 3) -> JsonStore:
    """Messages that each write a file of their own."""
    store = JsonStore(root)
    store.session(opencode.session("ses_1"))
    for n in range(count):
        given = {"filePath": f"/w/f{n}", "content": f"{n}\n"}
        state = {
            "status": "completed", "input": given, "output": "Wrote file successfully.", "title": "", "metadata": {},
            "time": {"start": opencode.T0 + n, "end": opencode.T0 + n},
        }  # fmt: skip
        call = {"id": f"prt_{n:03d}", "messageID": f"msg_{n:03d}", "sessionID": "ses_1", "type": "tool", "callID": "c",
                "tool": "write", "state": state}  # fmt: skip
        store.message(
            opencode.assistant(f"msg_{n:03d}", "ses_1", created=opencode.T0 + n, completed=opencode.T0 + n), call
        )
    return store


def _forgotten(archive: Archive, version: str = "0") -> None:
    """As an older version, which drew nothing, would have left the archive."""
    batch = archive.batch()
    for message_id in archive.all_message_ids():
        batch.renew_edits(message_id, [])
    archive.commit(batch)
    archive.set_note(NOTE, version)


def test_an_empty_archive_is_of_this_version_and_needs_nothing_anew(archive: Archive, tmp_path: Path) -> None:
    evidence = evidence_of(archive, tmp_path)
    assert archive.note(NOTE) == VERSION
    assert evidence.renew() == 0


@pytest.mark.parametrize("version", ["", "0", "99"])
def test_an_archive_that_another_version_filled_is_drawn_anew_once(
    archive: Archive, tmp_path: Path, version: str
) -> None:
    store = _store(tmp_path / "data")
    intake_of(archive, quiet_s=0.0, free_mb=1).scan(JsonTree(store.storage))
    assert [path for path in archive.paths() if archive.files.edits(path)] == ["/w/f0", "/w/f1", "/w/f2"]
    _forgotten(archive, version)
    assert list(archive.paths()) == []
    seen: list[tuple[int, int]] = []
    evidence = evidence_of(archive, tmp_path / "data")
    assert archive.note(NOTE) == version  # opening alone does not claim that it was done
    assert evidence.renew(lambda done, total: seen.append((done, total))) == 3
    assert seen == [(3, 3)]
    assert grade_and_content(Files(archive).history("/w/f2").latest) == ("proven", b"2\n")
    assert [row.path for row in Files(archive).rows()] == ["/w/f0", "/w/f1", "/w/f2"]
    assert evidence.renew() == 0
    assert evidence_of(archive, tmp_path / "data").renew() == 0


def test_renewing_evidence_in_steps_or_after_an_abort_gives_the_same(archive: Archive, tmp_path: Path) -> None:
    class CutOff(Exception):
        pass

    def stop(done: int, _: int) -> None:
        if done == 200:
            raise CutOff

    store = _store(tmp_path / "data", 230)
    intake_of(archive, quiet_s=0.0, free_mb=1).scan(JsonTree(store.storage))
    _forgotten(archive)
    with pytest.raises(CutOff):
        evidence_of(archive, tmp_path).renew(stop)
    assert archive.note(NOTE) == "0"
    assert len(list(archive.paths())) == 200
    seen: list[tuple[int, int]] = []
    assert evidence_of(archive, tmp_path).renew(lambda done, total: seen.append((done, total))) == 230
    assert seen == [(200, 230), (230, 230)]
    assert len(list(archive.paths())) == 230
    assert archive.note(NOTE) == VERSION


class _Reverting(JsonTree):
    """A source that tells of reverts."""

    marks: list[RevertMark] | None = None

    def reverts(self, session_id: str):
        if self.marks is None:
            raise SourceBusy("locked")
        return self.marks


def _tell(archive: Archive, evidence: Evidence, source: Source) -> object:
    session = archive.session("ses_1")
    assert session is not None
    batch = archive.batch()
    evidence.of_session(batch, source, session, lambda: archive.messages("ses_1"), lambda _place, _error: None)
    archive.commit(batch)
    return archive.files.session_extra("ses_1").get("reverts")


def test_reverts_are_kept_by_source_and_a_busy_one_takes_nothing_away(archive: Archive, tmp_path: Path) -> None:
    store = _store(tmp_path / "data")
    plain = JsonTree(store.storage)
    intake_of(archive, quiet_s=0.0, free_mb=1).scan(plain)
    evidence = evidence_of(archive, tmp_path / "data")
    assert _tell(archive, evidence, plain) is None
    source = _Reverting(store.storage)
    assert _tell(archive, evidence, source) is None
    source.marks = [RevertMark(opencode.T0 + 50, "msg_001", "", "a" * 40, is_undone=False)]
    told_ = _tell(archive, evidence, source)
    assert told_ == {source.name: [{
        "time": opencode.T0 + 50, "message_id": "msg_001", "part_id": "", "snapshot": "a" * 40, "is_undone": False,
        "diff": "", "is_exact": True,
    }]}  # fmt: skip
    assert "a" * 40 in {name for name, _ in archive.objects.capture_queue()}  # what it was set back from is captured
    source.marks = None
    assert _tell(archive, evidence, source) == told_
    source.marks = []
    assert _tell(archive, evidence, source) == {source.name: []}


def test_a_pending_revert_keeps_the_time_it_was_first_seen(archive: Archive, tmp_path: Path) -> None:
    store = _store(tmp_path / "data")
    intake_of(archive, quiet_s=0.0, free_mb=1).scan(JsonTree(store.storage))
    evidence, source = evidence_of(archive, tmp_path / "data"), _Reverting(store.storage)
    first = RevertMark(opencode.T0 + 50, "msg_001", "", "a" * 40, False, "diff", is_exact=False)
    source.marks = [first]
    seen = _tell(archive, evidence, source)
    source.marks = [replace(first, time=opencode.T0 + 90)]  # its session was touched
    assert _tell(archive, evidence, source) == seen
    source.marks = []
    updated = opencode.T0 + 51
    ended = asdict(first) | {"ended": updated, "is_final": False}  # its message is there: it was undone
    assert _tell(archive, evidence, source) == {source.name: [ended]}
    source.marks = [replace(first, time=opencode.T0 + 99)]
    assert _tell(archive, evidence, source) == {source.name: [ended, asdict(source.marks[0])]}
    shutil.rmtree(store.storage / "message")
    source.marks = []
    final = asdict(first) | {"time": opencode.T0 + 99, "ended": opencode.T0 + 100, "is_final": True}
    assert _tell(archive, evidence, source) == {source.name: [ended, final]}
    source.marks = [replace(first, is_exact=True)]  # a journal tells of all
    assert _tell(archive, evidence, source) == {source.name: [asdict(source.marks[0])]}
