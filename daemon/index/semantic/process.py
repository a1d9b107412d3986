"""The semantic index in a process of its own: checked there before it is used, and set aside when it is damaged.

If Chroma is killed while it flushes, the store may crash every process that opens it. A crash cannot be caught, so the
worker takes the risk (docs/reliability.md, C1). It checks SQLite and the sizes of the files, opens Chroma under a limit
on what it may write, and searches a sample of vectors with known answers (C2). Then the same process serves the index.
Nothing is repaired here: the caller parks the directory and rebuilds it from the archive.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from daemon.errors import IndexBroken, Retry
from daemon.index import AllowedIds, Entry, Filters, Match, NoteMatch, NoteRow, VectorRow
from daemon.index.semantic import Semantic
from daemon.model import Vector
from daemon.worker import RemoteObject, Worker

PARKED = ".parked"
_LINKS_BYTES = 600
"""Bytes of a row besides its vector: neighbours, label, id."""

_SLACK = 8
_FLOOR_BYTES = 64_000_000
_LEAST_S, _READ_BYTES_S = 60.0, 10_000_000
"""The time limit. SQLite checks its whole file, 40 s for 4 GB on an idle machine (measured)."""


class WorkerIndex:
    """SemanticIndex in a worker, over a directory (embedded Chroma) or the URL of a Chroma server. See `Semantic`.

    A call during which the worker ends raises Retry, and so does every later one: open it again.
    """

    def __init__(
        self,
        worker: Worker,
        place: Path | str,
        fingerprint: str,
        dims: int,
        calibrated: Callable[[float], float] | None = None,
        *,
        sample: Sequence[tuple[str, Vector]] = (),
        timeout_s: float | None = None,
    ) -> None:
        """Open it. A directory is checked first: it must have every sampled vector.

        `timeout_s`: how long that may take; None: as long as its size explains.

        Raises:
            IndexBroken: the worker crashed while opening it, or took too long, or the check failed.
            Retry: the server does not answer, or no process can be started.
        """
        self._worker = worker
        arguments = (place, fingerprint, dims, calibrated)
        try:
            if isinstance(place, str):
                self._remote = worker.create(Semantic, *arguments)
            else:
                if timeout_s is None:
                    timeout_s = _LEAST_S + sum(_sizes(place).values()) / _READ_BYTES_S
                self._remote = worker.create(open_checked, *arguments, sample, timeout_s=timeout_s)
        except IndexBroken:
            worker.end()  # Chroma would use again what it has opened
            raise
        except ChildProcessError as error:
            if isinstance(place, str):
                raise Retry(f"{place}: {error}; try again") from error
            raise IndexBroken(f"{place}: it cannot be opened: {error}; it must be rebuilt") from error
        self.notes = WorkerNotes(self._remote)

    @property
    def is_alive(self) -> bool:
        """Whether the worker still has it."""
        return self._remote.is_alive

    @property
    def has_crashed(self) -> bool:
        """Whether a signal has ended the worker."""
        return self._remote.has_crashed

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        """See SemanticIndex."""
        entries: dict[int, Entry] = {}
        for row in rows:  # the texts of whole messages are not needed there
            document = replace(row.entry.document, sections=())
            entries.setdefault(id(row.entry), replace(row.entry, document=document, window=""))
        _call(self._remote, "upsert", [replace(row, entry=entries[id(row.entry)]) for row in rows])

    def keep(self, chunks: Mapping[str, Collection[str]]) -> None:
        """See SemanticIndex."""
        _call(self._remote, "keep", chunks)

    def clear(self) -> None:
        """See Semantic."""
        _call(self._remote, "clear")

    def query(
        self,
        vector: Vector,
        filters: Filters,
        limit: int,
        allowed_ids: AllowedIds | None = None,
        *,
        without_texts: bool = False,
    ) -> list[Match]:
        """See SemanticIndex."""
        matches: list[Match] = _call(
            self._remote, "query", vector, filters, limit, allowed_ids=allowed_ids, without_texts=without_texts
        )
        return matches

    def similarities(self, vector: Vector, filters: Filters, message_ids: Collection[str]) -> list[Match]:
        """See SemanticIndex."""
        matches: list[Match] = _call(self._remote, "similarities", vector, filters, message_ids)
        return matches

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """See SemanticIndex."""
        complete: list[Match] = _call(self._remote, "with_texts", matches)
        return complete

    def prepare(self, within_s: float) -> bool:
        """See Semantic."""
        return bool(_call(self._remote, "prepare", within_s))

    def probe(self, sample: Sequence[tuple[str, Vector]]) -> None:
        """See SemanticIndex."""
        _call(self._remote, "probe", sample)

    def count(self) -> int:
        """See SemanticIndex."""
        return int(_call(self._remote, "count"))

    def close(self) -> None:
        """End the worker: nothing else gives the index's memory back."""
        self._worker.end()


class WorkerNotes:
    """NotesIndex in a worker; see `NoteVectors`."""

    def __init__(self, remote: RemoteObject) -> None:
        self._remote = remote
        self.is_whole = False

    def ids(self, owner: str, target: str = "") -> set[str]:
        """See NotesIndex."""
        ids: set[str] = _call(self._remote, "notes.ids", owner, target)
        return ids

    def upsert(self, rows: Sequence[NoteRow]) -> None:
        """See NotesIndex."""
        _call(self._remote, "notes.upsert", rows)

    def remove(self, ids: Sequence[str]) -> None:
        """See NotesIndex."""
        _call(self._remote, "notes.remove", ids)

    def query(
        self, vector: Vector, owner: str, limit: int, *, besides: str = "", until: int | None = None
    ) -> list[NoteMatch]:
        """See NotesIndex."""
        matches: list[NoteMatch] = _call(
            self._remote, "notes.query", vector, owner, limit, besides=besides, until=until
        )
        return matches

    def count(self) -> int:
        """See NotesIndex."""
        return int(_call(self._remote, "notes.count"))


def _call(remote: RemoteObject, method: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return remote.call(method, *args, **kwargs)
    except ChildProcessError as error:
        raise Retry(f"the semantic index: {error}; it is opened again, try again") from error


def park(directory: Path) -> Path:
    """Rename a damaged directory aside and return its new name. An older parked one is deleted: at most one is kept.

    A missing one is no error, so parking twice is harmless.
    """
    aside = directory.with_name(directory.name + PARKED)
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


# -- in the worker -----------------------------------------------------------------------------------------------------


def open_checked(
    place: Path,
    fingerprint: str,
    dims: int,
    calibrated: Callable[[float], float] | None,
    sample: Sequence[tuple[str, Vector]],
) -> Semantic:
    """Check the files, open the index and probe it; a collection that does not exist yet is healthy without a sample.

    Raises:
        IndexBroken: a damaged database, an impossible size, or a vector that is not found.
    """
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    _lock(place.parent)
    limit = _check_files(place, dims)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
    try:
        index = Semantic(place, fingerprint, dims, calibrated)
        index.probe(sample)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    return index


@cache
def _lock(directory: Path) -> int:
    """Wait for a worker that still closes this index, because its parent was killed; locked while this process runs."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor
