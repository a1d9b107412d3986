"""Proves a semantic index in a child process before this one opens it, and puts a damaged one aside.

If Chroma is killed while it flushes, the store may crash every process that opens it. A crash cannot be caught, so a
child takes the risk (docs/reliability.md, C1). It checks SQLite and the sizes of the files, opens Chroma under a limit
on what it may write, and searches a sample of vectors with known answers (C2). Nothing is
repaired here: the caller parks the directory and rebuilds it from the archive.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from daemon.errors import IndexBroken, ReconstituteError
from daemon.index.semantic import Semantic
from daemon.model import Vector

_PARKED = ".parked"
_LINKS_BYTES = 600
"""Bytes of a row besides its vector: neighbours, label, id."""

_SLACK = 8
_FLOOR_BYTES = 64_000_000
_LEAST_S, _READ_BYTES_S = 60.0, 10_000_000
"""The time limit. SQLite checks its whole file, 40 s for 4 GB on an idle machine (measured)."""

_BROKEN = 3


def healthy(
    directory: Path, fingerprint: str, dims: int, sample: Sequence[tuple[str, Vector]], timeout_s: float | None = None
) -> None:
    """Open and probe the index in a child process; returns when the child has found every sampled vector.

    A directory that does not exist, and a collection that does not exist yet when `sample` is empty, are healthy.

    Raises:
        IndexBroken: the child was killed by a signal, did not answer in `timeout_s` (None: by the index's size),
            reported an error, or found an impossible size.
    """
    if not directory.exists():
        return
    if timeout_s is None:
        timeout_s = _LEAST_S + sum(_sizes(directory).values()) / _READ_BYTES_S
    rows = [[record, [float(value) for value in vector]] for record, vector in sample]
    command = [sys.executable, "-m", "daemon.index.semantic.health", str(directory), fingerprint, str(dims)]
    try:
        done = subprocess.run(
            command, input=json.dumps(rows), capture_output=True, encoding="utf-8", timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise IndexBroken(f"{directory}: opening it took more than {timeout_s:g} s; it must be rebuilt") from None
    if done.returncode == 0:
        return
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise IndexBroken(f"{directory}: opening it crashed the process that tried ({name}); it must be rebuilt")
    last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
    reason = last[0] if done.returncode == _BROKEN else f"{directory}: the process that tried it ended with: {last[0]}"
    raise IndexBroken(reason)


def park(directory: Path) -> Path:
    """Rename a damaged directory aside and return its new name. An older parked one is deleted: at most one is kept.

    A missing one is no error, so parking twice is harmless.
    """
    aside = directory.with_name(directory.name + _PARKED)
    if directory.exists():
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(directory, aside)
    return aside


def _sizes(directory: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in directory.rglob("*") if path.is_file()}


def _check_files(directory: Path, dims: int) -> int:
    """Check SQLite and the sizes of the vector files; returns the bytes that the child may write."""
    database = directory / "chroma.sqlite3"
    if not database.exists():
        if any(path.name != "version" for path in directory.iterdir()):
            raise IndexBroken(f"{directory}: chroma.sqlite3 is missing; it must be rebuilt")
        return _FLOOR_BYTES
    try:
        # Not read-only: after a kill SQLite may have to roll a journal back before it can read.
        with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
            verdict = connection.execute("pragma integrity_check").fetchone()[0]
            rows = connection.execute("select count(*) from embeddings").fetchone()[0]
            widest = connection.execute("select max(dimension) from collections").fetchone()[0] or dims
    except sqlite3.Error as error:
        raise IndexBroken(f"{database}: {error}; it must be rebuilt") from None
    if verdict != "ok":
        raise IndexBroken(f"{database}: damaged: {verdict}; it must be rebuilt")
    allowed = int(_SLACK * rows * (max(widest, dims) * 4 + _LINKS_BYTES) + _FLOOR_BYTES)
    sizes = _sizes(directory)
    for path, size in sizes.items():
        if path != database and size > allowed:
            raise IndexBroken(f"{path}: {size} bytes where {rows} rows explain {allowed} at most; it must be rebuilt")
    return max(allowed, 2 * max(sizes.values(), default=0))


def _main(arguments: Sequence[str]) -> int:
    directory, fingerprint, dims = Path(arguments[0]), arguments[1], int(arguments[2])
    sample = [(record, np.asarray(values, dtype=np.float32)) for record, values in json.load(sys.stdin)]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump could contain transcripts
    try:
        limit = _check_files(directory, dims)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        index = Semantic(directory, fingerprint, dims)
        index.probe(sample)
        index.close()
    except ReconstituteError as error:
        sys.stderr.write(f"\n{' '.join(str(error).split())}\n")
        return _BROKEN
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
