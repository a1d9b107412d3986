"""Compresses LevelDB's values one by one with zstd; the first bytes of each say how it is stored.

Records are short and similar, so most repetitions are between values: a dictionary of common content halves them again.
It is trained once, on the first values that are written, and again when contents are erased (erasure). Values from
before compression are read unchanged.

Values cannot be read without their dictionary, and LevelDB ignores damaged entries in its log. So there are two copies,
one in LevelDB and one in a file, and each is restored from the other one. The file is written first, so that every
value's dictionary is in a file.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import zstandard

from daemon import log
from daemon.errors import Skip
from daemon.filesystem import durable

DICTIONARIES = b"dict:"
"""Begins the keys of the dictionaries in LevelDB."""

FOLDER = "dictionaries"
_LOG = log.get("archive")
_LARGEST = 1 << 20
COMPRESSED = (b"msg:", b"part:", b"partwas:", b"file:", b"obj:", b"sess:", b"body:z", b"view:", b"cache:", b"target:")
"""Begins keys whose values are compressed. None of the older, uncompressed values begins with `_MARK`."""

_MARK = b"\0z"
_HEAD = struct.Struct("<2sL")
NO_DICTIONARY, _PLAIN = 0, 0xFFFFFFFF
"""In place of a dictionary's number after the mark: compressed without one, or not compressed."""

_SHORT = 64
_LEVEL = 1
_SAMPLE, SAMPLES, _DICTIONARY = 8 << 10, 2 << 20, 64 << 10
"""Bytes: of each training value, of all of them, and of the trained dictionary."""


class DamagedError(Exception):
    """A value that cannot be decompressed."""


class Compression:
    """Packs and unpacks values; safe from several threads."""

    def __init__(self, dictionaries: Mapping[int, bytes]) -> None:
        """`dictionaries` by number, as they were stored."""
        self._dictionaries = dict(dictionaries)
        self._number = max(dictionaries, default=NO_DICTIONARY)
        self._samples: list[bytes] = []
        self._sampled = 0
        self._local = _Contexts()

    def pack(self, key: bytes, value: bytes) -> bytes:
        """The stored form of `value` for `key`."""
        if not key.startswith(COMPRESSED):
            return value
        if len(value) >= _SHORT:
            number = self._number
            packed: bytes = self._compressor(number).compress(value)
            if len(packed) + _HEAD.size < len(value):
                return _HEAD.pack(_MARK, number) + packed
        return _HEAD.pack(_MARK, _PLAIN) + value if value.startswith(_MARK) else value

    def unpack(self, key: bytes, stored: bytes) -> bytes:
        """The value of a stored form.

        Raises:
            DamagedError: it cannot be decompressed, or its dictionary is gone.
        """
        if not stored.startswith(_MARK) or not key.startswith(COMPRESSED):
            return stored
        try:
            _, number = _HEAD.unpack_from(stored)
            if number == _PLAIN:
                return stored[_HEAD.size :]
            if number != NO_DICTIONARY and number not in self._dictionaries:
                raise DamagedError(f"the value of {key[:80]!r} needs dictionary {number}, which is gone")
            value: bytes = self._decompressor(number).decompress(memoryview(stored)[_HEAD.size :])
        except (struct.error, zstandard.ZstdError) as error:
            raise DamagedError(f"the value of {key[:80]!r} cannot be decompressed: {error}") from None
        return value

    # -- the dictionary ------------------------------------------------------------------------------------------

    def learn(self, changes: Iterable[tuple[bytes, bytes | None]]) -> tuple[int, bytes] | None:
        """Learn from values before they are written; returns, once, the number and bytes of a dictionary to store."""
        if self._dictionaries:
            return None
        for key, value in changes:
            if value is not None and self._sampled < SAMPLES and (sample := sample_of(key, value)):
                self._samples.append(sample)
                self._sampled += len(sample)
        if self._sampled < SAMPLES:
            return None
        samples, self._samples, self._sampled = self._samples, [], 0
        return trained(samples)  # None: they have too little in common; try again with the next values

    def use(self, number: int, dictionary: bytes = b"") -> None:
        """Use this dictionary from now on, because it is stored; NO_DICTIONARY: compress without one."""
        if dictionary:
            self._dictionaries[number] = dictionary
        self._number = number

    def is_packed_otherwise(self, key: bytes, stored: bytes) -> bool:
        """Whether a stored value needs another dictionary than the one in use."""
        if not stored.startswith(_MARK) or not key.startswith(COMPRESSED):
            return False
        return _HEAD.unpack_from(stored)[1] not in (self._number, NO_DICTIONARY, _PLAIN)

    @property
    def number(self) -> int:
        """The number of the dictionary in use."""
        return self._number

    def drop_others(self) -> None:
        """Keep only the dictionary in use. No read may be under way."""
        self._dictionaries = {n: raw for n, raw in self._dictionaries.items() if n == self._number}
        self._local = _Contexts()

    def _compressor(self, number: int) -> zstandard.ZstdCompressor:
        compressors = self._local.compressors
        if number not in compressors:
            compressors[number] = zstandard.ZstdCompressor(level=_LEVEL, dict_data=self._dictionary(number))
        return compressors[number]

    def _decompressor(self, number: int) -> zstandard.ZstdDecompressor:
        decompressors = self._local.decompressors
        if number not in decompressors:
            decompressors[number] = zstandard.ZstdDecompressor(dict_data=self._dictionary(number))
        return decompressors[number]

    def _dictionary(self, number: int) -> zstandard.ZstdCompressionDict | None:
        raw = self._dictionaries.get(number)
        return None if raw is None else zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_FULLDICT)


