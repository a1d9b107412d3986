"""What is left open: todo lists, questions without an answer, what was asked and not done, what failed at last.

Only what nothing since has settled: a later turn or session that takes up the same words, files or commands counts as
having settled it, for a point that is open no more misleads whoever reads it. One fact is one point: what an answer
says of a failure stands with the failure. At most MOST, the surest kinds first, of a kind the newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from daemon.reconstitute.facts.language import mentions, sentences, subjects
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.open_points import failing, not_done, questions, todos, unanswered
from daemon.reconstitute.facts.session_values import CallStatus, Citation, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.setbacks import own_turns, prompt_key
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback
from daemon.reconstitute.recover import Recovered

MOST = 30
"""Open points of one folder."""

_TAKEN_UP = 0.6
"""Who uses this share of a point's words later on is taken to have dealt with it."""
_SUREST = (
    OpenKind.FAILING, OpenKind.NOT_DONE, OpenKind.QUESTION, OpenKind.TODO, OpenKind.REVERT, OpenKind.UNANSWERED,
)  # fmt: skip
"""A command's end is recorded; that a stopped request is still wanted nobody has said."""


@dataclass(frozen=True, slots=True)
class _Event:
    """What was asked, run, changed or said at a time: all by which a point may have been settled."""

    time: int
    words: frozenset[str]
    files: frozenset[str]
    opening: frozenset[str] = frozenset()  # of a prompt: what it begins with, which may be an answer
    place: tuple[str, ...] = ()  # of a command


def find(
    sessions: Sequence[SessionFacts], setbacks: Sequence[Setback], files: Sequence[Recovered] = ()
) -> tuple[OpenPoint, ...]:
    """What nothing in the records settles; `files` tell what became of what a command failed on, and what todos made.

    Each is first taken with the words by which something later may have settled it, "" where nothing may.
    """
    history = mentions.History(sessions)
    events = [event for facts in sessions for event in _events(facts)]
    calls = [call for facts in sessions for turn in facts.turns for call in turn.calls]
    places = {(call.message_id, call.title): failing.place(call) for call in calls}
    found = [
        *((point, point.text) for facts in sessions for point in unanswered.find(facts, history)),
        *not_done.find(history),
        *((point, point.text) for point in todos.find(sessions, files)),
        *((point, "" if is_test else point.text) for point, is_test in failing.find(sessions, setbacks, files)),
        *((point, "") for point in _unanswered(history)),
        *((point, "") for facts in sessions for point in _reverts(facts)),
    ]
    standing = {
        (point.kind, point.text, point.detail): point
        for point, said in sorted(found, key=lambda pair: pair[0].time)
        if not (said and _is_settled(point, said, places.get((point.citation.message_id, point.text), ()), events))
    }
    points = _merged(list(standing.values()), sessions)
    points.sort(key=lambda one: (_SUREST.index(one.kind), -one.time, one.citation.message_id, one.text))
    return tuple(islice(points, MOST))


def _merged(points: Sequence[OpenPoint], sessions: Sequence[SessionFacts]) -> list[OpenPoint]:
    """The points without those that say again what another one says, which takes up their words."""
    turns = {
        message: number
        for number, turn in enumerate(turn for facts in sessions for turn in facts.turns)
        for message in turn.message_ids
    }
    undone = [one for one in points if one.kind is OpenKind.NOT_DONE]
    told: dict[OpenPoint, OpenPoint] = {}
    for one in undone:
        turn = turns.get(one.citation.message_id)
        failed = [each for each in points if each.kind is OpenKind.FAILING and _is_told_by(each, one)]
        same = next((each for each in failed if turns.get(each.citation.message_id) == turn), None)
        if turn is not None and same is not None:
            told[one] = same
    kept = []
    for one in points:
        said = [shorten(undone.text) for undone, failed in told.items() if failed == one]
        is_said = one.kind is OpenKind.TODO and any(
            each.time >= one.time and todos.covers(one.text, each.text) for each in undone
        )
        if one not in told and not is_said:
            kept.append(replace(one, detail="; ".join(filter(None, (one.detail, *(f"“{text}”" for text in said))))))
    return kept


def _is_told_by(failed: OpenPoint, undone: OpenPoint) -> bool:
    """Whether a sentence of the answer is about a failure: it has a word of the command or of what it printed."""
    return bool(subjects.of(f"{failed.text} {failed.detail}") & subjects.of(undone.text))


def _events(facts: SessionFacts) -> Iterator[_Event]:
    for turn in own_turns(facts):
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


def _is_settled(point: OpenPoint, said: str, place: tuple[str, ...], events: Sequence[_Event]) -> bool:
    """Whether something later took it up; a failed command no other that ran in another `place`."""
    wanted = subjects.stems(said)
    files = {word.rsplit("/", 1)[-1] for word in sentences.words(said) if "." in word.strip(".")}
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


def _reverts(facts: SessionFacts) -> Iterator[OpenPoint]:
    for revert in facts.reverts:
        if revert.pending and revert.undone is None:
            citation = Citation(facts.id, revert.message_id, revert.time)
            text = shorten(revert.prompts[0]) if revert.prompts else facts.title
            yield OpenPoint(OpenKind.REVERT, text, revert.time, citation, "OpenCode can still undo this revert")


def _unanswered(history: mentions.History) -> Iterator[OpenPoint]:
    """The last prompts of a session, where no answer came to an end and nobody asked for the same again."""
    own = [turn for facts in history.sessions for turn in own_turns(facts)]
    answered = [turn for turn in own if turn.ending is Ending.ANSWERED and not turn.taken_back]
    for facts in history.sessions:
        for turn in () if facts.session.parent_id else _last_unanswered(facts):
            later = [one for one in answered if one.time > turn.time]
            if any(prompt_key(one) == prompt_key(turn) for one in later):
                continue
            if mentions.again(turn, history) is None:
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
