"""The disk fills up, really, in each phase of the work: the service waits, says so, and goes on by itself."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.processes.small_disk import SmallDisk, with_small_disks
from tests.support.stores.make_opencode import Database

MB = 1 << 20
LONG = 60_000
"""Characters of a text that no rest of a block has room for."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., SmallDisk]]:
    made: list[SmallDisk] = []

    def make(path: Path, megabytes: int) -> SmallDisk:
        made.append(SmallDisk(path, megabytes))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Running:
    """A daemon over a database that is written to while disks fill."""

    def __init__(self, daemon: Daemon, data_dir: Path) -> None:
        self.daemon = daemon
        self.database = Database(data_dir / "opencode.db")
        self.talk = Talk(self.database)
        self.asked = [self.talk.ask(f"The first {words(0)}.")]
        self.pid = 0

    def run(self) -> Running:
        self.daemon.run()
        assert self.daemon.process is not None
        self.pid = self.daemon.process.pid
        self.daemon.wait_until_drained()
        assert self.daemon.status()["disk"] is None
        return self

    def say(self, number: int, size: int = 0) -> None:
        filling = " ".join(words(n) for n in range(number * 100_000, number * 100_000 + size // 15))
        self.asked.append(self.talk.ask(f"Now the {words(number)}. {filling}"))

    def waits(self, work: str) -> dict[str, Any]:
        """The status once this work waits for free space."""

        def waiting() -> dict[str, Any] | None:
            status = self.daemon.status()
            return status if status["disk"] and work in status["disk"]["paused"] else None

        status = until(waiting, what=f"{work} waits")
        assert status is not None
        assert status["pid"] == self.pid
        assert 0 <= time.time() * 1000 - status["disk"]["since"] < 600_000
        return status

    def goes_on(self) -> None:
        """Everything is archived, once, and found; the same process has done it and ends as always."""
        until(lambda: self.daemon.status()["archive"]["messages"] == len(self.asked), what="everything archived")
        self.daemon.wait_until_drained(120)
        status = until(lambda: (s := self.daemon.status())["disk"] is None and s, what="nothing waits")
        assert status["pid"] == self.pid
        for number, name in enumerate(self.asked):
            if f"{words(number)}" in self.wording(name):
                assert [hit["messageID"] for hit in self.daemon.search(words(number))] == [name]
        assert self.daemon.terminate()[0] == 0
        with Archive(self.daemon.archive_dir) as archive:
            assert sorted(archive.all_message_ids()) == sorted(self.asked)
            assert archive.figures()["messages"] == archive.figures()["parts"] == len(self.asked)
            assert [archive.waiting(stage) for stage in ("lexical", "semantic")] == [0, 0]
        self.database.close()

    def wording(self, name: str) -> str:
        rows = self.database.connection.execute("SELECT data FROM part WHERE message_id = ?", (name,))
        return str(rows.fetchone()[0])


@pytest.fixture
def running(make_daemon: Callable[..., Daemon], data_dir: Path) -> Callable[..., Running]:
    return lambda **tables: Running(make_daemon(tables={"limits": {"free_mb": 0}} | tables), data_dir)


@with_small_disks
def test_reading_waits_for_room(request, tmp_path: Path, disk, running) -> None:
    small = disk(tmp_path / "ours" / "archive", 96)
    service = running().run()
    small.fill()
    for number in range(1, 5):
        service.say(number, LONG)
    status = service.waits("intake")
    assert "space" in status["disk"]["reason"] or "room" in status["disk"]["reason"]
    said = service.daemon.ask("status").stdout
    assert "full since" in said
    assert "reading sessions" in said
    assert [hit["messageID"] for hit in service.daemon.search(words(0))] == service.asked[:1]
    small.make_room()
    service.goes_on()


@with_small_disks
def test_nothing_is_written_below_the_floor(request, tmp_path: Path, disk, running) -> None:
    small = disk(tmp_path / "ours" / "archive", 96)
    service = running(limits={"free_mb": 24}).run()
    small.fill(leave=20 * MB)
    until(lambda: small.free() < 24 * MB)
    for number in range(1, 4):
        service.say(number)
    status = service.waits("intake")
    assert "less than 24 MB (limits.free_mb)" in status["disk"]["reason"]
    assert status["archive"]["messages"] == 1
    small.make_room()
    service.goes_on()


@with_small_disks
def test_indexing_waits_for_room(request, tmp_path: Path, disk, running) -> None:
    small = disk(tmp_path / "ours" / "archive" / "index", 64)
    service = running().run()
    small.fill()
    for number in range(1, 5):
        service.say(number, LONG)
    status = service.waits("words")
    service.waits("embed")
    until(lambda: service.daemon.status()["archive"]["messages"] == 5)
    assert status["outbox"]["lexical"] > 0
    small.make_room()
    service.goes_on()
    assert not list((service.daemon.archive_dir / "index").glob("*.parked"))


@with_small_disks
def test_capturing_waits_for_room(request, tmp_path: Path, disk, running, data_dir: Path) -> None:
    small = disk(tmp_path / "ours" / "archive", 96)
    service = running().run()
    spill = data_dir / "tool-output" / "tool_long"
    spill.parent.mkdir()
    spill.write_bytes(random.Random(1).randbytes(6 * MB))  # the archive compresses, and this has to take room
    small.fill(leave=3 * MB)
    state = {
        "status": "completed", "input": {"command": "make"}, "output": "cut off", "title": "make",
        "metadata": {"outputPath": str(spill), "truncated": True}, "time": {"start": 1, "end": 2},
    }  # fmt: skip
    service.asked.append(service.talk.answer("Made.", {"type": "tool", "tool": "bash", "callID": "c", "state": state}))
    service.waits("intake")
    small.make_room()
    until(lambda: service.daemon.status()["archive"]["messages"] == 2)
    until(lambda: service.daemon.status()["disk"] is None)
    assert service.daemon.terminate()[0] == 0
    with Archive(service.daemon.archive_dir) as archive:
        kept = archive.objects.spill(str(spill))
        assert kept is not None
        assert archive.objects.blob(kept) == spill.read_bytes()
        assert archive.figures()["parts"] == 3


@with_small_disks
@pytest.mark.parametrize("full", ["output", "requests"])
def test_pages_and_requests_wait_for_room(request, tmp_path: Path, disk, running, full: str) -> None:
    small = disk(tmp_path / "small", 24)
    place = small.path / "ours"
    tables = {"output": {"output": {"dir": place}}, "requests": {"watch": {"requests_dir": place}}}
    service = running(**tables[full])
    service.asked.append(service.talk.write(f"{PROJECT}/notes.md", "Notes\n" * 2000))
    service.run()
    requests = place if full == "requests" else service.daemon.archive_dir / "requests"
    small.fill(leave=4096)
    (requests / "garden.txt").write_text(f"{PROJECT}\n")
    small.fill()

    service.waits("jobs")

    assert not list(requests.glob("*/*.result.json"))
    assert "requests and pages" in service.daemon.ask("status").stdout
    small.make_room()
    (result,) = until(lambda: list(requests.glob("done/*.result.json")), what="the request is done")
    answer = json.loads(result.read_text())
    assert answer["status"] == "done"
    assert answer["attempt"] == 1
    # The request follows its result.
    until(lambda: list(requests.glob("*/*.txt")) == [requests / "done" / "garden.txt"], what="the request is moved")
    output = place if full == "output" else service.daemon.output_dir
    assert "Notes" in "".join(path.read_text() for path in output.rglob("*.md"))
    service.goes_on()


@with_small_disks
def test_a_start_on_a_full_disk_waits_for_room(request, tmp_path: Path, disk, running) -> None:
    small = disk(tmp_path / "ours" / "archive", 96)
    service = running().run()
    assert service.daemon.terminate()[0] == 0
    small.fill()
    service.say(1)
    service.daemon.start()
    until(lambda: "waiting for free space on the disk" in service.daemon.log_end())
    assert service.daemon.process is not None
    assert service.daemon.process.poll() is None
    small.make_room()
    service.daemon.wait_until_ready()
    service.pid = service.daemon.process.pid
    service.goes_on()
