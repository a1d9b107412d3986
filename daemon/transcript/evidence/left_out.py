"""The file edits of a record from which something was left out: private blocks, what the settings exclude, or
what the user has forgotten of a path.

What remains of such a record is not what was written, so it proves no content. Every file that it names, or may have
changed without naming it, is UNCLEAR.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from daemon import records
from daemon.model import FileEdit, Json, Operation
from daemon.private import FLAG, MARK
from daemon.transcript.tool_calls import Call, absolute, unclear

NOTE = "part of its record was left out: a private block, excluded by a setting, or forgotten"
_ONE_FILE = frozenset({"write", "edit", "multiedit", "read"})
_TEXTS = ("before", "after", "patch")


def is_in(data: Json) -> bool:
    """Whether something was left out of this record."""
    return bool(data.get(FLAG))


def is_in_diff(diff: Json) -> bool:
    """Whether something was left out of a diff that is a record of its own, or stands in one."""
    return is_in(diff) or any(MARK in records.text(diff.get(name)) for name in _TEXTS)


def of_call(tool_call: Call, version: str, named: Iterable[str | None]) -> list[FileEdit]:
    """The edits of a call from whose record something was left out; `named` are the paths that it names."""
    tool = tool_call.tool.lower()
    if tool_call.status == "pending" or (
        tool_call.status == "error" and not tool_call.is_aborted and tool != "multiedit"
    ):
        return []
    reasons = records.table(tool_call.part.data.get(FLAG))
    is_excluded = not reasons.get("private")
    if reasons.get("alone"):
        return []  # it changed nothing but the path that is forgotten
    if tool == "read" and is_excluded:
        return []  # a read changes nothing, and what it showed is not known
    places = dict.fromkeys(named)
    if tool not in _ONE_FILE or not any(places):
        places[absolute(tool_call.base, "")] = None
    return unclear(tool_call, version, places, NOTE)


def without_content(edits: Iterable[FileEdit]) -> list[FileEdit]:
    """What remains of edits whose texts may lack something: that the path was there, or changed."""
    return [
        replace(edit, operation=Operation.UNCLEAR, content=None, blob="", note=NOTE)
        for edit in edits
        if edit.content is not None or edit.blob
    ]


def is_output_only(data: Json) -> bool:
    """Whether a call's input is whole, so that only its output lacks something."""
    reasons = records.table(data.get(FLAG))
    state = records.table(data.get("state"))
    return reasons.keys() == {"private"} and MARK not in records.dumps(state.get("input")).decode()
