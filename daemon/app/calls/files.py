"""The calls about recorded files: what is known of them, their histories, their contents (control.calls.Service).

Guarantees: what leaves here is redacted, but for contents that are restored or asked for raw; what is not proven says
so and why; the past is never shown for the present: a content that something has followed is not handed out as the
last. Nothing is written: whoever asks for a restore does that.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from daemon.app.calls.file_history import changes
from daemon.archive import Archive
from daemon.archive.unknown import is_touched, unknown
from daemon.control.calls import FileContent, Progress, Take, silent
from daemon.errors import BadRequest
from daemon.files import FileHistory, Files, Revision, Row
from daemon.files.disk import Disk, standing
from daemon.files.end_states import row_of
from daemon.files.history import Grade
from daemon.model import Json
from daemon.reconstitute.moment import parse_moment
from daemon.redact import redact, redact_value

_STEP = 500
_WHOLE = frozenset({Grade.VERIFIED, Grade.PROVEN, Grade.STALE})
PARTIAL = ".partial"
"""What the name of a file of which only some lines are known ends in when it is restored."""


class FileCalls:
    """A part of the engine: it has the archive and `recorded`, and may look at the sources before it answers."""

    archive: Archive
    recorded: Files

    def current(self, _progress: Progress) -> list[str]:
        """See that the archive has what the sources have; why that may not be so. A daemon's loops do it."""
        return []

    def files(self, path: str = "/", *, at: str = "", lost: bool = False, progress: Progress = silent) -> Json:
        """See control.calls.Service."""
        prefix, until = _checked(path), parse_moment(at)
        warnings = self.current(progress)
        rows = self.recorded.rows(prefix) if until is None else self._rows_at(prefix, until)
        found = list(_with_disk(rows, progress))
        warnings += [] if found else [self._unknown(prefix)]
        unreadable = sum(disk is Disk.UNREADABLE for _, disk in found)
        if unreadable:
            warnings.append(f"{redact(prefix)}: {unreadable} of its files cannot be read on the disk, so not compared")
        if lost:
            found = sorted((pair for pair in found if _is_lost(*pair)), key=_most_recoverable)
        clean = lru_cache(maxsize=None)(redact)
        return {
            "path": redact(prefix),
            "known": bool(rows),
            "files": [_file(row, disk, clean) for row, disk in found],
            "hints": [redact(hint) for hint in self.recorded.hints(prefix)],
            "warnings": [redact(warning) for warning in warnings],
        }

    def _unknown(self, path: str, *, is_file: bool = False) -> str:
        """What is said of a path that nothing was found of; `is_file`: a file's was looked for, not a folder's."""
        rows = self.recorded.rows(path)
        if is_file and rows and all(row.path != path for row in rows):
            return f"{path}: is a folder; `reconstitute files {path}` lists what is recorded beneath it"
        if rows:
            return f"{path}: nothing was recorded of it by then; leave out --at, or give a later time"
        return unknown(self.archive, path)

    def _rows_at(self, prefix: str, until: int) -> list[Row]:
        rows = (row_of(history.until(until)) for history in self.recorded.histories(prefix, until))
        return [row for row in rows if row is not None]

    def history(self, path: str, *, diff: bool = False, lines: bool = False, progress: Progress = silent) -> Json:
        """See control.calls.Service."""
        file = _checked(path)
        warnings = self.current(progress)
        history = self.recorded.history(file)
        warnings += [] if history.revisions else [self._unknown(file, is_file=True)]
        title = lru_cache(maxsize=None)(self._title)
        revisions = [_revision(revision, title(revision.session_id)) for revision in history.revisions]
        answer = {
            "path": file,
            "grade": str(history.grade),
            "deleted": history.deleted,
            "revisions": revisions,
            "warnings": warnings,
        }
        if lines:
            answer["lines"] = _lines(history)
        cleaned: Json = redact_value(answer)
        if diff:
            for revision, change in zip(cleaned["revisions"], changes(history.revisions, progress), strict=True):
                revision.update(change)
        return cleaned

    def _title(self, session_id: str) -> str:
        session = self.archive.session(session_id)
        return "" if session is None else session.title

    def content(self, path: str, *, at: str = "", raw: bool = False, progress: Progress = silent) -> Json:
        """See control.calls.Service."""
        file, until = _checked(path), parse_moment(at)
        warnings = self.current(progress)
        history = self.recorded.history(file).until(until)
        latest = history.latest
        warnings += [] if latest is not None else [self._unknown(file, is_file=True)]
        data = None if latest is None else _data(latest)
        shown = data if data is None or raw else _redacted(data)
        answer: Json = {
            "path": file,
            "at": until,
            "known": latest is not None,
            "grade": str(history.grade),
            "proven": latest is not None and latest.proven and data is not None,
            "deleted": history.deleted,
            "partial": latest is not None and _is_partial(latest),
            "sha256": (latest.sha256 or None) if latest is not None else None,
            "size": latest.size if latest is not None else None,
            "redacted": shown != data,
            "last": None,
            "warnings": warnings,
        }
        if latest is not None:
            answer |= _origin(latest) | {"evidence": list(latest.evidence), "note": latest.note}
        if data is None and (last := _last(history)) is not None:
            answer["last"] = _origin(last) | {"grade": str(last.grade), "size": last.size, "sha256": last.sha256}
        cleaned: Json = redact_value(answer)
        return cleaned | {"content_base64": None if shown is None else base64.b64encode(shown).decode()}

    def restore(
        self,
        path: str,
        *,
        at: str = "",
        deleted: bool = False,
        grade: str = "proven",
        take: Take,
        progress: Progress = silent,
    ) -> Json:
        """See control.calls.Service."""
        prefix, until, least = _checked(path), parse_moment(at), _grade(grade)
        warnings = self.current(progress)
        progress({"phase": "reading histories", "done": 0, "total": None})
        chosen, skipped = [], []
        only_deleted = 0
        for history in (history.until(until) for history in self.recorded.histories(prefix, until)):
            if not history.revisions:
                continue
            choice = _choice(history, least, deleted=deleted)
            if isinstance(choice, Revision):
                chosen.append((history, choice))
            else:
                skipped.append({"path": history.path, "reason": choice})
                only_deleted += history.deleted and not deleted
        if not chosen and not skipped:
            warnings.append(self._unknown(prefix))
        # Where names clash, what is there now comes before what was deleted, and all of those before mere parts.
        chosen.sort(key=lambda pair: (_is_partial(pair[1]), pair[0].deleted, pair[0].path))
        for number, (history, revision) in enumerate(chosen, start=1):
            take(_taken(history, revision, prefix))
            if number % _STEP == 0 or number == len(chosen):
                progress({"phase": "restoring", "done": number, "total": len(chosen)})
        return {
            "path": prefix,
            "files": len(chosen),
            "deleted": only_deleted,
            "skipped": skipped,
            "warnings": [redact(warning) for warning in warnings],
        }

    def alias(self, old: str = "", new: str = "", *, remove: bool = False) -> Json:
        """See control.calls.Service."""
        warnings = []
        if remove:
            if not old or new:
                raise BadRequest("alias: to take one back, name the old folder alone")
            if not self.recorded.remove_alias(_checked(old)):
                raise BadRequest(f"{old!r}: is no alias; `reconstitute alias --list` shows those there are")
        elif old or new:
            self._add_alias(_checked(old), _checked(new))
            if not is_touched(self.archive, _checked(old)):
                warnings.append(redact(unknown(self.archive, _checked(old))))
        pairs = sorted(self.recorded.aliases().items())
        return {"aliases": [{"old": redact(old), "new": redact(new)} for old, new in pairs], "warnings": warnings}

    def _add_alias(self, old: str, new: str) -> None:
        if old in (new, "/") or new == "/":
            raise BadRequest(f"{old!r} is {new!r}: says nothing; name the folder's old path and its new one")
        seen, place = {old}, new
        known = self.recorded.aliases()
        while place in known:
            place = known[place]
            if place in seen:
                raise BadRequest(
                    f"{old!r} is {new!r}: goes in a circle; take one back with: reconstitute alias OLD --remove"
                )
            seen.add(place)
        self.recorded.alias(old, new)


