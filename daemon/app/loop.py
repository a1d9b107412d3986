"""Whether the loops still get anywhere: what the watchdog's ping is earned with (docs/reliability.md, D2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Beat:
    """One loop's sign of life. Idle is healthy; busy is healthy until the time it asked for is over."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._deadline: float | None = None

    def busy(self, allowed_s: float = 120.0) -> None:
        """Progress: the next sign comes within `allowed_s` seconds."""
        with self._lock:
            self._deadline = self._clock() + allowed_s

    def idle(self) -> None:
        """Nothing to do."""
        with self._lock:
            self._deadline = None

    @property
    def is_alive(self) -> bool:
        """Whether the promised sign is not overdue."""
        with self._lock:
            return self._deadline is None or self._clock() <= self._deadline
