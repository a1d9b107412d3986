"""Which questions of the agent nobody has answered.

A question stands among the last sentences of an answer. It is open after the last answer of its session, or if the next
prompt surely is about something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence, shorten
from daemon.reconstitute.facts.language.subjects import History, last_reply
from daemon.reconstitute.facts.session_values import Citation, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.values import OpenKind, OpenPoint

LAST_SENTENCES = 3
"""An earlier question is rhetoric, or the answer has answered it."""
_PLAN = "plan"
"""OpenCode's agent that changes nothing: the question at the end of its plan waits for an approval."""
_SHORTEST_QUESTION = 3
_FEWEST_SUBJECTS = 2
_MIN_SHARED = 2
"""If so many earlier prompts have a word, it says nothing about one answer."""
_SHORT_ANSWER = 3
"""Words of a short answer; in a script without blanks, characters."""
_ORDERS = frozenset({"use", "usa"})
"""Small words of the cue table that begin a task."""
_WORD = re.compile(r"[^\W_]+")
_ANY_WORD = re.compile(r"[^\W_]+(?:[./:_-][^\W_]+)*")
_OPENING_END = re.compile(r"[.,:](?=\s|$)|[!?;\n。！？，、；：–—]")
_WITHOUT_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


# -- questions without an answer ---------------------------------------------------------------------------------


def find(facts: SessionFacts, history: History) -> Iterator[OpenPoint]:
    """The open questions of a session."""
    turns = facts.exchanges
    for place, turn in enumerate(turns):
        reply = last_reply(turn)
        if reply is None or turn.taken_back:
            continue
        pieces = sentences.split(reply.text)
        questions = list(_questions(facts, turn, reply, pieces))
        if place == len(turns) - 1:
            yield from _of_last_answer(facts, turn, reply, questions, history)
        elif questions and not facts.session.parent_id and is_other_matter(turns[place + 1], turn, history):
            yield from _not_answered(questions, "", history)


def _of_last_answer(
    facts: SessionFacts, turn: Turn, reply: Reply, questions: list[OpenPoint], history: History
) -> Iterator[OpenPoint]:
    if facts.session.parent_id:
        parent = next((candidate for candidate in history.sessions if candidate.id == facts.session.parent_id), None)
        if parent is not None and questions:
            yield from _not_answered(questions, "", history, tuple(_stems_after(parent, reply.time)))
        return
    if turn.agent == _PLAN and not history.is_taken_up(turn.prompt, reply.time, _MIN_SHARED):
        questions = [*questions, *_approval(facts, turn, reply, sentences.split(reply.text))]
    yield from _not_answered(questions, next_prompt(history.sessions, reply.time) if questions else "", history)


def _not_answered(
    questions: list[OpenPoint], following: str, history: History, replies: Sequence[frozenset[str]] = ()
) -> Iterator[OpenPoint]:
    """The questions that no later prompt, session title or one of `replies` takes up, and `following` does not answer.

    They must share a subject that few earlier prompts had.
    """
    for question in questions:
        titles = (facts.title for facts in history.sessions if facts.session.created > question.time)
        later = [*replies, *(subjects.of(" ".join(_WORD.findall(title))) for title in titles)]
        is_taken_up = any(subjects.of(question.text) & about for about in later)
        is_taken_up = is_taken_up or history.is_taken_up(question.text, question.time, _MIN_SHARED)
        if not is_taken_up and not may_answer(following, question.text):
            yield question


def _stems_after(facts: SessionFacts, time: int) -> Iterator[frozenset[str]]:
    """What the agent of a session said later: it answers its sub-agents, or passes on what they ask."""
    yield from (subjects.of(reply.text) for turn in facts.turns for reply in turn.replies if reply.time > time)


def _questions(facts: SessionFacts, turn: Turn, reply: Reply, pieces: Sequence[Sentence]) -> Iterator[OpenPoint]:
    detail = "asked by a sub-agent" if facts.session.parent_id else ""
    for sentence in pieces[-LAST_SENTENCES:]:
        if is_real(sentence, reply.text) and sentence.text not in turn.prompt:
            citation = Citation(facts.id, reply.message_id, reply.time, sentence.text)
            yield OpenPoint(OpenKind.QUESTION, sentence.text, reply.time, citation, detail)


