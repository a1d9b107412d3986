"""The files that a message's calls changed, and the changes as diffs, from the call's record. Pure.

A diff is the one that OpenCode recorded, or else is made from the arguments of an edit: then the lines around it are
not known, nor its place in the file, and no hunk has a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from daemon import records
from daemon.archive.paths import CHANGES
from daemon.files.line_diffs import unified
from daemon.model import Json, Message, Operation, Session
from daemon.redact import redact
from daemon.transcript.evidence.edits import each_edit
from daemon.transcript.tool_calls import PATH_KEYS, absolute, first_text, patches

_OLD = ("oldString", "old_string", "old_str")
_NEW = ("newString", "new_string", "new_str")
_CONTENT = ("content", "contents", "file_text")
_PATCH = ("patchText", "patch", "diff")
_HEADER = re.compile(r"(?m)^@@")


def changed_paths(message: Message, session: Session | None) -> dict[str, dict[str, str]]:
    """For each part the paths that it changed, with the operation; ``unclear`` where it only may have."""
    paths: dict[str, dict[str, str]] = {}
    for edit in each_edit(message, session):
        if edit.operation in CHANGES:
            paths.setdefault(edit.part_id, {})[redact(edit.path)] = str(edit.operation)
        elif edit.operation is Operation.UNCLEAR:
            paths.setdefault(edit.part_id, {}).setdefault(redact(edit.path), "unclear")
    return paths


def diffs(tool: str, state: Json, directory: str) -> list[tuple[str, str]]:
    """(path, hunks) of each change that a call's state shows; the state is redacted. The path is "" if unknown."""
    input_ = records.table(state.get("input"))
    own = absolute(first_text(input_, PATH_KEYS), directory) or ""
    recorded = patches(state)
    if recorded:
        paths = [own if own and len(recorded) == 1 else absolute(file, directory) or own for file, _ in recorded]
        return [(path, _hunks(patch)) for path, (_, patch) in zip(paths, recorded, strict=True)]
    if diff := records.text(records.table(state.get("metadata")).get("diff")):
        return [(own, _hunks(diff) if own else diff)]
    made = "".join(_made(tool, input_))
    return [(own, made)] if made else []


def with_diffs(paths: dict[str, str], found: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """(path, operation, diff) of each changed file, those with a diff first."""
    rest = dict(paths)
    for path, diff in found:
        yield path, rest.pop(path, "change"), diff
    for path, operation in rest.items():
        yield path, operation, ""


def _made(tool: str, input_: Json) -> Iterator[str]:
    """The hunks that the arguments of a call show."""
    edits = input_.get("edits")
    for fields in [input_, *(edits if isinstance(edits, list) else [])]:
        table = records.table(fields)
        old, new = _text(table, _OLD), _text(table, _NEW)
        if old is not None and new is not None:
            yield "".join(line for line in unified(old, new).splitlines(keepends=True) if line[0] not in "@\\")
    if patch := first_text(input_, _PATCH):
        yield patch
    if tool == "write":
        yield unified("", first_text(input_, _CONTENT))


def _text(table: Json, keys: tuple[str, ...]) -> str | None:
    value: Any = next((table[key] for key in keys if key in table), None)
    return value if isinstance(value, str) else None


def _hunks(patch: str) -> str:
    """A patch of one file without what stands before its first hunk."""
    start = _HEADER.search(patch)
    return patch[start.start() :] if start is not None else patch
