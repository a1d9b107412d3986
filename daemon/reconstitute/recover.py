"""What is known of each recorded file of a target at a moment: what is proven, by what, and how the disk compares.

Guarantees: uncertain content is kept apart from proven content, and a file whose later changes are not proven says so.
The file histories prove; this module only chooses among their revisions.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from daemon.display import counted, visible
from daemon.files import Disk, FileHistory, Grade, Revision, compare
from daemon.files.content import Fragments
from daemon.files.history import DIFF, SNAPSHOT, is_lost_folder
from daemon.files.trees import above
from daemon.model import Operation
from daemon.reconstitute.withheld import REASON
from daemon.redact import redact
from daemon.transcript.shell import NOTE_PREFIX

_SNAPSHOTS = frozenset({SNAPSHOT, DIFF})
_DOUBTS = frozenset({Operation.RUN, Operation.UNCLEAR})
_MOST_RUNS = 5


class State(StrEnum):
    """How certain a file's state at the requested moment is: its grade, or that it was deleted."""

    VERIFIED = Grade.VERIFIED.value
    PROVEN = Grade.PROVEN.value
    DELETED = "deleted"  # what it held before may be proven
    STALE = Grade.STALE.value
    PARTIAL = Grade.PARTIAL.value
    LOST = Grade.LOST.value
    WITHHELD = "withheld"


CERTAIN = frozenset({State.VERIFIED, State.PROVEN, State.DELETED})

