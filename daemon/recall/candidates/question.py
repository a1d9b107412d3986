"""One question to one index, in a thread of its own, so that it can be given up at a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from daemon.recall.candidates.lists import CandidateLists


def finish(within_s: float) -> bool:
    """Wait for questions that were given up at their deadline, before what they read is closed; whether all ended."""
    until = time.monotonic() + within_s
    with _STARTING:
        under_way = list(_UNDER_WAY)  # one may end and leave the set meanwhile
    for question in under_way:
        question.join(max(0.0, until - time.monotonic()))
    return not any(question.is_alive() for question in under_way)


class Question(threading.Thread):
    """One question on its way; what it has found so far may be looked at while it runs."""

    def __init__(self, index: str, question: Callable[[CandidateLists], None]) -> None:
        super().__init__(name=f"recall {index}", daemon=True)
        self._question = question
        self.index = index
        self.candidates = CandidateLists()
        self.error: Exception | None = None
        self.is_done = False

    def start(self) -> None:
        """As a thread; `finish` waits for it from now on, not from when it gets a processor."""
        with _STARTING:
            super().start()
            _UNDER_WAY.add(self)

    def run(self) -> None:
        """Ask; an error is kept for whoever waits."""
        try:
            self._question(self.candidates)
        except Exception as error:  # noqa: BLE001 - an index may fail in its library's own ways; the other one answers
            self.error = error
        with _STARTING:
            self.is_done = True
            _UNDER_WAY.discard(self)


_UNDER_WAY = set[Question]()
_STARTING = threading.Lock()
"""Held while a question becomes one that is under way, or ceases to be one."""


def left(deadline: float) -> float:
    """Seconds until then; `deadline` is on time.monotonic's clock."""
    return max(0.0, deadline - time.monotonic())


def is_over(deadline: float) -> bool:
    """Whether that time has come; `deadline` is on time.monotonic's clock."""
    return time.monotonic() >= deadline
