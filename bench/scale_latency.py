"""How long an answer takes with a large archive: over the socket with a warm daemon, and as a whole command.

    python bench/scale_latency.py [--messages N] [--kb KB] [--vocabulary skewed|small|both] [--keep DIR]
                                  [--meaning MESSAGES] [--modes MODE,...] [--rounds N] [--seconds N]
                                  [--checkout DIR] [--json FILE]

Makes the data (scale_data), lets the real daemon read and index it, starts the daemon anew and asks it in every mode:
known items, few words, many common words, questions, with filters; each query `rounds` times after a warm-up of other
queries. What the daemon loads only when a word stands nowhere is loaded before, and said to take so long. Then whole
`reconstitute` processes. Up to `--meaning` messages the semantic index is filled too, with cheap vectors (see
scale_fill); above that it stays empty, `semantic` is left out and `hybrid` is embedding the query plus words. Query
vectors are always the real model's. `processor` is what one query costs the daemon (a command: its own process),
which other work on the machine hardly changes. It prints tables and judges nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import scale_data, scale_figures
from bench.scale_daemon import CHECKOUT, Daemon, Place, Wire, end_cleanly

MODES = ("literal", "smart", "fuzzy", "regex", "semantic", "hybrid")
DAY = 86_400_000
NOWHERE = "qvoxillanters"
"""No text has it: the daemon looks for what is spelt nearly so, and loads all words of the index for that."""


def prepare(
    place: Place, messages: int, vocabulary: str, *, meaning: bool, kb: float = scale_data.KB
) -> dict[str, Any]:
    """Data made and indexed, or found so: what was made, seconds, memory, sizes."""
    plan_path = place.opencode / "plan.json"
    if not plan_path.exists():
        scale_data.make(place.opencode, messages, vocabulary, kb=kb)
    plan = json.loads(plan_path.read_text())
    count = plan["made"]["messages"]
    facts_path = place.root / "facts.json"
    if facts_path.exists():
        return {**json.loads(facts_path.read_text()), "known_archive": True, "plan": plan}
    facts: dict[str, Any] = {"made": plan["made"], "known_archive": place.archive.is_dir()}
    with Daemon(place, embedding="cheap" if meaning else "paused") as daemon:
        begun = time.monotonic()
        daemon.wait(lambda status: status["archive"].get("messages", 0) >= count, 6 * 3600)
        facts["read_s"] = time.monotonic() - begun
        daemon.wait(lambda status: not status["outbox"]["lexical"], 6 * 3600)
        facts["words_s"] = time.monotonic() - begun
        if meaning:
            ready = scale_figures.is_ready
            daemon.wait(lambda status: ready(status) and not any(status["outbox"].values()), 12 * 3600)
            facts["meaning_s"] = time.monotonic() - begun
        facts["memory_filling"] = daemon.memory()
        facts["index"] = daemon.status()["index"]
    facts |= {"sizes": place.sizes()}
    facts_path.write_text(json.dumps(facts, indent=1))
    return facts | {"plan": plan}


def measure(
    place: Place, plan: dict[str, Any], modes: Sequence[str], *, rounds: int, seconds: float, meaning: bool
) -> dict[str, Any]:
    """These modes with every kind of query over the socket; then commands."""
    figures: dict[str, Any] = {"load": os.getloadavg()[0]}
    with Daemon(place, embedding="real" if meaning else "paused") as daemon:
        # A newer version of ours may index anew what an older one left.
        daemon.wait(
            lambda status: not status["outbox"]["lexical"] and (scale_figures.is_ready(status) or not meaning), 7200
        )
        daemon.settle()
        asker = Asker(daemon.socket)
        begun = time.perf_counter()
        asker.ask("fuzzy", NOWHERE, {})
        figures["first_absent_ms"] = round((time.perf_counter() - begun) * 1000, 1)
        print(f"  first question for a word that stands nowhere: {figures['first_absent_ms']:.0f} ms", flush=True)
        figures["modes"] = {}
        for mode in MODES:
            if mode not in modes or (mode == "semantic" and not meaning):
                continue
            figures["modes"][mode] = _mode(daemon, asker, plan, mode, rounds, seconds)
            print(f"  {mode:9} " + scale_figures.short(figures["modes"][mode]), flush=True)
        figures["memory"] = daemon.memory()
        figures["commands"] = _commands(daemon, plan)
    figures["embedding_ms"] = _embedding(plan)
    return figures


def _mode(daemon: Daemon, asker: Asker, plan: dict[str, Any], mode: str, rounds: int, seconds: float) -> dict[str, Any]:
    for query in plan["warm"]:
        asker.ask(mode, query, {})
    figures: dict[str, Any] = {}
    all_times: list[float] = []
    at_first = daemon.processor_ms()
    for kind, queries in kinds(plan, mode):
        times, hits, known = [], 0, 0
        deadline, had = time.monotonic() + seconds, daemon.processor_ms()
        for turn in range(rounds):
            for query, filters, item in queries:
                begun = time.perf_counter()
                answer = asker.ask(mode, query, filters)
                times.append((time.perf_counter() - begun) * 1000)
                if turn == 0 and item is not None:
                    known += 1
                    hits += is_in_results(answer, item)
            if time.monotonic() > deadline:
                break
        spent: dict[str, float] = {"processor": round((daemon.processor_ms() - had) / len(times), 1)}
        if asker.errors:
            spent["errors"] = len(asker.errors)
            print(f"  {kind}: {asker.errors[0]}", flush=True)
            asker.errors.clear()
        figures[kind] = scale_figures.spread(times) | spent | ({"found": hits, "of": known} if known else {})
        all_times += times
    processor = round((daemon.processor_ms() - at_first) / len(all_times), 1)
    return figures | {"all of these": scale_figures.spread(all_times) | {"processor": processor}}


PlannedQuery = tuple[str, dict[str, Any], dict[str, Any] | None]


def kinds(plan: dict[str, Any], mode: str) -> Iterator[tuple[str, list[PlannedQuery]]]:
    """(kind, queries); a query is its text, its filters, and the known item it should find."""
    known = plan["near"] if mode == "fuzzy" else plan["known"]
    patterns = plan["regex"]["known"] if mode == "regex" else [item["query"] for item in known]
    if mode == "literal":
        patterns = [item["name"] for item in known]
    pairs = list(zip(patterns, known, strict=True))
    is_semantic = mode == "semantic"
    yield "known item", [(query, {}, None if is_semantic else item) for query, item in pairs]
    source = plan["regex"] if mode == "regex" else plan
    yield "few words", [(query, {}, None) for query in source["few"]]
    yield "common words", [(query, {}, None) for query in source["common"]]
    if mode not in ("regex", "literal"):
        yield "question", [(query, {}, None) for query in plan["question"]]
    example = plan["example"]
    for name, limits in {
        "in a session": {"sessionID": example["sessionID"]},
        "in a directory": {"directory": example["directory"]},
        "in a month": {"after": example["time"], "before": example["time"] + 30 * DAY},
        "prompts only": {"kinds": ["prompt"]},
    }.items():
        yield name, [(query, limits, None) for query in [*source["few"][:8], *source["common"]]]


def is_in_results(answer: dict[str, Any], item: dict[str, Any]) -> bool:
    results = answer.get("results") or []
    return item["message_id"] in json.dumps(results[:10])


class Asker:
    """Asks the daemon as a client does."""

    def __init__(self, socket: Path) -> None:
        self._wire = Wire(socket)
        self.errors: list[str] = []

    def ask(self, mode: str, query: str, filters: dict[str, Any]) -> dict[str, Any]:
        arguments = {"query": query, "match": mode, **filters}
        code, answer = self._wire.ask("POST", "/recall/recall", {"arguments": arguments})
        if code != 200:
            self.errors.append(f"{mode} {query!r} {filters}: {code} {json.dumps(answer)[:300]}")
        return dict(answer)


def _commands(daemon: Daemon, plan: dict[str, Any]) -> dict[str, Any]:
    """Whole processes, their start included."""
    command_sets: dict[str, list[tuple[str, ...]]] = {
        "known item": [("recall", item["query"]) for item in plan["known"]],
        "common words": [("recall", query) for query in plan["common"] * 2],
        "--version": [("--version",)] * 5,
    }
    figures: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    for kind, commands in command_sets.items():
        times, had = [], _children_ms()
        for command in commands:
            took, _, text = _timed(daemon, *command)
            times.append(took)
            texts.setdefault(kind, []).append(text)
        spent = {"processor": round((_children_ms() - had) / len(commands), 1)}
        figures[kind] = scale_figures.spread(times) | spent
    hits = sum(item["witness"] in text for item, text in zip(plan["known"], texts["known item"], strict=True))
    figures["known item"] |= {"found": hits, "of": len(plan["known"])}
    return figures


def _children_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def _timed(daemon: Daemon, *arguments: str) -> tuple[float, int, str]:
    begun = time.perf_counter()
    text, code = runs(daemon, *arguments)
    return (time.perf_counter() - begun) * 1000, code, text


def runs(daemon: Daemon, *arguments: str) -> tuple[str, int]:
    command = [daemon.command()[0], "-m", "daemon.cli", "--config", str(daemon.place.config), *arguments]
    done = subprocess.run(
        command, cwd=daemon.place.checkout, env=daemon.environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout, done.returncode


def _embedding(plan: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds for the built-in model alone: a query; a chunk of 900 characters."""
    from daemon.embed.builtin import Builtin  # noqa: PLC0415 - loads the model

    model = Builtin()
    model.embed(["warm"])
    figures = {}
    for name, texts in {"query": plan["question"] * 3, "chunk of 900 characters": plan["chunks"]}.items():
        times, had = [], time.process_time()
        for text in texts:
            begun = time.perf_counter()
            model.embed([text])
            times.append((time.perf_counter() - begun) * 1000)
        spent = {"processor": round((time.process_time() - had) * 1000 / len(texts), 1)}
        figures[name] = scale_figures.spread(times) | spent
    return figures


