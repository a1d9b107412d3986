"""What is forgotten is in no file and at no door, and stays away; everything else is as it was."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.archive import SCHEMA, Archive, keys
from daemon.errors import BadRequest
from tests.support.processes.daemon_process import CHECKOUT
from tests.support.servers.plain_service import PlainService
from tests.support.stores.leveldb_files import texts
from tests.support.stores.make_opencode import T0, assistant, session, text, user
from tests.support.stores.marked_sessions import KEPT_WORD, KINDS, MARK, Marked, mark
from tests.unit.ingest.test_ingest_upkeep import Hashed

VOLATILE = (
    b"meta:",
    b"cur:",
    b"out:",
    b"dirty:",
    b"forgot:",
    b"cache:",
    b"exp:",
    b"dict:",
    b"quar:",
    b"view:",
    b"link:",
    b"body:",
    b"ahead:",
    b"vec:",
    b"unread:",
    b"want:",
    b"!",
    b"~",
)
"""Begins keys that scans of the same records may write otherwise."""


def opened(data: Path, archive: Path, embedded: str = "none", **tables: Any) -> PlainService:
    """Without Chroma, whose process takes seconds to start, unless something is `embedded`."""
    tables |= {"opencode": {"data_dir": str(data)}, "archive": {"dir": str(archive)}}
    tables["embedding"] = {"what": embedded}
    model = Hashed()
    return PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (model, "a test")))


def rows(engine: Any, besides: tuple[bytes, ...] = VOLATILE) -> dict[bytes, bytes]:
    """What the archive holds, with the content of large values."""
    store = engine.archive._store
    letters = [bytes([letter]) for letter in range(ord("a"), ord("z") + 1)]
    names = [key for letter in letters for key in store.keys(letter) if not key.startswith(besides)]
    return {key: store.get(key) for key in names}


def found(directory: Path) -> set[str]:
    """Where a mark stands in the files of an archive."""
    return {f"{where}: {kind}" for where, raw in texts(directory) for kind in KINDS if mark(kind).encode() in raw}


def check_the_rest_stays(before: dict[bytes, bytes], after: dict[bytes, bytes]) -> None:
    assert {key: before[key] for key in after} == after
    assert not [key for key in after if b"gone" in key or b"agent" in key]
    assert not [key for key in before.keys() - after.keys() if b"msg_k" in key or b"prt_k" in key or b"ses_k" in key]


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    return Marked(tmp_path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def engine(marked: Marked, archive: Path, request: pytest.FixtureRequest) -> Iterator[PlainService]:
    with opened(marked.data, archive, getattr(request, "param", "none")) as engine:
        engine.index(wait=True)
        marked.change()
        engine.index(wait=True)
        yield engine


@pytest.mark.parametrize("engine", ["all"], indirect=True)
def test_marks_are_in_the_archive_before(engine: PlainService, archive: Path) -> None:
    engine.close()
    assert {where.rpartition(" ")[2] for where in found(archive)} == set(KINDS)


@pytest.mark.parametrize("engine", ["all"], indirect=True)
def test_a_forgotten_session_is_in_no_file(engine: PlainService, marked: Marked, archive: Path) -> None:
    before = rows(engine)
    answer = engine.forget("ses_gone", confirmed=True)
    assert answer["forgotten"]
    assert {entry["id"] for entry in answer["sessions"]} == {"ses_gone", "ses_agent"}
    after = rows(engine)
    check_the_rest_stays(before, after)
    engine.index(wait=True)
    for _ in range(2):
        assert rows(engine) == after
        engine.close()
        assert found(archive) == set()
        engine = opened(marked.data, archive, "all")
        engine.index(wait=True)
    engine.close()


IN_MESSAGE = {"answer", "output", "write", "path", "edit", "spill", "large", "snapshot", "diff", "shell", "secretword"}
"""The marks of msg_gone2, and of the session's diff."""


def test_a_forgotten_message_leaves_the_session_in_order(engine: PlainService, marked: Marked, archive: Path) -> None:
    answer = engine.forget("msg_gone2", confirmed=True)
    assert (answer["sessions"], answer["messageID"], answer["messages"]) == ([], "msg_gone2", 1)
    engine.index(wait=True)
    assert engine.archive.message_ids("ses_gone") == ["msg_gone1", "msg_gone3"]
    assert engine.archive.figures()["messages"] == len(list(engine.archive.all_message_ids()))
    engine.close()
    with opened(marked.data, archive) as again:
        again.index(wait=True)
        assert again.archive.message_ids("ses_gone") == ["msg_gone1", "msg_gone3"]
    left = {where.rpartition(" ")[2] for where in found(archive)}
    assert left == set(KINDS) - IN_MESSAGE


