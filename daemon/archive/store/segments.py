"""Segments: runs of stored pairs in key order, as a backup keeps them.

For each pair a segment has the sizes of key and value, then the key, then the value as LevelDB stores it. Whether a
segment ends after a pair depends on that pair alone. So a change of one pair makes one or two segments new, and all
others have the same bytes as before.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from daemon.archive.store.compression import DamagedError

_SIZES = struct.Struct("<LL")
_USUAL, _LARGEST = 4 << 20, 16 << 20
"""Bytes of a segment: about, and at most, but for its last pair."""

_MOST = 64 << 20
"""Bytes that no segment has, because larger values are stored in pieces (bodies)."""

_LEVEL = 3


def segments(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, int]]:
    """Cut pairs, given in key order, into segments; each comes with the number of its pairs."""
    segment, count = bytearray(), 0
    for key, value in rows:
        segment += _SIZES.pack(len(key), len(value))
        segment += key
        segment += value
        count += 1
        # A pair ends its segment with a probability that grows with its size, so segments of small and of large pairs
        # have the same size on average.
        if zlib.crc32(key) * _USUAL < (len(key) + len(value)) << 32 or len(segment) >= _LARGEST:
            yield bytes(segment), count
            segment, count = bytearray(), 0
    if segment:
        yield bytes(segment), count


def pairs(segment: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a segment.

    Raises:
        DamagedError: it ends in the middle of one.
    """
    place = 0
    while place < len(segment):
        start = place + _SIZES.size
        try:
            key_size, value_size = _SIZES.unpack_from(segment, place)
        except struct.error:
            raise DamagedError("a segment ends in the middle of a pair") from None
        place = start + key_size + value_size
        if place > len(segment):
            raise DamagedError("a segment ends in the middle of a pair")
        yield segment[start : start + key_size], segment[start + key_size : place]


def compressed(segment: bytes) -> bytes:
    """A segment as it is written to a file."""
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(segment)


def decompressed(file: bytes) -> bytes:
    """The segment in a file.

    Raises:
        DamagedError: there is none.
    """
    try:
        size = zstandard.frame_content_size(file)
        if not 0 <= size <= _MOST:
            raise DamagedError("it holds no segment")
        return zstandard.ZstdDecompressor().decompress(file, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DamagedError(f"it cannot be decompressed: {error}") from None
