"""The kinds of harm, and one trial: a harm with a seed, in a place of its own, and what went wrong."""

from __future__ import annotations

import os
import random
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.torture import faults, harms, upkeep
from tests.torture.damage import damage
from tests.torture.world import World, world


def _has_faketime() -> str:
    return "" if any(map(os.path.exists, harms.FAKETIME)) else "libfaketime is not installed"


def _may_mount() -> str:
    return "" if os.geteuid() == 0 else "only root can make a small disk"


@dataclass(frozen=True, slots=True)
class Harm:
    """One kind.

    `lacks`: why it cannot be done on this machine; empty where it can. `rounds`: how often it is done in one trial.
    `weight`: how many trials, beside the other kinds.
    """

    do: Callable[[World, random.Random, int], list[str]]
    lacks: Callable[[], str] = lambda: ""
    on_small_disk: bool = False
    rounds: int = 6
    weight: int = 1


HARMS = {
    "kill": Harm(harms.kill, rounds=20, weight=3),
    "point": Harm(harms.kill_at_points, faults.lacks, rounds=15, weight=3),
    "fail": Harm(harms.fail_calls, faults.lacks, rounds=8, weight=3),
    "disk": Harm(harms.fill_disk, _may_mount, on_small_disk=True),
    "damage": Harm(damage, rounds=15, weight=4),
    "server": Harm(harms.flap_server),
    "clock": Harm(harms.set_clock, _has_faketime),
    "rubbish": Harm(harms.throw_rubbish, rounds=10),
    "forget": Harm(upkeep.forget),
    "backup": Harm(upkeep.back_up),
    "migrate": Harm(upkeep.migrate, faults.lacks, rounds=8),
}


def trial(kind: str, seed: int, root: Path, rounds: int | None = None) -> tuple[Counter[str], list[str]]:
    """What was done, and what went wrong; `root` must not exist, and is left only where something went wrong."""
    harm = HARMS[kind]
    done: Counter[str] = Counter()
    problems: list[str] = []
    begun = time.monotonic()
    try:
        with world(root, seed, on_small_disk=harm.on_small_disk) as made:
            done = made.counts
            try:
                problems += harm.do(made, random.Random(seed), rounds or harm.rounds)
                problems += [] if made.is_finished else made.finish()
            except Exception:
                problems.append(made.daemon.log_end()[-800:])
                raise
    except Exception as error:
        problems.append("".join(traceback.format_exception(error))[-1500:])
    if not problems:
        shutil.rmtree(root, ignore_errors=True)
    done["seconds"] = round(time.monotonic() - begun)
    return done, problems
