"""One service over live work, in a place of its own."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.daemon_process import Daemon
from tests.support.processes.small_disk import SmallDisk
from tests.support.servers.fake_ollama import FakeOllama
from tests.torture.check import Check
from tests.torture.indexes import EMBEDDED_KB, INDEXED_KB
from tests.torture.work import DIMS, RECORD_MB, Work

DISK_MB = 160


class World:
    """A place, its stores, a model server, and the service. `counts` says what was done to it."""

    def __init__(self, root: Path, seed: int, server: FakeOllama, *, disk: SmallDisk | None) -> None:
        self.root, self.server, self.disk = root, server, disk
        self.data_dir = root / "opencode"
        tables = {
            "embedding": {"provider": "ollama", "model": "embedder", "url": server.url},
            "limits": {"free_mb": 8, "record_mb": RECORD_MB, "indexed_kb": INDEXED_KB, "embedded_kb": EMBEDDED_KB},
        }
        self.daemon = Daemon(self.data_dir, root / "ours", tables=tables)
        self.work = Work(self.data_dir, seed)
        self.counts: Counter[str] = Counter()
        self.requests = 0
        """Request files that were dropped; each must be done in the end."""
        self.others: frozenset[str] = frozenset()
        """Messages in the archive that are in none of the sources here."""
        self.is_finished = False

    def request(self, text: str) -> None:
        """Ask for pages, as a person would."""
        self.requests += 1
        self.daemon.drop_request(f"torture-{self.requests}.txt", text)

    def finish(self) -> list[str]:
        """End the work and compare everything: with the process that has lived through the harm, if it still runs, and
        with a new one."""
        self.work.stop()
        self.is_finished = True
        problems: list[str] = []
        for name in ("a new process",) if self.has_ended() else ("the same process", "a new process"):
            problems += [f"{name}: {problem}" for problem in Check(self).all_problems()]
        return problems

    @property
    def pid(self) -> int:
        assert self.daemon.process is not None
        return self.daemon.process.pid

    def has_ended(self) -> bool:
        return self.daemon.process is None or self.daemon.process.poll() is not None

    def workers(self, *, is_fork: bool = True) -> list[int]:
        """The processes with Chroma. A forked service has them by way of a helper that belongs to the tests."""
        children = _children(self.pid)
        return [pid for helper in children for pid in _children(helper)] if is_fork else children


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


@contextmanager
def world(root: Path, seed: int, *, on_small_disk: bool = False) -> Iterator[World]:
    """A world of its own beneath `root`, which must not exist; everything ends with it, besides its files."""
    root.mkdir(parents=True)
    disk = SmallDisk(root / "ours", DISK_MB) if on_small_disk else None
    try:
        with FakeOllama(dims=DIMS) as server:
            made = World(root, seed, server, disk=disk)
            with made.daemon:
                yield made
            made.work.stop()
    finally:
        if disk is not None:
            kept = root / "ours-kept"
            shutil.copytree(root / "ours", kept, ignore=shutil.ignore_patterns(".filler"))
            disk.close()
