"""The facts of a folder: what its records certainly say, worked out by code, each with its source.

No model and no search is asked. The walk: `session` reads records into the values of `session_values`; `shell` tells
what their commands did, `content` what files hold, `language` what sentences say. From these `usage`, `purposes`,
`decisions`, `setbacks`, `open_points` make the facts in `values`. All but `session` are pure functions: the same
records give the same facts. Only `language` depends on the languages it knows.

`standing_of` tells the state of a folder: the last activity, how much is known exactly and as of when, and what may
have changed since.

What may have changed is listed by cause: eleven files that one command may have changed are one line. A restore command
is only shown if it restores something and can be quoted safely.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from daemon import moments
from daemon.files import Disk, Revision
from daemon.files.history import REVERTED
from daemon.model import FileEdit, Operation
from daemon.reconstitute.facts import decisions, open_points, purposes, setbacks, usage
from daemon.reconstitute.facts.content import cut, last_text
from daemon.reconstitute.facts.purposes import files as file_purposes
from daemon.reconstitute.facts.purposes.documents import readmes
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts
from daemon.reconstitute.facts.shell import spellings
from daemon.reconstitute.facts.usage import scripts as project_scripts
from daemon.reconstitute.facts.values import Aftermath, Facts, Standing
from daemon.reconstitute.recover import CERTAIN, Recovered, State, shell_word
from daemon.redact import redact
from daemon.transcript.shell import NOTE_PREFIX

__all__ = ["Facts", "gather"]


def gather(
    target: str,
    sessions: Sequence[SessionFacts],
    files: Sequence[Recovered],
    programs: Sequence[FileEdit],
    moment: int | None,
) -> Facts:
    """The facts of `target`; `sessions` oldest first, `programs` what may have written files that no record names."""
    sessions = tuple(sessions)
    purpose_of = file_purposes.find(files, sessions)
    scripts = project_scripts.find(files)
    failures = setbacks.find(sessions, files, scripts)
    commands = usage.find(target, sessions, scripts, project_scripts.groups_by_content(files))
    named = [spellings.of(script.invocation) for script in scripts]
    named += [spellings.of(command.command, command.folder) for command in commands]
    scripts += project_scripts.starts(target, files, readmes(files), named)
    return Facts(
        sessions=sessions,
        purpose=(purpose_of[target],) if target in purpose_of else purposes.find(target, sessions, files),
        standing=standing_of(target, sessions, files, programs, moment),
        commands=usage.runnable(target, usage.marked(commands, _text(readmes(files)), scripts), files),
        scripts=scripts,
        needs=project_scripts.needs(files),
        setbacks=failures,
        open=open_points.find(sessions, failures, files),
        rules=decisions.find(sessions, files),
        file_purposes=purpose_of,
    )


def _text(files: Sequence[Recovered]) -> str:
    return "\n\n".join(read.text for file in files if (read := last_text(file)) is not None)


_MAX_AFTERMATH = 200
_ENDED = {
    CallStatus.FAILED: "failed",
    CallStatus.REFUSED: "was refused",
    CallStatus.STOPPED: "stopped",
}
_DOUBTS = frozenset({Operation.UNCLEAR, Operation.RUN})
_OBSERVATIONS = frozenset({Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT})
_CERTAIN = frozenset({State.VERIFIED, State.PROVEN})


@dataclass(slots=True)
class _Cause:
    """Something after which files are no longer known exactly, with the files that it may have changed."""

    text: str
    note: str
    time: int
    session_id: str
    message_id: str
    part_id: str
    paths: dict[str, None] = field(default_factory=dict)


def standing_of(
    target: str,
    sessions: Sequence[SessionFacts],
    files: Sequence[Recovered],
    programs: Sequence[FileEdit],
    moment: int | None,
) -> Standing:
    """See Standing; `moment` (epoch ms) is that of the state, None for the present."""
    files = [file for file in files if not file.is_folder]
    counts = Counter(str(file.state) for file in files)
    restorable = [file for file in files if file.state in _CERTAIN and file.certain is not None and _is_restored(file)]
    absent = [file for file in files if file.disk is Disk.MISSING and file.state is not State.DELETED]
    likely = tuple(file.path for file in absent if _is_likely(file))
    missing_paths = tuple(file.path for file in restorable if file.disk is Disk.MISSING)
    differing = tuple(file.path for file in restorable if file.disk is Disk.DIFFERS)
    last = max(sessions, key=lambda session: (session.last, session.id), default=None)
    return Standing(
        last_activity=0 if last is None else last.last,
        last_session="" if last is None else last.id,
        known_at=max((state.time for file in files if (state := _certain(file)) is not None), default=0),
        counts={str(state): counts[state] for state in State if counts[state]},
        aftermath=_aftermath(sessions, files, programs),
        absent=tuple(file.path for file in absent),
        missing=missing_paths,
        likely=likely,
        differing=differing,
        restore=restore(target, moment) if missing_paths or differing or likely else "",
    )


def _is_restored(file: Recovered) -> bool:
    """Whether `restore` writes it; it makes no links."""
    return not stat.S_ISLNK(file.last.mode)


def _is_likely(file: Recovered) -> bool:
    """Whether ``restore --grade stale`` writes it, and nothing less does."""
    return file.state is State.STALE and file.last.whole is not None and not file.last.deleted and _is_restored(file)


def restore(target: str, moment: int | None) -> str:
    """The command that writes what is known exactly of `target` into a new folder; empty if it cannot be quoted."""
    word = shell_word(target)
    if not word:
        return ""
    return f"reconstitute restore {word} --to DIR" + ("" if moment is None else f" --at {moments.written(moment)}")


def _certain(file: Recovered) -> Revision | None:
    """The newest certain state of a file, its deletion too."""
    return next((revision for revision in reversed(file.revisions) if revision.proven), None)


def _aftermath(
    sessions: Sequence[SessionFacts], files: Sequence[Recovered], programs: Sequence[FileEdit]
) -> tuple[Aftermath, ...]:
    """What may have changed files after they were last known; each cause once, newest first."""
    calls = {call.part_id: call for session in sessions for turn in session.turns for call in turn.calls}
    causes: dict[tuple[str, str], _Cause] = {}
    for path, revision in _doubts(files):
        _add(causes, _of_revision(revision), path)
    last_certain = max((state.time for file in files if (state := _certain(file)) is not None), default=0)
    for program in programs:
        if program.time >= last_certain:  # otherwise a later state already shows its effect
            _add(causes, _of_program(program), "")
    aftermath = [_in_words(cause, calls.get(cause.part_id)) for cause in causes.values()]
    return tuple(sorted(aftermath, key=lambda entry: (-entry.time, entry.citation.message_id, entry.text)))


def _doubts(files: Sequence[Recovered]) -> Iterator[tuple[str, Revision]]:
    """What followed the last certain state of each file that is no longer certain.

    For a file that never was certain, only what is recorded as a possible change.
    """
    for file in files:
        if file.state in CERTAIN or (file.state is not State.STALE and _certain(file) is None):
            continue
        was_certain = _certain(file) is not None
        for revision in reversed(file.revisions):
            if revision.proven:
                break
            if revision.operation in _DOUBTS or (was_certain and revision.operation not in _OBSERVATIONS):
                yield file.path, revision


def _of_revision(revision: Revision) -> _Cause:
    note = revision.note
    if note == REVERTED:
        text, note = "a revert whose time is not known", ""
    elif revision.operation in _DOUBTS and (note.startswith(NOTE_PREFIX) or revision.operation is Operation.RUN):
        text, note = "a command of unknown effect", note.removeprefix(NOTE_PREFIX)
    else:
        text, note = note or "a change of unknown outcome", ""
    return _Cause(text, note, revision.time, revision.session_id, revision.message_id, revision.part_id)


def _of_program(edit: FileEdit) -> _Cause:
    text = "a program that may have written files that no record lists"
    note = edit.note.removeprefix(NOTE_PREFIX)
    return _Cause(text, note, edit.time, edit.session_id, edit.message_id, edit.part_id)


def _add(causes: dict[tuple[str, str], _Cause], cause: _Cause, path: str) -> None:
    """A call is one cause, however many files it may have changed; other causes are told apart by their text."""
    cause_of_path = causes.setdefault((cause.part_id or cause.message_id, "" if cause.part_id else cause.text), cause)
    cause_of_path.time = min(cause_of_path.time, cause.time)
    if path:
        cause_of_path.paths[path] = None


def _in_words(cause: _Cause, call: Call | None) -> Aftermath:
    command = " ".join(redact(call.command).split()) if call is not None and call.command else ""
    command = cut(command or " ".join(redact(cause.note).split()), _MAX_AFTERMATH)
    text = " ".join(redact(cause.text).split())
    if call is not None and call.status in _ENDED:
        text = f"{text}, {_how(call)}"
    citation = Citation(cause.session_id, cause.message_id, cause.time)
    return Aftermath(text, command, cause.time, citation, tuple(sorted(cause.paths)))


def _how(call: Call) -> str:
    """``stopped after 3 s``, ``failed with exit status 2``."""
    if call.status is CallStatus.FAILED and call.exit is not None:
        return f"failed with exit status {call.exit}"
    seconds = round((call.ended - call.started) / 1000) if call.started and call.ended > call.started else 0
    after = f" after {seconds} s" if call.status is CallStatus.STOPPED and seconds else ""
    return _ENDED[call.status] + after