def test_a_preview_changes_nothing(engine: PlainService) -> None:
    before, revision = rows(engine, ()), engine.archive.revision
    answer = engine.forget("ses_gone")
    assert not answer["forgotten"]
    assert (answer["messages"], answer["files"] > 0, answer["objects"] > 0) == (4, True, True)
    assert any("sub-agents" in note for note in answer["notes"])
    assert (rows(engine, ()), engine.archive.revision) == (before, revision)


@pytest.mark.parametrize("engine", ["all"], indirect=True)
def test_no_door_finds_what_was_forgotten(engine: PlainService, marked: Marked) -> None:
    def answers() -> str:
        said = [engine.recall("recall", {"query": mark(kind), "match": match}) for kind in KINDS for match in MATCHES]
        said += [engine.recall("recall_sessions", {}), engine.recall("recall_timeline", {"anchor": "msg_k0"})]
        said += [engine.recall("recall_files", {"path": str(marked.work)}), engine.files(str(marked.work))]
        said += [engine.trajectories(), engine.status()]
        parts: list[str] = []
        engine.export({"format": "jsonl"}, on_part=parts.append)
        without_questions = [{**answer, "query": "", "warnings": [], "suggestions": []} for answer in said]
        return str((without_questions, parts))

    assert MARK in answers()
    engine.forget("ses_gone", confirmed=True)
    engine.index(wait=True)
    assert MARK not in answers()
    for call, argument in (("recall_get", "messageID"), ("recall_context", "messageID")):
        with pytest.raises(BadRequest):
            engine.recall(call, {argument: "msg_gone1"})
    assert engine.recall("recall", {"query": KEPT_WORD})["results"]
    assert not engine.forget("ses_gone", confirmed=True)["forgotten"]


def test_a_run_under_way_makes_way_and_is_repeated(engine: PlainService, marked: Marked, tmp_path: Path) -> None:
    """Its model may take an hour; what it has read by then is not to be written."""
    reached, go_on = threading.Event(), threading.Event()
    runs: list[Any] = []

    def stay(event: dict[str, Any]) -> None:
        reached.set()
        assert go_on.wait(60)

    def make_way(event: dict[str, Any]) -> None:
        if event["phase"] == "waiting for the runs under way":
            go_on.set()

    def run() -> None:
        runs.append(engine.reconstitute(str(marked.work), output=str(tmp_path / "pages"), progress=stay))

    running = threading.Thread(target=run)
    running.start()
    assert reached.wait(60)
    assert engine.forget("ses_gone", confirmed=True, progress=make_way)["forgotten"]
    running.join(60)
    assert runs[0]["written"]
    pages = "".join(path.read_text() for path in (tmp_path / "pages").rglob("*.md"))
    assert KEPT_WORD in pages
    assert MARK not in pages


MATCHES = ("smart", "literal", "semantic", "fuzzy")


def test_forgotten_equals_never_read(engine: PlainService, marked: Marked, tmp_path: Path) -> None:
    engine.forget("ses_gone", confirmed=True)
    engine.index(wait=True)
    for folder in marked.store.storage.glob("part/msg_[ga]*"):
        shutil.rmtree(folder)
    for session_id in ("ses_gone", "ses_agent"):
        shutil.rmtree(marked.store.storage / "message" / session_id)
        (marked.store.storage / "session" / "pid" / f"{session_id}.json").unlink()
    (marked.store.storage / "todo" / "ses_gone.json").unlink()
    with opened(marked.data, tmp_path / "other") as other:
        other.index(wait=True)
        assert rows(engine) == rows(other)
        assert engine.archive.figures() | {"bytes": 0} == other.archive.figures() | {"bytes": 0}
        assert engine.archive.objects.size == other.archive.objects.size
        vectors = [set(one.archive._store.keys(b"vec:")) for one in (engine, other)]
        assert vectors[0] == vectors[1]


def test_a_new_sub_agent_of_a_forgotten_session_stays_away(engine: PlainService, marked: Marked) -> None:
    engine.forget("ses_gone", confirmed=True)
    for name, parent in (("ses_late", "ses_gone"), ("ses_later", "ses_late")):
        marked.store.session(session(name, str(marked.work), "Late", parentID=parent))
        marked.store.message(user(f"msg_{name}", name), text(f"prt_{name}", f"msg_{name}", name, mark("agent")))
    engine.index()
    engine.index()
    assert engine.archive.session("ses_late") is engine.archive.session("ses_later") is None


