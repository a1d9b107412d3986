"""What the answers say was not done, not checked or is only provisional, and what nothing has dealt with since.

The next prompt of the session deals with all of an answer if it is a word or two, has a word of the answer, or has the
same files changed again. A prompt about something else deals with nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.language.subjects import History, last_reply
from daemon.reconstitute.facts.open_points import questions
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.values import OpenKind, OpenPoint

Candidate: TypeAlias = tuple[OpenPoint, str]
"""A point with the sentence of the answer that states it, without the sentence before it."""

_MOST_CACHED = 16_384
"""Sentences whose reading is cached: a service reads the same ones again with every message."""
_FEWEST_SUBJECTS = 2
"""A sentence with no more subjects needs the one before it to be understood."""
_SHORT = 4
"""Words of a first sentence that may be all that is said about the answer before."""
_REPETITION_SHARE = 0.6
"""A later answer with this share of its subjects is about it."""
_WORD = re.compile(r"[^\W_]+")
_MAIN_CLAUSE = re.compile(r"\w+ (?:ich|wir|ik|we|wij|jag|vi)\b", re.IGNORECASE)
"""Languages that put the verb second have it before its subject only in a main clause."""
_CLAUSE = re.compile(r"[,;:，、；：]")


@dataclass(frozen=True, slots=True)
class _Context:
    """What happened in the folder: when files last changed, commands last passed and files with a word in their name
    were created; and the requests that got no answer.
    """

    history: History
    changed: dict[str, int]
    passed: dict[tuple[str, ...], int]
    names: dict[str, int]
    unanswered: list[tuple[int, frozenset[str]]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer with its sentences, its turn and the later turns of its session."""

    facts: SessionFacts
    turn: Turn
    reply: Reply
    sentences: Sequence[Sentence]
    following: Sequence[Turn]
    context: _Context

    @property
    def asks(self) -> bool:
        """Whether it ends with a question or an offer."""
        return any(sentence.is_question for sentence in self.sentences[-questions.LAST_SENTENCES :])

    def point(self, text: str, detail: str = "") -> OpenPoint:
        time = self.reply.time
        citation = Citation(self.facts.id, self.reply.message_id, time, text)
        return OpenPoint(OpenKind.NOT_DONE, text, time, citation, detail)


def find(history: History) -> Iterator[Candidate]:
    """The points of a folder. Sub-agents' answers do not count: they report to the agent."""
    context = _context(history)
    for facts in history.sessions:
        turns = () if facts.session.parent_id else facts.exchanges
        for place, turn in enumerate(turns):
            reply = last_reply(turn)
            if reply is not None and not turn.taken_back:
                answer = _Answer(facts, turn, reply, sentences.split(reply.text), turns[place + 1 :], context)
                yield from _not_done(answer)
                yield from _provisional(answer)


def _context(history: History) -> _Context:
    turns = [turn for facts in history.sessions for turn in facts.exchanges]
    calls = [call for turn in turns if not turn.taken_back for call in turn.calls]
    created: dict[str, int] = {}
    changed: dict[str, int] = {}
    passed: dict[tuple[str, ...], int] = {}
    for call in sorted(calls, key=lambda call: call.started):
        for path in call.changed:
            created.setdefault(path, call.started)
            changed[path] = call.started
        if call.command:
            passed |= dict.fromkeys((run.key for run in shell.passed(call)), call.started)
    names: dict[str, int] = {}
    for path, time in created.items():
        for word in subjects.stems(" ".join(_WORD.findall(path.rsplit("/", 1)[-1]))):
            names[word] = max(time, names.get(word, time))
    unanswered = [
        (turn.time, subjects.of(turn.prompt))
        for facts in history.sessions
        if not facts.session.parent_id
        for turn in facts.exchanges
        if turn.prompt and turn.ending is not Ending.ANSWERED
    ]
    return _Context(history, changed, passed, names, unanswered)


