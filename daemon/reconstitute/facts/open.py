"""What is left open: todo lists, questions without an answer, what was asked and not done, what still fails.

Only what nothing since has settled: a later turn or session that takes up the same words, files or commands counts as
having settled it, for a point that is open no more misleads whoever reads it. At most MOST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from daemon.reconstitute.facts import cues, sentences
from daemon.reconstitute.facts.looks import fails_on_purpose
from daemon.reconstitute.facts.sentences import shorten
from daemon.reconstitute.facts.setbacks import is_unsettled, own_turns, prompt_key
from daemon.reconstitute.facts.values import (
    CallStatus,
    Citation,
    Ending,
    OpenKind,
    OpenPoint,
    Reply,
    SessionFacts,
    Setback,
    SetbackKind,
    Todo,
    Turn,
)

MOST = 30
"""Open points of one folder."""

_TAKEN_UP = 0.6
"""Who uses this share of a point's words later on is taken to have dealt with it."""
_SHORTEST_QUESTION = 3
_LAST_SENTENCES = 3
"""A question stands among the last sentences of a reply; what stands before them is rhetoric or has been answered."""
_STEM = 5
_OPENING = re.compile(r"[.!,;:\n。！，、；：–—]")


@dataclass(frozen=True, slots=True)
class _Event:
    """What was asked, run, changed or said at a time: all by which a point may have been settled."""

    time: int
    words: frozenset[str]
    files: frozenset[str]
    opening: frozenset[str] = frozenset()  # of a prompt: what it begins with, which may be an answer
    folder: str = ""  # of a command


def find(sessions: Sequence[SessionFacts], setbacks: Sequence[Setback]) -> tuple[OpenPoint, ...]:
    """What nothing in the records settles, the newest first."""
    events = [event for facts in sessions for event in _events(facts)]
    folders = {call.message_id: call.folder for facts in sessions for turn in facts.turns for call in turn.calls}
    found = [
        *((point, True) for facts in sessions for point in _of_session(facts)),
        *((point, True) for point in _todos(sessions)),
        *((point, True) for point in _failing_commands(sessions, setbacks)),
        *((point, False) for point in _failing_tests(sessions)),
        *((point, False) for point in _unanswered(sessions)),
        *((point, False) for facts in sessions for point in _reverts(facts)),
    ]
    found.sort(key=lambda pair: (-pair[0].time, pair[0].citation.message_id, pair[0].text))
    standing = (
        point
        for point, may_be in found
        if not (may_be and _is_settled(point, folders.get(point.citation.message_id, ""), events))
    )
    return tuple(islice(standing, MOST))


def _events(facts: SessionFacts) -> Iterator[_Event]:
    for turn in own_turns(facts):
        if turn.taken_back:
            continue
        if turn.prompt and turn.ending is Ending.ANSWERED:
            opening = _stems(_OPENING.split(turn.prompt.strip(), maxsplit=1)[0])
            yield _Event(turn.time, _stems(turn.prompt), frozenset(), opening)
        for call in turn.calls:
            if call.status is CallStatus.OK and (call.command or call.changed):
                files = frozenset(path.rsplit("/", 1)[-1].casefold() for path in call.changed)
                said = call.command or " ".join([call.title, *call.changed])
                yield _Event(call.started, _stems(said), files, folder=call.folder)


def _stems(text: str) -> frozenset[str]:
    """The beginnings of its words, so that "tests" and "test" are the same."""
    pieces = (piece for word in sentences.words(text) for piece in (word, *word.replace("/", ".").split(".")))
    return frozenset(piece[:_STEM].rstrip("s") or piece for piece in pieces if piece)


def _is_settled(point: OpenPoint, folder: str, events: Sequence[_Event]) -> bool:
    """Whether something later took it up; a failed command no other that ran in another `folder`."""
    wanted = _stems(point.text)
    files = {word.rsplit("/", 1)[-1] for word in sentences.words(point.text) if "." in word.strip(".")}
    later = [event for event in events if event.time > point.time]
    if point.kind is OpenKind.FAILING:
        later = [event for event in later if event.folder in ("", folder)]
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


