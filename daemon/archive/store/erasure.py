"""Erases what was deleted from the files of LevelDB, which keep it until they are compacted.

First a dictionary is trained on what is left, every value is packed with it, and the older one is removed, because a
dictionary is made of contents. Then LevelDB is opened again, so that no reader holds an older state, and every range of
keys is compacted. Opened once more, it has a new manifest and a new text log, which name keys. Each step can be done
again after a crash.

LevelDB never rewrites the tables of its lowest level by itself, and one of them may hold a value beside its deletion.
So the first and last keys of a range are written again before it is compacted: the table that they make is above all
others of the range, and is merged with them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

from daemon.archive.store import Store
from daemon.archive.store.compression import COMPRESSED, NO_DICTIONARY, SAMPLES, sample_of, trained
from daemon.errors import DiskFull, Retry

_AT_ONCE, _AT_ONCE_BYTES = 500, 4 << 20
_RANGE_BYTES = 32 << 20
"""Of one compaction, about: a stop waits for it."""
_FIRST, _LAST = b"!", b"~"
"""Before and after all other keys; they are written by each erasure, and stay."""
_STABLE = (b"file:", b"msg:", b"obj:", b"part:", b"sess:")
"""Begin keys that nothing but a forgetting removes."""
_PATIENCE_S = 60.0
_EVERY = 7
"""Of so many values one is a sample, so that the samples are of more than the first session."""

Pulse = Callable[[str, int], None]
"""Called with (phase, values so far); may raise, which leaves the rest for the next time."""


class Erasure:
    """One erasure; `lock` is held for each write, so that no commit comes between a read and its write."""

    def __init__(self, store: Store, lock: threading.RLock, pulse: Pulse) -> None:
        self._store, self._lock, self._pulse = store, lock, pulse

    def dictionary(self) -> int:
        """Train and store the dictionary to use from now on; returns its number for `run`."""
        samples: list[bytes] = []
        for prefix in COMPRESSED:
            size = 0
            for key, value in itertools.islice(self._store.scan(prefix), 0, None, _EVERY):
                if sample := sample_of(key, value):
                    samples.append(sample)
                    size += len(sample)
                if size >= SAMPLES // 4:
                    break
        made = trained(samples) if sum(map(len, samples)) >= SAMPLES // _EVERY else None
        with self._lock:
            if made is None or not self._store.add_dictionary(*made):
                return NO_DICTIONARY
        return made[0]

    def run(self, dictionary: int) -> None:
        """Write every value and every file anew.

        Raises:
            Retry: readers did not let LevelDB be opened again.
            DiskFull: there is not enough space.
        """
        with self._lock:
            self._store.use_dictionary(dictionary)
            self._store.write({_FIRST: b"", _LAST: b""})
        bounds, is_mixed = self._pack()
        while is_mixed:  # again, because a write may have begun with the former dictionary and ended behind us
            bounds, is_mixed = self._pack()
        with self._lock:
            self._store.drop_other_dictionaries()
        self._reopen()
        for number, (first, last) in enumerate(itertools.pairwise(bounds)):
            self._pulse("compacting", number)
            with self._lock:
                self._store.pack_again([first, last])
            self._store.compact(first, last)
        self._reopen()

    def _pack(self) -> tuple[list[bytes], bool]:
        """Pack all values with the dictionary in use; returns keys that bound ranges of about one size, and whether a
        value was packed with another.
        """
        bounds, size, done, is_mixed = [_FIRST], 0, 0, False
        place = b""
        while rows := self._store.packed_from(place, _AT_ONCE, _AT_ONCE_BYTES):
            self._pulse("writing the archive anew", done)
            others = [key for key, is_other, _ in rows if is_other]
            if others:
                is_mixed = True
                with self._lock:
                    self._store.pack_again(others)
            done += len(rows)
            place = rows[-1][0] + b"\0"
            size += sum(stored for _, _, stored in rows)
            if size >= _RANGE_BYTES and rows[-1][0].startswith(_STABLE):
                bounds.append(rows[-1][0])
                size = 0
        return [*bounds, _LAST], is_mixed

    def _reopen(self) -> None:
        """Open LevelDB again, as soon as nobody reads."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with self._lock:
                    self._store.reopen()
            except DiskFull:
                if time.monotonic() > until:
                    raise Retry("the archive is being read without a pause; its files are written anew later") from None
                time.sleep(0.1)
            else:
                return
