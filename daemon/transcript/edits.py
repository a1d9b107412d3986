"""What a message's tool calls did to files: completed calls only, each path absolute, in the order they took effect.

A call that failed changed nothing; one that was cut off, or whose effect its record does not tell, is UNCLEAR. Shapes
of 1.0 to 1.18 and of OpenCode 2 meet in one FileEdit (docs/reliability.md, S11). Nothing is computed here: whether a
recorded change follows from what was there before is files.history's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from daemon import records
from daemon.model import FileEdit, Json, Message, Operation, Part, Session
from daemon.redact import redact
from daemon.transcript import patch_text, reads, shell
from daemon.transcript.shapes import PATH_KEYS, Call, absolute, call, first_text, valid_text, working_directory

INEXACT_READ = "final newline and line ends do not show in it"
"""Begins the note of a READ whose text is the file's but for final newline, CR and byte order mark."""
_HARMLESS = shell.words(
    "read list ls glob grep task todowrite todoread webfetch websearch codesearch skill question invalid batch lsp "
    "plan_enter plan_exit"
)
_CONTENT_KEYS = shell.words(
    "content contents text newString oldString new_string old_string new_str old_str file_text insert_text new_source "
    "patch patchText diff edits code replacement"
)
_MUTATING_NAME = re.compile(
    r"write|edit|patch|replace|insert|append|create|delete|remove|rename|move|copy|save|restore"
)
_MORE_PATHS = ("source", "destination", "src", "dst", "from", "to", "old_path", "new_path", "oldPath", "newPath")
_READ_CALL = "Called the Read tool with the following input: "
_NEWEST_WITH_AFTER = (1, 2, 1)

to_json = records.edit_to_json
from_json = records.edit_from_json


def edits(message: Message, session: Session | None) -> list[FileEdit]:
    """The message's file edits in part order. `time` is when the call ended, never earlier than one it follows here."""
    found: list[FileEdit] = []
    attached = ""
    for part in message.parts:
        if part.type == "tool":
            made = call(part, message, session)
            found += _READERS.get(made.tool.lower(), _other)(made, _version(made, session))
        elif part.type == "text" and part.data.get("synthetic") is True:
            text = records.text(part.data.get("text"))
            attached = _attached_path(text) or attached
            found += _attachment(part, message, session, text, attached)
    return _in_order(found)


def started(edit: FileEdit) -> int:
    """When the call that made `edit` began, epoch ms: its effect falls between this and `time`."""
    return edit.time if edit.started is None else edit.started


def _in_order(found: list[FileEdit]) -> list[FileEdit]:
    """The edit tool locks its file: calls of one message take effect in the order they were made.

    Their ends may say otherwise, since an end also waits for diagnostics.
    """
    latest: dict[str, int] = {}
    ordered = []
    for edit in found:
        time = edit.time
        if edit.tool in ("edit", "multiedit"):
            time = latest[edit.path] = max(time, latest.get(edit.path, 0))
        if time != edit.time:
            edit = replace(edit, time=time)  # noqa: PLW2901 - the same edit, a later end
        ordered.append(edit)
    return ordered


def _version(made: Call, session: Session | None) -> str:
    """The OpenCode that made the call: the session's, unless the record has a newer form than that one writes.

    A session keeps the version that began it, also when a newer OpenCode goes on with it.
    """
    version = session.version if session else ""
    number = reads.release(version)
    newer = "display" in made.metadata or "patch" in records.table(made.metadata.get("filediff"))
    newer = newer or any("patch" in records.table(file) for file in _list(made.metadata.get("files")))
    return "" if number is not None and number <= _NEWEST_WITH_AFTER and newer else version


def _one(made: Call, version: str, path: str, operation: Operation, **fields: Any) -> FileEdit:
    told: dict[str, Any] = {name: valid_text(text) if isinstance(text, str) else text for name, text in fields.items()}
    return FileEdit(
        path=path,
        time=made.end,
        session_id=made.part.session_id,
        message_id=made.part.message_id,
        part_id=made.part.id,
        tool=made.tool,
        operation=operation,
        started=made.start if made.start < made.end else None,
        version=version,
        **told,
    )


def _unclear(made: Call, version: str, paths: Iterable[str | None], note: str) -> list[FileEdit]:
    return [_one(made, version, path, Operation.UNCLEAR, note=note) for path in paths if path is not None]


