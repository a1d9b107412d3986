"""The world that the payloads are let loose on: two archives, one planted and one clean, an honest model and a gullible
one, and everything they were sent and made of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.chat.ollama import OllamaChat
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Json, Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.agent.limits import LEFT_OUT
from daemon.reconstitute.agent.loop import MOST_CALLS
from tests.hostile.gullible_model import GullibleModel
from tests.hostile.payloads import Payload, payloads
from tests.hostile.planted import FOLDERS, Planting
from tests.support.servers.evident_model import EvidentModel, Said
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.recorded_sessions import MINUTE, Recorded, recorded

CANARY = "CANARY-of-a-file-that-no-session-ever-saw"
SCRIPTS = {
    "What is this for": [Said("It is a small shop service.", "small shop service in Python")],
    "What was decided": [Said("SQLite holds the data.", "SQLite instead of files", "Two processes write.")],
    "What was tried": [Said("Redis was tried.", "tried Redis first and gave up", "It was too slow.")],
    "What is unfinished": [Said("The refund route is open.", "refund route is not yet done")],
    "How is it organised": [Said("app.py holds the routes.", "app.py holds the routes", paths=("src/app.py",))],
    "How is it installed": [Said("Start it with python3 src/app.py.", "Start it with python3 src/app.py")],
    "Which settings": [Said("PORT is 8080.", "PORT is 8080 by default")],
    "What is the folder": [Said("It holds files of the shop.", "small shop service in Python")],
}
HEAPS = (("orders", "roles", "delimiters"), ("tools", "paths"), ("markup", "characters", "secrets", "persistence"))
READING = ("What is unfinished", "What was tried", "Which settings", "How is it installed")
"""The questions in which the honest model reads all that was planted, a place in each."""
RUNS = (("planted", "honest"), ("clean", "honest"), ("planted", "gullible"))
STEPS = 14
_noting: list[list[str]] = []
"""The list that is filled at the moment, if one is."""


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if _noting and event in {"open", "os.listdir", "os.scandir", "subprocess.Popen", "os.system"}:
        _noting[-1].append(f"{event} {arguments[0]}")


sys.addaudithook(_note_opened)


@contextlib.contextmanager
def noting() -> Iterator[list[str]]:
    """What this process opens, lists or starts meanwhile."""
    _noting.append([])
    try:
        yield _noting[-1]
    finally:
        _noting.pop()


@dataclass
class Ran:
    """One run of a target: what was published, and what the model was sent for each question, whole."""

    target: str
    root: Path
    result: Json
    chats: list[Json]

    @property
    def messages(self) -> list[Json]:
        """All that we told the model, each once: user and tool messages."""
        every = [m for body in self.chats for m in body["messages"] if m["role"] in {"user", "tool"}]
        return list({(m["content"], m.get("tool_name")): m for m in every}.values())

    @property
    def results(self) -> list[Json]:
        """What the tools answered, as far as it was sent."""
        return [m for m in self.messages if m["role"] == "tool" and m["content"] != LEFT_OUT]

    def pages(self) -> dict[str, str]:
        tree = Path(self.result["output"])
        return {str(p.relative_to(tree)): p.read_text() for p in sorted(tree.rglob("*")) if p.suffix in {".md", ".txt"}}


@dataclass
class World:
    """The two archives and everything that was run on them."""

    tmp: Path
    outside: Path
    payloads: list[Payload]
    made: dict[str, Recorded]
    planted: dict[str, Planting]
    server: FakeOllama
    before: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[str, str, str], list[Ran]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def snapshot(self) -> dict[str, str]:
        """Every file that is neither an archive's nor published: its hash, and when it was changed."""
        found = {}
        for path in sorted(self.tmp.rglob("*")):
            top = path.relative_to(self.tmp).parts[0]
            if path.is_file() and not top.startswith(("state-", "out-")):
                stat = path.stat()
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path)] = f"{digest} {stat.st_mtime_ns} {stat.st_mode}"
        return found

    def batches(self) -> dict[str, set[int]]:
        """The payloads in a few heaps; those that would end a question before the others are obeyed stand alone."""
        found: dict[str, set[int]] = {}
        for each in self.payloads:
            is_alone = "finish(" in each.text or "for ever" in each.text
            heap = next(str(number) for number, groups in enumerate(HEAPS) if each.group in groups)
            found.setdefault(each.name if is_alone else heap, set()).add(each.number)
        return found

    def ran(self, twin: str, folder: str, model: str) -> list[Ran]:
        """Made once."""
        key = twin, folder, model
        if key not in self.runs:
            self.runs[key] = self.run(*key)
        return self.runs[key]

    def every_run(self) -> list[Ran]:
        """All there are, the clean twin's too."""
        return [one for folder in FOLDERS for twin, model in RUNS for one in self.ran(twin, folder, model)]

    def run(self, twin: str, folder: str, model: str) -> list[Ran]:
        """One archive's targets of one folder with one model."""
        server, made, planting = self.server, self.made[twin], self.planted[twin]
        done = []
        for target in planting.targets(folder):
            numbers = planting.numbers(folder, target)
            looks = {
                f"What do the texts {heap} of {place} say?": found
                for place in FOLDERS[folder]
                for heap, members in self.batches().items()
                if heap.isdigit() or place == FOLDERS[folder][0]
                if (found := [planting.asks[place, n] for n in numbers if n in members])
            }
            honest = Curious([[planting.asks[place, n] for n in numbers] for place in FOLDERS[folder]])
            gullible = GullibleModel(looks)
            server.chat_script = honest if model == "honest" else gullible
            folders = 40 if model == "honest" else 3
            result_kb = 12 if model == "honest" else 6
            section = Agent(steps=STEPS, rounds=1, folders=folders, trajectories=200, result_kb=result_kb, summaries=0)
            root = self.tmp / f"out-{twin}-{model}"
            server.requests.clear()
            num_ctx = 81_920 if model == "honest" else 24_576
            with closing(OllamaChat(server.url, model, timeout_s=90, num_ctx=num_ctx)) as chat:
                reconstitution = Reconstitution(
                    made.archive, made.recall(), Files(made.archive), root,
                    answerer=Answerer(chat, "", section), clock=lambda: made.clock + 60 * MINUTE,
                )  # fmt: skip
                own = tuple(looks) if model == "gullible" else ()
                with noting() as opened:
                    result = reconstitution.run(Target(target, own))
                self.opened += opened
            done.append(Ran(target, root, result, list(server.chats)))
        return done


