"""What `make torture` does: harm a running service in every way, and check each time that nothing is lost or wrong.

    python tools/torture.py [--seconds 1200] [--kind KIND]... [--seed N] [--workers N] [--json]

One trial is one kind of harm with one seed, in a place of its own: live work in three storage generations, the harm,
then the work ends, the service runs once undisturbed, and everything is compared. `--seed` repeats a trial. The exit
code is 1 when anything failed; what this machine cannot do is listed as left out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.torture.trial import HARMS, trial

Outcome = tuple[str, int, Counter[str], list[str]]


@dataclass
class Result:
    """What was tried, and what failed: each failure with the command that repeats it."""

    trials: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def draw(kinds: list[str], seconds: float) -> Iterator[tuple[str, int]]:
    """Kinds by their weight with seeds of chance, until the time is over."""
    chance, end = random.SystemRandom(), time.monotonic() + seconds
    turns = [kind for kind in kinds for _ in range(HARMS[kind].weight)]
    while turns:
        for kind in chance.sample(turns, len(turns)):
            if time.monotonic() > end:
                return
            yield kind, chance.randrange(2**32)


def run(
    trials: Iterable[tuple[str, int]], workers: int, root: Path
) -> Iterator[tuple[str, int, Counter[str], list[str]]]:
    """The trials, so many at a time: kind, seed, what was done, what went wrong."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[tuple[Counter[str], list[str]]], tuple[str, int]] = {}
        drawn = enumerate(trials)
        is_over = False
        while waiting or not is_over:
            while not is_over and len(waiting) < workers:
                number, (kind, seed) = next(drawn, (-1, ("", 0)))
                is_over = number < 0
                if not is_over:
                    waiting[pool.submit(trial, kind, seed, root / str(number))] = kind, seed
            for ended in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield *waiting.pop(ended), *ended.result()


def gathered(outcomes: Iterable[Outcome]) -> Result:
    """The sum of the trials; each is told on stderr when it ends."""
    result = Result()
    for kind, seed, done, problems in outcomes:
        result.trials[kind] += 1
        result.done += done
        command = f"python tools/torture.py --kind {kind} --seed {seed}"
        result.failures += [f"{problem}\n    again: {command}" for problem in problems]
        print(f"{kind:8} {seed:10}  {'FAILED' if problems else 'well'}", file=sys.stderr, flush=True)
        for problem in problems:
            print(f"    {problem[:600]}", file=sys.stderr, flush=True)
    return result


def table(result: Result) -> str:
    """The counts as lines."""
    lines = [f"{count:6}  trials of {kind}" for kind, count in sorted(result.trials.items())]
    lines += [f"{count:6}  {what}" for what, count in sorted(result.done.items())]
    lines += [f"        left out: {kind}: {why}" for kind, why in result.left_out.items()]
    lines += ["", f"{len(result.failures)} failures", *result.failures]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=1200, help="no trial begins after so long (default: 1200)")
    options.add_argument("--kind", action="append", choices=sorted(HARMS), help="this alone; may be repeated")
    options.add_argument("--seed", type=int, help="repeat this trial of each kind")
    options.add_argument("--workers", type=int, default=2, help="trials at a time (default: 2)")
    options.add_argument("--json", action="store_true", help="one JSON object")
    arguments = options.parse_args()
    wanted = arguments.kind or list(HARMS)
    left_out = {kind: why for kind in wanted if (why := HARMS[kind].lacks())}
    kinds = [kind for kind in wanted if kind not in left_out]
    trials = draw(kinds, arguments.seconds) if arguments.seed is None else [(kind, arguments.seed) for kind in kinds]
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        result = gathered(run(trials, arguments.workers, Path(name)))
    result.left_out = left_out
    if arguments.json:
        print(json.dumps({name: getattr(result, name) for name in ("trials", "done", "failures", "left_out")}))
    else:
        print(table(result))
    sys.exit(1 if result.failures else 0)


if __name__ == "__main__":
    main()
