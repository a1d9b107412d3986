"""One question about one target, from its evidence to its outcome.

Guarantees: the same evidence makes the same first messages, and their digest is the question's key; what a model says
reaches the outcome only through the tools, which check it; a question that ends at a limit has an outcome too, with
what was found until then and the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from daemon.chat import ChatModel, OnText
from daemon.chat.tokens import of_text
from daemon.model import OllamaMessage
from daemon.reconstitute.agent.context import BYTES_PER_TOKEN, Case, excerpts, question_message, system_message
from daemon.reconstitute.agent.context import VERSION as PROMPT_VERSION
from daemon.reconstitute.agent.context.facts import facts_block, prompts_block
from daemon.reconstitute.agent.context.ledger import Ledger, VerifiedNotes
from daemon.reconstitute.agent.limits import LIMITED, Ended, Limits, count_tokens, sendable_tokens
from daemon.reconstitute.agent.loop import Loop
from daemon.reconstitute.agent.outcomes import Outcome
from daemon.reconstitute.agent.tools import VERSION as TOOLS_VERSION
from daemon.reconstitute.agent.tools import Evidence, Holdings, Toolbox
from daemon.reconstitute.agent.tools.schemas import schemas
from daemon.reconstitute.agent.trajectory import Trajectory
from daemon.reconstitute.answer import Answer
from daemon.reconstitute.questions import CODE, DOCUMENTS, Question
from daemon.records import digest, dumps
from daemon.redact import redact

_DEFAULT = frozenset(question.id for question in (*CODE, *DOCUMENTS))
_SHARE_OF_EVIDENCE = 0.4
"""Of what fits into the model's context; the rest is for the tools and their results."""
_MOST_EVIDENCE = 20_000
_QUESTION_TOKENS = 300
"""For the question, which stands there twice, and a few facts."""
_SHARE_OF_FACTS = 0.5
"""Of the room for evidence; the rest is for the prompts, or for what recall finds."""
_FACTS = "Facts that code worked out from the records"
_PROMPTS = "The prompts of its sessions, oldest first"
_EXCERPTS = "Excerpts of recorded messages that may help, oldest first"
_LEAST_BYTES = 1024
"""Of a tool's result, however small the model's context is."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a question begins. `ledger` has what stands in it; `entries` are the facts in it, by key."""

    messages: tuple[OllamaMessage, ...]
    key: str
    evidence: str
    ledger: Ledger
    context_tokens: int
    entries: Mapping[str, str]


