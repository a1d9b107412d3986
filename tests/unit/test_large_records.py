"""Records over limits.record_mb are kept whole, as files beside the archive's database, for as long as we are there."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database
from daemon.opencode.database2 import Database2
from daemon.opencode.json_tree import JsonTree
from tests import make_opencode
from tests.make_opencode import JsonStore, assistant, session, text
from tests.taking_in import intake_of

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
        self.intake.take(self.source, patient=False)
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
        intake_of(archive, quiet_s=0, free_mb=0, record_mb=1).take(source, patient=False)
        (entry,) = archive.large()
        assert json.loads(Path(entry["file"]).read_bytes())["text"] == "y" * 2 * MB
        source.close()
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
