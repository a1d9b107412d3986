"""The calls about recorded files: lists, histories, aliases of folders.

Guarantees: answers are redacted. A state that is not proven says so and why. A past state is never shown as the present
one.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from daemon.archive import Archive
from daemon.archive.paths import is_touched, unknown
from daemon.control import calls, file_answers
from daemon.control.answers import from_json, to_json
from daemon.control.calls import Progress
from daemon.errors import BadRequest
from daemon.files import Disk, FileHistory, Files, Revision, Row, standing
from daemon.files.end_states import row_of
from daemon.files.history import Grade, is_lost_folder
from daemon.files.line_diffs import unified
from daemon.hints import hint
from daemon.moments import parse_moment
from daemon.redact import redact, redact_value

STEP: Final = 500
"""Files between two calls of `progress`."""
MOST_DIFF: Final = 4 << 20
"""Characters of all diffs of one answer together."""
MOST_COMPARED: Final = 64 << 20
"""Bytes of content that are compared for one answer."""
_COMPLETE_GRADES = frozenset({Grade.VERIFIED, Grade.PROVEN, Grade.STALE})


class FileCalls:
    """A part of the engine: it has the archive and `recorded`, and may scan the sources before it answers."""

    archive: Archive
    recorded: Files

    def current(self, _progress: Progress) -> list[str]:
        """Scan the sources; returns warnings if they cannot be read. In the daemon the loops do it."""
        return []

    def files(self, request: calls.Files, progress: Progress) -> file_answers.Files:
        """See calls.Files.

        Raises:
            BadRequest: the path is not absolute, `at` is no time.
        """
        prefix, until = absolute(request.path), as_of(request.at)
        warnings = self.current(progress)
        rows = self.recorded.rows(prefix) if until is None else self._rows_at(prefix, until)
        compared = list(_with_disk(rows, progress))
        warnings += [] if compared else [self.nothing_known(prefix)]
        unreadable = sum(disk is Disk.UNREADABLE for _, disk in compared)
        if unreadable:
            warnings.append(f"{redact(prefix)}: {unreadable} of its files cannot be read on the disk, so not compared")
        if request.lost:
            compared = sorted((pair for pair in compared if _is_lost(*pair)), key=_most_recoverable)
        clean = lru_cache(maxsize=None)(redact)
        return file_answers.Files(
            path=redact(prefix),
            known=bool(rows),
            files=[_file(row, disk, clean) for row, disk in compared],
            hints=[redact(hint) for hint in self.recorded.hints(prefix)],
            warnings=[redact(warning) for warning in warnings],
        )

    def nothing_known(self, path: str, *, is_file: bool = False) -> str:
        """Why nothing is recorded of a path; `is_file`: the client asked for a file, not a folder."""
        rows = self.recorded.rows(path)
        if is_file and rows and all(row.path != path for row in rows):
            return f"{path}: is a folder; {hint('files', path=path)} lists what is recorded beneath it"
        if rows:
            return f"{path}: nothing was recorded of it by then; leave out `at`, or give a later time"
        return unknown(self.archive, path)

    def _rows_at(self, prefix: str, until: int) -> list[Row]:
        rows = (row_of(history.until(until)) for history in self.recorded.histories(prefix, until))
        return [row for row in rows if row is not None]

    def history(self, request: calls.History, progress: Progress) -> file_answers.History:
        """See calls.History.

        Raises:
            BadRequest: the path is not absolute.
        """
        file = absolute(request.path)
        warnings = self.current(progress)
        history = self.recorded.history(file)
        warnings += [] if history.revisions else [self.nothing_known(file, is_file=True)]
        title = lru_cache(maxsize=None)(self._title)
        answer = file_answers.History(
            path=file,
            grade=str(history.grade),
            deleted=history.deleted,
            revisions=[file_revision(revision, title(revision.session_id)) for revision in history.revisions],
            warnings=warnings,
        )
        if request.lines:
            answer.lines = _lines(history)
        answer = from_json(redact_value(to_json(answer)), file_answers.History)
        if request.diff:
            for revision, (diff, note) in zip(answer.revisions, _diffs(history.revisions, progress), strict=True):
                if diff is not None:
                    revision.diff, revision.diff_note = diff, note
        return answer

    def _title(self, session_id: str) -> str:
        session = self.archive.session(session_id)
        return "" if session is None else session.title

    def alias(self, request: calls.Alias) -> file_answers.Alias:
        """See calls.Alias.

        Raises:
            BadRequest: the two make no sense together, or there is nothing to remove.
        """
        old, new, warnings = request.old, request.new, []
        if request.remove:
            if not old or new:
                raise BadRequest("alias: to take one back, name the old folder alone")
            if not self.recorded.remove_alias(absolute(old)):
                raise BadRequest(f"{old!r}: is no alias; {hint('alias', list=True)} shows those there are")
        elif old or new:
            self._add_alias(absolute(old), absolute(new))
            if not is_touched(self.archive, absolute(old)):
                warnings.append(redact(unknown(self.archive, absolute(old))))
        pairs = sorted(self.recorded.aliases().items())
        return file_answers.Alias([file_answers.FolderAlias(redact(old), redact(new)) for old, new in pairs], warnings)

    def _add_alias(self, old: str, new: str) -> None:
        if old in (new, "/") or new == "/":
            raise BadRequest(f"{old!r} is {new!r}: says nothing; name the folder's old path and its new one")
        visited, place = {old}, new
        aliases = self.recorded.aliases()
        while place in aliases:
            place = aliases[place]
            if place in visited:
                raise BadRequest(
                    f"{old!r} is {new!r}: goes in a circle; take one back with {hint('alias', old=place, remove=True)}"
                )
            visited.add(place)
        self.recorded.alias(old, new)


def as_of(at: str) -> int | None:
    """Epoch ms of the `at` of a call (parse_moment), as seen from now.

    Raises:
        BadRequest: it is no time.
    """
    return parse_moment(at, time.time_ns() // 1_000_000)


def absolute(path: str) -> str:
    """A path as the records have it.

    Raises:
        BadRequest: it is not absolute.
    """
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"{path!r}: not an absolute path; write it from the root, as in /home/ada/shop")
    return posixpath.normpath("/" + path.lstrip("/"))


# -- files -----------------------------------------------------------------------------------------------------------


def _with_disk(rows: Iterable[Row], progress: Progress) -> Iterator[tuple[Row, Disk]]:
    for number, row in enumerate(rows, start=1):
        yield row, standing(row.path, *_state(row), deleted=row.deleted)
        if number % STEP == 0:
            progress({"phase": "comparing with the disk", "done": number, "total": None})


def _state(row: Row) -> tuple[str, int | None]:
    """Hash and size of the path's last state, or of what a deleted one held; not of a content that another followed."""
    is_last = row.deleted or row.grade in _COMPLETE_GRADES
    return (row.sha256, row.size) if is_last else ("", None)


