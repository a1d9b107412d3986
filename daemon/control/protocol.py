"""The calls a client may make, whoever answers: the running daemon over its socket, or the engine in this process.

Every answer is plain JSON data, already redacted. Errors are ReconstituteError; over the socket they travel as
``{"error": {"type", "message", "exit_code"}}`` and are raised again on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from daemon.model import Json

Progress = Callable[[Json], None]
"""Called with ``{"phase": str, "done": int, "total": int | None}`` during long work."""


class Service(Protocol):
    """Implemented by app.Engine and by control.client.Client."""

    def status(self) -> Json:
        """Version, pid, sources with their counts, outbox, index health, targets, jobs, last errors."""

    def search(self, query: str, *, mode: str = "hybrid", limit: int = 10, context: bool = False) -> Json:
        """``{query, mode, hits: [Hit as dict], coverage, warnings: [str], messages?: [OllamaMessage]}``.

        Raises:
            BadRequest: an empty query, an unknown mode, a limit out of range.
        """

    def index(self, progress: Progress) -> Json:
        """One full scan, then the outbox drained: ``{changed, removed, embedded, waiting, quarantined}``."""

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> Json:
        """One run: ``{target, output, pages, written, unchanged, kept, files: {proven, unproven}, warnings}``."""
