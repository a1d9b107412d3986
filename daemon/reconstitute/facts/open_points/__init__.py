"""What is left open: failed commands, work not done, questions, todos, requests without an answer, pending reverts.

A point is left out once a later turn or session takes up the same words, files or commands: a point that is no longer
open would mislead. What an answer says about a failure is shown with the failure. The surest kinds come first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from daemon.reconstitute.facts.content import last_text
from daemon.reconstitute.facts.language import sentences, subjects
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.open_points import failing, not_done, questions
from daemon.reconstitute.facts.session_values import CallStatus, Citation, Ending, SessionFacts, Todo, Turn
from daemon.reconstitute.facts.setbacks import prompt_key
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback
from daemon.reconstitute.recover import Recovered

MOST = 30
"""Open points of one folder."""

_TAKEN_UP = 0.6
"""A later text with this share of a point's words or subjects has dealt with it."""
_HEAD = 400
"""Bytes of a file that say what it is for."""
_DENSE = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without blanks; of Japanese only the characters that stand for things."""
_WORD = re.compile(r"[^\W_]+")
_SUREST = (
    OpenKind.FAILING, OpenKind.NOT_DONE, OpenKind.QUESTION, OpenKind.TODO, OpenKind.REVERT, OpenKind.UNANSWERED,
)  # fmt: skip
"""The exit status of a command is recorded; nobody said that a stopped request is still wanted."""


@dataclass(frozen=True, slots=True)
class _Event:
    """A prompt or call by which an earlier point may have been settled."""

    time: int
    words: frozenset[str]
    files: frozenset[str]
    opening: frozenset[str] = frozenset()  # of a prompt: what it begins with, which may be an answer
    place: tuple[str, ...] = ()  # of a command


def find(
    sessions: Sequence[SessionFacts], setbacks: Sequence[Setback], files: Sequence[Recovered] = ()
) -> tuple[OpenPoint, ...]:
    """At most MOST points; `files` show what became of the files that a failed command or a todo is about."""
    history = subjects.History(sessions)
    events = [event for facts in sessions for event in _events(facts)]
    calls = [call for facts in sessions for turn in facts.turns for call in turn.calls]
    places = {(call.message_id, call.title): failing.place(call) for call in calls}
    # Each with the words by which something later may have settled it; empty if nothing may.
    candidates = [
        *((point, point.text) for facts in sessions for point in questions.find(facts, history)),
        *not_done.find(history),
        *((point, point.text) for point in _todos(sessions, files)),
        *((point, "" if is_test else point.text) for point, is_test in failing.find(sessions, setbacks, files)),
        *((point, "") for point in _unanswered(history)),
        *((point, "") for facts in sessions for point in _reverts(facts)),
    ]
    unsettled = {
        (point.kind, point.text, point.detail): point
        for point, text in sorted(candidates, key=lambda pair: pair[0].time)
        if not (text and _is_settled(point, text, places.get((point.citation.message_id, point.text), ()), events))
    }
    points = _merged(list(unsettled.values()), sessions)
    points.sort(key=lambda point: (_SUREST.index(point.kind), -point.time, point.citation.message_id, point.text))
    return tuple(islice(points, MOST))


def _merged(points: Sequence[OpenPoint], sessions: Sequence[SessionFacts]) -> list[OpenPoint]:
    """The points without those that repeat another one; what an answer says of a failure joins the failure."""
    turns = {
        message: number
        for number, turn in enumerate(turn for facts in sessions for turn in facts.turns)
        for message in turn.message_ids
    }
    undone = [point for point in points if point.kind is OpenKind.NOT_DONE]
    merged: dict[OpenPoint, OpenPoint] = {}
    for point in undone:
        turn = turns.get(point.citation.message_id)
        failures = (
            candidate for candidate in points if candidate.kind is OpenKind.FAILING and _is_about(point, candidate)
        )
        failure = next((candidate for candidate in failures if turns.get(candidate.citation.message_id) == turn), None)
        if turn is not None and failure is not None:
            merged[point] = failure
    distinct = []
    for point in points:
        quotes = [shorten(candidate.text) for candidate, failure in merged.items() if failure == point]
        is_repeated = point.kind is OpenKind.TODO and any(
            candidate.time >= point.time and _covers(point.text, candidate.text) for candidate in undone
        )
        if point not in merged and not is_repeated:
            detail = "; ".join(filter(None, (point.detail, *(f"“{quote}”" for quote in quotes))))
            distinct.append(replace(point, detail=detail))
    return distinct


def _is_about(undone: OpenPoint, failure: OpenPoint) -> bool:
    """Whether a sentence of an answer is about a failure: it has a word of the command or of its output."""
    return bool(subjects.of(f"{failure.text} {failure.detail}") & subjects.of(undone.text))


# -- what settles a point ----------------------------------------------------------------------------------------


def _events(facts: SessionFacts) -> Iterator[_Event]:
    for turn in facts.own_turns:
        if turn.taken_back:
            continue
        if turn.prompt and turn.ending is Ending.ANSWERED:
            opening = subjects.stems(questions.opening(turn.prompt))
            yield _Event(turn.time, subjects.stems(turn.prompt), frozenset(), opening)
        for call in turn.calls:
            if call.status is CallStatus.OK and (call.command or call.changed):
                files = frozenset(path.rsplit("/", 1)[-1].casefold() for path in call.changed)
                text = call.command or " ".join([call.title, *call.changed])
                yield _Event(call.started, subjects.stems(text), files, place=failing.place(call))


def _is_settled(point: OpenPoint, text: str, place: tuple[str, ...], events: Sequence[_Event]) -> bool:
    """Whether something later took it up; for a failed command only what ran in the same `place` counts."""
    stems = subjects.stems(text)
    files = {word.rsplit("/", 1)[-1] for word in sentences.words(text) if "." in word.strip(".")}
    later = [event for event in events if event.time > point.time]
    if point.kind is OpenKind.FAILING:
        later = [event for event in later if event.place in ((), place)]
    if point.kind is OpenKind.QUESTION and any(event.opening and event.opening <= stems for event in later):
        return True
    if files and files <= {file for event in later for file in event.files}:
        return True
    if any(sentences.share(stems, event.words) >= _TAKEN_UP for event in later):
        return True
    return bool(stems) and any(len(event.words) > 1 and event.words <= stems for event in later)


# -- pending reverts, and requests without an answer -------------------------------------------------------------


def _reverts(facts: SessionFacts) -> Iterator[OpenPoint]:
    for revert in facts.reverts:
        if revert.pending and revert.undone is None:
            citation = Citation(facts.id, revert.message_id, revert.time)
            text = shorten(revert.prompts[0]) if revert.prompts else facts.title
            yield OpenPoint(OpenKind.REVERT, text, revert.time, citation, "OpenCode can still undo this revert")


def _unanswered(history: subjects.History) -> Iterator[OpenPoint]:
    """The last prompts of a session that got no whole answer, if nobody made the same request again."""
    turns = [turn for facts in history.sessions for turn in facts.own_turns]
    answered = [turn for turn in turns if turn.ending is Ending.ANSWERED and not turn.taken_back]
    for facts in history.sessions:
        for turn in () if facts.session.parent_id else _last_unanswered(facts):
            later = (later_turn for later_turn in answered if later_turn.time > turn.time)
            if any(prompt_key(later_turn) == prompt_key(turn) for later_turn in later):
                continue
            if subjects.again(turn, history) is None:
                citation = Citation(facts.id, turn.prompt_id, turn.time)
                yield OpenPoint(OpenKind.UNANSWERED, shorten(turn.prompt), turn.time, citation, _why(turn))


def _last_unanswered(facts: SessionFacts) -> Iterator[Turn]:
    """The last prompt without a whole answer, and those that waited before it."""
    for number, turn in enumerate(reversed(facts.exchanges)):
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


@dataclass(frozen=True, slots=True)
class _Work:
    """A turn that changed files: its prompt and the beginnings of files it created (`texts`), and their names."""

    time: int
    session: str
    title: str
    texts: tuple[str, ...]
    names: tuple[str, ...]


def _todos(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> Iterator[OpenPoint]:
    """The open entries of the todo lists; if several lists have an entry, the newest list counts.

    Nobody updates a list once its session is over. So an entry counts as taken up if a later turn that changed files
    mentions it: in its prompt, in the title of its session, or by the name or the beginning of a file that it created.
    """
    lists = [(facts, *_when_written(facts)) for facts in sessions]
    latest: dict[str, int] = {}
    for facts, _, time, _ in lists:
        for todo in facts.todos:
            latest[_todo_key(todo)] = max(time, latest.get(_todo_key(todo), time))
    works = _works(sessions, files)
    for facts, todo_text, time, stands in lists:
        for todo in facts.todos:
            is_newest = stands and todo.is_open and latest[_todo_key(todo)] == time
            if is_newest and not any(_takes_up(work, todo.text, facts) for work in works if work.time > time):
                yield _todo_point(facts, todo, todo_text, time)


def _works(sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> list[_Work]:
    files_by_path = {file.path: file for file in files}
    first: dict[str, int] = {}
    turns = [(facts, turn) for facts in sessions for turn in facts.exchanges if not turn.taken_back]
    for call in sorted((call for _, turn in turns for call in turn.calls), key=lambda call: call.started):
        for path in call.changed:
            first.setdefault(path, call.started)
    works = []
    for facts, turn in turns:
        calls = [call for call in turn.calls if call.changed or (call.command and facts.changes)]
        new = sorted({path for call in calls for path in call.changed if first[path] == call.started})
        heads = (_head(files_by_path[path]) for path in new if path in files_by_path)
        names = tuple(path.rsplit("/", 1)[-1].split(".")[0] for path in new)
        if calls:
            works.append(_Work(turn.time, facts.id, facts.title, (turn.prompt, *heads), names))
    return works


def _takes_up(work: _Work, text: str, session: SessionFacts) -> bool:
    """Whether a turn is about an entry of a list written before it."""
    title = work.title if work.session != session.id else ""
    if any(_covers(text, done) for done in (*work.texts, title)):
        return True
    return any(_is_within(name, text) for name in (*work.names, title))


def _head(file: Recovered) -> str:
    head = last_text(file, _HEAD)
    return head.text if head is not None else ""


def _covers(text: str, other_text: str) -> bool:
    """Whether `other_text` has most subjects of an entry's `text`; text without blanks counts as one subject."""
    dense = _DENSE.findall(unicodedata.normalize("NFKC", text).casefold())
    if dense:
        folded = unicodedata.normalize("NFKC", other_text).casefold()
        return all(run in folded for run in dense)
    return sentences.share(_subjects(text), _subjects(other_text)) >= _TAKEN_UP


