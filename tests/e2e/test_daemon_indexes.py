"""Indexes are disposable: whatever happens to their files, the next start searches all of it again, without the model."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.embed import LEGIBLE_VERSION
from daemon.errors import Retry
from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore

CANARY = "The quick brown fox jumps over the lazy dog."
SECOND = "cd34ef56" * 8


@dataclass
class House:
    """A store, a model server, and an archive that was filled from them once; tests work on copies of the archive."""

    root: Path
    server: FakeOllama
    told: dict[str, str]

    @property
    def data_dir(self) -> Path:
        return self.root / "opencode"

    def tables(self, model: str) -> dict[str, Any]:
        return {"embedding": {"provider": "ollama", "model": model, "url": self.server.url}}

    def copy(self, place: Path) -> Daemon:
        daemon = Daemon(self.data_dir, place, tables=self.tables("embedder"))
        shutil.copytree(self.root / "ours" / "archive", daemon.archive_dir)
        self.server.requests.clear()
        return daemon

    def asked(self) -> list[str]:
        """What the model was asked to embed, but for the sentence that tells whether it works."""
        return [text for text in self.server.embedded() if text != CANARY]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp("house")
    talk = Talk(JsonStore(root / "opencode"))
    told = {words(n): talk.ask(f"About {words(n)}.") for n in range(30)}
    models = {"embedder:latest": "ab12cd34" * 8, "second:latest": SECOND}
    with FakeOllama(models, dims=512) as server:
        made = House(root, server, told)
        with Daemon(made.data_dir, root / "ours", tables=made.tables("embedder")) as daemon:
            daemon.run()
            daemon.wait_until_drained()
            assert daemon.terminate()[0] == 0
        yield made


@pytest.fixture
def daemon(house: House, tmp_path: Path) -> Iterator[Daemon]:
    """Over a copy of the filled archive; not started."""
    with house.copy(tmp_path / "ours") as made:
        yield made


def everything_is_found(daemon: Daemon, house: House) -> None:
    with daemon.client() as client:
        for word, told in house.told.items():
            by_words = [hit["messageID"] for hit in daemon.search_with(client, word)]
            by_meaning = [hit["messageID"] for hit in daemon.search_with(client, f"About {word}.", "semantic", 1)]
            assert (by_words, by_meaning) == ([told], [told]), word


def cut(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_file() and path.stat().st_size > 64:
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // 2)


def garble(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\x00\xffgarbage" * 50)


def one_byte(place: Path) -> None:
    largest = max((path for path in place.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0xFF]))


@pytest.mark.parametrize("damage", [cut, garble])
def test_a_damaged_semantic_index_is_rebuilt_without_asking_the_model(
    daemon: Daemon, house: House, damage: Callable[[Path], None]
) -> None:
    damage(daemon.archive_dir / "index" / "semantic")
    daemon.run()
    assert daemon.ask("index", "--wait").returncode == 0  # the index is checked when it is opened
    assert daemon.wait_until_drained()["index"]["semantic"]["count"] >= len(house.told)
    assert house.asked() == []
    everything_is_found(daemon, house)
    assert daemon.terminate()[0] == 0


@pytest.mark.parametrize("damage", [one_byte, shutil.rmtree])
def test_a_damaged_lexical_index_is_rebuilt(daemon: Daemon, house: House, damage: Callable[[Path], None]) -> None:
    damage(daemon.archive_dir / "index" / "lexical")
    daemon.run()
    daemon.wait_until_drained()
    everything_is_found(daemon, house)
    assert daemon.terminate()[0] == 0


def test_a_deleted_index_directory_is_rebuilt_without_the_model(daemon: Daemon, house: House) -> None:
    shutil.rmtree(daemon.archive_dir / "index")
    daemon.run()
    daemon.wait_until_drained()
    assert house.asked() == []
    everything_is_found(daemon, house)


def test_a_single_command_mends_a_damaged_index_too(daemon: Daemon, house: House) -> None:
    garble(daemon.archive_dir / "index")
    found = daemon.ask("search", "--json", words(3))
    assert [hit["messageID"] for hit in json.loads(found.stdout)["results"]] == [house.told[words(3)]], found.stderr
    indexed = daemon.ask("index", "--wait", "--json")
    assert json.loads(indexed.stdout)["waiting"] == 0, indexed.stderr
    daemon.run()
    daemon.wait_until_drained()
    everything_is_found(daemon, house)


def test_another_embedding_model_gets_its_own_collection(daemon: Daemon, house: House) -> None:
    daemon.configure(house.tables("second"))
    daemon.run()
    daemon.wait_until_drained()
    asked = house.asked()
    assert len(asked) == len(house.told)
    everything_is_found(daemon, house)
    daemon.terminate()
    with Archive(daemon.archive_dir) as archive:
        new = archive.note("semantic index").split()[1].removesuffix(f"-l{LEGIBLE_VERSION}-all")
        old = new.replace("second", "embedder").replace(SECOND[:8], "ab12cd34")
        for text in asked:
            digest = hashlib.sha256(text.encode()).hexdigest()
            assert archive.vector(new, digest) is not None
            assert archive.vector(old, digest) is not None


def workers(daemon: Daemon) -> list[int]:
    """The child processes of the service."""
    assert daemon.process is not None
    tasks = Path(f"/proc/{daemon.process.pid}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def the_worker(daemon: Daemon) -> int:
    """The one child process, as soon as it is listed: while the thread that started it ends, it is in no thread's list."""
    return until(lambda: len(pids := workers(daemon)) == 1 and pids, what="one worker")[0]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def found(daemon: Daemon, question: str) -> list[str]:
    """What answers it by meaning; empty while the answer is to try again, as while a busy machine opens the index."""
    with daemon.client() as client:
        arguments = {"query": question, "match": "semantic", "results": 1}
        answer = client.post("/recall/recall", json={"arguments": arguments}).json()
    assert "results" in answer or answer["error"]["exitCode"] == Retry.exit_code
    return [hit["messageID"] for hit in answer.get("results", ())]