def _not_done(answer: _Answer) -> Iterator[Candidate]:
    reply, history = answer.reply, answer.context.history
    undone = [place for place, sentence in enumerate(answer.sentences) if _says_undone(sentence, reply.text)]
    remaining = sorted(set(undone) - _refused(answer, undone))
    if not remaining or _succeeded_later(answer):
        return
    reaction = next((turn for turn in answer.following if not _only_asks(turn)), None)
    if reaction is not None and _deals_with_all(reaction, answer):
        return
    until = len(answer.following) if reaction is None else answer.following.index(reaction) + 1
    prompts = [subjects.of(turn.prompt) for turn in answer.following[:until]]
    if reaction is None and answer.asks:
        prompts.append(subjects.of(questions.next_prompt(history.sessions, reply.time)))
    abandoned = _abandoned(answer)
    for place in remaining:
        sentence = answer.sentences[place].text
        about = subjects.of(sentence)
        text = _with_context(answer, place, undone)
        if any(about & prompt for prompt in prompts):
            continue
        if any(sentences.share(about, request) >= _REPETITION_SHARE for request in abandoned):
            continue
        if history.is_dealt_with(sentence, reply.time) or history.is_said_again(
            sentence, reply.time, _REPETITION_SHARE
        ):
            continue
        has_new_file = any(answer.context.names.get(word, 0) > answer.turn.ended for word in about)
        if not has_new_file and not (text != sentence and history.is_said_again(text, reply.time, _REPETITION_SHARE)):
            yield answer.point(text), sentence


def _refused(answer: _Answer, undone: Sequence[int]) -> set[int]:
    """The sentences about a refused call of the turn: the call is a setback of its own, and settled.

    They share most words with the call. In an answer right after the call its only such sentence is about it.
    """
    calls = answer.turn.calls
    texts = [subjects.of(answer.sentences[place].text) for place in undone]
    places: set[int] = set()
    for call in (call for call in calls if call.status is CallStatus.REFUSED):
        about = subjects.of(f"{call.title} {call.command} {call.error}")
        shared = [len(about & words) for words in texts]
        best = max(shared, default=0)
        places.update(place for place, number in zip(undone, shared, strict=True) if best and number == best)
    if len(undone) == 1 and calls and calls[-1].status is CallStatus.REFUSED:
        places.update(undone)
    return places


def _deals_with_all(reaction: Turn, answer: _Answer) -> bool:
    """Whether the next prompt of a session deals with the whole answer before it.

    It does if it is a word or two or begins with a short sentence, if nothing was to be done after it, if it answers a
    question, if the same files are changed again, or if the program that failed succeeds.
    """
    if not reaction.prompt:
        return False  # a revert removed it
    if questions.is_nod(reaction.prompt) or _begins_shortly(reaction.prompt):
        return True
    if not reaction.calls and reaction.ending is Ending.ANSWERED:
        return True
    if answer.asks:
        return not questions.is_other_matter(reaction, answer.turn, answer.context.history)
    paths = {path for call in answer.turn.calls for path in call.changed}
    later = () if reaction.taken_back else reaction.calls
    if any(not paths.isdisjoint(call.changed) for call in later):
        return True
    return not _programs(answer.turn.calls, CallStatus.FAILED).isdisjoint(_programs(later, CallStatus.OK))


def _programs(calls: Sequence[Call], status: CallStatus) -> frozenset[str]:
    """The programs of the commands that ended with `status`."""
    runs = [run for call in calls if call.command for run in shell.of_call(call)]
    return frozenset(run.program.name for run in runs if run.status is status)


def _begins_shortly(prompt: str) -> bool:
    pieces = sentences.split(prompt)
    return len(pieces) > 1 and questions.length(pieces[0].text) <= _SHORT


def _abandoned(answer: _Answer) -> list[frozenset[str]]:
    """The subjects of the unanswered requests that the prompt of a turn mentions again: it may have given them up."""
    about = subjects.of(answer.turn.prompt)
    earlier = ((time, request) for time, request in answer.context.unanswered if time < answer.turn.time)
    return [request for _, request in earlier if about & request]


