"""Whether what was left is spoken of again: compared by subjects, in any language.

A short prompt speaks of what it names, were it only one thing; a longer one of a thing where it shares two subjects
with it, or one that hardly any other prompt of the folder has. Pure, never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daemon.reconstitute.facts import cues, subjects
from daemon.reconstitute.facts.values import Ending, Reply, SessionFacts, Turn

_FEWEST_SUBJECTS = 2
_SHORT_PROMPT = 4
"""A prompt with so few subjects is about what it names, were it only one thing."""
_MOST_WITH_IT = 2
"""Prompts and earlier answers that may have a rare word, the one that speaks of it again among them."""
_WITHOUT_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""In these a pair of signs stands for a word, and one pair alone says little."""


def own_turns(facts: SessionFacts) -> tuple[Turn, ...]:
    """The turns of a session without those that it only copied from another one, and without compactions."""
    return tuple(turn for turn in facts.turns[facts.copied :] if not turn.is_compaction)


def standing(sessions: Sequence[SessionFacts], time: int) -> Iterator[tuple[SessionFacts, Turn]]:
    """All turns after `time` that no revert took back, each in its session."""
    for facts in sessions:
        yield from ((facts, turn) for turn in own_turns(facts) if turn.time > time and not turn.taken_back)


def last_reply(turn: Turn) -> Reply | None:
    """What an answer ends with; one that was stopped or failed ends anywhere."""
    if turn.ending is not Ending.ANSWERED:
        return None
    return next((reply for reply in reversed(turn.replies) if reply.text.strip()), None)


def is_taken_up(text: str, said: Sequence[frozenset[str]]) -> bool:
    """Whether anything said later names one of its subjects."""
    about = subjects.of(text)
    return any(about & one for one in said)


def is_dealt_with(text: str, prompts: Sequence[frozenset[str]]) -> bool:
    """Whether a later prompt names several of its subjects, or is a short one about one of them."""
    about = subjects.of(text)
    return any(len(about & one) >= (1 if len(one) <= _SHORT_PROMPT else _FEWEST_SUBJECTS) for one in prompts)


def again(request: Turn, sessions: Sequence[SessionFacts]) -> tuple[SessionFacts, Turn] | None:
    """The first answered prompt that speaks of an earlier request again, be it to go on with it or to give it up."""
    later = [
        (facts, turn)
        for facts, turn in standing([one for one in sessions if not one.session.parent_id], request.time)
        if turn.prompt and turn.ending is Ending.ANSWERED
    ]
    if not later:
        return None
    wanted = _without_order(request.prompt)
    others = list(map(subjects.of, _others(request, sessions)))
    rare = {
        subject
        for subject in subjects.of(wanted)
        if not _WITHOUT_BLANKS.search(subject) and sum(subject in one for one in others) <= _MOST_WITH_IT
    }
    for facts, turn in sorted(later, key=lambda pair: pair[1].time):
        said = subjects.of(turn.prompt)
        if rare & said or is_dealt_with(wanted, [said]):
            return facts, turn
    return None


def _others(request: Turn, sessions: Sequence[SessionFacts]) -> Iterator[str]:
    """All other prompts of the folder, and what the agent had said before: by these a word is rare or common."""
    for turn in (turn for facts in sessions if not facts.session.parent_id for turn in own_turns(facts)):
        if turn.message_ids != request.message_ids:
            yield turn.prompt
            yield from (reply.text for reply in turn.replies if reply.time < request.time)


def _without_order(prompt: str) -> str:
    """A prompt without the verb that it begins with, which many a task has."""
    for language in cues.of(prompt):
        if (order := language.find("task", prompt)) is not None and order.start() == 0:
            return prompt[order.end() :]
    return prompt
