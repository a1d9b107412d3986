"""An OpenCode data folder of any size: `opencode.db` with the tables and records of 1.18.33, so peers can read it too.

    python bench/scale_data.py FOLDER [--messages N] [--kb KB] [--vocabulary skewed|small] [--seed N]

By default 144,000 messages in about 3,000 sessions of 60 projects over three years: prompts, answers, reasoning and
tool calls in the mix and sizes of recorded work, about 440 MB of records; `--kb` makes the texts longer or shorter. 30
known items are planted in prompts and answers: each is asked for by words that stand together in one message only, and
a witness word beside them, which no query has, tells that the right message was shown. The journal (`event`) stays
empty: it repeats what the rows hold. The same arguments make the same bytes. `plan.json` beside the database says
what to ask.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import scale_queries
from bench.scale_words import Texts, vocabulary

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "opencode-1.18.33-sqlite.tar.gz"
END = 1_795_230_000_000
YEARS_MS = 3 * 365 * 86_400_000
PROJECTS = 60
KB = 3.0
"""How long a message and its parts are on average."""
_BULK_OF_A_KB = 1.33 / KB
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MODEL = {"providerID": "bench", "modelID": "invented-1"}


@dataclass(slots=True)
class Totals:
    """What stands in a folder; sizes are of the records' JSON."""

    vocabulary: str
    seed: int
    messages: int = 0
    parts: int = 0
    sessions: int = 0
    projects: int = PROJECTS
    record_bytes: int = 0
    database_bytes: int = 0
    seconds: float = 0.0


def make(folder: Path, messages: int = 144_000, name: str = "skewed", seed: int = 7, kb: float = KB) -> dict[str, Any]:
    """Write `folder`/opencode.db and plan.json; the plan. `kb`: about how long a message and its parts are."""
    begun = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(folder / "opencode.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=OFF")
    _schema(database)
    words = vocabulary(name, seed)
    items = scale_queries.items(words, seed)
    totals = Totals(name, seed)
    history = _History(Texts(words, seed + 1), np.random.default_rng(seed + 2), totals, messages, items, kb)
    for table, rows in history.rows():
        marks = ",".join("?" * len(rows[0]))
        columns = f"({','.join(_COLUMNS[table])})" if table in _COLUMNS else ""
        database.executemany(f"INSERT INTO {table} {columns} VALUES ({marks})", rows)
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    totals.database_bytes = (folder / "opencode.db").stat().st_size
    totals.seconds = round(time.perf_counter() - begun, 1)
    plan = {"made": asdict(totals), **scale_queries.plan(words, items, seed, history.example)}
    (folder / "plan.json").write_text(json.dumps(plan, indent=1))
    return plan


_COLUMNS = {
    "session": (
        "id", "project_id", "parent_id", "slug", "directory", "path", "title", "version", "cost",
        "agent", "model", "time_created", "time_updated", "time_archived",
    ),
    "project": ("id", "worktree", "vcs", "time_created", "time_updated", "sandboxes"),
}  # fmt: skip


def _schema(database: sqlite3.Connection) -> None:
    """The tables, indexes and migrations of a database that 1.18.33 wrote."""
    with tempfile.TemporaryDirectory() as name, tarfile.open(FIXTURE) as archive:
        for member in archive.getmembers():
            if "/opencode/opencode.db" in f"/{member.name}" and not member.name.endswith("-shm"):
                member.name = Path(member.name).name
                archive.extract(member, name, filter="data")
        with sqlite3.connect(Path(name) / "opencode.db") as real:
            for (sql,) in real.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'"):
                database.execute(sql)
            done = real.execute("SELECT * FROM migration").fetchall()
        real.close()
    database.executemany("INSERT INTO migration VALUES (?, ?)", done)


