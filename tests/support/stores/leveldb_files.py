"""Reads every entry of LevelDB's files, also those that were deleted or replaced, as somebody with the files could.

LevelDB's own interface shows only what is current. Tables are read block by block (leveldb, doc/table_format.md) and
logs record by record (doc/log_format.md); checksums are not verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from daemon.archive.store.compression import Compression, DamagedError, DictionaryFiles

_FOOTER, _BLOCK, _HEADER = 48, 32768, 7


def texts(directory: Path) -> Iterator[tuple[str, bytes]]:
    """(file, bytes) of all files beneath an archive's directory, and of each entry in LevelDB's files, decompressed."""
    compression = Compression(DictionaryFiles(directory).read())
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            yield str(path), raw
            entries = _table(raw) if path.suffix == ".ldb" else _log(raw) if path.suffix == ".log" else ()
            for key, value in entries:
                yield f"{path.name} {key[:60]!r}", key
                try:
                    yield f"{path.name} {key[:60]!r}", compression.unpack(key, value)
                except DamagedError:
                    yield f"{path.name} {key[:60]!r}", value


def _table(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    footer = raw[-_FOOTER:]
    _, place = _number(footer, 0)
    _, place = _number(footer, place)
    offset, place = _number(footer, place)
    size, _ = _number(footer, place)
    for _, handle in _block(raw, offset, size):
        start, place = _number(handle, 0)
        length, _ = _number(handle, place)
        for key, value in _block(raw, start, length):
            yield key[:-8], value  # without sequence and type


def _block(raw: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    data = raw[offset : offset + size]
    if raw[offset + size] == 1:
        data = _snappy(data)
    end = len(data) - 4 * (int.from_bytes(data[-4:], "little") + 1)
    place, key = 0, b""
    while place < end:
        shared, place = _number(data, place)
        unshared, place = _number(data, place)
        length, place = _number(data, place)
        key = key[:shared] + data[place : place + unshared]
        place += unshared
        yield key, data[place : place + length]
        place += length


def _log(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    place, record = 0, b""
    while place + _HEADER <= len(raw):
        left = _BLOCK - place % _BLOCK
        if left < _HEADER:
            place += left
            continue
        size, kind = int.from_bytes(raw[place + 4 : place + 6], "little"), raw[place + 6]
        piece = raw[place + _HEADER : place + _HEADER + size]
        place += _HEADER + size
        record = piece if kind in (1, 2) else record + piece
        if kind in (1, 4):
            yield from _batch(record)


def _batch(record: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 12
    while place < len(record):
        kind = record[place]
        size, place = _number(record, place + 1)
        key, place = record[place : place + size], place + size
        value = b""
        if kind == 1:
            size, place = _number(record, place)
            value, place = record[place : place + size], place + size
        yield key, value


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


def _snappy(data: bytes) -> bytes:
    """Snappy's raw format (google/snappy, format_description.txt)."""
    _, place = _number(data, 0)
    out = bytearray()
    while place < len(data):
        tag = data[place]
        place += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                width = size - 60
                size = int.from_bytes(data[place : place + width], "little") + 1
                place += width
            out += data[place : place + size]
            place += size
            continue
        if tag & 3 == 1:
            size, offset = ((tag >> 2) & 7) + 4, (tag >> 5) << 8 | data[place]
            place += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            size, offset = (tag >> 2) + 1, int.from_bytes(data[place : place + width], "little")
            place += width
        for _ in range(size):
            out.append(out[-offset])
    return bytes(out)
