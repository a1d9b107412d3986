"""A full scan reads nothing where nothing was written since one that left nothing to be read again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app import scanning
from daemon.app.engine import Engine
from daemon.ingest import Intake
from daemon.opencode.database import Database as DatabaseSource
from tests.support.stores.make_opencode import Database, assistant, session, text, user


class Followed:
    """An engine over one database that counts how many sessions were listed by full scans."""

    def __init__(self, root: Path) -> None:
        self.database = Database(root / "oc" / "opencode.db")
        self.database.session(session("ses_1"))
        self.database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "apples"))
        self.listed = 0
        tables = {"opencode": {"data_dir": str(root / "oc")}, "archive": {"dir": str(root / "a")}}
        self.engine = Engine(msgspec.convert(tables, config.Config))

    def lists(self, *, patient: bool = True) -> bool:
        """Whether a full scan lists the sessions of the source."""
        self.listed = 0
        self.engine.scan(everything=True, patient=patient)
        return self.listed > 0

    @property
    def last_scan(self) -> int:
        (source,) = self.engine.sources.current()
        return self.engine.intake.last_scan[source.name]


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    made = Followed(tmp_path)
    sessions = DatabaseSource.sessions

    def counted(source: DatabaseSource) -> object:
        made.listed += 1
        return sessions(source)

    monkeypatch.setattr(DatabaseSource, "sessions", counted)
    monkeypatch.setattr(scanning, "_SETTLED_S", -60.0)  # the last write was long ago
    with closing(made.database), made.engine:
        yield made


def test_a_source_is_not_listed_again_while_nothing_is_written(
    followed: Followed,
) -> None:
    assert followed.lists()
    followed.engine.intake.last_scan.clear()
    assert not followed.lists()
    assert followed.last_scan > 0, "it is as good as a scan"
    assert followed.lists(patient=False), "whoever asks for it gets it"


def replaced(made: Followed) -> None:
    folder = made.database.path.parent
    shutil.copy(made.database.path, folder / "copy")
    (folder / "copy").replace(made.database.path)


WRITES: dict[str, Callable[[Followed], object]] = {
    "a session": lambda made: made.database.session(session("ses_2")),
    "a part in place": lambda made: made.database.part(text("prt_1", "msg_1", "ses_1", "pears")),
    "the same part again": lambda made: made.database.part(text("prt_1", "msg_1", "ses_1", "apples")),
    "a checkpoint": lambda made: made.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"),
    "the file replaced": replaced,
}


@pytest.mark.parametrize("name", WRITES)
def test_whatever_is_written_makes_a_full_scan_list_all(followed: Followed, name: str) -> None:
    assert followed.lists()
    assert not followed.lists()
    WRITES[name](followed)
    assert followed.lists()
    assert not followed.lists()


def test_a_full_scan_shortly_after_a_write_is_not_the_last_one(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed a moment before it was listed may change again under the same stamp."""
    monkeypatch.undo()
    sessions: list[str] = []
    monkeypatch.setattr(Intake, "unchanged", lambda _, source: sessions.append(source.name))
    for _ in range(3):
        followed.engine.scan(everything=True)
    assert sessions == []


def test_once_an_hour_all_is_listed_because_files_beside_the_database_are_read_too(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert followed.lists()
    assert not followed.lists()
    hour = time.monotonic() + 3601
    monkeypatch.setattr(time, "monotonic", lambda: hour)
    assert followed.lists()


def test_an_answer_that_stands_still_is_read_soon_and_one_that_grows_now_and_then(followed: Followed) -> None:
    """With a stopped clock: what is due is a matter of the times at which the source was written and scanned."""
    followed.database.message(user("msg_2", "ses_1"))
    source = followed.engine.sources.refresh()[0]
    state = source.state()
    assert state is not None
    quiet_s, written, now = followed.engine.config.watch.quiet_seconds, state.written, time.time()
    assert followed.engine._due(source, {"ses": now}) == set(), "looked at just now"
    assert followed.engine._due(source, {"ses": now - 3}) == {"ses"}, "looked at a while ago"
    assert followed.engine._due(source, {"ses": now + 60}) == {"ses"}, "the clock was set back"
    os.utime(source.name.partition(":")[2], (now - 0.9, now - 0.9))
    os.utime(f"{source.name.partition(':')[2]}-wal", (now - 0.9, now - 0.9))
    assert quiet_s == 0.4
    assert written > 0
    assert followed.engine._due(source, {"ses": now - 0.8}) == {"ses"}, "it has stood still since"
    assert followed.engine._due(source, {"ses": now - 0.4}) == set(), "looked at when it stood still"


def test_a_source_that_is_gone_has_nothing_to_wait_for(followed: Followed) -> None:
    followed.database.now = int(time.time() * 1000) + 60_000
    followed.database.message(assistant("msg_2", "ses_1", completed=None), text("prt_2", "msg_2", "ses_1", "b"))
    followed.engine.scan(everything=False)
    assert followed.engine.is_waiting
    path = followed.database.path
    path.rename(path.with_name("away"))
    followed.engine.scan(everything=True)
    assert not followed.engine.is_waiting
    path.with_name("away").rename(path)


def test_a_full_scan_that_left_something_is_not_the_last_one(followed: Followed) -> None:
    followed.database.now = int(time.time() * 1000) + 60_000
    followed.database.message(assistant("msg_2", "ses_1", completed=None), text("prt_2", "msg_2", "ses_1", "b"))
    assert [followed.lists() for _ in range(3)] == [True, True, True]
