"""Databases with damaged pages: what can be read is read, what cannot is named, and nothing of it counts as deleted."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon.app.engine import Engine
from daemon.config import Config
from daemon.opencode.connection import Connection
from daemon.opencode.damage import Outline
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import Database, session, text, user

SESSIONS, MESSAGES = 12, 40
PAGE = 1024
"""Small, so that there are many pages and trees of several levels."""


def message_id(number: int) -> str:
    return f"msg_{number:05d}"


ALL = {message_id(number) for number in range(SESSIONS * MESSAGES)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A database of OpenCode that nobody has open, with no WAL, so that its pages are where they are."""
    path = tmp_path / "opencode" / "opencode.db"
    path.parent.mkdir()
    with sqlite3.connect(path) as made:
        made.execute(f"PRAGMA page_size={PAGE}")
        made.execute("CREATE TABLE unused (x)")
    made.close()
    database = Database(path)
    database.execute("BEGIN")
    for number in range(SESSIONS):
        database.session(session(f"ses_{number:02d}", title="A long title " * 20))
    for number in range(SESSIONS * MESSAGES):  # sessions take turns, so that each has rows on many pages
        owner, name = f"ses_{number % SESSIONS:02d}", message_id(number)
        database.message(user(name, owner), text(f"prt_{number:05d}", name, owner, f"word{number} " * 20))
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert path.stat().st_size > 150 * PAGE
    return path


