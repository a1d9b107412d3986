"""What a text is about, and whether later prompts or answers are about it, too.

A text's subjects are its words without the commonest ones, in a form in which two texts can be compared. A short prompt
is about everything that it names. A longer one is about a thing if it shares two subjects with it, or one that hardly
any other prompt of the folder has. Pure, never raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from daemon.reconstitute.facts.language import cues, sentences
from daemon.reconstitute.facts.session_values import Ending, Reply, SessionFacts, Turn

_STEM = 5
_KANA_ONLY = re.compile(r"[\u3040-\u309f]+")
"""Endings and particles of Japanese, which say nothing of the subject."""
_FEWEST_SUBJECTS = 2
_SHORT_PROMPT = 4
"""A prompt with so few subjects is about each of them."""
_MOST_WITH_RARE = 2
"""So many prompts and earlier answers may have a rare word, including the prompt that repeats it."""
_WITHOUT_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""In these scripts a pair of characters stands for a word, and one pair alone says little."""


def stems(text: str) -> frozenset[str]:
    """The beginnings of its words, so that "tests" and "test" are the same."""
    pieces = (piece for word in sentences.words(text) for piece in (word, *word.replace("/", ".").split(".")))
    return frozenset(_stem(piece) for piece in pieces if piece)


@lru_cache(maxsize=8192)
def of(text: str) -> frozenset[str]:
    """The stems of its words without the small words of any known language."""
    small = cues.small()
    return stems(
        " ".join(word for word in sentences.words(text) if word not in small and not _KANA_ONLY.fullmatch(word))
    )


def _stem(word: str) -> str:
    return word[:_STEM].rstrip("s") or word


# -- whether it is mentioned again -------------------------------------------------------------------------------


def last_reply(turn: Turn) -> Reply | None:
    """The last text of a whole answer; an answer that was stopped or failed has none."""
    if turn.ending is not Ending.ANSWERED:
        return None
    return next((reply for reply in reversed(turn.replies) if reply.text.strip()), None)


class History:
    """All turns of a folder in order of time, indexed by the subjects of their prompts and last answers."""

    def __init__(self, sessions: Sequence[SessionFacts]) -> None:
        self.sessions = sessions
        self._pairs = sorted(
            ((facts, turn) for facts in sessions for turn in facts.exchanges), key=lambda pair: pair[1].time
        )
        self._times = [turn.time for _, turn in self._pairs]
        self._prompts = [of(turn.prompt) for _, turn in self._pairs]
        self._answers = [_answer(turn) for _, turn in self._pairs]
        self._by_prompt = _index(self._prompts)
        self._by_answer = _index(self._answers)

    def after(self, time: int) -> Iterator[tuple[SessionFacts, Turn, frozenset[str]]]:
        """The turns after `time` with the subjects of their prompts."""
        for place in range(bisect_right(self._times, time), len(self._pairs)):
            yield (*self._pairs[place], self._prompts[place])

    def count(self, subject: str, time: int) -> tuple[int, int]:
        """How many prompts before `time`, and how many after, have a subject."""
        places = self._by_prompt.get(subject, [])
        return bisect_left(places, bisect_left(self._times, time)), len(places) - bisect_left(
            places, bisect_right(self._times, time)
        )

    def is_taken_up(self, text: str, time: int, limit: int | None = None) -> bool:
        """Whether a later prompt names a subject of `text`, one that at most `limit` earlier prompts had."""
        counts = (self.count(subject, time) for subject in of(text))
        return any(later and (limit is None or earlier <= limit) for earlier, later in counts)

    def is_dealt_with(self, text: str, time: int) -> bool:
        """Whether a later prompt names several subjects of `text`, or is a short one about one of them."""
        shared = _shared(self._by_prompt, of(text), bisect_right(self._times, time), len(self._times))
        return any(_is_about(number, self._prompts[place]) for place, number in shared.items())

    def is_said_again(self, text: str, time: int, share: float) -> bool:
        """Whether a later prompt has this share of the subjects of `text`; or, if it has several, a later answer."""
        about, begin = of(text), bisect_right(self._times, time)
        prompts = _shared(self._by_prompt, about, begin, len(self._times))
        answers = _shared(self._by_answer, about, begin, len(self._times)) if len(about) >= _FEWEST_SUBJECTS else {}
        return any(number >= share * len(about) for number in (*prompts.values(), *answers.values()))

    def goes_back(self, about: frozenset[str], time: int) -> bool:
        """Whether a prompt before `time` has several of these subjects."""
        shared = _shared(self._by_prompt, about, 0, bisect_left(self._times, time))
        return any(number >= _FEWEST_SUBJECTS for number in shared.values())

    def is_rare(self, subject: str, request: Turn) -> bool:
        """Whether hardly any other prompt has a subject, nor an answer before the request."""
        before = bisect_left(self._by_answer.get(subject, []), bisect_left(self._times, request.time))
        return sum(self.count(subject, request.time)) + before <= _MOST_WITH_RARE


def _answer(turn: Turn) -> frozenset[str]:
    return frozenset() if turn.taken_back or not turn.replies else of(turn.replies[-1].text)


def _index(texts: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, about in enumerate(texts):
        for subject in about:
            places[subject].append(place)
    return dict(places)


def _shared(index: dict[str, list[int]], about: frozenset[str], begin: int, end: int) -> Counter[int]:
    """The places from `begin` to `end` that have some of these subjects, with how many."""
    counts: Counter[int] = Counter()
    for places in (index.get(subject, []) for subject in about):
        counts.update(places[bisect_left(places, begin) : bisect_left(places, end)])
    return counts


def _is_about(shared: int, prompt: frozenset[str]) -> bool:
    return shared >= (1 if len(prompt) <= _SHORT_PROMPT else _FEWEST_SUBJECTS)


def again(request: Turn, history: History) -> tuple[SessionFacts, Turn] | None:
    """The first answered prompt that mentions an earlier request again, to go on with it or to give it up."""
    subjects = of(_without_order(request.prompt))
    rare = {word for word in subjects if not _WITHOUT_BLANKS.search(word) and history.is_rare(word, request)}
    for facts, turn, about in history.after(request.time):
        is_answered = turn.prompt and turn.ending is Ending.ANSWERED and not turn.taken_back
        if is_answered and not facts.session.parent_id and (rare & about or _is_about(len(subjects & about), about)):
            return facts, turn
    return None


def _without_order(prompt: str) -> str:
    """A prompt without the verb that it begins with, because many tasks share that."""
    for language in cues.of(prompt):
        if (order := language.find("task", prompt)) is not None and order.start() == 0:
            return prompt[order.end() :]
    return prompt
