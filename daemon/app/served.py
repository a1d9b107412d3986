"""The engine as the service's clients see it: its status has the service's figures, and safe mode limits its calls."""

from __future__ import annotations

import threading
from typing import Protocol, TypeVar

from daemon.app.engine import Engine
from daemon.app.yielding import YieldingEmbedder
from daemon.control import answers, calls
from daemon.control.calls import OnPart, Progress, Request, silent
from daemon.embed import Embedder
from daemon.embed.builtin import WorkerEmbedder
from daemon.errors import Retry
from daemon.notify import Notifier

A = TypeVar("A")
_STEP_S = 120.0
"""Seconds that a step of a migration may take; most take less than one."""
_NOT_IN_SAFE_MODE = calls.Forget | calls.Index | calls.Reconstitute | calls.Estimate


class RunningService(Protocol):
    """Knows what no engine does."""

    @property
    def watching(self) -> str:
        """How the sources are followed."""

    def add_figures(self, status: answers.Status) -> None:
        """Add it to the status."""


class Served(Engine):
    """Set `service` after it was made."""

    service: RunningService | None = None
    calm: threading.Event | None = None
    is_served = True
    safe_mode = ""
    """Why it only answers from what is archived; empty in a normal run."""

    @property
    def is_indexing(self) -> bool:
        """See RecallCalls."""
        return not self.safe_mode

    def on_migration(self) -> None:
        """As Engine. Without a sign of life systemd would end the start after its time limit."""
        notifier = Notifier()
        notifier.status("migrating the archive")
        notifier.extend(_STEP_S)
        notifier.watchdog()

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """As Engine. In safe mode nothing is read from OpenCode, no pages are written and nothing is forgotten."""
        if self.safe_mode and isinstance(request, _NOT_IN_SAFE_MODE):
            raise Retry(self.safe_mode)
        return super().call(request, progress=progress, on_part=on_part)

    def scan_sources(self, *, match: str = "") -> list[str]:
        """As RecallCalls: the loops do it, but for safe mode, which the answer says."""
        del match
        return [self.safe_mode] if self.safe_mode else []

    def current(self, _progress: Progress) -> list[str]:
        """As `scan_sources`."""
        return self.scan_sources()

    def _choose(self) -> tuple[Embedder, str]:
        """As Engine. The built-in embedder yields to new messages; a model server has its own processor."""
        embedder, why = super()._choose()
        if self.calm is None or not isinstance(embedder, WorkerEmbedder):
            return embedder, why
        return YieldingEmbedder(embedder, self.calm), why

    def watch(self) -> str | None:
        """As HealthCalls."""
        return None if self.service is None else self.safe_mode or self.service.watching

    def status(self, request: calls.Status) -> answers.Status:
        """As Engine, with the service's figures."""
        answer = super().status(request)
        if self.service is not None:
            self.service.add_figures(answer)
        return answer

    def status_line(self) -> str:
        """What it does, for `systemctl status`."""
        if self.safe_mode:
            return "safe mode after several crashes: it answers from what is archived"
        if self.space.state() is not None:
            return "waiting for free space on the disk"
        if self.pausing.left_s():
            return "paused by its user: it archives new messages, all other work waits"
        waiting = self.waits_for_meaning
        return f"following OpenCode; {waiting} messages wait to be embedded" if waiting else "following OpenCode"
