"""What a revert removed is read from the journal, each record in its last version, and nothing else is changed by it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.archive import Archive
from daemon.opencode import Problem, RevertMark
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.journal import Journal, RemovedRows
from daemon.opencode.json_tree import JsonTree
from tests.conftest import Sample
from tests.support.examples import examples
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, tool, user

pytestmark = pytest.mark.on_disk

WRITTEN = {"status": "completed", "input": {"filePath": "/p/f", "content": "x"}, "output": "", "time": {"start": T0, "end": T0 + 2}}  # fmt: skip
RUNNING = {"status": "running", "input": {"filePath": "/p/f"}, "time": {"start": T0}}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "opencode.db")
    made.session(session("ses_1"))
    yield made
    made.close()


@pytest.fixture
def source(database: Database) -> Iterator[DatabaseSource]:
    opened = DatabaseSource(Connection(database.path), record_mb=1)
    yield opened
    opened.close()


def reverted(message_id: str, part_id: str | None = None, snapshot: str = "tree") -> dict[str, Any]:
    """The data of a session.updated event with this revert; without a message, with none."""
    revert = {"messageID": message_id, "snapshot": snapshot, "diff": "…"} | ({"partID": part_id} if part_id else {})
    info = session("ses_1") | ({"revert": revert} if message_id else {})
    return {"sessionID": "ses_1", "info": info}


# -- messages and parts --------------------------------------------------------------------------------------------


def test_the_sample_gives_back_the_four_messages_that_its_revert_removed(sample: Callable[[str], Sample]) -> None:
    path = sample("sqlite").data_dir / "opencode.db"
    source = DatabaseSource(Connection(path))
    readings = {
        message_id: source.read_message(session_id, message_id)
        for session_id in source.sessions()
        for message_id in source.messages(session_id)
    }
    source.close()
    removed = {message_id: reading.message for message_id, reading in readings.items() if reading.orphan}
    assert len(readings) == 154
    assert not any(reading.problems for reading in readings.values())
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as rows:
        assert readings.keys() - removed.keys() == {id_ for (id_,) in rows.execute("SELECT id FROM message")}
    assert [len(message.parts) for message in removed.values() if message] == [1, 4, 4, 3]
    calls = [part.data for message in removed.values() if message for part in message.parts if part.type == "tool"]
    assert [(call["tool"], call["state"]["status"]) for call in calls] == [
        ("edit", "completed"),
        ("write", "completed"),
    ]
    assert calls[1]["state"]["input"]["content"] == "EXTRA = 1\n"


def test_a_removed_message_is_an_orphan_with_its_last_version_and_parts(
    database: Database, source: DatabaseSource
) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "do it"))
    begun = assistant("msg_2", "ses_1", completed=None)
    database.journaled(begun, text("prt_2", "msg_2", "ses_1", ""), tool("prt_3", "msg_2", "ses_1", "write", RUNNING))
    database.journaled(
        assistant("msg_2", "ses_1", finish="stop"),
        text("prt_2", "msg_2", "ses_1", "I did – «it»"),
        tool("prt_3", "msg_2", "ses_1", "write", WRITTEN),
    )
    database.remove_message("ses_1", "msg_2")
    assert set(source.messages("ses_1")) == {"msg_1", "msg_2"}
    assert not source.read_message("ses_1", "msg_1").orphan
    reading = source.read_message("ses_1", "msg_2")
    assert reading.orphan
    assert reading.problems == ()
    assert reading.message is not None
    assert (reading.message.completed, reading.message.data["finish"]) == (T0 + 500, "stop")
    assert [part.data.get("text") for part in reading.message.parts] == ["I did – «it»", None]
    assert reading.message.parts[1].data["state"] == WRITTEN


def test_a_removed_record_is_byte_for_byte_what_the_journal_holds(sample: Callable[[str], Sample]) -> None:
    path = sample("sqlite").data_dir / "opencode.db"
    source = DatabaseSource(Connection(path))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as rows:
        events = [data for (data,) in rows.execute("SELECT data FROM event WHERE type LIKE 'message.%updated.1'")]
    compared = 0
    for session_id in source.sessions():
        for message_id in source.messages(session_id):
            reading = source.read_message(session_id, message_id)
            if reading.orphan and reading.message is not None:
                for raw in (reading.message.raw, *(part.raw for part in reading.message.parts)):
                    assert any(raw.decode() in data for data in events)
                    compared += 1
    source.close()
    assert compared == 4 + 12


def test_a_stamp_changes_exactly_when_the_journal_has_news(database: Database, source: DatabaseSource) -> None:
    for number in (1, 2, 3):
        part = text(f"prt_{number}", f"msg_{number}", "ses_1", "hello")
        database.journaled(user(f"msg_{number}", "ses_1"), part)
    before = source.messages("ses_1")
    database.remove_message("ses_1", "msg_2")
    after = source.messages("ses_1")
    assert {message_id for message_id in after if after[message_id] != before[message_id]} == {"msg_2"}
    assert after["msg_2"].changed > before["msg_2"].changed
    database.journaled(user("msg_4", "ses_1"))
    again = source.messages("ses_1")
    assert {message_id: again[message_id] for message_id in after} == after
    late = {"sessionID": "ses_1", "part": text("prt_2", "msg_2", "ses_1", "hello, again")}
    database.event("ses_1", "message.part.updated.1", late)
    assert source.messages("ses_1")["msg_2"].stamp != after["msg_2"].stamp
    message = source.read_message("ses_1", "msg_2").message
    assert message is not None
    assert message.parts[0].data["text"] == "hello, again"


def test_of_parts_removed_alone_only_completed_calls_come_back(database: Database, source: DatabaseSource) -> None:
    parts = (
        text("prt_1", "msg_1", "ses_1", "kept"),
        tool("prt_2", "msg_1", "ses_1", "write", WRITTEN),
        tool("prt_3", "msg_1", "ses_1", "write", RUNNING),
        text("prt_4", "msg_1", "ses_1", "dropped"),
        text("prt_5", "msg_1", "ses_1", "kept too"),
    )
    database.journaled(assistant("msg_1", "ses_1"), *parts)
    before = source.messages("ses_1")["msg_1"]
    for part_id in ("prt_2", "prt_3", "prt_4"):
        database.remove_part("ses_1", "msg_1", part_id)
    after = source.messages("ses_1")["msg_1"]
    assert after.stamp != before.stamp
    reading = source.read_message("ses_1", "msg_1")
    assert not reading.orphan
    assert reading.message is not None
    assert [part.id for part in reading.message.parts] == ["prt_1", "prt_2", "prt_5"]


def test_a_message_with_only_parts_in_the_journal_is_made_up_from_them(
    database: Database, source: DatabaseSource
) -> None:
    part = tool("prt_1", "msg_1fc13507f001aaaaaaaaaaaaaa", "ses_1", "write", WRITTEN)
    database.event("ses_1", "message.part.updated.1", {"sessionID": "ses_1", "part": part})
    database.remove_message("ses_1", "msg_1fc13507f001aaaaaaaaaaaaaa")
    database.remove_message("ses_1", "msg_nothing_is_left_of")
    assert list(source.messages("ses_1")) == ["msg_1fc13507f001aaaaaaaaaaaaaa"]
    reading = source.read_message("ses_1", "msg_1fc13507f001aaaaaaaaaaaaaa")
    assert reading.orphan
    assert reading.message is not None
    assert (reading.message.role, reading.message.created) == ("assistant", 1795230486655)


def test_a_rowless_message_counts_as_removed_only_when_it_is_old(database: Database, source: DatabaseSource) -> None:
    for message_id, at in (("msg_old", T0), ("msg_young", int(time.time() * 1000))):
        database.event("ses_1", "message.updated.1", {"info": user(message_id, "ses_1", at)}, at)
    assert list(source.messages("ses_1")) == ["msg_old"]


def test_a_message_that_moved_to_the_newer_table_is_not_removed(database: Database, source: DatabaseSource) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "moved"))
    database.execute("CREATE TABLE session_message (id text PRIMARY KEY, session_id text)")
    database.execute("INSERT INTO session_message VALUES ('msg_1', 'ses_1')")
    database.execute("DELETE FROM part")
    database.execute("DELETE FROM message")
    assert source.messages("ses_1") == {}


def test_a_session_that_was_deleted_with_its_events_leaves_nothing(database: Database, source: DatabaseSource) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    database.remove_message("ses_1", "msg_1")
    assert list(source.messages("ses_1")) == ["msg_1"]
    for table in ("event", "event_sequence", "session"):
        database.execute(f"DELETE FROM {table}")
    assert source.messages("ses_1") == {}


# -- damage, other versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["{", "\0\0", '"text"', json.dumps({"part": "x" * (2 << 20)})])
def test_an_unreadable_event_is_a_problem_and_the_rest_is_read(
    database: Database, source: DatabaseSource, bad: str
) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    seq = database.event("ses_1", "message.part.updated.1", bad)
    database.remove_message("ses_1", "msg_1")
    source.messages("ses_1")
    reading = source.read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert [part.data["text"] for part in reading.message.parts] == ["good"]
    if bad == '"text"':  # JSON, and tells of no part
        assert reading.problems == ()
    else:
        (problem,) = reading.problems
        assert f"event {seq} of ses_1" in problem.place
        assert ("not JSON" in problem.reason) is (len(bad) < 99)


def test_an_event_that_is_no_valid_text_stops_nothing(database: Database, source: DatabaseSource) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    for type_, name in (("message.updated.1", "info"), ("message.part.updated.1", "part")):
        seq = database.event("ses_1", type_, "{}")
        odd = (
            json.dumps({name: {"id": "@", "messageID": "msg_1", "sessionID": "ses_1"}}).encode().replace(b"@", b"\xff")
        )
        database.execute("UPDATE event SET data = CAST(? AS TEXT) WHERE seq = ?", odd, seq)
    database.remove_message("ses_1", "msg_1")
    assert list(source.messages("ses_1")) == ["msg_1"]
    reading = source.read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert [part.data["text"] for part in reading.message.parts] == ["good"]
    assert len(reading.problems) == 2


def test_a_removed_message_of_which_every_event_is_bad_is_named(database: Database, source: DatabaseSource) -> None:
    database.event("ses_1", "message.updated.1", "{")
    database.remove_message("ses_1", "msg_1")
    assert list(source.messages("ses_1")) == ["msg_1"]
    reading = source.read_message("ses_1", "msg_1")
    assert reading.message is None
    assert "not JSON" in reading.problems[0].reason


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE event",
        "ALTER TABLE event RENAME COLUMN aggregate_id TO owner",
        "UPDATE event SET data = CAST(data AS BLOB)",
        "UPDATE event SET type = 'session.next.' || type",
        "UPDATE event SET data = '[]'",
    ],
)
def test_a_journal_of_another_layout_tells_nothing_and_the_rows_are_read(
    database: Database, source: DatabaseSource, change: str
) -> None:
    for number in (1, 2):
        database.journaled(user(f"msg_{number}", "ses_1"), text(f"prt_{number}", f"msg_{number}", "ses_1", "hello"))
    database.execute("DELETE FROM message WHERE id = 'msg_2'")
    database.execute("DELETE FROM part WHERE message_id = 'msg_2'")
    database.execute(change)
    assert list(source.messages("ses_1")) == ["msg_1"]
    reading = source.read_message("ses_1", "msg_1")
    assert reading.message is not None
    assert (len(reading.message.parts), reading.problems) == (1, ())
    assert source.reverts("ses_1") == []


def test_a_later_version_of_an_event_is_read_like_the_first(database: Database, source: DatabaseSource) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    database.remove_message("ses_1", "msg_1")
    database.execute("UPDATE event SET type = replace(type, '.1', '.2')")
    message = source.read_message("ses_1", "msg_1").message
    assert message is not None
    assert message.parts[0].data["text"] == "hello"


def test_another_database_in_the_same_place_has_another_journal(database: Database, source: DatabaseSource) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    database.remove_message("ses_1", "msg_1")
    assert list(source.messages("ses_1")) == ["msg_1"]
    database.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{database.path}{suffix}").unlink(missing_ok=True)
    again = Database(database.path)
    again.session(session("ses_1"))
    for number in (7, 8):
        again.journaled(user(f"msg_{number}", "ses_1"), text(f"prt_{number}", f"msg_{number}", "ses_1", "new"))
    assert set(source.messages("ses_1")) == {"msg_7", "msg_8"}
    again.close()


def test_a_session_that_was_deleted_and_imported_anew_has_another_journal(
    database: Database, source: DatabaseSource
) -> None:
    for number in (1, 2, 3):
        database.journaled(user(f"msg_{number}", "ses_1"), text(f"prt_{number}", f"msg_{number}", "ses_1", "old"))
    database.remove_message("ses_1", "msg_2")
    assert set(source.messages("ses_1")) == {"msg_1", "msg_2", "msg_3"}
    for table in ("event", "event_sequence", "message", "part"):
        database.execute(f"DELETE FROM {table}")
    database.journaled(user("msg_9", "ses_1"), text("prt_9", "msg_9", "ses_1", "new"))
    assert set(source.messages("ses_1")) == {"msg_9"}


def test_damage_before_and_after_a_message_is_no_problem_of_it(database: Database, source: DatabaseSource) -> None:
    database.event("ses_1", "message.part.updated.1", "{")
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    database.remove_message("ses_1", "msg_1")
    database.event("ses_1", "message.part.updated.1", "{")
    source.messages("ses_1")
    assert source.read_message("ses_1", "msg_1").problems == ()


# -- the journal alone: what it lists, what it reads, what it says of damage ---------------------------------------


@pytest.fixture
def journal(database: Database) -> Iterator[Journal]:
    connection = Connection(database.path)
    yield Journal(connection, limit=2000)
    connection.close()


def test_a_removed_message_is_listed_with_its_events_and_removal_time(database: Database, journal: Journal) -> None:
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0 + 100)
    database.event("ses_1", "message.part.updated.1", {"part": text("prt_1", "msg_1", "ses_1", "a")}, T0 + 200)
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0 + 300)
    database.event("ses_1", "message.part.updated.1", {"part": text("prt_1", "msg_1", "ses_1", "ab")}, T0 + 400)
    database.event("ses_1", "message.updated.1", {"info": user("msg_2", "ses_1")}, T0 + 500)
    assert journal.removals("ses_1", {}) == {}  # nothing was followed yet
    journal.follow("ses_1")
    assert journal.removals("ses_1", {"msg_2": {}}) == {
        "msg_1": RemovedRows([("prt_1", "event 3"), ("", "event 2")], T0 + 300)
    }
    database.event("ses_1", "message.removed.1", {"messageID": "msg_1"}, T0 + 600)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {"msg_2": {}}) == {
        "msg_1": RemovedRows([("prt_1", "event 3"), ("", "event 2")], T0 + 600)
    }
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0 + 700)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {"msg_1": {}, "msg_2": {}}) == {}


@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_journal_is_walked_page_by_page_to_its_end(
    database: Database, journal: Journal, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr("daemon.opencode.journal._AT_ONCE", 2)
    for number in range(count):
        database.event("ses_1", "message.updated.1", {"info": user(f"msg_{number}", "ses_1")}, T0 + number)
    journal.follow("ses_1")
    assert sorted(journal.removals("ses_1", {})) == [f"msg_{number}" for number in range(count)]


def test_the_time_of_an_event_is_the_one_nearest_to_its_record_not_to_ours(database: Database) -> None:
    """The clock in an id wraps every 795 days."""
    info = user("msg_1", "ses_1") | {"time": {"created": T0, "updated": T0}}
    database.event("ses_1", "message.updated.1", {"info": info}, T0 + 7)
    journal = Journal(Connection(database.path), limit=2000, clock=lambda: T0 / 1000 + 2000 * 86_400)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {})["msg_1"].changed == T0 + 7


def test_a_removed_message_with_unreadable_events_is_still_listed(database: Database, journal: Journal) -> None:
    database.event("ses_1", "message.removed.1", {"messageID": "msg_0"}, T0 + 500)  # nothing bad before it
    database.event("ses_1", "message.updated.1", "{")
    database.event("ses_1", "message.removed.1", {"messageID": "msg_1"}, T0 + 600)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {}) == {"msg_1": RemovedRows([("", "unreadable before 2")], T0 + 600)}


def test_a_removed_call_is_listed_with_its_event_and_removal_time(database: Database, journal: Journal) -> None:
    for number, (id_, state) in enumerate([("prt_1", WRITTEN), ("prt_2", RUNNING), ("prt_3", WRITTEN)]):
        part = tool(id_, "msg_1", "ses_1", "write", state)
        database.event("ses_1", "message.part.updated.1", {"part": part}, T0 + number)
    for number, part_id in enumerate(["prt_1", "prt_2", "prt_unknown"]):
        ids = {"messageID": "msg_1", "partID": part_id}
        database.event("ses_1", "message.part.removed.1", ids, T0 + 100 + number)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {"msg_1": {"prt_3": T0}}) == {
        "msg_1": RemovedRows([("prt_1", "event 0")], T0 + 100)
    }
    assert journal.removals("ses_1", {"msg_1": {"prt_1": T0, "prt_3": T0}}) == {}
    parts = journal.parts("ses_1", "msg_1", {"prt_3"}, [], calls_only=True)
    assert [(part.id, part.message_id, part.session_id) for part in parts] == [("prt_1", "msg_1", "ses_1")]
    assert journal.parts("ses_1", "msg_other", (), [], calls_only=True) == []


@pytest.mark.parametrize(("age", "is_removed"), [(9_999, False), (10_000, True)])
def test_a_message_without_a_row_may_still_get_one_for_ten_seconds(
    database: Database, age: int, is_removed: bool
) -> None:
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0)
    journal = Journal(Connection(database.path), limit=2000, clock=lambda: (T0 + age) / 1000)
    journal.follow("ses_1")
    assert (list(journal.removals("ses_1", {})) == ["msg_1"]) is is_removed


def test_a_message_that_was_written_again_after_its_removal_may_still_get_a_row(database: Database) -> None:
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0)
    database.event("ses_1", "message.removed.1", {"messageID": "msg_1"}, T0 + 1)
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0 + 2)
    journal = Journal(Connection(database.path), limit=2000, clock=lambda: T0 / 1000 + 5)
    journal.follow("ses_1")
    assert journal.removals("ses_1", {}) == {}


def test_an_event_with_an_id_or_type_that_is_no_text_stops_nothing(database: Database, journal: Journal) -> None:
    for column, value in (("id", None), ("id", b"\xff"), ("type", b"\xff")):
        seq = database.event("ses_1", "message.updated.1", "{}")
        database.execute(f"UPDATE event SET {column} = ? WHERE seq = ?", value, seq)
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1")}, T0)
    journal.follow("ses_1")
    assert list(journal.removals("ses_1", {})) == ["msg_1"]


def test_ids_that_a_recorded_part_lacks_are_those_of_its_place(database: Database, journal: Journal) -> None:
    part = tool("prt_1", "msg_1", "", "write", WRITTEN)
    database.event("ses_1", "message.part.updated.1", {"part": part})
    database.event("ses_1", "message.part.updated.1", {"part": {"id": "prt_1", "type": "tool"}})  # of no message
    (read,) = journal.parts("ses_1", "msg_1", (), [], calls_only=False)
    assert (read.message_id, read.session_id, read.data["state"]) == ("msg_1", "ses_1", WRITTEN)
    assert journal.parts("ses_1", "msg_1", {"prt_1"}, [], calls_only=False) == []


def test_a_record_changed_since_it_was_listed_is_a_problem_with_its_place(database: Database, journal: Journal) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    problems: list[Problem] = []
    assert journal.message("ses_1", "msg_unknown", problems) is None
    assert json.loads(journal.message("ses_1", "msg_1", problems) or b"")["id"] == "msg_1"
    assert len(journal.parts("ses_1", "msg_1", (), problems, calls_only=False)) == 1
    assert problems == []
    place = f"{database.path}: event"
    for change, reasons in (
        ("UPDATE event SET data = '{}'", ["no record under 'info'", "no record under 'part'"]),
        ("DELETE FROM event", ["gone since it was listed", "gone since it was listed"]),
    ):
        database.execute(change)
        assert journal.message("ses_1", "msg_1", problems) is None
        assert journal.parts("ses_1", "msg_1", (), problems, calls_only=False) == []
        assert problems == [
            Problem(f"{place} {seq} of ses_1", f"{place} {seq} of ses_1: {reason}")
            for seq, reason in enumerate(reasons)
        ]
        problems.clear()


def test_a_database_without_a_journal_has_no_removed_records(database: Database, journal: Journal) -> None:
    assert journal.message("ses_1", "msg_1", []) is None
    assert journal.parts("ses_1", "msg_1", (), [], calls_only=False) == []
    assert journal.removals("ses_1", {}) == {}


def test_damage_is_told_with_place_reason_size_and_hash(database: Database, journal: Journal) -> None:
    outside = database.event("ses_1", "message.part.updated.1", "{")
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1", T0)}, T0)
    at_the_limit = database.event("ses_1", "message.part.updated.1", "{" * 2000)
    too_large = database.event("ses_1", "message.part.updated.1", json.dumps({"part": "x" * 2000}))
    database.event("ses_1", "message.updated.1", {"info": user("msg_1", "ses_1", T0)}, T0)
    last = database.event("ses_1", "message.updated.1", "{")
    problems: list[Problem] = []
    assert journal.parts("ses_1", "msg_1", (), problems, calls_only=False) == []
    assert [problem.place.split(" (")[0] for problem in problems] == [
        f"{database.path}: event {seq} of ses_1" for seq in (last, at_the_limit, too_large)
    ]
    assert outside not in (last, at_the_limit, too_large)
    reasons = ["not JSON", "not JSON", "2012 bytes, more than limits.record_mb allows"]
    assert [problem.reason for problem in problems] == [
        f"{problem.place}: {reason}" for problem, reason in zip(problems, reasons, strict=True)
    ]
    hashes = [hashlib.sha256(b"{").hexdigest(), hashlib.sha256(b"{" * 2000).hexdigest(), ""]
    assert [(problem.size, problem.sha256) for problem in problems] == list(zip((1, 2000, 2012), hashes, strict=True))


# -- cost ----------------------------------------------------------------------------------------------------------


class Counted(Connection):
    """Counts what is fetched, in all and at once, and which queries look into parts' events."""

    fetched = 0
    most = 0
    of_parts = 0

    def rows(self, sql: str, arguments: Any = ()) -> list[tuple[Any, ...]]:
        found = super().rows(sql, arguments)
        self.most = max(self.most, len(found))
        self.fetched += len(found)
        self.of_parts += "$.part.id" in sql
        return found


