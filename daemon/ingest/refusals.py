"""What the system refused to read, each with a pause before it is tried again."""

from __future__ import annotations

import time
from collections.abc import Collection

_PAUSES_S = (1.0, 600.0)
"""The first and the longest; each is twice the one before."""


class Refusals:
    """Kept in memory: after a start everything is tried at once."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[float, float, str]] = {}  # name -> pause, its end (monotonic), reason

    def is_resting(self, name: str) -> bool:
        """Whether it was refused a moment ago."""
        return time.monotonic() < self._refused.get(name, (0.0, 0.0, ""))[1]

    def add(self, name: str, reason: str) -> None:
        """It was refused, perhaps again."""
        pause = min(max(_PAUSES_S[0], 2 * self._refused.get(name, (0.0, 0.0, ""))[0]), _PAUSES_S[1])
        self._refused[name] = (pause, time.monotonic() + pause, reason)

    def keep(self, names: Collection[str]) -> None:
        """Forget all others."""
        self._refused = {name: refused for name, refused in self._refused.items() if name in names}

    @property
    def reason(self) -> str:
        """Why one of them was refused; empty if none was."""
        return next((reason for _, _, reason in self._refused.values()), "")
