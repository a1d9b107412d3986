"""What the todo lists leave to be done, without what a later turn took up.

A list is seldom looked after once its session is over. So an entry counts as taken up where a later turn that changed
files speaks of it: in its prompt, in the title of its session, or by the name or the beginning of a file that it made.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from daemon.reconstitute.facts import sentences, spoken_of, subjects
from daemon.reconstitute.facts.contents import last_text
from daemon.reconstitute.facts.values import (
    CallStatus,
    Citation,
    OpenKind,
    OpenPoint,
    SessionFacts,
    Todo,
    Turn,
)
from daemon.reconstitute.recover import Recovered

_TAKEN_UP = 0.6
"""Who uses this share of an entry's subjects is about it."""
_HEAD = 400
"""Bytes of a file that tell what it is for."""
_DENSE = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without blanks; of Japanese only the signs that stand for things."""
_WORD = re.compile(r"[^\W_]+")


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> Iterator[OpenPoint]:
    """Of an entry that several lists have, the newest tells how it stands."""
    lists = [(facts, *_when_written(facts)) for facts in sessions]
    latest: dict[str, int] = {}
    for facts, _, time, _ in lists:
        for todo in facts.todos:
            latest[_key(todo)] = max(time, latest.get(_key(todo), time))
    known = {file.path: file for file in files}
    for facts, written, time, stands in lists:
        for todo in facts.todos:
            is_newest = stands and todo.is_open and latest[_key(todo)] == time
            if is_newest and not _is_taken_up(todo.text, facts, time, sessions, known):
                yield _todo(facts, todo, written, time)


def _is_taken_up(
    text: str, own: SessionFacts, time: int, sessions: Sequence[SessionFacts], known: Mapping[str, Recovered]
) -> bool:
    made = {path for facts in sessions for turn in spoken_of.own_turns(facts) for path in _made(turn, 0, time)}
    for facts, turn in spoken_of.standing(sessions, time):
        changed = _made(turn, time)
        if not changed and not (facts.changes and any(call.command for call in turn.calls)):
            continue
        title = facts.title if facts is not own else ""
        said = [turn.prompt, title, *(_head(known[path]) for path in changed - made if path in known)]
        if any(covers(text, one) for one in said) or _is_within(title, text):
            return True
        if any(_is_within(path.rsplit("/", 1)[-1].split(".")[0], text) for path in changed - made):
            return True
    return False


def _made(turn: Turn, after: int, until: int | None = None) -> frozenset[str]:
    """The files that a turn's calls changed in a time."""
    calls = (call for call in turn.calls if call.started > after and (until is None or call.started <= until))
    return frozenset(path for call in calls for path in call.changed)


def _head(file: Recovered) -> str:
    text = last_text(file, _HEAD)
    return text.text if text is not None else ""


def covers(text: str, said: str) -> bool:
    """Whether `said` has most of the subjects of an entry; a run of dense script counts as a whole."""
    dense = _DENSE.findall(unicodedata.normalize("NFKC", text).casefold())
    if dense:
        folded = unicodedata.normalize("NFKC", said).casefold()
        return all(run in folded for run in dense)
    return sentences.share(_subjects(text), _subjects(said)) >= _TAKEN_UP


def _is_within(name: str, text: str) -> bool:
    """Whether a title or a file's name says nothing but subjects of an entry."""
    about = _subjects(name)
    return bool(about) and about <= _subjects(text)


def _subjects(text: str) -> frozenset[str]:
    return subjects.of(" ".join(_WORD.findall(text)))


def _key(todo: Todo) -> str:
    return " ".join(todo.text.casefold().split())


def _when_written(facts: SessionFacts) -> tuple[str, int, bool]:
    """By which message and when the list got its last state, and whether that turn stands."""
    calls = [
        (call, turn)
        for turn in spoken_of.own_turns(facts)
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