def test_a_long_journal_is_read_once_then_only_what_was_added(database: Database) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "first"))
    database.remove_message("ses_1", "msg_1")
    body = json.dumps({"part": text("prt_2", "msg_2", "ses_1", "y" * 1000)})
    database.connection.execute("BEGIN")
    database.connection.executemany(
        "INSERT INTO event VALUES (?, 'ses_1', ?, 'message.part.updated.1', ?)",
        ((f"evt_{number}", number, body) for number in range(10, 100_010)),
    )
    database.connection.execute("UPDATE event_sequence SET seq = 100009")
    database.connection.execute("COMMIT")
    connection = Counted(database.path)
    source = DatabaseSource(connection)
    assert list(source.messages("ses_1")) == ["msg_1"]
    assert connection.fetched > 100_000
    assert connection.most <= 500  # no query holds OpenCode's writes up for long
    connection.fetched = 0
    database.journaled(user("msg_3", "ses_1"), text("prt_3", "msg_3", "ses_1", "new"))
    assert set(source.messages("ses_1")) == {"msg_1", "msg_3"}
    assert connection.fetched < 30
    source.close()


def test_of_a_session_that_lost_nothing_no_part_event_is_parsed(database: Database) -> None:
    database.journaled(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "first"))
    connection = Counted(database.path)
    source = DatabaseSource(connection)
    for _ in range(2):
        source.messages("ses_1")
        source.read_message("ses_1", "msg_1")
    assert connection.of_parts == 0
    database.remove_message("ses_1", "msg_1")
    source.messages("ses_1")
    assert connection.of_parts == 1
    source.close()


