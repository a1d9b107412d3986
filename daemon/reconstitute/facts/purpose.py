"""What a folder is: its README's and its manifest's own words, else the first prompts that began it."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import Purpose, SessionFacts
from daemon.reconstitute.recover import Recovered


def find(target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> tuple[Purpose, ...]:
    """At most two: what the project says of itself, best first; nothing where nothing says it."""
    return ()