def _is_within(name: str, text: str) -> bool:
    """Whether a title or a file's name has only subjects of an entry."""
    about = _subjects(name)
    return bool(about) and about <= _subjects(text)


@lru_cache(maxsize=8192)
def _subjects(text: str) -> frozenset[str]:
    return subjects.of(" ".join(_WORD.findall(text)))


def _todo_key(todo: Todo) -> str:
    return " ".join(todo.text.casefold().split())


def _when_written(facts: SessionFacts) -> tuple[str, int, bool]:
    """The message and time at which the list got its last state, and whether that turn was not taken back."""
    calls = [
        (call, turn)
        for turn in facts.exchanges
        for call in turn.calls
        if call.tool == "todowrite" and call.status is CallStatus.OK
    ]
    if calls:
        call, turn = calls[-1]
        return call.message_id, call.started, not turn.taken_back
    last = facts.turns[-1] if facts.turns else None
    return (last.message_ids[-1] if last and last.message_ids else ""), facts.last, True


def _todo_point(facts: SessionFacts, todo: Todo, text: str, time: int) -> OpenPoint:
    priority = f"{todo.priority} priority" if todo.priority else ""
    detail = ", ".join(filter(None, (todo.status.replace("_", " "), priority)))
    return OpenPoint(OpenKind.TODO, todo.text, time, Citation(facts.id, text, time), detail)
