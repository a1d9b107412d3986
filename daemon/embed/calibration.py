"""Maps a model's cosines to those of the built-in model, with which the rules of the ranking were measured.

Models differ in their cosines: those of unrelated texts are about 0.02 with the built-in model and 0.7 with the e5
family. So we embed a fixed set of questions and answers once per model. Four quantiles of its cosines are mapped to
those of the built-in model, with linear interpolation between them. The order of cosines never changes, and those of
the built-in model stay the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daemon.embed import Embedder
from daemon.errors import BadInput, ModelUnavailable

VERSION = 1
"""Raise it when PAIRS or a prefix in `known_models` changes: models are then measured again."""

PAIRS = (
    ("Why do the tests fail on the build server?", "The pipeline breaks since two checks need a display there."),
    ("Which database do we use?", "We settled on PostgreSQL because it has transactions and good tooling."),
    ("How can I undo my last commit?", "git reset --soft HEAD~1 takes it back and keeps your changes staged."),
    ("What makes the page load so slowly?", "Every image is 4 MB; compress them and the site opens in a second."),
    ("How do I cook rice?", "Rinse the grains, add twice as much water, and let it simmer for fifteen minutes."),
    ("Where did Anna go on holiday?", "She spent two weeks hiking in the mountains of Norway last summer."),
    ("Is my password stored safely?", "Credentials are hashed with argon2 and a salt for each user."),
    ("What is the capital of Australia?", "Canberra, although many people think it is Sydney."),
    ("How do I rename a column in pandas?", "df.rename(columns={'old': 'new'}) returns a frame with the other header."),
    ("Who won the football match?", "The home team scored twice in the second half and took the cup."),
    ("Can you add a dark theme?", "I made a switch in the settings that inverts the colours for night."),
    ("What should I do against a headache?", "Drink water, rest in a dark room, and take aspirin if the pain stays."),
    ("Why does the program run out of memory?", "The cache never drops entries, so the heap grows until it is killed."),
    ("How does a plane stay in the air?", "Air flows faster above the wings, so lift carries the aircraft."),
    ("Please write documentation for the parser.", "The README now explains the grammar and how to call parse()."),
    ("What does the cat eat?", "My kitten gets tinned fish in the morning and dry food at night."),
    ("How much does the subscription cost?", "The plan is nine euros a month, or ninety if you pay for a year."),
    ("Which port does the server listen on?", "It binds to 8080 unless PORT is set in the environment."),
    ("When was the bridge built?", "Construction of the river crossing ended in 1932 after six years."),
    ("How do plants make sugar?", "Leaves turn sunlight, water and carbon dioxide into glucose by photosynthesis."),
    ("How do I sort a list in reverse?", "sorted(items, reverse=True) gives the elements in descending order."),
    ("What did the customer complain about?", "He wrote that the parcel came late and the lamp in it was broken."),
    ("Who plays the guitar in your band?", "My brother does; he has taken music lessons since he was seven."),
    ("Does the shell script work on macOS?", "Not yet: BSD sed wants an argument after -i, so it stops on Apple's."),
)  # fmt: skip
"""Questions, each with its answer; all other answers are unrelated."""

BUILT_IN = (0.024, 0.1427, 0.4646, 0.6823)
"""The result of `measure` for the built-in model."""
_UNRELATED, _RELATED = (0.5, 0.95), (0.5, 0.9)
"""The measured quantiles."""
_STEP = 1e-3
"""Cosines that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Two ascending series of cosines: the model's own, and those of the built-in model."""

    own: tuple[float, ...] = (-1.0, 1.0)
    usual: tuple[float, ...] = (-1.0, 1.0)
    is_telling: bool = True
    """Whether the model finds most related texts more similar than unrelated ones."""

    def __call__(self, cosine: float) -> float:
        """A cosine of this model as the built-in model's."""
        return float(np.interp(cosine, self.own, self.usual))


def measure(embedder: Embedder) -> tuple[float, ...]:
    """Quantiles of the cosines of unrelated texts, then of related ones.

    Raises:
        ModelUnavailable: the server is down or lacks the model, or it has no vector for most of the texts.
    """
    answers = embedder.embed([answer for _, answer in PAIRS])
    questions = [embedder.embed_query(question) for question, _ in PAIRS]
    related: list[float] = []
    unrelated: list[float] = []
    for (i, question), (j, answer) in itertools.product(enumerate(questions), enumerate(answers)):
        if not isinstance(question, BadInput) and not isinstance(answer, BadInput):
            (related if i == j else unrelated).append(float(np.dot(question, answer)))
    if len(related) <= len(PAIRS) // 2:
        reason = next(vector for vector in (*questions, *answers) if isinstance(vector, BadInput))
        raise ModelUnavailable(f"{embedder.name} has no vectors for plain sentences: {reason}; choose another model")
    measured = (*np.quantile(unrelated, _UNRELATED), *np.quantile(related, _RELATED))
    return tuple(round(float(cosine), 4) for cosine in measured)


def calibration(measured: Sequence[float]) -> Calibration:
    """The calibration of a model from the result of `measure`.

    If related texts are no more similar than unrelated ones, only the latter are mapped, because noise is no meaning.
    """
    middle, upper, related, _ = measured
    is_telling = related > upper > middle - _STEP
    points = [(-1.0, -1.0)]
    for own, usual in zip(measured if is_telling else (middle, upper), BUILT_IN, strict=False):
        if points[-1][0] + _STEP <= own:
            points.append((own, usual))
    if points[-1][0] + _STEP <= 1.0:
        points.append((1.0, 1.0))
    return Calibration(tuple(own for own, _ in points), tuple(usual for _, usual in points), is_telling)
