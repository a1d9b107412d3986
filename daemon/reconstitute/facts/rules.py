"""Sentences in which the user or the agent states a rule or a decision, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import Rule, SessionFacts


def find(sessions: Sequence[SessionFacts]) -> tuple[Rule, ...]:
    """Few and right: those that state one beyond doubt, oldest first."""
    return ()