class _History:
    """Sessions one after the other in time; what is planted comes at even distances."""

    def __init__(
        self,
        texts: Texts,
        random: np.random.Generator,
        totals: Totals,
        messages: int,
        items: list[dict[str, Any]],
        kb: float,
    ) -> None:
        self._bulk = _BULK_OF_A_KB * kb
        self._texts = texts
        self._random = random
        self._totals = totals
        self._messages = messages
        step = max(1, messages // (len(items) + 1))
        self._planned = {step * (number + 1): item for number, item in enumerate(items)}
        self._waiting: list[dict[str, Any]] = []
        self._clock = END - YEARS_MS
        self._count = 0
        self._parts: list[tuple[Any, ...]] = []
        self._rows: list[tuple[Any, ...]] = []
        self.example: dict[str, Any] = {}

    def rows(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """(table, rows) in an order that the foreign keys allow."""
        projects = [self._project(number) for number in range(PROJECTS)]
        yield "project", projects
        weights = 1 / np.arange(1, PROJECTS + 1) ** 0.7
        weights /= weights.sum()
        last = ""
        while self._totals.messages < self._messages:
            project = projects[int(self._random.choice(PROJECTS, p=weights))]
            last = yield from self._session(project, last)
            begun = END - YEARS_MS + YEARS_MS * self._totals.messages // self._messages
            self._clock = max(self._clock + 60_000, begun)

    def _project(self, number: int) -> tuple[Any, ...]:
        return (
            f"{number * 7919 + 1:040x}",
            f"/home/dev/work/{_project_name(number)}",
            "git",
            END - YEARS_MS,
            END,
            "[]",
        )

    def _session(self, project: tuple[Any, ...], last: str) -> Generator[tuple[str, list[tuple[Any, ...]]], None, str]:
        self._clock += int(self._random.integers(1_000, 3_600_000))
        totals = self._totals
        totals.sessions += 1
        session_id = self._id("ses", descending=True)
        size = int(np.clip(self._random.lognormal(np.log(30), 0.95), 2, 600))
        size = min(size, self._messages - totals.messages)
        folder = project[1] + ("" if self._random.random() < 0.8 else f"/packages/{_project_name(totals.sessions % 7)}")
        child = last if last and self._random.random() < 0.08 else None
        begun = self._clock
        self._rows, self._parts = [], []
        self._messages_of(session_id, folder, size)
        title = " ".join(self._texts.words(5)).capitalize()
        archived = self._clock if self._random.random() < 0.05 else None
        model = json.dumps({"id": _MODEL["modelID"], "providerID": "bench"})
        row = (
            session_id, project[0], child, f"bench-{totals.sessions}", folder, "", title, "1.18.33", 0.01,
            "build", model, begun, self._clock, archived,
        )  # fmt: skip
        yield "session", [row]
        yield "message", self._rows
        yield "part", self._parts
        if not self.example and totals.messages * 2 > self._messages and size > 20:
            self.example = {"sessionID": session_id, "directory": folder, "projectID": project[0], "time": begun}
        return session_id

    def _messages_of(self, session_id: str, folder: str, size: int) -> None:
        answers_left, parent = 0, ""
        for _ in range(size):
            self._totals.messages += 1
            if self._totals.messages in self._planned:
                self._waiting.append(self._planned[self._totals.messages])
            if answers_left == 0:
                answers_left = int(self._random.integers(1, 8))
                parent = self._prompt(session_id)
            else:
                answers_left -= 1
                self._answer(session_id, folder, parent, last=answers_left == 0)
            self._clock += int(self._random.integers(300, 9_000))

    def _prompt(self, session_id: str) -> str:
        message_id = self._id("msg")
        data: dict[str, Any] = {"role": "user", "time": {"created": self._clock}, "agent": "build", "model": _MODEL}
        self._message(message_id, session_id, data | {"summary": {"diffs": []}})
        text = self._planted("prompt", self._texts.prose(self._size(22, 1.0, 3, 1500)), session_id, message_id)
        self._part(message_id, session_id, {"type": "text", "text": text})
        return message_id

    def _answer(self, session_id: str, folder: str, parent: str, *, last: bool) -> None:
        message_id, chance = self._id("msg"), self._random.random(3)
        usage = {"input": 4071, "output": 60, "reasoning": 26, "cache": {"write": 0, "read": 4070}}
        data: dict[str, Any] = {"parentID": parent, "role": "assistant", "mode": "build", "agent": "build"}
        data |= {"path": {"cwd": folder, "root": folder}, "cost": 0.0045, "tokens": {"total": 8173, **usage}, **_MODEL}
        time_ = {"created": self._clock, "completed": self._clock + 250}
        self._message(message_id, session_id, data | {"time": time_, "finish": "stop" if last else "tool-calls"})
        snapshot = f"{self._count * 2654435761 % (1 << 64):040x}"
        self._part(message_id, session_id, {"snapshot": snapshot, "type": "step-start"})
        if chance[0] < 0.3:
            text = self._texts.prose(self._size(45, 0.9, 8, 1200))
            span = {"start": self._clock, "end": self._clock + 50}
            self._part(message_id, session_id, {"type": "reasoning", "text": text, "time": span})
        if last or chance[1] < 0.35:
            text = self._texts.prose(self._size(50, 1.0, 4, 2000))
            text = self._planted("answer", text, session_id, message_id)
            self._part(message_id, session_id, {"type": "text", "text": text})
        if not last:
            for _ in range(1 + (chance[2] < 0.12)):
                self._part(message_id, session_id, self._tool(folder))
        end = {"reason": "stop" if last else "tool-calls", "snapshot": snapshot, "type": "step-finish", "tokens": usage}
        self._part(message_id, session_id, end | {"cost": 0.0045})

    def _tool(self, folder: str) -> dict[str, Any]:
        name = ("bash", "read", "edit", "grep", "write", "glob")[
            int(self._random.choice(6, p=[0.32, 0.28, 0.17, 0.11, 0.07, 0.05]))
        ]
        path = f"{folder}/src/{'/'.join(word.replace('/', '-')[:24] for word in self._texts.words(2))}.py"
        tool_input, output, metadata = getattr(self, f"_{name}")(path)
        state = {"status": "completed", "input": tool_input, "output": output}
        state |= {"metadata": metadata | {"truncated": False}, "title": path.rsplit("/", 1)[1]}
        state["time"] = {"start": self._clock + 20, "end": self._clock + 80}
        return {"type": "tool", "tool": name, "callID": f"call_{self._count}", "state": state}

    def _bash(self, _path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        command = f"{' '.join(self._texts.words(4))} --{self._texts.words(1)[0]}"
        output = self._texts.log(self._size(60, 1.2, 1, 4000))
        tool_input = {"command": command, "description": " ".join(self._texts.words(4))}
        return tool_input, output, {"output": output[:2000], "exit": 0}

    def _read(self, path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        lines = self._texts.code(self._size(110, 1.1, 6, 4000)).split("\n")
        body = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
        end = f"(End of file - total {len(lines)} lines)"
        output = f"<path>{path}</path>\n<type>file</type>\n<content>\n{body}\n\n{end}\n</content>"
        return {"filePath": path}, output, {"preview": "\n".join(lines[:6]), "loaded": []}

    def _edit(self, path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        old, new = self._texts.code(self._size(18, 0.7, 6, 300)), self._texts.code(self._size(26, 0.8, 6, 400))
        filediff = {"file": path, "additions": new.count("\n") + 1, "deletions": old.count("\n") + 1}
        tool_input = {"filePath": path, "oldString": old, "newString": new}
        return tool_input, "Edit applied successfully.", {"diagnostics": {}, "filediff": filediff}

    def _write(self, path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        content = self._texts.code(self._size(120, 0.9, 6, 3000))
        return {"filePath": path, "content": content}, "Wrote file successfully.", {"filepath": path, "exists": False}

    def _grep(self, path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        lines = self._texts.code(self._size(40, 1.0, 6, 900)).split("\n")
        output = f"Found {len(lines)} matches\n{path}:\n" + "\n".join(f"  Line {n}: {x}" for n, x in enumerate(lines))
        return {"pattern": self._texts.words(1)[0], "path": path}, output, {"matches": len(lines)}

    def _glob(self, path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        words = self._texts.words(self._size(10, 0.8, 1, 100))
        folder = path.rsplit("/", 1)[0]
        return {"pattern": "**/*.py"}, "\n".join(f"{folder}/{word}.py" for word in words), {"count": len(words)}

    def _planted(self, kind: str, text: str, session_id: str, message_id: str) -> str:
        """The next known item of this kind in the middle of `text`, if one is due."""
        due = next((item for item in self._waiting if item["kind"] == kind), None)
        if due is None:
            return text
        self._waiting.remove(due)
        due |= {"session_id": session_id, "message_id": message_id}
        sentences = text.split(". ")
        sentences.insert(len(sentences) // 2, due["sentence"])
        return ". ".join(sentences)

    def _size(self, median: float, spread: float, least: int, most: int) -> int:
        return int(np.clip(self._bulk * self._random.lognormal(np.log(median), spread), least, most))

    def _message(self, message_id: str, session_id: str, data: dict[str, Any]) -> None:
        body = json.dumps(data, separators=(",", ":"))
        self._totals.record_bytes += len(body)
        self._rows.append((message_id, session_id, self._clock, self._clock + 300, body))

    def _part(self, message_id: str, session_id: str, data: dict[str, Any]) -> None:
        body = json.dumps(data, separators=(",", ":"))
        self._totals.parts += 1
        self._totals.record_bytes += len(body)
        self._parts.append((self._id("prt"), message_id, session_id, self._clock, self._clock + 300, body))

    def _id(self, prefix: str, *, descending: bool = False) -> str:
        """As OpenCode makes them: 48 bits of time and a counter, then letters that tell nothing."""
        self._count += 1
        number = (self._clock * 4096 + self._count % 4096) & ((1 << 48) - 1)
        number = ~number & ((1 << 48) - 1) if descending else number
        digits, letters = self._count * 6364136223846793005 + 1442695040888963407, []
        for _ in range(14):
            digits, digit = divmod(digits, 62)
            letters.append(_BASE62[digit])
        return f"{prefix}_{number:012x}{''.join(letters)}"


def _project_name(number: int) -> str:
    first = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty")
    second = ("api", "cli", "web", "core", "sync", "ledger")
    return f"{first[number % 10]}-{second[number // 10 % 6]}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="a new folder")
    options.add_argument("--messages", type=int, default=144_000)
    options.add_argument("--kb", type=float, default=KB, help="of a message and its parts, about, on average (3)")
    options.add_argument("--vocabulary", choices=("skewed", "small"), default="skewed")
    options.add_argument("--seed", type=int, default=7)
    arguments = options.parse_args()
    plan = make(arguments.folder, arguments.messages, arguments.vocabulary, arguments.seed, arguments.kb)
    print(json.dumps(plan["made"], indent=1))


if __name__ == "__main__":
    main()
