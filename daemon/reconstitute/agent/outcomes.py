"""What keeps a model from being asked twice: each question's outcome with its evidence, and each reply by its request.

A question is asked again when the target's evidence has changed, and with it what the model would be shown first; when
a message that it read has changed; or when another model answers. While the evidence is the same, a fuller index, or
none, is no reason. A question that ended at a limit is asked again when the limits change. One without a usable reply
is tried again after a day. One during which recall failed is tried again; most replies are cached by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

from daemon.archive import Archive
from daemon.chat import ChatModel, OnText, Reply, ToolCall
from daemon.model import Json, OllamaMessage
from daemon.reconstitute import answer
from daemon.reconstitute.agent.limits import PASSING
from daemon.reconstitute.answer import Answer, Record, Source, Statement
from daemon.records import digest, dumps

_PREFIX = "question:"
OUTDATED = "There is newer evidence than this answer has seen."
_TRY_AGAIN_MS = 86_400_000
CACHE_S = 30 * 86_400.0
_KIND = "chat"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question.

    `key` is the digest of the first messages, `evidence` of what they were made from. `model` is the model's
    fingerprint, `context` the context size in tokens that the first messages were made for. `read` maps the ids of the
    messages that the model read to hashes of their state. `time` is when it was asked (epoch ms). `descriptions` and
    `recorded` are by absolute path, `struck` by the key of the fact.
    """

    question_id: str
    key: str
    evidence: str
    model: str
    context: int
    answer: Answer
    ended: str
    read: dict[str, str]
    descriptions: dict[str, Statement] = field(default_factory=dict)
    recorded: dict[str, Source | None] = field(default_factory=dict)
    notes: tuple[Statement, ...] = ()
    struck: dict[str, Statement] = field(default_factory=dict)
    limits: str = ""
    """The limits, if one of them ended the question."""
    warnings: tuple[str, ...] = ()
    """What did not work while the model looked."""
    time: int = 0

    def is_as_read(self, archive: Archive) -> bool:
        """Whether every message that the model read is unchanged."""
        return all((archive.state(message_id) or {}).get("hash", "") == was for message_id, was in self.read.items())

    def may_stand(self, model: str, limits: str, now: int) -> bool:
        """Whether this model, within these limits, would end the same way, given the same evidence."""
        if self.model != model or self.warnings or (self.limits and self.limits != limits):
            return False
        return self.ended not in PASSING or now - self.time < _TRY_AGAIN_MS


class OutcomeStore:
    """The outcomes of one target; `suffix` tells those of another moment apart (``@`` and the time, or nothing)."""

    def __init__(self, archive: Archive, target: str, suffix: str) -> None:
        self._archive, self._target, self._suffix = archive, target, suffix

    def get(self, question_id: str) -> Outcome | None:
        """The outcome of a question; None where there is none, or a version before wrote it."""
        stored: Json | None = self._archive.target_get(self._target, self._name(question_id))
        return _loaded(stored)

    def put(self, outcome: Outcome) -> None:
        """Write it, unless it is kept already."""
        name, value = self._name(outcome.question_id), _to_json(outcome)
        if self._archive.target_get(self._target, name) != value:
            self._archive.target_put(self._target, name, value)

    def _name(self, question_id: str) -> str:
        return f"{_PREFIX}{question_id}{self._suffix}"


def outcomes(archive: Archive, target: str) -> Iterator[Outcome]:
    """All outcomes of a target, of every moment, in a stable order."""
    for name in archive.target_names(target, _PREFIX):
        outcome = _loaded(archive.target_get(target, name))
        if outcome is not None:
            yield outcome