@pytest.fixture
def engine(store: Path, tmp_path: Path) -> Iterator[PlainService]:
    tables = {"opencode": {"data_dir": str(store.parent)}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        yield engine


def scan(engine: PlainService) -> None:
    engine.scan(everything=True, patient=False, words=False)


def pages(path: Path, name: str) -> list[int]:
    """The pages of a table or index, its root first. SQLite tells by pointing each page out in its check."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    raw = path.read_bytes()
    found, waiting = [], [root]
    while waiting:
        page = waiting.pop(0)
        found.append(page)
        body = raw[(page - 1) * PAGE : page * PAGE]
        if body[0] in (2, 5):  # an inner page: its last child, and one in each cell
            cells = int.from_bytes(body[3:5], "big")
            places = [int.from_bytes(body[12 + 2 * cell : 14 + 2 * cell], "big") for cell in range(cells)]
            waiting += [int.from_bytes(body[place : place + 4], "big") for place in places]
            waiting.append(int.from_bytes(body[8:12], "big"))
    return found


def destroy(path: Path, *numbers: int) -> None:
    with path.open("r+b") as file:
        for number in numbers:
            file.seek((number - 1) * PAGE)
            file.write(b"\xa5" * PAGE)
        os.fsync(file.fileno())


def archived(engine: PlainService) -> dict[str, list[str]]:
    """The parts of each archived message, by id; none of them may be called deleted."""
    found = {}
    for name in engine.archive.all_message_ids():
        message = engine.archive.message(name)
        assert message is not None
        assert not engine.archive.is_deleted(name), name
        assert not engine.archive.gone(name), name
        found[name] = [part.id for part in message.parts]
    return found


def reasons(engine: PlainService) -> str:
    return "\n".join(entry["reason"] for entry in engine.archive.quarantined().values())


INDEXES = [
    "part_session_idx", "part_message_idx", "message_session_idx",
    "sqlite_autoindex_session_1", "sqlite_autoindex_message_1", "sqlite_autoindex_part_1",
]  # fmt: skip


@pytest.mark.parametrize("which", ["root", "leaf"])
@pytest.mark.parametrize("name", INDEXES)
def test_a_damaged_index_costs_nothing(store: Path, engine: PlainService, name: str, which: str) -> None:
    numbers = pages(store, name)
    destroy(store, numbers[0] if which == "root" else numbers[len(numbers) // 2])
    scan(engine)
    found = archived(engine)
    assert found.keys() == ALL
    assert all(len(parts) == 1 for parts in found.values())


@pytest.mark.parametrize("name", ["message", "part", "session"])
@pytest.mark.parametrize("place", [0.0, 0.3, 1.0])
def test_a_damaged_page_of_rows_costs_only_its_rows(store: Path, engine: PlainService, name: str, place: float) -> None:
    leaves = [page for page in pages(store, name) if store.read_bytes()[(page - 1) * PAGE] == 13]
    destroy(store, leaves[int(place * (len(leaves) - 1))])
    scan(engine)
    found = archived(engine)
    lost = {"message": len(ALL - found.keys()), "part": sum(not parts for parts in found.values())}
    if name == "session":  # without its record nobody knows whether a session may be archived
        assert 0 < lost["message"] <= 4 * MESSAGES
    else:
        assert 0 < lost[name] < 12
        assert sum(lost.values()) == lost[name]
    assert "malformed" in reasons(engine)
    (row,) = engine.status()["sources"]
    assert row["quarantined"] > 0


@pytest.mark.parametrize("name", ["message", "part", "session", *INDEXES])
def test_what_was_archived_before_the_damage_is_not_deleted(store: Path, engine: PlainService, name: str) -> None:
    """Each page in turn is destroyed, and mended again, as by a restored copy."""
    scan(engine)
    before = archived(engine)
    whole = store.with_name("whole")
    shutil.copy(store, whole)
    numbers = pages(store, name)
    for number in {numbers[0], numbers[1 % len(numbers)], numbers[len(numbers) // 2], numbers[-1]}:
        destroy(store, number)
        scan(engine)
        assert archived(engine) == before
        shutil.copy(whole, store)
        os.utime(store)
    scan(engine)
    assert archived(engine) == before
    assert engine.archive.quarantined() == {}


@pytest.mark.parametrize("name", ["message_session_idx", "part_message_idx", "part_session_idx"])
def test_a_key_that_changed_in_an_index_hides_nothing(store: Path, engine: PlainService, name: str) -> None:
    """SQLite does not notice such damage: the row is found under another name, or not at all."""
    scan(engine)
    before = archived(engine)
    number = pages(store, name)[-1]
    raw = bytearray(store.read_bytes())
    start = raw.rindex(b"_", 0, number * PAGE)
    raw[start + 1 : start + 3] = b"zz"
    store.write_bytes(raw)
    scan(engine)
    assert archived(engine) == before


def test_an_overflow_page_costs_one_message(store: Path, engine: PlainService) -> None:
    database = Database(store)
    long = "".join(f"long{number} " for number in range(4000))
    database.session(session("ses_long"))
    database.message(user("msg_long", "ses_long"), text("prt_long", "msg_long", "ses_long", long))
    database.message(user("msg_short", "ses_long"), text("prt_short", "msg_short", "ses_long", "short"))
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    place = store.read_bytes().index(b" long2000 ") // PAGE + 1
    destroy(store, place - 2)  # the chain goes through it
    scan(engine)
    found = archived(engine)
    assert found.keys() >= ALL | {"msg_short"}


def test_a_database_cut_short_gives_what_is_left(store: Path, engine: PlainService) -> None:
    scan(engine)
    before = archived(engine)
    os.truncate(store, store.stat().st_size // 2 // PAGE * PAGE)
    scan(engine)
    assert archived(engine) == before
    fresh = store.parent.parent / "fresh"
    tables = {"opencode": {"data_dir": str(store.parent)}, "archive": {"dir": str(fresh)}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as other:
        scan(other)
        assert len(archived(other)) > len(ALL) // 5
        assert reasons(other) or other.unread


def test_damage_is_written_down_once_and_ends_with_it(store: Path, engine: PlainService) -> None:
    whole = store.with_name("whole")
    shutil.copy(store, whole)
    destroy(store, pages(store, "message")[5])
    scan(engine)
    first = engine.archive.quarantined()
    scan(engine)
    assert engine.archive.quarantined() == first != {}
    shutil.copy(whole, store)
    os.utime(store)
    scan(engine)
    assert archived(engine).keys() == ALL
    assert engine.archive.quarantined() == {}


def test_new_messages_are_read_from_a_damaged_database(store: Path, engine: PlainService) -> None:
    destroy(store, pages(store, "part_message_idx")[0], pages(store, "message")[3])
    scan(engine)
    database = Database(store)
    database.session(session("ses_new"))
    data = '{"role": "user", "time": {"created": 1}}'
    database.execute("INSERT INTO message VALUES ('msg_new', 'ses_new', 1, 1, ?)", data)
    database.close()
    engine.scan(everything=False, patient=False, words=False)
    assert "msg_new" in archived(engine)


@pytest.mark.parametrize("spread", [1, 7, 1000])
def test_every_readable_row_is_found_between_several_damaged_pages(store: Path, spread: int) -> None:
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as reader:
        rows = reader.execute("SELECT rowid * ?, id FROM message", (spread,)).fetchall()
    database = Database(store)
    database.execute("UPDATE message SET rowid = -rowid")
    database.execute(f"UPDATE message SET rowid = -rowid * {spread}")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    raw = store.read_bytes()
    leaves = [page for page in pages(store, "message") if raw[(page - 1) * PAGE] == 13]
    damaged = [leaves[2], leaves[4], leaves[5], leaves[9], leaves[-1]]
    lost = {id_ for _, id_ in rows if any(_holds(raw, page, id_) for page in damaged)}
    destroy(store, *damaged)
    connection = Connection(store)
    found, why = Outline(connection).rows("message", "SELECT id FROM message", ())
    assert {id_.decode() for (id_,) in found} == ALL - lost
    assert "cannot be read" in why
    connection.close()


def _holds(raw: bytes, page: int, id_: str) -> bool:
    return id_.encode() in raw[(page - 1) * PAGE : page * PAGE]


def test_a_page_that_points_back_ends(store: Path) -> None:
    """A damaged inner page may lead in a circle."""
    root = pages(store, "message")[0]
    raw = bytearray(store.read_bytes())
    start = (root - 1) * PAGE
    raw[start + 8 : start + 12] = root.to_bytes(4, "big")
    store.write_bytes(raw)
    connection = Connection(store)
    rows, _ = Outline(connection).rows("message", "SELECT id FROM message", ())
    assert rows
    connection.close()
