"""Filters as Chroma can evaluate them, and as its metadata answers them."""

from __future__ import annotations

import posixpath
from typing import Any

from daemon.index import Filters

_MOST_SESSIONS = 200  # that Chroma is asked for by name


def where(filters: Filters) -> dict[str, Any] | None:
    """As much of the filters as Chroma can evaluate; a directory's children it cannot."""
    exact = {"session_id": filters.session_id, "project_id": filters.project_id, "role": filters.role}
    clauses: list[dict[str, Any]] = [{key: value} for key, value in exact.items() if value]
    if filters.sessions is not None and len(filters.sessions) <= _MOST_SESSIONS:
        clauses.append({"session_id": {"$in": sorted(filters.sessions)}})
    if filters.besides:
        clauses.append({"session_id": {"$nin": sorted(filters.besides)}})
    if filters.deleted:  # rows of an older version do not say that they are not
        clauses.append({"deleted": True})
    if filters.tool:
        clauses.append({"tools": {"$contains": filters.tool}})
    if filters.kinds:
        kinds = [{"kinds": {"$contains": kind}} for kind in filters.kinds]
        clauses.append({"$or": kinds} if len(kinds) > 1 else kinds[0])
    if filters.after is not None:
        clauses.append({"created_at": {"$gte": filters.after}})
    if filters.before is not None:
        clauses.append({"created_at": {"$lt": filters.before}})
    if len(clauses) > 1:
        return {"$and": clauses}
    return clauses[0] if clauses else None


def passes(data: Any, filters: Filters) -> bool:
    """Whether a record with this metadata passes."""
    created = int(data.get("created_at", 0))
    exact = (
        ("session_id", filters.session_id),
        ("project_id", filters.project_id),
        ("role", filters.role),
    )
    return (
        all(not value or data.get(key) == value for key, value in exact)
        and (not filters.kinds or not set(filters.kinds).isdisjoint(data.get("kinds") or ()))
        and (not filters.tool or filters.tool in (data.get("tools") or ()))
        and (filters.after is None or created >= filters.after)
        and (filters.before is None or created < filters.before)
        and (filters.sessions is None or data.get("session_id") in filters.sessions)
        and data.get("session_id") not in filters.besides
        and (filters.deleted is None or bool(data.get("deleted")) == filters.deleted)
        and _is_within(str(data.get("directory", "")), filters.directory)
        and (not filters.path or any(_is_about(str(path), filters) for path in data.get("paths") or ()))
    )


def _is_about(path: str, filters: Filters) -> bool:
    return any(_is_within(path, name) for name in (filters.path, *filters.former))


def _is_within(directory: str, top: str) -> bool:
    if not top:
        return True
    if not directory:
        return False
    directory, top = posixpath.normpath(directory), posixpath.normpath(top)
    return directory == top or directory.startswith(top.rstrip("/") + "/")