class QuestionRunner:
    """Asks about one case. `now` is epoch ms, for the trajectories; `clock` counts seconds."""

    def __init__(
        self,
        holdings: Holdings,
        case: Case,
        *,
        result_bytes: int,
        now: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._holdings, self._case = holdings, case
        self._result_bytes = result_bytes
        self._now, self._clock = now, clock

    def evidence(self, question: Question, path: str) -> str:
        """What the first messages are made from, short of making them: the same evidence, the same question."""
        case = self._case
        inputs = [PROMPT_VERSION, TOOLS_VERSION, question.ask, list(question.queries), path, case.moment]
        return digest(case.scope.fingerprint.encode(), dumps(inputs))

    def opening(self, question: Question, path: str, parts: Sequence[str], context_tokens: int) -> Opening:
        """The first messages, for a model with such a context; `parts` is what was found out about those of `path`.

        The questions that every target is asked begin with its facts and all of its prompts, a person's own with the
        facts and what recall finds for it, those about a part of it with what recall finds.
        """
        case, ledger = self._case, Ledger()
        limit = evidence_budget(sendable_tokens(context_tokens))
        verified = VerifiedNotes(self._holdings.archive, ledger)
        facts, entries, evidence, label = "", dict[str, str](), "", _EXCERPTS
        remaining = limit
        if path == case.path:
            facts, entries = facts_block(case.facts, verified, int(limit * _SHARE_OF_FACTS))
            remaining -= int(of_text(facts).most)
        if path == case.path and question.id in _DEFAULT:
            evidence, label = prompts_block(case.facts.sessions, verified, remaining), _PROMPTS
        if not evidence:
            evidence, label = (
                excerpts(self._holdings.archive, case, question, path, ledger=ledger, limit=remaining),
                _EXCERPTS,
            )
        outline = case.outline(path)
        if label == _PROMPTS:  # which are not all there is: any newer message is a reason to ask again
            outline.insert(0, f"state of the records: {case.scope.fingerprint[:12]}")
        outline, earlier_parts = _within(outline, limit // 3), _within(parts, limit // 3)
        blocks = [(_FACTS, facts), (label, evidence)]
        first = question_message(redact(question.ask), redact(path), outline, earlier_parts, blocks)
        messages = (system_message(), first)
        key = digest(dumps([PROMPT_VERSION, TOOLS_VERSION, list(messages), case.moment]))
        return Opening(messages, key, self.evidence(question, path), ledger, context_tokens, entries)

    def ask(
        self,
        model: ChatModel,
        question: Question,
        opening: Opening,
        *,
        limits: Limits,
        recorded_paths: Iterable[str],
        pulse: OnText,
    ) -> Outcome:
        """The outcome. `recorded_paths` are paths that were recorded for other questions.

        Raises:
            ModelUnavailable: ask again later; replies that came until then are not asked for again.
        """
        case = self._case
        evidence = Evidence(
            self._holdings, case.scope, case.histories, case.path, moment=case.moment, ledger=opening.ledger
        )
        most_bytes = evidence_budget(sendable_tokens(opening.context_tokens)) * BYTES_PER_TOKEN
        toolbox = Toolbox(
            evidence,
            result_bytes=max(_LEAST_BYTES, min(self._result_bytes, most_bytes)),
            recorded_paths=recorded_paths,
            question_id=question.id,
            entries=opening.entries,
        )
        about = {"id": question.id + case.suffix, "ask": question.ask}
        trajectory = Trajectory(self._holdings.archive, case.path, about, model.name, self._now)
        loop = Loop(model, toolbox, limits, trajectory, pulse=pulse, clock=self._clock)
        ended = loop.run(opening.messages)
        return Outcome(
            question.id,
            opening.key,
            opening.evidence,
            model.fingerprint,
            opening.context_tokens,
            _answer(toolbox, question, model.name, ended),
            ended.value,
            opening.ledger.hashes(self._holdings.archive),
            dict(toolbox.descriptions),
            dict(toolbox.recorded),
            tuple(toolbox.notes),
            dict(toolbox.struck),
            str(limits) if ended in LIMITED else "",
            tuple(toolbox.warnings),
            self._now(),
        )


def evidence_budget(room_tokens: int) -> int:
    """How many tokens of facts, prompts and excerpts a question begins with; `room_tokens` is all that may be sent.

    In a small context the instructions and tools take most of it. The evidence then gets at most half of the rest, so
    that a tool's result fits beside it.
    """
    available = max(0, room_tokens - _constant_tokens() - _QUESTION_TOKENS)
    return min(_MOST_EVIDENCE, int(room_tokens * _SHARE_OF_EVIDENCE), available // 2)


@cache
def _constant_tokens() -> int:
    """Tokens of our instructions and the tools' descriptions."""
    return count_tokens([system_message()], schemas())


def _answer(toolbox: Toolbox, question: Question, model: str, ended: Ended) -> Answer:
    """What was accepted; where a limit came before that, what had passed the check when the rest was sent back."""
    if toolbox.answer is not None:
        return toolbox.answer.answer(question.id, model)
    reason = f": {toolbox.finished}" if toolbox.finished else ""
    note = f"Not answered in the end, because {ended.value}{reason}."
    if toolbox.returned is None:
        return Answer(question.id, (), model=model, note=note)
    return replace(toolbox.returned.answer(question.id, model), note=note)


def _within(lines: Sequence[str], limit: int) -> list[str]:
    """The first lines that have room in `limit` tokens, and how many were left out."""
    fitting: list[str] = []
    for line in lines:
        limit -= int(of_text(line).most) + 2
        if limit < 0:
            return [*fitting, f"(and {len(lines) - len(fitting)} more, for which there is no room)"]
        fitting.append(line)
    return fitting