def _settled(reader: Callable[[Call, str], list[FileEdit]]) -> Callable[[Call, str], list[FileEdit]]:
    """`reader` for completed calls only; one that was cut off may have changed what it names."""

    def checked(made: Call, version: str) -> list[FileEdit]:
        if made.status == "completed":
            return reader(made, version)
        if not made.is_aborted:
            return []
        names = [made.path(), *_patched_paths(made)]
        return _unclear(made, version, dict.fromkeys(names), f"{made.tool} was cut off: {made.status}")

    return checked


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _files(made: Call) -> list[Json]:
    """`metadata.files` with each file's absolute path as `path`, whichever name its version gave it."""
    found = []
    for item in _list(made.metadata.get("files")):
        name = first_text(records.table(item), ("filePath", "file", "path", "relativePath"))
        path = absolute(name, made.base)
        if path is not None:
            found.append(records.table(item) | {"path": path})
    return found


def _recorded(diff: Any) -> dict[str, Any]:
    """`before` and `after` as OpenCode up to 1.2.1 recorded them; both or nothing."""
    table = records.table(diff)
    before, after = table.get("before"), table.get("after")
    both = isinstance(before, str) and isinstance(after, str) and before != after
    return {"before": before, "after": after} if both else {}


def _write(made: Call, version: str) -> list[FileEdit]:
    path, content = made.path(), made.input.get("content")
    if path is None:
        return []
    if not isinstance(content, str):
        return _unclear(made, version, [path], "a write without content")
    existed = made.metadata.get("exists")
    existed = existed if isinstance(existed, bool) else None
    return [_one(made, version, path, Operation.WRITE, content=content, existed=existed)]


def _edit(made: Call, version: str) -> list[FileEdit]:
    path = made.path() or next((file["path"] for file in _files(made)), None)
    return [] if path is None else _replacement(made, version, path, made.input, made.metadata.get("filediff"))