def _with_context(answer: _Answer, place: int, undone: Sequence[int]) -> str:
    """A sentence; with the one before it if it begins with a pronoun or has hardly a subject of its own."""
    sentence = answer.sentences[place]
    needs_context = len(subjects.of(sentence.text)) <= _FEWEST_SUBJECTS or _refers_back(sentence, answer.reply.text)
    if not needs_context or not place or place - 1 in undone or answer.sentences[place - 1].is_question:
        return sentence.text
    reply = " ".join(answer.reply.text.split())
    joined = (f"{answer.sentences[place - 1].text}{blank}{sentence.text}" for blank in (" ", ""))
    return next((text for text in joined if text in reply), sentence.text)


def _provisional(answer: _Answer) -> Iterator[Candidate]:
    """What an answer calls provisional, or asks somebody to check, until a later turn is about it or its files."""
    text, context = answer.reply.text, answer.context
    pending = [
        sentence
        for sentence in answer.sentences
        if _is_provisional(sentence, text) and not _says_undone(sentence, text)
    ]
    paths = {path for call in answer.turn.calls for path in call.changed}
    if not pending or any(context.changed.get(path, 0) > answer.turn.ended for path in paths):
        return
    for sentence in pending:
        if not context.history.is_dealt_with(sentence.text, answer.turn.time):
            yield answer.point(sentence.text, "to be checked"), sentence.text


def _only_asks(turn: Turn) -> bool:
    """Whether a prompt is nothing but a question, after which nothing was done: it settles nothing."""
    pieces = sentences.split(turn.prompt)
    is_question = bool(pieces) and all(piece.is_question for piece in pieces)
    return is_question and not turn.taken_back and not any(call.changed or call.command for call in turn.calls)


def _succeeded_later(answer: _Answer) -> bool:
    """Whether a command that failed in its turn succeeded afterwards."""
    bad = (call for call in answer.turn.calls if call.command and call.status is CallStatus.FAILED)
    failed = (run for call in bad for run in shell.failed(call))
    return any(answer.context.passed.get(run.key, 0) > answer.reply.time for run in failed)


# -- what a sentence says ----------------------------------------------------------------------------------------


def _says_undone(sentence: Sentence, context: str) -> bool:
    """Whether it says that something was not done, checked or put to use, or is left to be done."""
    codes = _codes(sentence, context)
    kinds = ("unchecked", "left_over", "undone")
    return not sentence.is_question and any(_has_cue(kind, sentence.bare, codes) for kind in kinds)


def _is_provisional(sentence: Sentence, context: str) -> bool:
    """Whether it says that something is provisional, or that somebody has to look at it."""
    return not sentence.is_question and _has_cue("provisional", sentence.bare, _codes(sentence, context))


def _refers_back(sentence: Sentence, context: str) -> bool:
    """Whether it begins with a word that stands for something before it ("It", "That")."""
    languages = cues.of(sentence.bare, context)
    return any(pattern.match(sentence.bare) for language in languages for pattern in language.patterns("pronoun"))


def _codes(sentence: Sentence, context: str) -> tuple[str, ...]:
    return tuple(language.code for language in cues.of(sentence.bare, context))


@lru_cache(maxsize=_MOST_CACHED)
def _has_cue(kind: str, bare: str, codes: Sequence[str]) -> bool:
    excuses = ("condition", "undone_not") if kind in ("undone", "left_over") else ("condition",)
    for language in map(cues.named, codes):
        match = language.find(kind, bare)
        if match is None or _is_subordinate(language, bare[: match.start()], match[0]):
            continue
        if not any(language.find(excuse, bare) for excuse in excuses):
            return True
    return False


def _is_subordinate(language: cues.Cues, before: str, clause: str) -> bool:
    """Whether `clause`, which follows `before`, belongs to a condition or a question in the sentence."""
    if _MAIN_CLAUSE.match(clause):
        return False
    return language.find("subordinate", _CLAUSE.split(before)[-1]) is not None
