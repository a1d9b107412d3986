"""Whether what was left is spoken of again: compared by subjects, in any language.

A short prompt speaks of what it names, were it only one thing; a longer one of a thing where it shares two subjects
with it, or one that hardly any other prompt of the folder has. Pure, never raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from daemon.reconstitute.facts.language import cues, subjects
from daemon.reconstitute.facts.session_values import Ending, Reply, SessionFacts, Turn

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


class History:
    """All turns of a folder in order of time, indexed by the subjects of their prompts and last answers."""

    def __init__(self, sessions: Sequence[SessionFacts]) -> None:
        self.sessions = sessions
        self._pairs = sorted(
            ((facts, turn) for facts in sessions for turn in own_turns(facts)), key=lambda pair: pair[1].time
        )
        self._times = [turn.time for _, turn in self._pairs]
        self._prompts = [subjects.of(turn.prompt) for _, turn in self._pairs]
        self._answers = [_answer(turn) for _, turn in self._pairs]
        self._by_prompt = _index(self._prompts)
        self._by_answer = _index(self._answers)

    def after(self, time: int) -> Iterator[tuple[SessionFacts, Turn, frozenset[str]]]:
        """The turns after `time` with the subjects of their prompts."""
        for place in range(bisect_right(self._times, time), len(self._pairs)):
            yield (*self._pairs[place], self._prompts[place])

    def count(self, subject: str, time: int) -> tuple[int, int]:
        """How many prompts before `time`, and after, have a subject."""
        places = self._by_prompt.get(subject, [])
        return bisect_left(places, bisect_left(self._times, time)), len(places) - bisect_left(
            places, bisect_right(self._times, time)
        )

    def is_taken_up(self, text: str, time: int, most: int | None = None) -> bool:
        """Whether a later prompt names a subject of it, that at most so many prompts before had."""
        counts = (self.count(subject, time) for subject in subjects.of(text))
        return any(later and (most is None or earlier <= most) for earlier, later in counts)

    def is_dealt_with(self, text: str, time: int) -> bool:
        """Whether a later prompt names several of its subjects, or is a short one about one of them."""
        shared = _shared(self._by_prompt, subjects.of(text), bisect_right(self._times, time), len(self._times))
        return any(_is_about(number, self._prompts[place]) for place, number in shared.items())

    def is_said_again(self, text: str, time: int, share: float) -> bool:
        """Whether a later prompt has this share of its subjects, or a later answer, of several."""
        about, begin = subjects.of(text), bisect_right(self._times, time)
        asked = _shared(self._by_prompt, about, begin, len(self._times))
        told = _shared(self._by_answer, about, begin, len(self._times)) if len(about) >= _FEWEST_SUBJECTS else {}
        return any(number >= share * len(about) for number in (*asked.values(), *told.values()))

    def goes_back(self, said: frozenset[str], time: int) -> bool:
        """Whether a prompt before `time` has several of these subjects."""
        shared = _shared(self._by_prompt, said, 0, bisect_left(self._times, time))
        return any(number >= _FEWEST_SUBJECTS for number in shared.values())

    def is_rare(self, subject: str, request: Turn) -> bool:
        """Whether hardly any other prompt has it, nor an answer before the request."""
        before = bisect_left(self._by_answer.get(subject, []), bisect_left(self._times, request.time))
        return sum(self.count(subject, request.time)) + before <= _MOST_WITH_IT


def _answer(turn: Turn) -> frozenset[str]:
    return frozenset() if turn.taken_back or not turn.replies else subjects.of(turn.replies[-1].text)


def _index(said: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(said):
        for word in words:
            places[word].append(place)
    return dict(places)


def _shared(index: dict[str, list[int]], about: frozenset[str], begin: int, end: int) -> Counter[int]:
    """The places from `begin` to `end` that have some of these words, with how many."""
    found: Counter[int] = Counter()
    for places in (index.get(word, []) for word in about):
        found.update(places[bisect_left(places, begin) : bisect_left(places, end)])
    return found


def _is_about(shared: int, prompt: frozenset[str]) -> bool:
    return shared >= (1 if len(prompt) <= _SHORT_PROMPT else _FEWEST_SUBJECTS)


def again(request: Turn, history: History) -> tuple[SessionFacts, Turn] | None:
    """The first answered prompt that speaks of an earlier request again, be it to go on with it or to give it up."""
    wanted = subjects.of(_without_order(request.prompt))
    rare = {one for one in wanted if not _WITHOUT_BLANKS.search(one) and history.is_rare(one, request)}
    for facts, turn, said in history.after(request.time):
        is_answer = turn.prompt and turn.ending is Ending.ANSWERED and not turn.taken_back
        if is_answer and not facts.session.parent_id and (rare & said or _is_about(len(wanted & said), said)):
            return facts, turn
    return None


def _without_order(prompt: str) -> str:
    """A prompt without the verb that it begins with, which many a task has."""
    for language in cues.of(prompt):
        if (order := language.find("task", prompt)) is not None and order.start() == 0:
            return prompt[order.end() :]
    return prompt
