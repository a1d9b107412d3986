"""Tools that are not OpenCode's own, such as MCP servers': what they write is not known, only that they may."""

from __future__ import annotations

import re

from daemon import records
from daemon.model import FileEdit
from daemon.transcript.evidence.patch_calls import patched_paths
from daemon.transcript.tool_calls import PATH_KEYS, Call, absolute, first_text, unclear

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
"""What does anything, or changes more files than it names."""
_MORE_PATHS = (
    "source", "destination", "src", "dst", "from", "to", "old_path", "new_path", "oldPath", "newPath", "relative_path",
    "relativePath", "target",
)  # fmt: skip


def foreign(made: Call, version: str) -> list[FileEdit]:
    """What the call names, as UNCLEAR, where it looks as if it writes."""
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
        names += [absolute(name, made.base) for name in _listed(made)]
    names = [name for name in names if name is not None and "\n" not in name]  # text, far more likely than a file
    if looks_mutating and not names:
        names = [absolute(made.base, "")]
    return unclear(made, version, dict.fromkeys(names), note)


def _listed(made: Call) -> list[str]:
    """The names in lists of files that such tools take."""
    found: list[str] = []
    for key in ("paths", "files", "filePaths", "file_paths"):
        value = made.input.get(key)
        items = value if isinstance(value, list) else []
        found += [item if isinstance(item, str) else first_text(records.table(item), PATH_KEYS) for item in items]
    return found
