"""Reads fields of a message's records: tool calls, valid text, absolute paths.

Any field of a record may be missing or of another type; these functions then return a default. Nothing is looked up on
the disk: a path is normalised by its text only.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from daemon import records
from daemon.model import FileEdit, Json, Launch, Message, Operation, Part, Session

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_PATH = 4096  # PATH_MAX of Linux
PATH_KEYS = ("filePath", "path", "file_path", "filepath", "file", "filename", "target_file", "notebook_path")
"""Field names of a tool's file: OpenCode's own names first, then those of MCP servers."""


def valid_text(text: str) -> str:
    """`text` as JavaScript would write it to a file: lone surrogates become U+FFFD (docs/reliability.md, S14)."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def valid(value: object) -> Any:
    """The same JSON value with every string, also every key, valid UTF-8."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {valid_text(str(key)): valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [valid(item) for item in value]
    return value


def partial_output(state: Json) -> str:
    """The output so far of a call that failed, was stopped or still runs; empty if it completed."""
    if state.get("status") == "completed" or state.get("output"):
        return ""
    return valid_text(records.text(records.table(state.get("metadata")).get("output")))


def patches(state: Json) -> list[tuple[str, str]]:
    """(file, patch) of each recorded change of a call, in any version's shape."""
    metadata = records.table(state.get("metadata"))
    listed = metadata.get("files")
    changed = [*(listed if isinstance(listed, list) else []), metadata.get("filediff")]
    texts = [
        (first_text(item, ("file", "filePath", "path", "relativePath")), first_text(item, ("patch", "diff")))
        for item in map(records.table, changed)
    ]
    return [(valid_text(file), valid_text(patch)) for file, patch in texts if patch]


def compact(value: object) -> str:
    """One line of JSON, characters as they are, keys in their own order."""
    return json.dumps(valid(value), ensure_ascii=False, separators=(",", ":"), default=str)


def absolute(path: str, base: str) -> str | None:
    """`path` as an absolute path without ``.``, ``..`` or doubled slashes; None if it cannot be resolved.

    Links are not followed, because today's disk says nothing about the disk at that time.
    """
    path = valid_text(path)
    if not path or "\0" in path or len(path) > _LONGEST_PATH:
        return None
    if not path.startswith("/"):
        if not base.startswith("/"):
            return None
        path = f"{base}/{path}"
    return "/" + posixpath.normpath(path).lstrip("/")


def working_directory(message: Message, session: Session | None) -> str:
    """The folder of relative paths in OpenCode: the message's `path.cwd`, else the session's directory."""
    cwd = records.text(records.table(message.data.get("path")).get("cwd"))
    return valid_text(cwd or (session.directory if session else ""))


def worktree(message: Message, session: Session | None) -> str:
    """The folder of snapshot and diff paths: `path.root`.

    Project records mix up clones (opencode-formats.md, Tools 1).
    """
    root = records.text(records.table(message.data.get("path")).get("root"))
    # Outside git the recorded root is "/", while file names in such a session are relative to its directory.
    return valid_text(root) if len(root) > 1 else working_directory(message, session)


def first_text(table: Json, keys: tuple[str, ...]) -> str:
    """The first of these fields that is a text and not empty, or an empty text."""
    return next((value for key in keys if isinstance(value := table.get(key), str) and value), "")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool part: its input, its result, its times (epoch ms), and the folder of relative paths."""

    part: Part
    tool: str
    status: str
    input: Json
    state: Json
    metadata: Json
    start: int
    end: int
    base: str

    @property
    def is_aborted(self) -> bool:
        """Whether it was interrupted, so that it is unknown how far it came (opencode-formats.md, Tools 14)."""
        error = records.text(self.state.get("error")).lower()
        return self.status == "running" or (self.status == "error" and ("abort" in error or "interrupt" in error))

    def path(self, keys: tuple[str, ...] = PATH_KEYS) -> str | None:
        """The absolute path of the call's file."""
        return absolute(first_text(self.input, keys), self.base)


def call(part: Part, message: Message, session: Session | None) -> Call:
    """The Call of a tool part. Without a recorded end, its end is its start, or else the message's time."""
    state = records.table(part.data.get("state"))
    time = records.table(state.get("time"))
    start = records.integer(time.get("start")) or records.integer(time.get("end")) or message.created
    return Call(
        part=part,
        tool=records.text(part.data.get("tool")),
        status=records.text(state.get("status")),
        input=records.table(state.get("input")),
        state=state,
        metadata=records.table(state.get("metadata")),
        start=start,
        end=max(start, records.integer(time.get("end"))),
        base=working_directory(message, session),
    )


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, ...] | None:
    """An OpenCode version as numbers that compare; None if it is not of the form 1.2.3."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(int(number) for number in match.groups()) if match else None


def file_edit(
    tool_call: Call,
    version: str,
    path: str,
    operation: Operation,
    *,
    content: str | None = None,
    old: str | None = None,
    new: str | None = None,
    replace_all: bool = False,
    hunks: tuple[tuple[str, tuple[str, ...], tuple[str, ...], bool], ...] = (),
    before: str | None = None,
    after: str | None = None,
    other: str | None = None,
    existed: bool | None = None,
    note: str = "",
    blob: str = "",
    into: bool | None = False,
    recursive: bool = False,
    launch: Launch | None = None,
) -> FileEdit:
    """The effect of `tool_call` on `path`, at the time the call ended; texts are made valid Unicode."""
    return FileEdit(
        path=path,
        time=tool_call.end,
        session_id=tool_call.part.session_id,
        message_id=tool_call.part.message_id,
        part_id=tool_call.part.id,
        tool=tool_call.tool,
        operation=operation,
        content=_valid_or_none(content),
        old=_valid_or_none(old),
        new=_valid_or_none(new),
        replace_all=replace_all,
        hunks=hunks,
        before=_valid_or_none(before),
        after=_valid_or_none(after),
        other=_valid_or_none(other),
        existed=existed,
        started=tool_call.start if tool_call.start < tool_call.end else None,
        version=version,
        note=valid_text(note),
        blob=blob,
        into=into,
        recursive=recursive,
        launch=launch,
    )


def _valid_or_none(text: str | None) -> str | None:
    return None if text is None else valid_text(text)


def unclear(tool_call: Call, version: str, paths: Iterable[str | None], note: str) -> list[FileEdit]:
    """The edits of a call that may have changed these paths in an unknown way."""
    return [file_edit(tool_call, version, path, Operation.UNCLEAR, note=note) for path in paths if path is not None]
