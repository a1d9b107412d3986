"""The daemon killed twenty times beside a real OpenCode at work: in the end nothing is missing and nothing is double.

SIGKILL strikes during start-up, at any moment of the work, and while embedding; each time the daemon is simply started
again over what it left. The moments come from a seed, the same in every run; `make laws` draws another and prints it,
and RECONSTITUTE_TEST_SEED repeats a run. The vectors of one version come from the built-in model, of the other from a
server, so that embedding is cut off in either way: in the middle of computing, and in the middle of waiting.
"""

from __future__ import annotations

import collections
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from hypothesis import settings

from daemon.archive import STAGES, Archive
from tests.live.conftest import SQLITE
from tests.live.opencode import OpenCode, make_project
from tests.live.recorded import Recorded, differences, read_source
from tests.live.scenario import Scenario, Turn, expected
from tests.live.scripted_model import ScriptedModel
from tests.support.processes.daemon_process import Daemon
from tests.support.servers.fake_ollama import FakeOllama

pytestmark = [pytest.mark.live, pytest.mark.crash, pytest.mark.timeout(900)]

START, WORK, EMBED = "start-up", "work", "embedding"
KILLS = {START: 7, WORK: 7, EMBED: 6}
EARLY, LATE = "early.txt", "late.txt"
"""Request files. A request that was started three times and never ended is given up, so only two kills follow LATE."""
KILLS_AFTER_LATE = 2
SEED = 20
SERVER_DELAY_S = 0.3
"""Of each answer of the embedding server: long enough to be killed while it is waited for."""
LEAST_TURNS = 6
"""So many that a few lost or doubled messages would show; each has five or more."""
FILLER_BYTES = 12_000
"""Enough words for an embedding to take a while, so that a kill can strike in the middle of it."""


@dataclass
class Aftermath:
    """What stood after the last clean run."""

    seed: int
    daemon: Daemon
    garden: Path
    first: Turn
    holder: dict[str, str]
    kills: collections.Counter[str]
    waiting_when_killed: list[int]
    found: dict[str, float] = field(default_factory=dict)
    hits: dict[str, list[str]] = field(default_factory=dict)
    source: dict[str, Recorded] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


class Workers:
    """Sessions that go on until told to stop, so that there is always something to be killed in."""

    def __init__(self, opencode: OpenCode, scenario: Scenario) -> None:
        self._opencode, self._scenario = opencode, scenario
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(2)
        self._running: list[Future[None]] = []
        self.holder: dict[str, str] = {}
        self.turns: list[Turn] = []

    def begin(self, project: Path) -> None:
        self._running.append(self._pool.submit(self._work, project))

    def _work(self, project: Path) -> None:
        while not self._stop.is_set():
            session = self._opencode.create_session(project, f"Work in {project.name}")
            for _ in range(3):
                # A name of its own for each turn, whichever thread makes it: no file is touched twice.
                turn = self._scenario.turn(project, f"{project.name}-{time.monotonic_ns()}", FILLER_BYTES)
                self._opencode.prompt(session, turn.prompt)
                self.holder |= expected(turn, self._opencode.messages(session))
                self.turns.append(turn)
                if self._stop.is_set():
                    return

    def wait_for_turns(self, count: int) -> None:
        """However slow the machine is, or until a worker ended by a failure."""
        while len(self.turns) < count and not any(running.done() for running in self._running):
            time.sleep(0.1)

    def finish(self) -> None:
        """Let the turns in hand end; a failure of theirs is raised here."""
        self._stop.set()
        self._pool.shutdown()
        for running in self._running:
            running.result()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """As slow as a real one: what is written between two kills is enough, and more only takes processor time."""
    with ScriptedModel(lead_s=1.0) as server:
        yield server


@pytest.fixture(scope="module")
def seed() -> int:
    """Of the moments: SEED but in `make laws`, or that of a run to repeat."""
    is_search = settings.get_current_profile_name() == "search"
    drawn = random.SystemRandom().randrange(2**32) if is_search else SEED
    return int(os.environ.get("RECONSTITUTE_TEST_SEED") or drawn)


