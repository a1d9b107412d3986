"""What is left open: todo lists, questions without an answer, what was asked and not done, what failed at last.

Only what nothing since has settled: a later turn or session that takes up the same words, files or commands counts as
having settled it, for a point that is open no more misleads whoever reads it. What the user read and answered with
another prompt counts as settled, too: of a session only its last answer can leave something open. At most MOST.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from daemon.reconstitute.facts import cues, failing, outcomes, questions, sentences, subjects, unchecked
from daemon.reconstitute.facts.sentences import shorten
from daemon.reconstitute.facts.setbacks import own_turns, prompt_key
from daemon.reconstitute.facts.values import (
    CallStatus,
    Citation,
    Ending,
    OpenKind,
    OpenPoint,
    Reply,
    SessionFacts,
    Setback,
    Todo,
    Turn,
)
from daemon.reconstitute.recover import Recovered

MOST = 30
"""Open points of one folder."""

_TAKEN_UP = 0.6
"""Who uses this share of a point's words later on is taken to have dealt with it."""
_FEWEST_SUBJECTS = 2
_SHORT_PROMPT = 4
"""A prompt with so few words is about what it names, were it only one thing."""
_LAST_SENTENCES = 3
"""A question stands among the last sentences of a reply; what stands before them is rhetoric or has been answered."""
_PLAN = "plan"
"""OpenCode's agent that changes nothing: the question at the end of its plan waits for an approval."""
_MOST_KEPT = 16_384
"""Sentences whose reading is kept: a service reads the same ones again with every message."""


@dataclass(frozen=True, slots=True)
class _Event:
    """What was asked, run, changed or said at a time: all by which a point may have been settled."""

    time: int
    words: frozenset[str]
    files: frozenset[str]
    opening: frozenset[str] = frozenset()  # of a prompt: what it begins with, which may be an answer
    place: tuple[str, ...] = ()  # of a command
    subjects: frozenset[str] = frozenset()  # of a prompt, answered or not


def find(
    sessions: Sequence[SessionFacts], setbacks: Sequence[Setback], files: Sequence[Recovered] = ()
) -> tuple[OpenPoint, ...]:
    """What nothing in the records settles, the newest first; `files` tell what became of what made a command fail."""
    events = [event for facts in sessions for event in _events(facts)]
    calls = [call for facts in sessions for turn in facts.turns for call in turn.calls]
    places = {(call.message_id, call.title): failing.place(call) for call in calls}
    found = [
        *((point, True) for facts in sessions for point in _asked(facts, sessions, events)),
        *((point, True) for facts in sessions for point in _not_done(facts, sessions, events)),
        *((point, True) for facts in sessions for point in _provisional(facts, sessions)),
        *((point, True) for point in _todos(sessions)),
        *((point, not is_test) for point, is_test in failing.find(sessions, setbacks, files)),
        *((point, False) for point in _unanswered(sessions)),
        *((point, False) for facts in sessions for point in _reverts(facts)),
    ]
    found.sort(key=lambda pair: (-pair[0].time, pair[0].citation.message_id, pair[0].text))
    standing = (
        point
        for point, may_be in found
        if not (may_be and _is_settled(point, places.get((point.citation.message_id, point.text), ()), events))
    )
    return tuple(islice(standing, MOST))


def _events(facts: SessionFacts) -> Iterator[_Event]:
    for turn in own_turns(facts):
        if turn.prompt:
            yield _Event(turn.time, frozenset(), frozenset(), subjects=subjects.of(turn.prompt))
        if turn.taken_back:
            continue
        if turn.prompt and turn.ending is Ending.ANSWERED:
            opening = subjects.stems(questions.opening(turn.prompt))
            yield _Event(turn.time, subjects.stems(turn.prompt), frozenset(), opening)
        for call in turn.calls:
            if call.status is CallStatus.OK and (call.command or call.changed):
                files = frozenset(path.rsplit("/", 1)[-1].casefold() for path in call.changed)
                said = call.command or " ".join([call.title, *call.changed])
                yield _Event(call.started, subjects.stems(said), files, place=failing.place(call))


def _is_settled(point: OpenPoint, place: tuple[str, ...], events: Sequence[_Event]) -> bool:
    """Whether something later took it up; a failed command no other that ran in another `place`."""
    wanted = subjects.stems(point.text)
    files = {word.rsplit("/", 1)[-1] for word in sentences.words(point.text) if "." in word.strip(".")}
    later = [event for event in events if event.time > point.time]
    if point.kind is OpenKind.FAILING:
        later = [event for event in later if event.place in ((), place)]
    if point.kind is OpenKind.QUESTION and any(event.opening and event.opening <= wanted for event in later):
        return True
    if files and files <= {file for event in later for file in event.files}:
        return True
    return any(sentences.share(wanted, event.words) >= _TAKEN_UP for event in later) or (
        bool(wanted) and any(len(event.words) > 1 and event.words <= wanted for event in later)
    )


# -- questions, what was not done, and reverts -------------------------------------------------------------------


