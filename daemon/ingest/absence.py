"""What a source has no more.

That a listing lacks it is not enough: a damaged index hides rows, and SQLite does not notice a key that has changed. So
the source is asked for each id that is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from daemon.errors import BadRecord, Unreadable
from daemon.opencode import Source


def gone(source: Source, kind: str, ids: set[str], note: Callable[[BadRecord], None]) -> set[str]:
    """Those of these records, which were not listed, that the source has no more; `note` gets what is damaged."""
    try:
        hidden = source.holds(kind, ids)
    except Unreadable as error:
        note(error)
        return set()
    if hidden:
        note(Unreadable(f"{source.name}: an index is damaged: {kind} {min(hidden)} is there and was not listed"))
    return ids - hidden