@pytest.fixture(scope="module")
def embedding(binary: Path) -> Iterator[dict[str, str]]:
    """The table of the configuration: the built-in model beside SQLite, a slow server beside the JSON files."""
    if f"/{SQLITE}/" in str(binary):
        yield {"provider": "builtin"}
        return
    with FakeOllama() as server:
        server.delay_s = SERVER_DELAY_S
        yield {"provider": "ollama", "model": "embedder", "url": server.url}


@pytest.fixture(scope="module")
def aftermath(
    binary: Path,
    model: ScriptedModel,
    seed: int,
    embedding: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Aftermath]:
    root = tmp_path_factory.mktemp("kill")
    chance = random.Random(seed)
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    kitchen = make_project(root / "work" / "kitchen", {"README.md": "# Kitchen\n"})
    daemon = Daemon(root / "oc" / "data" / "opencode", root / "ours", tables={"embedding": embedding})
    try:
        with OpenCode(binary, root / "oc", model.url) as opencode:
            workers = Workers(opencode, Scenario(model, seed))
            try:
                workers.begin(garden)
                workers.begin(kitchen)
                kills, waited = _kill_and_restart(daemon, chance, lambda name: _request(daemon, name, garden, workers))
                workers.wait_for_turns(LEAST_TURNS)
            finally:
                workers.finish()
        first = next(turn for turn in workers.turns if turn.written.parent == garden)
        seen = Aftermath(seed, daemon, garden, first, workers.holder, kills, waited)
        _last_clean_run(seen)
        seen.source = read_source(opencode.data_dir)
        yield seen
    finally:
        daemon.close()


def _kill_and_restart(
    daemon: Daemon, chance: random.Random, drop_request: Callable[[str], None]
) -> tuple[collections.Counter[str], list[int]]:
    """Start and kill the daemon; answers how often each kind of moment was struck, and what waited at EMBED kills."""
    moments = [kind for kind, times in KILLS.items() for _ in range(times)]
    chance.shuffle(moments)
    drops = {chance.randrange(5, 12): EARLY, len(moments) - KILLS_AFTER_LATE: LATE}
    struck: collections.Counter[str] = collections.Counter()
    waited = []
    for number, moment in enumerate(moments):
        if number in drops:
            drop_request(drops[number])
        daemon.start()
        if moment == START:
            time.sleep(chance.uniform(0.02, 1.5))
        else:
            daemon.wait_until_ready()
        if moment == WORK:
            time.sleep(chance.uniform(0, 3))
        if moment == EMBED:
            waited.append(_wait_for_embedding(daemon))
            time.sleep(chance.uniform(0, 0.15))
        assert daemon.process is not None
        assert daemon.process.poll() is None, f"the daemon ended by itself at {moment}:\n{daemon.log_end()}"
        daemon.kill()
        struck[moment] += 1
    return struck, waited