def test_a_killed_worker_costs_nothing_and_a_killed_service_leaves_none(daemon: Daemon, house: House) -> None:
    question = f"About {words(3)}."
    daemon.start(fork=False)
    daemon.wait_until_ready()
    until(lambda: found(daemon, question) == [house.told[words(3)]])
    for number in (signal.SIGKILL, signal.SIGSEGV):
        pid = the_worker(daemon)
        os.kill(pid, number)
        until(partial(is_gone, pid))
        until(lambda: found(daemon, question) == [house.told[words(3)]])
    pid = the_worker(daemon)
    daemon.kill()
    until(partial(is_gone, pid))
    daemon.run()
    daemon.wait_until_drained()
    assert set(house.asked()) <= {question}
    everything_is_found(daemon, house)


REFUSING = """
import sys
from pathlib import Path

if "daemon.worker" in sys.orig_argv and Path(__file__).with_name("refused").exists():
    sys.modules["numpy"] = None
"""


def test_a_library_that_could_not_be_loaded_is_loaded_by_the_next_worker(
    daemon: Daemon, house: House, tmp_path: Path
) -> None:
    """As numpy, if the disk fails in the middle of its import."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REFUSING)
    (refused := tmp_path / "site" / "refused").touch()
    daemon.environment["PYTHONPATH"] = str(tmp_path / "site")
    daemon.start(fork=False)
    daemon.wait_until_ready()
    assert found(daemon, f"About {words(3)}.") == []
    reason = "waiting: a library cannot be loaded: import of numpy halted"
    daemon.until_status(lambda status: reason in status["index"]["semantic"]["state"], "the reason")
    refused.unlink()
    until(lambda: found(daemon, f"About {words(3)}.") == [house.told[words(3)]])
    everything_is_found(daemon, house)
    assert "parked" not in daemon.log_path.read_text()
