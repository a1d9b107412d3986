"""What the disk really held after every turn, and how far what is recovered agrees with it.

The notes are made by reading the folders, never from a record. A comparison looks at every file of every note: what is
called proven or verified and is not what stood there is wrong, everything else that is not certain is refused.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from daemon.files import FileHistory, Files, Revision

_PAUSE_S = 0.01
"""Between a note and what follows, so that the two do not fall into one millisecond."""


@dataclass(frozen=True)
class Note:
    """The files beneath one folder at one moment (epoch ms): absolute path -> content."""

    after: str
    folder: str
    time: int
    files: Mapping[str, bytes]
    links: Mapping[str, str]
    """The symbolic links among `files`, where each leads."""


@dataclass
class Notes:
    """The notes of one run, in the order they were made; safe to use from several threads."""

    taken: list[Note] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, after: str, *folders: Path) -> None:
        """Note what the folders hold now, after the turn of this name."""
        time.sleep(_PAUSE_S)
        for folder in folders:
            now = int(time.time() * 1000)
            links = {str(path): os.readlink(path) for path in folder.rglob("*") if path.is_symlink()}
            note = Note(after, str(folder), now, contents(folder), links)
            with self._lock:
                self.taken.append(note)
        time.sleep(_PAUSE_S)

    def last(self, folder: Path) -> Note:
        return next(note for note in reversed(self.taken) if note.folder == str(folder))


def contents(folder: Path) -> dict[str, bytes]:
    """Absolute path -> content of every file, as reading it shows it; git's own files are no work of anybody's."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


@dataclass
class Score:
    """How every file of some notes was recovered; `wrong` and `refused` name the file and the moment."""

    exact: int = 0
    gone: int = 0
    """Certain to be absent, and absent."""
    refused: Counter[str] = field(default_factory=Counter)
    which: list[str] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    """What is wrong -> the turns after which it is."""

    def wrong_once(self) -> list[str]:
        """Each wrong statement with its first and last moment."""
        return [f"after {turns[0]} … {turns[-1]} ({len(turns)}): {what}" for what, turns in self.wrong.items()]

    def __str__(self) -> str:
        reasons = ", ".join(f"{n} {reason}" for reason, n in self.refused.most_common())
        return (
            f"{self.exact} exact, {self.gone} rightly gone, {sum(self.refused.values())} refused ({reasons or 'none'}), "
            f"{sum(map(len, self.wrong.values()))} wrong"
        )


def compare(files: Files, notes: Iterable[Note]) -> Score:
    """Every file of every note against `Files.history(path).at(the note's time)`."""
    score = Score()
    known: dict[str, dict[str, FileHistory]] = {}
    for note in notes:
        if note.folder not in known:
            known[note.folder] = {history.path: history for history in files.histories(note.folder)}
        histories = known[note.folder]
        for path in sorted(note.files.keys() | histories.keys()):
            if "/.git/" in path:
                continue
            history = histories.get(path)
            _judge(score, note, path, None if history is None else history.at(note.time))
    return score


def _judge(score: Score, note: Note, path: str, revision: Revision | None) -> None:
    truth = note.files.get(path)
    name = path[len(note.folder) + 1 :]
    if revision is None or not revision.proven:
        if truth is not None:
            reason = "nothing recorded" if revision is None else f"{revision.grade}: {revision.note or 'no note'}"
            score.refused[reason] += 1
            score.which.append(f"after {note.after}: {name}: {reason}")
        return
    said = None if revision.deleted else revision.content
    if said == truth or said == os.fsencode(note.links.get(path, "\0")):
        score.exact += truth is not None
        score.gone += truth is None
        return
    what = f"{name} {_brief(truth)}, not {_brief(said)} as said by {_said(revision)}"
    score.wrong.setdefault(what, []).append(f"{note.after} ({note.time})")


def _said(revision: Revision) -> str:
    return f"{revision.tool} {revision.operation} at {revision.time}, {revision.grade}: {', '.join(revision.evidence)}"


def _brief(content: bytes | None) -> str:
    if content is None:
        return "is gone"
    return f"has {len(content)} bytes {hashlib.sha256(content).hexdigest()[:8]} {content[:300]!r}"


def moved(notes: Iterable[Note], old: Path, new: Path) -> Iterator[Note]:
    """The notes of a folder as those of the folder that it has become."""
    for note in notes:
        files = {str(new) + path[len(str(old)) :]: content for path, content in note.files.items()}
        yield replace(note, folder=str(new), files=files)
