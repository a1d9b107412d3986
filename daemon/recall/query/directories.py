"""Directories and the projects that belong to them: what "here", "this project" and "below" mean for a search."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from daemon.errors import BadRequest
from daemon.recall.catalog import Row
from daemon.redact import redact

NO_PROJECT = ("", "global")
"""What OpenCode writes for the project of a session outside any repository: such sessions have nothing in common."""

_MOST_PROJECTS = 5
Fits = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Place:
    """A directory and what belongs to it: `directory` is the one asked for, or its nearest parent with sessions.

    `projects` are those of the sessions there, or, where none is there, beneath it.
    """

    directory: str = ""
    projects: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The projects that are some: sessions outside repositories have none in common."""
        return tuple(project for project in self.projects if project not in NO_PROJECT)

    def relevance(self, row: Row | None) -> str:
        """How near a session is: exact (the directory or below), project, global; unknown where nobody can tell."""
        if row is None or not row.directory or not self.directory:
            return "unknown"
        if is_within(row.directory, self.directory):
            return "exact"
        return "project" if self.is_project(row) else "global"

    def is_project(self, row: Row) -> bool:
        """Whether a session is of the same project, or one of them; outside repositories: of the same directory."""
        if row.project_id in self.named:
            return True
        is_loose = row.project_id in NO_PROJECT and any(project in NO_PROJECT for project in self.projects)
        if is_loose or not self.named:
            if self.directory == "/":  # everything is beneath it: that makes it nobody's project
                return normal(row.directory) == "/"
            return is_within(row.directory, self.directory)
        return False


def fits_current(scope: str, rows: Mapping[str, Row], cwd: str, warnings: list[str]) -> Fits:
    """The project of the directory `cwd`, or the session at hand there; what was assumed goes into `warnings`.

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
    """The session updated last in `directory`, else in its nearest parent that has one; sub-agents' only if alone.

    The root is no parent: what was done there has nothing to do with everything beneath it.
    """
    above = {name: depth for depth, name in enumerate(_above(directory)) if name != "/" or not depth}
    above_rows = [row for row in rows.values() if normal(row.directory) in above]
    return min(
        above_rows,
        key=lambda row: (above[normal(row.directory)], bool(row.parent_id), -row.updated, row.id),
        default=None,
    )


def place_of(rows: Mapping[str, Row], directory: str, *, climbs: bool) -> Place:
    """`directory` with the projects of its sessions; else with those beneath it, else with its nearest parent's.

    With `climbs` it is where a caller stands: then a parent that has sessions stands for a directory that has none.
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
    """That a directory is of several projects, and that they are all taken; nothing where it is of one."""
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
    """Whether `directory` is `top`, which is normal, or beneath it."""
    inner = normal(directory)
    return inner == top or inner.startswith(top.rstrip("/") + "/")


def _above(directory: str) -> list[str]:
    folders = [directory]
    while folders[-1] not in {"/", ""}:
        folders.append(posixpath.dirname(folders[-1]))
    return folders
