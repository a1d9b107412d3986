"""How much memory and log it takes to read large records: `python bench/memory.py`, figures for docs/benchmarks.md.

Each case is made anew in a temporary directory (a database, or JSON files, with one message of several large parts) and
read by a process of its own: archive, evidence, words. Printed are the most resident memory that this process ever had,
the largest write-ahead log that a restart would have to replay, and the time.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from daemon.app.engine import Engine
from daemon.config import Config

_TIME = 1_795_230_000_000
_MB = 1 << 20
_LINE = "{:08d} the quick build wrote src/module_{}.py: 'ok' \\\"done\\\" /home/dev/p/out/{}.txt\\n"


@dataclass(frozen=True)
class Case:
    """One message with `parts` outputs of `mb` each, kept as `storage`; `tail` is put behind the text of each."""

    name: str
    storage: str
    parts: int
    mb: float
    tail: str = ""
    tool: str = "bash"


CASES = (
    Case("empty", "sqlite", 0, 0),
    Case("one part of 50 MB, SQLite", "sqlite", 1, 50),
    Case("6 parts of 50 MB, SQLite", "sqlite", 6, 50),
    Case("6 parts of 50 MB, JSON files", "json", 6, 50),
    Case("6 writes of 50 MB, SQLite", "sqlite", 6, 50, tool="write"),
    Case("one part of 50 MB with an emoji, SQLite", "sqlite", 1, 50, tail="\U0001f600"),
    Case("2 parts of 200 MB (over the limit), SQLite", "sqlite", 2, 200),
    Case("2 parts of 200 MB (over the limit), JSON files", "json", 2, 200),
    Case("600 parts of 0.5 MB, SQLite", "sqlite", 600, 0.5),
)


def _text(size: int, tail: str) -> Iterator[str]:
    """The inside of a JSON string of about `size` bytes."""
    done = number = 0
    while done < size:
        lines = "".join(_LINE.format(n, n % 97, n % 13) for n in range(number, number + 2000))
        number += 2000
        done += len(lines)
        yield lines
    yield tail


def _part(case: Case, number: int) -> Iterator[str]:
    """A part's record, without ids, in pieces."""
    yield f'{{"type":"tool","tool":"{case.tool}","callID":"c{number}","state":{{"status":"completed",'
    times = f'"time":{{"start":{_TIME},"end":{_TIME + 1}}}'
    if case.tool == "write":
        yield f'"input":{{"filePath":"/home/dev/p/big{number}.txt","content":"'
        yield from _text(int(case.mb * _MB), case.tail)
        yield f'"}},"output":"","metadata":{{}},{times}}}}}'
    else:
        yield '"input":{"command":"make"},"metadata":{"exit":0},"output":"'
        yield from _text(int(case.mb * _MB), case.tail)
        yield f'",{times}}}}}'


def _make(case: Case, data: Path) -> None:
    data.mkdir()
    session = {"id": "ses_1", "projectID": "p", "directory": "/home/dev/p", "title": "Large", "version": "1.18.33"}
    message = {"role": "assistant", "time": {"created": _TIME, "completed": _TIME}, "path": {"cwd": "/home/dev/p"}}
    if case.storage == "json":
        store = data / "storage"
        for folder in ("session/p", "message/ses_1", "part/msg_1"):
            (store / folder).mkdir(parents=True)
        (store / "session/p/ses_1.json").write_text(json.dumps(session | {"time": {"created": _TIME}}))
        ids = {"id": "msg_1", "sessionID": "ses_1"}
        (store / "message/ses_1/msg_1.json").write_text(json.dumps(ids | message))
        for number in range(case.parts):
            head = f'{{"id":"prt_{number:04d}","sessionID":"ses_1","messageID":"msg_1",'
            with (store / f"part/msg_1/prt_{number:04d}.json").open("w") as file:
                pieces = _part(case, number)
                file.write(head + next(pieces)[1:])
                file.writelines(pieces)
        return
    with sqlite3.connect(data / "opencode.db") as db:
        db.executescript(
            "CREATE TABLE session (id text PRIMARY KEY, project_id text, directory text, title text, version text,"
            " time_created integer, time_updated integer);"
            "CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer,"
            " data text);"
            "CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,"
            " time_updated integer, data text);"
        )
        row = (*(session[name] for name in ("id", "projectID", "directory", "title", "version")), _TIME, _TIME)
        db.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', ?, ?, ?)", (_TIME, _TIME, json.dumps(message)))
        for number in range(case.parts):
            data_ = "".join(_part(case, number))
            db.execute(
                "INSERT INTO part VALUES (?, 'msg_1', 'ses_1', ?, ?, ?)", (f"prt_{number:04d}", _TIME, _TIME, data_)
            )
            db.commit()


def _read(data: Path, archive: Path) -> None:
    """Run in a process of its own: read all, index words, and say what it took."""
    tables = {"opencode": {"data_dir": str(data)}, "archive": {"dir": str(archive)}}
    config = msgspec.convert(tables, Config)
    largest = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal largest
        while not done.wait(0.02):
            sizes = [_size(path) for path in (archive / "leveldb").glob("*.log")]
            largest = max([largest, *sizes])

    watching = threading.Thread(target=watch)
    watching.start()
    begun = time.monotonic()
    with Engine(config) as engine:
        engine.scan(everything=True, patient=False, words=False)
        reading, begun_words = _peak(), time.monotonic()
        engine.drain_lexical(None)
        figures = engine.archive.figures()
        trouble = [entry.message for entry in engine.errors]
    done.set()
    watching.join()
    ended = time.monotonic()
    peaks = {"reading_mb": reading, "words_mb": _peak(), "log_mb": largest >> 20}
    times = {"reading_s": round(begun_words - begun, 1), "words_s": round(ended - begun_words, 1)}
    print(json.dumps(peaks | times | {"parts": figures["parts"], "trouble": trouble}))


def _peak() -> int:
    """The most memory that was resident since this was last asked, in MB."""
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return peak >> 10


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def main() -> None:
    """Make every case, read it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--read", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        _read(*arguments.read)
        return
    print(f"{'':48}  reading        words         log  parts")
    print(f"{'case':48} {'MB':>5} {'s':>6}  {'MB':>5} {'s':>6}  {'MB':>5} {'read':>5}")
    for case in CASES:
        if arguments.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            _make(case, place / "opencode")
            command = [sys.executable, __file__, "--read", str(place / "opencode"), str(place / "archive")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{case.name:50} failed ({done.returncode}): {done.stderr[-2000:]}")
                continue
            got = json.loads(done.stdout.splitlines()[-1])
            reading = f"{got['reading_mb']:5} {got['reading_s']:6}  {got['words_mb']:5} {got['words_s']:6}"
            print(f"{case.name:48} {reading}  {got['log_mb']:5} {got['parts']:5}", *got["trouble"])


if __name__ == "__main__":
    main()
