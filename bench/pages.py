"""What the pages of a folder cost: the first run, an unchanged one, and one more message, in processor time.

    python bench/pages.py [--sessions 300] [--turns 5] [--files 200] [--keep DIR] [--json]

Makes an opencode.db of invented sessions in one folder, spread over six months, each turn with a write, an edit and a
command, 4 messages a turn; then runs the target as the service does, without a model. Prints a table: the records'
reading apart from the making of the pages, the front page's size, pages written. It judges nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from daemon import reconstitute  # noqa: E402
from daemon.app import OneShot  # noqa: E402
from daemon.config import Chat, Config, Embedding, OpenCode, Output  # noqa: E402
from daemon.config.sections import ArchiveSection  # noqa: E402
from daemon.control import calls  # noqa: E402
from daemon.control.calls import silent  # noqa: E402
from daemon.model import Target  # noqa: E402
from daemon.reconstitute.pages import Renderer  # noqa: E402
from tests.support.servers.fake_ollama import FakeOllama  # noqa: E402 - found by the line above
from tests.support.stores.make_opencode import Database, assistant, session, text, tool, user  # noqa: E402

START = 1_780_000_000_000
FOLDER = "/proj/depot"
WORDS = [
    "stock",
    "order",
    "route",
    "depot",
    "label",
    "crane",
    "pallet",
    "invoice",
    "count",
    "shelf",
    "truck",
    "scale",
    "night",
    "return",
    "batch",
    "plan",
]


def identifier(kind: str, time_ms: int, number: int) -> str:
    """An id as OpenCode makes it: 48 bits of the clock, then something of its own."""
    return f"{kind}_{(time_ms * 4096 + number % 4096) & ((1 << 48) - 1):012x}{number:014d}"


class History:
    """Writes sessions into a database; the same arguments, the same records."""

    def __init__(self, database: Database, files: int) -> None:
        self._database = database
        self._random = random.Random(7)
        self._files, self._number, self._texts = files, 0, dict[str, str]()

    def session(self, place: int, turns: int, span_ms: int) -> str:
        """One more session with its turns; its id."""
        self._now = START + place * span_ms
        session_id = self._id("ses")
        title = f"{self._words(3)} {place}"
        times = {"created": self._now, "updated": self._now + turns * 60_000}
        self._database.session(session(session_id, FOLDER, title, version="1.18.33", time=times))
        for _ in range(turns):
            self.turn(session_id)
        return session_id

    def turn(self, session_id: str) -> None:
        """A prompt, a write or an edit, a command, and an answer."""
        prompt_id = self._id("msg")
        prompt = f"Please change how the {self._words(2)} works, so that the {self._words(3)} is right."
        self._put(user(prompt_id, session_id, self._now), text(self._id("prt"), prompt_id, session_id, prompt))
        for state, name in ((self._write(), "write"), (self._command(), "bash")):
            answer_id = self._id("msg")
            record = assistant(
                answer_id, session_id, self._now, time={"created": self._now, "completed": self._now + 900}
            )
            self._put(record, tool(self._id("prt"), answer_id, session_id, name, state))
        last = self._id("msg")
        record = assistant(last, session_id, self._now, time={"created": self._now, "completed": self._now + 900})
        answer = f"The {self._words(2)} now takes the {self._words(2)} into account. " * 3
        self._put(record, text(self._id("prt"), last, session_id, answer))

    def _put(self, record: dict[str, Any], part: dict[str, Any]) -> None:
        self._database.message(record, part)

    def _write(self) -> dict[str, Any]:
        path = f"{FOLDER}/src/part{self._random.randrange(self._files):04}.py"
        lines = self._texts.get(path, f'"""Does the {self._words(2)}."""\n').splitlines(keepends=True)
        lines.append(f"{self._words(1)}_{self._number} = {self._random.randrange(10**6)}\n")
        self._texts[path] = "".join(lines)
        tool_input = {"filePath": path, "content": self._texts[path]}
        return self._state(tool_input, "Wrote file successfully.", {"filepath": path, "exists": True})

    def _command(self) -> dict[str, Any]:
        tool_input = {"command": "pytest -q", "description": "Run the tests"}
        return self._state(tool_input, f"{self._random.randrange(50)} passed in 0.5s", {"exit": 0})

    def _state(self, tool_input: dict[str, Any], output: str, metadata: dict[str, Any]) -> dict[str, Any]:
        times = {"start": self._now, "end": self._now + 200}
        return {
            "status": "completed",
            "input": tool_input,
            "output": output,
            "title": "",
            "metadata": metadata,
            "time": times,
        }

    def _id(self, kind: str) -> str:
        self._number += 1
        self._now += 1000
        return identifier(kind, self._now, self._number)

    def _words(self, count: int) -> str:
        return " ".join(self._random.choice(WORDS) for _ in range(count))


@contextlib.contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Adds to `spent` the processor seconds of reading (`collect`), gathering facts and making pages."""

    def wrapped(name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - began

        return call

    patches = [
        mock.patch.object(reconstitute, name, wrapped(name, getattr(reconstitute, name)))
        for name in ("collect", "gather")
    ]
    folders = Renderer
    patches.append(mock.patch.object(folders, "pages", wrapped("pages", folders.pages)))
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def main() -> None:
    """Make the records, run the target three times, print what each run took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=300)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--files", type=int, default=200)
    options.add_argument("--keep", type=Path, help="leave everything in this new folder")
    options.add_argument("--json", action="store_true", help="the runs as JSON; the table goes to standard error")
    arguments = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as temporary,
        contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout),
    ):
        runs = measure(arguments, arguments.keep or Path(temporary))
    if arguments.json:
        print(json.dumps({"files": arguments.files, "runs": runs}))


def measure(arguments: argparse.Namespace, work: Path) -> dict[str, dict[str, float]]:
    """The runs, one line each; processor seconds of the steps by the run's name."""
    runs: dict[str, dict[str, float]] = {}
    database = Database(work / "opencode" / "opencode.db")
    history = History(database, arguments.files)
    span = 180 * 86_400_000 // arguments.sessions
    last = ""
    database.execute("BEGIN")
    for place in range(arguments.sessions):
        last = history.session(place, arguments.turns, span)
    database.execute("COMMIT")
    with FakeOllama({"embedder:latest": "ef" * 32}) as server:
        config = Config(
            opencode=OpenCode(data_dir=str(work / "opencode")),
            archive=ArchiveSection(dir=str(work / "archive")),
            output=Output(dir=str(work / "pages")),
            embedding=Embedding(provider="ollama", model="embedder", url=server.url),
            chat=Chat(provider="none"),
        )
        print("| run | all | reading | facts | pages | written | front page |\n|---|---|---|---|---|---|---|")
        for name in ("first", "unchanged", "one more turn"):
            if name == "one more turn":
                history.turn(last)
            with OneShot(config) as engine:
                engine.call(calls.Index(wait=True))
                spent: dict[str, float] = {}
                began = time.process_time()
                with timed(spent):
                    result = engine.run_target(Target(path=FOLDER), silent)
                total = time.process_time() - began
            size = (Path(result["output"]) / "README.md").stat().st_size
            cells = [f"{spent.get(part, 0.0):.2f} s" for part in ("collect", "gather", "pages")]
            print(f"| {name} | {total:.2f} s | {' | '.join(cells)} | {result['written']} | {size / 1000:.1f} kB |")
            runs[name] = {"all": total, **spent}
    return runs


if __name__ == "__main__":
    main()
