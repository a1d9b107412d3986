"""Project records of any storage in one shape (formats sections 2 and 9): which folders belong together.

A project's `worktree` is the last folder used in OpenCode 1.1 and the first in 1.18, so no path is resolved by it; with
`sandboxes` and `directories` it tells which folders are clones or former names of one another.
"""

from __future__ import annotations

from typing import Any

from daemon import records
from daemon.errors import BadRecord
from daemon.model import Json


def project(data: Json, time: Json, raw: bytes, directories: list[str] | None = None) -> Json:
    """A project out of its record; `sandboxes` may be an array or, in a database, the text of one."""
    return {
        "id": records.text(data.get("id")),
        "worktree": records.text(data.get("worktree")),
        "vcs": records.text(data.get("vcs")),
        "name": records.text(data.get("name")),
        "sandboxes": _texts(data.get("sandboxes")),
        "directories": sorted(directories or ()),
        "time": time,
        "raw": raw.decode("utf-8", "replace"),
    }


def unreadable_project(project_id: str, reason: str) -> Json:
    """A project of which only the id is known."""
    return project({"id": project_id}, {}, b"") | {"problem": reason}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = records.loads(value.encode())
        except BadRecord:
            return []  # the text as it stands is still in `raw`
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
