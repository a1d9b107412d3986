"""Which sources a data directory holds: the JSON tree and every database, all at once (docs/reliability.md, S1 and S4).

Decided by what is really there, not by a version number: other release channels use ``opencode-<channel>.db``, and the
newer tables stand beside frozen older ones in one file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from daemon.errors import SourceBusy, SourceMissing
from daemon.large_files import LargeFiles
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database
from daemon.opencode.database2 import Database2
from daemon.opencode.json_tree import JsonTree

KNOWN = frozenset({"session", "message", "part", "session_message", "session_v2"})

_REST_S = 5.0
"""A file that could not be read is left alone this long: opening and closing it may wake our own watch (S5)."""


class Sources:
    """All sources of one data directory; `refresh` finds those that have appeared since."""

    def __init__(self, data_dir: Path, record_mb: int, large: LargeFiles | None = None) -> None:
        self.data_dir = data_dir
        self._record_mb = record_mb
        self._large = large
        self._found: dict[str, Source] = {}
        self._connections: dict[Path, Connection] = {}
        self._failed: dict[Path, float] = {}
        self.troubles: dict[str, str] = {}

    def current(self) -> list[Source]:
        """What the last refresh found, oldest generation first."""
        return sorted(self._found.values(), key=lambda source: (source.generation, source.name))

    def refresh(self) -> list[Source]:
        """Look again. What cannot be used is named in `troubles`, by place; the rest goes on.

        Cheap enough for every look: a file's tables may come after the file, and newer ones beside older ones, without
        an event that would tell.
        """
        troubles: dict[str, str] = {}
        if not self.data_dir.is_dir():
            troubles[str(self.data_dir)] = (
                f"{self.data_dir}: no such directory; OpenCode has not run here yet, or opencode.data_dir is wrong"
            )
        if (self.data_dir / "storage").is_dir():
            storage = self.data_dir / "storage"
            self._add(f"json:{storage}", lambda: JsonTree(storage, self._record_mb, large=self._large))
        for path in sorted(self.data_dir.glob("opencode*.db")):
            self._add_database(path, troubles)
        self.troubles = troubles
        return self.current()

    def _add(self, name: str, make: Callable[[], Source]) -> None:
        if name not in self._found:
            self._found[name] = make()

    def _add_database(self, path: Path, troubles: dict[str, str]) -> None:
        if time.monotonic() - self._failed.get(path, -_REST_S) < _REST_S:
            troubles[str(path)] = self.troubles.get(str(path), f"{path}: could not be read")
            return
        connection = self._connections.setdefault(path, Connection(path))
        try:
            tables = set(connection.tables())
            has_newer = "session_message" in tables and connection.rows("SELECT 1 FROM session_message LIMIT 1")
        except SourceBusy as error:
            troubles[str(path)] = str(error)
            return
        except SourceMissing as error:
            troubles[str(path)] = str(error)
            self._failed[path] = time.monotonic()
            return
        self._failed.pop(path, None)
        if {"session", "message", "part"} <= tables:
            self._add(f"db:{path}", lambda: Database(connection, self._record_mb, large=self._large))
        if has_newer or "session_v2" in tables:
            self._add(f"db2:{path}", lambda: Database2(connection, self._record_mb, large=self._large))
        if tables and not tables & KNOWN:
            troubles[str(path)] = (
                f"{path}: unknown layout: none of {', '.join(sorted(KNOWN))} among its tables "
                f"({', '.join(sorted(tables))}); this OpenCode may be newer than this Reconstitute"
            )

    def close(self) -> None:
        """Close every source and connection."""
        for source in self._found.values():
            source.close()
        for connection in self._connections.values():
            connection.close()
