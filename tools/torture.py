"""What `make torture` does: harm a running service in every way, and check each time that nothing is lost or wrong.

    python tools/torture.py [--seconds 1200] [--kind KIND]... [--seed N] [--workers N] [--json]

One trial is one kind of harm with one seed, in a place of its own: live work in three storage generations, the harm,
then the work ends, the service runs undisturbed, and everything is compared. Each kind has its turn; after that come
those of which the least was done of what is wanted. When anything failed, the exit code is 1, and the place is kept.

`--kind KIND --seed N` repeats a trial: the same work, harms and choices in the same order. When they meet, how far the
work has come by then, and the names that LevelDB, tantivy and Chroma give their files, follow from no seed. What this
machine cannot do is listed as left out.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
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

WANTED = {("kill", "point"): ("SIGKILL", 300), ("damage",): ("damage", 200)}
"""What is to be done within `_WITHIN_S`, by the kinds that do it."""
_WITHIN_S = 1200
_LONGEST_S = 1800
"""A trial that has not ended by then has failed: its longest waits are 400 s each."""


@dataclass
class Result:
    """What was tried, and what failed: each failure with the command that repeats it."""

    trials: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, seed: int, done: Counter[str], problems: list[str], place: Path) -> None:
        """Count a trial, and say on stderr how it ended."""
        self.trials[kind] += 1
        self.failed[kind] += bool(problems)
        self.seconds[kind] += done.pop("seconds")
        self.done += done
        again = f"python tools/torture.py --kind {kind} --seed {seed}   # its files: {place}"
        self.failures += [f"{kind}: {problem}\n    again: {again}" for problem in problems]
        print(f"{kind:8} {seed:10}  {'FAILED' if problems else 'well'}", file=sys.stderr, flush=True)
        for problem in problems:
            print(f"    {problem[:600]}", file=sys.stderr, flush=True)

    def lags(self, what: str, most: int, share: float) -> float:
        """How far it is behind: negative when more was done than this share of `most`."""
        return share - sum(count for name, count in self.done.items() if name.split(" of ")[0] == what) / most


def draw(kinds: list[str], seconds: float, result: Result, chance: random.Random) -> Iterator[tuple[str, int]]:
    """Each kind once, then what lags behind or, by their weight, any, until the time is over."""
    begun = time.monotonic()
    turns = chance.sample(kinds, len(kinds))
    while (passed := time.monotonic() - begun) < seconds:
        # What is under way counts only when it ends, so a little more is asked for than the time that has passed.
        share = (passed + 60) / _WITHIN_S
        behind = {tuple(set(by) & set(kinds)): result.lags(*wanted, share) for by, wanted in WANTED.items()}
        late, lag = max(behind.items(), key=lambda item: item[1] if item[0] else -1)
        if turns:
            kind = turns.pop()
        elif late and lag > 0:
            kind = chance.choice(sorted(late))
        else:
            kind = chance.choices(kinds, [HARMS[name].weight for name in kinds])[0]
        yield kind, chance.randrange(2**32)


def run(trials: Iterable[tuple[str, int]], workers: int, root: Path, result: Result) -> None:
    """The trials, so many at a time, each in a folder of its own."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[tuple[Counter[str], list[str]]], tuple[str, int, Path]] = {}
        drawn = iter(trials)
        is_over = False
        while waiting or not is_over:
            while not is_over and len(waiting) < workers:
                kind, seed = next(drawn, ("", 0))
                is_over = not kind
                if not is_over:
                    place = root / f"{kind}-{seed}"
                    waiting[pool.submit(limited, kind, seed, place)] = kind, seed, place
            for ended in wait(waiting, return_when=FIRST_COMPLETED).done:
                kind, seed, place = waiting.pop(ended)
                result.add(kind, seed, *ended.result(), place)


def limited(kind: str, seed: int, place: Path) -> tuple[Counter[str], list[str]]:
    """A trial that fails when it takes too long. For the main thread of a process of the pool."""

    def end(*_: object) -> None:
        raise TimeoutError(f"it has not ended within {_LONGEST_S} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(_LONGEST_S)
    try:
        return trial(kind, seed, place)
    finally:
        signal.alarm(0)


def table(result: Result) -> str:
    """The counts as lines."""
    lines = [
        f"{count:6}  {kind:8}  {result.failed[kind]} failed, {result.seconds[kind] / count:.0f} s each"
        for kind, count in sorted(result.trials.items())
    ]
    lines += ["", *(f"{count:6}  {what}" for what, count in sorted(result.done.items()))]
    lines += [f"        left out: {kind}: {why}" for kind, why in result.left_out.items()]
    tried, failed = result.trials.total(), result.failed.total()
    lines += ["", f"{tried} trials, {failed} of them failed", *result.failures]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=_WITHIN_S, help="no trial begins after so long (1200)")
    options.add_argument("--kind", action="append", choices=sorted(HARMS), help="this alone; may be repeated")
    options.add_argument("--seed", type=int, help="repeat this trial of each kind")
    options.add_argument("--workers", type=int, default=3, help="trials at a time; they wait a good deal (3)")
    options.add_argument("--json", action="store_true", help="one JSON object")
    arguments = options.parse_args()
    wanted = arguments.kind or list(HARMS)
    result = Result(left_out={kind: why for kind in wanted if (why := HARMS[kind].lacks())})
    kinds = [kind for kind in wanted if kind not in result.left_out]
    trials: Iterable[tuple[str, int]] = [(kind, arguments.seed) for kind in kinds]
    if arguments.seed is None:
        trials = draw(kinds, arguments.seconds, result, random.Random())
    root = Path(tempfile.mkdtemp(prefix="torture-"))
    run(trials, arguments.workers, root, result)
    if not result.failures:
        root.rmdir()
    names = ("trials", "failed", "done", "failures", "left_out")
    print(json.dumps({name: getattr(result, name) for name in names}) if arguments.json else table(result))
    sys.exit(1 if result.failures else 0)


if __name__ == "__main__":
    main()