def test_before_chooses_sessions_that_ended(engine: PlainService) -> None:
    answer = engine.forget(before=str(T0 + 1002))
    assert {entry["id"] for entry in answer["sessions"]} == {"ses_gone", "ses_agent", "ses_kept0", "ses_kept1"}
    assert not engine.forget(before=str(T0 + 5))["sessions"]
    assert "1 session began before it and went on after it" in engine.forget(before=str(T0 + 12))["notes"][0]


def test_project_chooses_its_sessions_by_folder_and_id(engine: PlainService, marked: Marked) -> None:
    for project in ("pid", str(marked.work), str(marked.work.parent)):
        assert len(engine.forget(project=project)["sessions"]) == 8
    with pytest.raises(BadRequest, match="no session is of this project"):
        engine.forget(project=f"{marked.work}/elsewhere")


def test_one_thing_is_named(engine: PlainService) -> None:
    with pytest.raises(BadRequest, match="name one thing"):
        engine.forget("ses_gone", before="2026-01-01")
    with pytest.raises(BadRequest, match="is no session or message"):
        engine.forget("ses_nobody")
    assert engine.forget("/home/dev/kept.txt")["notes"] == ["/home/dev/kept.txt: nothing is recorded of it"]


def test_ids_may_be_short(engine: PlainService) -> None:
    assert engine.forget("ses_g")["sessions"][0]["id"] == "ses_gone"
    assert engine.forget("msg_..ne2")["messageID"] == "msg_gone2"
    with pytest.raises(BadRequest, match="ambiguous"):
        engine.forget("msg_gone")


def test_backups_before_upgrades_go_too(engine: PlainService, archive: Path, tmp_path: Path) -> None:
    engine.close()
    with Archive(archive) as older:
        older._store.write({keys.SCHEMA: b"1"})
    with opened(tmp_path / "oc", archive) as migrated:
        folder = archive / f"before-schema-{SCHEMA}"
        assert folder.is_dir()
        assert any(str(folder) in note for note in migrated.forget("ses_gone")["notes"])
        assert folder.is_dir()
        migrated.forget("ses_gone", confirmed=True)
        assert not folder.exists()
    assert found(archive) == set()


def test_what_exclusion_left_in_part_is_forgotten(marked: Marked, archive: Path) -> None:
    """The excluded agent's message has a cursor and no record; nothing of the session may stay."""
    ids = ("msg_gone4", "ses_gone")
    marked.store.message(assistant(*ids, created=T0 + 30, agent="spy"), text("prt_j1", *ids, mark("agent")))
    with opened(marked.data, archive, exclude={"agents": ["spy"]}) as engine:
        engine.index(wait=True)
        assert list(engine.archive._store.keys(b"cur:"))
        assert engine.archive.message_ids("ses_gone") == ["msg_gone1", "msg_gone2", "msg_gone3"]
        engine.forget("ses_gone", confirmed=True)
        engine.index(wait=True)
        assert not [key for key in rows(engine, ()) if b"gone" in key]
    with opened(marked.data, archive) as engine:  # what is no longer excluded is read again, but for this
        engine.index(wait=True)
        assert not [key for key in rows(engine, ()) if b"gone" in key]
    assert found(archive) == set()


FORGET_UNTIL = """
import os, signal, sys
from pathlib import Path
from tests.unit.app.test_app_forget import opened

def progress(event):
    if event["phase"] == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

with opened(Path(sys.argv[1]), Path(sys.argv[2])) as engine:
    engine.forget("ses_gone", confirmed=True, progress=progress)
"""
KILLED = (
    "removed", "indexing words", "comparing vectors", "writing the archive anew", "compacting", "written anew",
)  # fmt: skip


@pytest.mark.parametrize("phase", KILLED)
def test_a_kill_is_made_good_by_the_next_start(marked: Marked, archive: Path, phase: str) -> None:
    with opened(marked.data, archive) as first:
        first.index(wait=True)
        before = rows(first)
    words = [sys.executable, "-c", FORGET_UNTIL, str(marked.data), str(archive), phase]
    ended = subprocess.run(words, cwd=CHECKOUT, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL
    with opened(marked.data, archive) as engine:
        assert not engine.recall("recall", {"query": mark("prompt"), "match": "literal"})["results"]
        engine.complete_forgetting(lambda _: None)
        engine.index(wait=True)
        check_the_rest_stays(before, rows(engine))
        assert engine.recall("recall", {"query": KEPT_WORD})["results"]
    assert found(archive) == set()
