"""The time that one answer may take, and what of it is left for searching."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

_SHARE_OF_SEARCH = 0.9
"""The part of a budget that searching may take; the rest is for excerpts, expansions and hints."""


class Budget:
    """The seconds that one answer may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began = time.monotonic()

    @property
    def deadline(self) -> float:
        """When searching ends, on time.monotonic's clock."""
        return self.began + _SHARE_OF_SEARCH * self.seconds

    @property
    def end(self) -> float:
        """When the answer is due, on the same clock."""
        return self.began + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time for searching is up."""
        return time.monotonic() >= self.deadline

    def pause(self, work: Callable[[], None]) -> None:
        """Do work that does not count. Its failure is left to the search, which meets it again and reports it."""
        began = time.monotonic()
        with suppress(Exception):
            work()
        self.began += time.monotonic() - began
