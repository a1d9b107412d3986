"""What a semantic index must hold, for the proof that it is whole."""

from __future__ import annotations

import random

from daemon.archive import TOOLS, Archive
from daemon.embed import Embedder, reads
from daemon.ingest.outbox import chunk_digest, chunks_of, entry_of, index_fingerprint
from daemon.model import Vector

_SAMPLE = 50


def sample(archive: Archive, embedder: Embedder, kb: tuple[int, int], what: str) -> list[tuple[str, Vector]]:
    """Random chunks of messages that have left the outbox, with their vectors.

    `kb` are limits.indexed_kb and limits.embedded_kb, `what` is embedding.what.
    """
    stages = ("semantic", TOOLS)
    waiting = {message_id for stage in stages for message_id, _, _ in archive.outbox(stage, 1_000_000)}
    settled = [message_id for message_id in archive.all_message_ids() if message_id not in waiting]
    held: list[tuple[str, Vector]] = []
    for message_id in random.sample(settled, min(_SAMPLE, len(settled))):
        entry = entry_of(archive, message_id, kb[0])
        said, tools = chunks_of(entry.document, kb[1], what) if entry is not None else ([], [])
        for chunk in (said or tools)[:1]:
            if not reads(embedder, chunk.text):
                continue  # the archive may have its vector of an earlier time, the index must not
            vector = archive.vector(index_fingerprint(embedder), chunk_digest(chunk))
            if vector is not None:
                held.append((chunk.id, vector))
    return held
