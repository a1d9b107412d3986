"""The calls that return the contents of recorded files: of one file, or of all files beneath a folder.

Guarantees: contents are redacted, unless they are restored or the client asks for raw ones. An earlier content is never
returned as the latest one. Unless `restore` is given a folder, nothing is written here: its client writes the files.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import stat
from pathlib import Path

from msgspec.structs import replace

from daemon.app.calls.files import STEP, FileCalls, absolute, as_of
from daemon.config import Config
from daemon.control import calls, file_answers
from daemon.control.answers import from_json, to_json
from daemon.control.calls import FileContent, OnPart, Progress
from daemon.display import counted
from daemon.errors import BadRequest
from daemon.files import FileHistory, Revision
from daemon.files.history import Grade, is_lost_folder
from daemon.files.selection import Selection
from daemon.filesystem.new_folder import NewFolder
from daemon.hints import hint
from daemon.moments import written_local
from daemon.redact import redact, redact_value
from daemon.transcript.shell import NOTE_PREFIX

PARTIAL = ".partial"
"""Ends the name of a restored file of which only some lines are known."""


class ContentCalls(FileCalls):
    """A part of the engine, as FileCalls; it has the configuration, too."""

    config: Config

    def content(self, request: calls.Content, progress: Progress) -> file_answers.Content:
        """See calls.Content.

        Raises:
            BadRequest: the path is not absolute, `at` is no time.
        """
        file, until = absolute(request.path), as_of(request.at)
        warnings = self.current(progress)
        history = self.recorded.history(file).until(until)
        latest = history.latest
        warnings += [] if latest is not None else [self.nothing_known(file, is_file=True)]
        data = None if latest is None else data_of(latest)
        visible = data if data is None or request.raw else _redacted(data)
        answer = file_answers.Content(
            path=file,
            at=until,
            known=latest is not None,
            grade=str(history.grade),
            proven=latest is not None and latest.proven and data is not None,
            deleted=history.deleted,
            partial=latest is not None and _is_partial(latest),
            sha256=(latest.sha256 or None) if latest is not None else None,
            size=latest.size if latest is not None else None,
            redacted=visible != data,
            last=_last(history) if data is None else None,
            warnings=warnings,
        )
        if latest is not None:
            answer.time, answer.session_id = latest.time, latest.session_id
            answer.message_id, answer.tool = latest.message_id, latest.tool
            answer.evidence, answer.note = list(latest.evidence), latest.note
        answer = from_json(redact_value(to_json(answer)), file_answers.Content)
        answer.content_base64 = None if visible is None else base64.b64encode(visible).decode()
        return answer

    def restore(self, request: calls.Restore, progress: Progress, on_part: OnPart) -> file_answers.Restore:
        """See calls.Restore.

        Raises:
            BadRequest: the path is not absolute, `at` is no time, `grade` is none, a pattern is none.
            OutputRefused: the folder `to` cannot be used, or the disk fails.
        """
        if request.to:
            return self._restore_into(request, progress)
        selection = Selection(request.include, request.exclude)
        prefix, until, lowest_grade = absolute(request.path), as_of(request.at), _grade(request.grade)
        warnings = self.current(progress)
        progress({"phase": "reading histories", "done": 0, "total": None})
        chosen: list[tuple[FileHistory, Revision]] = []
        skipped: list[file_answers.SkippedFile] = []
        only_deleted = unselected = 0
        for history in (history.until(until) for history in self.recorded.histories(prefix, until)):
            if not history.revisions:
                continue
            if _relative(history.path, prefix) not in selection:
                unselected += 1
                continue
            choice = _revision_to_restore(history, lowest_grade, deleted=request.deleted)
            if isinstance(choice, Revision):
                chosen.append((history, choice))
            else:
                skipped.append(file_answers.SkippedFile(history.path, choice))
                only_deleted += history.deleted and not request.deleted
        if not chosen and not skipped:
            warnings.append(
                f"{prefix}: none of {counted(unselected, 'recorded file')} matches `include` and not `exclude`"
                if unselected
                else self.nothing_known(prefix)
            )
        # If names clash, present files come before deleted ones, and whole files before partial ones.
        chosen.sort(key=lambda pair: (_is_partial(pair[1]), pair[0].deleted, pair[0].path))
        for number, (history, revision) in enumerate(chosen, start=1):
            on_part(_content(history, revision, prefix))
            if number % STEP == 0 or number == len(chosen):
                progress({"phase": "restoring", "done": number, "total": len(chosen)})
        return file_answers.Restore(
            path=prefix,
            files=len(chosen),
            deleted=only_deleted,
            skipped=skipped,
            warnings=[redact(warning) for warning in warnings],
        )

    def _restore_into(self, request: calls.Restore, progress: Progress) -> file_answers.Restore:
        """Write the files, exactly as the command does."""
        refused: list[file_answers.SkippedFile] = []

        def write(content: FileContent) -> None:
            if reason := folder.write(content.relative, content.data, executable=content.executable):
                refused.append(file_answers.SkippedFile(content.path, reason))

        forbidden = (*self.config.opencode_dirs, self.config.archive_dir)
        with NewFolder(Path(absolute(request.to)), forbidden) as folder:
            answer = self.restore(replace(request, to=""), progress, write)
            folder.finish()
        answer.files, answer.skipped = folder.files, [*answer.skipped, *refused]
        return answer


def _grade(text: str) -> Grade:
    grades = [grade for grade in Grade if grade is not Grade.LOST]
    if text not in grades:
        raise BadRequest(f"`grade` {text!r}: unknown; use {', '.join(grades)}")
    return Grade(text)


def _is_partial(revision: Revision) -> bool:
    return revision.whole is None and revision.fragments is not None and not revision.deleted


def _has_gaps(revision: Revision) -> bool:
    """Whether lines are missing. If none are, the file keeps its name, and its grade says what is uncertain."""
    return _is_partial(revision) and revision.fragments is not None and revision.fragments.has_gaps


def data_of(revision: Revision) -> bytes | None:
    """What can be shown of a revision: its content, or the known lines with the gaps marked."""
    if _is_partial(revision) and revision.fragments is not None:
        return revision.fragments.marked().encode("utf-8", "surrogatepass")
    return None if revision.deleted else revision.content


def _redacted(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    clean = redact(text)
    return data if clean == text else clean.encode("utf-8", "surrogateescape")


def _last(history: FileHistory) -> file_answers.LastContent | None:
    """The newest revision with anything to show."""
    last = next((revision for revision in reversed(history.revisions) if data_of(revision) is not None), None)
    if last is None:
        return None
    return file_answers.LastContent(
        last.time, last.session_id, last.message_id, last.tool, str(last.grade), last.size, last.sha256
    )


def _revision_to_restore(history: FileHistory, lowest_grade: Grade, *, deleted: bool) -> Revision | str:
    """The revision to restore, or the reason why there is none."""
    latest = history.revisions[-1]
    if latest.deleted:
        if not deleted:
            return "deleted; use `deleted` to restore its last content"
        before = history.last_state
        if before is None:
            return "deleted, and its content is unknown"
        latest = before
    if posixpath.dirname(history.path) == history.path:
        return "not a file's path"
    if stat.S_ISLNK(latest.mode):
        where = hint("content", path=history.path, raw=True)
        return f"a symbolic link; links are not restored, {where} shows its target"
    if _required_grade(latest).rank > lowest_grade.rank or data_of(latest) is None:
        return _why_not(history, latest)
    return latest


def _required_grade(revision: Revision) -> Grade:
    """The lowest grade that includes this revision; a stale revision with gaps needs `partial`."""
    return Grade.PARTIAL if _has_gaps(revision) and revision.grade is Grade.STALE else revision.grade


def _why_not(history: FileHistory, revision: Revision) -> str:
    """Why a revision is not certain enough, and what to use instead."""
    if is_lost_folder(revision.grade, revision.note):
        return "a folder whose files are unknown: the snapshot that lists them is not kept"
    reason = _doubt(revision)
    if data_of(revision) is not None and revision.grade is not Grade.LOST:
        return f"{reason}; use `grade={_required_grade(revision)}` to restore it anyway"
    proven = (r.time for r in reversed(history.revisions) if r.proven and r.content is not None)
    at = written_local(next(proven, 0))
    return f"{reason}; an earlier state is proven: `at={at}`" if at else reason


def _doubt(revision: Revision) -> str:
    """Why a revision is uncertain."""
    note = revision.note or "no recorded call shows its whole content"
    if revision.grade is Grade.STALE and note.startswith(NOTE_PREFIX):
        return f"may have changed after `{note.removeprefix(NOTE_PREFIX)}`"
    doubts = {Grade.STALE: "may have changed since", Grade.PARTIAL: "partly known"}
    return f"{doubts.get(revision.grade, 'its content is unknown')}: {note}"


def _relative(path: str, prefix: str) -> str:
    """The path beneath `prefix`; the file's name if it is `prefix` itself."""
    return posixpath.basename(path) if path == prefix else path[len(prefix.rstrip("/")) + 1 :]


def _content(history: FileHistory, revision: Revision, prefix: str) -> FileContent:
    data = data_of(revision) or b""
    is_partial = _is_partial(revision)
    relative = _relative(history.path, prefix)
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
