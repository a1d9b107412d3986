"""What was taken back, failed, refused or stopped, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import SessionFacts, Setback


def find(sessions: Sequence[SessionFacts]) -> tuple[Setback, ...]:
    """All of them, the newest first."""
    return ()