# -- into the archive ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen_before", [True, False])
def test_the_archive_keeps_what_a_revert_removed_and_marks_it(
    tmp_path: Path, database: Database, source: DatabaseSource, seen_before: bool
) -> None:
    database.journaled(assistant("msg_1", "ses_1"), tool("prt_1", "msg_1", "ses_1", "write", WRITTEN))
    with Archive(tmp_path / "archive") as archive:
        intake = intake_of(archive, quiet_s=0.3, free_mb=1)
        if seen_before:
            intake.scan(source)
            assert not archive.is_deleted("msg_1")
        database.remove_message("ses_1", "msg_1")
        intake.scan(source)
        assert archive.is_deleted("msg_1")
        message = archive.message("msg_1")
        assert message is not None
        assert message.parts[0].data["state"] == WRITTEN
        assert [edit.content for edit in archive.files.edits("/p/f")] == ["x"]
        third = intake.scan(source)
        assert (third.changed, third.removed, third.quarantined) == (0, 0, 0)
        assert archive.is_deleted("msg_1")


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["message", "part", "part", "remove", "look"]), st.integers(0, 3), st.integers(0, 2)),
        max_size=25,
    )
)
def test_rows_and_journal_together_always_hold_every_message(tmp_path: Path, steps: list[tuple[str, int, int]]) -> None:
    path = tmp_path / "any.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    database = Database(path)
    database.session(session("ses_1"))
    source = DatabaseSource(Connection(path))
    written: dict[str, dict[str, str]] = {}
    removed: set[str] = set()
    for turn, (what, number, part) in enumerate(steps):
        message_id = f"msg_{number}"
        if what == "message" and message_id not in removed:
            written.setdefault(message_id, {})
            database.journaled(user(message_id, "ses_1"))
        elif what == "part" and message_id in written.keys() - removed:
            written[message_id][f"prt_{number}_{part}"] = f"turn {turn}"
            record = text(f"prt_{number}_{part}", message_id, "ses_1", f"turn {turn}")
            database.part(record)
            database.event("ses_1", "message.part.updated.1", {"part": record})
        elif what == "remove" and message_id in written.keys() - removed:
            removed.add(message_id)
            database.remove_message("ses_1", message_id)
        elif what == "look":
            source.messages("ses_1")
    assert set(source.messages("ses_1")) == set(written)
    for message_id, parts in written.items():
        reading = source.read_message("ses_1", message_id)
        assert reading.message is not None
        assert reading.orphan is (message_id in removed)
        assert {found.id: found.data["text"] for found in reading.message.parts} == parts
    source.close()
    database.close()


