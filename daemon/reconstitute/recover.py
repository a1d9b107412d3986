"""What can be said of each recorded file of a target at a moment: what is proven, by what, and how the disk compares.

Guarantees: unproven text is kept apart from proven content, and a file whose later changes are not proven says so. The
file histories do the proving; this only chooses among their revisions.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from daemon.files import Files
from daemon.files.history import FileHistory, Revision
from daemon.reconstitute.disk import Disk, compare


class State(StrEnum):
    """How much of a file's state at the moment asked for is proven."""

    PROVEN = "proven"  # its last recorded state
    DELETED = "deleted"  # a recorded call removed it; what it held before may be proven
    EARLIER = "proven earlier"  # an earlier state; what was done since is not proven
    UNPROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Recovered:
    """One file. `relative` is its path beneath the target.

    `shown` is the newest proven revision that has content; `guess` a newer one with the best text known, not proven.
    """

    path: str
    relative: str
    state: State
    disk: Disk
    revisions: tuple[Revision, ...]
    shown: Revision | None
    guess: Revision | None = None
    reason: str = ""

    @property
    def last(self) -> Revision:
        """The newest recorded revision."""
        return self.revisions[-1]


def recover(files: Files, paths: Sequence[str], target: str, until: int | None) -> Iterator[Recovered]:
    """Each of `paths` that had been recorded by `until` (epoch ms; None: now), in order.

    A path that others lie beneath and that never had content is a folder some command named, and is passed over.
    """
    folders = {folder for path in paths for folder in _above(path)}
    for path in paths:
        found = _one(files.history(path), path, target, until)
        if found is not None and not (path in folders and found.shown is None and found.guess is None):
            yield found


def _one(history: FileHistory, path: str, target: str, until: int | None) -> Recovered | None:
    revisions = tuple(r for r in history.revisions if until is None or r.time <= until)
    if not revisions:
        return None
    last = revisions[-1]
    proven = [revision for revision in revisions if revision.proven]
    shown = next((revision for revision in reversed(proven) if revision.content is not None), None)
    state, reason = State.UNPROVEN, _why(revisions)
    is_known = last.proven or last.deleted or last.content is None or (shown and shown.content == last.content)
    guess = None if is_known else last
    if last.proven and last.deleted:
        state, reason = State.DELETED, ""
    elif last.proven and last.content is not None:
        state, reason = State.PROVEN, ""
    elif shown is not None:
        state = State.EARLIER
    compared = shown.content if shown is not None and state is not State.DELETED else None
    name = path.rsplit("/", 1)[-1]
    relative = name if path == target else path[len(target.rstrip("/")) + 1 :]
    return Recovered(path, relative, state, compare(path, compared), revisions, shown, guess, reason)


def evidence(revision: Revision) -> str:
    """What proves a revision, or why it is not proven, in one line."""
    said = [*revision.evidence, revision.note]
    if revision.outside_change:
        said.append("changed outside OpenCode before this")
    return "; ".join(dict.fromkeys(filter(None, said)))


def _above(path: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    while len(folder) > 1:
        yield folder
        folder = posixpath.dirname(folder)


def _why(revisions: Sequence[Revision]) -> str:
    """Why the last state is not proven: the notes of the newest unproven revisions, each once."""
    notes: list[str] = []
    for revision in reversed(revisions):
        if revision.proven:
            break
        note = revision.note
        if note and note not in notes:
            notes.append(note)
    return "; ".join(notes[:3]) or "no recorded call tells its whole content"
