"""Both indexes read from outside, while no service runs: which records they hold, and every text in their files."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from daemon.archive import Archive
from daemon.embed import reads
from daemon.embed.ollama import OllamaEmbedder
from daemon.index.semantic.chroma import NUDGE
from daemon.ingest.outbox import chunk_digest, chunks_of, entry_of, index_fingerprint
from daemon.model import Vector
from tests.support.processes import forks

INDEXED_KB, EMBEDDED_KB = 64, 16
_MOST_NAMED = 5
_READ_S = 60.0


def differences(archive: Archive, directory: Path, embedder_url: str) -> Iterator[str]:
    """Whether the indexes hold exactly what the archive says, each record once, with its own vector."""
    vectors: dict[str, Vector | None] = {}
    sections: Counter[str] = Counter()
    with closing(OllamaEmbedder(embedder_url, "embedder")) as embedder:
        fingerprint = index_fingerprint(embedder)
        for message_id in archive.all_message_ids():
            entry = entry_of(archive, message_id, INDEXED_KB)
            assert entry is not None
            spoken, tools = chunks_of(entry.document, EMBEDDED_KB, "all")
            legible = [chunk for chunk in (*spoken, *tools) if reads(embedder, chunk.text)]
            vectors |= {chunk.id: archive.vector(fingerprint, chunk_digest(chunk)) for chunk in legible}
            sections[message_id] = len(entry.document.sections)
    lacking = sorted(name for name, vector in vectors.items() if vector is None)
    if lacking:
        yield f"the archive has no vector of {lacking[:_MOST_NAMED]}"
    yield from _compared("lexical", +sections, _lexical(directory / "lexical"))
    yield from _semantic(directory / "semantic", vectors, directory.with_name("vectors.npz"))


def _lexical(directory: Path) -> Counter[str]:
    """How many sections of each message stand in the index; one more document is the message's own."""
    documents = Counter(str(values["message_id"][0]) for values in _documents(directory))
    return Counter({message_id: number - 1 for message_id, number in documents.items()})


def _documents(directory: Path) -> Iterator[Mapping[str, Any]]:
    searcher = tantivy.Index.open(str(directory)).searcher()
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), searcher.num_docs).hits:
            yield searcher.doc(address).to_dict()


def _semantic(directory: Path, vectors: Mapping[str, Vector | None], read: Path) -> Iterator[str]:
    code = forks.exit_code(_read_chroma, str(directory), str(read), timeout_s=_READ_S)
    if code:
        yield f"Chroma cannot be read: its process ended with {code}"
        return
    with np.load(read) as file:
        ids, held = file["ids"].tolist(), dict(zip(file["ids"].tolist(), file["vectors"], strict=True))
    read.unlink()
    yield from _compared("semantic", Counter(vectors.keys()), Counter(ids))
    expected = {name: vector for name, vector in vectors.items() if vector is not None and name in held}
    other = sorted(name for name, vector in expected.items() if np.abs(held[name] - vector).max() > 3 * NUDGE)
    if other:
        yield f"{len(other)} vectors are not those of the archive: {other[:_MOST_NAMED]}"


def _read_chroma(directory: str, to: str) -> None:
    """In a process of its own, because Chroma keeps what it has opened, and may crash."""
    import chromadb  # noqa: PLC0415 - only here

    client = chromadb.PersistentClient(directory)
    ids: list[str] = []
    vectors: list[Any] = []
    for collection in client.list_collections():
        if not collection.name.startswith("opencode_messages"):
            continue
        rows = collection.get(include=["embeddings"])
        ids += rows["ids"]
        vectors += list(rows["embeddings"] if rows["embeddings"] is not None else ())
    np.savez(to, ids=np.array(ids, dtype=str), vectors=np.array(vectors, dtype=np.float32))


def _compared(index: str, expected: Counter[str], held: Counter[str]) -> Iterator[str]:
    for what, names in (("misses", expected - held), ("should not have", held - expected)):
        if names:
            yield f"the {index} index {what} {names.total()} records: {sorted(names)[:_MOST_NAMED]}"


def texts(directory: Path) -> Iterator[tuple[str, str]]:
    """Every stored text of both indexes, by its place: tantivy compresses them, SQLite cuts them into pages."""
    for values in _documents(directory / "lexical"):
        yield f"the lexical index: {values['message_id']}", str(values)
    with closing(sqlite3.connect(f"file:{directory / 'semantic' / 'chroma.sqlite3'}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        for (name,) in tables.fetchall():
            for row in database.execute(f'SELECT * FROM "{name}"'):
                yield f"the semantic index: {name}", str(row)