MEANING = {
    State.VERIFIED: "every byte is known, and two independent kinds of record agree on it",
    State.PROVEN: "every byte is known: it follows from what OpenCode recorded",
    State.DELETED: "it is certain that the file was deleted; its page has what it held before, as far as that is known",
    State.STALE: "a whole content is known, but it is not certain that the file still was like that",
    State.PARTIAL: "lines of it are known, but not the whole content, byte by byte",
    State.LOST: "it is recorded that the file was there or was changed, but not what it held",
    State.WITHHELD: "what it held is not published, because files of its name hold secrets",
}
"""Each state explained for people who see it for the first time; follows a colon."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One file. `relative` is its path beneath the target.

    `certain` is the newest certain revision that has content; `uncertain` is a newer one with the best known text, not
    proven. For a deleted file both are from before its deletion.
    """

    path: str
    relative: str
    state: State
    disk: Disk
    revisions: tuple[Revision, ...]
    certain: Revision | None
    uncertain: Revision | None = None
    reason: str = ""

    @property
    def last(self) -> Revision:
        """The newest recorded revision."""
        return self.revisions[-1]

    @property
    def changed(self) -> Revision | None:
        """The newest revision that changed it; None if no change is recorded."""
        return FileHistory(self.path, self.revisions).last_change

    @property
    def moved_to(self) -> str:
        """The new path of a file that was moved away; empty if it exists or was deleted.

        Later observations that it is still gone do not matter.
        """
        last_change = self.changed
        return last_change.moved_to if self.state is State.DELETED and last_change is not None else ""

    @property
    def last_existing(self) -> Revision | None:
        """The newest revision in which the file existed; for a deleted file, the one before its deletion."""
        return next((revision for revision in reversed(self.revisions) if not revision.deleted), None)

    @property
    def best(self) -> Revision | None:
        """The revision that its page shows first."""
        return self.certain if self.certain is not None else self.uncertain

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of which not even the names in it are archived."""
        return is_lost_folder(self.last.grade, self.last.note)

    @property
    def was_touched(self) -> bool:
        """Whether a session changed or read it; false if only snapshots or doubts about its folder name it."""
        return any(
            (r.operation not in _DOUBTS and r.tool != SNAPSHOT) or not r.kinds <= _SNAPSHOTS for r in self.revisions
        )


def shell_word(path: str) -> str:
    """`path` quoted for a shell; empty if it cannot be shown as it is: a secret, a control character.

    Quoting may hide a secret from the rules that recognise it, so the path itself is checked too.
    """
    word = shlex.quote(path)
    is_plain = redact(path) == path and redact(word) == word and " ".join(visible(word).split()) == word
    return word if is_plain else ""


def recover(histories: Iterable[FileHistory], target: str) -> Iterator[Recovered]:
    """What is known of each file, in the order given.

    Two kinds of paths are skipped: a path without content that has files beneath it is a folder that a command named;
    and a path that no record shows to have existed and that is not on the disk may never have been made.
    """
    listed = list(histories)
    folders = {folder for history in listed for folder in above(history.path)}
    for history in listed:
        file = _recovered(history, target)
        if file is not None and not (history.path in folders and file.certain is None and file.uncertain is None):
            yield file


def _recovered(history: FileHistory, target: str) -> Recovered | None:
    revisions, last = history.revisions, history.latest
    if last is None:
        return None
    if all(map(_shows_nothing, revisions)) and (last.deleted or compare(history.path, None) is not Disk.PRESENT):
        return None  # perhaps never made, or only ever taken away: a temporary file, or a folder
    certain = next((r for r in reversed(revisions) if r.proven and r.whole is not None), None)
    state = State.DELETED if last.proven and last.deleted else State(last.grade.value)
    state = State.WITHHELD if last.note == REASON else state
    name = history.path.rsplit("/", 1)[-1]
    relative = name if history.path == target else history.path[len(target.rstrip("/")) + 1 :]
    disk = _on_disk(history.path, None if state is State.DELETED else certain)
    reason = "" if last.proven else _why(revisions)
    uncertain = _newer_uncertain(revisions, certain)
    return Recovered(history.path, relative, state, disk, revisions, certain, uncertain, reason)


def _shows_nothing(revision: Revision) -> bool:
    """Whether it only says that something may have made or changed the file, or that the file is gone."""
    is_known = revision.whole is not None or revision.fragments is not None
    return not is_known and (revision.deleted or revision.operation in _DOUBTS)


def _newer_uncertain(revisions: Sequence[Revision], certain_revision: Revision | None) -> Revision | None:
    """The newest known state of the file, if it is not certain and differs from `certain_revision`; else None."""
    last_state = next((revision for revision in reversed(revisions) if not revision.deleted), None)
    if last_state is None or last_state.proven:
        return None
    if last_state.whole is None:
        return last_state if last_state.fragments is not None and last_state.fragments.runs else None
    is_same = (
        certain_revision is not None
        and certain_revision.whole is not None
        and last_state.whole.is_same(certain_revision.whole)
    )
    return None if is_same else last_state


def _on_disk(path: str, certain_revision: Revision | None) -> Disk:
    """How the disk compares; the content is only loaded if the path is on the disk."""
    comparison = compare(path, None)
    if comparison is not Disk.PRESENT or certain_revision is None:
        return comparison
    return compare(path, certain_revision.content)


def evidence(revision: Revision) -> str:
    """What proves a revision, or why it is not proven, in one line."""
    remarks = [*revision.evidence, note_for_people(revision)]
    if revision.was_changed_outside:
        remarks.append("changed outside OpenCode before this")
    return "; ".join(dict.fromkeys(filter(None, remarks)))


def note_for_people(revision: Revision) -> str:
    """The note of a revision in words for people."""
    if revision.grade is Grade.PARTIAL and revision.fragments is not None:
        return _known_lines(revision.fragments)
    if revision.note.startswith(NOTE_PREFIX):
        how = "a shell command may have changed it: " if revision.operation is Operation.UNCLEAR else "shell command: "
        return how + revision.note.removeprefix(NOTE_PREFIX)
    return revision.note


def _known_lines(fragments: Fragments) -> str:
    """``lines 1 to 40 and 3 lines at places not known are known, the rest is not``."""
    placed = [run for run in fragments.runs if run.first is not None]
    loose = fragments.count - sum(len(run.lines) for run in placed)
    if fragments.is_all and len(placed) == 1 and not loose:
        newline_note = "" if fragments.newline is not None else " and whether a newline ends the file"
        return f"all its lines are known, but not their line ends{newline_note}"
    if len(placed) > _MOST_RUNS:
        lines = [counted(fragments.count - loose, "line")]
    else:
        ends = [(run.first_line, run.end - 1) for run in placed]
        lines = [f"line {first}" if first == last else f"lines {first} to {last}" for first, last in ends]
    if loose:
        lines.append(f"{counted(loose, 'line')} whose place is not known")
    return f"of its content only this is known: {', '.join(lines)}" if lines else "no line of it is known"


def _why(revisions: Sequence[Revision]) -> str:
    """Why the last state is not proven: the notes of the newest unproven revisions, each once."""
    notes: list[str] = []
    for revision in reversed(revisions):
        if revision.proven:
            break
        note = note_for_people(revision)
        if note and note not in notes:
            notes.append(note)
        if revision.grade is Grade.PARTIAL:
            break  # what is known now says it all
    return "; ".join(notes[:3]) or "no recorded call tells its whole content"
