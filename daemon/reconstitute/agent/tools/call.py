"""What every tool works with: the evidence it may look at, the paths it may name, and the result it writes.

Paths as a model writes them become absolute paths of the target that something is recorded of. Never a disk is read.
A model may write a path absolute, relative to the target, or with the target's own name before it.
"""

from __future__ import annotations

import bisect
import difflib
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from daemon.archive import Archive
from daemon.errors import BadRequest
from daemon.files import FileHistory, Files
from daemon.files.trees import above, is_beneath
from daemon.recall.search import RecallEngine
from daemon.reconstitute.agent.context.blocks import body_bytes, cut, fenced, name, size
from daemon.reconstitute.agent.context.ledger import Ledger
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.scope import Scope

_LONGEST = 4096
_LINE = re.compile(r"(?<=.):\d+(?:[-:]\d+)?$")
"""The line numbers that are often written behind a path."""
_WRAPPED = " \t\n`'\""
_COMPARED = 300
"""Paths that one unknown path is compared with, letter by letter: those whose names stand next to its own in order."""


class Paths:
    """The paths at or beneath `target` of which a history is known, and the folders that hold them."""

    def __init__(self, target: str, paths: Iterable[str]) -> None:
        self.target = target
        self._files = sorted(path for path in paths if is_beneath(path, target))
        folders = {folder for path in self._files for folder in above(path) if is_beneath(folder, target)}
        self._paths = {target, *folders, *self._files}
        self.added: dict[str, None] = {}
        self._by_name = sorted((posixpath.basename(path), path) for path in self._files)

    def add(self, path: str) -> None:
        """One path more, which messages speak of."""
        if path not in self._paths:
            self.added[path] = None
            self._paths.add(path)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def find(self, text: str) -> str:
        """The absolute path that is meant: one that is known if any reading of it is, else the plainest one.

        Raises:
            BadRequest: it is no path, or lies outside the target.
        """
        readings = self.readings(text)
        inside = [path for path in readings if is_beneath(path, self.target)]
        if not inside:
            raise BadRequest(f"{name(text)!r} is not beneath {name(self.target)}; give a path beneath it")
        return next((path for path in inside if path in self._paths), inside[0])

    def readings(self, text: str) -> list[str]:
        """What an absolute or relative path may mean, absolute and without ``..``, the plainest first.

        Raises:
            BadRequest: it is no path.
        """
        path = text.strip(_WRAPPED)
        if not path or "\0" in path or len(path) > _LONGEST or path.startswith("~"):
            raise BadRequest(f"{name(text)!r} is no path; write it from / on, or relative to {name(self.target)}")
        folders = ["/"] if path.startswith("/") else [self.target, posixpath.dirname(self.target)]
        forms = dict.fromkeys([path, _LINE.sub("", path)])
        return [_normal(posixpath.join(folder, form)) for form in forms for folder in folders]

    def known(self, text: str, *, is_hinted: bool = True) -> str:
        """As `find`, of a path that something is recorded of.

        Raises:
            BadRequest: it is no such path; the most similar ones are named, unless not `is_hinted`.
        """
        path = self.find(text)
        if path not in self._paths and not is_hinted:
            raise BadRequest(f"nothing is recorded of a file {name(self.relative(path))!r}")
        if path not in self._paths:
            similar = self.similar(path)
            hint = f"did you mean {' or '.join(map(repr, similar))}?" if similar else "list_files names those that are"
            raise BadRequest(f"nothing is recorded of a file {name(self.relative(path))!r}; {hint}")
        return path

    def similar(self, path: str, limit: int = 3) -> list[str]:
        """Known files that a path may have been meant for, relative: of the same name, or spelt alike."""
        base = posixpath.basename(path)
        place = bisect.bisect_left(self._by_name, (base, ""))
        same_name = [candidate for end, candidate in self._by_name[place : place + limit] if end == base]
        like = same_name or difflib.get_close_matches(path, self._around(place), limit)
        return [name(self.relative(candidate)) for candidate in like]

    def _around(self, place: int) -> list[str]:
        """The paths whose names stand next to a place in the order of names."""
        start = max(0, min(place - _COMPARED // 2, len(self._by_name) - _COMPARED))
        return [candidate for _, candidate in self._by_name[start : start + _COMPARED]]

    def relative(self, path: str) -> str:
        """As people read it: relative to the target; the target itself by its name."""
        if path == self.target:
            return posixpath.basename(path) or path
        return path[len(self.target.rstrip("/")) + 1 :] if is_beneath(path, self.target) else path


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/")


def names(text: str, path: str, folders: Iterable[str]) -> bool:
    """Whether `text` has the absolute `path`, or it relative to one of `folders` that hold it.

    A relative name without a slash or a dot may be any word: it counts with a slash behind it or in backticks only.
    """
    if _has(text, path, r"(?<![\w.-])"):
        return True
    for folder in dict.fromkeys(folders):
        if not folder or folder == path or not is_beneath(path, folder):
            continue
        relative = path[len(folder.rstrip("/")) + 1 :]
        if _has(text, relative, r"(?<![\w./-])(?:\./)?", is_word="/" not in relative and "." not in relative):
            return True
    return False


def _has(text: str, path: str, start: str, *, is_word: bool = False) -> bool:
    if path not in text:
        return False
    escaped = re.escape(path)
    pattern = rf"{start}{escaped}/|`(?:\./)?{escaped}`" if is_word else rf"{start}{escaped}(?![\w-]|\.\w)"
    return re.search(pattern, text) is not None


_GAP = "\n\n"
_RESERVED = 400
"""Bytes that blocks leave free for our own lines; a fifth of a small result."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is searched and read, whatever the target."""

    archive: Archive
    recall: RecallEngine
    files: Files
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the tools may look at for a question about one target (an absolute path).

    Nothing later than `moment` (epoch ms; None: now) is shown; `histories` end there. Whatever is shown of a message is
    entered in the ledger. `warnings` are for people: what did not work.
    """

    holdings: Holdings
    scope: Scope
    histories: Sequence[FileHistory]
    target: str
    moment: int | None = None
    ledger: Ledger = field(default_factory=Ledger)
    warnings: list[str] = field(default_factory=list)

    @property
    def archive(self) -> Archive:
        """Where the messages are."""
        return self.holdings.archive

    def is_visible(self, message_id: str) -> bool:
        """Whether the archive has this message, and it is not too late."""
        state = self.archive.state(message_id)
        return state is not None and (self.moment is None or state["created"] <= self.moment)

    def warn(self, warning: str) -> None:
        """Note a warning, each once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


class Result:
    """The text of one call's result, at most `limit` bytes: blocks whole or not at all, our own lines cut."""

    def __init__(self, limit: int) -> None:
        self._bytes_left = limit
        self._reserved = min(_RESERVED, limit // 5)
        self._texts: list[str] = []

    @property
    def bytes_left(self) -> int:
        """How many bytes the next block may have."""
        return max(0, self._bytes_left - self._reserved - len(_GAP))

    @property
    def text(self) -> str:
        """All of it."""
        return _GAP.join(self._texts)

    def add_block(self, block: str) -> None:
        """Add a block of at most `bytes_left` bytes.

        Raises:
            BadRequest: the block is longer, because results are limited to too few bytes.
        """
        if size(block) > self.bytes_left:
            raise BadRequest("results may not be as long as this one would be (agent.result_kb)")
        self._add(block)

    def add_line(self, line: str) -> None:
        """Add a line of ours, cut where it does not fit."""
        free = self._bytes_left - (len(_GAP) if self._texts else 0)
        fitting = line if size(line) <= free else cut(line, free - 3) + "…" if free > 3 else ""
        if fitting:
            self._add(fitting)

    def add_table(self, heading: str, lines: Sequence[str]) -> int:
        """Add a block of cleaned lines, as many as fit and at least one. Returns how many."""
        remaining = body_bytes(heading, self.bytes_left)
        fitting: list[str] = []
        for line in lines:
            if size(line) + 1 > remaining and fitting:
                break
            fitting.append(cut(line, remaining))
            remaining -= size(line) + 1
        self.add_block(fenced(heading, "\n".join(fitting)))
        return len(fitting)

    def add_lines(self, lines: Sequence[str]) -> None:
        """Add lines of ours, as many as fit, and how many did not."""
        fitting = list(lines)
        while fitting and size("\n".join(fitting)) + 40 > self._bytes_left:
            fitting.pop()
        omitted = len(lines) - len(fitting)
        self.add_line("\n".join([*fitting, *([f"and {omitted} more"] if omitted else [])]))

    def _add(self, text: str) -> None:
        self._bytes_left -= size(text) + (len(_GAP) if self._texts else 0)
        self._texts.append(text)
