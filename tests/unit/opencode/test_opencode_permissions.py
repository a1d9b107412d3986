"""A folder or file that could not be read is read as soon as its permissions allow it, whether or not an event tells."""

from __future__ import annotations

import codecs
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from daemon.app.engine import Engine
from daemon.config import Config
from daemon.opencode.watch import Watch
from tests.support.processes.daemon_process import until
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text, tool, user

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of this process, which is not root's for as long: root may read everything."""
    made = Path(tempfile.mkdtemp(prefix="rc-"))
    is_root = os.geteuid() == 0
    codecs.lookup("ascii")  # loaded now, because nobody may not read where root's Python lies
    if is_root:
        os.chown(made, NOBODY, -1)
        os.seteuid(NOBODY)
    try:
        yield made
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(made)


CLOSED = [
    "part/msg_1", "part/msg_1/prt_1.json", "message/ses_1", "message/ses_1/msg_1.json", "session/pid",
    "session/pid/ses_1.json", "part", "message", "session", "todo/ses_1.json", "todo", "",
]  # fmt: skip


@pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
@pytest.mark.parametrize("closed", CLOSED)
def test_what_was_closed_is_read_when_its_permissions_change(place: Path, closed: str, mode: int) -> None:
    store = JsonStore(place / "opencode")
    store.session(session("ses_1", title="Here"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    store.raw("todo/ses_1.json", '[{"content": "Dig"}]')
    path = store.storage / closed
    usual = path.stat().st_mode & 0o777
    if path.is_file() and mode:
        mode = 0o200
    tables = {"opencode": {"data_dir": str(place / "opencode")}, "archive": {"dir": str(place / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        path.chmod(mode)
        for _ in range(3):
            engine.scan(everything=False, words=False)
        path.chmod(usual)
        engine.scan(everything=False, words=False)
        message, kept = engine.archive.message("msg_1"), engine.archive.session("ses_1")
        assert message is not None
        assert [part.data["text"] for part in message.parts] == ["hello"]
        assert kept is not None
        assert kept.title == "Here"
        assert engine.archive.quarantined() == {}
        assert engine.archive.beside.todos("ses_1") == [{"content": "Dig"}]
        assert {row["state"] for row in engine.status()["sources"]} == {"ok"}


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """While a lease on the file is held, nobody else can open it without waiting; nothing of it changes."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)


@pytest.mark.parametrize("name", [name for name in CLOSED if name.endswith(".json")])
def test_what_the_system_refused_for_a_moment_is_tried_again(tmp_path: Path, name: str) -> None:
    """As on a failing disk, or with too many open files: no event tells that it can be read, and its stamp is the same."""
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1", title="Here"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    store.raw("todo/ses_1.json", '[{"content": "Dig"}]')
    for path in store.storage.rglob("*.json"):
        os.utime(path, (T0 / 1000, T0 / 1000))  # long ago, so that no doubt has it read again
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        with refused(store.storage / name):
            engine.scan(everything=True, patient=False, words=False)
        engine.scan(everything=True, patient=False, words=False)
        message, kept = engine.archive.message("msg_1"), engine.archive.session("ses_1")
        assert message is not None
        assert [part.data["text"] for part in message.parts] == ["hello"]
        assert kept is not None
        assert kept.title == "Here"
        assert engine.archive.quarantined() == {}
        assert engine.archive.beside.todos("ses_1") == [{"content": "Dig"}]


def test_what_stays_refused_is_written_down_once(place: Path) -> None:
    store = JsonStore(place / "opencode")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    (store.storage / "part/msg_1/prt_1.json").chmod(0)
    tables = {"opencode": {"data_dir": str(place / "opencode")}, "archive": {"dir": str(place / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True, patient=False, words=False)
        (first,) = engine.archive.quarantined().values()
        engine.scan(everything=True, patient=False, words=False)
        (second,) = engine.archive.quarantined().values()
    assert first == second


def test_a_folder_that_becomes_readable_is_watched(place: Path) -> None:
    store = JsonStore(place / "opencode")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    (place / "requests").mkdir()
    hints: list[str | None] = []
    watch = Watch(place / "opencode", place / "requests", hints.append)
    folder = store.storage / "message" / "ses_1"
    folder.chmod(0)
    watch.start()
    assert not watch.stale()
    folder.chmod(0o700)
    assert watch.stale()
    watch.restart()
    assert not watch.stale()
    store.message(user("msg_2", "ses_1"))
    until(lambda: any((hint or "").endswith("msg_2.json") for hint in hints))
    watch.stop()


@pytest.mark.parametrize("closed", ["tool-output", "tool-output/tool_1"])
def test_a_long_output_waits_until_it_may_be_read(place: Path, closed: str) -> None:
    store = JsonStore(place / "opencode")
    path = place / "opencode" / "tool-output" / "tool_1"
    path.parent.mkdir()
    path.write_text("a long output")
    os.utime(path, (1, 1))
    state = {"status": "completed", "input": {"command": "make"}, "output": "…", "metadata": {"outputPath": str(path)}}
    store.session(session("ses_1"))
    store.message(assistant("msg_1", "ses_1"), tool("prt_1", "msg_1", "ses_1", "bash", state))
    (place / "opencode" / closed).chmod(0)
    tables = {"opencode": {"data_dir": str(place / "opencode")}, "archive": {"dir": str(place / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True, patient=False, words=False)
        assert engine.archive.objects.spill(str(path)) is None
        (place / "opencode" / closed).chmod(0o700)
        engine.scan(everything=False, patient=False, words=False)
        assert engine.archive.objects.spill(str(path)) is not None
