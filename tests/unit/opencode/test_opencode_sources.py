"""Every store OpenCode has had, read as it stands: all messages, all parts, and nothing concluded from a torn file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRecord, SourceBusy, SourceMissing, Unreadable
from daemon.model import Message
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.discover import Sources
from daemon.opencode.json_tree import JsonTree
from tests.conftest import Sample
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, assistant, session, text, tool, user

pytestmark = pytest.mark.on_disk


def read_all(source: Source) -> dict[str, Message]:
    found = {}
    for session_id in source.sessions():
        for message_id in source.messages(session_id):
            message = source.read_message(session_id, message_id).message
            if message is not None:
                found[message_id] = message
    return found


def test_each_sample_gives_every_record_that_its_store_holds(any_sample: Sample) -> None:
    sources = Sources(any_sample.data_dir, 64)
    for source in sources.refresh():
        parts = {part.id for message in read_all(source).values() for part in message.parts}
        if isinstance(source, JsonTree):
            assert parts == {path.stem for path in (any_sample.data_dir / "storage" / "part").glob("*/*.json")}
        else:
            journaled = "SELECT json_extract(data, '$.part.id') FROM event WHERE type = 'message.part.updated.1'"
            with closing(sqlite3.connect(f"file:{any_sample.data_dir / 'opencode.db'}?mode=ro", uri=True)) as rows:
                assert parts == {id_ for (id_,) in rows.execute(f"SELECT id FROM part UNION {journaled}")}
    assert sources.troubles == {}
    sources.close()


def test_reading_leaves_every_byte_of_the_data_directory_as_it_was(sample: Callable[[str], Sample]) -> None:
    data_dir = sample("sqlite").data_dir
    before = {
        path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file() and not path.name.endswith("-shm")
    }
    sources = Sources(data_dir, 64)
    for source in sources.refresh():
        read_all(source)
    sources.close()
    after = {
        path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file() and not path.name.endswith("-shm")
    }
    assert after == before


def test_a_record_is_kept_byte_for_byte(sample: Callable[[str], Sample]) -> None:
    json_dir = sample("json").data_dir
    tree = JsonTree(json_dir / "storage")
    message = next(iter(read_all(tree).values()))
    path = json_dir / "storage" / "message" / message.session_id / f"{message.id}.json"
    assert message.raw == path.read_bytes()
    sqlite_dir = sample("sqlite").data_dir
    source = DatabaseSource(Connection(sqlite_dir / "opencode.db"))
    message = next(m for m in read_all(source).values() if m.parts)
    connection = sqlite3.connect(f"file:{sqlite_dir / 'opencode.db'}?mode=ro", uri=True)
    for part in message.parts:
        (data,) = connection.execute("SELECT data FROM part WHERE id = ?", (part.id,)).fetchone()
        assert part.raw.endswith(data.encode()[1:])
        assert json.loads(part.raw)["id"] == part.id
    source.close()


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_a_torn_young_file_is_being_written_and_hides_nothing_else(tmp_path: Path, cut: int) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "whole"))
    store.message(assistant("msg_2", "ses_1"), text("prt_2", "msg_2", "ses_1", "torn"))
    path = store.storage / "part" / "msg_2" / "prt_2.json"
    path.write_bytes(path.read_bytes()[:cut])
    tree = JsonTree(store.storage)
    assert tree.read_message("ses_1", "msg_1").message is not None
    with pytest.raises(SourceBusy):
        tree.read_message("ses_1", "msg_2")


def test_a_torn_file_is_set_aside_with_details_and_its_siblings_are_read(
    tmp_path: Path,
) -> None:
    """The problem gives the reason, the size and the hash of the file."""
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(
        assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"), text("prt_2", "msg_1", "ses_1", "bad")
    )
    path = store.storage / "part" / "msg_1" / "prt_2.json"
    path.write_bytes(path.read_bytes() + b'text of an older, longer version"}')
    os.utime(path, (1, 1))
    reading = JsonTree(store.storage).read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert [part.id for part in reading.message.parts] == ["prt_1"]
    (problem,) = reading.problems
    assert str(path) in problem.place
    assert "not JSON" in problem.reason
    assert problem.size == path.stat().st_size
    assert len(problem.sha256) == 64


@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "huge"])
def test_what_is_no_record_file_is_refused_without_following_or_waiting(tmp_path: Path, kind: str) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    path = store.storage / "part" / "msg_1" / "prt_2.json"
    if kind == "link":
        secret = tmp_path / "secret.json"
        secret.write_text(json.dumps(text("prt_2", "msg_1", "ses_1", "private")))
        path.symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(3 << 20)
    reading = JsonTree(store.storage, record_mb=2).read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert [part.id for part in reading.message.parts] == ["prt_1"]
    assert len(reading.problems) == 1


def test_sessions_without_a_project_or_record_are_found_by_their_messages(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    path = {"path": {"cwd": "/home/dev/lost", "root": "/home/dev/lost"}}
    store.message(assistant("msg_1", "ses_lost", **path), text("prt_1", "msg_1", "ses_lost", "still here"))
    tree = JsonTree(store.storage)
    assert list(tree.sessions()) == ["ses_lost"]
    assert tree.read_session("ses_lost").directory == "/home/dev/lost"


def test_parts_of_a_reverted_message_are_an_orphan_of_their_session(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    state = {
        "status": "completed",
        "input": {"filePath": "/p/f", "content": "x"},
        "output": "",
        "time": {"start": 1, "end": 2},
    }
    store.message(
        assistant("msg_1fc13507f001aaaaaaaaaaaaaa", "ses_1"),
        tool("prt_1", "msg_1fc13507f001aaaaaaaaaaaaaa", "ses_1", "write", state),
    )
    store.drop_message("ses_1", "msg_1fc13507f001aaaaaaaaaaaaaa")
    tree = JsonTree(store.storage)
    tree.sessions()
    reading = tree.read_message("ses_1", "msg_1fc13507f001aaaaaaaaaaaaaa")
    assert reading.orphan
    assert reading.message is not None
    assert reading.message.role == "assistant"
    assert reading.message.parts[0].data["state"]["input"]["content"] == "x"


def test_a_hint_touches_the_session_it_belongs_to_and_only_that(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    for number in (1, 2):
        store.session(session(f"ses_{number}"))
        store.message(
            user(f"msg_{number}", f"ses_{number}"), text(f"prt_{number}", f"msg_{number}", f"ses_{number}", "hello")
        )
    tree = JsonTree(store.storage)
    assert tree.touched() is None
    tree.hint(str(store.storage / "part" / "msg_2" / "prt_2.json"))
    assert set(tree.touched() or ()) == {"ses_2"}
    assert set(tree.touched() or ()) == set()
    tree.hint(str(store.storage / "message" / "ses_1" / "msg_1.json"))
    assert set(tree.touched() or ()) == {"ses_1"}


def test_a_vanished_tree_or_database_concludes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        JsonTree(tmp_path / "none").sessions()
    with pytest.raises(SourceMissing):
        DatabaseSource(Connection(tmp_path / "none.db")).sessions()


class Clock:
    """Seconds, which pass as told."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def passes(self, seconds: float) -> None:
        self._now_s += seconds

    def __call__(self) -> float:
        return self._now_s