def merged(outcomes: Iterable[tuple[Outcome, bool]]) -> Record:
    """The record of these outcomes, each given with whether it is current.

    Of two descriptions of a path, a current one goes before an outdated one, then the first before the next.
    """
    current_first = sorted(outcomes, key=lambda pair: not pair[1])
    answers: dict[str, Answer] = {}
    descriptions: dict[str, Statement] = {}
    recorded: dict[str, Source | None] = {}
    notes: dict[str, Statement] = {}
    struck: dict[str, Statement] = {}
    for outcome, is_current in current_first:
        answer_ = outcome.answer
        if not is_current:
            answer_ = replace(answer_, note=f"{answer_.note} {OUTDATED}".strip())
        answers[outcome.question_id] = answer_
        for path, statement in outcome.descriptions.items():
            descriptions.setdefault(path, statement if is_current else outdated(statement))
        for path, source in outcome.recorded.items():
            recorded.setdefault(path, source)
        for note in outcome.notes:
            notes.setdefault(note.text, note if is_current else outdated(note))
        for key, reason in outcome.struck.items():
            struck.setdefault(key, reason if is_current else outdated(reason))
    return Record(
        answers,
        descriptions,
        tuple(sorted(recorded.items(), key=lambda pair: pair[0])),
        tuple(notes.values()),
        struck=struck,
    )


def outdated(statement: Statement) -> Statement:
    """The statement, marked: there is newer evidence."""
    return replace(statement, reason=f"{statement.reason} {answer.OUTDATED}".strip())


def _to_json(outcome: Outcome) -> Json:
    return {
        "question": outcome.question_id,
        "key": outcome.key,
        "evidence": outcome.evidence,
        "model": outcome.model,
        "context": outcome.context,
        "answer": answer.to_json(outcome.answer),
        "ended": outcome.ended,
        "read": outcome.read,
        "descriptions": {path: answer.to_json(statement) for path, statement in outcome.descriptions.items()},
        "recorded": {path: source and asdict(source) for path, source in outcome.recorded.items()},
        "limits": outcome.limits,
        "warnings": list(outcome.warnings),
        "time": outcome.time,
        "notes": [answer.to_json(statement) for statement in outcome.notes],
        "struck": {key: answer.to_json(statement) for key, statement in outcome.struck.items()},
    }


def _loaded(stored: Json | None) -> Outcome | None:
    """The outcome; None where there is none, or another version wrote it: then the question is asked anew."""
    try:
        return None if stored is None else _from_json(stored)
    except (KeyError, TypeError):
        return None


def _from_json(stored: Json) -> Outcome:
    return Outcome(
        stored["question"],
        stored["key"],
        stored["evidence"],
        stored["model"],
        stored["context"],
        answer.answer(stored["answer"]),
        stored["ended"],
        stored["read"],
        {
            path: statement
            for path, value in stored["descriptions"].items()
            if (statement := answer.statement(value)).sources
        },
        {path: answer.source(value) for path, value in stored["recorded"].items()},
        answer.statements(stored["notes"]),
        {
            key: statement
            for key, value in stored.get("struck", {}).items()
            if (statement := answer.statement(value)).sources
        },
        stored["limits"],
        tuple(stored["warnings"]),
        stored["time"],
    )


class CachedModel:
    """A ChatModel over another, with its replies kept in the archive. `calls` counts those that reached it."""

    def __init__(self, model: ChatModel, archive: Archive) -> None:
        self._model, self._archive = model, archive
        self.calls = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def close(self) -> None:
        self._model.close()

    def chat(
        self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: OnText | None = None
    ) -> Reply:
        """As ChatModel's."""
        key = digest(self._model.fingerprint.encode(), dumps(list(messages)), dumps(list(tools)))
        stored = self._archive.cache_get(_KIND, key)
        if stored is not None:
            calls = tuple(ToolCall(name, json.loads(arguments)) for name, arguments in stored["calls"])
            return Reply(**stored | {"calls": calls})
        self.calls += 1
        reply = self._model.chat(messages, tools, on_text)
        fields = ("content", "thinking", "prompt_tokens", "reply_tokens")
        # As text, since the archive sorts names: what goes back to the model is to be what it wrote, to the letter.
        calls_text = [(call.name, json.dumps(call.arguments)) for call in reply.calls]
        self._archive.cache_put(_KIND, key, {f: getattr(reply, f) for f in fields} | {"calls": calls_text}, CACHE_S)
        return reply
