"""The record of how a question was answered: every message of it, saved after every step.

Guarantees: a crash loses at most the step under way; a run that was cut short is taken up in the same record; of each
target only the newest are kept. What was said stands in it as the model saw and said it, thinking included; whoever
shows it redacts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from daemon.archive import Archive
from daemon.model import Json, OllamaMessage

_PREFIX = "trajectory:"
RUNNING = "running"


class Trajectory:
    """One question's record. `clock` is epoch ms."""

    def __init__(self, archive: Archive, target: str, question: Json, model: str, clock: Callable[[], int]) -> None:
        """`question` is ``{id, ask}``. A record of the same question that was left running is taken up again."""
        self._archive, self._target, self._clock = archive, target, clock
        cut = [each for each in read(archive, target) if each["state"] == RUNNING and each["question"] == question]
        started = cut[-1]["started"] if cut else self._free(clock())
        self._name = _name(started, question["id"])
        resumed = cut[-1]["resumed"] + 1 if cut else 0
        self._record: Json = {
            "question": question, "model": model, "started": started, "resumed": resumed, "state": RUNNING,
            "steps": 0, "tokens": 0, "seconds": 0.0, "messages": [],
        }  # fmt: skip
        self.thoughts: dict[int, str] = {}
        """What the model thought before the message at this place, where it tells."""

    def _free(self, started: int) -> int:
        """Two questions of one millisecond have two records."""
        taken = {int(name.split(":")[1]) for name in self._archive.target_names(self._target, _PREFIX)}
        while started in taken:
            started += 1
        return started

    def save(self, messages: Sequence[OllamaMessage], *, steps: int, tokens: int, seconds: float) -> None:
        """After a step."""
        told = [m | {"thinking": self.thoughts[n]} if n in self.thoughts else m for n, m in enumerate(messages)]
        self._record |= {"messages": told, "steps": steps, "tokens": tokens, "seconds": round(seconds, 3)}
        self._archive.target_put(self._target, self._name, self._record)

    def end(self, why: str) -> None:
        """It will not go on."""
        self._record |= {"state": why, "ended": self._clock()}
        self._archive.target_put(self._target, self._name, self._record)


def read(archive: Archive, target: str) -> list[Json]:
    """Every trajectory kept of a target, oldest first."""
    found: list[Any] = [archive.target_get(target, name) for name in archive.target_names(target, _PREFIX)]
    return [each for each in found if each is not None]


def trim(archive: Archive, target: str, most: int) -> None:
    """Keep the newest `most` of a target."""
    names = archive.target_names(target, _PREFIX)
    if len(names) > most:
        archive.target_drop(target, names[:-most])


def _name(started: int, question_id: str) -> str:
    return f"{_PREFIX}{started:013d}:{question_id}"