class _Contexts(threading.local):
    """zstd's compressors and decompressors by number of the dictionary, for one thread."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressors: dict[int, zstandard.ZstdDecompressor] = {}


def sample_of(key: bytes, value: bytes) -> bytes:
    """What of a value may be learned from; empty if it is not compressed."""
    return value[:_SAMPLE] if len(value) >= _SHORT and key.startswith(COMPRESSED) else b""


def trained(samples: Sequence[bytes]) -> tuple[int, bytes] | None:
    """The number and bytes of a dictionary of what these values have in common; None if that is too little."""
    try:
        dictionary = zstandard.train_dictionary(_DICTIONARY, [*samples], level=_LEVEL)
    except zstandard.ZstdError:
        return None
    return dictionary.dict_id(), dictionary.as_bytes()


def dictionary_key(number: int) -> bytes:
    return DICTIONARIES + b"%d" % number


def dictionaries_by_number(rows: Iterable[tuple[bytes, bytes]]) -> dict[int, bytes]:
    """The dictionaries in LevelDB."""
    return {int(name.removeprefix(DICTIONARIES)): raw for name, raw in rows}


class DictionaryFiles:
    """The dictionaries in files, each named by its number and its hash."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FOLDER

    def read(self) -> dict[int, bytes]:
        """All undamaged ones, by number."""
        whole: dict[int, bytes] = {}
        if not self._path.is_dir():
            return whole
        with durable.Root(self._path) as root:
            for name in root.list():
                try:
                    raw = root.read(name, _LARGEST)
                except (Skip, OSError) as error:
                    _LOG.warning("a dictionary cannot be read", file=name, error=str(error))
                    continue
                number = name.partition("-")[0]
                if raw is not None and number.isdecimal() and name == _name(int(number), raw):
                    whole[int(number)] = raw
                else:
                    _LOG.warning("a file that is no dictionary, or a damaged one", file=name)
        return whole

    def write(self, number: int, raw: bytes) -> None:
        """Store one, durably."""
        with durable.Root(self._path) as root:
            root.write(_name(number, raw), raw)

    def keep_only(self, number: int) -> None:
        """Remove all others, damaged ones too."""
        if self._path.is_dir():
            with durable.Root(self._path) as root:
                for name in root.list():
                    if name.partition("-")[0] != str(number):
                        root.remove(name)


def _name(number: int, raw: bytes) -> str:
    return f"{number}-{hashlib.sha256(raw).hexdigest()[:16]}"