def _of_session(facts: SessionFacts) -> Iterator[OpenPoint]:
    """What the agent asked at the end of a session, and what it said anywhere that it did not do."""
    turns = [turn for turn in own_turns(facts) if not turn.taken_back and not turn.is_compaction]
    for turn in turns:
        reply = _last_reply(turn)
        if reply is None or facts.session.parent_id:
            continue
        pieces = sentences.split(reply.text)
        if turn is turns[-1]:
            yield from _questions(facts, turn, reply, pieces)
        for sentence in pieces:
            if _says_undone(sentence, reply.text):
                citation = Citation(facts.id, reply.message_id, reply.time, sentence.text)
                yield OpenPoint(OpenKind.NOT_DONE, sentence.text, reply.time, citation)


def _last_reply(turn: Turn) -> Reply | None:
    """What an answer ends with; one that was stopped or failed ends anywhere."""
    if turn.ending is not Ending.ANSWERED:
        return None
    return next((reply for reply in reversed(turn.replies) if reply.text.strip()), None)


def _questions(facts: SessionFacts, turn: Turn, reply: Reply, pieces: list[sentences.Sentence]) -> Iterator[OpenPoint]:
    for sentence in pieces[-_LAST_SENTENCES:]:
        if is_real_question(sentence, reply.text) and sentence.text not in turn.prompt:
            citation = Citation(facts.id, reply.message_id, reply.time, sentence.text)
            yield OpenPoint(OpenKind.QUESTION, sentence.text, reply.time, citation)


def is_real_question(sentence: sentences.Sentence, context: str = "") -> bool:
    """Whether a sentence asks for a decision or for something to be told; a courtesy or an offer does not."""
    if not sentence.is_question or len(sentences.words(sentence.text)) < _SHORTEST_QUESTION:
        return False
    languages = cues.of(sentence.bare, context)
    kinds = {kind for kind in ("closer", "offer", "either") for one in languages if one.find(kind, sentence.bare)}
    return "closer" not in kinds and ("offer" not in kinds or "either" in kinds)


def _says_undone(sentence: sentences.Sentence, context: str) -> bool:
    if sentence.is_question:
        return False
    return any(
        language.find("undone", sentence.bare)
        and not language.find("undone_not", sentence.bare)
        and not language.find("condition", sentence.bare)
        for language in cues.of(sentence.bare, context)
    )


# -- prompts without an answer -----------------------------------------------------------------------------------


def _unanswered(sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """The last prompt of a session, where no answer came to an end and nobody asked the same again."""
    answered: dict[str, int] = {}
    for facts in sessions:
        for turn in own_turns(facts):
            if turn.ending is Ending.ANSWERED and not turn.taken_back:
                answered[prompt_key(turn)] = max(turn.time, answered.get(prompt_key(turn), 0))
    for facts in sessions:
        turns = [turn for turn in own_turns(facts) if not turn.is_compaction]
        if not turns:
            continue
        turn = turns[-1]
        if not turn.prompt or turn.taken_back or turn.ending is Ending.ANSWERED:
            continue
        if facts.session.parent_id or answered.get(prompt_key(turn), -1) > turn.time:
            continue
        citation = Citation(facts.id, turn.prompt_id, turn.time)
        yield OpenPoint(OpenKind.UNANSWERED, shorten(turn.prompt), turn.time, citation, _why(turn))


def _why(turn: Turn) -> str:
    if turn.ending is Ending.FAILED:
        return shorten(f"the answer failed: {turn.error}") if turn.error else "the answer failed"
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


# -- what still fails --------------------------------------------------------------------------------------------


def _failing_tests(sessions: Sequence[SessionFacts]) -> Iterator[OpenPoint]:
    """Of each test command the last run, if it failed."""
    runs = sorted((run for facts in sessions for run in facts.tests), key=lambda run: run.citation.time)
    for run in {run.command: run for run in runs}.values():
        if not run.passed:
            yield OpenPoint(OpenKind.FAILING, run.command, run.citation.time, run.citation, run.summary)


def _failing_commands(sessions: Sequence[SessionFacts], setbacks: Sequence[Setback]) -> Iterator[OpenPoint]:
    """Commands that failed and never succeeded since.

    An edit that failed leaves the file as it was: a setback, and nothing to be done.
    """
    tests = {run.command for facts in sessions for run in facts.tests}
    for setback in setbacks:
        is_failure = setback.kind is SetbackKind.COMMAND_FAILED and not fails_on_purpose(setback.text)
        if is_failure and is_unsettled(setback) and setback.text not in tests:
            yield OpenPoint(OpenKind.FAILING, setback.text, setback.time, setback.citation, setback.detail)
