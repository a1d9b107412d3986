"""What the agent undid again in a later turn: a file is, byte by byte, what it was before an earlier one, and still is.

A revert of OpenCode's is none; that stands in its session. Only states that are certain are compared. A turn is not
called undone: what it did to other files may stand, so only the files that are as before are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from daemon.files import FileHistory
from daemon.files.disk import Disk
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import Setback, SetbackKind
from daemon.reconstitute.recover import CERTAIN, Recovered
from daemon.redact import redact

_MOST_NAMED = 3
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
    pairs: dict[tuple[str, str], tuple[_Place, _Place, list[Recovered]]] = {}
    for file in files:
        if file.state not in CERTAIN or file.disk is Disk.DIFFERS:
            continue  # something else may have changed it since
        for made, undone in _pairs(FileHistory(file.path, file.revisions).changes, places):
            key = made[1].prompt_id, undone[1].prompt_id
            pairs.setdefault(key, (made, undone, []))[2].append(file)
    found = [_setback(*pair) for pair in pairs.values()]
    return tuple(sorted(found, key=lambda one: (one.time, one.citation.message_id)))


def _setback(made: _Place, undone: _Place, files: Sequence[Recovered]) -> Setback:
    (facts, turn), (later, by) = made, undone
    names = ", ".join(f"`{redact(file.relative)}`" for file in files[:_MOST_NAMED])
    which = names if len(files) <= _MOST_NAMED else f"{len(files)} files"
    verb = "is" if len(files) == 1 else "are"
    return Setback(
        SetbackKind.UNDONE,
        f"{which} {verb} again as before “{shorten(turn.prompt)}”",
        turn.time,
        Citation(facts.id, turn.prompt_id, turn.time),
        "",
        f"undone after “{shorten(by.prompt, 80)}”",
        Citation(later.id, by.prompt_id, by.time),
        tuple(file.path for file in files),
    )


def _pairs(changes: Sequence[Change], places: dict[str, _Place]) -> Iterator[tuple[_Place, _Place]]:
    """The turns that changed a file which its last change, by another turn, made as it was before them."""
    last = changes[-1] if changes else None
    undone = _place(last, places) if last is not None and last.revision.proven and not last.is_revert else None
    if last is None or undone is None:
        return
    told: set[str] = set()
    for change in changes[:-1]:
        made, before = _place(change, places), change.before
        turn = made or places.get(change.revision.message_id)
        if turn is None or turn[1].prompt_id in told:
            continue
        told.add(turn[1].prompt_id)  # what it was in the middle of a turn is not what it was before it
        if made is None or made[1] is undone[1] or before is None or not before.proven or change.is_revert:
            continue
        if _is_same(before, last.revision):
            yield made, undone


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
