"""What a later turn undid by hand: the files of a turn are again, byte by byte, what they were before it.

A revert of OpenCode's is none; that stands in its session. Only states that are certain are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from daemon.files import FileHistory
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision
from daemon.reconstitute.facts.sentences import shorten
from daemon.reconstitute.facts.values import Citation, SessionFacts, Setback, SetbackKind, Turn
from daemon.reconstitute.recover import Recovered

_Place = tuple[SessionFacts, Turn]


def find(sessions: Sequence[SessionFacts], files: Iterable[Recovered]) -> tuple[Setback, ...]:
    """Each pair of a turn and the later one that undid what it did to a file, oldest first."""
    places = {
        message: (facts, turn)
        for facts in sessions
        for turn in facts.turns[facts.copied :]
        if turn.prompt and not turn.taken_back
        for message in turn.message_ids
    }
    pairs: dict[tuple[str, str], tuple[_Place, _Place, list[str]]] = {}
    for file in files:
        for made, undone in _pairs(FileHistory(file.path, file.revisions).changes, places):
            key = made[1].prompt_id, undone[1].prompt_id
            paths = pairs.setdefault(key, (made, undone, []))[2]
            paths += [file.path] if file.path not in paths else []
    found = [_setback(*pair) for pair in pairs.values()]
    return tuple(sorted(found, key=lambda one: (one.time, one.citation.message_id)))


def _setback(made: _Place, undone: _Place, paths: Sequence[str]) -> Setback:
    (facts, turn), (later, by) = made, undone
    return Setback(
        SetbackKind.UNDONE,
        shorten(turn.prompt),
        turn.time,
        Citation(facts.id, turn.prompt_id, turn.time),
        "the content is again what it was before",
        f"undone after “{shorten(by.prompt, 80)}”",
        Citation(later.id, by.prompt_id, by.time),
        tuple(paths),
    )


def _pairs(changes: Sequence[Change], places: dict[str, _Place]) -> Iterator[tuple[_Place, _Place]]:
    """The turns that changed a file, each with the later one after which it was as before, if there is one."""
    for number, change in enumerate(changes):
        made, before = _place(change, places), change.before
        if made is None or before is None or not before.proven or change.is_revert:
            continue
        for later in changes[number + 1 :]:
            if not later.revision.proven or not _is_same(before, later.revision):
                continue
            undone = _place(later, places)
            if undone is not None and undone[1] is not made[1] and not later.is_revert:
                yield made, undone
            break


def _place(change: Change, places: dict[str, _Place]) -> _Place | None:
    """The turn that made a change; of one that was only seen afterwards, the only one that may have made it."""
    if change.revision.operation not in OBSERVATIONS:
        is_unsure = change.doubts or change.revision.is_from_outside  # something else may have changed it before
        return None if is_unsure else places.get(change.revision.message_id)
    makers = {one.message_id for one in change.doubts if one.operation in DOUBTS}
    return places.get(makers.pop()) if len(makers) == 1 else None


def _is_same(one: Revision, other: Revision) -> bool:
    if one.deleted or other.deleted:
        return one.deleted and other.deleted
    return one.whole is not None and other.whole is not None and one.whole.is_same(other.whole)
