"""What an idle service costs: its start, its wake-ups, its memory before, with and after meaning.

    python bench/idle.py FOLDER [--messages N] [--seconds S] [--rest S] [--checkout DIR] [--json]

A daemon is filled with invented messages (scale_data) and cheap vectors (scale_fill), stopped, and started again with
nothing changed; then it follows an answer that grows in 500 rewrites. Processor time and writes are those of the
process and its children, from /proc; memory is what is resident (Rss) and the process's share of it (Pss). FOLDER is
kept, so a second run measures at once; `--checkout` runs another version of the code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import scale_data
from bench.ingest import FIRST_S, add_answer
from bench.scale_daemon import CHECKOUT, Daemon, Place, Wire, end_cleanly

HEADER = f"{'':34} {'s':>6} {'cpu ms':>9} {'% core':>7} {'wakes/s':>8} {'writ. kB':>9} {'rss MB':>7} {'pss MB':>7}"
_REWRITES, _GROWS_S = 500, 30.0
_QUESTION = {"arguments": {"query": "why was the cache of the parser dropped", "match": "semantic"}, "here": ""}


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    pids = [pid]
    for parent in pids:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            pids += [int(child) for child in task.read_text().split()]
    return pids


def _fields(path: Path) -> dict[str, int]:
    rows = (line.split(":") for line in path.read_text().splitlines() if ":" in line)
    return {name: int(value.split()[0]) for name, value in rows if value.split() and value.split()[0].isdecimal()}


def figures(pid: int) -> dict[str, float]:
    """Of the process and its children: processor milliseconds, wake-ups, MB written, MB resident."""
    total = dict.fromkeys(("processor ms", "wake-ups", "written kB", "rss MB", "pss MB"), 0.0)
    for process in _family(pid):
        root = Path(f"/proc/{process}")
        times = (root / "stat").read_text().rpartition(")")[2].split()
        total["processor ms"] += 10.0 * sum(map(int, times[11:15]))  # children that have ended included
        for status in root.glob("task/*/status"):
            total["wake-ups"] += _fields(status)["voluntary_ctxt_switches"]
        total["written kB"] += _fields(root / "io")["write_bytes"] / 1000
        memory = _fields(root / "smaps_rollup")
        total["rss MB"] += memory["Rss"] / 1024
        total["pss MB"] += memory["Pss"] / 1024
    return {name: round(value, 1) for name, value in total.items()}


def row(name: str, seconds: float, before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What was used between two `figures` that lie so far apart, and the memory at the second; printed too."""
    used = {key: after[key] - before[key] for key in ("processor ms", "wake-ups", "written kB")}
    result = {
        "s": seconds,
        "cpu ms": used["processor ms"],
        "% core": used["processor ms"] / 10 / seconds,
        "wakes/s": used["wake-ups"] / seconds,
        "writ. kB": used["written kB"],
        "rss MB": after["rss MB"],
        "pss MB": after["pss MB"],
    }
    print(
        f"{name:34} {seconds:6.0f} {result['cpu ms']:9.0f} {result['% core']:7.3f} {result['wakes/s']:8.1f} "
        f"{result['writ. kB']:9.0f} {result['rss MB']:7.0f} {result['pss MB']:7.0f}",
        flush=True,
    )
    return result


def _fill(place: Place, messages: int) -> None:
    if not (place.opencode / "opencode.db").exists():
        scale_data.make(place.opencode, messages, "skewed", 7)
    if (place.root / "filled").exists():
        return
    with Daemon(place, embedding="cheap") as daemon:
        daemon.wait(
            lambda status: status["archive"]["messages"] >= messages and not any(status["outbox"].values()), 3600
        )
    (place.root / "filled").touch()


def measure(daemon: Daemon, seconds: float, pause_s: float) -> dict[str, dict[str, float]]:
    """Start, idle, a growing answer, questions by meaning, idle again; each row by its name."""
    assert daemon.process is not None
    pid, none = daemon.process.pid, {"processor ms": 0.0, "wake-ups": 0.0, "written kB": 0.0}
    rows: dict[str, dict[str, float]] = {}

    def measured(name: str, work: Callable[[], object]) -> None:
        before, began = figures(pid), time.monotonic()
        work()
        rows[name] = row(name, max(0.01, time.monotonic() - began), before, figures(pid))

    began = time.monotonic()
    for name, ready in (
        ("start, to the first answer", lambda: daemon.wait(lambda status: bool(status["running"]), 120, every_s=0.05)),
        ("start, to rest", daemon.settle),
    ):
        ready()
        rows[name] = row(name, max(1.0, time.monotonic() - began), none, figures(pid))
    measured("idle", lambda: time.sleep(seconds))
    measured(f"an answer in {_REWRITES} rewrites", lambda: _grow_answer(daemon.place))
    measured("first question by meaning", lambda: _ask(daemon))
    measured("20 more questions by meaning", lambda: [_ask(daemon) for _ in range(20)])
    if pause_s:
        measured("after the questions", lambda: time.sleep(pause_s))
        measured("idle after meaning", lambda: time.sleep(seconds))
    return rows


def _grow_answer(place: Place) -> None:
    """An answer that is written again and again, a few words longer each time, as OpenCode did while it streamed."""
    with contextlib.closing(sqlite3.connect(place.opencode / "opencode.db", isolation_level=None)) as database:
        ((session, _),) = database.execute(
            "SELECT session_id, count(*) FROM message GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
        )
        part_id = add_answer(database, session, int(time.time()) - FIRST_S, is_complete=False)
        for count in range(1, _REWRITES + 1):
            part = {"type": "text", "text": "The value grows now. " * count}
            database.execute(
                "UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
                (json.dumps(part), int(1000 * time.time()), part_id),
            )
            time.sleep(_GROWS_S / _REWRITES)


def _ask(daemon: Daemon) -> None:
    wire = Wire(daemon.socket)
    code, answer = wire.ask("POST", "/recall/recall", _QUESTION)
    wire.close()
    if code != 200 or not answer["results"]:
        raise RuntimeError(f"the question failed: {code} {str(answer)[:500]}")


def main() -> None:
    options: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--messages", type=int, default=2000)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--rest", type=float, default=0, help="wait so long after the questions, and measure again")
    options.add_argument("--checkout", type=Path, default=CHECKOUT)
    options.add_argument("--json", action="store_true", help="the rows as JSON; the table goes to standard error")
    arguments = options.parse_args()
    end_cleanly()
    place = Place(arguments.folder, arguments.checkout)
    with contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        _fill(place, arguments.messages)
        print(HEADER)
        with Daemon(place) as daemon:
            rows = measure(daemon, arguments.seconds, arguments.rest)
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
