"""How `files` and `restore` do with a large record: 100,000 operations over 10,000 files in 300 sessions.

    python bench/files_scale.py [--operations N] [--files N] [--sessions N] [--keep DIR] [--runs N]

Makes an archive of invented sessions (same seed, same archive), then times whole processes: the first view of all file
histories, ``files --json``, ``restore``; beside them what the disk alone costs: ``cp -r`` and fsync of the same tree,
and a sha256 of every file in it. Prints a table with ratios, and how much of the tree came back the same. It judges
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.model import Session
from daemon.transcript.evidence.edits import edits

START = 1_795_230_000_000
FOLDERS = 200
PREFIX = "/proj"
BATCH = 1000
COLD = "import sys; from pathlib import Path; from daemon.archive import Archive; from daemon.files import Files\n"
COLD += "with Archive(Path(sys.argv[1])) as archive: print(len(Files(archive).rows(sys.argv[2])))"


@dataclass
class World:
    """The invented project as it is at this moment, and what was done to it."""

    random: random.Random
    names: list[str]
    texts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    serial: int = 0

    def operation(self) -> dict[str, Any]:
        """One more call, as (tool, input, output, metadata) of a 1.18.33 part's state."""
        self.serial += 1
        if len(self.texts) < len(self.names) and self.serial % 10 < 5:
            return self._write(self.names[len(self.texts)])
        kind = self.random.choices(("write", "edit", "read", "move", "ls"), (8, 48, 36, 3, 5))[0]
        path = self.random.choice(list(self.texts)) if self.serial < 50 else self._any()
        call: dict[str, Any] = getattr(self, f"_{kind}")(path)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return call

    def _any(self) -> str:
        while True:  # names go when files move
            path = self.random.choice(self.names)
            if path in self.texts:
                return path

    def _line(self) -> str:
        return f"value_{self.serial}_{self.random.randrange(10**9)} = {'x' * self.random.randrange(60)}"

    def _write(self, path: str) -> dict[str, Any]:
        existed = path in self.texts
        text = "".join(f"{self._line()}{number}\n" for number in range(self.random.randrange(5, 60)))
        self.texts[path] = text
        metadata = {"filepath": path, "exists": existed}
        return _call("write", {"filePath": path, "content": text}, "Wrote file successfully.", metadata)

    def _edit(self, path: str) -> dict[str, Any]:
        text = self.texts[path]
        old = self.random.choice(text.split("\n")[:-1])
        new = f"{self._line()} edited"
        if text.count(old) != 1:
            return self._write(path)
        self.texts[path] = text.replace(old, new)
        arguments = {"filePath": path, "oldString": old, "newString": new}
        return _call("edit", arguments, "Edit applied successfully.", {"filediff": {"file": path}})

    def _read(self, path: str) -> dict[str, Any]:
        lines = self.texts[path].split("\n")[:-1]
        body = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
        end = f"(End of file - total {len(lines)} lines)"
        output = f"<path>{path}</path>\n<type>file</type>\n<content>\n{body}\n\n{end}\n</content>"
        return _call("read", {"filePath": path}, output, {"truncated": False})

    def _move(self, path: str) -> dict[str, Any]:
        target = f"{path.rsplit('/', 1)[0]}/moved_{self.serial}.py"
        self.names[self.names.index(path)] = target
        self.texts[target] = self.texts.pop(path)
        return _call("bash", {"command": f"mv {path} {target}"}, "", {"exit": 0, "output": ""})

    def _ls(self, path: str) -> dict[str, Any]:
        return _call("bash", {"command": f"ls {path}"}, path, {"exit": 0, "output": path})


def _call(tool: str, arguments: dict[str, Any], output: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "state": {"status": "completed", "input": arguments, "output": output, "metadata": metadata}}


