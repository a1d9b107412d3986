"""Runs that a browser asked for: each goes on when the browser goes away, and its page says how far it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from daemon.control.answers import Run
from daemon.control.calls import Progress
from daemon.errors import ReconstituteError
from daemon.model import Json

_MOST = 50


@dataclass(slots=True)
class Work:
    """One run of a target; `answer` or `error` is there once it has ended."""

    path: str
    begun: float = field(default_factory=time.time)
    event: Json = field(default_factory=dict)
    answer: Run | None = None
    error: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.answer is not None or bool(self.error)


class Runs:
    """The newest runs of this page, by path. For one event loop."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def of(self, path: str) -> Work | None:
        """The last run of a path that was asked for here."""
        return self._works.get(path)

    def start(self, path: str, run: Callable[[Progress], Awaitable[Run]]) -> Work:
        """Begin a run; one of the same path that has not ended is not begun again."""
        work = self._works.get(path)
        if work is not None and not work.is_over:
            return work
        work = self._works[path] = Work(path)
        for old in [name for name, each in self._works.items() if each.is_over][:-_MOST]:
            del self._works[old]
        task = asyncio.create_task(self._run(work, run))
        self._tasks.add(task)  # the loop keeps only weak references
        task.add_done_callback(self._tasks.discard)
        return work

    @staticmethod
    async def _run(work: Work, run: Callable[[Progress], Awaitable[Run]]) -> None:
        def progress(event: Json) -> None:
            work.event = event

        try:
            work.answer = await run(progress)
        except ReconstituteError as error:
            work.error = str(error)
        except Exception as error:
            work.error = f"internal error ({type(error).__name__}); see the service's log"
            raise
