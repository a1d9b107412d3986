"""How often a question leads to the right session, on many sets: each half of the ranking, and both together.

    python bench/quality.py [--data DIR] [--keep DIR] [--most 4000] [--questions 200] [--only SET]... [--json FILE]

The first DIR holds the data that the user supplies, a folder for each set (bench/README.md); a set without data is left
out, and without DIR only installed code is asked about. Each set becomes a real archive with real indexes, embedded
with the built-in model and asked through the product's own engine; no network. Modes: `smart` (words), `semantic`
(meaning), `hybrid` (both, the default). MRR is the mean reciprocal rank. Beside hybrid stand the better of the two
halves and by how much hybrid is above it, with the interval that holds 95 of 100 such differences when the questions
are drawn anew (bootstrap). With `--keep`, a second run asks at once, as nothing has to be embedded again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench import quality_house, quality_sets
from daemon.embed.builtin import Builtin

MODES = ("smart", "semantic", "hybrid")
_DRAWN = 2000


def figures(places: Sequence[int]) -> tuple[float, float, float, float]:
    """hit@1, hit@5 and hit@10 in per cent, and the mean reciprocal rank; a place of 0 is not found."""
    ranks = np.array(places)
    hits = [float(100 * np.mean((ranks > 0) & (ranks <= most))) for most in (1, 5, 10)]
    return hits[0], hits[1], hits[2], float(reciprocal(places).mean())


def reciprocal(places: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Each question's reciprocal rank."""
    return np.array([1 / place if place else 0.0 for place in places])


def interval(ranks: Sequence[int], baseline: Sequence[int]) -> tuple[float, float]:
    """The middle 95 % of the difference of two MRRs over the same questions, drawn anew with replacement."""
    difference = reciprocal(ranks) - reciprocal(baseline)
    drawn = np.random.default_rng(0).integers(0, len(difference), (_DRAWN, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def table_row(name: str, places: dict[str, list[int]]) -> str:
    """One line of the table."""
    mrr = {mode: figures(mode_places)[3] for mode, mode_places in places.items()}
    better = max("smart", "semantic", key=lambda mode: mrr[mode])
    low, high = interval(places["hybrid"], places[better])
    columns = [
        f"{figures(places[mode])[0]:5.1f}{figures(places[mode])[1]:6.1f}{figures(places[mode])[2]:6.1f}{mrr[mode]:7.3f}"
        for mode in MODES
    ]
    difference = mrr["hybrid"] - mrr[better]
    return (
        f"{name:15}{len(places['hybrid']):5} |" + " |".join(columns) + f" | {better:8} {difference:+.3f}"
        f" ({low:+.3f} to {high:+.3f}){' WORSE' if high < 0 else ''}"
    )


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Ranking quality on many question sets")
    parser.add_argument("--data", type=Path, help="folder of the sets' data")
    parser.add_argument("--keep", type=Path, help="leave the archives here, and use what an earlier run left")
    parser.add_argument("--most", type=int, default=4000, help="texts of a set (turns, where they are conversations)")
    parser.add_argument("--questions", type=int, default=200, help="questions of a set")
    parser.add_argument("--only", action="append", help="a set by name; may be repeated")
    parser.add_argument("--json", type=Path, help="write each question's places here")
    return parser


def requested_sets(arguments: argparse.Namespace) -> Iterator[quality_house.QuestionSet]:
    """The requested sets that have data, one after the other; the others are named on standard error."""
    for name, read in quality_sets.sets(arguments.data, quality_sets.Size(arguments.most, arguments.questions)):
        if arguments.only and name not in arguments.only:
            continue
        if isinstance(read, str):
            print(f"{name}: left out: {read}", file=sys.stderr)
        else:
            yield read()


@contextmanager
def housed(
    question_set: quality_house.QuestionSet, arguments: argparse.Namespace, scratch: Path, embedder: Builtin
) -> Iterator[quality_house.House]:
    """The set's archive, in the folder that keeps it or in `scratch`."""
    place = (arguments.keep or scratch) / question_set.name.replace(", ", "-").replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    with quality_house.house(place, question_set.talks, embedder) as house:
        house.semantic.prepare()
        yield house


def main() -> None:
    arguments = options().parse_args()
    heads = "".join(f" {mode + ': hit@1 @5 @10 MRR':23} |" for mode in MODES)
    print(f"{'set':15}{'asked':>5} |{heads} hybrid beside the better half")
    places: dict[str, dict[str, list[int]]] = {}
    embedder = Builtin()
    for question_set in requested_sets(arguments):
        with (
            tempfile.TemporaryDirectory() as scratch,
            housed(question_set, arguments, Path(scratch), embedder) as house,
        ):
            places[question_set.name] = {mode: house.places(mode, question_set.questions) for mode in MODES}
        print(table_row(question_set.name, places[question_set.name]), flush=True)
        for note in sorted(house.notes):
            print(f"{'':15} note: {note}")
    if arguments.json:
        arguments.json.write_text(json.dumps(places))


if __name__ == "__main__":
    sys.exit(main())
