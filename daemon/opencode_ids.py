"""The clock inside an OpenCode id (opencode-formats.md, Directory).

``<prefix>_`` + 12 hex digits + 14 base-62 characters; the hex digits are the low 48 bits of ``ms * 4096 + counter``,
inverted for sessions. 36 bits of milliseconds remain, so the clock wraps every 795 days, last on 2026-08-14: ids tell a
time only near a known one, and never an order across a wrap.
"""

from __future__ import annotations

OWN_SESSION_TITLE = "[reconstitute]"
"""How the title of every session begins that we ask an OpenCode server for. None of them is ever archived (S13)."""

OWN_MARK = "reconstitute-model"
"""Our agent in such sessions, and a tool switched off that there is not: each of their messages names one of them."""

_SPAN = 1 << 36
_MASK = (1 << 48) - 1


def time_of(identifier: str, near_ms: int) -> int | None:
    """The epoch ms at which `identifier` was made, taken to be the closest possibility to `near_ms`.

    None where it is no id of OpenCode's making.

    >>> time_of("msg_1fc13507f001gL2TNTlx7a0gIk", 1795230000000)
    1795230486655
    """
    prefix, _, rest = identifier.partition("_")
    if len(rest) < 12:
        return None
    try:
        bits = int(rest[:12], 16)
    except ValueError:
        return None
    if prefix == "ses":
        bits = ~bits & _MASK
    ms = bits >> 12
    return ms + round((near_ms - ms) / _SPAN) * _SPAN
