"""What a file is for: its docstring, heading or first comment, else the prompt under which it was written."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import Purpose, SessionFacts
from daemon.reconstitute.recover import Recovered


def find(files: Sequence[Recovered], sessions: Sequence[SessionFacts]) -> dict[str, Purpose]:
    """By absolute path; a file of which nothing is known to tell is left out."""
    return {}
