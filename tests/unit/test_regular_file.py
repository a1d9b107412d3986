"""What stands in the place of a file that others own: each reader ends quickly, with a reason that names it."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from daemon import files
from daemon.archive import Archive
from daemon.errors import ReconstituteError, SourceBusy
from daemon.filesystem import regular_file
from daemon.filesystem.durable import Root
from daemon.ingest import Capture
from daemon.opencode import json_files
from daemon.opencode.configuration import on_disk
from daemon.opencode.connection import Connection
from daemon.opencode.discover import OtherDatabases
from daemon.opencode.json_files import session_diffs
from daemon.opencode.json_tree import JsonTree
from daemon.opencode.snapshots import Snapshots

ID = "ab" * 20
LIMIT = 1 << 20
WITHIN_S = 10.0


def fifo(place: Path) -> None:
    os.mkfifo(place)


def listening(place: Path) -> None:
    folder_ = os.open(place.parent, os.O_RDONLY)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"/proc/self/fd/{folder_}/{place.name}")
    os.close(folder_)


def device(place: Path) -> None:
    try:
        os.mknod(place, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        place.symlink_to("/dev/zero")  # without the right to make one


def folder(place: Path) -> None:
    place.mkdir()


def link(place: Path) -> None:
    place.symlink_to("/dev/zero")


def loop(place: Path) -> None:
    place.symlink_to(place)


def unreadable(place: Path) -> None:
    place.write_bytes(b"{}")
    place.chmod(0)


def sparse(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


THINGS = (fifo, listening, device, folder, link, loop, unreadable, sparse)


def planted(make: Callable[[Path], None], place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    make(place)
    return place


def loose_object(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "snapshot/p/objects" / ID[:2] / ID[2:])
    return _object(data)


def pack_index(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "snapshot/p/objects/pack/pack-1.idx").with_suffix(".pack").write_bytes(b"PACK")
    return _object(data)


def pack(data: Path, make: Callable[[Path], None]) -> str:
    folder_ = data / "snapshot/p/objects/pack"
    index = planted(lambda place: place.write_bytes(_index()), folder_ / "pack-1.idx")
    planted(make, index.with_suffix(".pack"))
    return _object(data)


def alternates(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "snapshot/p/objects/info/alternates")
    return _object(data)


def _index() -> bytes:
    """Git's index of a pack with one object, at its beginning."""
    first = bytes.fromhex(ID)[0]
    fan = b"".join((1 if number >= first else 0).to_bytes(4, "big") for number in range(256))
    return (
        b"\377tOc" + (2).to_bytes(4, "big") + fan + bytes.fromhex(ID) + bytes(4) + (12).to_bytes(4, "big") + bytes(40)
    )


def _object(data: Path) -> str:
    snapshots = Snapshots(data)
    try:
        snapshots.refresh()
        return snapshots.read(ID, LIMIT).reason
    finally:
        snapshots.close()


def spill(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "tool-output/tool_1")
    with Archive(data / "archive") as archive:
        capture = Capture(archive, Snapshots(data), data_dir=data, clock=lambda: 4e9)
        batch = archive.batch()
        capture.want_file(batch, "/x/tool-output/tool_1", 1)
        archive.commit(batch)
        capture.run(5.0)
        return archive.objects.missing("/x/tool-output/tool_1")


def record(data: Path, make: Callable[[Path], None]) -> str:
    return _reason(lambda: json_files.read(planted(make, data / "record.json"), LIMIT))


def part(data: Path, make: Callable[[Path], None]) -> str:
    message = planted(
        lambda place: place.write_text('{"id":"msg_1","role":"user"}'), data / "storage/message/ses_1/msg_1.json"
    )
    planted(make, data / "storage/part/msg_1/prt_1.json")
    assert message.exists()
    try:
        reading = JsonTree(data / "storage", 1).read_message("ses_1", "msg_1")
    except SourceBusy as error:
        return str(error)
    return "; ".join(problem.reason for problem in reading.problems)


def session_diff(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "storage/session_diff/ses_1.json")
    return _reason(lambda: session_diffs(data, "ses_1", 1))


def project_file(data: Path, make: Callable[[Path], None]) -> str:
    place = planted(make, data / "project.txt")
    return f"{files.compare(str(place), b'text')} {files.standing(str(place), 'a' * 64, 2)}"


def request(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "requests/one")
    with Root(data / "requests") as root:
        return _reason(lambda: root.read("one", LIMIT))


def database(data: Path, make: Callable[[Path], None]) -> str:
    return _reason(Connection(planted(make, data / "opencode.db"), 50).tables)


def database_log(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "opencode.db-wal")
    connection = Connection(data / "opencode.db", 50)
    (data / "opencode.db").write_bytes(b"")
    return _reason(connection.tables)


def database_nobody_named(data: Path, make: Callable[[Path], None]) -> str:
    place = data / "backup.db"
    with closing(sqlite3.connect(place)) as made:
        made.execute("CREATE TABLE session_v2 (id)")
    planted(make, data / "backup.db-wal")
    return str(OtherDatabases().among([place]))


def configuration(data: Path, make: Callable[[Path], None]) -> str:
    planted(make, data / "opencode.json")
    return str(on_disk(str(data), {}))


def _reason(read: Callable[[], object]) -> str:
    try:
        read()
    except ReconstituteError as error:
        return str(error)
    return ""


READERS = (
    loose_object, pack_index, pack, alternates, spill, record, part, session_diff, project_file, request, database,
    database_log, database_nobody_named, configuration,
)  # fmt: skip
SILENT = (project_file, database, database_log, database_nobody_named, configuration)
"""Readers that pass over what they cannot read, or say of it only that it is no file."""


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("thing", THINGS, ids=lambda one: one.__name__)
def test_whatever_stands_in_a_files_place_is_refused(tmp_path: Path, thing, reader) -> None:
    outcome: list[str] = []
    reading = threading.Thread(target=lambda: outcome.append(reader(tmp_path, thing)), daemon=True)
    reading.start()
    reading.join(WITHIN_S)
    assert not reading.is_alive(), "it waits"
    assert len(outcome) == 1, "it failed"
    told = outcome[0]
    if reader is database_log and thing in (sparse, unreadable, link, loop):
        return  # SQLite's own affair: it neither waits nor reads more than it needs
    if thing is unreadable and os.geteuid() == 0:
        return  # root reads everything
    assert told, "nothing is said"
    words = {fifo: ("FIFO",), listening: ("socket",), device: ("device", "link"), folder: ("directory", "folder")}
    if reader not in SILENT and thing in words:
        assert any(word in told for word in words[thing]), told


def test_a_file_is_read_to_its_limit(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"12345")
    assert regular_file.read(place, 5) == b"12345"
    with pytest.raises(regular_file.TooLargeError, match="5 bytes, more than the 4"):
        regular_file.read(place, 4)