# -- reverts -------------------------------------------------------------------------------------------------------


def test_the_sample_has_an_undone_a_final_and_a_pending_revert(
    sample: Callable[[str], Sample],
) -> None:
    source = DatabaseSource(Connection(sample("sqlite").data_dir / "opencode.db"))
    marks = {session_id: source.reverts(session_id) for session_id in source.sessions()}
    source.close()
    told = sorted([[mark.is_undone for mark in of_session] for of_session in marks.values() if of_session])
    assert told == [[False], [False, True, False]]
    assert [mark.time for mark in marks["ses_e03cd58b1ffeZWze0rE6RFE5RK"]] == [1795232544791, 1795232544892, 1795232545309]  # fmt: skip


REVERT, CLEAR, TOUCH, REMOVE = "revert", "clear", "touch", "remove"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], [], id="never"),
        pytest.param([CLEAR, TOUCH], [], id="touched only"),
        pytest.param([REVERT], [False], id="pending"),
        pytest.param([REVERT, REVERT, REVERT], [False], id="touched while pending"),
        pytest.param([REVERT, CLEAR], [False, True], id="undone"),
        pytest.param([REVERT, CLEAR, REVERT], [False, True, False], id="undone and done again"),
        pytest.param([REVERT, REMOVE, CLEAR], [False], id="final"),
        pytest.param([REVERT, CLEAR, REMOVE], [False], id="final, cleared first"),
        pytest.param([REVERT, REMOVE, CLEAR, REVERT], [False, False], id="final, then another"),
    ],
)
def test_a_revert_is_told_once_and_as_undone_only_when_nothing_was_removed(
    database: Database, source: DatabaseSource, steps: list[str], expected: list[bool]
) -> None:
    for number, step in enumerate(steps):
        at = T0 + 1000 * number
        if step == REMOVE:
            database.event("ses_1", "message.removed.1", {"sessionID": "ses_1", "messageID": "msg_1"}, at)
        else:
            database.event("ses_1", "session.updated.1", reverted("msg_1" if step == REVERT else ""), at)
        source.reverts("ses_1")  # whoever looks in between learns no less later
    marks = source.reverts("ses_1")
    assert [mark.is_undone for mark in marks] == expected
    assert [mark.time for mark in marks] == sorted({mark.time for mark in marks})


