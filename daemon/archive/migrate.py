"""The archive's schema version, and the ordered steps from older ones."""

from __future__ import annotations

from daemon.archive import keys
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt

VERSION = 1


def bring_up_to_date(store: Store) -> None:
    """Stamp a new archive; refuse one of a newer schema, whose records we might misread.

    Raises:
        ArchiveCorrupt: a newer Reconstitute wrote it.
    """
    found = store.get(keys.SCHEMA)
    if found is None:
        store.write({keys.SCHEMA: str(VERSION).encode()})
    elif int(found) > VERSION:
        raise ArchiveCorrupt(
            f"the archive has schema {int(found)}, this Reconstitute knows up to {VERSION}; "
            f"upgrade Reconstitute, or name another archive.dir"
        )
