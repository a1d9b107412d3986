"""What a session has besides its messages is kept as what it is: events are no messages, a todo list is a list."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import records
from daemon.app.engine import Engine
from daemon.archive import Archive
from daemon.config import Config
from daemon.exports import Export, Format
from daemon.exports.formats import export
from daemon.model import Session
from daemon.records import OWN_SESSION_TITLE
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, user

EVENTS = """
CREATE TABLE IF NOT EXISTS session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)
"""
TODOS = """
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL,
    position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)
"""
SWITCHES = ("agent-switched", "model-switched", "something-of-the-next-version")


def opened(root: Path) -> PlainService:
    tables = {"opencode": {"data_dir": str(root / "opencode")}, "archive": {"dir": str(root / "archive")}}
    return PlainService(Engine(msgspec.convert(tables, Config)))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "opencode" / "opencode.db")
    yield made
    made.close()


def talk(database: Database, session_id: str = "ses_1", title: str = "Garden") -> None:
    """A session as OpenCode 1.15.13 writes it: its rows, and the switches that began it."""
    database.execute(EVENTS)
    database.session(session(session_id, title=title))
    for number, type_ in enumerate(SWITCHES):
        data = json.dumps({"agent": "build", "time": {"created": T0 + number}})
        values = (f"evt_{session_id}_{number}", session_id, type_, T0 + number, T0 + number, data)
        database.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?)", *values)
    asked, said = f"msg_{session_id}_a", f"msg_{session_id}_b"
    database.message(user(asked, session_id, T0 + 10), text(f"prt_{asked}", asked, session_id, "Plant tulips."))
    database.message(assistant(said, session_id, T0 + 20), text(f"prt_{said}", said, session_id, "They are planted."))


def exported(archive: Archive, format_: Format) -> str:
    pieces: list[str] = []
    export(archive, Export(format=format_), pieces.append, lambda _: None)
    return "".join(pieces)


def test_events_never_become_messages_nor_deleted_ones(tmp_path: Path, database: Database) -> None:
    talk(database)
    with opened(tmp_path) as engine:
        for change in (None, "DELETE FROM session_message", "DROP TABLE session_message"):
            if change:
                database.execute(change)
            for _ in range(2):
                engine.scan(everything=True, patient=False)
            assert engine.archive.message_ids("ses_1") == ["msg_ses_1_a", "msg_ses_1_b"]
            assert not any(map(engine.archive.is_deleted, engine.archive.all_message_ids()))
            assert [event["type"] for event in engine.archive.beside.events("ses_1")] == list(SWITCHES)
        (line,) = exported(engine.archive, "jsonl").splitlines()
    told = json.loads(line)
    assert [message["content"] for message in told["messages"]] == ["Plant tulips.", "They are planted."]
    assert [(event["type"], event["data"]["agent"]) for event in told["events"]] == [(t, "build") for t in SWITCHES]


def test_an_event_that_precedes_its_session_is_kept(tmp_path: Path, database: Database) -> None:
    database.execute(EVENTS)
    database.execute("INSERT INTO session_message VALUES ('evt_1','ses_1','idle',1,1,'{}')")
    with opened(tmp_path) as engine:
        engine.scan(everything=True, patient=False)
        assert list(engine.archive.sessions()) == []
        talk(database)
        engine.scan(everything=False, patient=False)
        assert {event["id"] for event in engine.archive.beside.events("ses_1")} >= {"evt_1", "evt_ses_1_0"}


def test_events_of_our_own_sessions_are_left_out_as_they_are(tmp_path: Path, database: Database) -> None:
    talk(database, title=OWN_SESSION_TITLE)
    with opened(tmp_path) as engine:
        engine.scan(everything=True, patient=False)
        assert list(engine.archive.sessions()) == []
        assert engine.archive.beside.events("ses_1") == []


def phantom(archive: Archive, session_id: str, number: int, *, is_deleted: bool) -> str:
    """A switch as version 0.1 archived it."""
    id_ = f"evt_{session_id}_{number}"
    time = {"created": T0 + number}
    verbatim = {"agent": "build", "time": time}
    head: dict[str, Any] = {"id": id_, "sessionID": session_id, "role": "assistant", "type2": SWITCHES[number]}
    raw = records.dumps(head | {"time": time | {"completed": T0 + number}, "agent": "build", "v2": verbatim})
    batch = archive.batch()
    message, hash_ = records.message(raw), records.digest(raw)
    batch.message(message, source="db2:old", generation=3, hash_=hash_, edits=[])
    archive.commit(batch)
    if is_deleted:
        batch = archive.batch()
        batch.forget_message_source(id_, "db2:old", T0)
        archive.commit(batch)
    return id_


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_archive_of_0_1_loses_its_phantoms_and_keeps_what_they_said(
    tmp_path: Path, database: Database, *, is_deleted: bool
) -> None:
    talk(database)
    with Archive(tmp_path / "archive") as archive:
        for session_id in ("ses_1", "ses_of_phantoms_alone"):
            phantoms = [phantom(archive, session_id, number, is_deleted=is_deleted) for number in (0, 1)]
        batch = archive.batch()
        batch.session(Session("ses_of_phantoms_alone", "", "", "", 0, 0, b"{}"), "db2:old", 3)
        archive.commit(batch)
    with opened(tmp_path) as engine:
        engine.scan(everything=True, patient=False)
        assert list(engine.archive.all_message_ids()) == ["msg_ses_1_a", "msg_ses_1_b"]
        assert engine.archive.message_ids("ses_1") == ["msg_ses_1_a", "msg_ses_1_b"]
        assert [one.id for one in engine.archive.sessions()] == ["ses_1"]
        for session_id, types in (("ses_1", SWITCHES), ("ses_of_phantoms_alone", SWITCHES[:2])):
            events = engine.archive.beside.events(session_id)
            assert [(event["type"], event["data"]["agent"]) for event in events] == [
                (type_, "build") for type_ in types
            ]
        assert phantoms[0] not in exported(engine.archive, "messages")
        assert engine.archive.figures()["messages"] == 2
        assert engine.archive.figures()["sessions"] == 1
        hits = engine.recall("recall", {"query": "Garden", "match": "literal"})["results"]
        assert [hit["messageID"] for hit in hits if hit["kind"] == "title"] == ["msg_ses_1_a"]


ITEMS = [
    {"content": "Dig the bed", "status": "completed", "priority": "high"},
    {"content": "Plant <b>tulips</b>", "status": "in_progress", "priority": "medium"},
]


def put(database: Database, items: list[dict[str, str]], updated: int) -> None:
    database.execute("DELETE FROM todo")
    for position, item in enumerate(items):
        values = ("ses_1", item["content"], item["status"], item["priority"], position, T0, updated)
        database.execute("INSERT INTO todo VALUES (?,?,?,?,?,?,?)", *values)
    database.session(session("ses_1"))


def plain(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: item[name] for name in ("content", "status", "priority")} for item in items]


def test_a_todo_list_of_a_database_is_kept_in_its_last_state(tmp_path: Path, database: Database) -> None:
    database.execute(TODOS)
    talk_without_events(database)
    with opened(tmp_path) as engine:
        for updated, items in enumerate((ITEMS, ITEMS[::-1], [], ITEMS[:1])):
            put(database, items, T0 + updated)
            engine.scan(everything=False, patient=False)
            assert plain(engine.archive.beside.todos("ses_1")) == items
        database.execute("DELETE FROM session")
        database.execute("DELETE FROM todo")
        engine.scan(everything=True, patient=False)
        assert plain(engine.archive.beside.todos("ses_1")) == ITEMS[:1]


def talk_without_events(database: Database) -> None:
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "Plant tulips."))


def test_a_todo_list_of_the_json_tree_is_kept_and_exported(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "Plant tulips."))
    path = store.raw("todo/ses_1.json", json.dumps(ITEMS[:1]))
    with opened(tmp_path) as engine:
        engine.scan(everything=True, patient=False)
        assert engine.archive.beside.todos("ses_1") == ITEMS[:1]
        path.write_text(json.dumps(ITEMS))
        for source in engine.sources.current():
            source.hint(str(path))
        engine.scan(everything=False, patient=False)
        assert engine.archive.beside.todos("ses_1") == ITEMS
        path.unlink()
        engine.scan(everything=True, patient=False)
        assert engine.archive.beside.todos("ses_1") == ITEMS
        assert json.loads(exported(engine.archive, "jsonl"))["todos"] == ITEMS
        document = exported(engine.archive, "markdown")
    assert "- [x] `Dig the bed` · `completed` · `high`\n- [ ] `Plant <b>tulips</b>` · `in_progress`" in document


def test_a_todo_list_that_is_no_list_is_set_aside_until_it_is_one(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "Plant tulips."))
    path = store.raw("todo/ses_1.json", "5")
    with opened(tmp_path) as engine:
        os.utime(path, (1, 1))
        engine.scan(everything=True, patient=False)
        (entry,) = engine.archive.quarantined().values()
        assert "todo/ses_1.json" in entry["reason"]
        path.write_text("[]")
        engine.scan(everything=True, patient=False)
        assert engine.archive.quarantined() == {}


def test_a_todo_list_is_the_one_of_the_store_that_changed_last(tmp_path: Path, database: Database) -> None:
    """After a migration the old file stays, and the database goes on."""
    store = JsonStore(tmp_path / "opencode")
    store.raw("todo/ses_1.json", json.dumps(ITEMS))
    store.session(session("ses_1"))
    database.execute(TODOS)
    talk_without_events(database)
    with opened(tmp_path) as engine:
        engine.scan(everything=True, patient=False)
        assert engine.archive.beside.todos("ses_1") == ITEMS, "a database that never had one says nothing"
        put(database, ITEMS[1:], 10 * T0)
        engine.scan(everything=True, patient=False)
        assert plain(engine.archive.beside.todos("ses_1")) == ITEMS[1:]


def test_what_is_being_written_beside_no_message_is_looked_at_again(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "opencode")
    record, listed = store.raw("session/pid/ses_1.json", "{"), store.raw("todo/ses_2.json", "[")
    store.session(session("ses_2"))
    store.message(user("msg_2", "ses_2"))
    with opened(tmp_path) as engine:
        engine.scan(everything=True)
        assert engine.is_waiting
        record.write_text(json.dumps(session("ses_1")))
        listed.write_text(json.dumps(ITEMS))
        engine.scan(everything=False)
        assert not engine.is_waiting
        assert {one.id for one in engine.archive.sessions()} == {"ses_1", "ses_2"}
        assert engine.archive.beside.todos("ses_2") == ITEMS