def _reverts(facts: SessionFacts) -> Iterator[OpenPoint]:
    for revert in facts.reverts:
        if revert.pending and revert.undone is None:
            citation = Citation(facts.id, revert.message_id, revert.time)
            text = shorten(revert.prompts[0]) if revert.prompts else facts.title
            yield OpenPoint(OpenKind.REVERT, text, revert.time, citation, "OpenCode can still undo this revert")


def _asked(facts: SessionFacts, sessions: Sequence[SessionFacts], events: Sequence[_Event]) -> Iterator[OpenPoint]:
    """What the agent asked in the last answer of a session."""
    turns = [turn for turn in own_turns(facts) if not turn.is_compaction]
    turn = turns[-1] if turns else None
    reply = _last_reply(turn) if turn is not None and not turn.taken_back else None
    if turn is None or reply is None:
        return
    pieces = sentences.split(reply.text)
    prompts = [event.subjects for event in events if event.subjects and event.time > reply.time]
    asked = list(_questions(facts, turn, reply, pieces))
    if facts.session.parent_id:
        parent = next((one for one in sessions if one.id == facts.session.parent_id), None)
        said = [] if parent is None else [*prompts, *_said_after(parent, reply.time)]
        yield from (point for point in asked if parent is not None and not _is_taken_up(point.text, said))
        return
    if turn.agent == _PLAN and not _is_taken_up(turn.prompt, prompts):
        asked += _approval(facts, turn, reply, pieces)
    following = _following(sessions, reply.time) if asked else ""
    yield from (
        point
        for point in asked
        if not _is_taken_up(point.text, prompts) and not questions.may_answer(following, point.text)
    )


def _following(sessions: Sequence[SessionFacts], time: int) -> str:
    """The next prompt of the folder, if it is the first of its session."""
    prompts = [
        (turn.time, number, turn.prompt)
        for facts in sessions
        if not facts.session.parent_id
        for number, turn in enumerate(one for one in own_turns(facts) if one.prompt)
        if turn.time > time and not turn.taken_back
    ]
    _, number, prompt = min(prompts, default=(0, 0, ""))
    return "" if number else prompt


def _not_done(facts: SessionFacts, sessions: Sequence[SessionFacts], events: Sequence[_Event]) -> Iterator[OpenPoint]:
    """What the last answer says was not done, and one after which the user only asked about something else."""
    turns = [turn for turn in own_turns(facts) if not turn.is_compaction]
    for place, turn in enumerate(turns):
        reply = _last_reply(turn)
        if reply is None or turn.taken_back or facts.session.parent_id or not all(map(_only_asks, turns[place + 1 :])):
            continue
        undone = [one for one in sentences.split(reply.text) if _says_undone(one, reply.text)]
        if not undone or _succeeded_later(turn, reply.time, sessions):
            continue
        prompts = [event.subjects for event in events if event.subjects and event.time > reply.time]
        later = {subject for one in turns[place + 1 :] for subject in subjects.of(one.prompt)}
        for one in undone:
            if not _is_dealt_with(one.text, prompts) and not later & subjects.of(one.text):
                citation = Citation(facts.id, reply.message_id, reply.time, one.text)
                yield OpenPoint(OpenKind.NOT_DONE, one.text, reply.time, citation)


