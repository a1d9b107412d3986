"""What the agent asked and nobody has answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daemon.reconstitute.facts.language import mentions, sentences, subjects
from daemon.reconstitute.facts.language.mentions import History
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.open_points import questions
from daemon.reconstitute.facts.session_values import Citation, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.values import OpenKind, OpenPoint

_PLAN = "plan"
"""OpenCode's agent that changes nothing: the question at the end of its plan waits for an approval."""
_WORD = re.compile(r"[^\W_]+")
_MANY = 2
"""So many earlier prompts with a word make it one of the folder's, which every other prompt may have."""


def find(facts: SessionFacts, history: History) -> Iterator[OpenPoint]:
    """The questions of a session's last answer, and of one after which the user surely spoke of something else."""
    turns = mentions.own_turns(facts)
    for place, turn in enumerate(turns):
        reply = mentions.last_reply(turn)
        if reply is None or turn.taken_back:
            continue
        pieces = sentences.split(reply.text)
        asked = list(_questions(facts, turn, reply, pieces))
        if place == len(turns) - 1:
            yield from _last(facts, turn, reply, asked, history)
        elif asked and not facts.session.parent_id and questions.is_other_matter(turns[place + 1], turn, history):
            yield from _not_answered(asked, "", history)


def _last(
    facts: SessionFacts, turn: Turn, reply: Reply, asked: list[OpenPoint], history: History
) -> Iterator[OpenPoint]:
    if facts.session.parent_id:
        parent = next((one for one in history.sessions if one.id == facts.session.parent_id), None)
        if parent is not None and asked:
            yield from _not_answered(asked, "", history, tuple(_said_after(parent, reply.time)))
        return
    if turn.agent == _PLAN and not history.is_taken_up(turn.prompt, reply.time, _MANY):
        asked = [*asked, *_approval(facts, turn, reply, sentences.split(reply.text))]
    yield from _not_answered(asked, questions.following(history.sessions, reply.time) if asked else "", history)


def _not_answered(
    asked: list[OpenPoint], following: str, history: History, said: Sequence[frozenset[str]] = ()
) -> Iterator[OpenPoint]:
    """Those that no later prompt, title or text of `said` takes up by a subject that not many prompts had before."""
    for one in asked:
        titles = (facts.title for facts in history.sessions if facts.session.created > one.time)
        told = [*said, *(subjects.of(" ".join(_WORD.findall(title))) for title in titles)]
        is_told = any(subjects.of(one.text) & words for words in told)
        is_told = is_told or history.is_taken_up(one.text, one.time, _MANY)
        if not is_told and not questions.may_answer(following, one.text):
            yield one


def _said_after(facts: SessionFacts, time: int) -> Iterator[frozenset[str]]:
    """What the agent of a session said later: it answers its sub-agents, or passes on what they ask."""
    yield from (subjects.of(reply.text) for turn in facts.turns for reply in turn.replies if reply.time > time)


def _questions(
    facts: SessionFacts, turn: Turn, reply: Reply, pieces: Sequence[sentences.Sentence]
) -> Iterator[OpenPoint]:
    detail = "asked by a sub-agent" if facts.session.parent_id else ""
    for sentence in pieces[-questions.LAST_SENTENCES :]:
        if questions.is_real(sentence, reply.text) and sentence.text not in turn.prompt:
            citation = Citation(facts.id, reply.message_id, reply.time, sentence.text)
            yield OpenPoint(OpenKind.QUESTION, sentence.text, reply.time, citation, detail)


def _approval(
    facts: SessionFacts, turn: Turn, reply: Reply, pieces: Sequence[sentences.Sentence]
) -> Iterator[OpenPoint]:
    """The question with which a plan ends, be it in the form of an offer."""
    last = pieces[-1] if pieces else None
    if last is None or not last.is_question or questions.is_real(last, reply.text):
        return
    if any(call.changed for call in turn.calls) or questions.is_closer(last, reply.text):
        return
    citation = Citation(facts.id, reply.message_id, reply.time, last.text)
    yield OpenPoint(OpenKind.QUESTION, last.text, reply.time, citation, f"a plan for: {shorten(turn.prompt, 100)}")
