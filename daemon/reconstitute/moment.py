"""What the tree of an earlier state is called; how a moment is read is the business of daemon.moments."""

from __future__ import annotations

import datetime as dt

from daemon.moments import parse_moment

__all__ = ["parse_moment", "tree_suffix"]


def tree_suffix(moment: int | None) -> str:
    """What the tree of an earlier state is called by, after the target's own path: ``@2026-10-01T235959Z`` (UTC).

    Milliseconds follow where a person gave them; 999 is the end of a day. Empty for None.
    """
    if moment is None:
        return ""
    seconds, rest = divmod(moment, 1000)
    exact = "" if rest in {0, 999} else f".{rest:03}"
    return f"@{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H%M%S}{exact}Z"
