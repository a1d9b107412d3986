"""Long work made visible on stderr: a bar on a terminal, a line now and then otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from daemon.cli import terminal
from daemon.control.calls import Progress, silent
from daemon.model import Json

LINE_SECONDS = 5.0


@contextmanager
def progress(*, brief: bool = False) -> Iterator[Progress]:
    """A Progress to hand to a Service's long call; of a `brief` one only a terminal shows anything."""
    if not sys.stderr.isatty():
        yield silent if brief else _Lines()
        return
    with ExitStack() as drawing:
        step: Progress | None = None

        def first(event: Json) -> None:
            # What is quick draws nothing, and does not load what draws.
            nonlocal step
            if step is None:
                step = drawing.enter_context(_bars())
            step(event)

        yield first


class _Lines:
    """A line when a phase begins and every LINE_SECONDS after."""

    def __init__(self) -> None:
        self._phase = ""
        self._last = 0.0

    def __call__(self, event: Json) -> None:
        phase, now = str(event.get("phase", "")), time.monotonic()
        if phase == self._phase and now - self._last < LINE_SECONDS:
            return
        self._phase, self._last = phase, now
        done, total = event.get("done"), event.get("total")
        terminal.note(f"{phase}: {done} of {total}" if total else f"{phase}: {done}" if done else phase)


@contextmanager
def _bars() -> Iterator[Progress]:
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal to draw on
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, object] = {}

        def step(event: Json) -> None:
            phase = str(event.get("phase", ""))
            if phase not in tasks:
                tasks[phase] = bars.add_task(escape(terminal.plain(phase)), total=None)
            bars.update(tasks[phase], completed=event.get("done") or 0, total=event.get("total"))  # type: ignore[arg-type]

        yield step
