"""How long work is shown while it goes on: the one display of progress, always on stderr, so never within an answer.

On a terminal there is a bar for each kind of work, with the time that is left where it can be known. Elsewhere a plain
line is printed every ten seconds, so a quick command prints nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from daemon.cli import terminal
from daemon.control.calls import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from daemon.model import Json

LINE_SECONDS = 10.0
"""Seconds between two lines where there is no terminal."""
_LEAST_SECONDS = 3.0
"""An estimate of the time left from less than this would jump."""
_READING = "reading "
"""Begins the phase that reads a kind of source."""
_WORDS = {
    "indexing words": "messages searchable by words",
    "embedding": "messages searchable by meaning",
    "capturing snapshots": "snapshots and outputs archived",
    "comparing with the disk": "files compared with the disk",
    "comparing revisions": "revisions compared",
    "reading histories": "reading file histories",
    "restoring": "files restored",
    "export": "sessions exported",
    "models": "models tried",
    "checks": "checks done",
    "collect": "collecting what is recorded",
    "recover": "file histories worked out",
    "facts": "collecting facts",
    "quote": "questions answered with quotes",
    "ask the model": "questions answered by the model",
    "describe files and sessions": "files and sessions described by the model",
    "notes": "notes searchable by meaning",
    "write": "pages written",
    "checking segments": "segments of earlier backups checked",
    "segments": "segments backed up",
    "large records": "large records backed up",
    "checking files": "files of backups checked",
    "restoring segments": "segments restored",
    "comparing segments": "segments compared with the backup",
    "waiting for the runs under way": "waiting for the runs under way to end",
    "looking for what else names it": "records searched for what else names it",
    "removed": "messages removed",
    "comparing vectors": "messages compared with the stored embeddings",
    "writing the archive anew": "entries of the archive written anew",
    "compacting": "parts of the archive compacted",
    "written anew": "archive written anew",
    "waiting for another run of it": "waiting for another run of the same path",
}
"""What the phases of the calls are called for users; any other is shown as it is."""


@contextmanager
def display() -> Iterator[Progress]:
    """Shows the progress of one command. A `note` of an event is printed on its own line."""
    with ExitStack() as drawing:
        show = _Bars(drawing) if sys.stderr.isatty() else _Lines()

        def step(event: Json) -> None:
            if event.get("note"):
                terminal.note(event["note"])
            show(event)

        yield step


class _Phase:
    """One kind of work, and how fast it goes."""

    def __init__(self, name: str) -> None:
        self._words = "sessions read" if name.startswith(_READING) else _WORDS.get(name, name)
        self._begun, self._first = time.monotonic(), 0

    def text(self, done: int, total: int | None) -> str:
        """The state in words, with the time left if that can be estimated."""
        if not total:
            return f"{self._words}: {done:,}" if done else self._words
        if done < self._first or not self._first:  # another source begins again
            self._begun, self._first = time.monotonic(), done
        seconds = time.monotonic() - self._begun
        left = ""
        if seconds >= _LEAST_SECONDS and self._first < done < total:
            left = f", about {terminal.duration(seconds * (total - done) / (done - self._first))} left"
        return f"{self._words}: {done:,} of {total:,}{left}"


class _Lines:
    """A line every LINE_SECONDS, whatever the work."""

    def __init__(self) -> None:
        self._phases: dict[str, _Phase] = {}
        self._last = time.monotonic()

    def __call__(self, event: Json) -> None:
        name = str(event.get("phase", ""))
        text = self._phases.setdefault(name, _Phase(name)).text(event.get("done") or 0, event.get("total"))
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            terminal.note(text)


class _Bars:
    """Bars on a terminal, drawn by rich. A quick call shows none, and need not load it."""

    def __init__(self, drawing: ExitStack) -> None:
        self._drawing = drawing
        self._bars: Bars | None = None
        self._phases: dict[str, tuple[_Phase, int]] = {}

    def __call__(self, event: Json) -> None:
        from rich.markup import escape  # noqa: PLC0415 - only where there is something to draw

        bars = self._bars = self._bars or self._drawing.enter_context(_drawn())
        name, done, total = str(event.get("phase", "")), event.get("done") or 0, event.get("total")
        if name not in self._phases:
            self._phases[name] = _Phase(name), int(bars.add_task("", total=None))
        phase, task = self._phases[name]
        text = escape(terminal.plain(phase.text(done, total)))
        bars.update(task, completed=done, total=total, description=text)  # type: ignore[arg-type]


def _drawn() -> Bars:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    return Bars(BarColumn(bar_width=20), TextColumn("{task.description}"), console=Console(stderr=True), transient=True)
