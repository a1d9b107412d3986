"""What is recorded of a path is in no file and at no door once it is forgotten; the rest of its messages stays."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.archive.objects import UNKNOWN
from daemon.errors import BadRequest
from tests.support.processes.daemon_process import CHECKOUT
from tests.support.servers.plain_service import PlainService
from tests.support.stores.leveldb_files import texts
from tests.support.stores.make_opencode import T0, assistant, text, tool
from tests.support.stores.marked_path import FILE_KINDS, ONLY_IN_SNAPSHOTS, MarkedPath
from tests.support.stores.marked_sessions import KEPT_WORD, MARK, done, mark
from tests.unit.app.test_app_forget import FORGET_UNTIL, opened, rows


def found(directory: Path) -> set[str]:
    """Which marks stand in the files of an archive."""
    return {kind for _, raw in texts(directory) for kind in FILE_KINDS if mark(kind).encode() in raw}


def where(directory: Path) -> set[str]:
    """In which files and keys a mark stands."""
    return {place for place, raw in texts(directory) if MARK.encode() in raw}


@pytest.fixture
def marked(tmp_path: Path) -> MarkedPath:
    return MarkedPath(tmp_path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def engine(marked: MarkedPath, archive: Path) -> Iterator[PlainService]:
    with opened(marked.data, archive) as engine:
        engine.index()
        marked.change()
        engine.index()
        yield engine


OURS = (b"msg_f", b"ses_f", b"prt_f", b"obj:", b"full:", b"spill:")
"""In the keys of what the file is recorded with."""


def others(held: dict[bytes, bytes]) -> dict[bytes, bytes]:
    return {key: value for key, value in held.items() if not any(name in key for name in OURS)}


def test_a_forgotten_path_is_in_no_file(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    engine.close()
    assert found(archive) == set(FILE_KINDS)
    with opened(marked.data, archive) as first:
        before = rows(first)
        answer = first.forget(str(marked.path), confirmed=True)
        assert (answer["forgotten"], answer["path"], answer["sessions"]) == (True, str(marked.path), [])
        assert (answer["messages"], answer["parts"], answer["objects"]) == (2, 10, 2)
        after = rows(first)
    assert others(before) == others(after)
    assert where(archive) == set()
    with opened(marked.data, archive) as again:
        again.index()
        assert rows(again) == after
        assert len(again.recall("recall", {"query": KEPT_WORD})["results"]) == 3
        assert not again.files(str(marked.path))["files"]
        (other,) = again.files(str(marked.folder))["files"]
        assert (other["path"], other["grade"]) == (str(marked.other), "verified")
        objects = again.archive.objects
        assert objects.find(marked.with_file, "vault/other.txt")[0] == 0o100644
        assert objects.find(marked.with_file, f"vault/{marked.path.name}")[0] == UNKNOWN
        assert objects.find(marked.with_file, "vault/nobody.txt") is None
        assert not [check for check in again.doctor(full=True)["checks"] if check["state"] == "broken"]
    assert where(archive) == set()


def test_a_preview_of_a_path_changes_nothing(engine: PlainService, marked: MarkedPath) -> None:
    before, revision = rows(engine, ()), engine.archive.revision
    answer = engine.forget(str(marked.path))
    assert (answer["forgotten"], answer["messages"], answer["parts"]) == (False, 2, 10)
    assert any("later messages" in note for note in answer["notes"])
    assert (rows(engine, ()), engine.archive.revision) == (before, revision)


def test_a_path_is_named_in_many_ways(
    engine: PlainService, marked: MarkedPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(marked.folder)
    whole = engine.forget(str(marked.folder))
    assert whole["parts"] > engine.forget(str(marked.path))["parts"]
    for name in (f"{marked.folder}/", "~/work/vault", f"{marked.work}//x/../vault", str(tmp_path / "link")):
        assert engine.forget(name)["parts"] == whole["parts"], name
    (tmp_path / "moved").symlink_to(tmp_path / "nowhere")
    engine.alias(str(marked.folder), str(tmp_path / "moved"))
    assert engine.forget(str(tmp_path / "moved"))["parts"] == whole["parts"]


@pytest.mark.parametrize("name", ["vaul", "vault/z", "VAULT", "vault/other", "nobody.txt"])
def test_a_path_that_nobody_touched_is_not_forgotten(engine: PlainService, marked: MarkedPath, name: str) -> None:
    answer = engine.forget(f"{marked.work}/{name}", confirmed=True)
    assert not answer["forgotten"]
    assert answer["notes"] == [f"{marked.work}/{name}: nothing is recorded of it"]


@pytest.mark.parametrize("name", ["/", "./relative.txt", "/..", "/a\0b"])
def test_a_path_that_cannot_be_forgotten_is_refused(engine: PlainService, name: str) -> None:
    with pytest.raises(BadRequest):
        engine.forget(name, confirmed=True)


def test_a_folder_that_begins_alike_stays(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    before = rows(engine)
    engine.forget(str(marked.folder), confirmed=True)
    assert others(rows(engine)) == others(before)
    assert [file["path"] for file in engine.files(str(marked.work))["files"] if "vault" in file["path"]] == [
        str(marked.beside)
    ]
    engine.close()
    assert where(archive) == set()


def test_a_file_that_only_snapshots_have_is_forgotten(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    assert ONLY_IN_SNAPSHOTS in str(engine.files(str(marked.work))["files"])
    assert engine.forget(f"{marked.work}/snaps", confirmed=True)["forgotten"]
    assert ONLY_IN_SNAPSHOTS not in str(engine.files(str(marked.work))["files"])
    engine.close()
    assert not [place for place, raw in texts(archive) if ONLY_IN_SNAPSHOTS.encode() in raw]


def test_later_work_on_a_forgotten_path_is_archived(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    engine.forget(str(marked.path), confirmed=True)
    marked.store.part(marked.aside | {"state": marked.aside["state"] | {"output": mark("aside")}})
    in_place = {"path": {"cwd": str(marked.work), "root": str(marked.work)}}
    unchanged = marked.tree.write({"z.txt": b"z"})
    ids = ("msg_l1", "ses_f")
    begin = {"id": "prt_l0", "sessionID": ids[1], "messageID": ids[0], "type": "step-start", "snapshot": unchanged}
    marked.store.message(assistant(*ids, created=T0 + 9000, **in_place), begin, text("prt_l1", *ids, "looked"))
    engine.index()
    engine.close()
    assert where(archive) == set()
    with opened(marked.data, archive) as again:
        assert again.archive.objects.find(unchanged, "z.txt")
        ids = ("msg_l2", "ses_f")
        write = {"filePath": str(marked.path), "content": "new work\n"}
        written = tool("prt_l2", *ids, "write", done(write, "Wrote"))
        marked.store.message(assistant(*ids, created=T0 + 9500, **in_place), written)
        again.index()
        assert [file["path"] for file in again.files(str(marked.path))["files"]] == [str(marked.path)]
        assert "new work" in str(again.recall("recall", {"query": "new work"})["results"])


def test_a_migrated_store_brings_nothing_back(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    """Its parts have other ids, and some are new."""
    engine.forget(str(marked.path), confirmed=True)
    marked.new_store()
    engine.index()
    assert len(engine.archive.state("msg_f2")["sources"]) == 2
    engine.close()
    assert where(archive) == set()


def test_a_message_leaves_the_tree_of_its_sessions_revert(engine: PlainService, marked: MarkedPath) -> None:
    engine.forget("msg_f2", confirmed=True)
    assert engine.archive.objects.tree(marked.with_file) is not None


def test_pages_made_of_it_are_written_anew(engine: PlainService, marked: MarkedPath, tmp_path: Path) -> None:
    """Those of a run for once too, also where nothing is left to write of."""

    def written() -> str:
        return "".join(page.read_text() for page in (tmp_path / "pages").rglob("*.md"))

    for path in (str(marked.work), str(marked.folder)):
        engine.reconstitute(path, output=str(tmp_path / "pages"))
    assert mark("write") in written()
    assert len(engine.forget(str(marked.folder))["pages"]) == 2
    engine.forget(str(marked.folder), confirmed=True)
    assert mark("write") in written()
    engine.write_pages_anew(lambda _: None)
    assert MARK not in written()
    assert KEPT_WORD in written()
    assert not engine.archive.target_get("", "to be written anew")


@pytest.mark.parametrize("phase", ["removed", "writing the archive anew", "compacting"])
def test_a_kill_while_a_path_is_forgotten_is_made_good(marked: MarkedPath, archive: Path, phase: str) -> None:
    with opened(marked.data, archive) as first:
        first.index()
        before = rows(first)
    program = FORGET_UNTIL.replace('"ses_gone"', repr(str(marked.path)))
    words = [sys.executable, "-c", program, str(marked.data), str(archive), phase]
    assert subprocess.run(words, cwd=CHECKOUT, timeout=300, check=False).returncode == -signal.SIGKILL
    with opened(marked.data, archive) as engine:
        engine.complete_forgetting(lambda _: None)
        engine.index()
        assert others(rows(engine)) == others(before)
    assert where(archive) == set()
