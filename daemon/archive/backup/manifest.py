"""Manifests: what one backup consists of, in a JSON file that has the time and its own hash in its name."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from daemon import records
from daemon.archive import keys
from daemon.errors import BadBackup

FORMAT = 1
"""The version of the folder's layout, of the manifests and of the segments."""


class Segment(Struct, frozen=True):
    """A file in `segments/`: the hash of what it holds, the size of that in bytes, and the number of rows."""

    sha256: str
    size: int
    rows: int


class LargeRecord(Struct, frozen=True):
    """A file in `large/`: its hash, and its size in bytes."""

    sha256: str
    size: int


class Manifest(Struct, kw_only=True):
    """One backup. `made` is when it was made, `missing` has the hashes of large records that the archive had lost."""

    format: int = FORMAT
    schema: int
    version: str
    archive: str
    made: int
    counts: dict[str, int]
    segments: list[Segment]
    large: list[LargeRecord]
    missing: list[str] = []

    @property
    def size(self) -> int:
        """Bytes of its content, uncompressed."""
        return sum(segment.size for segment in self.segments) + sum(record.size for record in self.large)

    def encoded(self) -> bytes:
        """The manifest as a file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @property
    def name(self) -> str:
        """The name of the file: names sort by time."""
        return f"{name_time(self.made)}-{hashlib.sha256(self.encoded()).hexdigest()[:16]}.json"


def name_time(ms: int) -> str:
    """A time in epoch ms as the names of manifests begin.

    >>> name_time(1_795_377_930_237)
    '20261122T200530.237Z'
    """
    return f"{dt.datetime.fromtimestamp(ms // 1000, dt.UTC):%Y%m%dT%H%M%S}.{ms % 1000:03}Z"


def time_in(name: str) -> int:
    """The time in the name of a manifest, in epoch ms; 0 if there is none.

    >>> time_in("20261122T200530.237Z-0123456789abcdef.json")
    1795377930237
    """
    try:
        moment = dt.datetime.strptime(name[:20], "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return 0
    return round(moment.timestamp() * 1000)


def decoded(name: str, raw: bytes) -> Manifest:
    """The manifest in a file of this name.

    Raises:
        BadBackup: it is damaged, or a newer Reconstitute wrote it.
    """
    if name.rpartition("-")[2] != f"{hashlib.sha256(raw).hexdigest()[:16]}.json":
        raise BadBackup(f"{name}: is damaged: its content does not match the hash in its name")
    try:
        form = msgspec.json.decode(raw, type=dict).get("format")
        if form != FORMAT:
            raise BadBackup(
                f"{name}: has format {form}, this Reconstitute reads {FORMAT}; upgrade Reconstitute to use this backup"
            )
        return msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadBackup(f"{name}: is damaged: {error}") from None


class Contents:
    """What the rows of a backup say of themselves, collected while they pass."""

    def __init__(self) -> None:
        self.schema = 0
        self.counts: dict[str, int] = {}
        self.large: dict[str, LargeRecord] = {}

    def noting(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """The same rows."""
        for key, value in rows:
            if key.startswith(keys.LARGE):
                entry = records.load_object(value)
                self.large[entry["sha256"]] = LargeRecord(entry["sha256"], entry["bytes"])
            elif key == keys.COUNTS:
                self.counts = records.load_object(value)
            elif key == keys.SCHEMA:
                self.schema = int(value)
            yield key, value
