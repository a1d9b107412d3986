"""File events are hints: our own reading gives none, a lost or impossible watch is told and loses nothing."""

from __future__ import annotations

import errno
import json
import logging
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from daemon.opencode import watch as watching
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.json_tree import JsonTree
from daemon.opencode.watch import Watch, file_system
from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import Database, JsonStore, session, text, user

pytestmark = pytest.mark.on_disk


class Places:
    """A data directory and a request directory with a watch over them; `hints` is what it said."""

    def __init__(self, root: Path) -> None:
        self.data, self.requests = root / "opencode", root / "requests"
        self.data.mkdir()
        self.requests.mkdir()
        self.hints: list[str | None] = []
        self.watch = Watch(self.data, self.requests, self.hints.append)

    def settle(self) -> None:
        """Until every event so far has come through: a marker's event comes after them."""
        marker = self.requests / f"marker-{len(self.hints)}"
        marker.touch()
        until(lambda: str(marker) in self.hints)
        self.hints[:] = [hint for hint in self.hints if "marker" not in (hint or "")]


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    made = Places(tmp_path)
    yield made
    made.watch.stop()


def test_our_own_reading_of_a_database_raises_no_hint(places: Places) -> None:
    database = Database(places.data / "opencode.db")
    database.session(session("ses_a"))
    database.message(user("msg_a", "ses_a"), text("prt_a", "msg_a", "ses_a", "hello"))
    connection = Connection(places.data / "opencode.db")
    source = DatabaseSource(connection)
    source.sessions()  # opening it for the first time is not what repeats
    places.watch.start()
    assert places.watch.trouble == ""
    for _ in range(50):
        list(source.touched() or ())
        for session_id in source.sessions():
            for message_id in source.messages(session_id):
                assert source.read_message(session_id, message_id).message is not None

    places.settle()

    assert places.hints == []
    connection.close()
    database.close()


def test_a_commit_of_opencodes_is_a_hint(places: Places) -> None:
    database = Database(places.data / "opencode.db")
    places.watch.start()
    database.session(session("ses_a"))

    until(lambda: any("opencode.db-wal" in (hint or "") for hint in places.hints))
    database.close()


def test_our_own_reading_of_json_files_raises_no_hint(places: Places) -> None:
    store = JsonStore(places.data)
    store.session(session("ses_a"))
    store.message(user("msg_a", "ses_a"), text("prt_a", "msg_a", "ses_a", "hello"))
    places.watch.start()
    source = JsonTree(places.data / "storage")
    for _ in range(20):
        source.sessions()
        source.messages("ses_a")
        assert source.read_message("ses_a", "msg_a").message is not None

    places.settle()

    assert places.hints == []


def test_a_burst_of_new_nested_folders_is_complete_after_one_look(places: Places) -> None:
    (places.data / "storage").mkdir()
    places.watch.start()
    source = JsonTree(places.data / "storage")
    source.sessions()
    source.touched()
    for number in range(60):
        folder = places.data / "storage" / "message" / f"ses_{number:02d}"
        folder.mkdir(parents=True)
        for name in ("a", "b", "c"):
            (folder / f"msg_{number:02d}{name}.json").write_text(
                json.dumps(user(f"msg_{number:02d}{name}", f"ses_{number:02d}"))
            )
    places.settle()
    for hint in places.hints:
        source.hint(hint or "")

    touched = source.touched()

    sessions = set(source.sessions()) if touched is None else set(touched)
    seen = [message for session_id in sorted(sessions) for message in source.messages(session_id)]
    assert len(seen) == 180