def _wait_for_embedding(daemon: Daemon, timeout_s: float = 120) -> int:
    """Return as soon as messages wait to be embedded; how many."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        count = int(daemon.status()["outbox"]["semantic"])
        if count:
            return count
        time.sleep(0.02)
    return 0


def _request(daemon: Daemon, name: str, garden: Path, workers: Workers) -> None:
    """Drop a request file, once there is a finished turn to be found in its pages."""
    while not any(turn.written.parent == garden for turn in list(workers.turns)):
        time.sleep(0.1)
    daemon.drop_request(name, f"{garden}\n")


def _last_clean_run(seen: Aftermath) -> None:
    seen.daemon.start()
    seen.daemon.wait_until_ready()
    seen.found = seen.daemon.wait_until_found(seen.holder, timeout_s=240)
    seen.daemon.wait_until_drained()
    seen.daemon.wait_for_results(2)
    seen.status = seen.daemon.status()
    for token in seen.holder:
        seen.hits[token] = [hit["messageID"] for hit in seen.daemon.search(token)]
    seen.exit_code, _ = seen.daemon.terminate()


def test_the_kills_struck_in_every_phase(aftermath: Aftermath) -> None:
    parked = [
        p.name for p in (aftermath.daemon.archive_dir / "index").iterdir() if "park" in p.name or "broken" in p.name
    ]
    print(f"seed {aftermath.seed}: {len(aftermath.source)} messages, parked indexes: {parked or 'none'}")
    assert aftermath.kills == KILLS
    assert all(count > 0 for count in aftermath.waiting_when_killed), aftermath.waiting_when_killed


def test_nothing_is_missing_and_nothing_is_double_in_the_archive(aftermath: Aftermath) -> None:
    assert aftermath.exit_code == 0, aftermath.daemon.log_end()
    assert len(aftermath.source) >= 5 * LEAST_TURNS
    with Archive(aftermath.daemon.archive_dir) as archive:
        assert differences(aftermath.source, archive) == []
        assert {stage: archive.waiting(stage) for stage in STAGES} == dict.fromkeys(STAGES, 0)
        figures = archive.figures()
    parts = sum(len(record.parts) for record in aftermath.source.values())
    assert (figures["messages"], figures["parts"]) == (len(aftermath.source), parts)


def test_every_word_is_found_in_its_message_and_in_no_other(aftermath: Aftermath) -> None:
    assert aftermath.found.keys() == aftermath.holder.keys()
    assert aftermath.hits == {token: [message] for token, message in aftermath.holder.items()}


def test_the_semantic_index_holds_every_message_and_none_that_is_not_there(aftermath: Aftermath) -> None:
    ids = _semantic_ids(aftermath.daemon.archive_dir / "index" / "semantic")
    assert len(ids) == len(set(ids)) == aftermath.status["index"]["semantic"]["count"]
    indexed = {name.rpartition("#")[0] for name in ids}
    with_words = set(aftermath.holder.values())
    assert (with_words - indexed, indexed - aftermath.source.keys()) == (set(), set())


def _semantic_ids(store: Path) -> list[str]:
    """Read from Chroma's own store; every collection of messages counts, so one left over would show as double."""
    client = chromadb.PersistentClient(str(store), Settings(anonymized_telemetry=False))
    names = [collection.name for collection in client.list_collections()]
    messages = [client.get_collection(name) for name in names if name.startswith("opencode_messages")]
    ids = [record for collection in messages for record in collection.get(include=[])["ids"]]
    client.close()  # type: ignore[attr-defined]  # only the embedded client has it
    return ids


def test_nothing_was_put_aside_as_unreadable(aftermath: Aftermath) -> None:
    with Archive(aftermath.daemon.archive_dir) as archive:
        assert archive.quarantined() == {}


def test_a_request_dropped_between_kills_is_fulfilled(aftermath: Aftermath) -> None:
    assert {f"done/{LATE}", f"done/{LATE}.result.json"} <= set(aftermath.daemon.request_files())
    tree = aftermath.daemon.output_dir / str(aftermath.garden).lstrip("/")
    assert (tree / "README.md").read_text()
    assert aftermath.first.content in (tree / f"{aftermath.first.written.name}.md").read_text()


def test_a_request_killed_repeatedly_is_done_or_fails_with_a_reason(aftermath: Aftermath) -> None:
    files = [name for name in aftermath.daemon.request_files() if Path(name).name.startswith(EARLY)]
    result = json.loads((aftermath.daemon.requests_dir / files[-1]).read_bytes())
    folder = files[0].partition("/")[0]
    assert files == [f"{folder}/{EARLY}", f"{folder}/{EARLY}.result.json"]
    assert (folder, result.get("error", {}).get("type")) in (("done", None), ("failed", "BadRequest"))
    assert folder == "done" or "started 3 times" in result["error"]["message"]


def test_no_process_outlives_the_daemon(aftermath: Aftermath) -> None:
    assert aftermath.daemon.survivors() == []
