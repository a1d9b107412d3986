"""Units of a session's messages: remembered rows and units are those that are read and made anew."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.opencode import Listing
from daemon.opencode.connection import Connection
from daemon.opencode.damage import Tables
from daemon.opencode.journal import RemovedRows
from daemon.opencode.shared import Stamps
from daemon.opencode.units import SessionRows, Units
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


@given(st.lists(st.tuples(st.lists(_CHANGES, max_size=4), _SESSIONS), max_size=12))
def test_remembered_rows_are_those_that_are_read_anew(steps):
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "opencode.db")
        connection = Connection(database.path)
        rows = SessionRows(connection, Tables(connection))
        for changes, session in steps:
            for sql, *values in changes:
                database.connection.execute(sql, values)
            assert rows.of(session, Listing()) == SessionRows(connection, Tables(connection)).of(session, Listing())
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
        rows = SessionRows(connection, Tables(connection))
        rows.of("ses", Listing())
        database.connection.execute("UPDATE message SET time_updated = ? WHERE id = 'msg_7'", (T0 + 99,))
        asked.clear()
        assert rows.of("ses", Listing())["msg_7"] == {"": T0 + 99}
        assert max(asked) == 2  # the changed row, and the one that was the latest
    database.close()


def test_nothing_is_remembered_of_a_database_that_was_replaced(tmp_path: Path):
    times: dict[str, object] = {}
    with contextlib.closing(Connection(tmp_path / "opencode.db")) as connection:
        rows = SessionRows(connection, Tables(connection))
        for name, time in (("opencode.db", T0 + 1), ("other.db", T0)):
            database = Database(tmp_path / name)
            database.connection.execute("INSERT INTO message VALUES (?, 'ses', 0, ?, '{}')", (name, time))
            database.connection.execute("PRAGMA journal_mode=DELETE")
            database.close()
            os.replace(tmp_path / name, tmp_path / "opencode.db")
            times |= {name: rows.of("ses", Listing())}
    assert times == {"opencode.db": {"opencode.db": {"": T0 + 1}}, "other.db": {"other.db": {"": T0}}}


_STAMPS = st.dictionaries(st.sampled_from(["", "prt_1", "prt_2"]), st.sampled_from([1, 2, None, "x"]), max_size=3)
_REMOVED = st.builds(
    RemovedRows, st.lists(st.tuples(st.sampled_from(["", "prt_3"]), st.just("event 1")), max_size=2), st.integers(0, 2)
)
_LISTING = st.tuples(
    st.sampled_from("abcde"),
    st.dictionaries(st.sampled_from(["msg_1", "msg_2"]), _STAMPS),
    st.dictionaries(st.sampled_from(["msg_1", "msg_3"]), _REMOVED),
)


@given(st.lists(_LISTING, max_size=8))
def test_a_remembered_unit_is_the_one_that_is_made_anew(listings):
    units = Units()
    for listing in listings:
        assert units.of(*listing) == Units().of(*listing)


@pytest.mark.parametrize(
    "other", [{"": 1, "prt_1": 2}, {"": 1, "prt_1": 2, "prt_2": 4}, {"": 1, "prt_1": 2, "prt_3": 3}]
)
def test_a_unit_depends_on_ids_stamps_and_removals_not_on_the_order_of_rows(other: Stamps):
    of = Units().of
    rows = {"": 1, "prt_1": 2, "prt_2": 3}
    (unit,) = of("s", {"m": rows}, {}).values()
    assert of("s", {"m": dict(reversed(rows.items()))}, {})["m"] == unit
    assert unit.changed == 3
    assert of("s", {"m": other}, {})["m"].stamp != unit.stamp
    assert of("s", {"m": rows}, {"m": RemovedRows([], 9)})["m"].changed == 9