def _provisional(facts: SessionFacts, sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """What an answer calls provisional, or wants somebody to look at, until a later turn is about it or its files."""
    for turn in own_turns(facts):
        reply = _last_reply(turn)
        if reply is None or turn.taken_back or facts.session.parent_id:
            continue
        said = sentences.split(reply.text)
        pending = [one for one in said if unchecked.is_pending(one, reply.text) and not _says_undone(one, reply.text)]
        if not pending:
            continue
        changed = {path for call in turn.calls for path in call.changed}
        every = (one for other in sessions for one in own_turns(other) if not one.taken_back)
        later = [one for one in every if one.time > turn.time]
        if any(not changed.isdisjoint(call.changed) for one in later for call in one.calls):
            continue
        for one in pending:
            if not _is_dealt_with(one.text, [subjects.of(turn.prompt) for turn in later]):
                citation = Citation(facts.id, reply.message_id, reply.time, one.text)
                yield OpenPoint(OpenKind.NOT_DONE, one.text, reply.time, citation, "to be checked")


def _only_asks(turn: Turn) -> bool:
    """Whether a prompt is nothing but a question, after which nothing was done: it settles nothing."""
    pieces = sentences.split(turn.prompt)
    is_question = bool(pieces) and all(piece.is_question for piece in pieces)
    return is_question and not turn.taken_back and not any(call.changed or call.command for call in turn.calls)


def _last_reply(turn: Turn) -> Reply | None:
    """What an answer ends with; one that was stopped or failed ends anywhere."""
    if turn.ending is not Ending.ANSWERED:
        return None
    return next((reply for reply in reversed(turn.replies) if reply.text.strip()), None)


def _said_after(facts: SessionFacts, time: int) -> Iterator[frozenset[str]]:
    """What the agent of a session said later: it answers its sub-agents, or passes on what they ask."""
    yield from (subjects.of(reply.text) for turn in facts.turns for reply in turn.replies if reply.time > time)


def _is_taken_up(text: str, said: Sequence[frozenset[str]]) -> bool:
    """Whether anything said later names one of its subjects."""
    about = subjects.of(text)
    return any(about & one for one in said)


def _is_dealt_with(text: str, prompts: Sequence[frozenset[str]]) -> bool:
    """Whether a later prompt names several of its subjects, or is a short one about one of them."""
    about = subjects.of(text)
    return any(len(about & one) >= (1 if len(one) <= _SHORT_PROMPT else _FEWEST_SUBJECTS) for one in prompts)


def _succeeded_later(turn: Turn, time: int, sessions: Sequence[SessionFacts]) -> bool:
    """Whether a command that failed in a turn succeeded after `time`."""
    bad = (call for call in turn.calls if call.command and call.status is CallStatus.FAILED)
    failed = {run.key for call in bad for run in outcomes.failed(call)}
    if not failed:
        return False
    later = (call for facts in sessions for one in own_turns(facts) if not one.taken_back for call in one.calls)
    return any(
        call.started > time and any(run.key in failed for run in outcomes.passed(call))
        for call in later
        if call.command
    )


def _questions(facts: SessionFacts, turn: Turn, reply: Reply, pieces: list[sentences.Sentence]) -> Iterator[OpenPoint]:
    detail = "asked by a sub-agent" if facts.session.parent_id else ""
    for sentence in pieces[-_LAST_SENTENCES:]:
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
        is_left = found is not None and not unchecked.is_within(language.code, bare[: found.start()])
        if is_left and not language.find("undone_not", bare) and not language.find("condition", bare):
            return True
    return False


# -- prompts without an answer -----------------------------------------------------------------------------------


def _unanswered(sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """The last prompts of a session, where no answer came to an end and nobody asked for the same again."""
    own = [turn for facts in sessions for turn in own_turns(facts)]
    answered = [turn for turn in own if turn.ending is Ending.ANSWERED and not turn.taken_back]
    for facts in sessions:
        for turn in () if facts.session.parent_id else _last_unanswered(facts):
            later = [one for one in answered if one.time > turn.time]
            if any(prompt_key(one) == prompt_key(turn) for one in later):
                continue
            if not _is_dealt_with(turn.prompt, [subjects.of(one.prompt) for one in later]):
                citation = Citation(facts.id, turn.prompt_id, turn.time)
                yield OpenPoint(OpenKind.UNANSWERED, shorten(turn.prompt), turn.time, citation, _why(turn))


def _last_unanswered(facts: SessionFacts) -> Iterator[Turn]:
    """The last prompt without a whole answer, and those that waited before it."""
    for number, turn in enumerate(reversed([turn for turn in own_turns(facts) if not turn.is_compaction])):
        if turn.ending is Ending.ANSWERED or (number and turn.ending is not Ending.OPEN):
            return
        if turn.prompt and not turn.taken_back:
            yield turn


def _why(turn: Turn) -> str:
    if turn.ending is Ending.FAILED:
        return shorten(f"the answer failed: {turn.error}") if turn.error else "the answer failed"
    if turn.ending is Ending.REFUSED:
        return "the answer ended where a permission was refused"
    return "the answer was stopped" if turn.ending is Ending.STOPPED else "no answer is recorded"


# -- todo lists --------------------------------------------------------------------------------------------------


def _todos(sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """Of an entry that several lists have, the newest tells how it stands."""
    lists = [(facts, *_when_written(facts)) for facts in sessions]
    latest: dict[str, int] = {}
    for facts, _, time, _ in lists:
        for todo in facts.todos:
            latest[_key(todo)] = max(time, latest.get(_key(todo), time))
    for facts, written, time, stands in lists:
        for todo in facts.todos:
            if stands and todo.is_open and latest[_key(todo)] == time:
                yield _todo(facts, todo, written, time)


def _key(todo: Todo) -> str:
    return " ".join(todo.text.casefold().split())


def _when_written(facts: SessionFacts) -> tuple[str, int, bool]:
    """By which message and when the list got its last state, and whether that turn stands."""
    calls = [
        (call, turn)
        for turn in own_turns(facts)
        for call in turn.calls
        if call.tool == "todowrite" and call.status is CallStatus.OK
    ]
    if calls:
        call, turn = calls[-1]
        return call.message_id, call.started, not turn.taken_back
    last = facts.turns[-1] if facts.turns else None
    return (last.message_ids[-1] if last and last.message_ids else ""), facts.last, True


def _todo(facts: SessionFacts, todo: Todo, written: str, time: int) -> OpenPoint:
    priority = f"{todo.priority} priority" if todo.priority else ""
    detail = ", ".join(filter(None, (todo.status.replace("_", " "), priority)))
    return OpenPoint(OpenKind.TODO, todo.text, time, Citation(facts.id, written, time), detail)
