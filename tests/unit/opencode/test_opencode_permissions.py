"""A folder or file that could not be read is read as soon as its permissions allow it, whether or not an event tells."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon.app.engine import Engine
from daemon.config import Config
from daemon.errors import Unreadable
from daemon.filesystem import regular_file
from daemon.filesystem.large_files import LargeFiles
from daemon.opencode.json_tree import JsonTree
from daemon.opencode.watch import Watch
from daemon.records import OWN_SESSION_TITLE
from tests.support.processes.daemon_process import until
from tests.support.refusals import nobodys_folder, refused
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text, tool, user


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of this process, which is not root's for as long: root may read everything."""
    with nobodys_folder() as folder:
        yield folder


def assert_everything_is_read(engine: PlainService) -> None:
    """The one session with its message and todo list, and nothing is set aside."""
    message, kept = engine.archive.message("msg_1"), engine.archive.session("ses_1")
    assert message is not None
    assert [part.data["text"] for part in message.parts] == ["hello"]
    assert kept is not None
    assert kept.title == "Here"
    assert engine.archive.quarantined() == {}
    assert engine.archive.beside.todos("ses_1") == [{"content": "Dig"}]


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
        assert_everything_is_read(engine)
        assert {row["state"] for row in engine.status()["sources"]} == {"ok"}


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
        assert_everything_is_read(engine)


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
        engine.scan(everything=True, patient=False, words=False)
        assert engine.archive.objects.spill(str(path)) is not None


def _with_a_large_part(tmp_path: Path) -> tuple[JsonStore, Path]:
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    parts = (text(f"prt_{number}", "msg_1", "ses_1", words) for number, words in ((1, "good"), (2, "x" * (3 << 20))))
    store.message(assistant("msg_1", "ses_1"), *parts)
    return store, store.storage / "part" / "msg_1" / "prt_2.json"


@pytest.mark.parametrize("content", ["large", "damaged"])
def test_a_record_refused_at_its_second_open_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """It is opened once to be parsed, and again to be kept."""
    store, path = _with_a_large_part(tmp_path)
    if content == "damaged":
        path.write_text("{")
        os.utime(path, (1, 1))
    opened, opens = regular_file.opened, 0

    def refused_again(name: Path) -> object:
        nonlocal opens
        opens += name == path
        if opens < 2 or name != path:
            return opened(name)
        with refused(path):
            return opened(name)

    tree = JsonTree(store.storage, record_mb=2, large=LargeFiles(tmp_path / "large"))
    monkeypatch.setattr(regular_file, "opened", refused_again)
    (problem,) = tree.read_message("ses_1", "msg_1").problems
    assert (opens, problem.waits, problem.is_kept) == (2, True, False)
    monkeypatch.undo()
    (problem,) = tree.read_message("ses_1", "msg_1").problems
    assert (problem.waits, problem.is_kept) == (False, content == "large")


