"""What was archived a moment ago is searched at once: the newest messages of the outbox, indexed in memory.

A commit of the lexical index is synced to disk several times and takes about a tenth of a second, and the next one
waits for it; a message would be found only after both. Until the index has them, the newest few lie over it.
"""

from __future__ import annotations

import threading

from daemon.archive import Archive
from daemon.index import LexicalIndex
from daemon.index.lexical import Lexical
from daemon.index.lexical.overlay import Overlay
from daemon.ingest import Entries

MOST = 8
"""Messages; a turn has two or three. While a history is read for the first time the rest waits for its turn."""


class Unindexed:
    """Makes the small index anew only when the outbox has changed. Thread-safe."""

    def __init__(self, archive: Archive, indexed_kb: int) -> None:
        self._archive = archive
        self._indexed_kb = indexed_kb
        self._lock = threading.Lock()
        self._made_of: tuple[tuple[str, bytes], ...] = ()
        self._fresh = Lexical()
        self._ids: frozenset[str] = frozenset()

    def over(self, index: LexicalIndex) -> LexicalIndex:
        """`index`, with what it does not have yet."""
        waiting = tuple((message_id, value) for message_id, _, value in self._archive.outbox("lexical", MOST))
        if not waiting:
            return index
        with self._lock:
            if waiting != self._made_of:
                # A new one, not an emptied one: another search may be reading the old one.
                fresh, entries = Lexical(), Entries(self._archive, self._indexed_kb)
                found = [entry for message_id, _ in waiting if (entry := entries.of(message_id)) is not None]
                fresh.replace(found)
                self._fresh, self._made_of = fresh, waiting
                self._ids = frozenset(entry.document.message_id for entry in found)
            return Overlay(index, self._fresh, self._ids)