def _checked(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"{path!r}: not an absolute path; write it from the root, as in /home/ada/shop")
    return posixpath.normpath("/" + path.lstrip("/"))


def _grade(text: str) -> Grade:
    known = [grade for grade in Grade if grade is not Grade.LOST]
    if text not in known:
        raise BadRequest(f"grade {text!r}: unknown; use {', '.join(known)}")
    return Grade(text)


def _with_disk(rows: Iterable[Row], progress: Progress) -> Iterator[tuple[Row, Disk]]:
    for number, row in enumerate(rows, start=1):
        known = _known(row)
        yield row, standing(row.path, *known, deleted=row.deleted)
        if number % _STEP == 0:
            progress({"phase": "comparing with the disk", "done": number, "total": None})


def _known(row: Row) -> tuple[str, int | None]:
    """Hash and size of the path's last state, or of what a deleted one held; not of a content that another followed."""
    has_it = row.deleted or row.grade in _WHOLE
    return (row.sha256, row.size) if has_it else ("", None)


def _grade_of(row: Row) -> Grade:
    """How well known that is which hash and size are of; of a deleted path not better than the deletion itself."""
    grade = Grade(row.grade)
    return max(grade, Grade(row.last_grade or Grade.LOST), key=lambda one: one.rank) if row.deleted else grade


def _is_lost(row: Row, disk: Disk) -> bool:
    if row.deleted:
        return bool(row.sha256)
    return disk in {Disk.MISSING, Disk.DIFFERS}


def _most_recoverable(pair: tuple[Row, Disk]) -> tuple[int, int, str]:
    row, _ = pair
    return _grade_of(row).rank, -row.seen, row.path