@pytest.mark.parametrize("has_folder", [False, True])
def test_a_large_record_that_cannot_be_copied_costs_only_itself(tmp_path: Path, *, has_folder: bool) -> None:
    """The record's own file is the last that may be open, so its copy cannot be."""
    store, _ = _with_a_large_part(tmp_path)
    tree = JsonTree(store.storage, record_mb=2, large=LargeFiles(tmp_path / "large"))
    if has_folder:
        (tmp_path / "large").mkdir(mode=0o700)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))
    try:
        reading = tree.read_message("ses_1", "msg_1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert reading.message is not None
    assert [part.id for part in reading.message.parts] == ["prt_1"]
    assert [(problem.waits, problem.is_kept) for problem in reading.problems] == [(True, False)]
    assert [(problem.waits, problem.is_kept) for problem in tree.read_message("ses_1", "msg_1").problems] == [
        (False, True)
    ]


@pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
def test_a_message_whose_folder_is_closed_is_not_gone(place: Path, mode: int) -> None:
    store = JsonStore(place / "opencode")
    store.session(session("ses_1", title="Here"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    store.raw("todo/ses_1.json", '[{"content": "Dig"}]')
    tree = JsonTree(store.storage)
    for folder in ("message/ses_1", "session/pid", "todo"):
        (store.storage / folder).chmod(mode)
    reading = tree.read_message("ses_1", "msg_1")
    assert (reading.message, reading.orphan) == (None, False)
    assert [problem.waits for problem in reading.problems] == [True]
    with pytest.raises(Unreadable):
        tree.read_session("ses_1")
    with pytest.raises(Unreadable):
        tree.todos("ses_1")
    for folder in ("message/ses_1", "session/pid", "todo"):
        (store.storage / folder).chmod(0o700)
    assert tree.read_message("ses_1", "msg_1").message is not None
    assert tree.read_session("ses_1").title == "Here"
    assert tree.todos("ses_1") is not None


@pytest.mark.parametrize("closed", ["part/msg_1", "message/ses_1", "session/p1"])
def test_a_folder_whose_files_are_refused_costs_only_its_own(place: Path, closed: str) -> None:
    """Its names can be listed, and nothing else can be known of them."""
    store = JsonStore(place / "opencode")
    for number in (1, 2):
        store.session(session(f"ses_{number}") | {"projectID": f"p{number}"})
        store.message(
            user(f"msg_{number}", f"ses_{number}"), text(f"prt_{number}", f"msg_{number}", f"ses_{number}", "hello")
        )
    tables = {"opencode": {"data_dir": str(place / "opencode")}, "archive": {"dir": str(place / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        (store.storage / closed).chmod(0o400)
        engine.scan(everything=True, patient=False, words=False)
        assert engine.unread == []
        assert engine.archive.message("msg_2") is not None
        assert engine.archive.quarantined() != {}
        (store.storage / closed).chmod(0o700)
        engine.scan(everything=True, patient=False, words=False)
        assert engine.archive.message("msg_1") is not None
        assert not engine.archive.is_deleted("msg_1")
        assert engine.archive.quarantined() == {}


def test_a_session_of_ours_whose_record_was_refused_is_not_archived(tmp_path: Path) -> None:
    """Its messages here do not say that they are ours, so only its title does."""
    store = JsonStore(tmp_path / "opencode")
    record = store.session(session("ses_1", title=f"{OWN_SESSION_TITLE} chat"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        with refused(record):
            engine.scan(everything=True, patient=False, words=False)
        engine.scan(everything=True, patient=False, words=False)
        assert list(engine.archive.all_message_ids()) == []
        store.session(session("ses_1", title="Renamed by the user"))
        engine.scan(everything=True, patient=False, words=False)
        assert list(engine.archive.all_message_ids()) == ["msg_1"]


@pytest.mark.parametrize("name", ["todo/ses_1.json", "session_diff/ses_1.json"])
def test_a_damaged_record_beside_the_messages_is_noted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    os.utime(store.raw(name, "{"), (1, 1))
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True, patient=False, words=False)
        (first,) = engine.archive.quarantined().values()
        assert "set aside" in caplog.text
        caplog.clear()
        engine.scan(everything=True, patient=False, words=False)
        (second,) = engine.archive.quarantined().values()
        assert first == second
        assert "set aside" not in caplog.text
        store.raw(name, "[]")
        engine.scan(everything=True, patient=False, words=False)
        assert engine.archive.quarantined() == {}


def test_what_was_refused_is_tried_again_without_an_event(tmp_path: Path) -> None:
    """And not at once at every scan: after a pause."""
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    path = store.storage / "message/ses_1/msg_1.json"
    os.utime(path, (1, 1))
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        with refused(path):
            engine.scan(everything=True, patient=False, words=False)
        engine.scan(everything=False, words=False)
        assert engine.archive.message("msg_1") is None

        def is_read() -> bool:
            engine.scan(everything=False, words=False)
            return engine.archive.message("msg_1") is not None

        until(is_read)
