"""A moment as a person writes it becomes epoch milliseconds. It reads no clock."""

from __future__ import annotations

import datetime as dt
import re

from daemon.errors import BadRequest

_EARLIEST = 946_684_800_000  # 2000-01-01: a smaller number is seconds, or a slip
_LATEST = 253_402_300_799_000


def tree_suffix(moment: int | None) -> str:
    """What the tree of an earlier state is called by, after the target's own path: ``@2026-10-01T235959Z`` (UTC).

    Milliseconds follow where a person gave them; 999 is the end of a day. Empty for None.
    """
    if moment is None:
        return ""
    seconds, rest = divmod(moment, 1000)
    exact = "" if rest in {0, 999} else f".{rest:03}"
    return f"@{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H%M%S}{exact}Z"


def parse_moment(text: str) -> int | None:
    """Epoch ms of an ISO date or time, or of epoch ms as digits; None for an empty text.

    A date alone means the end of that day, a time without a zone is the machine's own zone.

    Raises:
        BadRequest: anything else.
    """
    wanted = text.strip()
    if not wanted:
        return None
    form = "write 2026-11-21, 2026-11-21T14:30, 2026-11-21T14:30:00Z or epoch milliseconds"
    if re.fullmatch(r"[0-9]{1,15}", wanted) and len(wanted) != len("20261121"):
        return _checked(int(wanted), wanted, form)
    try:
        if "T" in wanted or " " in wanted or ":" in wanted:
            moment = dt.datetime.fromisoformat(wanted)
        else:
            day = dt.date.fromisoformat(wanted)
            moment = dt.datetime.combine(day, dt.time(23, 59, 59, 999_000))
        return _checked(int(moment.timestamp() * 1000), wanted, form)
    except (ValueError, OverflowError, OSError):
        raise BadRequest(f"at {text!r}: not a date or time; {form}") from None


def _checked(milliseconds: int, wanted: str, form: str) -> int:
    if not _EARLIEST <= milliseconds <= _LATEST:
        raise BadRequest(f"at {wanted!r}: not a time after the year 2000; {form}")
    return milliseconds
