"""The part of Store that writes values and files anew, so that nothing deleted is left in them (erasure)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from daemon.archive.store.compression import (
    DICTIONARIES,
    Compression,
    DictionaryFiles,
    dictionaries_by_number,
    dictionary_key,
)
from daemon.archive.store.integrity import Users


class Rewriting(ABC):
    """Store provides the database, its users and the compression."""

    _using: Users
    _compression: Compression
    _dictionary_files: DictionaryFiles

    @abstractmethod
    def _database(self) -> Any:
        """See Store."""

    @abstractmethod
    def _reopen(self) -> None:
        """See Store."""

    @abstractmethod
    def _write(self, changes: Mapping[bytes, bytes | None], dropped: Iterable[bytes]) -> None:
        """See Store."""

    @abstractmethod
    def _keep_dictionary(self, number: int, raw: bytes) -> None:
        """See Store."""

    @abstractmethod
    def stored(self, key: bytes, moment: Any = None, *, cached: bool = True) -> bytes | None:
        """See Store."""

    @abstractmethod
    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store."""

    @abstractmethod
    def keys(self, prefix: bytes) -> Iterator[bytes]:
        """See Store."""

    def add_dictionary(self, number: int, raw: bytes) -> bool:
        """Store a dictionary; returns whether its number is free or its own."""
        known = dictionaries_by_number(self.scan(DICTIONARIES)).get(number, raw)
        if known == raw:
            self._keep_dictionary(number, raw)
        return known == raw

    def use_dictionary(self, number: int) -> None:
        """Pack values with this dictionary from now on."""
        self._compression.use(number, dictionaries_by_number(self.scan(DICTIONARIES)).get(number, b""))

    def packed_from(self, start: bytes, most: int, most_bytes: int) -> list[tuple[bytes, bool, int]]:
        """The next keys from `start` on: (key, whether it is packed with another dictionary, bytes as stored)."""
        rows: list[tuple[bytes, bool, int]] = []
        size = 0
        with self._using, self._database().iterator(start=start, verify_checksums=True, fill_cache=False) as pairs:
            for key, stored in pairs:
                rows.append((key, self._compression.is_packed_otherwise(key, stored), len(stored)))
                size += len(stored)
                if len(rows) >= most or size >= most_bytes:
                    break
        return rows

    def pack_again(self, names: Iterable[bytes]) -> None:
        """Write these values as they are, packed with the dictionary in use. No commit may come between."""
        values = {key: value for key in names if (value := self.stored(key, cached=False)) is not None}
        if values:
            self._write(values, ())

    def drop_other_dictionaries(self) -> None:
        """Remove all but the one in use, first from the files, because a backup puts back what only they have."""
        number = self._compression.number
        self._dictionary_files.keep_only(number)
        self._write({key: None for key in self.keys(DICTIONARIES) if key != dictionary_key(number)}, ())

    def reopen(self) -> None:
        """Open LevelDB again, with no reader of an older state and only the dictionaries that are stored.

        Raises:
            DiskFull: there is not enough space yet, or a read is running; try again.
        """
        self._reopen()
        self._compression.drop_others()

    def compact(self, start: bytes, stop: bytes) -> None:
        """Merge the tables of a range of keys down to the lowest level, without what was deleted or replaced."""
        with self._using:
            self._database().compact_range(start=start, stop=stop)
