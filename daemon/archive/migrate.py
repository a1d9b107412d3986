"""The archive's schema version, and the ordered steps from older ones."""

from __future__ import annotations

from collections.abc import Callable

from daemon.archive import keys
from daemon.errors import ArchiveCorrupt

VERSION = 1


def bring_up_to_date(get: Callable[[bytes], bytes | None], put: Callable[[bytes, bytes], None]) -> None:
    """Stamp a new archive; refuse one of a newer schema, whose records we might misread.

    Raises:
        ArchiveCorrupt: a newer Reconstitute wrote it.
    """
    found = get(keys.SCHEMA)
    if found is None:
        put(keys.SCHEMA, str(VERSION).encode())
    elif int(found) > VERSION:
        raise ArchiveCorrupt(
            f"the archive has schema {int(found)}, this Reconstitute knows up to {VERSION}; "
            f"upgrade Reconstitute, or name another archive.dir"
        )
