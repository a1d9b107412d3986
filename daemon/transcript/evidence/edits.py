"""What a message's records tell of files: each path absolute, in the order things took effect.

Of tool calls only completed ones count; one that was cut off, or whose effect its record does not tell, is UNCLEAR.
Beside them stand steps (snapshot trees), recorded diffs and attachments, each read in a module of its own. Shapes of
1.0 to 1.18 and of OpenCode 2 meet in one FileEdit (docs/reliability.md, S11). Nothing is computed here: whether a
recorded change follows from what was there before is for files to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from daemon import records
from daemon.model import FileEdit, Json, Message, Operation, Session
from daemon.transcript.evidence import attachments, call_results, reads, refusals, shown_diffs
from daemon.transcript.evidence.call_results import files, listed, recorded, settled
from daemon.transcript.evidence.foreign import foreign
from daemon.transcript.evidence.patch_calls import patch, patched_paths
from daemon.transcript.evidence.recorded_diffs import summary_edits
from daemon.transcript.evidence.steps import step_edits
from daemon.transcript.shell import calls as bash
from daemon.transcript.tool_calls import PATH_KEYS, Call, absolute, call, file_edit, first_text, unclear

INEXACT_READ = call_results.INEXACT_READ

NEVER_ENDED = 0
"""The `until` of what a call without an end may have done: whoever replays it knows what came next."""

to_json = records.edit_to_json
from_json = records.edit_from_json


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
            told = _READERS.get(made.tool.lower(), foreign)(made, call_results.version_of(made, session))
            yield from [replace(edit, until=NEVER_ENDED) for edit in told] if made.status == "running" else told
        elif part.type == "text" and part.data.get("synthetic") is True:
            text = records.text(part.data.get("text"))
            attached = attachments.announced(text) or attached
            yield from attachments.shown(part, message, session, text, attached)
        elif part.type == "file":
            yield from attachments.attached(message, session, number)
        yield from steps.get(number, [])
    if message.role == "user":
        yield from summary_edits(message, session, root)


def started(edit: FileEdit) -> int:
    """When the call that made `edit` began, epoch ms: its effect falls between this and `time`."""
    return edit.time if edit.started is None else edit.started


def _in_order(found: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """The edit tool locks its file: calls of one message take effect in the order they were made.

    Their ends may say otherwise, since an end also waits for diagnostics.
    """
    latest: dict[str, int] = {}
    for edit in found:
        time = edit.time
        if edit.tool in ("edit", "multiedit"):
            time = latest[edit.path] = max(time, latest.get(edit.path, 0))
        if time != edit.time:
            edit = replace(edit, time=time)  # noqa: PLW2901 - the same edit, a later end
        yield edit


def _numbered(found: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """Each edit with its place among those of its part, so that they keep their order wherever they are sorted."""
    counts: Counter[str] = Counter()
    for edit in found:
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
    found = _replacement(made, version, path, made.input, made.metadata.get("filediff"))
    return [
        replace(one, hunks=shown_diffs.of_edit(made, path))
        if one.operation is Operation.EDIT and one.after is None
        else one
        for one in found
    ]


def _edit_or_refusal(made: Call, version: str) -> list[FileEdit]:
    """An edit, or that its old text was not in the file, which tells of the file too."""
    if not refusals.is_not_found(made):
        return settled(_edit)(made, version)
    path, old, new = made.path(), made.input.get("oldString"), made.input.get("newString")
    if path is None or not isinstance(old, str) or not isinstance(new, str) or not old or old == new:
        return []
    replace_all = made.input.get("replaceAll") is True
    return [file_edit(made, version, path, Operation.REFUSED, old=old, new=new, replace_all=replace_all)]


def _multiedit_or_part(made: Call, version: str) -> list[FileEdit]:
    """Its edits are applied one after the other: one that failed may have left some of them."""
    if made.status != "error" or made.is_aborted or refusals.is_before_work(made):
        return settled(_multiedit)(made, version)
    items = [records.table(item) for item in listed(made.input.get("edits"))]
    names = [made.path(), *(absolute(first_text(item, PATH_KEYS), made.base) for item in items)]
    return unclear(made, version, dict.fromkeys(names), "a multiedit failed; its first edits may have been applied")


def _multiedit(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    results = listed(made.metadata.get("results"))
    found: list[FileEdit] = []
    for number, item in enumerate(listed(made.input.get("edits"))):
        fields = records.table(item)
        target = absolute(first_text(fields, PATH_KEYS), made.base) or path
        result = records.table(results[number]) if number < len(results) else {}
        if target is not None:
            found += _replacement(made, version, target, fields, result.get("filediff"))
    return found


def _replacement(made: Call, version: str, path: str, fields: Json, diff: Any) -> list[FileEdit]:
    old, new = fields.get("oldString"), fields.get("newString")
    told = recorded(diff)
    if not (isinstance(old, str) and isinstance(new, str)) and not told:
        return unclear(made, version, [path], f"{made.tool} without old and new text")
    replace_all = fields.get("replaceAll") is True
    return [file_edit(made, version, path, Operation.EDIT, old=old, new=new, replace_all=replace_all, **told)]


def _read(made: Call, version: str) -> list[FileEdit]:
    path = made.path()
    if path is not None and refusals.found_no_file(made, version, path):
        return [file_edit(made, version, path, Operation.STATE, note="a read found no file there")]
    if made.status != "completed" or path is None:
        return []
    seen = reads.seen(records.text(made.state.get("output")), made.metadata, version)
    if seen is None:
        return [*attachments.answered(made, version), *call_results.glance(made, version, path)]
    return [call_results.observation(made, version, path, seen)]


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
