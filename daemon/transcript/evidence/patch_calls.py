"""apply_patch and patch calls: each file of the patch text, with what the result records of it."""

from __future__ import annotations

from daemon import records
from daemon.model import FileEdit, Json, Operation
from daemon.transcript import patch_text
from daemon.transcript.evidence.call_results import Texts, files, recorded
from daemon.transcript.evidence.unified_diffs import full_diff
from daemon.transcript.tool_calls import Call, absolute, file_edit, first_text, unclear, valid_text


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
