"""Which sessions touched a path, or anything beneath it: what they changed, what they read, when.

Read from the recorded edits of the archive, also under the path's former names. Sessions that only mention the path
come from the lexical index, on request. All output is redacted; times are epoch ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from daemon.archive import Archive
from daemon.archive.paths import CHANGES, MAYBE, READS, Name, names, touches
from daemon.errors import BadRequest
from daemon.index import Filters, LexicalIndex
from daemon.model import Json
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import RecallFiles
from daemon.recall.query.directories import absolute
from daemon.redact import redact

MOST_FILES = 20
"""Paths listed for a session, those it touched last."""

_PAGE = 256
_FOREVER = 1 << 53


@dataclass(slots=True)
class _Touch:
    """What one session did to the path and beneath it."""

    first: int
    last: int
    changes: int = 0
    reads: int = 0
    unclear: int = 0
    files: dict[str, int] = field(default_factory=dict)
    mention_only: bool = False


def sessions_by_path(archive: Archive, lexical: LexicalIndex, catalog: Catalog, request: RecallFiles) -> Json:
    """``{ok, path, sessions, total, warnings}``: the sessions, those that touched it last first.

    A session is ``{sessionID, title, directory, projectID, first, last, changes, reads, unclear, files, moreFiles?,
    deleted, archived, mentionOnly}``: `first` and `last` are when it touched (or mentioned) the path, `unclear` counts
    calls that may have changed it, or were refused, `files` are at most MOST_FILES paths, by their names of today.
    `total` counts all sessions that touched it, and of those that only mention it as many as may be shown; a warning
    says where there are more.

    Raises:
        BadRequest: the path is not absolute, or none.
        IndexBroken: `mentions` cannot be answered, the index must be rebuilt.
    """
    path = absolute(request.path, "", "path")
    if not path:
        raise BadRequest("`path` is blank: write an absolute path, as /home/you/project")
    if "\0" in path:
        raise BadRequest(f"`path` {redact(path)!r}: no path holds a NUL character; leave it out")
    path_names = names(archive.files, path)
    by_session = _from_edits(archive, path_names)
    warnings: list[str] = []
    rows = catalog.rows()
    if request.mentions and _add_mentions(archive, lexical, rows, path_names, by_session, most=request.limit):
        warnings.append(f"more sessions mention {redact(path)} than are counted here; raise `limit` to see them")
    newest = sorted(by_session, key=lambda session_id: (-by_session[session_id].last, session_id))
    for session_id in newest[: request.limit]:
        archive.secrets.learn(session_id)  # the rows are in memory, so their secrets were not loaded with a record
    return {
        "ok": True,
        "path": redact(path),
        "sessions": [
            _as_json(session_id, rows.get(session_id), by_session[session_id]) for session_id in newest[: request.limit]
        ],
        "total": len(by_session),
        "warnings": warnings,
    }


def _from_edits(archive: Archive, path_names: Sequence[Name]) -> dict[str, _Touch]:
    """Sessions by their recorded edits. A move within the path has two paths and counts once."""
    by_session: dict[str, _Touch] = {}
    counted: set[tuple[str, str, int]] = set()
    for edit, path in touches(archive.files, path_names):
        touch = by_session.setdefault(edit.session_id, _Touch(edit.time, edit.time))
        touch.files[path] = max(edit.time, touch.files.get(path, 0))
        event = (edit.message_id, edit.part_id, edit.number)
        if event in counted:
            continue
        counted.add(event)
        touch.first, touch.last = min(touch.first, edit.time), max(touch.last, edit.time)
        touch.changes += edit.operation in CHANGES
        touch.reads += edit.operation in READS
        touch.unclear += edit.operation in MAYBE
    return by_session


def _add_mentions(
    archive: Archive,
    lexical: LexicalIndex,
    rows: Mapping[str, Row],
    path_names: Sequence[Name],
    by_session: dict[str, _Touch],
    *,
    most: int,
) -> bool:
    """Add up to `most` sessions, the latest first, that only mention the path; return whether there are more."""
    added = 0
    for name in dict.fromkeys(path_name.old for path_name in path_names):
        remaining = set(rows) - set(by_session)
        while remaining:
            matches = lexical.by_time(_FOREVER, Filters(path=name, sessions=frozenset(remaining)), _PAGE, before=True)
            latest: dict[str, int] = {}
            for match in matches:
                state = archive.state(match.message_id)
                if state is not None and state["session"] in remaining:
                    latest.setdefault(state["session"], state["created"])
            for session_id, time in latest.items():
                if added == most:
                    return True
                added += 1
                by_session[session_id] = _Touch(
                    _first(archive, lexical, name, session_id, time), time, mention_only=True
                )
            remaining -= set(latest)
            if len(matches) < _PAGE or not latest:
                break
    return False


def _first(archive: Archive, lexical: LexicalIndex, name: str, session_id: str, default: int) -> int:
    """When a session first mentioned the path."""
    oldest = lexical.by_time(0, Filters(path=name, session_id=session_id), 1, before=False)
    state = archive.state(oldest[0].message_id) if oldest else None
    return default if state is None else int(state["created"])


def _as_json(session_id: str, row: Row | None, touch: _Touch) -> Json:
    files = sorted(touch.files, key=lambda path: (-touch.files[path], path))
    return {
        "sessionID": session_id,
        "title": redact(row.title) if row else "",
        "directory": redact(row.directory) if row else "",
        "projectID": row.project_id if row else "",
        "first": touch.first,
        "last": touch.last,
        "changes": touch.changes,
        "reads": touch.reads,
        "unclear": touch.unclear,
        "files": [redact(path) for path in files[:MOST_FILES]],
        **({"moreFiles": len(files) - MOST_FILES} if len(files) > MOST_FILES else {}),
        "deleted": row is not None and row.deleted is not None,
        "archived": row is not None and row.archived is not None,
        "mentionOnly": touch.mention_only,
    }
