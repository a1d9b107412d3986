"""How soon a message that OpenCode has finished is found: a real OpenCode, our daemon, a search over the socket.

    python bench/fresh.py [--turns N] [--state idle --state embedding --state scanning] [--json]

For the last version that writes JSON files and for one that writes SQLite, each installed from npm into
$RECONSTITUTE_TEST_CACHE (else .cache) as the live tests do. A scripted model answers; every turn makes three messages
(a prompt, an answer that calls a tool, a last answer), each with a word found nowhere else. The time runs from the
moment that OpenCode's own record names (`created` of a prompt, `completed` of an answer) to the literal search that
first finds it, with the daemon idle, embedding a large import, and reading that import for the first time. One turn
more, in which OpenCode gets going, is not counted. Beside it the machine's own times: a synced write of 4 kB and a
search that finds nothing. It judges nothing; the exit code is 1 when an OpenCode could not be had.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from tests.live.opencode import NotAvailableError, OpenCode, install, make_project  # noqa: E402 - found by the line above
from tests.live.scripted_model import Call, ScriptedModel, Step  # noqa: E402 - so is this
from tests.support.processes.daemon_process import Daemon, waiting  # noqa: E402 - and this

VERSIONS = {"JSON files": "1.1.65", "SQLite": "1.18.33"}
STATES = ("idle", "embedding", "scanning")
IMPORTED = 40
"""Messages in each imported session."""

LONG_AGO = 1_700_000_000_000
"""When the imported messages begin, epoch ms."""

POLL_S = 0.01
GIVE_UP_S = 30.0
GROUPS = ("prompt", "answer", "last answer")
WORD_LIST = (
    "garden harvest bucket lantern meadow copper ladder willow market river window basket orchard pepper quarry saddle "
    "timber velvet walnut anchor barley candle donkey engine falcon glacier hammer island jacket kettle lemon magnet"
)


@dataclass
class MessageTiming:
    """When OpenCode finished a message, and when a search found it (epoch seconds).

    `returned`, of a last answer: when OpenCode answered the request.
    """

    group: str
    finished: float
    found_at: float | None
    returned: float | None = None


@dataclass
class Round:
    """One version in one state."""

    version: str
    state: str
    messages: list[MessageTiming] = field(default_factory=list)
    references: dict[str, list[float]] = field(default_factory=dict)
    load: float = 0.0
    busy: float = 0.0
    """Share of the messages during which the state really held."""

    def row(self) -> dict[str, Any]:
        """The figures, seconds."""
        groups = {name: [m for m in self.messages if m.group == name] for name in GROUPS}
        latencies = {name: _times(of) for name, of in {"all": self.messages, **groups}.items()}
        after = [m.found_at - m.returned for m in self.messages if m.found_at is not None and m.returned is not None]
        base = sum(_quantile(times, 0.95) for times in self.references.values())
        return {
            "version": self.version,
            "state": self.state,
            "messages": len(self.messages),
            "never found": sum(m.found_at is None for m in self.messages),
            **{name: _figures(times) for name, times in latencies.items()},
            "after the answer to the request": _figures([max(0.0, t) for t in after]),
            "references": {name: _figures(times) for name, times in self.references.items()},
            "p95 as a multiple of the references": round(_quantile(latencies["all"], 0.95) / base, 1) if base else None,
            "load average": round(self.load, 2),
            "share in this state": round(self.busy, 2),
        }


class Poller(threading.Thread):
    """Searches for words until each is found; `hits` says when each was found, and in which message."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon=True)
        self._daemon = daemon
        self._end = threading.Event()
        self._pending: dict[str, None] = {}
        self.hits: dict[str, tuple[float, str]] = {}

    def want(self, words: Sequence[str]) -> None:
        self._pending = {**self._pending, **dict.fromkeys(words)}

    def run(self) -> None:
        with self._daemon.client() as client:
            while not self._end.is_set():
                for word in list(self._pending):
                    hits = self._daemon.search_with(client, word)
                    if hits:
                        self.hits[word] = (time.time(), hits[0]["messageID"])
                        self._pending = {w: None for w in self._pending if w != word}
                self._end.wait(POLL_S)

    def wait(self, words: Sequence[str]) -> None:
        """Wait until all words are found, or the time is over."""
        deadline = time.monotonic() + GIVE_UP_S
        while any(word not in self.hits for word in words) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._pending = {}

    def stop(self) -> None:
        self._end.set()
        self.join()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leave no process behind
    options = _options()
    states = options.state or list(STATES[:2])
    rounds: list[Round] = []
    missing: dict[str, str] = {}
    for version in options.version or VERSIONS.values():
        try:
            binary = install(version)
        except NotAvailableError as reason:
            missing[version] = str(reason)
            continue
        for state in states:
            with tempfile.TemporaryDirectory(prefix="fresh-", ignore_cleanup_errors=True) as root:
                rounds.append(_round(binary, version, state, options, Path(root)))
            if not options.json:
                _show(rounds[-1].row())
    if options.json:
        print(json.dumps({"rounds": [r.row() for r in rounds], "missing": missing}, indent=2))
    for version, why in missing.items():
        print(f"OpenCode {version}: not measured: {why}", file=sys.stderr)
    return 1 if missing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=20, help="turns in each state; three messages each (default: 20)")
    parser.add_argument("--state", action="append", choices=STATES, help="may be repeated (default: idle, embedding)")
    parser.add_argument("--version", action="append", choices=VERSIONS.values(), help="may be repeated (default: both)")
    parser.add_argument("--import", dest="imported", type=int, default=6000, help="messages imported (default: 6000)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser.parse_args()


def _round(binary: Path, version: str, state: str, options: argparse.Namespace, root: Path) -> Round:
    done = Round(version, state)
    project = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    with ScriptedModel() as model, OpenCode(binary, root / "oc", model.url) as opencode:
        if state != "idle":
            # Beside what OpenCode writes: a tree of JSON files is read whichever storage this version has.
            write_import(opencode.data_dir / "storage", options.imported)
        with Daemon(opencode.data_dir, root / "ours").run() as daemon:
            holds = _state(daemon, state, options.imported)
            with _polling(daemon) as poller:
                session = opencode.create_session(project, "Garden plans")
                talk = Talk(model, opencode, project, session, poller)
                talk.turn(0)  # OpenCode loads its provider and its tools
                held = []
                for number in range(1, options.turns + 1):
                    done.messages += talk.turn(number)
                    held.append(holds())
                done.busy = sum(held) / len(held)
                done.load = os.getloadavg()[0]
                done.references = _references(daemon, root)
            daemon.terminate(60)
    return done


def _state(daemon: Daemon, state: str, imported: int) -> Callable[[], bool]:
    """Wait until the daemon is in this state; the answer tells whether it still is."""

    def reading() -> bool:
        status = daemon.status()
        return bool(status["archive"]["messages"] < imported or status["outbox"]["lexical"])

    def embedding() -> bool:
        return bool(daemon.status()["outbox"]["semantic"])

    def idle() -> bool:
        status = daemon.status()
        return waiting(status) < 10

    if state == "scanning":
        return reading
    ends = {"idle": lambda: not idle(), "embedding": reading}[state]
    deadline = time.monotonic() + 300
    while ends() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    return {"idle": idle, "embedding": embedding}[state]


@dataclass
class Talk:
    """One session with OpenCode, turn by turn."""

    model: ScriptedModel
    opencode: OpenCode
    project: Path
    session: str
    poller: Poller

    def turn(self, number: int) -> list[MessageTiming]:
        """Send one prompt; return when each of the three messages of the turn was finished and found."""
        words = {group: _word() for group in GROUPS}
        read = Call("read", {"filePath": str(self.project / "README.md")})
        steps = [
            Step(text=f"{_prose(20)} {words['answer']}.", calls=(read,)),
            Step(text=f"{_prose(20)} {words['last answer']}."),
        ]
        prompt = f"Turn {number}: {_prose(12)} {words['prompt']}."
        self.model.add(prompt, steps)
        self.poller.want(list(words.values()))
        self.opencode.prompt(self.session, prompt)
        returned = time.time()
        self.poller.wait(list(words.values()))
        messages = self.opencode.messages(self.session)[-len(GROUPS) :]
        return [self._timing(message, words, returned) for message in messages]

    def _timing(self, message: dict[str, Any], words: dict[str, str], returned: float) -> MessageTiming:
        text = " ".join(str(part.get("text", "")) for part in message["parts"])
        (group,) = (name for name, word in words.items() if word in text)
        found_at, holder = self.poller.hits.get(words[group], (None, ""))
        if found_at is not None and holder != message["info"]["id"]:
            raise RuntimeError(f"{words[group]} was found in {holder}, but {message['info']['id']} holds it")
        times = message["info"]["time"]
        finished = (times["created"] if group == "prompt" else times["completed"]) / 1000
        return MessageTiming(group, finished, found_at, returned if group == GROUPS[-1] else None)


@contextmanager
def _polling(daemon: Daemon) -> Iterator[Poller]:
    poller = Poller(daemon)
    poller.start()
    try:
        yield poller
    finally:
        poller.stop()


def _references(daemon: Daemon, root: Path, number: int = 60) -> dict[str, list[float]]:
    """The times of the two steps that every message needs at least: a synced write, and a query over the socket."""
    times: dict[str, list[float]] = {"synced write of 4 kB": [], "search that finds nothing": []}
    with (root / "reference").open("wb", buffering=0) as file, daemon.client() as client:
        for _ in range(number):
            begun = time.perf_counter()
            file.write(os.urandom(4096))
            os.fsync(file.fileno())
            written = time.perf_counter()
            _ask(client)
            times["synced write of 4 kB"].append(written - begun)
            times["search that finds nothing"].append(time.perf_counter() - written)
            time.sleep(0.01)
    return times


def _ask(client: httpx.Client) -> None:
    if Daemon.search_with(client, _word()):
        raise RuntimeError("a word that was never written was found")


def write_import(storage: Path, messages: int) -> None:
    """An invented tree of JSON files, `IMPORTED` messages a session, about 1 kB of prose each."""
    for number in range(0, messages, IMPORTED):
        session, created = f"ses_import{number:08d}", LONG_AGO + number * 60_000
        record = {"id": session, "version": "1.1.65", "projectID": "imported", "directory": "/home/dev/imported"}
        times = {"created": created, "updated": created}
        _write(storage / "session" / "imported" / f"{session}.json", {**record, "title": "Imported", "time": times})
        for step in range(IMPORTED):
            at, message = created + step * 1000, f"msg_import{number + step:08d}"
            ids = {"sessionID": session, "messageID": message}
            head = {"id": message, "sessionID": session, "role": "user", "time": {"created": at}}
            part = {"id": f"prt_import{number + step:08d}", **ids, "type": "text", "text": _prose(150)}
            _write(storage / "part" / message / f"{part['id']}.json", part)
            _write(storage / "message" / session / f"{message}.json", head)


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def _word() -> str:
    return "zq" + "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=12))


def _prose(words: int) -> str:
    return " ".join(random.choices(WORD_LIST.split(), k=words))


def _times(messages: Sequence[MessageTiming]) -> list[float]:
    """Seconds until found; 0 if it was found before OpenCode called it finished."""
    return [max(0.0, m.found_at - m.finished) if m.found_at is not None else float("inf") for m in messages]


def _quantile(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def _figures(times: Sequence[float]) -> dict[str, float]:
    return {
        "p50": round(_quantile(times, 0.5), 4),
        "p95": round(_quantile(times, 0.95), 4),
        "max": round(max(times, default=0.0), 4),
    }


def _show(row: dict[str, Any]) -> None:
    print(
        f"OpenCode {row['version']}, {row['state']} ({row['share in this state']:.0%} of the turns), "
        f"{row['messages']} messages, {row['never found']} never found, load {row['load average']}"
    )
    named = {name: row[name] for name in ("all", *GROUPS, "after the answer to the request")} | row["references"]
    for name, figures in named.items():
        print(f"  {name:34}" + "".join(f"{key} {value * 1000:8.1f} ms  " for key, value in figures.items()))
    print(f"  p95 is {row['p95 as a multiple of the references']} times the two references' p95 together", flush=True)


if __name__ == "__main__":
    sys.exit(main())
