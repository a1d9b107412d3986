"""The lexical index's files, checked before tantivy opens them. Pure file reading; knows nothing of queries.

tantivy ends each file with a checksum but does not compare it on opening, so a flipped byte would go unnoticed until a
search panics or, worse, answers wrongly. Files that pass here are as tantivy wrote them. meta.json has no checksum, so
Lexical checks it against the postings.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from daemon.errors import IndexBroken
from daemon.filesystem.durable import atomic_write
from daemon.model import Json

_MAGIC = 1337
_BLOCK = 1 << 20


def changed(directory: Path) -> int:
    """When the index's state was last written, in nanoseconds; 0 where there is none."""
    try:
        return (directory / "meta.json").stat().st_mtime_ns
    except OSError:
        return 0


def meta(directory: Path) -> Json:
    """The content of tantivy's last commit.

    Raises:
        OSError, ValueError: it is missing or not JSON.
    """
    data: Json = json.loads((directory / "meta.json").read_bytes())
    return data


def _shape(directory: Path, version: str) -> str:
    """The identity of the index's format: the version, and the schema as tantivy stored it."""
    contents = meta(directory)
    stored = json.dumps([contents["schema"], contents["index_settings"]], sort_keys=True).encode()
    return f"{version} {sha256(stored).hexdigest()[:16]}\n"


def stamp(directory: Path, version: str) -> None:
    """Write the stamp, last, so that an incomplete directory has none."""
    atomic_write(directory / "version", _shape(directory, version).encode())


def verify(directory: Path, version: str) -> None:
    """Check the stamp, the list of segments and the checksum of every file.

    Raises:
        IndexBroken: naming the file and what is wrong with it.
    """
    try:
        mark = (directory / "version").read_text("ascii", "replace")
        expected = _shape(directory, version)
        names = list(_names(meta(directory)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexBroken(f"{directory}: version or meta.json cannot be read: {error!r}; rebuild the index") from None
    if mark != expected:
        raise IndexBroken(f"{directory}: made by another version ({mark.strip()}); rebuild the index")
    for name in names:
        reason = _damage(directory / name)
        if reason:
            raise IndexBroken(f"{directory / name}: {reason}; rebuild the index from the archive")


def _names(contents: Json) -> Iterator[str]:
    for segment in contents["segments"]:
        base = str(segment["segment_id"]).replace("-", "")
        yield from (f"{base}.{kind}" for kind in ("idx", "term", "pos", "store", "fast", "fieldnorm"))
        if segment["deletes"]:
            yield f"{base}.{segment['deletes']['opstamp']}.del"


def _damage(path: Path) -> str:
    """Why a segment's file is not as tantivy wrote it; empty if it is.

    A file is its body, a JSON footer with the body's CRC-32, the footer's length and a magic number, both 4 bytes.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _mismatch(data)
    except FileNotFoundError:
        return "it is missing"
    except ValueError:
        return "it is empty"


def _mismatch(data: mmap.mmap) -> str:
    length, magic = int.from_bytes(data[-8:-4], "little"), int.from_bytes(data[-4:], "little")
    if len(data) < 8 + length or magic != _MAGIC:
        return "it is cut off"
    end = len(data) - 8 - length
    try:
        stated = json.loads(data[end:-8])["crc"]
    except (ValueError, KeyError, TypeError):
        return "its footer cannot be read"
    checksum = 0
    for start in range(0, end, _BLOCK):
        checksum = zlib.crc32(data[start : min(start + _BLOCK, end)], checksum)
    return "" if checksum == stated else "its checksum does not fit"