A_WHILE = 5.0
"""Seconds after which a database is looked at again."""


def test_a_database_says_what_was_touched_by_inserts_and_in_place_updates(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    for number in (1, 2):
        database.session(session(f"ses_{number}"))
        database.message(
            user(f"msg_{number}", f"ses_{number}"), text(f"prt_{number}", f"msg_{number}", f"ses_{number}", "hi")
        )
    now = Clock()
    source = DatabaseSource(Connection(database.path), clock=now)
    assert source.touched() is None
    assert source.touched() == ()
    database.part(text("prt_3", "msg_2", "ses_2", "new"))
    assert "ses_2" in set(source.touched() or ())
    before = source.messages("ses_2")["msg_2"].stamp
    now.passes(A_WHILE)
    database.part(text("prt_3", "msg_2", "ses_2", "newer"))
    assert "ses_2" in set(source.touched() or ())
    assert source.messages("ses_2")["msg_2"].stamp != before
    source.close()
    database.close()


def told_again(path: Path, first: int) -> tuple[Database, DatabaseSource, Clock]:
    """A database of two sessions with `first` messages each, the last of session 1, looked at a while ago."""
    database = Database(path)
    for number in (2, 1):
        database.session(session(f"ses_{number}"))
        for place in range(first):
            ids = f"msg_{number}_{place}", f"ses_{number}"
            database.message(user(*ids), text(f"prt_{number}_{place}", *ids, "hi"))
    now = Clock()
    source = DatabaseSource(Connection(database.path), clock=now)
    assert source.touched() is None
    assert source.touched() == ()
    now.passes(2000)  # no session was changed a moment ago
    database.session(session("ses_3"))
    assert source.touched() == ["ses_3"]
    now.passes(A_WHILE)
    return database, source, now


def forget(database: Database, message_id: str) -> None:
    """Without a line in the journal, as older versions did and as a tool of the user's may."""
    database.execute("DELETE FROM part WHERE message_id = ?", message_id)
    database.execute("DELETE FROM message WHERE id = ?", message_id)


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen before", "not seen before"])
@pytest.mark.parametrize("gone", [1, 3])
def test_a_message_that_takes_the_row_of_a_removed_one_is_found_at_once(
    tmp_path: Path, gone: int, *, is_seen: bool
) -> None:
    database, source, now = told_again(tmp_path / "opencode.db", 3)
    for place in range(gone):
        forget(database, f"msg_1_{2 - place}")
    if is_seen:
        assert source.touched() is None
    database.message(user("msg_new", "ses_2"), text("prt_new", "msg_new", "ses_2", "new"))
    touched = source.touched()
    assert touched is None if not is_seen else "ses_2" in touched
    now.passes(A_WHILE)
    database.part(text("prt_new", "msg_new", "ses_2", "newer"))
    assert "ses_2" in set(source.touched() or ())
    source.close()
    database.close()


REMOVALS = {
    "the newest message": "DELETE FROM message WHERE id = 'msg_1_2'",
    "an older message": "DELETE FROM message WHERE id = 'msg_2_0'",
    "all messages": "DELETE FROM message",
    "the newest part": "DELETE FROM part WHERE id = 'prt_1_2'",
    "a session": "DELETE FROM session WHERE id = 'ses_1'",
}


@pytest.mark.parametrize("name", REMOVALS)
def test_rows_that_go_without_a_line_in_the_journal_make_us_look_at_all(tmp_path: Path, name: str) -> None:
    database, source, _ = told_again(tmp_path / "opencode.db", 3)
    database.execute(REMOVALS[name])
    assert source.touched() is None
    assert source.touched() == ()
    database.session(session("ses_3"))
    assert "ses_3" in set(source.touched() or ())
    source.close()
    database.close()


def test_a_text_that_is_being_written_is_looked_at_now_and_then(tmp_path: Path) -> None:
    database, source, now = told_again(tmp_path / "opencode.db", 3)
    database.message(user("msg_new", "ses_1"), text("prt_new", "msg_new", "ses_1", "A"))
    looks = [now() for _ in range(300) if rewritten(database, source, now, 0.05)]
    assert 5 <= len(looks) <= 10, "15 seconds, and no session is read more often than every two"
    database.part(text("prt_new", "msg_new", "ses_1", "the end"))
    assert source.touched() == []
    assert source.touched() == ()
    now.passes(0.5)
    assert set(source.touched() or ()) == {"ses_1", "ses_3"}, "looked at once it stands still"
    assert source.touched() == ()
    source.close()
    database.close()


def rewritten(database: Database, source: DatabaseSource, now: Clock, seconds: float) -> bool:
    now.passes(seconds)
    database.part(text("prt_new", "msg_new", "ses_1", f"until {now()}"))
    return "ses_1" in set(source.touched() or ())


MOMENTS: dict[str, Callable[[Database], object]] = {
    "a new message": lambda database: database.message(user("msg_later", "ses_1")),
    "a new part": lambda database: database.part(text("prt_later", "msg_new", "ses_1", "later")),
    "the message's own row": lambda database: database.message(user("msg_new", "ses_1")),
    "the session's own row": lambda database: database.session(session("ses_1", title="Another")),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_what_happens_while_a_text_is_being_written_is_found_at_once(tmp_path: Path, name: str) -> None:
    database, source, now = told_again(tmp_path / "opencode.db", 3)
    database.message(user("msg_new", "ses_1"), text("prt_new", "msg_new", "ses_1", "A"))
    assert rewritten(database, source, now, 0.0)
    assert not rewritten(database, source, now, 0.05)
    MOMENTS[name](database)
    assert source.touched() == ["ses_1"]
    assert not rewritten(database, source, now, 0.05)
    source.close()
    database.close()


_WRITES: dict[str, Callable[[Database, int, int], object]] = {
    "a message": lambda database, it, ses: database.message(user(f"msg_{ses}_{it}", f"ses_{ses}")),
    "a part": lambda database, it, ses: database.part(text(f"prt_{ses}_{it}", f"msg_{ses}_0", f"ses_{ses}", f"{it}")),
    "in place": lambda database, it, ses: database.part(text(f"prt_{ses}_0", f"msg_{ses}_0", f"ses_{ses}", f"{it}")),
    "the session": lambda database, it, ses: database.session(session(f"ses_{ses}", title=f"Title {it}")),
}


_PAUSES = st.sampled_from([0.0, 0.01, 0.3, 1.0, 9.0])


@given(st.lists(st.tuples(st.sampled_from(sorted(_WRITES)), st.integers(0, 2), _PAUSES), max_size=40))
def test_whatever_is_written_into_an_active_session_is_reported_after_a_while(writes):
    now = Clock()
    with TemporaryDirectory() as folder, closing(Database(Path(folder) / "opencode.db")) as database:
        for ses in range(3):
            database.session(session(f"ses_{ses}"))
            ids = f"msg_{ses}_0", f"ses_{ses}"
            database.message(user(*ids), text(f"prt_{ses}_0", *ids, "hi"))
        with closing(DatabaseSource(Connection(database.path), clock=now)) as source:
            assert source.touched() is None
            read = {name: listed(source, name) for name in ("ses_0", "ses_1", "ses_2")}
            for number, (kind, ses, pause_s) in enumerate([*writes, ("a part", 0, A_WHILE)]):
                read |= {name: listed(source, name) for name in source.touched() or ()}
                _WRITES[kind](database, number + 1, ses)
                now.passes(pause_s)
            read |= {name: listed(source, name) for name in source.touched() or ()}
            assert read == {name: listed(source, name) for name in ("ses_0", "ses_1", "ses_2")}


def listed(source: DatabaseSource, session_id: str) -> object:
    return source.read_session(session_id), source.messages(session_id)


def test_a_session_that_goes_while_another_one_is_active_makes_us_look_at_all(tmp_path: Path) -> None:
    """A session's events go with it, so the journal says nothing of its end; a new one may take its place."""
    for is_replaced in (False, True):
        database = Database(tmp_path / str(is_replaced) / "opencode.db")
        for number in (1, 2):
            database.session(session(f"ses_{number}"))
            database.event(f"ses_{number}", "message.updated.1", {})
        now = Clock()
        source = DatabaseSource(Connection(database.path), clock=now)
        assert source.touched() is None
        for table, column in (("session", "id"), ("event", "aggregate_id"), ("event_sequence", "aggregate_id")):
            database.execute(f"DELETE FROM {table} WHERE {column} = 'ses_1'")
        if is_replaced:
            database.session(session("ses_3"))
        found = []
        for _ in range(60):
            database.event("ses_2", "message.updated.1", {})
            found.append(source.touched() is None)
            now.passes(0.1)
        assert sum(found) in {1, 2}
        source.close()
        database.close()


def test_a_lock_does_not_make_every_session_an_active_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, source, now = told_again(tmp_path / "opencode.db", 3)
    for number in (1, 2):
        database.event(f"ses_{number}", "message.updated.1", {})
    assert set(source.touched() or ()) == {"ses_1", "ses_2", "ses_3"}
    now.passes(2000)
    database.event("ses_2", "message.updated.1", {})
    with monkeypatch.context() as locked:
        rows = source._changes._connection.rows

        def busy(sql: str, arguments: Sequence[object] = ()) -> list[tuple[object, ...]]:
            if "event_sequence" in sql:
                raise SourceBusy("locked")
            return rows(sql, arguments)

        locked.setattr(source._changes._connection, "rows", busy)
        with pytest.raises(SourceBusy):
            source.touched()
    assert set(source.touched() or ()) == {"ses_2", "ses_3"}
    source.close()
    database.close()


def test_damage_is_looked_at_again_only_when_something_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, source, now = told_again(tmp_path / "opencode.db", 3)
    database.message(user("msg_new", "ses_1"), text("prt_new", "msg_new", "ses_1", "A"))
    assert rewritten(database, source, now, 0.0)
    assert not rewritten(database, source, now, 0.05)
    refused = Unreadable("damaged")
    monkeypatch.setattr(source._changes, "_fewer", lambda: (_ for _ in ()).throw(refused))
    now.passes(A_WHILE)
    assert source.touched() is None
    now.passes(A_WHILE)
    assert [source.touched() for _ in range(3)] == [(), (), ()]
    source.close()
    database.close()


def test_counting_that_was_held_up_delays_the_next_look_by_half_a_minute_at_most(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.message(user("msg_1", "ses_1"))
    now = Clock()
    source = DatabaseSource(Connection(database.path), clock=now)
    assert source.touched() is None
    counted = source._changes._connection.rows

    def slow(sql: str, arguments: Sequence[object] = ()) -> list[tuple[object, ...]]:
        now.passes(60.0 if "count" in sql else 0.0)
        return counted(sql, arguments)

    source._changes._connection.rows = slow  # type: ignore[method-assign]
    database.part(text("prt_1", "msg_1", "ses_1", "A"))
    assert source.touched() is not None
    now.passes(31.0)
    database.part(text("prt_1", "msg_1", "ses_1", "B"))
    assert source.touched() == ["ses_1"]
    source.close()
    database.close()


def test_rows_whose_counting_takes_long_are_counted_less_often(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    for number in (1, 2):
        database.message(user(f"msg_{number}", f"ses_{number}"))
    now = count()  # each look at the clock takes a second, and so does counting
    source = DatabaseSource(Connection(database.path), clock=lambda: float(next(now)))
    assert source.touched() is None
    database.execute("DELETE FROM message WHERE id = 'msg_1'")
    found = 0
    while source.touched() is not None:
        database.part(text("prt_2", "msg_2", "ses_2", f"changed {found}"))
        found += 1
    assert found > 10
    assert source.touched() is not None
    source.close()
    database.close()


def test_a_session_that_is_not_the_only_one_of_its_moment_is_found(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    now = Clock()
    source = DatabaseSource(Connection(database.path), clock=now)
    assert source.touched() is None
    for number in (1, 2, 3):
        now.passes(1000)
        database.now = T0  # all in the same millisecond
        database.session(session(f"ses_{number}"))
        assert f"ses_{number}" in set(source.touched() or ())
    database.message(user("msg_1", "ses_1"))
    assert source.touched() == ["ses_1"]
    source.close()
    database.close()


def test_a_change_in_the_journal_rescans_only_its_session(tmp_path: Path) -> None:
    database, source, _ = told_again(tmp_path / "opencode.db", 3)
    database.remove_message("ses_1", "msg_1_2")
    touched = source.touched()
    assert touched is not None
    assert "ses_1" in touched
    database.message(user("msg_new", "ses_2"))
    assert "ses_2" in set(source.touched() or ())
    source.close()
    database.close()


def test_our_reading_does_not_stop_the_writer_from_checkpointing(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    source = DatabaseSource(Connection(database.path))
    for number in range(50):
        database.message(user(f"msg_{number}", "ses_1"), text(f"prt_{number}", f"msg_{number}", "ses_1", "x" * 500))
        read_all(source)
    busy, _, _ = database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
    source.close()
    database.close()


def test_a_replaced_database_file_is_opened_anew(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_old"))
    source = DatabaseSource(Connection(database.path))
    assert list(source.sessions()) == ["ses_old"]
    source.touched()
    database.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{database.path}{suffix}").unlink(missing_ok=True)
    again = Database(tmp_path / "opencode.db")
    again.session(session("ses_new"))
    assert source.touched() is None
    assert list(source.sessions()) == ["ses_new"]
    source.close()
    again.close()


def test_a_changed_row_is_noticed_without_an_update_time(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "old"))
    for table in ("message", "part"):
        database.execute(f"ALTER TABLE {table} DROP COLUMN time_updated")
    source = DatabaseSource(Connection(database.path))
    before = source.messages("ses_1")["msg_1"]
    assert source.messages("ses_1")["msg_1"] == before
    database.execute("UPDATE part SET data = replace(data, 'old', 'new')")
    assert source.messages("ses_1")["msg_1"].stamp != before.stamp
    source.close()
    database.close()


def test_a_table_without_a_column_we_need_is_named_as_an_unknown_layout(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.execute("ALTER TABLE part RENAME COLUMN message_id TO owner_id")
    source = DatabaseSource(Connection(database.path))
    with pytest.raises(SourceMissing, match=r"message_id.*not those of an OpenCode"):
        source.messages("ses_1")
    source.close()
    database.close()


def test_a_row_that_is_no_json_is_set_aside_and_the_others_are_read(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    database.message(
        user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"), text("prt_2", "msg_1", "ses_1", "bad")
    )
    database.execute("UPDATE part SET data = ? WHERE id = 'prt_2'", "\0\0\0")
    source = DatabaseSource(Connection(database.path))
    reading = source.read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert [part.id for part in reading.message.parts] == ["prt_1"]
    assert "prt_2" in reading.problems[0].place
    source.close()
    database.close()


def test_a_session_record_that_is_no_json_is_named(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    path = store.raw("session/pid/ses_1.json", "{")
    os.utime(path, (1, 1))
    with pytest.raises(BadRecord, match=r"ses_1\.json"):
        JsonTree(store.storage).read_session("ses_1")


def test_every_database_of_every_channel_and_the_tree_are_found_together(tmp_path: Path) -> None:
    JsonStore(tmp_path).session(session("ses_json"))
    for name in ("opencode.db", "opencode-nightly.db"):
        database = Database(tmp_path / name)
        database.session(session(f"ses_{name}"))
        database.close()
    newer = Database2(tmp_path / "opencode.db")
    newer.session("ses_2")
    newer.close()
    sources = Sources(tmp_path, 64)
    kinds = [(source.generation, source.name.rsplit("/", 1)[1]) for source in sources.refresh()]
    assert kinds == [(1, "storage"), (2, "opencode-nightly.db"), (2, "opencode.db"), (3, "opencode.db")]
    sources.close()


def test_an_unknown_layout_is_named_with_what_is_there(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "opencode.db")
    connection.execute("CREATE TABLE conversation (id text)")
    connection.commit()
    connection.close()
    sources = Sources(tmp_path, 64)
    assert sources.refresh() == []
    (trouble,) = sources.troubles.values()
    assert "unknown layout" in trouble
    assert "conversation" in trouble
    sources.close()


def test_a_file_that_is_no_database_is_a_trouble_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_text("this is not SQLite" * 100)
    JsonStore(tmp_path).session(session("ses_json"))
    sources = Sources(tmp_path, 64)
    assert [source.generation for source in sources.refresh()] == [1]
    assert "not a database" in next(iter(sources.troubles.values()))
    sources.close()


def test_opencode_2_rows_become_the_same_messages_and_parts(tmp_path: Path) -> None:
    store = Database2(tmp_path / "opencode.db")
    store.session("ses_1", title=None)
    store.message(
        "msg_1",
        "ses_1",
        "user",
        1,
        {"text": "make it so", "files": [{"uri": "file:///p/a.txt", "name": "a.txt", "mime": "text/plain"}]},
    )
    content = [
        {"type": "reasoning", "text": "thinking about it"},
        {"type": "text", "text": "done"},
        {"type": "tool", "id": "call_1", "name": "write", "time": {"created": 1, "ran": 2, "completed": 3},
         "state": {"status": "completed", "input": {"path": "/p/f", "content": "x"}, "content": [{"type": "text", "text": "wrote it"}], "metadata": {"files": []}}},
        {"type": "tool", "id": "call_2", "name": "bash", "time": {"created": 4},
         "state": {"status": "error", "input": {"command": "false"}, "error": {"message": "exit 1"}}},
        {"type": "hologram", "frames": 3},
    ]  # fmt: skip
    store.message(
        "msg_2",
        "ses_1",
        "assistant",
        2,
        {"agent": "build", "model": {"id": "m", "providerID": "p"}, "content": content, "finish": "stop"},
    )
    store.message(
        "msg_3",
        "ses_1",
        "shell",
        3,
        {"shellID": "s", "command": "ls", "status": "completed", "exit": 0, "output": "a b"},
    )
    store.message("msg_4", "ses_1", "idle", 4, {"outcome": "done"})
    (source,) = [s for s in Sources(tmp_path, 64).refresh() if s.generation == 3]
    messages = read_all(source)
    assert [m.role for m in messages.values()] == ["user", "assistant", "user"]
    assert [p.type for p in messages["msg_2"].parts] == ["reasoning", "text", "tool", "tool", "hologram", "step-finish"]
    write, failed = messages["msg_2"].parts[2:4]
    assert write.data["state"] == {
        "status": "completed", "input": {"path": "/p/f", "content": "x"}, "output": "wrote it", "metadata": {"files": []}, "time": {"start": 2, "end": 3},
    }  # fmt: skip
    assert failed.data["state"]["error"] == "exit 1"
    assert messages["msg_3"].parts[0].data["state"]["output"] == "a b"
    assert messages["msg_2"].data["v2"]["content"] == content
    assert messages["msg_2"].is_complete
    source.close()
    store.close()


def test_a_database_that_is_being_created_is_left_alone(tmp_path: Path) -> None:
    """OpenCode makes an empty file and switches it to WAL; with a reader's lock on the file it would fail to start."""
    path = tmp_path / "opencode.db"
    path.touch()
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as writer:
        reader = Connection(path)
        with pytest.raises(SourceBusy, match="just creating it"):
            reader.rows("SELECT 1 FROM sqlite_master")
        writer.execute("BEGIN EXCLUSIVE")  # no lock of ours is in the way
        writer.execute("ROLLBACK")
        assert writer.execute("PRAGMA journal_mode=WAL").fetchall() == [("wal",)]
        writer.execute("CREATE TABLE message (id TEXT)")
        assert reader.tables() == ["message"]
        reader.close()
