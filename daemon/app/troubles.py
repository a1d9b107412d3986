"""Announces a trouble when it begins: in the log, and on the desktop if `log.notify` says so."""

from __future__ import annotations

import html
import subprocess
import time
from collections.abc import Callable, Iterable

from daemon import log
from daemon.control.answers import Check

_LOG = log.get("troubles")
LOOK_S = 60.0
"""Seconds between two looks."""
_FORGET_S = 3600.0
"""A trouble that was away for so long is a new one; one that comes and goes is announced once."""
_SEND_S = 5.0


class Announcer:
    """Knows which troubles it has announced."""

    def __init__(
        self, rows: Callable[[], Iterable[Check]], *, notify: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`rows` gives the checks that need a person now."""
        self._rows, self._notify, self._clock = rows, notify, clock
        self._last_seen: dict[tuple[str, str], float] = {}

    def look(self) -> None:
        """Announce what is new since the last look."""
        now = self._clock()
        self._last_seen = {key: at for key, at in self._last_seen.items() if now - at < _FORGET_S}
        new = []
        for row in self._rows():
            if (row.what, row.state) not in self._last_seen:
                new.append(row)
            self._last_seen[row.what, row.state] = now
        for row in new:
            _LOG.warning("trouble", where=row.what, state=row.state, message=row.message, fix=row.fix)
        if new and self._notify:
            _send("\n".join(f"{row.what}: {row.message}" for row in new))


def _send(text: str) -> None:
    """A desktop notification; desktops read its body as markup."""
    words = ["notify-send", "--app-name=Reconstitute", "Reconstitute needs attention"]
    body = f"{html.escape(text, quote=False)}\nreconstitute status"
    try:
        subprocess.run([*words, body], check=True, capture_output=True, timeout=_SEND_S)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("no desktop notification", error=str(error))
