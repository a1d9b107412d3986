"""The archive keeps what it was given: whole commits, one process, checksums on every read."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daemon import records
from daemon.archive import Archive, merged, store
from daemon.errors import ArchiveCorrupt, ArchiveLocked
from daemon.model import FileEdit, Message, Operation, Session
from tests.support.stores.make_opencode import T0, assistant, session, text, user


def make(record: dict[str, object], *parts: dict[str, object]) -> Message:
    found = tuple(records.part(records.dumps(part), str(record["id"]), str(record["sessionID"])) for part in parts)
    return records.message(records.dumps(record), found)


def put(
    archive: Archive, message: Message, *, source: str = "s", generation: int = 1, edits: tuple[FileEdit, ...] = ()
) -> None:
    whole, versions, gone, _ = merged(archive.message(message.id), message)
    batch = archive.batch()
    hash_ = records.digest(message.raw, *(part.raw for part in message.parts))
    batch.message(whole, source=source, generation=generation, hash_=hash_, edits=edits, versions=versions, gone=gone)
    archive.commit(batch)


@pytest.fixture
def archive(tmp_path: Path):
    with Archive(tmp_path / "archive") as opened:
        yield opened


def test_a_message_comes_back_byte_for_byte_also_after_reopening(tmp_path: Path) -> None:
    message = make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "grüße 日本 \u2028 ✅"))
    with Archive(tmp_path / "a") as archive:
        put(archive, message)
    with Archive(tmp_path / "a") as archive:
        assert archive.message("msg_1") == message
        assert archive.figures()["messages"] == archive.message_count() == 1
        assert archive.figures()["parts"] == 1


def test_the_revision_grows_with_records_and_with_nothing_else(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        message = make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "one"))
        put(archive, message)
        first = archive.revision
        archive.set_note("index", "other")
        archive.target_put("/p", "last", {"time": 1})
        archive.enqueue_all("lexical")
        assert archive.revision == first > 0
        put(archive, make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "two")))
        assert archive.revision > first
        second = archive.revision
    with Archive(tmp_path / "a") as archive:
        assert archive.revision == second


def test_a_session_is_ordered_by_time_not_by_id_across_the_wrap_of_the_ids(archive: Archive) -> None:
    for message_id, created in (("msg_ff", T0 - 9), ("msg_00", T0), ("msg_01", T0 + 5), ("msg_fe", T0 - 20)):
        put(archive, make(user(message_id, "ses_1", created)))
    assert archive.message_ids("ses_1") == ["msg_fe", "msg_ff", "msg_00", "msg_01"]


def test_a_part_that_the_source_dropped_or_blanked_stays(archive: Archive) -> None:
    first = [
        text("prt_1", "msg_1", "ses_1", "one"),
        text("prt_2", "msg_1", "ses_1", "two"),
        text("prt_3", "msg_1", "ses_1", "three"),
    ]
    put(archive, make(assistant("msg_1", "ses_1"), *first))
    put(
        archive,
        make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "one"), text("prt_3", "msg_1", "ses_1", "")),
    )
    kept = archive.message("msg_1")
    assert kept is not None
    assert [part.data["text"] for part in kept.parts] == ["one", "two", "three"]
    assert (archive.state("msg_1") or {})["gone"] == ["prt_2"]


def test_a_version_with_something_of_its_own_is_kept_aside(archive: Archive) -> None:
    put(archive, make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "the first wording")))
    put(archive, make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "quite another and longer wording")))
    kept = archive.message("msg_1")
    assert kept is not None
    assert kept.parts[0].data["text"] == "quite another and longer wording"
    assert any(b"the first wording" in raw for raw in archive.versions("msg_1"))


def test_a_tombstone_is_set_when_every_source_dropped_it_and_can_be_lifted(
    archive: Archive,
) -> None:
    """It is lifted when a source has the record again."""
    message = make(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    put(archive, message, source="json")
    put(archive, message, source="db", generation=2)
    batch = archive.batch()
    assert not batch.forget_message_source("msg_1", "db", 5)
    archive.commit(batch)
    assert not archive.is_deleted("msg_1")
    batch = archive.batch()
    assert batch.forget_message_source("msg_1", "json", 6)
    archive.commit(batch)
    assert archive.is_deleted("msg_1")
    assert archive.message("msg_1") == message
    batch = archive.batch()
    batch.keep_source("msg_1", "json")
    archive.commit(batch)
    assert not archive.is_deleted("msg_1")


def test_the_outbox_keeps_a_message_that_changed_during_indexing(archive: Archive) -> None:
    put(archive, make(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "a")))
    taken = archive.outbox("lexical", 10)
    put(archive, make(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "ab")))
    archive.done(taken)
    assert archive.waiting("lexical") == 1
    archive.done(archive.outbox("lexical", 10))
    assert archive.waiting("lexical") == 0
    assert archive.outbox("lexical", 10) == []
    assert archive.waiting("semantic") == 1


def test_the_outbox_keeps_a_message_requeued_unchanged_during_indexing(
    archive: Archive,
) -> None:
    put(archive, make(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "a")))
    taken = archive.outbox("lexical", 10)
    batch = archive.batch()
    batch.enqueue("msg_1", T0, (archive.state("msg_1") or {})["hash"])  # the session got another title
    archive.done(taken[:0])
    archive.commit(batch)
    archive.done(taken)
    assert archive.waiting("lexical") == 1 == len(archive.outbox("lexical", 10))


def test_the_outbox_count_is_right_when_emptied_before_a_commit(archive: Archive) -> None:
    put(archive, make(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "a")))
    batch = archive.batch()
    batch.enqueue("msg_1", T0, "another hash")
    archive.done(archive.outbox("semantic", 10))
    archive.commit(batch)
    assert archive.waiting("semantic") == 1
    archive.done(archive.outbox("semantic", 10))
    assert archive.waiting("semantic") == 0 == len(archive.outbox("semantic", 10))


def test_every_message_can_be_put_into_an_outbox_again_and_is_counted_once(archive: Archive) -> None:
    for number in range(7):
        put(archive, make(user(f"msg_{number}", "ses_1", T0 + number)))
    archive.done(archive.outbox("semantic", 4))
    assert archive.enqueue_all("semantic") == 7
    assert archive.waiting("semantic") == 7 == len(archive.outbox("semantic", 100))


def edit(path: str, time: int, part_id: str, **more: object) -> FileEdit:
    return FileEdit(path, time, "ses_1", "msg_1", part_id, "write", Operation.WRITE, content="x", **more)


def test_file_edits_are_in_time_order_and_a_newer_reading_replaces_them(archive: Archive) -> None:
    message = make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "a"))
    hunks = (("@@", ("a",), ("b",), True),)
    put(
        archive,
        message,
        edits=(edit("/p/b", 2, "prt_1"), edit("/p/a", 9, "prt_1"), edit("/p/a", 1, "prt_1", hunks=hunks)),
    )
    assert [e.time for e in archive.files.edits("/p/a")] == [1, 9]
    assert archive.files.edits("/p/a")[0] == edit("/p/a", 1, "prt_1", hunks=hunks)
    assert list(archive.paths("/p")) == ["/p/a", "/p/b"]
    more = make(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "ab"))
    put(archive, more, edits=(edit("/p/a", 9, "prt_1"),))
    assert list(archive.paths("/")) == ["/p/a"]


@pytest.mark.parametrize("path", ["/p", "/p/x y", "/p/ü:%", "/p/new\nline", "/"])
def test_a_path_finds_its_own_and_what_lies_beneath_but_no_neighbour(archive: Archive, path: str) -> None:
    base = path.rstrip("/")
    paths = [f"{base}/f", f"{base}/d/f", "/q/f", f"{base}2/f"]
    put(archive, make(assistant("msg_1", "ses_1")), edits=tuple(edit(p, n, "prt_1") for n, p in enumerate(paths)))
    expected = {p for p in paths if p.startswith(base + "/")}
    assert set(archive.paths(path)) == expected


def test_the_cache_forgets_on_time_and_its_sweep_leaves_nothing_behind(tmp_path: Path) -> None:
    now = [1_000_000]
    with Archive(tmp_path / "a", clock=lambda: now[0]) as archive:
        archive.cache_put("chat", "k", {"v": 1}, ttl_s=10)
        archive.cache_put("chat", "later", {"v": 2}, ttl_s=1000)
        assert archive.cache_get("chat", "k") == {"v": 1}
        now[0] += 11_000
        assert archive.cache_get("chat", "k") is None
        assert archive.sweep_cache() == 1
        assert archive.cache_get("chat", "later") == {"v": 2}


def test_vectors_come_back_exactly(archive: Archive) -> None:
    vector = np.random.default_rng(1).normal(size=384).astype(np.float32)
    archive.put_vectors("fp", [("a" * 64, vector)])
    stored = archive.vector("fp", "a" * 64)
    assert stored is not None
    assert np.array_equal(stored, vector)
    assert archive.vector("other", "a" * 64) is None


def test_the_newer_generation_of_a_session_wins_and_keeps_both_sources(archive: Archive) -> None:
    for source, generation, title in (("db", 2, "new"), ("json", 1, "old")):
        record = session("ses_1", title=title)
        batch = archive.batch()
        batch.session(Session("ses_1", "pid", "/p", title, T0, T0, records.dumps(record)), source, generation)
        archive.commit(batch)
    found = archive.session("ses_1")
    assert found is not None
    assert found.title == "new"
    assert (archive.session_state("ses_1") or {})["sources"] == ["db", "json"]


_HOLD = "import sys, time; from pathlib import Path; from daemon.archive import Archive; a = Archive(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"


def test_a_second_process_is_refused_and_the_lock_stays_with_the_first(
    tmp_path: Path,
) -> None:
    """The refusal names the process that holds the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "a")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        for _ in range(3):
            with pytest.raises(ArchiveLocked, match=f"pid {holder.pid}"):
                Archive(tmp_path / "a")
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    Archive(tmp_path / "a").close()


