"""What the agent asked and nobody has answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daemon.reconstitute.facts import questions, sentences, spoken_of, subjects
from daemon.reconstitute.facts.sentences import shorten
from daemon.reconstitute.facts.values import Citation, OpenKind, OpenPoint, Reply, SessionFacts, Turn

_PLAN = "plan"
"""OpenCode's agent that changes nothing: the question at the end of its plan waits for an approval."""
_WORD = re.compile(r"[^\W_]+")
_MANY = 2
"""So many earlier prompts with a word make it one of the folder's, which every other prompt may have."""


def find(facts: SessionFacts, sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """The questions of a session's last answer, and of one after which the user surely spoke of something else."""
    turns = spoken_of.own_turns(facts)
    for place, turn in enumerate(turns):
        reply = spoken_of.last_reply(turn)
        if reply is None or turn.taken_back:
            continue
        pieces = sentences.split(reply.text)
        asked = list(_questions(facts, turn, reply, pieces))
        if place == len(turns) - 1:
            yield from _last(facts, turn, reply, asked, sessions)
        elif asked and not facts.session.parent_id and questions.is_other_matter(turns[place + 1], turn, sessions):
            yield from _not_answered(asked, "", _later_prompts(reply.time, sessions))


def _last(
    facts: SessionFacts, turn: Turn, reply: Reply, asked: list[OpenPoint], sessions: Sequence[SessionFacts]
) -> Iterator[OpenPoint]:
    is_plan = turn.agent == _PLAN and not facts.session.parent_id
    prompts = _later_prompts(reply.time, sessions) if asked or is_plan else []
    if facts.session.parent_id:
        parent = next((one for one in sessions if one.id == facts.session.parent_id), None)
        if parent is not None and asked:
            yield from _not_answered(asked, "", [*prompts, *_said_after(parent, reply.time)])
        return
    if is_plan and not spoken_of.is_taken_up(turn.prompt, prompts):
        asked = [*asked, *_approval(facts, turn, reply, sentences.split(reply.text))]
    yield from _not_answered(asked, questions.following(sessions, reply.time) if asked else "", prompts)


def _not_answered(asked: list[OpenPoint], following: str, said: Sequence[frozenset[str]]) -> Iterator[OpenPoint]:
    yield from (
        one
        for one in asked
        if not spoken_of.is_taken_up(one.text, said) and not questions.may_answer(following, one.text)
    )


def _later_prompts(time: int, sessions: Sequence[SessionFacts]) -> list[frozenset[str]]:
    """The subjects of all later prompts and titles, without those of many prompts before: the folder is about these."""
    turns = [(facts, turn) for facts in sessions for turn in spoken_of.own_turns(facts) if turn.prompt]
    earlier = [subjects.of(turn.prompt) for _, turn in turns if turn.time < time]
    later = [subjects.of(turn.prompt) for _, turn in turns if turn.time > time]
    common = {word for said in later for word in said if sum(word in one for one in earlier) > _MANY}
    titles = (facts.title for facts in sessions if facts.session.created > time)
    return [*(said - common for said in later), *(subjects.of(" ".join(_WORD.findall(title))) for title in titles)]


def _said_after(facts: SessionFacts, time: int) -> Iterator[frozenset[str]]:
    """What the agent of a session said later: it answers its sub-agents, or passes on what they ask."""
    yield from (subjects.of(reply.text) for turn in facts.turns for reply in turn.replies if reply.time > time)


def _questions(facts: SessionFacts, turn: Turn, reply: Reply, pieces: list[sentences.Sentence]) -> Iterator[OpenPoint]:
    detail = "asked by a sub-agent" if facts.session.parent_id else ""
    for sentence in pieces[-questions.LAST_SENTENCES :]:
        if questions.is_real(sentence, reply.text) and sentence.text not in turn.prompt:
            citation = Citation(facts.id, reply.message_id, reply.time, sentence.text)
            yield OpenPoint(OpenKind.QUESTION, sentence.text, reply.time, citation, detail)


def _approval(facts: SessionFacts, turn: Turn, reply: Reply, pieces: list[sentences.Sentence]) -> Iterator[OpenPoint]:
    """The question with which a plan ends, be it in the form of an offer."""
    last = pieces[-1] if pieces else None
    if last is None or not last.is_question or questions.is_real(last, reply.text):
        return
    if any(call.changed for call in turn.calls) or questions.is_closer(last, reply.text):
        return
    citation = Citation(facts.id, reply.message_id, reply.time, last.text)
    yield OpenPoint(OpenKind.QUESTION, last.text, reply.time, citation, f"a plan for: {shorten(turn.prompt, 100)}")