def fill(archive: Archive, world: World, operations: int, sessions: int) -> None:
    """All operations, three calls a message, each session's one after the other, sessions spread over time."""
    clock, serial, done = START, 0, 0
    batch = archive.batch()
    all_sessions = [_session(batch, number) for number in range(sessions)]
    while done < operations:
        session = all_sessions[done * sessions // operations]
        serial += 1
        clock += 60
        message_id = f"msg_{(clock * 4096) & ((1 << 48) - 1):012x}{serial:014d}"
        root = {"cwd": PREFIX, "root": "/"}
        head = {"id": message_id, "sessionID": session.id, "role": "assistant", "path": root}
        parts = []
        for number in range(min(3, operations - done)):
            clock += 10
            call = world.operation()
            call["state"]["time"] = {"start": clock - 5, "end": clock}
            identity = {"id": f"prt_{(clock * 4096) & ((1 << 48) - 1):012x}{serial:010d}{number:04d}", "type": "tool"}
            identity |= {"messageID": message_id, "sessionID": session.id}
            parts.append(records.part(records.dumps(identity | call), message_id, session.id))
            done += 1
        head["time"] = {"created": clock - 40, "completed": clock}
        message = records.message(records.dumps(head), tuple(parts), session.id)
        hash_ = records.digest(message.raw)
        file_edits = edits(message, session)
        batch.message(message, source="bench", generation=2, hash_=hash_, edits=file_edits)
        if serial % BATCH == 0:
            archive.commit(batch)
            batch = archive.batch()
    archive.commit(batch)
    for stage in ("lexical", "semantic"):  # the indexes are not what is measured here
        archive.done(archive.outbox(stage, operations))


def _session(batch: Any, number: int) -> Session:
    raw = records.dumps({"id": f"ses_{number:05d}", "version": "1.18.33", "directory": PREFIX})
    session = Session(
        f"ses_{number:05d}", "global", PREFIX, f"Session {number}", START, START, raw, version="1.18.33"
    )  # fmt: skip
    batch.session(session, "bench", 2)
    return session


def lay_out(world: World, tree: Path) -> None:
    """The project's end state on the disk."""
    for path, text in world.texts.items():
        file = tree / path.removeprefix(f"{PREFIX}/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


@contextlib.contextmanager
def place(keep: str) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="files-scale-") as name:
        yield Path(name).resolve()


def timed(command: list[str], env: dict[str, str], out: Path) -> float:
    begun = time.perf_counter()
    with out.open("wb") as stream:
        done = subprocess.run(command, env=env, stdout=stream, stderr=subprocess.PIPE, check=False)
    took = time.perf_counter() - begun
    if done.returncode:
        print(f"  exit {done.returncode}: {shlex.join(command)[:90]}: {done.stderr.decode()[-300:]}", file=sys.stderr)
    return took


def measure(folder: Path, runs: int) -> dict[str, list[float]]:
    """Seconds of each whole process; what depends on a former run is in the order of its need."""
    config = folder / "config.toml"
    config.write_text(
        f'[archive]\ndir = "{folder / "archive"}"\n[opencode]\ndata_dir = "{folder / "opencode"}"\n'
        f'[embedding]\nprovider = "builtin"\n[chat]\nprovider = "none"\n[output]\ndir = "{folder / "pages"}"\n'
    )
    (folder / "opencode").mkdir(exist_ok=True)
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    env = os.environ | {"HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)}
    program = [sys.executable, "-m", "daemon.cli", "--config", str(config)]
    tree, out = str(folder / "tree"), folder / "out"
    times: dict[str, list[float]] = {}
    times["first view of all histories"] = [
        timed([sys.executable, "-c", COLD, str(folder / "archive"), PREFIX], env, out)
    ]
    times["status, nothing indexed yet"] = [timed([*program, "status"], env, out)]  # it needs no index of words
    for run in range(runs):
        back, copy = str(folder / f"back-{run}"), str(folder / f"copy-{run}")
        both = (
            f"cp -r {shlex.quote(tree)} {shlex.quote(copy)} && find {shlex.quote(copy)} -type f -print0 | xargs -0 sync"
        )
        sums = f"find {shlex.quote(tree)} -type f -print0 | xargs -0 sha256sum"
        for name, command, to in (
            ("reconstitute --version", [*program, "--version"], out),
            ("reconstitute files --json", [*program, "files", PREFIX, "--json"], folder / "files.json"),
            ("reconstitute restore", [*program, "restore", PREFIX, "--to", back, "--json"], folder / "restore.json"),
            ("cp -r and fsync", ["sh", "-c", both], out),
            ("find | xargs sha256sum", ["sh", "-c", sums], out),
        ):
            times.setdefault(name, []).append(timed(command, env, to))
    return times


def compare(folder: Path, world: World) -> None:
    """How much of the tree came back, byte for byte."""
    same = different = 0
    back = folder / "back-0"
    for path, text in world.texts.items():
        file = next((f for f in (back / path.removeprefix(f"{PREFIX}/"), back / path[1:]) if f.exists()), None)
        same += file is not None and file.read_bytes() == text.encode()
        different += file is not None and file.read_bytes() != text.encode()
    print(f"restored the same {same}, wrong {different}, not restored {len(world.texts) - same - different}")
    rows = json.loads((folder / "files.json").read_bytes() or b"{}").get("files", [])
    grades: dict[str, int] = {}
    for row in rows:
        name = f"{row.get('grade')}{', deleted' if row.get('deleted') else ''}"
        grades[name] = grades.get(name, 0) + 1
    print(f"files --json: {len(rows)} rows: {grades}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--operations", type=int, default=100_000)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--sessions", type=int, default=300)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--keep", default="", help="work in this new folder and leave it there")
    arguments = options.parse_args()
    names = [f"{PREFIX}/pkg{number % FOLDERS:03d}/module{number:05d}.py" for number in range(arguments.files)]
    world = World(random.Random(3), names)
    with place(arguments.keep) as folder:
        begun = time.perf_counter()
        with Archive(folder / "archive") as archive:
            fill(archive, world, arguments.operations, arguments.sessions)
        print(f"made in {time.perf_counter() - begun:.1f} s: {len(world.texts)} files, calls {world.counts}")
        lay_out(world, folder / "tree")
        times = measure(folder, arguments.runs)
        disk = statistics.median(times["cp -r and fsync"])
        print(f"\n{'whole process':32} {'median s':>9} {'min':>7} {'max':>7} {'/ cp+fsync':>11}")
        for name, seconds in times.items():
            middle = statistics.median(seconds)
            print(f"{name:32} {middle:9.2f} {min(seconds):7.2f} {max(seconds):7.2f} {middle / disk:11.2f}")
        compare(folder, world)
        for copy in folder.glob("copy-*" if arguments.keep else "nothing"):
            shutil.rmtree(copy)


if __name__ == "__main__":
    main()
