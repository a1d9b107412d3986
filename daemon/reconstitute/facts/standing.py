"""Where a folder stands: the last activity, how much is known exactly and as of when, and what came after."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.model import FileEdit
from daemon.reconstitute.facts.values import SessionFacts, Standing
from daemon.reconstitute.recover import Recovered


def find(
    target: str,
    sessions: Sequence[SessionFacts],
    files: Sequence[Recovered],
    programs: Sequence[FileEdit],
    moment: int | None,
) -> Standing:
    """See Standing; `moment` (epoch ms) is the state asked for, None the present one."""
    return Standing()
