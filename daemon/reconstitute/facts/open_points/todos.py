"""What the todo lists leave to be done, without what a later turn took up.

A list is seldom looked after once its session is over. So an entry counts as taken up where a later turn that changed
files speaks of it: in its prompt, in the title of its session, or by the name or the beginning of a file that it made.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from daemon.reconstitute.facts.content.text import last_text
from daemon.reconstitute.facts.language import mentions, sentences, subjects
from daemon.reconstitute.facts.session_values import CallStatus, Citation, SessionFacts, Todo
from daemon.reconstitute.facts.values import OpenKind, OpenPoint
from daemon.reconstitute.recover import Recovered

_TAKEN_UP = 0.6
"""Who uses this share of an entry's subjects is about it."""
_HEAD = 400
"""Bytes of a file that tell what it is for."""
_DENSE = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without blanks; of Japanese only the signs that stand for things."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Work:
    """A turn that changed files: what it says of them in its prompt, and what the files that it made are called."""

    time: int
    session: str
    title: str
    said: tuple[str, ...]
    names: tuple[str, ...]


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> Iterator[OpenPoint]:
    """Of an entry that several lists have, the newest tells how it stands."""
    lists = [(facts, *_when_written(facts)) for facts in sessions]
    latest: dict[str, int] = {}
    for facts, _, time, _ in lists:
        for todo in facts.todos:
            latest[_key(todo)] = max(time, latest.get(_key(todo), time))
    works = _works(sessions, files)
    for facts, written, time, stands in lists:
        for todo in facts.todos:
            is_newest = stands and todo.is_open and latest[_key(todo)] == time
            if is_newest and not any(_takes_up(one, todo.text, facts) for one in works if one.time > time):
                yield _todo(facts, todo, written, time)


def _works(sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> list[_Work]:
    known = {file.path: file for file in files}
    first: dict[str, int] = {}
    turns = [(facts, turn) for facts in sessions for turn in mentions.own_turns(facts) if not turn.taken_back]
    for call in sorted((call for _, turn in turns for call in turn.calls), key=lambda call: call.started):
        for path in call.changed:
            first.setdefault(path, call.started)
    made = []
    for facts, turn in turns:
        calls = [call for call in turn.calls if call.changed or (call.command and facts.changes)]
        new = sorted({path for call in calls for path in call.changed if first[path] == call.started})
        heads = (_head(known[path]) for path in new if path in known)
        names = tuple(path.rsplit("/", 1)[-1].split(".")[0] for path in new)
        if calls:
            made.append(_Work(turn.time, facts.id, facts.title, (turn.prompt, *heads), names))
    return made


def _takes_up(work: _Work, text: str, own: SessionFacts) -> bool:
    """Whether a turn is about an entry of a list that was written before it."""
    title = work.title if work.session != own.id else ""
    if any(covers(text, one) for one in (*work.said, title)):
        return True
    return any(_is_within(name, text) for name in (*work.names, title))


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


@lru_cache(maxsize=8192)
def _subjects(text: str) -> frozenset[str]:
    return subjects.of(" ".join(_WORD.findall(text)))


def _key(todo: Todo) -> str:
    return " ".join(todo.text.casefold().split())


def _when_written(facts: SessionFacts) -> tuple[str, int, bool]:
    """By which message and when the list got its last state, and whether that turn stands."""
    calls = [
        (call, turn)
        for turn in mentions.own_turns(facts)
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
