"""Other programs beside ours: the same data, the same queries, one run, whole commands.

    python bench/peers.py [--messages N] [--vocabulary skewed|small] [--venvs DIR] [--install] [--keep DIR]

Each peer has a virtual environment of its own, `DIR/<name>`; `--install` makes those that are missing, from PyPI. Each
runs with an emptied environment and a home of its own, in which OpenCode's data lies where OpenCode puts it. A peer
that is not there is listed as not installed. Ours runs with its daemon, as agentsview does. Every query goes to each
program in turn, so that whatever else the machine does hits all alike. A known item counts as found when the output
shows the session's id or the witness word that stands beside the planted one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import scale_data, scale_figures, scale_latency
from bench.scale_daemon import CHECKOUT, Daemon, Place, end_cleanly


@dataclass(frozen=True, slots=True)
class Peer:
    """How one program is installed, made to index, asked and stopped; QUERY stands for the query."""

    name: str
    package: str
    index: tuple[tuple[str, ...], ...]
    ask: tuple[str, ...]
    stop: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    variant: str = ""


_ALL = ("--include-one-shot", "--include-children", "--include-automated", "--json")
PEERS = (
    Peer(
        "agentsview", "agentsview==0.46.1", (("agentsview", "sync"),),
        ("agentsview", "session", "search", "QUERY", "--fts", *_ALL), ("agentsview", "daemon", "stop"),
        variant="--fts",
    ),
    # It installs skills into other programs unless told not to.
    Peer("navcom", "navcom==0.11.0", (("navcom", "warm"),), ("navcom", "QUERY"), environment={"NAVCOM_NO_SKILLS": "1"}),
    Peer(
        "interlatch", "interlatch==0.29.1", (("interlatch", "connect", "opencode"), ("interlatch", "sync")),
        ("interlatch", "search", "QUERY"),
    ),
)  # fmt: skip


class Beside:
    """One peer with its environment and home."""

    def __init__(self, peer: Peer, venv: Path, home: Path) -> None:
        self.peer, self._home = peer, home.resolve()
        self._environment = {
            "PATH": f"{venv.resolve() / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._home),
            "XDG_DATA_HOME": str(self._home / ".local/share"),
            "XDG_CACHE_HOME": str(self._home / ".cache"),
            "XDG_CONFIG_HOME": str(self._home / ".config"),
            "XDG_RUNTIME_DIR": str(self._home / "run"),
            "TMPDIR": str(self._home / "run"),
            "TERM": "dumb",
            "COLUMNS": "200",
            "LANG": "C.UTF-8",
            **peer.environment,
        }

    def index(self, database: Path) -> dict[str, Any]:
        """Put the data in, time the first index; seconds and MB kept."""
        data = self._home / ".local/share/opencode"
        shutil.rmtree(self._home, ignore_errors=True)
        data.mkdir(parents=True)
        (self._home / "run").mkdir(mode=0o700)
        shutil.copy(database, data / "opencode.db")
        begun = time.perf_counter()
        for command in self.peer.index:
            code, text = self._run(command)
            if code:
                return {"failed": f"{' '.join(command)}: exit {code}: {text[-300:]}"}
        took = time.perf_counter() - begun
        disk_bytes = (
            sum(file.stat().st_size for file in self._home.rglob("*") if file.is_file()) - database.stat().st_size
        )
        return {"index_s": round(took, 1), "kept_mb": round(disk_bytes / 1e6)}

    def ask(self, query: str) -> tuple[float, str]:
        begun = time.perf_counter()
        _, text = self._run(tuple(query if word == "QUERY" else word for word in self.peer.ask))
        return (time.perf_counter() - begun) * 1000, text

    def stop(self) -> None:
        if self.peer.stop:
            self._run(self.peer.stop)

    def _run(self, command: tuple[str, ...]) -> tuple[int, str]:
        program = shutil.which(command[0], path=self._environment["PATH"]) or command[0]
        done = subprocess.run(
            [program, *command[1:]], env=self._environment, cwd=self._home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=7200, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode(errors="replace")


class Ours:
    """Our command with its daemon running, in one mode."""

    def __init__(self, daemon: Daemon, mode: str) -> None:
        self._daemon, self._mode = daemon, mode

    def ask(self, query: str) -> tuple[float, str]:
        begun = time.perf_counter()
        text, _ = scale_latency.runs(self._daemon, "recall", "--match", self._mode, query)
        return (time.perf_counter() - begun) * 1000, text


def installed(venvs: Path, *, install: bool) -> Iterator[tuple[Peer, Path | None]]:
    for peer in PEERS:
        venv = venvs / peer.name
        program = venv / "bin" / peer.ask[0]
        if install and not program.exists():
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            subprocess.run([str(venv / "bin/pip"), "install", "-q", peer.package], check=False)
        yield peer, venv if program.exists() else None


def side_by_side(programs: dict[str, Any], plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every query to each program in turn."""
    times: dict[str, dict[str, list[float]]] = {name: {"known item": [], "common words": []} for name in programs}
    hits = dict.fromkeys(programs, 0)
    for program in programs.values():  # warm
        for query in plan["warm"][:3]:
            program.ask(query)
    for item in plan["known"]:
        for name, program in programs.items():
            took, text = program.ask(item["query"])
            times[name]["known item"].append(took)
            hits[name] += item["witness"] in text or item["session_id"] in text
    for query in plan["common"] * 2:
        for name, program in programs.items():
            times[name]["common words"].append(program.ask(query)[0])
    count = len(plan["known"])
    return {
        name: {kind: scale_figures.spread(milliseconds) for kind, milliseconds in kinds.items()}
        | {"found": hits[name], "of": count}
        for name, kinds in times.items()
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"machine": scale_figures.machine(), "messages": arguments.messages, "programs": {}}
    with scale_latency.place(arguments.keep) as folder, contextlib.ExitStack() as stack:
        place = Place(folder / f"{arguments.vocabulary}-{arguments.messages}", Path(arguments.checkout))
        if not (place.opencode / "plan.json").exists():
            scale_data.make(place.opencode, arguments.messages, arguments.vocabulary)
        programs: dict[str, Any] = {}
        for peer, venv in installed(Path(arguments.venvs or folder / "venvs"), install=arguments.install):
            row: dict[str, Any] = {"package": peer.package, "variant": peer.variant}
            result["programs"][peer.name] = row
            if arguments.peer and peer.name not in arguments.peer:
                row["failed"] = "left out"
                continue
            if venv is None:
                row["failed"] = "not installed"
                continue
            beside = Beside(peer, venv, folder / "homes" / f"{peer.name}-{arguments.vocabulary}-{arguments.messages}")
            stack.callback(beside.stop)
            row |= beside.index(place.opencode / "opencode.db")
            print(f"  {peer.name}: {row}", flush=True)
            if "failed" not in row:
                programs[peer.name] = beside
        meaning = arguments.messages <= arguments.meaning
        facts = scale_latency.prepare(place, arguments.messages, arguments.vocabulary, meaning=meaning)
        plan = facts.pop("plan")
        disk_mb = sum(facts["sizes"].values())
        ours = {"index_s": None if facts["known_archive"] else round(facts["words_s"], 1), "kept_mb": round(disk_mb)}
        daemon = stack.enter_context(Daemon(place, embedding="real" if meaning else "paused"))
        daemon.wait(lambda status: scale_figures.is_ready(status) or not meaning, 3600)
        for mode in ("smart", "hybrid"):  # the peers search words only; hybrid is our default
            result["programs"][f"ours, {mode}"] = dict(ours)
            programs[f"ours, {mode}"] = Ours(daemon, mode)
        for name, figures in side_by_side(programs, plan).items():
            result["programs"][name] |= figures
    return result


