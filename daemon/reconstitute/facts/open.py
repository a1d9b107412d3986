"""What is left open: todo lists, questions without an answer, what was asked and not done, what still fails."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import OpenPoint, SessionFacts, Setback


def find(sessions: Sequence[SessionFacts], setbacks: Sequence[Setback]) -> tuple[OpenPoint, ...]:
    """What nothing in the records settles, the newest first."""
    return ()
