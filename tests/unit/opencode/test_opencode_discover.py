"""Every database that OpenCode may use is found and followed, and every other one of its own is named."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.cli.subcommands import status
from daemon.config import Config
from daemon.control.answers import Status, from_json
from daemon.opencode import Source
from daemon.opencode.discover import Sources
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import Database, Database2, JsonStore, session, text, user

pytestmark = pytest.mark.on_disk


def store(path: Path, name: str) -> Path:
    """A database with one message, closed as OpenCode closes it."""
    database = Database(path)
    database.session(session(f"ses_{name}"))
    database.message(user(f"msg_{name}", f"ses_{name}"), text(f"prt_{name}", f"msg_{name}", f"ses_{name}", name))
    database.close()
    return path


@pytest.fixture
def opened() -> Iterator[Callable[..., Sources]]:
    made: list[Sources] = []

    def make(*arguments: object, **more: object) -> Sources:
        made.append(Sources(*arguments, **more))
        return made[-1]

    yield make
    for sources in made:
        sources.close()


def sessions(found: list[Source]) -> set[str]:
    return {session_id for source in found for session_id in source.sessions()}


CASES = {
    "no name": ("", None),
    "a name": ("mine.db", "data/opencode/mine.db"),
    "a name that does not end in db": ("records", "data/opencode/records"),
    "a relative path": ("sub/mine.sqlite", "data/opencode/sub/mine.sqlite"),
    "an absolute path": ("{root}/elsewhere/any.file", "elsewhere/any.file"),
    "in memory": (":memory:", None),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["environment", "configuration"])
def test_the_database_that_opencode_is_told_to_use_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, how: str
) -> None:
    value, place = CASES[case]
    value = value.format(root=tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if how == "environment":
        monkeypatch.setenv("OPENCODE_DB", value)
        loaded = Config()
    else:
        loaded = Config(opencode=config.OpenCode(databases=[value] if value else []))
    store(tmp_path / "data/opencode/opencode.db", "usual")
    store(tmp_path / "data/opencode/opencode-nightly.db", "nightly")
    if place:
        store(tmp_path / place, "named")
    with closing(Sources(loaded.opencode_dir, 64, databases=loaded.databases)) as sources:
        found = sessions(sources.refresh())
    assert found == {"ses_usual", "ses_nightly"} | ({"ses_named"} if place else set())
    assert sources.troubles == {}
    assert sources.unfollowed == []


def test_several_data_directories_are_read_together(tmp_path: Path) -> None:
    JsonStore(tmp_path / "one").session(session("ses_json"))
    store(tmp_path / "one" / "opencode.db", "one")
    store(tmp_path / "two" / "opencode.db", "two")
    loaded = Config(opencode=config.OpenCode(data_dir=str(tmp_path / "one"), data_dirs=[str(tmp_path / "two")]))
    first, *further = loaded.opencode_dirs
    with closing(Sources(first, 64, further=further)) as sources:
        assert sessions(sources.refresh()) == {"ses_json", "ses_one", "ses_two"}


def test_one_database_under_several_names_is_read_once(tmp_path: Path, opened: Callable[..., Sources]) -> None:
    path = store(tmp_path / "opencode" / "opencode.db", "one")
    (tmp_path / "link").symlink_to(tmp_path / "opencode")
    sources = opened(tmp_path / "opencode", 64, further=[tmp_path / "link"], databases=[tmp_path / "link/opencode.db"])
    assert [source.name for source in sources.refresh()] == [f"db:{path}"]


def _in_wal(path: Path) -> None:
    """As a killed writer leaves it: nothing was checkpointed."""
    scratch = path.with_name("scratch")
    database = Database(scratch)
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{scratch}{suffix}", f"{path}{suffix}")
    database.close()
    scratch.unlink()


OTHERS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "a backup": (lambda path: store(path, "backup"), True),
    "one whose tables stand in its WAL alone": (_in_wal, True),
    "one of OpenCode 2": (lambda path: Database2(path).close(), True),
    "another program's database": (lambda path: sqlite3.connect(path).execute("CREATE TABLE session (id)"), False),
    "a text": (lambda path: path.write_text("SQLite format 3 is what it is about"), False),
    "an empty file": (lambda path: path.touch(), False),
    "a folder": (lambda path: path.mkdir(), False),
    "a FIFO": (os.mkfifo, False),
    "a damaged database": (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000), False),
}


@pytest.mark.parametrize("name", ["backup.db", "opencode.db.bak", "records"])
@pytest.mark.parametrize("what", OTHERS)
def test_a_database_of_opencodes_that_nobody_named_is_told(
    tmp_path: Path, opened: Callable[..., Sources], what: str, name: str
) -> None:
    make, is_opencodes = OTHERS[what]
    store(tmp_path / "opencode.db", "usual")
    sources = opened(tmp_path, 64)
    sources.refresh()
    make(tmp_path / name)
    before = sorted(path.name for path in tmp_path.iterdir())
    for _ in range(2):
        assert sessions(sources.refresh()) == {"ses_usual"}
        assert sources.unfollowed == ([tmp_path / name] if is_opencodes else [])
    beside = {f"{name}-shm"} if what.startswith("one whose") else set()
    assert set(os.listdir(tmp_path)) - set(before) <= beside, "looking left something behind"


def test_the_status_names_what_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path / "opencode" / "mine.db", "mine")
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True)
        (row,) = engine.status()["sources"]
        assert row["name"] == str(tmp_path / "opencode" / "mine.db")
        assert "not followed" in row["state"]
        assert "opencode.databases" in row["state"]
        monkeypatch.setenv("OPENCODE_DB", "mine.db")
        assert any("OPENCODE_DB" in line for line in status._sources(from_json(engine.status(), Status)))
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True)
        assert [row["state"] for row in engine.status()["sources"]] == ["ok"]
        assert not any("OPENCODE_DB" in line for line in status._sources(from_json(engine.status(), Status)))


def test_a_full_scan_trusts_no_open_connection(tmp_path: Path, opened: Callable[..., Sources]) -> None:
    """Other content in the same files, of the same size and with the same times: nothing outside tells of it."""
    path, other = store(tmp_path / "opencode.db", "one"), store(tmp_path / "other" / "opencode.db", "two")
    sources = opened(tmp_path, 64)
    assert sessions(sources.refresh()) == {"ses_one"}
    before = path.stat()
    assert before.st_size == other.stat().st_size
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert sessions(sources.refresh(anew=True)) == {"ses_two"}


def test_a_locked_database_does_not_delay_the_other_sources(tmp_path: Path) -> None:
    data_dir = tmp_path / "opencode"
    tree = JsonStore(data_dir)
    tree.session(session("ses_json"))
    path = store(data_dir / "opencode.db", "locked")
    tables = {"opencode": {"data_dir": str(data_dir)}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine, closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA locking_mode=EXCLUSIVE")
        writer.execute("UPDATE session SET title = 'locked'")
        begun = time.monotonic()
        for number in range(4):
            message_id = f"msg_{number}"
            tree.message(user(message_id, "ses_json"), text(f"prt_{number}", message_id, "ses_json", "hello"))
            engine.scan(everything=True, patient=False)
            assert engine.archive.message(message_id) is not None
        assert time.monotonic() - begun < 30  # five seconds for each look, before
        assert "locked" in engine.status()["sources"][-1]["state"]
        writer.commit()
        writer.close()
        time.sleep(1.1)
        engine.scan(everything=False, patient=False)
        assert engine.archive.message("msg_locked") is not None
        assert {row["state"] for row in engine.status()["sources"]} == {"ok"}
