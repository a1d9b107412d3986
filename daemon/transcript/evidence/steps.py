"""Reads the steps of an answer: the snapshot tree at each step's start and end, and the files that changed between.

A tree covers the whole work tree, but OpenCode updates only the session's folder in it (opencode-formats.md,
Snapshots). Times are those in the parts' ids; the tree itself was taken some time before, not before `started`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from daemon import records
from daemon.model import FileEdit, Message, Operation, Part, Session
from daemon.records import time_of
from daemon.transcript.paths import unquoted, work_tree
from daemon.transcript.tool_calls import absolute, working_directory

START, FINISH = "start", "finish"
"""The notes of the two SNAPSHOTs of a step."""
MOST_FILES = 20_000
"""The most files that we read from one patch part; the snapshots have the others too."""

_GIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MARKS = {"step-start": START, "step-finish": FINISH}
_OLDER, _NEWER = 60_000, 5  # ms; a message's id is some seconds older than its time at most, a fork's is newer
_ESCAPED = re.compile(r'/(?=[abfnrtv"/]|[0-3][0-7]{2})')


def step_edits(message: Message, session: Session | None, root: str = "") -> dict[int, list[FileEdit]]:
    """SNAPSHOT and STEP edits by the number of their part; none outside git. `root` as in paths.work_tree.

    Times never run backwards, and an end never comes before that of a call of its step. The id of an end is made before
    its tree (opencode-formats.md), so the tree may show what happened until the next part, or the message's end.
    """
    if not any(part.type in _MARKS or part.type == "patch" for part in message.parts):
        return {}
    tree = work_tree(message, session, known_root=root)
    scope = absolute(working_directory(message, session), "")
    if tree is None or scope is None:
        return {}
    version = session.version if session else ""
    by_part: dict[int, list[FileEdit]] = {}
    steps = list(_timed(message))
    following = [time for _, _, time, _ in steps[1:]]
    for (number, part, time, begun), next_time in zip_longest(steps, following):
        if part.type in _MARKS:
            blob = _git_id(part.data.get("snapshot"))
            if blob:
                edit = _edit(part, scope, time, operation=Operation.SNAPSHOT, blob=blob, version=version)
                taken_from = begun if begun < time else None
                until = None
                if part.type == "step-finish":
                    until = max(time, next_time or message.completed or time + _OLDER)
                by_part[number] = [replace(edit, other=tree, note=_MARKS[part.type], started=taken_from, until=until)]
        else:
            blob = _git_id(part.data.get("hash"))
            paths = _changed(part, tree) if blob else iter(())
            by_part[number] = [
                _edit(part, path, time, operation=Operation.STEP, blob=blob, version=version) for path in paths
            ]
    return by_part


def last_finish(message: Message) -> int | None:
    """When the last tree at a step's end was taken, epoch ms, which a summary calls "after"; None without such a tree.

    An interrupted turn goes on after it, and the effects of its later calls are not in the summary. If the end of the
    step was recorded but its parts were removed, as by a revert, it is when the message was completed.
    """
    is_cut = bool(message.data.get("finish")) and not any(part.type == "step-finish" for part in message.parts)
    if is_cut and not message.data.get("error"):
        return message.completed
    return max(
        (
            time
            for _, part, time, _ in _timed(message)
            if part.type == "step-finish" and _git_id(part.data.get("snapshot"))
        ),
        default=None,
    )


def _timed(message: Message) -> Iterator[tuple[int, Part, int, int]]:
    """The parts of steps, each with its number, its time, and the earliest possible time of its tree.

    A tree takes a while on a busy machine: we saw seconds between its content and the part that names it.
    """
    clock = _Clock(message)
    for number, part in enumerate(message.parts):
        if part.type == "tool":
            clock.wait(_end(part))
        elif part.type in _MARKS or part.type == "patch":
            begun = clock.latest
            yield number, part, clock.of(part, is_start=part.type == "step-start"), begun


class _Clock:
    """The times at which the parts of a message were made; they never decrease.

    The parts of a fork have new ids and the old times (opencode-formats.md, Directory), so their ids do not show when
    something happened.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self.latest = message.created
        created = time_of(message.id, message.created)
        self._ids_have_times = created is not None and -_OLDER <= created - message.created <= _NEWER

    def wait(self, until: int) -> None:
        """Raise the clock to `until`, if it is earlier."""
        self.latest = max(self.latest, until)

    def of(self, part: Part, *, is_start: bool) -> int:
        """When `part` was made: by its id, else at the message's beginning or end."""
        completed = self._message.completed
        moment = time_of(part.id, self._message.created) if self._ids_have_times else None
        if moment is not None and completed is not None and moment > completed + _OLDER:
            moment = None
        if moment is None:
            moment = self.latest if is_start or completed is None else completed
        self.latest = max(self.latest, moment)
        return self.latest


def _end(part: Part) -> int:
    time = records.table(records.table(part.data.get("state")).get("time"))
    return max(records.integer(time.get("start")), records.integer(time.get("end")))


def _git_id(value: object) -> str:
    text = records.text(value)
    return text if _GIT_ID.fullmatch(text) else ""


def _edit(part: Part, path: str, time: int, *, operation: Operation, blob: str, version: str) -> FileEdit:
    origin = (part.session_id, part.message_id, part.id)
    return FileEdit(path, time, *origin, "snapshot", operation, blob=blob, version=version)


def _changed(part: Part, tree: str) -> Iterator[str]:
    files = part.data.get("files")
    for name in (files if isinstance(files, list) else [])[:MOST_FILES]:
        path = absolute(_plain(records.text(name), tree), tree)
        if path is not None:
            yield path


def _plain(name: str, tree: str) -> str:
    """A file's name from a patch part; empty if it is uncertain.

    1.18 turns the backslashes of a name that git has quoted into slashes (opencode-formats.md, Tools 2). The original
    is certain only if exactly one slash can have been a backslash, because at least one must.
    """
    written = name.removeprefix(tree + "/")
    if len(written) < 2 or not (written.startswith('"') and written.endswith('"')) or "\\" in written:
        return unquoted(name)
    slashes = [match.start() for match in _ESCAPED.finditer(written[:-1])]
    if len(slashes) != 1:
        return ""
    at = slashes[0]
    return unquoted(written[:at] + "\\" + written[at + 1 :])
