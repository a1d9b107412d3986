"""One trial: a harm with a seed, in a place of its own, and what went wrong."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.torture.harms import HARMS
from tests.torture.world import world


def trial(kind: str, seed: int, root: Path, rounds: int | None = None) -> tuple[Counter[str], list[str]]:
    """What was done, and what went wrong; `root` must not exist, and does not afterwards."""
    harm = HARMS[kind]
    done: Counter[str] = Counter()
    problems: list[str] = []
    try:
        with world(root, seed, on_small_disk=harm.on_small_disk) as made:
            done = made.counts
            try:
                problems += harm.do(made, random.Random(seed), rounds or harm.rounds)
                problems += made.finish()
            except Exception:
                problems.append(made.daemon.log_end()[-800:])
                raise
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    return done, problems