@contextlib.contextmanager
def place(keep: str) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        yield Path(name)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"messages": arguments.messages, "machine": scale_figures.machine(), "vocabularies": {}}
    with place(arguments.keep) as folder:
        for name in ("skewed", "small") if arguments.vocabulary == "both" else (arguments.vocabulary,):
            size = "" if arguments.kb == scale_data.KB else f"-{arguments.kb:g}-kb"
            data_place = Place(folder / f"{name}-{arguments.messages}{size}", Path(arguments.checkout))
            meaning = arguments.messages <= arguments.meaning
            print(f"{name} vocabulary, {arguments.messages} messages", flush=True)
            facts = prepare(data_place, arguments.messages, name, meaning=meaning, kb=arguments.kb)
            plan = facts.pop("plan")
            print("  " + scale_figures.facts(facts), flush=True)
            modes = arguments.modes.split(",")
            figures = measure(
                data_place, plan, modes, rounds=arguments.rounds, seconds=arguments.seconds, meaning=meaning
            )
            result["vocabularies"][name] = {"facts": facts, "figures": figures}
            print(scale_figures.table(figures), flush=True)
    return result


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=144_000)
    parser.add_argument("--kb", type=float, default=scale_data.KB, help="of a message and its parts, about (3)")
    parser.add_argument("--vocabulary", choices=("skewed", "small", "both"), default="both")
    parser.add_argument("--meaning", type=int, default=20_000, help="most messages whose semantic index is filled")
    parser.add_argument("--modes", default=",".join(MODES), help="these alone, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="no further round of one kind after so long")
    parser.add_argument("--keep", default="", help="work in this folder and leave it there; made data is used again")
    parser.add_argument("--checkout", default=str(CHECKOUT), help="the code to measure")
    parser.add_argument("--json", default="", help="write the figures here too")
    return parser


def main() -> None:
    end_cleanly()
    arguments = options().parse_args()
    result = run(arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
