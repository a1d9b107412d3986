"""What reading OpenCode's records costs: archive and words, a first run and one message more, as both grow.

    python bench/ingest.py [--messages 1000 3000 10000] [--kb 3] [--sessions 10 100 1000 5000] [--embed 0]
        [--keep DIR] [--json]

Figures are processor seconds of the whole process (threads of LevelDB and tantivy included), bytes that reached the
disk, and sizes beside the database that was read. The exponent is the slope of the logarithms: 1 is linear. The second
table adds finished messages to one session, and scans and indexes after each, as the service does. With `--embed` so
many messages are also read by a model: what was said in them, by the built-in one, its process included.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench import scale_data
from daemon import config
from daemon.app.engine import Engine

_ADDED = 20
FIRST_S = 1_795_300_000
"""When the added answer with number 0 was made, in seconds since the epoch; each later one is a second newer."""
_WARM = 3
"""Messages that are added before any is measured: the first one after a start opens what the others use."""

_CONFIG = """
[opencode]
data_dir = "{data}"
[archive]
dir = "{archive}"
[chat]
provider = "none"
"""


@contextmanager
def engine_of(data: Path, folder: Path, more: str = "") -> Iterator[Engine]:
    """An engine of its own over these records, with an archive in `folder`."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(_CONFIG.format(data=data, archive=folder / "archive") + more)
    with Engine(config.load(folder / "config.toml")) as engine:
        yield engine


def first_run(messages: int, kb: float, keep: Path) -> dict[str, Any]:
    """Archive and words of so many messages of about `kb` kB each, as the first start reads them."""
    data = keep / f"data-{messages}-{kb:g}"
    if not data.exists():
        scale_data.make(data, messages, "skewed", 7, kb)
    with tempfile.TemporaryDirectory() as name, engine_of(data, Path(name) / "run") as engine:
        archive_s, archive_mb = measured(lambda: engine.scan(everything=True, patient=False, words=False))
        words_s, words_mb = measured(engine.drain_lexical)
        count = engine.archive.message_count()
        sizes = {kind: _size(Path(name) / "run" / "archive" / kind) for kind in ("leveldb", "index")}
    source = (data / "opencode.db").stat().st_size
    return {
        "messages": count,
        "archive_ms": 1000 * archive_s / count,
        "words_ms": 1000 * words_s / count,
        "archive_written": archive_mb * 1e6 / source,
        "words_written": words_mb * 1e6 / source,
        "archive_size": sizes["leveldb"] / source,
        "words_size": sizes["index"] / source,
    }