def test_a_revert_that_goes_further_back_is_a_second_one(database: Database, source: DatabaseSource) -> None:
    for number, (message_id, part_id) in enumerate([("msg_2", "prt_5"), ("msg_2", "prt_5"), ("msg_1", None)]):
        database.event("ses_1", "session.updated.1", reverted(message_id, part_id), T0 + number)
    assert source.reverts("ses_1") == [
        RevertMark(T0, "msg_2", "prt_5", "tree", False, "…"),
        RevertMark(T0 + 2, "msg_1", "", "tree", False, "…"),
    ]


@pytest.mark.parametrize(
    ("message_id", "after", "undone"), [("msg_1", 4_999, False), ("msg_1", 5_000, True), ("msg_2", 10, True)]
)
@pytest.mark.parametrize("kind", ["message.removed.1", "message.part.removed.1"])
def test_a_cleared_revert_is_final_only_if_its_message_goes_in_time(
    database: Database, source: DatabaseSource, kind: str, message_id: str, after: int, undone: bool
) -> None:
    """OpenCode clears the session's revert and removes the messages in one go; a later removal has another cause."""
    database.event("ses_1", "session.updated.1", reverted("msg_1", "prt_2"), T0)
    database.event("ses_1", "session.updated.1", reverted(""), T0 + 1_000)
    ids = {"sessionID": "ses_1", "messageID": message_id, "partID": "prt_2"}
    database.event("ses_1", kind, ids, T0 + 1_000 + after)
    pending = RevertMark(T0, "msg_1", "prt_2", "tree", is_undone=False, diff="…")
    taken_back = RevertMark(T0 + 1_000, "msg_1", "prt_2", "tree", is_undone=True)
    assert source.reverts("ses_1") == [pending, *([taken_back] if undone else [])]


