"""What is left open: failed commands, work not done, questions, todos, requests without an answer, pending reverts.

A point is left out once a later turn or session takes up the same words, files or commands: a point that is no longer
open would mislead. What an answer says about a failure is shown with the failure. The surest kinds come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from daemon.reconstitute.facts.language import sentences, subjects
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.open_points import failing, not_done, questions, todos
from daemon.reconstitute.facts.session_values import CallStatus, Citation, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.setbacks import prompt_key
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback
from daemon.reconstitute.recover import Recovered

MOST = 30
"""Open points of one folder."""

_TAKEN_UP = 0.6
"""A later text with this share of a point's words has dealt with it."""
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
        *((point, point.text) for point in todos.find(sessions, files)),
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
        failures = (other for other in points if other.kind is OpenKind.FAILING and _is_about(point, other))
        failure = next((other for other in failures if turns.get(other.citation.message_id) == turn), None)
        if turn is not None and failure is not None:
            merged[point] = failure
    kept = []
    for point in points:
        quotes = [shorten(other.text) for other, failure in merged.items() if failure == point]
        is_repeated = point.kind is OpenKind.TODO and any(
            other.time >= point.time and todos.covers(point.text, other.text) for other in undone
        )
        if point not in merged and not is_repeated:
            detail = "; ".join(filter(None, (point.detail, *(f"“{quote}”" for quote in quotes))))
            kept.append(replace(point, detail=detail))
    return kept


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
    wanted = subjects.stems(text)
    files = {word.rsplit("/", 1)[-1] for word in sentences.words(text) if "." in word.strip(".")}
    later = [event for event in events if event.time > point.time]
    if point.kind is OpenKind.FAILING:
        later = [event for event in later if event.place in ((), place)]
    if point.kind is OpenKind.QUESTION and any(event.opening and event.opening <= wanted for event in later):
        return True
    if files and files <= {file for event in later for file in event.files}:
        return True
    if any(sentences.share(wanted, event.words) >= _TAKEN_UP for event in later):
        return True
    return bool(wanted) and any(len(event.words) > 1 and event.words <= wanted for event in later)


# -- pending reverts, and requests without an answer -------------------------------------------------------------


def _reverts(facts: SessionFacts) -> Iterator[OpenPoint]:
    for revert in facts.reverts:
        if revert.pending and revert.undone is None:
            citation = Citation(facts.id, revert.message_id, revert.time)
            text = shorten(revert.prompts[0]) if revert.prompts else facts.title
            yield OpenPoint(OpenKind.REVERT, text, revert.time, citation, "OpenCode can still undo this revert")


def _unanswered(history: subjects.History) -> Iterator[OpenPoint]:
    """The last prompts of a session that got no whole answer, if nobody made the same request again."""
    own = [turn for facts in history.sessions for turn in facts.own_turns]
    answered = [turn for turn in own if turn.ending is Ending.ANSWERED and not turn.taken_back]
    for facts in history.sessions:
        for turn in () if facts.session.parent_id else _last_unanswered(facts):
            later = (other for other in answered if other.time > turn.time)
            if any(prompt_key(other) == prompt_key(turn) for other in later):
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
