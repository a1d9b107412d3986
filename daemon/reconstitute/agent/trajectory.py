"""The record of how a question was answered: every message of it, saved after every step.

Guarantees: a crash loses at most the step under way; a run that was cut short is taken up in the same record; of each
target only the newest are kept; each step writes only what is new, and one record's messages never take more than
`MOST_BYTES`. What was said stands in it as the model saw and said it, thinking included; whoever shows it redacts it.

A record is a small head, and for each save one list of the messages that were new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.model import Json, OllamaMessage

_PREFIX = "trajectory:"
_MESSAGE_PREFIX = "said:"
RUNNING = "running"
WAITING = "waiting: "
"""What a head's state begins with when the model went away; the reason follows."""
MOST_BYTES = 4_000_000
"""Of one record's messages."""
_WHOLE_BYTES = 3_500_000
"""From here on messages are cut, so that also the end of a long run is seen."""
_CUT_CHARS = 300
_CUT = "… (cut: this record is full)"
_REASON = 300


class Trajectory:
    """One question's record. `clock` is epoch ms."""

    def __init__(self, archive: Archive, target: str, question: Json, model: str, clock: Callable[[], int]) -> None:
        """`question` is ``{id, ask}``. A record of the same question that was cut short is taken up again."""
        self._archive, self._target, self._clock = archive, target, clock
        interrupted = [
            head for head in read(archive, target) if _is_open(head["state"]) and head["question"] == question
        ]
        started = interrupted[-1]["started"] if interrupted else self._free(clock())
        self._name = f"{_PREFIX}{started:013d}:{question['id']}"
        resumed = interrupted[-1]["resumed"] + 1 if interrupted else 0
        self._head: Json = {
            "question": question, "model": model, "started": started, "resumed": resumed, "state": RUNNING,
            "steps": 0, "tokens": 0, "seconds": 0.0, "count": 0,
        }  # fmt: skip
        self._saves = 0
        self._bytes = 0
        self.thoughts: dict[int, str] = {}
        """What the model thought before the message at this place, where it tells."""

    def _free(self, started: int) -> int:
        """Two questions of one millisecond have two records."""
        used = {_started(name) for name in self._archive.target_names(self._target, _PREFIX)}
        while started in used:
            started += 1
        return started

    def save(self, messages: Sequence[OllamaMessage], *, steps: int, tokens: int, seconds: float) -> None:
        """After a step; `messages` are all so far, of which those that were saved before are not looked at."""
        begin: int = self._head["count"]
        new = [
            self._bounded(message | {"thinking": self.thoughts[n]} if n in self.thoughts else message)
            for n, message in enumerate(messages[begin:], begin)
        ]
        entries = [message for message in new if message is not None]
        self._head |= {"count": len(messages), "steps": steps, "tokens": tokens, "seconds": round(seconds, 3)}
        values: dict[str, Any] = {self._name: self._head}
        # A run that was cut short says everything again.
        outdated = _message_names(self._archive, self._target, self._head["started"]) if not self._saves else []
        if entries:
            values[f"{_MESSAGE_PREFIX}{self._head['started']:013d}:{self._saves:06d}"] = entries
        self._saves += 1
        self._archive.target_put_all(self._target, values, drop=outdated)

    def _bounded(self, message: OllamaMessage) -> OllamaMessage | None:
        """A message as it is stored: whole, or cut, or not at all, by how full the record is."""
        size = len(records.dumps(message))
        if self._bytes + size > _WHOLE_BYTES:
            message = _shortened(message)
            size = len(records.dumps(message))
        if self._bytes + size > MOST_BYTES:
            return None
        self._bytes += size
        return message

    def wait(self, reason: str) -> None:
        """The model went away; the question is to be asked again."""
        self._store({"state": f"{WAITING}{reason[:_REASON]}"})

    def end(self, why: str) -> None:
        """It will not go on."""
        self._store({"state": why, "ended": self._clock()})

    def _store(self, fields: Json) -> None:
        self._head |= fields
        self._archive.target_put(self._target, self._name, self._head)


def read(archive: Archive, target: str) -> list[Json]:
    """The head of every trajectory kept of a target, oldest first: ``{question, model, started, resumed, state, steps,
    tokens, seconds, count, ended?}``, `count` being of its messages.
    """
    heads: list[Any] = [archive.target_get(target, name) for name in archive.target_names(target, _PREFIX)]
    # One that lacks the count was written before heads stood alone: no course is to be read of it any more.
    return [head for head in heads if head is not None and "count" in head]


def messages(archive: Archive, target: str, started: int) -> list[OllamaMessage]:
    """What was said in the one that began then, with ``thinking`` where the model told; empty where there is none."""
    saves: list[Any] = [archive.target_get(target, name) for name in _message_names(archive, target, started)]
    return [message for saved in saves if saved is not None for message in saved]


def trim(archive: Archive, target: str, limit: int) -> None:
    """Keep the newest `limit` of a target."""
    names = archive.target_names(target, _PREFIX)
    if len(names) > limit:
        retained = {_started(name) for name in names[-limit:]}
        outdated = [name for name in archive.target_names(target, _MESSAGE_PREFIX) if _started(name) not in retained]
        archive.target_drop(target, [*names[:-limit], *outdated])


def _message_names(archive: Archive, target: str, started: int) -> list[str]:
    return archive.target_names(target, f"{_MESSAGE_PREFIX}{started:013d}:")


def _started(name: str) -> int:
    return int(name.split(":")[1])


def _is_open(state: str) -> bool:
    return state == RUNNING or state.startswith(WAITING)


def _shortened(message: OllamaMessage) -> OllamaMessage:
    """The beginning of a message, and which tools it called."""
    shortened: Json = {"role": message["role"], "content": f"{str(message.get('content') or '')[:_CUT_CHARS]}{_CUT}"}
    if message.get("tool_name"):
        shortened["tool_name"] = str(message["tool_name"])[:_CUT_CHARS]
    if message.get("tool_calls"):
        names = [str(call["function"]["name"])[:_CUT_CHARS] for call in message["tool_calls"][:16]]
        shortened["tool_calls"] = [{"function": {"name": name, "arguments": {}}} for name in names]
    return shortened
