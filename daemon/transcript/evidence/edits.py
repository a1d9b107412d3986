"""Extracts from a message what it says of files: FileEdits with absolute paths, in the order they took effect.

Tool calls count if they completed; one that was cut off, or whose record does not tell its effect, is UNCLEAR. Steps
(snapshot trees), recorded diffs and attachments are read by modules of their own. Every shape that OpenCode 1.0 to 1.18
and OpenCode 2 write becomes the same FileEdit (docs/reliability.md, S11). Whether a recorded change follows from what
was there before is decided later, in `files/replay`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from daemon import records
from daemon.model import FileEdit, Json, Message, Operation, Session
from daemon.transcript import patch_text
from daemon.transcript import shell as bash
from daemon.transcript.evidence import attachments, call_results, unified_diffs
from daemon.transcript.evidence.call_results import Texts, files, listed, recorded, settled
from daemon.transcript.evidence.recorded_diffs import summary_edits
from daemon.transcript.evidence.steps import step_edits
from daemon.transcript.evidence.unified_diffs import full_diff
from daemon.transcript.tool_calls import PATH_KEYS, Call, absolute, call, file_edit, first_text, unclear, valid_text

NEVER_ENDED = 0
"""The `until` of what a call without a recorded end may have done. The replay sets it from what came next."""

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
_MORE_PATHS = (
    "source", "destination", "src", "dst", "from", "to", "old_path", "new_path", "oldPath", "newPath", "relative_path",
    "relativePath", "target",
)  # fmt: skip


def edits(message: Message, session: Session | None, *, root: str = "") -> list[FileEdit]:
    """The message's file edits in part order, those of its summary last; `number` counts those of one part.

    `time` is when the call ended, never earlier than one it follows here. `root` is the work tree, for messages that do
    not name it themselves (a user's; `path.root` of any answer of the session tells it): without it, diffs whose names
    might start elsewhere are left out.
    """
    return list(each_edit(message, session, root=root))


def each_edit(message: Message, session: Session | None, *, root: str = "") -> Iterator[FileEdit]:
    """As `edits`, one by one: the texts of a large message's edits need not be in memory together."""
    return _numbered(_in_order(_made(message, session, root)))


def _made(message: Message, session: Session | None, root: str) -> Iterator[FileEdit]:
    steps = step_edits(message, session, root)
    attached = ""
    for number, part in enumerate(message.parts):
        if part.type == "tool":
            made = call(part, message, session)
            reader = _READERS.get(made.tool.lower(), _of_unknown_tool)
            by_call = reader(made, call_results.version_of(made, session))
            yield from [replace(edit, until=NEVER_ENDED) for edit in by_call] if made.status == "running" else by_call
        elif part.type == "text" and part.data.get("synthetic") is True:
            text = records.text(part.data.get("text"))
            attached = attachments.announced_path(text) or attached
            yield from attachments.announced_read(part, message, session, text, attached)
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
    """Each edit with its place among those of its part, so that they keep their order wherever they are sorted."""
    counts: Counter[str] = Counter()
    for edit in edits:
        number = counts[edit.part_id]
        counts[edit.part_id] += 1
        yield edit if edit.number == number else replace(edit, number=number)


def _write(made: Call, version: str) -> list[FileEdit]:
    path, content = made.path(), made.input.get("content")
    if path is None:
        return []
    if not isinstance(content, str):
        return unclear(made, version, [path], "a write without content")
    existed = made.metadata.get("exists")
    existed = existed if isinstance(existed, bool) else None
    return [file_edit(made, version, path, Operation.WRITE, content=content, existed=existed)]


def _edit(made: Call, version: str) -> list[FileEdit]:
    path = made.path() or next((file["path"] for file in files(made)), None)
    if path is None:
        return []
    replacements = _replacement(made, version, path, made.input, made.metadata.get("filediff"))
    return [
        replace(edit, hunks=unified_diffs.hunks_of_edit(made, path))
        if edit.operation is Operation.EDIT and edit.after is None
        else edit
        for edit in replacements
    ]


def _edit_or_refusal(made: Call, version: str) -> list[FileEdit]:
    """An edit, or that its old text was not in the file, which tells of the file too."""
    if not call_results.is_not_found(made):
        return settled(_edit)(made, version)
    path, old, new = made.path(), made.input.get("oldString"), made.input.get("newString")
    if path is None or not isinstance(old, str) or not isinstance(new, str) or not old or old == new:
        return []
    replace_all = made.input.get("replaceAll") is True
    return [file_edit(made, version, path, Operation.REFUSED, old=old, new=new, replace_all=replace_all)]


def _multiedit_or_part(made: Call, version: str) -> list[FileEdit]:
    """Its edits are applied one after the other: one that failed may have left some of them."""
    if made.status != "error" or made.is_aborted or call_results.is_before_work(made):
        return settled(_multiedit)(made, version)
    items = [records.table(item) for item in listed(made.input.get("edits"))]
    names = [made.path(), *(absolute(first_text(item, PATH_KEYS), made.base) for item in items)]
    return unclear(made, version, dict.fromkeys(names), "a multiedit failed; its first edits may have been applied")


def _multiedit(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    results = listed(made.metadata.get("results"))
    edits: list[FileEdit] = []
    for number, item in enumerate(listed(made.input.get("edits"))):
        fields = records.table(item)
        target = absolute(first_text(fields, PATH_KEYS), made.base) or path
        result = records.table(results[number]) if number < len(results) else {}
        if target is not None:
            edits += _replacement(made, version, target, fields, result.get("filediff"))
    return edits


def _replacement(made: Call, version: str, path: str, fields: Json, diff: object) -> list[FileEdit]:
    old, new = fields.get("oldString"), fields.get("newString")
    texts = recorded(diff)
    before, after = (texts.before, texts.after) if texts is not None else (None, None)
    old, new = old if isinstance(old, str) else None, new if isinstance(new, str) else None
    if (old is None or new is None) and texts is None:
        return unclear(made, version, [path], f"{made.tool} without old and new text")
    replace_all = fields.get("replaceAll") is True
    return [
        file_edit(
            made, version, path, Operation.EDIT, old=old, new=new, replace_all=replace_all, before=before, after=after
        )
    ]


def _read(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    if path is not None and call_results.found_no_file(made, version, path):
        return [file_edit(made, version, path, Operation.STATE, note="a read found no file there")]
    if made.status != "completed" or path is None:
        return []
    lines = call_results.read_lines(records.text(made.state.get("output")), made.metadata, version)
    if lines is None:
        return [*attachments.state_by_read(made, version), *call_results.read_as_picture(made, version, path)]
    return [call_results.observation(made, version, path, lines)]


def _of_unknown_tool(made: Call, version: str) -> list[FileEdit]:
    """What a call of a tool that is not OpenCode's own names, as UNCLEAR, where it looks as if it writes."""
    tool = made.tool.lower()
    if tool in _HARMLESS.split() or made.status == "pending" or (made.status == "error" and not made.is_aborted):
        return []
    note = f"changed by {made.tool}, which is not known here"
    if _RUNNING_NAME.search(tool):
        return unclear(made, version, [absolute(made.base, "")], note)
    looks_mutating = _MUTATING_NAME.search(tool) is not None
    if not looks_mutating and made.input.keys().isdisjoint(_CONTENT_KEYS.split()):
        return []
    names = [made.path(), *patched_paths(made)]
    if looks_mutating:
        names += [absolute(records.text(made.input.get(key)), made.base) for key in _MORE_PATHS]
        names += [absolute(name, made.base) for name in _named_in_lists(made)]
    names = [name for name in names if name is not None and "\n" not in name]  # text, far more likely than a file
    if looks_mutating and not names:
        names = [absolute(made.base, "")]
    return unclear(made, version, dict.fromkeys(names), note)


def _named_in_lists(made: Call) -> list[str]:
    """The names in lists of files that such tools take."""
    names: list[str] = []
    for key in ("paths", "files", "filePaths", "file_paths"):
        value = made.input.get(key)
        items = value if isinstance(value, list) else []
        names += [item if isinstance(item, str) else first_text(records.table(item), PATH_KEYS) for item in items]
    return names


def patched_paths(made: Call, version: str = "") -> list[str]:
    """Every path that a patch names, in its text or in its result."""
    names = [absolute(file.path, made.base) for file in patch_text.parse(_text_of(made), version)]
    names += [file["path"] for file in files(made)]
    return [name for name in names if name is not None]


def patch(made: Call, version: str) -> list[FileEdit]:
    """The edits of a completed patch, in its order, then those of files that only its result names."""
    entries = {file["path"]: file for file in files(made)}
    edits: list[FileEdit] = []
    for file in patch_text.parse(_text_of(made), version):
        path = absolute(file.path, made.base)
        if path is not None:
            edits += _patched(made, version, path, file, entries.pop(path, {}))
    edits += [edit for path, entry in entries.items() for edit in _recorded_only(made, version, path, entry)]
    counts: dict[str, int] = {}
    for edit in edits:
        counts[edit.path] = counts.get(edit.path, 0) + 1
    # A patch that names a file twice computes both results from the same text: which one stands is not known.
    return [
        file_edit(made, version, edit.path, Operation.UNCLEAR, note="named twice in one patch")
        if counts[edit.path] > 1
        else edit
        for edit in edits
    ]


def _text_of(made: Call) -> str:
    return first_text(made.input, ("patchText", "patch", "input"))


def _patched(made: Call, version: str, path: str, file: patch_text.FilePatch, entry: Json) -> list[FileEdit]:
    if file.kind == "delete":
        return [file_edit(made, version, path, Operation.DELETE)]
    if file.kind == "add":
        recorded_after = entry.get("after")
        content = recorded_after if isinstance(recorded_after, str) else file.contents
        return [file_edit(made, version, path, Operation.WRITE, content=content)]
    texts = recorded(entry)
    if not file.is_complete and texts is None:
        return unclear(made, version, [path], "a patch with lines that not every version reads alike")
    target = absolute(file.move_to, made.base) if file.move_to else None
    before, after = (texts.before, texts.after) if texts is not None else (None, None)
    hunks = tuple((c, tuple(map(valid_text, o)), tuple(map(valid_text, n)), e) for c, o, n, e in file.hunks)
    if target is None or target == path:
        return [file_edit(made, version, path, Operation.PATCH, hunks=hunks, before=before, after=after)]
    return [
        file_edit(made, version, path, Operation.MOVE, other=target),
        file_edit(made, version, target, Operation.PATCH, hunks=hunks, other=path, before=before, after=after),
    ]


def _recorded_only(made: Call, version: str, path: str, entry: Json) -> list[FileEdit]:
    """A file that only the result names (OpenCode 2's `metadata.files`, or a patch whose text cannot be parsed)."""
    texts = recorded(entry) or _texts_of_full_diff(entry)
    if texts is not None and not entry.get("movePath"):
        return [file_edit(made, version, path, Operation.PATCH, before=texts.before, after=texts.after)]
    if entry.get("type") == "delete" or entry.get("status") == "deleted":
        return [file_edit(made, version, path, Operation.DELETE)]
    moved = absolute(first_text(entry, ("movePath",)), made.base)
    return unclear(made, version, [path, moved], "a patch whose text is not recorded")


def _texts_of_full_diff(entry: Json) -> Texts | None:
    """Before and after of OpenCode 2's {file, patch, status}, where the patch shows all of the file.

    1.18's own entries name the file `filePath` and have lost indentation and line ends (opencode-formats.md, Records).
    """
    if "filePath" in entry or entry.get("status") != "modified":
        return None
    sides = full_diff(records.text(entry.get("patch")))
    if sides is None or sides.before is None or sides.after is None:
        return None
    return recorded({"before": sides.before, "after": sides.after})


_READERS: dict[str, Callable[[Call, str], list[FileEdit]]] = {
    "write": settled(_write),
    "edit": _edit_or_refusal,
    "multiedit": _multiedit_or_part,
    "apply_patch": settled(patch, patched_paths),
    "patch": settled(patch, patched_paths),
    "read": _read,
    "bash": bash.edits,
    "shell": bash.edits,
    "batch": lambda _made, _version: [],
}
