"""Every benchmark, one after the other, and one summary at the end; what `make bench` runs.

    python bench/run.py [--full] [--only NAME]... [--data DIR] [--venvs DIR | --install] [--keep DIR] [--json]

Small sizes by default, some minutes in all; `--full` takes the sizes that docs/benchmarks.md shows, which takes hours.
`--data` gives the question sets of the quality benchmark; without it code alone is asked about. Peers run where
`--venvs` has them, or `--install` may fetch them from PyPI. With `--json` the summary is one JSON object on standard
output, all else goes to standard error. A benchmark that could not run is listed with the reason and makes the exit
code 1; one that was not asked for is listed as left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import goals, scale_figures
from bench.scale_daemon import end_cleanly

BENCH = Path(__file__).resolve().parent
_LAST_LINES = 24


@dataclass(frozen=True, slots=True)
class Bench:
    """One script with the arguments of both sizes; `figures`: how it hands out figures as JSON."""

    name: str
    script: str
    small: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    figures: str = ""


BENCHES = (
    Bench("speed", "scale_latency.py", ("--messages", "1000", "--rounds", "1"), ("--messages", "144000"), "file"),
    Bench("peers", "peers.py", ("--messages", "1000"), ("--messages", "144000"), "file"),
    Bench("fresh", "fresh.py", ("--turns", "5", "--import", "1000"), (), "output"),
    Bench("quality", "quality.py", ("--most", "1000", "--questions", "100"), ("--questions", "2000")),
    Bench(
        "ingest",
        "ingest.py",
        ("--messages", "300", "1000", "--sessions", "10", "100", "--embed", "100"),
        ("--messages", "10000", "30000", "144000", "--embed", "1000"),
        "output",
    ),
    Bench("idle", "idle.py", ("--messages", "100", "--seconds", "10"), ("--seconds", "60", "--rest", "300"), "output"),
    Bench("pages", "pages.py", ("--sessions", "30", "--files", "100"), ("--files", "1100"), "output"),
    Bench("files", "files_scale.py", ("--operations", "10000", "--files", "1000", "--sessions", "30", "--runs", "1")),
)


@dataclass(slots=True)
class Outcome:
    name: str
    state: str
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)
    figures: Any = None


def run(bench: Bench, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Run one script to its end, its output shown as it comes."""
    if arguments.only and bench.name not in arguments.only:
        return Outcome(bench.name, "left out")
    command = [sys.executable, str(BENCH / bench.script), *(bench.full if arguments.full else bench.small)]
    command += list(_extra(bench, arguments, folder))
    figures = folder / f"{bench.name}.json"
    if bench.figures:
        command += ["--json", str(figures)] if bench.figures == "file" else ["--json"]
    _say(f"\n== {bench.name}: {' '.join(command[1:])}", arguments)
    begun, lines = time.monotonic(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                _say(lines[-1], arguments)
        except BaseException:
            process.terminate()
            raise
    state = "done" if process.returncode == 0 else f"failed: exit code {process.returncode}"
    outcome = Outcome(bench.name, state, round(time.monotonic() - begun, 1), lines[-_LAST_LINES:])
    if bench.figures == "file" and figures.exists():
        outcome.figures = json.loads(figures.read_text())
    elif bench.figures == "output" and process.returncode == 0:
        outcome.figures, outcome.lines = json.loads("\n".join(lines)), []
    return outcome


def _extra(bench: Bench, arguments: argparse.Namespace, folder: Path) -> Iterator[str]:
    if bench.name == "idle":
        yield str(folder / "idle")
    if bench.name == "peers":
        yield from ("--venvs", arguments.venvs) if arguments.venvs else ()
        yield from ("--install",) if arguments.install else ()
    if bench.name in ("speed", "peers") and arguments.keep:
        yield from ("--keep", arguments.keep)
    if bench.name == "quality":
        yield from (
            ("--keep", str(Path(arguments.keep) / f"quality-{'full' if arguments.full else 'small'}"))
            if arguments.keep
            else ()
        )
        yield from ("--data", arguments.data) if arguments.data else ()


def summary(outcomes: list[Outcome]) -> str:
    """The state of each benchmark, with the last lines of those without figures; then the figures beside the goals."""
    lines = ["", "== summary"]
    for outcome in outcomes:
        took = f" in {outcome.seconds:.0f} s" if outcome.seconds else ""
        lines.append(f"{outcome.name:8} {outcome.state}{took}")
        if not outcome.figures:
            lines += [f"  {line}" for line in outcome.lines]
    rows = list(goals.goals({outcome.name: outcome.figures for outcome in outcomes}))
    return "\n".join([*lines, "", goals.table(rows)] if rows else lines)


def _say(line: str, arguments: argparse.Namespace) -> None:
    print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the sizes of docs/benchmarks.md; hours")
    parser.add_argument("--only", action="append", choices=[bench.name for bench in BENCHES], help="may be repeated")
    parser.add_argument("--data", default="", help="folder of question sets, supplied by the user (bench/README.md)")
    parser.add_argument("--venvs", default="", help="where the peers' virtual environments are")
    parser.add_argument("--install", action="store_true", help="fetch the peers from PyPI")
    parser.add_argument("--keep", default="", help="keep made data and archives in this folder, and use them again")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    return parser


def main() -> int:
    end_cleanly()
    arguments = options().parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        outcomes = [run(bench, arguments, Path(folder)) for bench in BENCHES]
    if arguments.json:
        rows = {o.name: {"state": o.state, "seconds": o.seconds, "figures": o.figures or o.lines} for o in outcomes}
        beside = [row._asdict() for row in goals.goals({outcome.name: outcome.figures for outcome in outcomes})]
        print(json.dumps({"machine": scale_figures.machine(), "benchmarks": rows, "goals": beside}, indent=1))
    else:
        print(summary(outcomes))
    return int(any(outcome.state.startswith("failed") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
