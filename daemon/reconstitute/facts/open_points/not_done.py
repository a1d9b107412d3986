"""What the answers say was not done, not tried or is only provisional, and that nothing has dealt with since.

Who goes on with something else has not dealt with it; who answers it in the next prompt has, be it in a word or two, by
a word of the answer, or by having the same files changed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from daemon.reconstitute.facts.language import cues, mentions, sentences, subjects, unchecked
from daemon.reconstitute.facts.language.mentions import History
from daemon.reconstitute.facts.open_points import questions
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.shell import outcomes
from daemon.reconstitute.facts.values import OpenKind, OpenPoint

_MOST_KEPT = 16_384
"""Sentences whose reading is kept: a service reads the same ones again with every message."""
_FEWEST_SUBJECTS = 2
"""A sentence with no more subjects says nothing of itself."""
_SHORT = 4
"""Words of a first sentence that may be all that is said to the answer before."""
_SAID_AGAIN = 0.6
"""A later answer with this share of its subjects tells more of it."""
_WORD = re.compile(r"[^\W_]+")

Found = tuple[OpenPoint, str]
"""A point with the sentence of the answer that says it, without the one before it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """When files last changed, commands last passed, a file with a word in its name was made; and broken requests."""

    history: History
    changed: dict[str, int]
    passed: dict[tuple[str, ...], int]
    names: dict[str, int]
    broken: list[tuple[int, frozenset[str]]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer with its sentences, its turn and the turns of its session after it."""

    facts: SessionFacts
    turn: Turn
    reply: Reply
    said: Sequence[sentences.Sentence]
    following: Sequence[Turn]
    known: _Known

    @property
    def asks(self) -> bool:
        """Whether it ends with a question or an offer."""
        return any(one.is_question for one in self.said[-questions.LAST_SENTENCES :])

    def point(self, text: str, detail: str = "") -> OpenPoint:
        time = self.reply.time
        citation = Citation(self.facts.id, self.reply.message_id, time, text)
        return OpenPoint(OpenKind.NOT_DONE, text, time, citation, detail)


def find(history: History) -> Iterator[Found]:
    """All of a folder; a sub-agent reports to the agent, whose answer counts."""
    known = _known(history)
    for facts in history.sessions:
        turns = () if facts.session.parent_id else mentions.own_turns(facts)
        for place, turn in enumerate(turns):
            reply = mentions.last_reply(turn)
            if reply is not None and not turn.taken_back:
                answer = _Answer(facts, turn, reply, sentences.split(reply.text), turns[place + 1 :], known)
                yield from _not_done(answer)
                yield from _provisional(answer)


def _known(history: History) -> _Known:
    turns = [turn for facts in history.sessions for turn in mentions.own_turns(facts)]
    calls = [call for turn in turns if not turn.taken_back for call in turn.calls]
    made: dict[str, int] = {}
    changed: dict[str, int] = {}
    passed: dict[tuple[str, ...], int] = {}
    for call in sorted(calls, key=lambda call: call.started):
        for path in call.changed:
            made.setdefault(path, call.started)
            changed[path] = call.started
        if call.command:
            passed |= dict.fromkeys((run.key for run in outcomes.passed(call)), call.started)
    names: dict[str, int] = {}
    for path, time in made.items():
        for word in subjects.stems(" ".join(_WORD.findall(path.rsplit("/", 1)[-1]))):
            names[word] = max(time, names.get(word, time))
    broken = [
        (turn.time, subjects.of(turn.prompt))
        for facts in history.sessions
        if not facts.session.parent_id
        for turn in mentions.own_turns(facts)
        if turn.prompt and turn.ending is not Ending.ANSWERED
    ]
    return _Known(history, changed, passed, names, broken)


def _not_done(answer: _Answer) -> Iterator[Found]:
    reply, history = answer.reply, answer.known.history
    undone = [place for place, one in enumerate(answer.said) if _says_undone(one, reply.text)]
    still = sorted(set(undone) - _refused(answer, undone))
    if not still or _succeeded_later(answer):
        return
    reaction = next((turn for turn in answer.following if not _only_asks(turn)), None)
    if reaction is not None and _answers_all(reaction, answer):
        return
    near = [subjects.of(turn.prompt) for turn in answer.following[: _place(reaction, answer.following)]]
    if reaction is None and answer.asks:
        near.append(subjects.of(questions.following(history.sessions, reply.time)))
    given_up = _given_up(answer)
    for place in still:
        one = answer.said[place].text
        about = subjects.of(one)
        text = _with_context(answer, place, undone)
        if any(about & said for said in near) or any(sentences.share(about, said) >= _SAID_AGAIN for said in given_up):
            continue
        if history.is_dealt_with(one, reply.time) or history.is_said_again(one, reply.time, _SAID_AGAIN):
            continue
        has_new_file = any(answer.known.names.get(word, 0) > answer.turn.ended for word in about)
        if not has_new_file and not (text != one and history.is_said_again(text, reply.time, _SAID_AGAIN)):
            yield answer.point(text), one


def _refused(answer: _Answer, undone: Sequence[int]) -> set[int]:
    """Which sentences say what became of a call of the turn that was refused: that one is told as such, and settled.

    Those are that share most words with it, or the only one of an answer right after it, in whatever words.
    """
    calls = answer.turn.calls
    said = [subjects.of(answer.said[place].text) for place in undone]
    found: set[int] = set()
    for call in (one for one in calls if one.status is CallStatus.REFUSED):
        about = subjects.of(f"{call.title} {call.command} {call.error}")
        shared = [len(about & words) for words in said]
        most = max(shared, default=0)
        found.update(place for place, number in zip(undone, shared, strict=True) if most and number == most)
    if len(undone) == 1 and calls and calls[-1].status is CallStatus.REFUSED:
        found.update(undone)
    return found


def _place(reaction: Turn | None, following: Sequence[Turn]) -> int:
    return len(following) if reaction is None else following.index(reaction) + 1


def _answers_all(reaction: Turn, answer: _Answer) -> bool:
    """Whether the next prompt of a session deals with the whole answer before it.

    It does in a word or two, in a first sentence of few, where nothing was to be done after it, where it answers a
    question, and where the same files are changed again or the program that failed succeeds.
    """
    if not reaction.prompt:
        return False  # a revert removed it
    if questions.is_nod(reaction.prompt) or _begins_shortly(reaction.prompt):
        return True
    if not reaction.calls and reaction.ending is Ending.ANSWERED:
        return True
    if answer.asks:
        return not questions.is_other_matter(reaction, answer.turn, answer.known.history)
    changed = {path for call in answer.turn.calls for path in call.changed}
    again = () if reaction.taken_back else reaction.calls
    return any(not changed.isdisjoint(call.changed) for call in again) or not _programs(
        answer.turn.calls, CallStatus.FAILED
    ).isdisjoint(_programs(again, CallStatus.OK))


def _programs(calls: Sequence[Call], status: CallStatus) -> frozenset[str]:
    """The programs of the commands that ended so."""
    ended = [run for call in calls if call.command for run in outcomes.of_call(call)]
    return frozenset(run.program.name for run in ended if run.status is status)


def _begins_shortly(prompt: str) -> bool:
    pieces = sentences.split(prompt)
    return len(pieces) > 1 and questions.length(pieces[0].text) <= _SHORT


def _given_up(answer: _Answer) -> list[frozenset[str]]:
    """The subjects of the unanswered requests that the prompt of a turn speaks of again: it may have given them up."""
    said = subjects.of(answer.turn.prompt)
    return [about for time, about in answer.known.broken if time < answer.turn.time and said & about]


def _with_context(answer: _Answer, place: int, undone: Sequence[int]) -> str:
    """A sentence, with the one before it where it begins with a pronoun, or has hardly a word of its own."""
    one = answer.said[place]
    is_bare = len(subjects.of(one.text)) <= _FEWEST_SUBJECTS or unchecked.refers_back(one, answer.reply.text)
    if not is_bare or not place or place - 1 in undone or answer.said[place - 1].is_question:
        return one.text
    whole = " ".join(answer.reply.text.split())
    joined = (f"{answer.said[place - 1].text}{blank}{one.text}" for blank in (" ", ""))
    return next((text for text in joined if text in whole), one.text)


def _provisional(answer: _Answer) -> Iterator[Found]:
    """What an answer calls provisional, or wants somebody to look at, until a later turn is about it or its files."""
    text, known = answer.reply.text, answer.known
    pending = [one for one in answer.said if unchecked.is_pending(one, text) and not _says_undone(one, text)]
    changed = {path for call in answer.turn.calls for path in call.changed}
    if not pending or any(known.changed.get(path, 0) > answer.turn.ended for path in changed):
        return
    for one in pending:
        if not known.history.is_dealt_with(one.text, answer.turn.time):
            yield answer.point(one.text, "to be checked"), one.text


def _only_asks(turn: Turn) -> bool:
    """Whether a prompt is nothing but a question, after which nothing was done: it settles nothing."""
    pieces = sentences.split(turn.prompt)
    is_question = bool(pieces) and all(piece.is_question for piece in pieces)
    return is_question and not turn.taken_back and not any(call.changed or call.command for call in turn.calls)


def _succeeded_later(answer: _Answer) -> bool:
    """Whether a command that failed in its turn succeeded afterwards."""
    bad = (call for call in answer.turn.calls if call.command and call.status is CallStatus.FAILED)
    failed = (run for call in bad for run in outcomes.failed(call))
    return any(answer.known.passed.get(run.key, 0) > answer.reply.time for run in failed)


def _says_undone(sentence: sentences.Sentence, context: str) -> bool:
    if sentence.is_question:
        return False
    return unchecked.is_unchecked(sentence, context) or _undone(
        sentence.bare, tuple(one.code for one in cues.of(sentence.bare, context))
    )


@lru_cache(maxsize=_MOST_KEPT)
def _undone(bare: str, codes: tuple[str, ...]) -> bool:
    for language in map(cues.named, codes):
        found = language.find("undone", bare)
        is_left = found is not None and not unchecked.is_within(language.code, bare[: found.start()], found[0])
        if is_left and not language.find("undone_not", bare) and not language.find("condition", bare):
            return True
    return False
