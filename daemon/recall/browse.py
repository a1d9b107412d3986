"""Walking through the records: one message, the messages around it, a session page by page, the list of sessions.

Nothing is ranked. `warnings` name everything that was assumed, cut or is not indexed yet. All output is redacted.
Sessions, messages and parts that OpenCode has deleted are shown and marked. Times are epoch ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daemon.archive import Archive
from daemon.display import counted
from daemon.errors import BadRequest
from daemon.hints import hint, not_searchable
from daemon.index import Filters, LexicalIndex
from daemon.model import Json, Kind, Message
from daemon.recall.answer.messages import around, cut_to_fit, item
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import Archived, RecallContext, RecallGet, RecallMessages, RecallSessions
from daemon.recall.query.directories import Fits, absolute, fits_current, is_within, latest_at, place_of, several
from daemon.redact import redact

_NO_LIMIT = 1_000_000
"""More parts than any session has."""
_UNBOUNDED = 1 << 62
_NO_TITLES = tuple(str(kind) for kind in Kind if kind is not Kind.TITLE)


def get(archive: Archive, request: RecallGet) -> Json:
    """``{ok, message, parts, context, warnings}``: one message in full (messages.item).

    `message` has ``orphan: true`` if its own record was lost and only its parts were found.

    Raises:
        BadRequest: the message is not in the archive.
    """
    message, warnings = _message(archive, request.messageID, request.sessionID)
    rendered = _item(archive, message, request.maxChars)
    return {"ok": True, **rendered, "context": _context(archive, message.session_id), "warnings": warnings}


def context(archive: Archive, request: RecallContext) -> Json:
    """``{ok, messages, context, hasMoreBefore, hasMoreAfter, warnings}``: a message and those around it.

    `messages` are items (messages.item), the requested one marked `center`. With format ``messages`` they are entries
    of Ollama's ``messages[]``: the nearest messages that fit into the budget, each whole. If the requested message
    alone does not fit, its texts are cut.

    Raises:
        BadRequest: the message is not in the archive.
    """
    message, warnings = _message(archive, request.messageID, request.sessionID)
    before = request.window if request.before is None else request.before
    after = request.window if request.after is None else request.after
    order = archive.message_ids(message.session_id)
    place = order.index(message.id) if message.id in order else 0
    ids = order[max(0, place - before) : place + after + 1]
    items: Sequence[Json]
    if request.format == "messages":
        in_window = len(ids)
        ids, items = around(archive, message.id, before, after, request.budgetTokens)
        warnings += _short_of(message.id, request.budgetTokens, in_window - len(ids), is_cut=not ids)
        if not ids:
            ids, items = [message.id], cut_to_fit(archive, message.id, _UNBOUNDED, request.budgetTokens)
    else:
        items = _items(archive, ids, request.maxChars, center=message.id)
    first = order.index(ids[0]) if ids else place
    return {
        "ok": True,
        "messages": items,
        "context": _context(archive, message.session_id),
        "hasMoreBefore": first > 0,
        "hasMoreAfter": first + max(1, len(ids)) < len(order),
        "warnings": warnings,
    }


def messages(archive: Archive, lexical: LexicalIndex, catalog: Catalog, request: RecallMessages, cwd: str) -> Json:
    """``{ok, messages, context, pagination: {offset, returned, total, hasMore}, warnings}``: a session's messages.

    Without a session we take the latest one of the directory `cwd`, and a warning says so. `query` is a literal,
    case-insensitive filter on every text of a message, but not on the session's title.

    Raises:
        BadRequest: the session is not in the archive, or none is given and `cwd` has none.
        IndexBroken: `query` cannot be answered, the index must be rebuilt.
    """
    session_id, warnings = _session(archive, catalog, request.sessionID.strip(), cwd)
    ids = archive.message_ids(session_id)
    role = "" if request.role == "all" else request.role
    if request.query.strip():
        filters = Filters(session_id=session_id, role=role, kinds=_NO_TITLES)
        held = {match.message_id for match in lexical.literal(request.query.strip(), filters, _NO_LIMIT)}
        ids = [message_id for message_id in ids if message_id in held]
        if waiting := archive.waiting("lexical"):
            warnings.append(f"not everything was searched for `query`: {not_searchable(waiting)}")
    elif role:
        ids = [message.id for message in archive.messages(session_id) if message.role == role]
    if request.reverse:
        ids.reverse()
    page = _items(archive, ids[request.offset : request.offset + request.limit], request.maxChars)
    if request.offset >= len(ids) > 0:
        warnings.append(f"`offset` {request.offset} is past the last of {counted(len(ids), 'message')}")
    return {
        "ok": True,
        "messages": page,
        "context": _context(archive, session_id),
        "pagination": {
            "offset": request.offset,
            "returned": len(page),
            "total": len(ids),
            "hasMore": request.offset + request.limit < len(ids),
        },
        "warnings": warnings,
    }


def sessions(archive: Archive, catalog: Catalog, request: RecallSessions, cwd: str) -> Json:
    """``{ok, sessions, returned, total, hasMore, scope, warnings}``: sessions that fit, the latest updated first.

    A session is ``{id, title, directory, projectID, parentID?, time: {created, updated}, archived, deleted,
    messages}``, `messages` their number. Scope ``project`` is the project of `directory`, or else of `cwd`.

    Raises:
        BadRequest: a directory that is not absolute, or scope ``project`` without any directory.
    """
    rows = catalog.rows()
    warnings: list[str] = []
    place = _place(rows, request, cwd, warnings)
    there = [row for row in rows.values() if place(row)]
    fitting = [row for row in there if _fits(row, request)]
    fitting.sort(key=lambda row: (-row.updated, -row.created, row.id))
    page = fitting[request.offset : request.offset + request.limit]
    warnings += _why_empty(rows, request, there=len(there), fitting=len(fitting))
    for row in page:
        archive.secrets.learn(row.id)  # the rows are in memory, so their secrets were not loaded with a record
    return {
        "ok": True,
        "sessions": [_listed(archive, row) for row in page],
        "returned": len(page),
        "total": len(fitting),
        "hasMore": request.offset + request.limit < len(fitting),
        "scope": request.scope,
        "warnings": warnings,
    }


def _place(rows: Mapping[str, Row], request: RecallSessions, cwd: str, warnings: list[str]) -> Fits:
    """A filter by place. Scope project with a directory means the project of that directory."""
    directory = absolute(request.directory, cwd, "directory")
    if not directory:
        return fits_current("project", rows, cwd, warnings) if request.scope == "project" else lambda _: True
    place = place_of(rows, directory, climbs=False)
    if "project" in {request.within, request.scope}:
        warnings += several(place)
    ways: dict[str, Fits] = {
        "project": place.is_project,
        "exact": lambda row: absolute(row.directory, "/", "directory") == directory,
        "below": lambda row: is_within(row.directory, directory),
    }
    is_there = ways[request.within]
    return (lambda row: is_there(row) and place.is_project(row)) if request.scope == "project" else is_there


def _why_empty(rows: Mapping[str, Row], request: RecallSessions, *, there: int, fitting: int) -> list[str]:
    """Warnings about a project, directory or offset that matches nothing, which a short list would not show."""
    project, directory = request.projectID.strip(), request.directory.strip()
    reasons = []
    if project and not any(row.project_id == project for row in rows.values()):
        reasons.append(f"project {redact(project)!r} is not in the archive; each session of the list names its own")
    if directory and not there:
        reasons.append(
            f"no recorded session is of {redact(directory)} (`within={request.within}`, `scope={request.scope}`)"
        )
    if request.offset >= fitting > 0:
        reasons.append(f"`offset` {request.offset} is past the last of {counted(fitting, 'session')}")
    return reasons


def _fits(row: Row, request: RecallSessions) -> bool:
    needle = request.search.strip().casefold()
    return (
        (not request.projectID.strip() or row.project_id == request.projectID.strip())
        and (request.children or not row.parent_id)
        and _is_chosen(request.archived, is_so=row.archived is not None)
        and _is_chosen(request.deleted, is_so=row.deleted is not None)
        and (not needle or (needle in row.title.casefold() and needle in redact(row.title).casefold()))
    )


def _is_chosen(choice: Archived, *, is_so: bool) -> bool:
    return choice == "include" or (choice == "only") is is_so


def _listed(archive: Archive, row: Row) -> Json:
    return {
        "id": row.id,
        "title": redact(row.title),
        "directory": redact(row.directory),
        "projectID": row.project_id,
        **({"parentID": row.parent_id} if row.parent_id else {}),
        "time": {"created": row.created, "updated": row.updated},
        "archived": row.archived is not None,
        "deleted": row.deleted is not None,
        "messages": len(archive.message_ids(row.id)),
    }


def _message(archive: Archive, message_id: str, session_id: str) -> tuple[Message, list[str]]:
    """The message, and a warning if it is in another session than the named one."""
    message = archive.message(message_id.strip())
    if message is None:
        raise BadRequest(
            f"message {message_id.strip()!r} is not in the archive; `recall()` and `recall_messages()` give ids"
        )
    named = session_id.strip()
    if named in ("", message.session_id):
        return message, []
    return message, [f"message {message.id} is not in session {named}, but in {message.session_id}"]


def _session(archive: Archive, catalog: Catalog, session_id: str, cwd: str) -> tuple[str, list[str]]:
    """The named session, or the latest one of `cwd` with a warning that says so."""
    if session_id:
        if archive.session(session_id) is None and not archive.message_ids(session_id):
            raise BadRequest(f"session {session_id!r} is not in the archive; `recall_sessions()` lists those that are")
        return session_id, []
    rows = catalog.rows()
    where = absolute(cwd, "", "directory") if cwd.strip().startswith("/") else ""
    # The current session is not a deleted one.
    live = {row.id: row for row in rows.values() if row.deleted is None}
    latest = (latest_at(live, where) or latest_at(rows, where)) if where else None
    if latest is None:
        place = f"{where} or a directory above it" if where else "the current directory, which is not known"
        raise BadRequest(
            f"no `sessionID` is given, and no session was recorded in {place}; `recall_sessions()` lists all"
        )
    title, folder = redact(latest.title), redact(latest.directory)
    return latest.id, [f"no `sessionID` was given: taken is {latest.id} ({title!r}), the latest of {folder}"]


def _items(archive: Archive, ids: Sequence[str], max_chars: int, center: str = "") -> list[Json]:
    archived = (archive.message(message_id) for message_id in ids)
    return [
        _item(archive, message, max_chars, is_center=message.id == center)
        for message in archived
        if message is not None
    ]


def _item(archive: Archive, message: Message, max_chars: int, *, is_center: bool = False) -> Json:
    deleted, gone = archive.is_deleted(message.id), archive.gone(message.id)
    return item(message, max_chars=max_chars, center=is_center, deleted=deleted, gone=gone)


def _context(archive: Archive, session_id: str) -> Json:
    session = archive.session(session_id)
    return {
        "sessionID": session_id,
        "sessionTitle": redact(session.title) if session else "",
        "directory": redact(session.directory) if session else "",
        "projectID": session.project_id if session else "",
    }


def _short_of(message_id: str, budget: int, missing: int, *, is_cut: bool) -> list[str]:
    if is_cut:
        whole = hint("recall_get", messageID=message_id)
        cut = (
            f"message {message_id} alone is longer than {budget} tokens (estimated): its texts are cut, and the others"
        )
        return [f"{cut} left out; raise `budgetTokens`, or {whole} shows it whole"]
    omission = f"left out, as {budget} tokens (estimated) are not enough: {counted(missing, 'message')} around it"
    return [omission] if missing else []