def _multiedit(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    results = _list(made.metadata.get("results"))
    found: list[FileEdit] = []
    for number, item in enumerate(_list(made.input.get("edits"))):
        fields = records.table(item)
        target = absolute(first_text(fields, PATH_KEYS), made.base) or path
        result = records.table(results[number]) if number < len(results) else {}
        if target is not None:
            found += _replacement(made, version, target, fields, result.get("filediff"))
    return found


def _replacement(made: Call, version: str, path: str, fields: Json, diff: Any) -> list[FileEdit]:
    old, new = fields.get("oldString"), fields.get("newString")
    recorded = _recorded(diff)
    if not (isinstance(old, str) and isinstance(new, str)) and not recorded:
        return _unclear(made, version, [path], f"{made.tool} without old and new text")
    replace_all = fields.get("replaceAll") is True
    return [_one(made, version, path, Operation.EDIT, old=old, new=new, replace_all=replace_all, **recorded)]


def _patched_paths(made: Call) -> list[str]:
    """Every path that a patch names, in its text or in its result."""
    names = [absolute(file.path, made.base) for file in patch_text.parse(_patch_of(made))]
    names += [file["path"] for file in _files(made)]
    return [name for name in names if name is not None]


def _patch_of(made: Call) -> str:
    return first_text(made.input, ("patchText", "patch", "input"))


def _patch(made: Call, version: str) -> list[FileEdit]:
    recorded = {file["path"]: file for file in _files(made)}
    found: list[FileEdit] = []
    for file in patch_text.parse(_patch_of(made)):
        path = absolute(file.path, made.base)
        if path is not None:
            found += _patched(made, version, path, file, recorded.pop(path, {}))
    found += [edit for path, entry in recorded.items() for edit in _recorded_only(made, version, path, entry)]
    counts: dict[str, int] = {}
    for edit in found:
        counts[edit.path] = counts.get(edit.path, 0) + 1
    # A patch that names a file twice computes both results from the same text: which one stands is not known.
    return [
        _one(made, version, edit.path, Operation.UNCLEAR, note="named twice in one patch")
        if counts[edit.path] > 1
        else edit
        for edit in found
    ]


def _patched(made: Call, version: str, path: str, file: patch_text.FilePatch, entry: Json) -> list[FileEdit]:
    if file.kind == "delete":
        return [_one(made, version, path, Operation.DELETE)]
    if file.kind == "add":
        after = entry.get("after")
        return [_one(made, version, path, Operation.WRITE, content=after if isinstance(after, str) else file.contents)]
    fields: dict[str, Any] = _recorded(entry)
    if not file.is_complete and not fields:
        return _unclear(made, version, [path], "a patch with lines that not every version reads alike")
    target = absolute(file.move_to, made.base) if file.move_to else None
    hunks = tuple((c, tuple(map(valid_text, o)), tuple(map(valid_text, n)), e) for c, o, n, e in file.hunks)
    if target is None or target == path:
        return [_one(made, version, path, Operation.PATCH, hunks=hunks, **fields)]
    return [
        _one(made, version, path, Operation.MOVE, other=target),
        _one(made, version, target, Operation.PATCH, hunks=hunks, other=path, **fields),
    ]


def _recorded_only(made: Call, version: str, path: str, entry: Json) -> list[FileEdit]:
    """A file that only the result names (OpenCode 2's `metadata.files`, or a patch whose text cannot be parsed)."""
    fields = _recorded(entry)
    if fields and not entry.get("movePath"):
        return [_one(made, version, path, Operation.PATCH, **fields)]
    if entry.get("type") == "delete" or entry.get("status") == "deleted":
        return [_one(made, version, path, Operation.DELETE)]
    moved = absolute(first_text(entry, ("movePath",)), made.base)
    return _unclear(made, version, [path, moved], "a patch whose text is not recorded")


def _read(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    seen = reads.seen(records.text(made.state.get("output")), made.metadata, version)
    if made.status != "completed" or path is None or seen is None:
        return []
    return [_observation(made, version, path, seen)]


def _observation(made: Call, version: str, path: str, seen: reads.Seen) -> FileEdit:
    if seen.is_whole:
        note = "" if seen.is_exact else INEXACT_READ
        return _one(made, version, path, Operation.READ, content=seen.text, note=note)
    content = None if seen.is_cut else seen.text
    return _one(made, version, path, Operation.READ_RANGE, content=content, note=seen.span)


def _attached_path(text: str) -> str:
    """The file of an attachment's announced read; 1.0 does not repeat it in the output that follows."""
    if not text.startswith(_READ_CALL):
        return ""
    try:
        return first_text(records.table(json.loads(text[len(_READ_CALL) :])), PATH_KEYS)
    except (ValueError, RecursionError):
        return ""


def _attachment(part: Part, message: Message, session: Session | None, text: str, attached: str) -> list[FileEdit]:
    version = session.version if session else ""
    seen = reads.seen(text, {}, version)
    base = working_directory(message, session)
    path = absolute(seen.path or attached, base) if seen else None
    if seen is None or path is None:
        return []
    made = Call(part, "read", "completed", {}, {}, {}, message.created, message.created, base)
    return [_observation(made, version, path, seen)]


def _bash(made: Call, version: str) -> list[FileEdit]:
    """The next issue parses commands; until then every file that one names, and may write, is unclear.

    The command is redacted first: half a secret, or one that looks like a path, could not be recognised later.
    """
    command = redact(records.text(made.input.get("command")))
    if made.status == "pending" or not command:
        return []
    base = absolute(records.text(made.input.get("workdir")), made.base) or made.base
    head = command.strip().splitlines()[0][:120] if command.strip() else ""
    return _unclear(made, version, shell.named_files(command, base), f"shell: {head}")


def _other(made: Call, version: str) -> list[FileEdit]:
    """A tool that is not OpenCode's own: recorded as unclear where it looks as if it writes."""
    tool = made.tool.lower()
    if tool in _HARMLESS or made.status == "pending" or (made.status == "error" and not made.is_aborted):
        return []
    looks_mutating = _MUTATING_NAME.search(tool) is not None
    if not looks_mutating and not _CONTENT_KEYS & made.input.keys():
        return []
    names = [made.path(), *_patched_paths(made)]
    if looks_mutating:
        names += [absolute(records.text(made.input.get(key)), made.base) for key in _MORE_PATHS]
    return _unclear(made, version, dict.fromkeys(names), f"changed by {made.tool}, which is not known here")


_READERS: dict[str, Callable[[Call, str], list[FileEdit]]] = {
    "write": _settled(_write),
    "edit": _settled(_edit),
    "multiedit": _settled(_multiedit),
    "apply_patch": _settled(_patch),
    "patch": _settled(_patch),
    "read": _read,
    "bash": _bash,
    "shell": _bash,
    "batch": lambda _made, _version: [],
}
