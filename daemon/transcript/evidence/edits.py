"""Extracts FileEdits from a message, with absolute paths, in the order they took effect.

Tool calls count if they completed. A call that was interrupted, or whose record does not show its effect, is UNCLEAR.
Other modules read steps (snapshot trees), recorded diffs and attachments. Every shape that OpenCode 1.0 to 1.18 and
OpenCode 2 write becomes the same FileEdit (docs/reliability.md, S11). Whether a recorded change fits the file before it
is decided later, in `files/replay`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from daemon import records
from daemon.model import FileEdit, Json, Message, Operation, Session
from daemon.transcript import patch_text, shell
from daemon.transcript.evidence import attachments, call_results, left_out, unified_diffs
from daemon.transcript.evidence.call_results import Texts, files, listed, recorded, settled
from daemon.transcript.evidence.recorded_diffs import summary_edits
from daemon.transcript.evidence.steps import step_edits
from daemon.transcript.evidence.unified_diffs import full_diff
from daemon.transcript.tool_calls import PATH_KEYS, Call, absolute, call, file_edit, first_text, unclear, valid_text

NEVER_ENDED = 0
"""The `until` of the edits of a call without a recorded end. The replay sets it from the next event."""

to_json = records.edit_to_json
from_json = records.edit_from_json
_HARMLESS = (
    "read list ls glob grep task todowrite todoread webfetch websearch codesearch skill question invalid batch lsp "
    "plan_enter plan_exit"
)
_CONTENT_KEYS = (
    "content contents text newString oldString new_string old_string new_str old_str file_text insert_text new_source "
    "patch patchText diff edits code replacement"
)
_MUTATING_NAME = re.compile(
    r"write|edit|patch|replace|insert|append|create|delete|remove|rename|move|copy|save|restore"
)
_RUNNING_NAME = re.compile(
    r"exec|run|command|shell|bash|terminal|pty|script|refactor|rename|checkout|reset|stash|merge"
)
"""Names of tools that may do anything, or change more files than they name."""
_SHELLS = frozenset({"bash", "shell"})
_MORE_PATHS = (
    "source", "destination", "src", "dst", "from", "to", "old_path", "new_path", "oldPath", "newPath", "relative_path",
    "relativePath", "target",
)  # fmt: skip


def edits(message: Message, session: Session | None, *, root: str = "") -> list[FileEdit]:
    """The message's file edits in part order, those of its summary last; `number` counts those of one part.

    `time` is when the call ended, never earlier than that of the edit before it. `root` is the work tree, for messages
    that do not name it (a user's; any answer of the session has it in `path.root`). Without it, diffs whose names might
    start elsewhere are left out.
    """
    return list(each_edit(message, session, root=root))


def each_edit(message: Message, session: Session | None, *, root: str = "") -> Iterator[FileEdit]:
    """As `edits`, one by one, so that the texts of a large message's edits need not be in memory together."""
    return _numbered(_in_order(_part_edits(message, session, root)))


def _part_edits(message: Message, session: Session | None, root: str) -> Iterator[FileEdit]:
    steps = step_edits(message, session, root)
    attached = ""
    for number, part in enumerate(message.parts):
        if part.type == "tool":
            tool_call = call(part, message, session)
            reader = _READERS.get(tool_call.tool.lower(), _of_unknown_tool)
            reader = _of_incomplete_record if left_out.is_in(part.data) else reader
            by_call = reader(tool_call, call_results.version_of(tool_call, session))
            yield from (
                [replace(edit, until=NEVER_ENDED) for edit in by_call] if tool_call.status == "running" else by_call
            )
        elif part.type == "text" and part.data.get("synthetic") is True:
            text = records.text(part.data.get("text"))
            attached = attachments.announced_path(text) or attached
            seen = attachments.announced_read(part, message, session, text, attached)
            yield from left_out.without_content(seen) if left_out.is_in(part.data) else seen
        elif part.type == "file":
            yield from attachments.attached_state(message, session, number)
        yield from steps.get(number, [])
    if message.role == "user":
        yield from summary_edits(message, session, root)


def _in_order(edits: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """The edit tool locks its file: calls of one message take effect in the order they were made.

    Their ends may say otherwise, since an end also waits for diagnostics.
    """
    latest: dict[str, int] = {}
    for edit in edits:
        time = edit.time
        if edit.tool in ("edit", "multiedit"):
            time = latest[edit.path] = max(time, latest.get(edit.path, 0))
        if time != edit.time:
            edit = replace(edit, time=time)  # noqa: PLW2901 - the same edit, a later end
        yield edit


def _numbered(edits: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """Each edit with its number in its part, so that any sort keeps their order."""
    counts: Counter[str] = Counter()
    for edit in edits:
        number = counts[edit.part_id]
        counts[edit.part_id] += 1
        yield edit if edit.number == number else replace(edit, number=number)


def _write(tool_call: Call, version: str) -> list[FileEdit]:
    path, content = tool_call.path(), tool_call.input.get("content")
    if path is None:
        return []
    if not isinstance(content, str):
        return unclear(tool_call, version, [path], "a write without content")
    existed = tool_call.metadata.get("exists")
    existed = existed if isinstance(existed, bool) else None
    return [file_edit(tool_call, version, path, Operation.WRITE, content=content, existed=existed)]


def _edit(tool_call: Call, version: str) -> list[FileEdit]:
    path = tool_call.path() or next((file["path"] for file in files(tool_call)), None)
    if path is None:
        return []
    replacements = _replacement(tool_call, version, path, tool_call.input, tool_call.metadata.get("filediff"))
    return [
        replace(edit, hunks=unified_diffs.hunks_of_edit(tool_call, path))
        if edit.operation is Operation.EDIT and edit.after is None
        else edit
        for edit in replacements
    ]


def _edit_or_refusal(tool_call: Call, version: str) -> list[FileEdit]:
    """An edit; or its refusal because the old text was not in the file, which is evidence too."""
    if not call_results.is_not_found(tool_call):
        return settled(_edit)(tool_call, version)
    path, old, new = tool_call.path(), tool_call.input.get("oldString"), tool_call.input.get("newString")
    if path is None or not isinstance(old, str) or not isinstance(new, str) or not old or old == new:
        return []
    replace_all = tool_call.input.get("replaceAll") is True
    return [file_edit(tool_call, version, path, Operation.REFUSED, old=old, new=new, replace_all=replace_all)]


def _multiedit_or_part(tool_call: Call, version: str) -> list[FileEdit]:
    """The edits of a multiedit are applied one by one, so a failed one may have applied some of them."""
    if tool_call.status != "error" or tool_call.is_aborted or call_results.is_before_work(tool_call):
        return settled(_multiedit)(tool_call, version)
    items = [records.table(item) for item in listed(tool_call.input.get("edits"))]
    names = [tool_call.path(), *(absolute(first_text(item, PATH_KEYS), tool_call.base) for item in items)]
    return unclear(
        tool_call, version, dict.fromkeys(names), "a multiedit failed; its first edits may have been applied"
    )


def _multiedit(tool_call: Call, version: str) -> list[FileEdit]:
    path = tool_call.path()
    results = listed(tool_call.metadata.get("results"))
    edits: list[FileEdit] = []
    for number, item in enumerate(listed(tool_call.input.get("edits"))):
        fields = records.table(item)
        target = absolute(first_text(fields, PATH_KEYS), tool_call.base) or path
        result = records.table(results[number]) if number < len(results) else {}
        if target is not None:
            edits += _replacement(tool_call, version, target, fields, result.get("filediff"))
    return edits


def _replacement(tool_call: Call, version: str, path: str, fields: Json, diff: object) -> list[FileEdit]:
    old, new = fields.get("oldString"), fields.get("newString")
    texts = recorded(diff)
    before, after = (texts.before, texts.after) if texts is not None else (None, None)
    old, new = old if isinstance(old, str) else None, new if isinstance(new, str) else None
    if (old is None or new is None) and texts is None:
        return unclear(tool_call, version, [path], f"{tool_call.tool} without old and new text")
    replace_all = fields.get("replaceAll") is True
    return [
        file_edit(
            tool_call,
            version,
            path,
            Operation.EDIT,
            old=old,
            new=new,
            replace_all=replace_all,
            before=before,
            after=after,
        )
    ]


def _read(tool_call: Call, version: str) -> list[FileEdit]:
    path = tool_call.path()
    if path is not None and call_results.found_no_file(tool_call, version, path):
        return [file_edit(tool_call, version, path, Operation.STATE, note="a read found no file there")]
    if tool_call.status != "completed" or path is None:
        return []
    lines = call_results.read_lines(records.text(tool_call.state.get("output")), tool_call.metadata, version)
    if lines is None:
        return [*attachments.state_by_read(tool_call, version), *call_results.read_as_picture(tool_call, version, path)]
    return [call_results.observation(tool_call, version, path, lines)]


def _of_incomplete_record(tool_call: Call, version: str) -> list[FileEdit]:
    """The edits of a call from whose record something was left out."""
    tool = tool_call.tool.lower()
    if tool in _SHELLS and left_out.is_output_only(tool_call.part.data):
        return shell.edits(replace(tool_call, metadata={**tool_call.metadata, "truncated": True}), version)
    if tool in _HARMLESS.split() and tool != "read":
        return []
    items = [records.table(item) for item in listed(tool_call.input.get("edits"))]
    names = [*_named_in_lists(tool_call), *(first_text(item, PATH_KEYS) for item in items)]
    named = [tool_call.path(), *patched_paths(tool_call, version)]
    named += [absolute(name, tool_call.base) for name in names]
    return left_out.of_call(tool_call, version, [path for path in named if path and "\n" not in path])


def _of_unknown_tool(tool_call: Call, version: str) -> list[FileEdit]:
    """The paths that a call of a foreign tool names, as UNCLEAR, if the tool seems to write."""
    tool = tool_call.tool.lower()
    if (
        tool in _HARMLESS.split()
        or tool_call.status == "pending"
        or (tool_call.status == "error" and not tool_call.is_aborted)
    ):
        return []
    note = f"changed by {tool_call.tool}, which is not known here"
    if _RUNNING_NAME.search(tool):
        return unclear(tool_call, version, [absolute(tool_call.base, "")], note)
    looks_mutating = _MUTATING_NAME.search(tool) is not None
    if not looks_mutating and tool_call.input.keys().isdisjoint(_CONTENT_KEYS.split()):
        return []
    names = [tool_call.path(), *patched_paths(tool_call, version)]
    if looks_mutating:
        names += [absolute(records.text(tool_call.input.get(key)), tool_call.base) for key in _MORE_PATHS]
        names += [absolute(name, tool_call.base) for name in _named_in_lists(tool_call)]
    names = [name for name in names if name is not None and "\n" not in name]  # text, far more likely than a file
    if looks_mutating and not names:
        names = [absolute(tool_call.base, "")]
    return unclear(tool_call, version, dict.fromkeys(names), note)


def _named_in_lists(tool_call: Call) -> list[str]:
    """The names in the lists of files among such a tool's input."""
    names: list[str] = []
    for key in ("paths", "files", "filePaths", "file_paths"):
        value = tool_call.input.get(key)
        items = value if isinstance(value, list) else []
        names += [item if isinstance(item, str) else first_text(records.table(item), PATH_KEYS) for item in items]
    return names


def patched_paths(tool_call: Call, version: str) -> list[str]:
    """Every path that a patch names, in its text or in its result."""
    names = [absolute(file.path, tool_call.base) for file in patch_text.parse(_text_of(tool_call), version)]
    names += [file["path"] for file in files(tool_call)]
    return [name for name in names if name is not None]


def patch(tool_call: Call, version: str) -> list[FileEdit]:
    """The edits of a completed patch, in its order, then those of files that only its result names."""
    entries = {file["path"]: file for file in files(tool_call)}
    edits: list[FileEdit] = []
    for file in patch_text.parse(_text_of(tool_call), version):
        path = absolute(file.path, tool_call.base)
        if path is not None:
            edits += _patched(tool_call, version, path, file, entries.pop(path, {}))
    edits += [edit for path, entry in entries.items() for edit in _recorded_only(tool_call, version, path, entry)]
    counts: dict[str, int] = {}
    for edit in edits:
        counts[edit.path] = counts.get(edit.path, 0) + 1
    # A patch that names a file twice computes both results from the same text, so the final one is unknown.
    return [
        file_edit(tool_call, version, edit.path, Operation.UNCLEAR, note="named twice in one patch")
        if counts[edit.path] > 1
        else edit
        for edit in edits
    ]


def _text_of(tool_call: Call) -> str:
    return first_text(tool_call.input, ("patchText", "patch", "input"))


def _patched(tool_call: Call, version: str, path: str, file: patch_text.FilePatch, entry: Json) -> list[FileEdit]:
    if file.kind == "delete":
        return [file_edit(tool_call, version, path, Operation.DELETE)]
    if file.kind == "add":
        recorded_after = entry.get("after")
        content = recorded_after if isinstance(recorded_after, str) else file.contents
        return [file_edit(tool_call, version, path, Operation.WRITE, content=content)]
    texts = recorded(entry)
    if not file.is_complete and texts is None:
        return unclear(tool_call, version, [path], "a patch with lines that not every version reads alike")
    target = absolute(file.move_to, tool_call.base)
    before, after = (texts.before, texts.after) if texts is not None else (None, None)
    hunks = tuple((c, tuple(map(valid_text, o)), tuple(map(valid_text, n)), e) for c, o, n, e in file.hunks)
    if target is None or target == path:
        return [file_edit(tool_call, version, path, Operation.PATCH, hunks=hunks, before=before, after=after)]
    return [
        file_edit(tool_call, version, path, Operation.MOVE, other=target),
        file_edit(tool_call, version, target, Operation.PATCH, hunks=hunks, other=path, before=before, after=after),
    ]


def _recorded_only(tool_call: Call, version: str, path: str, entry: Json) -> list[FileEdit]:
    """A file that only the result names (OpenCode 2's `metadata.files`, or a patch whose text cannot be parsed)."""
    texts = recorded(entry) or _texts_of_full_diff(entry)
    if texts is not None and not entry.get("movePath"):
        return [file_edit(tool_call, version, path, Operation.PATCH, before=texts.before, after=texts.after)]
    if entry.get("type") == "delete" or entry.get("status") == "deleted":
        return [file_edit(tool_call, version, path, Operation.DELETE)]
    moved = absolute(first_text(entry, ("movePath",)), tool_call.base)
    return unclear(tool_call, version, [path, moved], "a patch whose text is not recorded")


def _texts_of_full_diff(entry: Json) -> Texts | None:
    """Before and after of OpenCode 2's {file, patch, status}, if the patch shows the whole file.

    1.18's own entries name the file `filePath` and have lost indentation and line ends (opencode-formats.md, Records).
    """
    if "filePath" in entry or entry.get("status") != "modified":
        return None
    sides = full_diff(records.text(entry.get("patch")))
    return None if sides is None else recorded({"before": sides.before, "after": sides.after})


_READERS: dict[str, Callable[[Call, str], list[FileEdit]]] = {
    "write": settled(_write),
    "edit": _edit_or_refusal,
    "multiedit": _multiedit_or_part,
    "apply_patch": settled(patch, patched_paths),
    "patch": settled(patch, patched_paths),
    "read": _read,
    "bash": shell.edits,
    "shell": shell.edits,
}
