"""One service over live work, and what must hold of it whatever was done to it."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.archive import STAGES, Archive
from tests.e2e.talk import PROJECT, snapshot
from tests.live import recorded
from tests.support.processes.daemon_process import Daemon, until
from tests.support.processes.small_disk import SmallDisk
from tests.support.servers.fake_ollama import FakeOllama
from tests.torture.work import Work

DISK_MB = 160
FOUND_S = 120.0
_DIMS = 512


class World:
    """A place, its stores, a model server, and the service. `counts` says what was done to it."""

    def __init__(self, root: Path, seed: int, server: FakeOllama, *, disk: SmallDisk | None) -> None:
        self.root, self.server, self.disk = root, server, disk
        self.data_dir = root / "opencode"
        embedding = {"provider": "ollama", "model": "embedder", "url": server.url}
        self.daemon = Daemon(self.data_dir, root / "ours", tables={"embedding": embedding, "limits": {"free_mb": 8}})
        self.work = Work(self.data_dir, seed)
        self.counts: Counter[str] = Counter()

    def finish(self) -> list[str]:
        """End the work, run the service once more undisturbed, and tell what is not as it must be."""
        self.work.stop()
        return list(_Check(self).problems())

    @property
    def pid(self) -> int:
        assert self.daemon.process is not None
        return self.daemon.process.pid

    def has_ended(self) -> bool:
        return self.daemon.process is None or self.daemon.process.poll() is not None


@contextmanager
def world(root: Path, seed: int, *, on_small_disk: bool = False) -> Iterator[World]:
    """A world of its own beneath `root`, which must not exist; everything ends with it."""
    root.mkdir(parents=True)
    disk = SmallDisk(root / "ours", DISK_MB) if on_small_disk else None
    try:
        with FakeOllama(dims=_DIMS) as server:
            made = World(root, seed, server, disk=disk)
            with made.daemon:
                yield made
            made.work.stop()
    finally:
        if disk is not None:
            disk.close()
        shutil.rmtree(root, ignore_errors=True)


class _Check:
    def __init__(self, made: World) -> None:
        self._world, self._daemon, self._work = made, made.daemon, made.work
        self._is_fresh = False
        """Whether the run that is checked began after the harm, so that it has nothing to report."""

    def problems(self) -> Iterator[str]:
        before = snapshot(self._world.data_dir)
        yield from self._search()
        if self._world.has_ended():
            yield f"it has ended: {self._daemon.log_end()[-500:]}"
            return
        yield from self._pages()
        status = self._daemon.wait_until_drained()
        code, _ = self._daemon.terminate()
        if code:
            yield f"a clean stop ended with {code}: {self._daemon.log_end()[-500:]}"
        if self._daemon.survivors():
            yield f"processes are left: {self._daemon.survivors()}"
        yield from self._archive(status)
        yield from self._elsewhere(before)

    def _search(self) -> Iterator[str]:
        """Each word is found in its message, and in no other."""
        try:
            if self._world.has_ended():
                self._daemon.start()
                self._is_fresh = True
            self._daemon.wait_until_ready()
            found = self._daemon.wait_until_found(self._work.holder, timeout_s=FOUND_S)
        except AssertionError as error:
            yield f"it does not run: {error}"
            return
        for word in self._work.holder.keys() - found.keys():
            yield f"{word} of {self._work.holder[word]} is not found"
        with self._daemon.client() as client:
            for word, message_id in self._work.holder.items():
                hits = {hit["messageID"] for hit in self._daemon.search_with(client, word)}
                if hits != {message_id}:
                    yield f"{word} is found in {sorted(hits)}, not in {message_id} alone"

    def _pages(self) -> Iterator[str]:
        self._daemon.drop_request("torture.txt", f"{PROJECT}\n")
        place = self._daemon.requests_dir
        try:
            (result,) = until(lambda: list(place.glob("*/torture.txt.result.json")), FOUND_S, "the request")
        except AssertionError as error:
            yield f"{error}; {self._daemon.request_files()}"
            return
        if result.parent.name != "done":
            yield f"the request for pages was not done: {result.read_text()[:300]}"

    def _archive(self, status: dict[str, Any]) -> Iterator[str]:
        """The archive has each record of the sources as it is there, once, and nothing waits."""
        storage = self._world.data_dir / "storage"
        source = recorded.from_files(storage) | recorded.from_database(self._world.data_dir / "opencode.db")
        with Archive(self._daemon.archive_dir) as archive:
            others = tuple(f"{message_id} is not in the source" for message_id in self._work.of_newest)
            yield from (line for line in recorded.differences(source, archive) if line not in others)
            yield from self._newest(archive)
            living = [name for name in archive.all_message_ids() if not archive.is_deleted(name)]
            expected = source.keys() | self._work.of_newest
            if set(living) != expected:
                yield f"messages that should not be there: {sorted(set(living) - expected)[:5]}"
                yield f"messages that should be there: {sorted(expected - set(living))[:5]}"
            waiting = {stage: archive.waiting(stage) for stage in STAGES}
            if any(waiting.values()):
                yield f"the outbox is not empty: {waiting}"
            for source_name, items in archive.quarantined().items():
                yield f"set aside of {source_name}: {str(items)[:300]}"
        for error in status["errors"] if self._is_fresh else ():
            yield f"the last run reports: {error['where']}: {error['message']}"

    def _newest(self, archive: Archive) -> Iterator[str]:
        """Messages of OpenCode 2 are kept in another form: their words are compared."""
        words = {message_id: word for word, message_id in self._work.holder.items()}
        for message_id in self._work.of_newest:
            message = archive.message(message_id)
            if message is None or not any(words[message_id] in str(part.data.get("text")) for part in message.parts):
                yield f"{message_id} has not its own words: {message}"

    def _elsewhere(self, before: dict[str, str]) -> Iterator[str]:
        """Nothing outside the service's own folders was written, and no secret stands on a way out."""
        for name in {name for name, _ in before.items() ^ snapshot(self._world.data_dir).items()}:
            file = self._world.data_dir / name
            # SQLite makes an empty log when a database is opened whose writer has closed it.
            if not (name.endswith("-wal") and name not in before and not file.stat().st_size):
                yield f"OpenCode's own {name} was changed"
        ours = self._daemon.archive_dir.parent
        known = {"archive", "output", "daemon.log", "reconstitute.toml", "home", ".filler", "lost+found"}
        known |= {path.name for path in ours.iterdir() if path.name.startswith("kept-")}
        for path in [*ours.iterdir(), *(ours / "home").rglob("*")]:
            if path.name not in known:
                yield f"something was written to {path}"
        outward = [self._daemon.archive_dir / "index", self._daemon.archive_dir / "requests", self._daemon.output_dir]
        files = [file for place in outward for file in place.rglob("*") if file.is_file()]
        for file in [*files, self._daemon.log_path]:
            content = file.read_bytes()
            for value in self._work.secrets:
                if value.encode() in content:
                    yield f"a secret stands in {file.relative_to(ours)}"


def pause(seconds: float) -> None:
    """Let work and service go on."""
    time.sleep(seconds)
