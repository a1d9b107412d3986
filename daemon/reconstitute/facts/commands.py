"""How to run it: the commands that were really run, grouped, with when each last succeeded or failed."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import Command, SessionFacts


def find(target: str, sessions: Sequence[SessionFacts]) -> tuple[Command, ...]:
    """The commands worth knowing to whoever wants to run it, in the order of their groups, then the newest first."""
    return ()
