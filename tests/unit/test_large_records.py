"""Records over limits.record_mb are kept whole, as files beside the archive's database, for as long as we are there."""

from __future__ import annotations

import gc
import hashlib
import json
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.errors import DiskFull, SourceBusy
from daemon.filesystem.large_files import Spool
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database
from daemon.opencode.database_v2 import Database2
from daemon.opencode.json_tree import JsonTree
from tests.support.processes.small_disk import SmallDisk, with_small_disks
from tests.support.stores import make_opencode
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import JsonStore, assistant, session, text

MB = 1 << 20


class Kept:
    """A store with one message, whose second part is over a limit of 1 MB, and an archive that reads it."""

    def __init__(self, root: Path, kind: str) -> None:
        self.archive = Archive(root / "archive")
        self.intake = intake_of(self.archive, quiet_s=0, free_mb=0, record_mb=1)
        self.store: Any
        if kind == "json":
            self.store = JsonStore(root / "oc")
            self.source: Source = JsonTree(self.store.storage, 1, large=self.archive.large_files)
        else:
            self.store = make_opencode.Database(root / "opencode.db")
            self.source = Database(Connection(root / "opencode.db"), 1, large=self.archive.large_files)
        self.kind = kind
        self.store.session(session("ses_1"))
        self.store.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "small"))

    def write(self, said: str, part: str = "prt_2") -> None:
        self.store.part(text(part, "msg_1", "ses_1", said))

    def take(self) -> list[dict[str, Any]]:
        self.intake.scan(self.source, patient=False)
        return self.archive.large()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.archive.directory / "large").iterdir()}


@pytest.fixture(params=["json", "sqlite"])
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kept]:
    made = Kept(tmp_path, request.param)
    yield made
    made.source.close()
    made.archive.close()


def test_a_record_over_the_limit_is_kept_whole(kept: Kept) -> None:
    kept.write("large " * MB)
    (entry,) = kept.take()
    raw = Path(entry["file"]).read_bytes()
    assert json.loads(raw)["text"] == "large " * MB
    assert (entry["message"], entry["part"], entry["bytes"]) == ("msg_1", "prt_2", len(raw))
    assert entry["sha256"] == hashlib.sha256(raw).hexdigest() == Path(entry["file"]).name
    assert stat.S_IMODE(Path(entry["file"]).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(entry["file"]).parent.stat().st_mode) == 0o700
    message = kept.archive.message("msg_1")
    assert message is not None
    assert [part.id for part in message.parts] == ["prt_1"]
    (aside,) = kept.intake.set_aside(kept.source, 5)
    assert "more than limits.record_mb allows; kept whole, not searched" in aside["reason"]


def test_the_last_version_of_a_growing_record_is_kept(kept: Kept) -> None:
    for times in (2, 3):
        kept.write("grow" * MB * times)
        (entry,) = kept.take()
        assert json.loads(Path(entry["file"]).read_bytes())["text"] == "grow" * MB * times
        assert len(kept.files()) == 1


def test_what_the_source_prunes_or_deletes_is_kept(kept: Kept) -> None:
    kept.write("large " * MB)
    before = kept.take()
    kept.write("pruned")
    assert kept.take() == before
    if kept.kind == "json":
        kept.store.drop_message("ses_1", "msg_1")
    else:
        kept.store.remove_message("ses_1", "msg_1")
    assert kept.take() == before
    assert len(kept.files()) == 1


def test_equal_records_are_one_file(tmp_path: Path) -> None:
    made = Kept(tmp_path, "sqlite")
    for part in ("prt_2", "prt_3"):
        made.store.execute(
            "INSERT INTO part VALUES (?, 'msg_1', 'ses_1', 1, 1, ?)",
            part, json.dumps({"type": "text", "text": "same" * MB}),
        )  # fmt: skip
    assert [entry["part"] for entry in made.take()] == ["prt_2", "prt_3"]
    assert len(made.files()) == 1
    made.source.close()
    made.archive.close()


def test_a_message_of_its_own_over_the_limit_is_kept(kept: Kept) -> None:
    kept.store.message(assistant("msg_2", "ses_1", note="x" * 2 * MB))
    (entry,) = kept.take()
    assert (entry["message"], entry["part"]) == ("msg_2", "")
    assert json.loads(Path(entry["file"]).read_bytes())["note"] == "x" * 2 * MB


def test_a_row_of_opencode_2_over_the_limit_is_kept(tmp_path: Path) -> None:
    store = make_opencode.Database2(tmp_path / "opencode.db")
    store.session("ses_1")
    store.message("msg_1", "ses_1", "user", 1, {"text": "y" * 2 * MB})
    with Archive(tmp_path / "archive") as archive:
        source = Database2(Connection(tmp_path / "opencode.db"), 1, large=archive.large_files)
        intake_of(archive, quiet_s=0, free_mb=0, record_mb=1).scan(source, patient=False)
        (entry,) = archive.large()
        assert json.loads(Path(entry["file"]).read_bytes())["text"] == "y" * 2 * MB
        source.close()
    store.close()