def _grade_of(row: Row) -> Grade:
    """How well known the state is that `_state` describes; of a deleted path not better than the deletion itself."""
    grade = Grade(row.grade)
    last_grade = Grade(row.last_grade or Grade.LOST)
    return max(grade, last_grade, key=lambda candidate: candidate.rank) if row.deleted else grade


def _is_lost(row: Row, disk: Disk) -> bool:
    if row.deleted:
        return bool(row.sha256)
    return disk in {Disk.MISSING, Disk.DIFFERS}


def _most_recoverable(pair: tuple[Row, Disk]) -> tuple[int, int, str]:
    row, _ = pair
    return _grade_of(row).rank, -row.seen, row.path


def _file(row: Row, disk: Disk, clean: Callable[[str], str]) -> file_answers.RecordedFile:
    sha256, size = _state(row)
    change = file_answers.Change(row.time, row.session_id, row.message_id, row.tool) if row.time else None
    return file_answers.RecordedFile(
        path=clean(row.path),
        grade=str(_grade_of(row)),
        evidence=[clean(text) for text in row.evidence],
        sha256=sha256 or None,
        size=size,
        deleted=row.deleted,
        disk=str(disk),
        last_change=change,
        note=clean(row.note),
        folder=is_lost_folder(row.grade, row.note),
    )


# -- history ---------------------------------------------------------------------------------------------------------


def file_revision(revision: Revision, title: str) -> file_answers.FileRevision:
    return file_answers.FileRevision(
        time=revision.time,
        session_id=revision.session_id,
        message_id=revision.message_id,
        tool=revision.tool,
        session_title=title,
        operation=str(revision.operation),
        grade=str(revision.grade),
        evidence=list(revision.evidence),
        note=revision.note,
        outside_change=revision.was_changed_outside,
        deleted=revision.deleted,
        size=revision.size,
        sha256=revision.sha256 or None,
        moved_from=revision.moved_from or None,
    )


def _lines(history: FileHistory) -> list[file_answers.FileLine]:
    from daemon.files.line_diffs import blame  # noqa: PLC0415 - not needed by any other call

    lines = blame(history)
    clean = clean_lines([line.text for line in lines])
    return [
        file_answers.FileLine(line.time, line.session_id, line.message_id, line.tool, text)
        for line, text in zip(lines, clean, strict=True)
    ]


def clean_lines(texts: Sequence[str]) -> list[str]:
    """As many lines as `texts`, redacted; a secret over several lines is hidden in each of them."""
    clean = redact("\n".join(texts)).split("\n")
    if len(clean) != len(texts):
        # A secret over several lines: those that the redacted text does not have any more were part of it.
        harmless = set(clean)
        return [redact(text) if text in harmless else "[REDACTED]" for text in texts]
    return clean


def _diffs(revisions: Sequence[Revision], progress: Progress) -> list[tuple[str | None, str]]:
    """For each revision the diff since the last known content (None: unknown) and a note.

    Beyond the limits the oldest diffs are left out, and their notes say so.
    """
    diffs: list[tuple[str | None, str]] = [(None, "") for _ in revisions]
    left_text, left_read = MOST_DIFF, MOST_COMPARED
    comparable = [number for number, revision in enumerate(revisions) if revision.whole is not None or revision.deleted]
    for done, (before, number) in enumerate(reversed(list(zip([-1, *comparable], comparable, strict=False)))):
        if left_text <= 0 or left_read <= 0:
            diffs[number] = "", "the change is left out: together they would be too long"
            continue
        old = b"" if before < 0 else revisions[before].content or b""
        new = revisions[number].content or b""
        left_read -= len(old) + len(new)
        diff, note = diff_of(old, new)
        left_text -= len(diff)
        diffs[number] = diff, note
        if done % 100 == 0:
            progress({"phase": "comparing revisions", "done": done, "total": len(comparable)})
    return diffs


def diff_of(old: bytes, new: bytes) -> tuple[str, str]:
    """A unified diff, and why it is empty. Redacted before comparing, so a secret over several lines is hidden too."""
    if old == new:
        return "", "no change"
    try:
        texts = [redact(data.decode()) for data in (old, new)]
    except UnicodeDecodeError:
        return "", f"not text: {len(old)} bytes became {len(new)}"
    if "\0" in texts[0] or "\0" in texts[1]:
        return "", f"binary: {len(old)} bytes became {len(new)}"
    text = unified(*texts)
    if len(text) > MOST_DIFF:
        return "", f"too long to show: {len(old)} bytes became {len(new)}"
    return text, "" if text else "only what is redacted changed"