def _approval(facts: SessionFacts, turn: Turn, reply: Reply, pieces: Sequence[Sentence]) -> Iterator[OpenPoint]:
    """The question at the end of a plan, even if it has the form of an offer."""
    last = pieces[-1] if pieces else None
    if last is None or not last.is_question or is_real(last, reply.text):
        return
    if any(call.changed for call in turn.calls) or _is_closer(last, reply.text):
        return
    citation = Citation(facts.id, reply.message_id, reply.time, last.text)
    yield OpenPoint(OpenKind.QUESTION, last.text, reply.time, citation, f"a plan for: {shorten(turn.prompt, 100)}")


# -- what is a question, and what is an answer -------------------------------------------------------------------


def is_real(sentence: Sentence, context: str = "") -> bool:
    """Whether a sentence asks for a decision or for information; a courtesy or an offer does not."""
    words = max(len(sentences.words(sentence.text)), len(_ANY_WORD.findall(sentence.text)))
    if not sentence.is_question or words < _SHORTEST_QUESTION or len(sentences.words(sentence.text)) < _FEWEST_SUBJECTS:
        return False
    languages = cues.of(sentence.bare, context)
    kinds = {
        kind for kind in ("closer", "offer", "either") for language in languages if language.find(kind, sentence.bare)
    }
    return "closer" not in kinds and ("offer" not in kinds or "either" in kinds)


def _is_closer(sentence: Sentence, context: str) -> bool:
    """Whether a sentence only asks whether there is anything else to do."""
    return any(language.find("closer", sentence.bare) for language in cues.of(sentence.bare, context))


def opening(prompt: str) -> str:
    """A prompt up to its first stop, which may be the whole answer to a question."""
    return _OPENING_END.split(prompt.strip().lstrip("¿¡"), maxsplit=1)[0].strip()


def may_answer(prompt: str, question: str) -> bool:
    """Whether the first prompt after a question begins as an answer to it does: very short, and with no order.

    It is one word, yes or no, a number, begins with a small word ("On Monday."), or has a word of the question.
    """
    begin = opening(prompt)
    if _WITHOUT_BLANKS.search(begin):
        return len(begin) <= _SHORT_ANSWER or begin in cues.answers() or _share_subject(begin, question)
    words = [word.casefold() for word in _ANY_WORD.findall(begin)]
    if not 0 < len(words) <= _SHORT_ANSWER:
        return False
    is_small = words[0] in cues.common() - _ORDERS or words[0] in cues.answers()
    return len(words) == 1 or is_small or any(word[0].isdigit() for word in words) or _share_subject(begin, question)


def is_nod(prompt: str) -> bool:
    """Whether a prompt is hardly more than a yes or a no."""
    return length(prompt) <= _SHORT_ANSWER


def length(text: str) -> int:
    """The number of its words; in scripts without blanks two characters count as one."""
    return len(_ANY_WORD.findall(_WITHOUT_BLANKS.sub(" ", text))) + (len(_WITHOUT_BLANKS.findall(text)) + 1) // 2


def is_other_matter(following: Turn, turn: Turn, history: History) -> bool:
    """Whether the prompt after an answer surely is about something else, because it goes on with an earlier prompt.

    It shares several subjects with that prompt and none with the answer, and its own answer shares none with the
    questions.
    """
    about = subjects.of(following.prompt)
    if may_answer(following.prompt, "") or not history.goes_back(about, turn.time):
        return False
    common = {word for word in about if history.count(word, turn.time)[0] >= _MIN_SHARED}
    if any((about - common) & subjects.of(reply.text) for reply in turn.replies):
        return False
    questions = [piece.text for reply in turn.replies for piece in sentences.split(reply.text) if piece.is_question]
    return not any(_share_subject(reply.text, question) for reply in following.replies for question in questions)


def next_prompt(sessions: Sequence[SessionFacts], time: int) -> str:
    """The next prompt of the folder after `time`, if it is the first of its session."""
    prompts = [
        (turn.time, number, turn.prompt)
        for facts in sessions
        if not facts.session.parent_id
        for number, turn in enumerate(turn for turn in facts.own_turns if turn.prompt)
        if turn.time > time and not turn.taken_back
    ]
    _, number, prompt = min(prompts, default=(0, 0, ""))
    return "" if number else prompt


def _share_subject(text: str, question: str) -> bool:
    return bool(subjects.of(text) & subjects.of(question))
