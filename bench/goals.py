"""What the project wants to reach, beside what the benchmarks of one run measured.

Times are milliseconds of processor unless a row says otherwise, on two cores of full speed: on a slower machine read
`embedding` and `--version` of the `speed` benchmark first, or the rows that are ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple


class Goal(NamedTuple):
    """One row: what was measured, and the most that it should be; None if there is no goal for it."""

    what: str
    unit: str
    measured: float
    most: float | None


def goals(figures: Mapping[str, Any]) -> Iterator[Goal]:
    """The rows of the benchmarks that ran; `figures` are what each handed out, by the names of bench/run.py."""
    for name, rows in _ROWS.items():
        if figures.get(name):
            yield from rows(figures[name])


def table(rows: list[Goal]) -> str:
    """The rows as lines of text."""
    wide = max((len(row.what) for row in rows), default=0)
    lines = [f"{'':{wide}}  {'measured':>9}  {'goal':>7}"]
    for row in rows:
        goal, beyond = ("-", "") if row.most is None else (f"{row.most:g}", "")
        if row.most is not None and row.measured > row.most:
            beyond = f"  not reached: {row.measured / row.most:.1f} times" if row.most else "  not reached"
        lines.append(f"{row.what:{wide}}  {row.measured:9.2f}  {goal:>7}  {row.unit}{beyond}".rstrip())
    return "\n".join(lines)


def _ingest(figures: dict[str, Any]) -> Iterator[Goal]:
    for run in figures["first_run"]:
        size = f"{run['messages']:,} messages"
        yield Goal(f"archive and words, {size}", "ms a message", run["archive_ms"] + run["words_ms"], 0.8)
        yield Goal(f"size of the archive, {size}", "of the source", run["archive_size"], 0.35)
        yield Goal(f"size of the words, {size}", "of the source", run["words_size"], 0.5)
        written = run["archive_written"] + run["words_written"]
        yield Goal(f"written by a first run, {size}", "of the source", written, 2.7)
    for one in figures["one_more"]:
        yield Goal(f"one message more in a session of {one['session']:,}", "ms", one["message_ms"], 100)
    for run in figures["embedded"]:
        yield Goal(f"embedding what was said, {run['messages']:,} messages", "ms a message", run["embedded_ms"], 25)
    for name, power in figures["exponents"].items():
        is_first_run = name in {"archive", "words"}
        yield Goal(f"growth of {name}", "exponent", power, 1.0 if is_first_run else 0.0)


def _idle(figures: dict[str, Any]) -> Iterator[Goal]:
    for name, row in figures.items():
        share = Goal(f"{name}: share of a core", "%", row["% core"], None)
        memory = Goal(f"{name}: memory", "MB, pss", row["pss MB"], None)
        if name == "start, to rest":
            yield Goal("start, nothing changed, to rest", "ms", row["cpu ms"], 1000)
        elif name.startswith("idle"):
            yield share._replace(most=0.05)
            yield Goal(f"{name}: written", "kB", row["writ. kB"], 0)
            yield memory._replace(most=150)
        elif name == "20 more questions by meaning":
            yield memory._replace(most=350)
        elif name.startswith("an answer"):
            yield share._replace(most=3)


def _pages(figures: dict[str, Any]) -> Iterator[Goal]:
    for name, most in (("first", 2500), ("unchanged", 300), ("one more turn", None)):
        row = figures["runs"][name]
        yield Goal(f"pages of a folder of {figures['files']:,} files, {name}", "ms", 1000 * row["all"], most)


def _speed(figures: dict[str, Any]) -> Iterator[Goal]:
    for vocabulary, result in figures["vocabularies"].items():
        size = f"{figures['messages']:,} messages, {vocabulary}"
        for mode, kinds in result["figures"]["modes"].items():
            most = 200 if mode == "regex" else 50
            yield Goal(f"{mode}, p95, {size}", "ms, by the clock", kinds["all of these"]["p95"], most)
            yield Goal(f"{mode}, worst, {size}", "ms, by the clock", kinds["all of these"]["worst"], 150)
        commands = result["figures"]["commands"]
        yield Goal(f"the command recall, {size}", "ms", commands["known item"]["processor"], 100)
        yield Goal("the command --version", "ms", commands["--version"]["processor"], 60)
        chunk = result["figures"]["embedding_ms"]["chunk of 900 characters"]
        yield Goal("embedding one chunk of 900 characters", "ms", chunk["processor"], None)


def _peers(figures: dict[str, Any]) -> Iterator[Goal]:
    programs = figures["programs"]
    ours = programs["ours, smart"]
    for name, row in programs.items():
        if name.startswith("ours") or "failed" in row:
            continue
        if ours["index_s"] and row["index_s"]:  # some keep no index
            most = None if name == "navcom" else 1.0  # it keeps no archive
            yield Goal(f"first index beside {name}'s", "times, by the clock", ours["index_s"] / row["index_s"], most)
        yield Goal(f"what is kept beside {name}'s", "times", ours["kept_mb"] / max(1, row["kept_mb"]), None)
        share = ours["known item"]["p50"] / row["known item"]["p50"]
        yield Goal(f"a command, p50, beside {name}'s", "times, by the clock", share, None)


_ROWS: dict[str, Callable[[dict[str, Any]], Iterator[Goal]]] = {
    "ingest": _ingest, "idle": _idle, "pages": _pages, "speed": _speed, "peers": _peers,
}  # fmt: skip
