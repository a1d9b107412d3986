"""Every test: a home of its own, nothing of the developer's environment, and the sample archives on demand."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import os
import re
import tarfile
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from daemon.redact import known
from tests.support.patience import search_patiently

# A shared machine may be slow for a while; speed is measured in bench/, never asserted here. The examples are the same
# in every run, so that a run says something about the change before it: chance once refused three changes that had
# nothing to do with what it found. `make laws` looks for new ones, six times as many; what it finds becomes a case.
settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=50
)
settings.register_profile(
    "search", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=300
)
settings.load_profile("project")

# Pages have local times: the zone of the tests is UTC, wherever they run, also in the processes that they start.
os.environ["TZ"] = "UTC"
time.tzset()

DISK = tempfile.gettempdir()
MEMORY = "/dev/shm"
ENOUGH_MEMORY = 8 << 30


def _keep_files_in_memory() -> None:
    """Make temporary directories in memory, where there is plenty, because a disk takes long to confirm each write.

    Tests that are about the disk have the mark `on_disk`.
    """
    try:
        found = os.statvfs(MEMORY)
        free = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
    except OSError:
        return
    is_usable = os.access(MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC
    if is_usable and free and min(int(free[1]) << 10, found.f_bavail * found.f_frsize) >= ENOUGH_MEMORY:
        tempfile.tempdir = MEMORY


_keep_files_in_memory()
search_patiently()
# Collecting the tests makes millions of objects that stay: less garbage collection is a tenth of its time.
gc.set_threshold(50_000, 20, 20)

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = {
    "json": ("opencode-1.1.65-json.tar.gz", "json-A"),
    "migrated": ("opencode-1.15.13-migrated.tar.gz", "migrated-A"),
    "sqlite": ("opencode-1.18.33-sqlite.tar.gz", "sqlite-A"),
}


LONGEST_FIRST = ("live", "web", "e2e", "hostile", "crash", "property", "recovery")
"""Folders by the time of their longest group (60 s to 5): begun first, so that parallel workers end at about the same time."""
SHARES = 8
"""Into how many groups the rows of a file are parted that shares nothing between them."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Parallel workers take whole groups: a file, because its fixtures are made once, or a part of it that has its own."""
    folder, file = item.path.parent.name, item.path.stem
    if file == "test_recovery":
        group = f"{file}-{zlib.crc32(item.name.encode()) % SHARES}"
    else:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        version = params.get("binary", params.get("run", ""))
        group = f"{file}-{version}" if folder == "live" else file
        if isinstance(item, pytest.Function) and "user_manager" in vars(item.module):
            group = "user manager"  # a service of one manager is not what it should be beside a second manager
    item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        folder = item.path.parent.name
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=rank)
    # With pytest 9.2, xdist 3.8 took no notice of groups and said nothing: every fixture of a file was made twice.
    if config.getoption("loadgroup", False) and not all("@" in item.nodeid for item in items):
        raise pytest.UsageError("pytest-xdist does not group the tests; which version of pytest is this?")


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Sample:
    """One unpacked archive: a data directory as OpenCode left it, and what the files really were."""

    name: str
    root: Path

    @property
    def data_dir(self) -> Path:
        return self.root / "opencode"

    @property
    def truth(self) -> dict[str, Any]:
        return json.loads((self.root / "truth" / "truth.json").read_text())

    def timeline(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "truth" / "timeline.jsonl").read_text().splitlines()]

    def blob(self, sha256: str) -> bytes:
        return (self.root / "truth" / "blobs" / sha256).read_bytes()


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A command that runs in this process sets up logging for all of it; the next test starts as this one did."""
    root, ours = logging.getLogger(), logging.getLogger("daemon")
    before = (root.level, list(root.handlers), ours.level, threading.excepthook)
    yield
    for handler in [handler for handler in root.handlers if handler not in before[1]]:
        root.removeHandler(handler)
    root.setLevel(before[0])
    ours.setLevel(before[2])
    threading.excepthook = before[3]
    logging.captureWarnings(capture=False)


@pytest.fixture(autouse=True)
def _no_secret_known() -> Iterator[None]:
    """What one test read from an archive is not hidden in the next."""
    with known.only({}):
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """pytest's own; for a test with the mark `on_disk`, a directory on the disk."""
    if request.node.get_closest_marker("on_disk") is None:
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(prefix="reconstitute-", dir=DISK, ignore_cleanup_errors=True) as place:
            yield Path(place)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New directories, one for each test. `mktemp` would look at all that there are for each."""
    place = tmp_path_factory.mktemp("homes")
    return (place / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def clean_environment(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME and every XDG place point into a directory of this test; variables of ours and of Ollama's are gone."""
    home = next(homes)
    home.mkdir()
    for name in list(os.environ):
        if name != "RECONSTITUTE_TEST_CACHE" and name.startswith(
            ("RECONSTITUTE_", "OLLAMA_", "OPENCODE", "XDG_", "CHROMA_", "NOTIFY_SOCKET", "WATCHDOG_")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("NO_COLOR", "1")
    return home


def unpack(name: str, into: Path) -> Sample:
    """One of the sample archives, unpacked for this test alone."""
    archive, folder = SAMPLES[name]
    with tarfile.open(FIXTURES / archive) as tar:
        # Debian 12's Python is 3.11.2, and the filter came with 3.11.4; the archives are our own either way.
        tar.extractall(into, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return Sample(name, into / folder)


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Sample]:
    """`sample("json" | "migrated" | "sqlite")`: an unpacked copy."""
    return lambda name: unpack(name, tmp_path / f"sample-{name}")


@pytest.fixture(params=sorted(SAMPLES))
def any_sample(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    """Each of the three sample archives in turn."""
    return unpack(request.param, tmp_path / "sample")
