"""Units of a session's messages: remembered rows and units are those that are read and made anew."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.opencode import Listing, Unit
from daemon.opencode import units as units_of_sessions
from daemon.opencode.connection import Connection
from daemon.opencode.damage import Tables
from daemon.opencode.journal import RemovedRows
from daemon.opencode.shared import Stamps
from daemon.opencode.units import SessionUnits, made
from tests.support.stores.make_opencode import T0, Database

_SESSIONS = st.sampled_from(["ses_1", "ses_2", "ses_3", "ses_4"])
_MESSAGES, _PARTS = st.sampled_from(["msg_1", "msg_2", "msg_3"]), st.sampled_from(["prt_1", "prt_2", "prt_3", "prt_4"])
_TIMES = st.one_of(st.integers(T0, T0 + 10**9), st.sampled_from([0, -1, 1 << 62, "soon", 1.5]))
_CHANGES = st.one_of(
    st.tuples(st.just("INSERT OR IGNORE INTO message VALUES (?, ?, 0, ?, '{}')"), _MESSAGES, _SESSIONS, _TIMES),
    st.tuples(
        st.just("INSERT OR REPLACE INTO part VALUES (?, ?, ?, 0, ?, '{}')"), _PARTS, _MESSAGES, _SESSIONS, _TIMES
    ),
    st.tuples(st.just("UPDATE message SET time_updated = ? WHERE id = ?"), _TIMES, _MESSAGES),
    st.tuples(st.just("UPDATE part SET time_updated = ? WHERE id = ?"), _TIMES, _PARTS),
    st.tuples(st.just("UPDATE part SET time_updated = time_updated + 1 WHERE message_id = ?"), _MESSAGES),
    st.tuples(st.just("UPDATE part SET session_id = ? WHERE id = ?"), _SESSIONS, _PARTS),
    st.tuples(st.just("UPDATE part SET message_id = ? WHERE id = ?"), _MESSAGES, _PARTS),
    st.tuples(st.just("DELETE FROM message WHERE id = ?"), _MESSAGES),
    st.tuples(st.just("DELETE FROM part WHERE id = ?"), _PARTS),
)


def nothing(_: object) -> dict[str, RemovedRows]:
    """What was removed."""
    return {}


@given(st.lists(st.tuples(st.lists(_CHANGES, max_size=4), _SESSIONS), max_size=12))
def test_remembered_rows_are_those_that_are_read_anew(steps):
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "opencode.db")
        connection = Connection(database.path)
        units = SessionUnits(connection, Tables(connection))
        for changes, session in steps:
            for sql, *values in changes:
                database.connection.execute(sql, values)
            anew = SessionUnits(connection, Tables(connection))
            assert units.of(session, Listing(), nothing) == anew.of(session, Listing(), nothing)
        connection.close()
        database.close()


def test_only_changed_rows_are_read_again(tmp_path: Path):
    database, asked = Database(tmp_path / "opencode.db"), []
    for number in range(50):
        database.connection.execute("INSERT INTO message VALUES (?, 'ses', 0, ?, '{}')", (f"msg_{number}", T0 + number))

    class Counting(Connection):
        def rows(self, sql, arguments=()):
            found = super().rows(sql, arguments)
            asked.append(len(found))
            return found

    with contextlib.closing(Counting(database.path)) as connection:
        units = SessionUnits(connection, Tables(connection))
        for _ in range(2):  # what is listed once, as by a full scan, is not remembered
            units.of("ses", Listing(), nothing)
        database.connection.execute("UPDATE message SET time_updated = ? WHERE id = 'msg_7'", (T0 + 99,))
        asked.clear()
        assert units.of("ses", Listing(), nothing)["msg_7"].changed == T0 + 99
        assert max(asked) == 2  # the changed row, and the one that was the latest
    database.close()


def test_nothing_is_remembered_of_a_database_that_was_replaced(tmp_path: Path):
    times: dict[str, object] = {}
    with contextlib.closing(Connection(tmp_path / "opencode.db")) as connection:
        units = SessionUnits(connection, Tables(connection))
        for name, time in (("opencode.db", T0 + 1), ("other.db", T0)):
            database = Database(tmp_path / name)
            database.connection.execute("INSERT INTO message VALUES (?, 'ses', 0, ?, '{}')", (name, time))
            database.connection.execute("PRAGMA journal_mode=DELETE")
            database.close()
            os.replace(tmp_path / name, tmp_path / "opencode.db")
            found = [units.of("ses", Listing(), nothing) for _ in range(3)]
            times[name] = [{message_id: unit.changed for message_id, unit in listed.items()} for listed in found]
    assert times == {"opencode.db": 3 * [{"opencode.db": T0 + 1}], "other.db": 3 * [{"other.db": T0}]}


def test_a_table_without_update_times_is_read_whole(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "opencode.db")
    connection.execute("CREATE TABLE message (id text, session_id text, time_updated integer, data text)")
    connection.execute("CREATE TABLE part (id text, message_id text, session_id text, data text)")
    connection.execute("INSERT INTO message VALUES ('msg_1', 'ses', 1, '{}')")
    connection.commit()
    with contextlib.closing(Connection(tmp_path / "opencode.db")) as reader:
        units = SessionUnits(reader, Tables(reader))
        stamps = {units.of("ses", Listing(), nothing)["msg_1"].stamp for _ in range(4)}
        connection.execute("INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses', 'a')")
        connection.commit()
        stamps |= {units.of("ses", Listing(), nothing)["msg_1"].stamp for _ in range(4)}
    connection.close()
    assert len(stamps) == 2


def test_of_many_sessions_the_last_ones_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(units_of_sessions, "_MOST_MESSAGES", 25)
    database = Database(tmp_path / "opencode.db")
    for number in range(50):
        database.connection.execute(
            "INSERT INTO message VALUES (?, ?, 0, 1, '{}')", (f"msg_{number}", f"ses_{number % 5}")
        )
    with contextlib.closing(Connection(database.path)) as connection:
        units = SessionUnits(connection, Tables(connection))
        for number in [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]:
            units.of(f"ses_{number}", Listing(), nothing)
        remembered = {session: len(known.stamps) for session, known in units._last.items()}
    database.close()
    assert {session: size for session, size in remembered.items() if size} == {"ses_3": 10, "ses_4": 10}


_STAMPS = st.dictionaries(st.sampled_from(["", "prt_1", "prt_2"]), st.sampled_from([1, 2, None, "x"]), max_size=3)
_REMOVED = st.builds(
    RemovedRows, st.lists(st.tuples(st.sampled_from(["", "prt_3"]), st.just("event 1")), max_size=2), st.integers(0, 2)
)
_LISTING = st.tuples(
    st.dictionaries(st.sampled_from(["msg_1", "msg_2"]), _STAMPS),
    st.dictionaries(st.sampled_from(["msg_1", "msg_3"]), _REMOVED),
)


@given(st.lists(_LISTING, max_size=8))
def test_a_remembered_unit_is_the_one_that_is_made_anew(listings):
    before: dict[str, Any] = {}
    for listed, removed in listings:
        before = made(listed, removed, before)
        assert before == made(listed, removed, {})


@pytest.mark.parametrize(
    "other", [{"": 1, "prt_1": 2}, {"": 1, "prt_1": 2, "prt_2": 4}, {"": 1, "prt_1": 2, "prt_3": 3}]
)
def test_a_unit_depends_on_ids_stamps_and_removals_not_on_the_order_of_rows(other: Stamps):
    def unit(stamps: Stamps, changed: int = 0) -> Unit:
        return made({"m": stamps}, {"m": RemovedRows([], changed)} if changed else {}, {})["m"][-1]

    rows = {"": 1, "prt_1": 2, "prt_2": 3}
    assert unit(dict(reversed(rows.items()))) == unit(rows)
    assert unit(rows).changed == 3
    assert unit(other).stamp != unit(rows).stamp
    assert unit(rows, 9).changed == 9
