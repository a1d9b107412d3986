"""Directories and their projects: which sessions belong to "this project", "this session" or "below"."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from daemon.errors import BadRequest
from daemon.recall.catalog import Row
from daemon.redact import redact

NO_PROJECT = ("", "global")
"""Project ids of sessions outside any repository; such sessions have no project in common."""

_MOST_PROJECTS = 5
Fits = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with its projects: `directory` is the requested one, or its nearest parent with sessions.

    `projects` are those of its sessions, or if it has none, of the sessions beneath it.
    """

    directory: str = ""
    projects: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The projects of repositories."""
        return tuple(project for project in self.projects if project not in NO_PROJECT)

    def relevance(self, row: Row | None) -> str:
        """How close a session is: exact (the directory or below), project, global, or unknown."""
        if row is None or not row.directory or not self.directory:
            return "unknown"
        if is_within(row.directory, self.directory):
            return "exact"
        return "project" if self.is_project(row) else "global"

    def is_project(self, row: Row) -> bool:
        """Whether a session is of one of the projects; outside repositories, whether it is within the directory."""
        if row.project_id in self.named:
            return True
        is_loose = row.project_id in NO_PROJECT and any(project in NO_PROJECT for project in self.projects)
        if is_loose or not self.named:
            if self.directory == "/":  # everything is beneath the root, but that makes no project
                return normal(row.directory) == "/"
            return is_within(row.directory, self.directory)
        return False


def fits_current(scope: str, rows: Mapping[str, Row], cwd: str, warnings: list[str]) -> Fits:
    """A filter for the current project or session of the directory `cwd`; assumptions go into `warnings`.

    Raises:
        BadRequest: `cwd` is not known.
    """
    if not cwd.startswith("/"):
        raise BadRequest(
            f"`scope={scope}` needs to know where you are, and the directory of this call is not known; give "
            "`directory` or `sessionID` instead, or leave `scope` out to search everything"
        )
    latest = latest_at(rows, normal(cwd))
    if latest is None:
        warnings.append(f"no recorded session is of {redact(cwd)} or a directory above it: `scope={scope}` is empty")
        return lambda _row: False
    if scope == "session":
        title = redact(latest.title)
        warnings.append(
            f"`scope=session`: taken to be {latest.id} ({title!r}), the latest of {redact(latest.directory)}"
        )
        return lambda row: row.id == latest.id
    place = Place(normal(latest.directory), (latest.project_id,))
    named = "its directory" if latest.project_id in NO_PROJECT else f"project {latest.project_id}"
    warnings.append(f"`scope=project`: taken to be {named}, of the latest session in {redact(latest.directory)}")
    return place.is_project


def latest_at(rows: Mapping[str, Row], directory: str) -> Row | None:
    """The session updated last in `directory`, else in its nearest parent that has one.

    Sessions of sub-agents count only if there are no others. The root does not count as a parent, because its sessions
    are not about everything beneath it.
    """
    above = {name: depth for depth, name in enumerate(_above(directory)) if name != "/" or not depth}
    above_rows = [row for row in rows.values() if normal(row.directory) in above]
    return min(
        above_rows,
        key=lambda row: (above[normal(row.directory)], bool(row.parent_id), -row.updated, row.id),
        default=None,
    )


def place_of(rows: Mapping[str, Row], directory: str, *, climbs: bool) -> Place:
    """`directory` with the projects of its sessions, else of those beneath it, else of its nearest parent.

    With `climbs`, the caller's working directory: if it has no sessions, its nearest parent with sessions replaces it.
    """
    there = [row for row in rows.values() if normal(row.directory) == directory]
    there = there or [row for row in rows.values() if is_within(row.directory, directory)]
    if there:
        there.sort(key=lambda row: (-row.updated, row.id))
        return Place(directory, tuple(dict.fromkeys(row.project_id for row in there)))
    latest = latest_at(rows, directory)
    if latest is None:
        return Place(directory)
    return Place(normal(latest.directory) if climbs else directory, (latest.project_id,))


def several(place: Place) -> list[str]:
    """A warning if a directory has sessions of several projects, which all count."""
    if len(place.named) < 2:
        return []
    names = ", ".join(place.named[:_MOST_PROJECTS])
    more = f" and {len(place.named) - _MOST_PROJECTS} more" if len(place.named) > _MOST_PROJECTS else ""
    return [f"{redact(place.directory)} has sessions of {len(place.named)} projects, all are taken: {names}{more}"]


def absolute(path: str, cwd: str, name: str) -> str:
    """`path` without ``.`` and ``..``, relative to `cwd`; empty for a blank one.

    Raises:
        BadRequest: it is relative, and `cwd` is not known.
    """
    stripped = path.strip()
    if not stripped:
        return ""
    if stripped.startswith("/"):
        return normal(stripped)
    if stripped.startswith("~") or not cwd.startswith("/"):
        raise BadRequest(
            f"`{name}` {redact(stripped)!r}: not an absolute path; write it from the root, as /home/you/work"
        )
    return normal(posixpath.join(cwd, stripped))


@lru_cache(maxsize=16_384)
def normal(directory: str) -> str:
    return "/" + posixpath.normpath(directory).lstrip("/") if directory.startswith("/") else directory


@lru_cache(maxsize=16_384)
def is_within(directory: str, top: str) -> bool:
    """Whether `directory` is `top`, which is normalised, or beneath it."""
    inner = normal(directory)
    return inner == top or inner.startswith(top.rstrip("/") + "/")


def _above(directory: str) -> list[str]:
    folders = [directory]
    while folders[-1] not in {"/", ""}:
        folders.append(posixpath.dirname(folders[-1]))
    return folders
