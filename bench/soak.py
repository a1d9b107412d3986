"""A service under a day's use for half an hour: does its memory stay flat, and does everything arrive?

    python bench/soak.py FOLDER [--minutes 30] [--messages N]

A real daemon over invented messages (scale_data). Every two seconds an answer is added to one session, every second a
question is asked, in each mode in turn, and every two minutes a request file asks for a folder's pages. Each tenth of
the time has a row: what the service and its children used, and their memory (as in idle.py). At the end: the slope of
the memory over the second half, and whether each answer was found and each request done.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bench import scale_data
from bench.idle import HEADER, figures, row
from bench.ingest import add_answer
from bench.scale_daemon import Daemon, Place, Wire, end_cleanly

_EVERY_S = {"answer": 2.0, "question": 1.0, "request": 120.0}
_MODES = ("smart", "hybrid", "semantic", "fuzzy", "literal")
_ROWS = 10


class Soak:
    """One run; `counts` has what was done, `problems` what was not found or failed."""

    def __init__(self, daemon: Daemon, plan: dict[str, Any]) -> None:
        self._daemon, self._wire = daemon, Wire(daemon.socket)
        self._questions = [item["query"] for item in plan["known"]] + plan["question"] + plan["common"]
        self._database = sqlite3.connect(daemon.place.opencode / "opencode.db", isolation_level=None)
        ((self._session, self._folder),) = self._database.execute(
            "SELECT s.id, s.directory FROM session s JOIN message m ON m.session_id = s.id "
            "GROUP BY s.id ORDER BY count(*) DESC LIMIT 1"
        )
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, seconds: float) -> list[tuple[float, float]]:
        """(minutes, MB of memory as Pss) at each tenth."""
        assert self._daemon.process is not None
        pid, began = self._daemon.process.pid, time.monotonic()
        actions = {"answer": self._answer, "question": self._question, "request": self._request}
        due = {"answer": 0.0, "question": 0.0, "request": 10.0}
        last = figures(pid)
        memory: list[tuple[float, float]] = []
        while len(memory) < _ROWS:
            now = time.monotonic() - began
            for name in [name for name, at in due.items() if at <= now]:
                due[name] += _EVERY_S[name]
                actions[name](self.counts[name])
                self.counts[name] += 1
            if now >= (len(memory) + 1) * seconds / _ROWS:
                current = figures(pid)
                row(f"minute {now / 60:.1f}", seconds / _ROWS, last, current)
                memory.append((now / 60, current["pss MB"]))
                last = current
            time.sleep(0.02)
        return memory

    def _answer(self, number: int) -> None:
        add_answer(self._database, self._session, number, f"soak{number:05d} is the name of this answer.")

    def _question(self, number: int) -> None:
        arguments = {
            "query": self._questions[number % len(self._questions)], "match": _MODES[number % len(_MODES)],
        }  # fmt: skip
        code, answer = self._wire.ask("POST", "/recall/recall", {"arguments": arguments, "here": ""})
        if code != 200:
            self.problems.append(f"{arguments}: {code} {str(answer)[:200]}")

    def _request(self, number: int) -> None:
        requests = self._daemon.place.archive / "requests"
        (requests / f"soak-{number}.txt.part").write_text(f"{self._folder}\n")
        (requests / f"soak-{number}.txt.part").rename(requests / f"soak-{number}.txt")

    def check(self) -> None:
        """Note in `problems` every answer that is not found and every request that is not done."""
        self._daemon.settle()
        for number in range(self.counts["answer"]):
            arguments = {"query": f"soak{number:05d}", "match": "literal"}
            _, answer = self._wire.ask("POST", "/recall/recall", {"arguments": arguments, "here": ""})
            if not answer.get("results"):
                self.problems.append(f"answer {number} is not found")
        done = self._daemon.place.archive / "requests" / "done"
        for number in range(self.counts["request"]):
            if not (done / f"soak-{number}.txt").exists():
                self.problems.append(f"request {number} is not done")


def main() -> None:
    options: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--messages", type=int, default=2000)
    arguments = options.parse_args()
    end_cleanly()
    place = Place(arguments.folder)
    plan = scale_data.make(place.opencode, arguments.messages, "skewed", 7)
    with Daemon(place) as daemon:
        daemon.wait(
            lambda status: status["archive"]["messages"] >= arguments.messages and not any(status["outbox"].values()),
            3600,
        )
        soak = Soak(daemon, plan)
        print(HEADER)
        memory = soak.run(60 * arguments.minutes)
        soak.check()
    half = np.array(memory[len(memory) // 2 :])
    slope = float(np.polyfit(half[:, 0], half[:, 1], 1)[0])
    print(f"\nmemory over the second half: {slope:+.2f} MB a minute (pss)")
    print(", ".join(f"{number} {name}s" for name, number in soak.counts.items()))
    print("\n".join(soak.problems) or "all answers found, all requests done, no call failed")


if __name__ == "__main__":
    main()
