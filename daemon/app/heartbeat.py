"""Tells whether a loop of the service is alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Heartbeat:
    """Whether one loop is alive. An idle loop is healthy; a busy one is healthy until its deadline."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._deadline: float | None = None

    def busy(self, allowed_s: float = 120.0) -> None:
        """Report progress; the next report is due within `allowed_s` seconds."""
        with self._lock:
            self._deadline = self._clock() + allowed_s

    def idle(self) -> None:
        """Report that there is nothing to do."""
        with self._lock:
            self._deadline = None

    @property
    def is_alive(self) -> bool:
        """False if the next report is overdue."""
        with self._lock:
            return self._deadline is None or self._clock() <= self._deadline