def test_opening_twice_in_one_process_is_refused_before_leveldb_sees_it(archive: Archive) -> None:
    for _ in range(2):
        with pytest.raises(ArchiveLocked):
            Archive(archive.directory)
    child = subprocess.run(
        [sys.executable, "-c", _HOLD.replace("60", "0"), str(archive.directory)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert "ArchiveLocked" in child.stderr


def test_the_archive_is_private(archive: Archive) -> None:
    assert archive.directory.stat().st_mode & 0o777 == 0o700
    assert (archive.directory / "daemon.lock").stat().st_mode & 0o777 == 0o600


_NO_ROOM = """
import resource, signal, sys
from pathlib import Path
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
store.write({b"a": b"1"})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    store.write({b"b": b"x" * 100_000})
except ArchiveCorrupt as error:
    print(error)
store.close()
"""

_NOT_ALLOWED = """
import os, sys
from pathlib import Path
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt
place = Path(sys.argv[1])
Store(place).close()
os.chmod(place / "leveldb", 0o500)
if os.geteuid() == 0:
    for folder in (place, *place.parents):
        if folder.stat().st_mode & 0o001 == 0:
            os.chmod(folder, folder.stat().st_mode | 0o055)
    for file in (place / "daemon.lock", place):
        os.chown(file, 65534, 65534)
    os.seteuid(65534)
try:
    Store(place)
except ArchiveCorrupt as error:
    print(error)
"""


def _said(code: str, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    return done.stdout


def test_no_room_for_a_write_asks_for_room_and_never_to_move_the_archive(tmp_path: Path) -> None:
    said = _said(_NO_ROOM, tmp_path / "a")
    assert said.startswith(f"{tmp_path}/a/leveldb: the archive cannot be written: ")
    assert "free some space" in said
    assert "aside" not in said
    with Archive(tmp_path / "a") as opened:
        assert opened.figures()["messages"] == 0


def test_a_database_without_permission_asks_for_permissions_not_for_moving(tmp_path: Path) -> None:
    said = _said(_NOT_ALLOWED, tmp_path / "a")
    assert said.startswith(f"{tmp_path}/a/leveldb: LevelDB cannot open it: ")
    assert "Permission denied" in said
    assert "check owner and permissions" in said
    assert "aside" not in said


def test_a_damaged_database_is_to_be_moved_aside_whole(tmp_path: Path) -> None:
    Archive(tmp_path / "a").close()
    (tmp_path / "a" / "leveldb" / "CURRENT").write_text("nonsense\n")
    with pytest.raises(ArchiveCorrupt, match="move the archive's directory aside, then restore"):
        Archive(tmp_path / "a")


def test_a_failed_lock_gives_its_reason_and_never_suggests_moving(tmp_path: Path) -> None:
    (tmp_path / "a" / "daemon.lock").mkdir(parents=True)
    with pytest.raises(ArchiveCorrupt, match=r"lock cannot be taken: .*directory.*; see to the disk"):
        Archive(tmp_path / "a")


def test_an_archive_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    Archive(tmp_path / "a").close()
    raw = store.plyvel.DB(str(tmp_path / "a" / "leveldb"))  # type: ignore[attr-defined]
    raw.put(b"meta:schema", b"99")
    raw.close()
    with pytest.raises(ArchiveCorrupt, match="schema 99"):
        Archive(tmp_path / "a")
    with pytest.raises(ArchiveCorrupt):
        Archive(tmp_path / "a")


def everything(directory: Path) -> dict[str, object]:
    with Archive(directory) as archive:
        ids = list(archive.all_message_ids())
        whole: dict[str, object] = {message_id: archive.message(message_id) for message_id in ids}
        whole["figures"] = {name: archive.figures()[name] for name in ("messages", "parts")}
        whole["order"] = archive.message_ids("ses_1")
    return whole


def test_a_flipped_bit_is_noticed_or_harmless_but_never_silent(tmp_path: Path) -> None:
    with Archive(tmp_path / "good") as archive:
        for number in range(150):
            noise = random.Random(number).randbytes(400).hex()
            put(
                archive,
                make(
                    user(f"msg_{number:03}", "ses_1", T0 + number),
                    text(f"prt_{number}", f"msg_{number:03}", "ses_1", noise),
                ),
            )
    Archive(tmp_path / "good").close()  # moves the log into tables
    truth = everything(tmp_path / "good")
    # Of the log, where LevelDB had not emptied it yet, the end may be lost: it looks like a commit that was cut off (L2).
    files = sorted(path for path in (tmp_path / "good" / "leveldb").iterdir() if path.suffix == ".ldb")
    dice = random.Random(7)
    noticed = 0
    for number in range(60):
        shutil.copytree(tmp_path / "good", tmp_path / f"bad{number}")
        victim = tmp_path / f"bad{number}" / "leveldb" / dice.choice(files).name
        raw = bytearray(victim.read_bytes())
        if raw:
            # Half of them behind the records, where a table's index is, and where its filter would be.
            place = dice.randrange(len(raw)) if number % 2 else max(0, len(raw) - 1 - dice.randrange(4096))
            raw[place] ^= 1 << dice.randrange(8)
            victim.write_bytes(raw)
        try:
            assert everything(tmp_path / f"bad{number}") == truth
        except ArchiveCorrupt:
            noticed += 1
        shutil.rmtree(tmp_path / f"bad{number}")
    assert noticed > 10


_WRITER = """
import sys
from pathlib import Path
from daemon.archive import Archive
from tests.unit.archive.test_archive import make, put
from tests.support.stores.make_opencode import user, text
with Archive(Path(sys.argv[1])) as archive:
    for number in range(int(sys.argv[2]), 100000):
        put(archive, make(user(f"msg_{number:06}", "ses_1", number), text(f"prt_{number}", f"msg_{number:06}", "ses_1", "x" * 300)))
        print(number, flush=True)
"""


def test_kill_9_loses_no_acknowledged_commit_and_tears_none(tmp_path: Path) -> None:
    start = 0
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "a"), str(start)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        assert writer.stdout is not None
        acknowledged = start - 1
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged >= start + 20:
                os.kill(writer.pid, signal.SIGKILL)
                break
        writer.wait()
        writer.stdout.close()
        with Archive(tmp_path / "a") as archive:
            ids = archive.message_ids("ses_1")
            assert len(ids) > acknowledged
            assert ids == [f"msg_{number:06}" for number in range(len(ids))]
            assert archive.figures()["messages"] == archive.figures()["parts"] == len(ids)
            assert archive.waiting("lexical") == len(ids)
            assert all(archive.message(message_id) is not None for message_id in ids)
            start = len(ids)


def test_closing_while_threads_read_does_not_end_the_process(tmp_path: Path):
    """LevelDB takes no care of readers: one that is in a read when it is closed takes the process with it."""
    code = """
import sys, threading, time
from pathlib import Path
from daemon.archive.store import Store

place = Path(sys.argv[1])
store = Store(place)
store.write({b"k%d" % n: bytes(300_000) for n in range(60)})
store.close()
sys.setswitchinterval(1e-6)
for _ in range(20):
    store = Store(place)
    started = threading.Barrier(9)

    def read():
        started.wait()
        try:
            while True:
                for n in range(60):
                    store.get(b"k%d" % n)
        except RuntimeError:
            pass  # it is closed now

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    started.wait()
    time.sleep(0.002)
    store.close()
    for thread in threads:
        thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_of_messages_that_are_not_legible_only_changes_are_written_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Archive(tmp_path / "unread") as archive:
        archive.put_unread("new", {"m1": True, "m2": True, "m3": False})
        assert archive.unread("new") == 2
        archive.put_unread("old", {"m4": True})
        assert (archive.unread("old"), archive.unread("new")) == (1, 2)

        def refuse(*_asked: object) -> None:
            raise AssertionError("not needed")

        with monkeypatch.context() as patch:
            patch.setattr(type(archive._store), "scan", refuse)
            archive.put_unread("new", {"m1": False, "m4": True, "m5": True})
            assert archive.unread("new") == 3
            patch.setattr(Archive, "commit", refuse)
            archive.put_unread("new", {"m1": False, "m2": True, "m3": False, "m5": True, "m6": False})
            assert archive.unread("new") == 3
        assert archive.unread("old") == 0
        assert archive.unread("new") == 3