def test_a_row_that_has_anothers_number_by_now_is_not_read_for_it(tmp_path: Path) -> None:
    """SQLite gives the number of a last row that was deleted to the next one, maybe between listing and reading."""
    store = make_opencode.Database(tmp_path / "opencode.db")
    store.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "text 1"))
    connection = Connection(tmp_path / "opencode.db")
    ((row, part_id),) = connection.rows("SELECT rowid, id FROM part")
    store.execute("DELETE FROM part")
    with pytest.raises(SourceBusy, match="gone since"), connection.value("part", "data", row, part_id):
        pass
    store.part(text("prt_2", "msg_1", "ses_1", "text 2"))
    with pytest.raises(SourceBusy, match="gone since"), connection.value("part", "data", row, part_id):
        pass
    with connection.value("part", "data", row, b"prt_2") as value:
        assert b"text 2" in value.read()
    connection.close()
    store.close()


def test_without_room_it_waits_and_the_rest_goes_on(kept: Kept) -> None:
    kept.write("large " * MB)
    kept.archive.large_files.free_mb = 1 << 40
    assert kept.take() == []
    (aside,) = kept.intake.set_aside(kept.source, 5)
    assert "not kept" in aside["reason"]
    assert "limits.free_mb" in aside["reason"]
    assert kept.archive.message("msg_1") is not None
    kept.archive.large_files.free_mb = 0
    assert len(kept.take()) == 1


@with_small_disks
def test_a_disk_that_fills_up_while_it_is_copied_is_waited_for(request, tmp_path: Path) -> None:
    """Another program may take the room that was there; nothing is left behind, and the rest goes on."""
    disk = SmallDisk(tmp_path / "small", 4)
    try:
        made = Kept(tmp_path, "json")
        files = made.archive.large_files
        files.directory = disk.path / "large"
        disk.fill(MB)
        monkey = pytest.MonkeyPatch()
        monkey.setattr("daemon.filesystem.disk_space.free_bytes", lambda _: 1 << 40)
        made.write("large " * MB)
        assert made.take() == []
        (aside,) = made.intake.set_aside(made.source, 5)
        assert "No space left" in aside["reason"]
        assert list(files.directory.iterdir()) == []
        spool = Spool(files.spool())
        with pytest.raises(DiskFull, match="No space left"):
            spool.add([b"x" * MB] * 5)
        monkey.undo()
        disk.close()
        disk = SmallDisk(tmp_path / "larger", 40)
        files.directory = disk.path / "large"
        assert len(made.take()) == 1
        made.archive.close()
    finally:
        disk.close()


@pytest.mark.parametrize("is_database_first", [False, True])
def test_of_two_sources_the_newer_generation_of_a_large_record_counts(tmp_path: Path, is_database_first: bool) -> None:
    old, new = (Kept(tmp_path / kind, kind) for kind in ("json", "sqlite"))
    old.write("old " * MB)
    new.write("new " * MB)
    with Archive(tmp_path / "both") as archive:
        intake = intake_of(archive, quiet_s=0, free_mb=0, record_mb=1)
        sources: list[Source] = [
            JsonTree(old.store.storage, 1, large=archive.large_files),
            Database(Connection(tmp_path / "sqlite" / "opencode.db"), 1, large=archive.large_files),
        ]
        for source in sorted(sources, key=lambda one: one.generation, reverse=is_database_first):
            intake.scan(source, patient=False)
        (entry,) = archive.large()
        assert b"new new" in Path(entry["file"]).read_bytes()[:200]
        for source in sources:
            source.close()
    for made in (old, new):
        made.source.close()
        made.archive.close()


def test_what_a_killed_writer_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    made = Kept(tmp_path, "json")
    made.write("large " * MB)
    made.take()
    folder = made.archive.directory / "large"
    (folder / ".unfinished-1").write_bytes(b"half")
    (folder / ("0" * 64)).write_bytes(b"complete, and never named by a commit")
    (folder / "notes of the user.txt").write_bytes(b"mine")
    made.archive.close()
    with Archive(tmp_path / "archive") as archive:
        names = {path.name for path in folder.iterdir()}
        assert names == {archive.large()[0]["sha256"], "notes of the user.txt"}


def test_a_spool_in_a_reference_cycle_closes_its_file() -> None:
    def make() -> None:
        spool = Spool(tempfile.TemporaryFile())  # noqa: SIM115 - the spool closes it
        cycle: list[Any] = [spool]
        cycle.append(cycle)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        make()
        gc.collect()
    assert [str(warning.message) for warning in seen] == []
