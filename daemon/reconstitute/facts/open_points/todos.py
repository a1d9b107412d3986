"""The open entries of the todo lists, without those that a later turn took up.

Nobody updates a list once its session is over. So an entry counts as taken up if a later turn that changed files
mentions it: in its prompt, in the title of its session, or by the name or the beginning of a file that it created.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from daemon.reconstitute.facts.content import last_text
from daemon.reconstitute.facts.language import sentences, subjects
from daemon.reconstitute.facts.session_values import CallStatus, Citation, SessionFacts, Todo
from daemon.reconstitute.facts.values import OpenKind, OpenPoint
from daemon.reconstitute.recover import Recovered

_TAKEN_UP = 0.6
"""A text with this share of an entry's subjects is about it."""
_HEAD = 400
"""Bytes of a file that say what it is for."""
_DENSE = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without blanks; of Japanese only the characters that stand for things."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Work:
    """A turn that changed files: its prompt and the beginnings of files it created (`texts`), and their names."""

    time: int
    session: str
    title: str
    texts: tuple[str, ...]
    names: tuple[str, ...]


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> Iterator[OpenPoint]:
    """The open entries; if several lists have an entry, the newest list counts."""
    lists = [(facts, *_when_written(facts)) for facts in sessions]
    latest: dict[str, int] = {}
    for facts, _, time, _ in lists:
        for todo in facts.todos:
            latest[_key(todo)] = max(time, latest.get(_key(todo), time))
    works = _works(sessions, files)
    for facts, written, time, stands in lists:
        for todo in facts.todos:
            is_newest = stands and todo.is_open and latest[_key(todo)] == time
            if is_newest and not any(_takes_up(work, todo.text, facts) for work in works if work.time > time):
                yield _todo(facts, todo, written, time)


def _works(sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> list[_Work]:
    known = {file.path: file for file in files}
    first: dict[str, int] = {}
    turns = [(facts, turn) for facts in sessions for turn in facts.exchanges if not turn.taken_back]
    for call in sorted((call for _, turn in turns for call in turn.calls), key=lambda call: call.started):
        for path in call.changed:
            first.setdefault(path, call.started)
    works = []
    for facts, turn in turns:
        calls = [call for call in turn.calls if call.changed or (call.command and facts.changes)]
        new = sorted({path for call in calls for path in call.changed if first[path] == call.started})
        heads = (_head(known[path]) for path in new if path in known)
        names = tuple(path.rsplit("/", 1)[-1].split(".")[0] for path in new)
        if calls:
            works.append(_Work(turn.time, facts.id, facts.title, (turn.prompt, *heads), names))
    return works


def _takes_up(work: _Work, text: str, own: SessionFacts) -> bool:
    """Whether a turn is about an entry of a list written before it."""
    title = work.title if work.session != own.id else ""
    if any(covers(text, other) for other in (*work.texts, title)):
        return True
    return any(_is_within(name, text) for name in (*work.names, title))


def _head(file: Recovered) -> str:
    head = last_text(file, _HEAD)
    return head.text if head is not None else ""


def covers(text: str, other: str) -> bool:
    """Whether `other` has most subjects of an entry's `text`; a run of a script without blanks counts as a whole."""
    dense = _DENSE.findall(unicodedata.normalize("NFKC", text).casefold())
    if dense:
        folded = unicodedata.normalize("NFKC", other).casefold()
        return all(run in folded for run in dense)
    return sentences.share(_subjects(text), _subjects(other)) >= _TAKEN_UP


def _is_within(name: str, text: str) -> bool:
    """Whether a title or a file's name has only subjects of an entry."""
    about = _subjects(name)
    return bool(about) and about <= _subjects(text)


@lru_cache(maxsize=8192)
def _subjects(text: str) -> frozenset[str]:
    return subjects.of(" ".join(_WORD.findall(text)))


def _key(todo: Todo) -> str:
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


def _todo(facts: SessionFacts, todo: Todo, written: str, time: int) -> OpenPoint:
    priority = f"{todo.priority} priority" if todo.priority else ""
    detail = ", ".join(filter(None, (todo.status.replace("_", " "), priority)))
    return OpenPoint(OpenKind.TODO, todo.text, time, Citation(facts.id, written, time), detail)
