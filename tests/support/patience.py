"""Time for searches: where a test is about what is found, a busy machine shall not change that."""

from __future__ import annotations

from daemon.recall.search import RecallEngine

SEARCH_S = 60.0


def search_patiently() -> None:
    """Let searches of this process, and of its forks, take as long as they need."""
    defaults = RecallEngine.__init__.__kwdefaults__
    defaults["budget_s"] = SEARCH_S