class Recording(Observer):  # type: ignore[valid-type, misc]  # a variable in watchdog's types
    """The real observer; `seen` is every event that the kernel sent, whatever the watch makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[FileSystemEvent] = []

    def schedule(self, event_handler: FileSystemEventHandler, path: str, **options: Any) -> ObservedWatch:
        heard = event_handler.dispatch

        def dispatch(event: FileSystemEvent) -> None:
            self.seen.append(event)
            heard(event)

        event_handler.dispatch = dispatch  # type: ignore[method-assign]
        return super().schedule(event_handler, path, **options)


def test_our_own_reading_does_not_even_wake_the_watch(places: Places) -> None:
    store = JsonStore(places.data)
    store.session(session("ses_a"))
    store.message(user("msg_a", "ses_a"), text("prt_a", "msg_a", "ses_a", "hello"))
    observer = Recording()
    places.watch = Watch(places.data, places.requests, places.hints.append, lambda: observer)
    places.watch.start()
    source = JsonTree(places.data / "storage")
    for _ in range(20):
        source.messages("ses_a")
        source.read_message("ses_a", "msg_a")

    places.settle()

    assert {os.path.dirname(os.fsdecode(event.src_path)) for event in observer.seen} <= {str(places.requests)}


class Full(Observer):  # type: ignore[valid-type, misc]  # a variable in watchdog's types
    """The real observer, but the kernel refuses it."""

    number = errno.ENOSPC

    def start(self) -> None:
        raise OSError(self.number, os.strerror(self.number))


class Exhausted(Full):
    number = errno.EMFILE


@pytest.mark.parametrize(
    ("make", "fix"),
    [(Full, "fs.inotify.max_user_watches"), (Exhausted, "fs.inotify.max_user_instances")],
)
def test_a_watch_that_cannot_be_had_is_a_trouble_with_its_fix_and_no_crash(
    tmp_path: Path, make: Callable[[], BaseObserver], fix: str
) -> None:
    watch = Watch(tmp_path, tmp_path, lambda _: None, make)
    watch.start()

    assert fix in watch.trouble
    assert "scanning only" in watch.trouble
    assert watch.stale() is False
    watch.stop()


def test_with_no_descriptor_left_the_real_observer_is_a_trouble_too(places: Places) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        places.watch.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert "scanning only" in places.watch.trouble


def test_a_place_that_appears_vanishes_or_is_replaced_stales_the_watch(places: Places) -> None:
    places.watch.start()
    assert not places.watch.stale()
    for change in (
        (places.data / "storage").mkdir,
        lambda: shutil.rmtree(places.data),
        lambda: (places.data / "storage").mkdir(parents=True),
    ):
        change()
        assert places.watch.stale()
        places.hints.clear()
        places.watch.restart()
        assert None in places.hints
        assert not places.watch.stale()

    (places.data / "storage" / "message").mkdir()
    until(lambda: any("message" in (hint or "") for hint in places.hints))


def test_a_replaced_directory_makes_the_watch_stale(places: Places) -> None:
    places.watch.start()
    places.data.rename(places.data.with_name("old"))
    places.data.mkdir()

    assert places.watch.stale()


def test_a_lost_event_means_look_at_all_until_the_watch_ends(places: Places) -> None:
    places.watch.start()
    complaint = logging.getLogger("watchdog.observers.inotify")
    complaint.warning("Inotify queue overflowed; reconciling")
    assert places.hints == [None]

    places.watch.stop()
    complaint.warning("Inotify queue overflowed; reconciling")
    assert places.hints == [None]


def test_a_database_elsewhere_is_watched_and_its_neighbours_are_not(places: Places, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = elsewhere / "any.file"
    places.watch = Watch(places.data, places.requests, places.hints.append, databases=[path])
    places.watch.start()
    (elsewhere / "diary.txt").write_text("none of our business")
    database = Database(path)
    database.session(session("ses_a"))
    until(lambda: any((hint or "").startswith(f"{path}-wal") for hint in places.hints))
    places.settle()
    assert {Path(hint or "").name.split("-")[0] for hint in places.hints} == {"any.file"}
    database.close()


def test_a_further_data_directory_is_watched(places: Places, tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "further")
    places.watch = Watch(places.data, places.requests, places.hints.append, further=[tmp_path / "further"])
    places.watch.start()
    written = store.session(session("ses_a"))
    until(lambda: str(written.parent) in places.hints or str(written) in places.hints)


# -- when hints can be relied on ---------------------------------------------------------------------------------------

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /home/ada/remote rw - nfs4 server:/export rw
24 22 0:22 / /home/ada/with\040space rw shared:7 master:1 - fuse.sshfs host: rw
25 22 0:23 / /home/ada/remote/back rw - xfs /dev/sdb1 rw
26 22 0:24 / /home/ada/covered rw - ext4 /dev/sdc1 rw
27 26 0:25 / /home/ada/covered rw - 9p host rw
""".strip()


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/home/ada/.local/share/opencode", "ext4"),
        ("/home/ada/remote", "nfs4"),
        ("/home/ada/remote/opencode", "nfs4"),
        ("/home/ada/remotes", "ext4"),
        ("/home/ada/with space/opencode", "fuse.sshfs"),
        ("/home/ada/remote/back/opencode", "xfs"),
        ("/home/ada/covered/opencode", "9p"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_innermost_mount(tmp_path: Path, place: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS + "\n")
    assert file_system(place, tmp_path / "mountinfo") == kind


def test_without_a_list_of_mounts_no_file_system_is_known(tmp_path: Path) -> None:
    assert file_system("/home", tmp_path / "none") == ""


def test_hints_are_relied_on_for_files_in_watched_local_folders_only(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "file_system", lambda place: "nfs4" if place.endswith("requests") else "ext4")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.db").touch()
    (places.data / "opencode-linked.db").symlink_to(tmp_path / "elsewhere" / "linked.db")
    assert not places.watch.sees([places.data / "opencode.db"])
    places.watch.start()
    assert places.watch.sees([places.data / "opencode.db"])
    assert not places.watch.sees([places.data / "opencode-linked.db"])
    assert not places.watch.sees([places.data / "opencode.db", places.requests / "any"])
    places.watch.trouble = "the watch table is full"
    assert not places.watch.sees([places.data / "opencode.db"])
    places.watch.trouble = ""
    places.watch.stop()
    assert not places.watch.sees([places.data / "opencode.db"])
