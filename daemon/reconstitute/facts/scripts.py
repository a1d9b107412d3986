"""The scripts and targets that a project's manifests and Makefiles name, in their last known state."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import Script
from daemon.reconstitute.recover import Recovered


def find(target: str, files: Sequence[Recovered]) -> tuple[Script, ...]:
    """The scripts of the files whose last certain content names some."""
    return ()
