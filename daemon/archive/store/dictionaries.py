"""Stores the compression dictionaries: in LevelDB, and each in a file beside it.

Values cannot be read without their dictionary, and LevelDB ignores damaged entries in its log. So each copy is restored
from the other one. The file is written first, so that every value's dictionary is in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from daemon import log
from daemon.errors import Skip
from daemon.filesystem import durable

KEYS = b"dict:"
"""Begins the keys of the copies in LevelDB."""

FOLDER = "dictionaries"
_LOG = log.get("archive")
_LARGEST = 1 << 20


def key(number: int) -> bytes:
    return KEYS + b"%d" % number


def by_number(rows: Iterable[tuple[bytes, bytes]]) -> dict[int, bytes]:
    """The copies in LevelDB."""
    return {int(name.removeprefix(KEYS)): raw for name, raw in rows}


class DictionaryFiles:
    """The copies in files, each named by its number and its hash."""

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


def _name(number: int, raw: bytes) -> str:
    return f"{number}-{hashlib.sha256(raw).hexdigest()[:16]}"