def embedded(messages: int, kb: float, keep: Path) -> dict[str, Any]:
    """What was said in so many messages becomes vectors in the index."""
    data = keep / f"data-{messages}-{kb:g}"
    if not data.exists():
        scale_data.make(data, messages, "skewed", 7, kb)
    with tempfile.TemporaryDirectory() as name:
        with engine_of(data, Path(name) / "run", '[embedding]\nwhat = "said"\n') as engine:
            engine.scan(everything=True, patient=False)
            count, before = engine.archive.message_count(), _processor()
            while engine.drain_semantic().messages:
                pass
        spent = _processor() - before  # the worker's time is counted when it has ended
    return {"messages": count, "embedded_ms": 1000 * spent / count}


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def one_more(length: int) -> dict[str, Any]:
    """One finished message more in a session that has so many."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        scale_data.make(data, 100, "skewed", 7)
        database = sqlite3.connect(data / "opencode.db", isolation_level=None)
        ((session, _),) = database.execute(
            "SELECT session_id, count(*) FROM message GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
        )
        for number in range(length):
            add_answer(database, session, number)
        with engine_of(data, Path(name) / "run") as engine:
            engine.scan(everything=True, patient=False)
            seconds, written = [], []
            for number in range(length, length + _WARM + _ADDED):
                add_answer(database, session, number)
                cpu, mb = measured(lambda: engine.scan(everything=False, patient=False))
                seconds.append(cpu)
                written.append(mb)
            assert len(engine.archive.message_ids(session)) >= length + _WARM + _ADDED
        database.close()
    return {
        "session": length,
        "message_ms": 1000 * float(np.median(seconds[_WARM:])),
        "written_kb": 1000 * float(np.median(written[_WARM:])),
    }


def add_answer(
    database: sqlite3.Connection, session: str, number: int, words: str = "", *, is_complete: bool = True
) -> str:
    """An answer with a text (`words`, if any) and a call, with ids and times behind all that are there.

    Returns the id of the text's part.
    """
    ms = 1000 * (FIRST_S + number)
    message = f"msg_{(ms * 4096) & (1 << 48) - 1:012x}{number:014d}"
    times = {"created": ms, **({"completed": ms + 500} if is_complete else {})}
    head = {"role": "assistant", "time": times, "path": {"cwd": "/home/dev/p", "root": "/home/dev/p"}}
    database.execute("BEGIN")
    database.execute(
        "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?)",
        (message, session, ms, ms, json.dumps(head)),
    )
    state = {
        "status": "completed",
        "input": {"filePath": f"/home/dev/p/{number % 50}.py"},
        "output": f"<file>\n00001| value = {number}\n</file>",
        "metadata": {},
        "time": {"start": ms, "end": ms + 100},
    }
    parts = [
        {"type": "text", "text": words or f"The value is {number} now."},
        {"type": "tool", "tool": "read", "state": state},
    ]
    part_ids = [f"prt_{message[4:16]}{place}{number:013d}" for place in range(len(parts))]
    for part_id, part in zip(part_ids, parts, strict=True):
        database.execute(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?)",
            (part_id, message, session, ms, ms, json.dumps(part)),
        )
    database.execute("COMMIT")
    return part_ids[0]


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """(processor seconds, MB that were written to the disk)."""
    cpu, written = time.process_time(), _written()
    work()
    return time.process_time() - cpu, (_written() - written) / 1e6


def _written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())


def exponent(rows: Sequence[dict[str, Any]], size: str, cost: str, *, per_item: bool) -> float:
    """The power of the size that the cost of all items grows with."""
    sizes = np.log([row[size] for row in rows])
    return float(np.polyfit(sizes, np.log([row[cost] for row in rows]), 1)[0]) + per_item


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for row in rows:
        cells = [f"{value:.2f}" if isinstance(value, float) else f"{value:,}" for value in row.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--messages", type=int, nargs="*", default=[1000, 3000, 10_000])
    options.add_argument("--kb", type=float, default=scale_data.KB, help="how long a message is (default: %(default)g)")
    options.add_argument("--sessions", type=int, nargs="*", default=[10, 100, 1000, 5000])
    options.add_argument("--embed", type=int, default=0, help="messages that are embedded as well (default: none)")
    options.add_argument("--keep", type=Path, help="a folder in which the data stays for the next run")
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        keep = arguments.keep or Path(name)
        runs = [first_run(messages, arguments.kb, keep) for messages in arguments.messages]
        meaning = [embedded(arguments.embed, arguments.kb, keep)] if arguments.embed else []
    adding = [one_more(length) for length in arguments.sessions]
    fits: dict[str, float] = {}
    if len(runs) > 1:
        fits["archive"] = exponent(runs, "messages", "archive_ms", per_item=True)
        fits["words"] = exponent(runs, "messages", "words_ms", per_item=True)
    if len(adding) > 1:
        fits["one message more, by the session's length"] = exponent(adding, "session", "message_ms", per_item=False)
    if arguments.json:
        print(json.dumps({"first_run": runs, "one_more": adding, "embedded": meaning, "exponents": fits}))
        return
    for rows in (runs, adding, meaning):
        if rows:
            print(table(rows), end="\n\n")
    for label, power in fits.items():
        print(f"{label}: exponent {power:.2f}")


if __name__ == "__main__":
    main()