@pytest.mark.parametrize("ids", [{"messageID": "msg_1"}, {"partID": "prt_2"}])
def test_a_removal_without_message_or_part_makes_no_revert_final(
    database: Database, source: DatabaseSource, ids: dict[str, str]
) -> None:
    database.event("ses_1", "session.updated.1", reverted("msg_1"), T0)
    database.event("ses_1", "message.part.removed.1", ids, T0 + 1_000)
    database.event("ses_1", "session.updated.1", reverted(""), T0 + 2_000)
    assert [mark.is_undone for mark in source.reverts("ses_1")] == [False, True]


def test_without_a_journal_the_pending_revert_is_told_by_the_session(
    database: Database, source: DatabaseSource
) -> None:
    database.execute("ALTER TABLE session ADD COLUMN revert text")
    assert source.reverts("ses_1") == []
    source.close()
    updated = database.now
    database.execute("UPDATE session SET revert = ?", json.dumps({"messageID": "msg_1", "snapshot": "tree"}))
    assert source.reverts("ses_1") == [RevertMark(updated, "msg_1", "", "tree", False, is_exact=False)]


def test_the_json_tree_tells_the_pending_revert_and_no_other(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    revert = {"messageID": "msg_1", "partID": "prt_1", "snapshot": "tree", "diff": "diff --git"}
    store.session(session("ses_1", revert=revert))
    store.session(session("ses_2"))
    store.session(session("ses_3", revert="odd"))
    tree = JsonTree(store.storage)
    assert tree.reverts("ses_1") == [RevertMark(T0, "msg_1", "prt_1", "tree", False, "diff --git", is_exact=False)]
    assert tree.reverts("ses_2") == tree.reverts("ses_3") == []