def _file(row: Row, disk: Disk, clean: Callable[[str], str]) -> Json:
    sha256, size = _known(row)
    return {
        "path": clean(row.path),
        "grade": str(_grade_of(row)),
        "evidence": [clean(text) for text in row.evidence],
        "sha256": sha256 or None,
        "size": size,
        "deleted": row.deleted,
        "disk": str(disk),
        "last_change": None
        if not row.time
        else {
            "time": row.time,
            "session_id": row.session_id,
            "message_id": row.message_id,
            "tool": row.tool,
        },
        "note": clean(row.note),
    }


def _origin(revision: Revision) -> Json:
    return {
        "time": revision.time,
        "session_id": revision.session_id,
        "message_id": revision.message_id,
        "tool": revision.tool,
    }


def _revision(revision: Revision, title: str) -> Json:
    return _origin(revision) | {
        "session_title": title,
        "operation": str(revision.operation),
        "grade": str(revision.grade),
        "evidence": list(revision.evidence),
        "note": revision.note,
        "outside_change": revision.was_changed_outside,
        "deleted": revision.deleted,
        "size": revision.size,
        "sha256": revision.sha256 or None,
        "moved_from": revision.moved_from or None,
    }


def _lines(history: FileHistory) -> list[Json]:
    from daemon.files.line_diffs import blame  # noqa: PLC0415 - not needed by any other call

    found = blame(history)
    texts = [line.text for line in found]
    shown = redact("\n".join(texts)).split("\n")
    if len(shown) != len(texts):
        # A secret over several lines: those that the redacted text does not have any more were part of it.
        kept = set(shown)
        shown = [redact(text) if text in kept else "[REDACTED]" for text in texts]
    return [
        {
            "text": text,
            "message_id": line.message_id,
            "session_id": line.session_id,
            "time": line.time,
            "tool": line.tool,
        }
        for line, text in zip(found, shown, strict=True)
    ]


def _is_partial(revision: Revision) -> bool:
    return revision.whole is None and revision.fragments is not None and not revision.deleted


def _has_gaps(revision: Revision) -> bool:
    """Whether lines are missing; without, the file goes by its own name, and its grade says what is not certain."""
    return _is_partial(revision) and revision.fragments is not None and revision.fragments.has_gaps


def _data(revision: Revision) -> bytes | None:
    """What can be shown of a revision: its content, or the known lines with the gaps marked."""
    if _is_partial(revision) and revision.fragments is not None:
        return revision.fragments.marked().encode("utf-8", "surrogatepass")
    return None if revision.deleted else revision.content


def _redacted(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    clean = redact(text)
    return data if clean == text else clean.encode("utf-8", "surrogateescape")


def _last(history: FileHistory) -> Revision | None:
    """The newest revision with anything to show."""
    return next((revision for revision in reversed(history.revisions) if _data(revision) is not None), None)


def _choice(history: FileHistory, least: Grade, *, deleted: bool) -> Revision | str:
    """What to restore of a path: the revision, or why none."""
    latest = history.revisions[-1]
    if latest.deleted:
        if not deleted:
            return "deleted; --deleted restores what it held before"
        before = history.last_state
        if before is None:
            return "deleted, and nothing is known of what it held before"
        latest = before
    if posixpath.dirname(history.path) == history.path:
        return "not a file's path"
    if stat.S_ISLNK(latest.mode):
        return "a symbolic link; links are not restored, `show --raw` prints where it led"
    if _needed(latest).rank > least.rank or _data(latest) is None:
        return _why(history, latest)
    return latest


def _needed(revision: Revision) -> Grade:
    """The least grade that takes it: with gaps it is only for who asks for parts, also where they may have changed."""
    return Grade.PARTIAL if _has_gaps(revision) and revision.grade is Grade.STALE else revision.grade


def _why(history: FileHistory, revision: Revision) -> str:
    """Why a revision is not certain enough, and what there is instead."""
    reason = f"{revision.grade}: {revision.note or 'no recorded call tells its whole content'}"
    if _data(revision) is not None and revision.grade is not Grade.LOST:
        return f"{reason}; --grade {_needed(revision)} writes it"
    earlier = next((r for r in reversed(history.revisions) if r.proven and r.content is not None), None)
    return reason if earlier is None else f"{reason}; an earlier state is proven: --at {earlier.time}"


def _taken(history: FileHistory, revision: Revision, prefix: str) -> FileContent:
    data = _data(revision) or b""
    is_partial = _is_partial(revision)
    name = posixpath.basename(history.path)
    relative = name if history.path == prefix else history.path[len(prefix.rstrip("/")) + 1 :]
    return FileContent(
        path=history.path,
        relative=relative + PARTIAL if _has_gaps(revision) else relative,
        grade=str(revision.grade),
        sha256=hashlib.sha256(data).hexdigest() if is_partial else revision.sha256,
        data=data,
        partial=is_partial,
        deleted=history.deleted,
        executable=bool(revision.mode & 0o111) and not is_partial,
    )