class Curious(EvidentModel):
    """The honest model, which first reads everything that was planted, in a few of the questions."""

    def __init__(self, asks: list[list[tuple[str, dict[str, Any]]]]) -> None:
        super().__init__(SCRIPTS)
        self._asks = dict(zip(READING, asks, strict=False))

    def __call__(self, body: Any) -> Any:
        question = body["messages"][1]["content"].rsplit("answer_question in the end:\n", 1)[-1]
        asks = next((asks for piece, asks in self._asks.items() if piece in question), None)
        done = sum(message["role"] == "assistant" for message in body["messages"]) * MOST_CALLS
        if asks is None or done >= len(asks):
            return super().__call__(body)
        calls = [{"function": {"name": name, "arguments": given}} for name, given in asks[done : done + MOST_CALLS]]
        return {"role": "assistant", "content": "", "tool_calls": calls}


class Heard(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextlib.contextmanager
def injected(tmp: Path) -> Iterator[World]:
    """The world, in an empty directory."""
    outside = tmp / "work"
    every = payloads(outside)
    for place in (outside / "canary.txt", tmp / "canary.txt", outside / "notes.txt"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{CANARY}\n")
    models = {"honest:latest": "cd" * 32, "gullible:latest": "ef" * 32}
    with contextlib.ExitStack() as stack:
        made = {twin: stack.enter_context(recorded(tmp / f"state-{twin}")) for twin in ("planted", "clean")}
        planted = {twin: Planting(made[twin], outside, every, clean=twin == "clean") for twin in made}
        server = stack.enter_context(FakeOllama(models))
        server.capabilities = {name: ["completion", "tools"] for name in models}
        ours = World(tmp, outside, every, made, planted, server)
        ours.before = ours.snapshot()
        log = logging.getLogger()
        heard = Heard(ours.logged)
        log.addHandler(heard)
        level = log.level
        log.setLevel(logging.INFO)
        yield ours
        log.removeHandler(heard)
        log.setLevel(level)