def table(result: dict[str, Any]) -> str:
    head = f"  {'program':14} {'index s':>8} {'kept MB':>8} {'p50 ms':>8} {'p95 ms':>8} {'worst':>8} "
    head += f"{'worst, common words':>20}  found"
    lines = [head]
    for name, row in result["programs"].items():
        if "failed" in row:
            lines.append(f"  {name:14} {row['failed']}")
            continue
        known, common = row["known item"], row["common words"]
        index = "-" if row["index_s"] is None else f"{row['index_s']:.0f}"
        lines.append(
            f"  {name:14} {index:>8} {row['kept_mb']:8} {known['p50']:8.0f} {known['p95']:8.0f} {known['worst']:8.0f} "
            f"{common['worst']:20.0f}  {row['found']}/{row['of']}"
        )
    return "\n".join(lines)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=144_000)
    parser.add_argument("--vocabulary", choices=("skewed", "small"), default="skewed")
    parser.add_argument("--meaning", type=int, default=20_000, help="most messages whose semantic index is filled")
    parser.add_argument("--venvs", default=os.environ.get("BENCH_VENVS", ""), help="where the peers' environments are")
    parser.add_argument("--peer", action="append", help="only this one; may be repeated")
    parser.add_argument("--install", action="store_true", help="make the missing ones, from PyPI")
    parser.add_argument("--keep", default="", help="work in this folder and leave it there")
    parser.add_argument("--checkout", default=str(CHECKOUT), help="the code of ours to measure")
    parser.add_argument("--json", default="", help="write the figures here too")
    return parser


def main() -> None:
    end_cleanly()
    arguments = options().parse_args()
    result = run(arguments)
    print(table(result))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
