"""The tables of OpenCode 2: ``session_v2`` and ``session_message`` (opencode-formats.md, OpenCode 2, read from source,
not observed).

A row's ``data`` is one whole message. It is turned into the same message and part records as the older generations, so
that all other code knows one shape; the row as written stays inside the message record under ``v2``. Every field is
optional: unknown content becomes a part of its own type and is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from daemon import records
from daemon.errors import BadRecord, SourceMissing, Unreadable
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json, Part
from daemon.opencode import DATABASE_2, Listing, Problem, Reading, RevertMark, Unit
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database, _or_null
from daemon.opencode.shared import stored_text as _text
from daemon.opencode.units import telling

_ROLES = {"user": "user", "synthetic": "user", "shell": "user", "skill": "user", "system": "system"}
_MESSAGES = frozenset({*_ROLES, "assistant", "compaction"})
_EVENTS = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
"""Rows that are no messages but records of their session. OpenCode 1.15.13 writes some, 1.18.33 drops them again."""


_SHAPE = 2
"""Version of the records made from these rows; raise it when a row yields more, so that all are read again."""

TYPE = "type2"
"""The field of a message record that says which type its row has."""


class Database2(Database):
    """The newer tables of one file; the older ones beside them are frozen and read by Database."""

    kind = "SQLite (OpenCode 2)"
    generation = DATABASE_2
    session_table = "session_v2"
    tables: Mapping[str, str] = {"session": "session_v2", "message": "session_message"}

    def __init__(self, connection: Connection, record_mb: int = 64, *, large: LargeFiles | None = None) -> None:
        super().__init__(connection, record_mb, large=large)
        self.name = f"db2:{connection.path}"
        self._version: tuple[int, int] | None = None

    def touched(self) -> Iterable[str] | None:
        """See Source. Any commit makes us list: a listing reads no message bodies."""
        version = self._connection.data_version()
        if version == self._version:
            return ()
        self._version = version
        return None

    def sessions(self) -> Listing[str]:
        """See Source."""
        if not self._connection.columns("session_message"):
            raise SourceMissing(f"{self._connection.path}: no table session_message")
        stamps = Listing[str]()
        own = self._connection.columns("session_v2")
        if own:
            self._list_records("session_v2", own, stamps)
        self._list_owners("session_message", stamps)
        return stamps

    def messages(self, session_id: str) -> Listing[Unit]:
        """See Source. The sequence number belongs to the stamp: rows are updated in place."""
        columns = self._connection.columns("session_message")
        sql = (
            f"SELECT id, type, {_or_null(columns, 'seq')}, {telling(columns)}, length(data) "
            "FROM session_message WHERE session_id = ?"
        )
        units = Listing[Unit]()
        for message_id, type_, seq, updated, size in self._tables.listed("session_message", sql, (session_id,), units):
            stamp = hashlib.sha256(f"{_SHAPE}\0{seq}\0{updated}\0{size}".encode()).hexdigest()[:24]
            is_event = is_session_event(_text(message_id), _text(type_))
            units[_text(message_id)] = Unit(stamp, records.integer(updated), is_event)
        return units

    def read_message(self, session_id: str, message_id: str) -> Reading:
        """See Source."""
        columns = self._connection.columns("session_message")
        sql = (
            f"SELECT rowid, id, typeof(data), type, {_or_null(columns, 'time_created')} "
            "FROM session_message WHERE id = ?"
        )
        try:
            rows = self._tables.whole("session_message", sql, (message_id,))
        except Unreadable as error:
            return Reading(None, (self._refused(f"session_message {message_id}", str(error)),))
        for row, id_, stored, type_, created in rows:
            problems: list[Problem] = []
            verbatim = self._record("session_message", (row, id_, stored, None), {}, problems)
            if verbatim is None:
                return Reading(None, tuple(problems))
            try:
                return self._reading(session_id, message_id, _text(type_), records.integer(created), verbatim)
            except BadRecord as error:
                return Reading(None, (self._problem(f"session_message {message_id}", error, verbatim),))
        return Reading(
            None, (Problem(self._place(f"session_message {message_id}"), "gone between listing and reading"),)
        )

    def readings(self, session_id: str, message_ids: Sequence[str]) -> Iterator[tuple[str, Callable[[], Reading]]]:
        """See Source."""
        return ((message_id, partial(self.read_message, session_id, message_id)) for message_id in message_ids)

    def reverts(self, session_id: str) -> list[RevertMark]:
        """See Source. Older reverts are in the journal beside these tables."""
        return self._pending_revert(session_id)

    def _reading(self, session_id: str, message_id: str, type_: str, created: int, verbatim: bytes) -> Reading:
        row = records.load_object(verbatim)
        row.setdefault("time", {"created": created})
        if is_session_event(message_id, type_):
            return Reading(None, event=session_event(session_id, message_id, type_, row["time"], verbatim))
        head = _head(row, message_id, session_id, type_, created)
        parts = tuple(_parts(row, message_id, session_id, type_))
        raw = records.dumps(head)[:-1] + b',"v2":' + verbatim + b"}"
        return Reading(records.message(raw, parts, session_id))


def is_session_event(row_id: str, type_: str) -> bool:
    """Whether a row of ``session_message`` is not a message; for an unknown type, its id decides."""
    return type_ in _EVENTS or (type_ not in _MESSAGES and row_id.startswith("evt_"))


def session_event(session_id: str, event_id: str, type_: str, time: object, verbatim: bytes) -> bytes:
    """The record of such a row, `verbatim` as it was written."""
    head = records.dumps({"id": event_id, "sessionID": session_id, "type": type_, "time": time})
    return head[:-1] + b',"data":' + verbatim + b"}"


def _head(row: Json, message_id: str, session_id: str, type_: str, created: int) -> Json:
    """The message record in the older generations' shape."""
    time = records.table(row.get("time"))
    model = records.table(row.get("model"))
    head: Json = {
        "id": message_id,
        "sessionID": session_id,
        "role": _ROLES.get(type_, "assistant"),
        TYPE: type_,
        "time": {"created": records.integer(time.get("created"), created)},
    }
    finished = records.integer(time.get("completed")) or (0 if type_ == "assistant" else head["time"]["created"])
    if not finished and (row.get("finish") or row.get("error")):
        finished = head["time"]["created"]
    if finished:
        head["time"]["completed"] = finished
    if model:
        head |= {"modelID": model.get("id"), "providerID": model.get("providerID")}
    for name in ("agent", "finish", "cost", "tokens", "error"):
        if row.get(name) is not None:
            head[name] = row[name]
    if type_ == "compaction":
        head["summary"] = True
    return head


def _parts(row: Json, message_id: str, session_id: str, type_: str) -> Iterator[Part]:
    """The message's content as parts, in order; ids are made from the place, so they stay the same."""
    ids = {"sessionID": session_id, "messageID": message_id}
    for number, data in enumerate(_contents(row, type_)):
        raw = records.dumps(data | ids | {"id": f"{message_id}.{number:04d}"})
        yield records.part(raw, message_id, session_id)
    # Their names sort behind the numbers, so what comes before may still grow.
    for name, more in (("about", _about(row, type_)), ("patch", _patch(row) if type_ == "assistant" else None)):
        if more is not None:
            yield records.part(records.dumps(more | ids | {"id": f"{message_id}.{name}"}), message_id, session_id)


def _contents(row: Json, type_: str) -> Iterator[Json]:
    match type_:
        case "user" | "synthetic" | "system" | "skill":
            if isinstance(row.get("text"), str):
                yield {"type": "text", "text": row["text"]} | ({} if type_ == "user" else {"synthetic": True})
            for name in ("files", "agents", "skills"):
                for item in _listed(row.get(name)):
                    yield _attachment(item, name.removesuffix("s"))
        case "shell":
            yield _shell(row)
        case "compaction":
            for name in ("summary", "recent"):
                if isinstance(row.get(name), str):
                    yield {"type": "text", "text": row[name]}
        case "assistant":
            yield from _assistant(row)
        case _:
            yield {"type": type_ or "unknown", "data": row}


def _about(row: Json, type_: str) -> Json | None:
    """The description of a synthetic text, or the name of a skill, as a text of its own."""
    if type_ not in ("synthetic", "skill"):
        return None
    words = dict.fromkeys(records.text(row.get(name)).strip() for name in ("name", "skill", "description"))
    words_left = [word for word in words if word and word != records.text(row.get("text")).strip()]
    return {"type": "text", "text": "\n".join(words_left), "synthetic": True} if words_left else None


def _listed(value: object) -> list[object]:
    """A list from a row that others wrote; a single value counts as one item, null as none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _attachment(item: object, type_: str) -> Json:
    fields = item if isinstance(item, dict) else {"value": item}
    if type_ != "file":
        return {**fields, "type": type_}
    mime = records.text(fields.get("mime"))
    source = fields.get("source")
    named = (fields.get("url"), fields.get("uri"), source, records.table(source).get("uri"))
    url = next(filter(None, map(records.text, named)), "")
    if not url and isinstance(fields.get("data"), str):
        url = f"data:{mime};base64,{fields['data']}"
    name = records.text(fields.get("name")) or records.text(fields.get("filename"))
    return {**fields, "type": "file", "url": url, "mime": mime, "filename": name}


def _shell(row: Json) -> Json:
    """A command that the user ran, as a call of bash. An interrupted one is an error, but may have changed files."""
    recorded_status = row.get("status")
    status = (
        "completed" if recorded_status in ("completed", "exited", None) else records.text(recorded_status, "running")
    )
    output = records.text(row.get("output")) or records.text(records.table(row.get("output")).get("output"))
    state: Json = {
        "status": status if status in ("completed", "running", "pending") else "error",
        "input": {"command": records.text(row.get("command"))},
        "output": output,
        "metadata": {"exit": row.get("exit")},
        "time": _span(records.table(row.get("time"))),
    }
    if state["status"] == "error":
        state["error"] = status
        state["metadata"]["output"] = output
    return {"type": "tool", "tool": "bash", "callID": records.text(row.get("shellID")), "state": state}


def _assistant(row: Json) -> Iterator[Json]:
    """Content between the step's two snapshots; these carry their `time`, as their ids have no clock of their own."""
    snapshot, times = records.table(row.get("snapshot")), records.table(row.get("time"))
    if snapshot.get("start"):
        yield {"type": "step-start", "snapshot": snapshot["start"]} | _moment(times.get("created"))
    for item in _listed(row.get("content")):
        fields = item if isinstance(item, dict) else {"type": "unknown", "value": item}
        match fields.get("type"):
            case "tool":
                yield _tool(fields)
            case "text" | "reasoning":
                yield fields
            case type_:
                yield {**fields, "type": str(type_ or "unknown")}
    if snapshot.get("end") or row.get("finish"):
        finish = {"type": "step-finish", "reason": row.get("finish"), "snapshot": snapshot.get("end")}
        yield finish | _moment(times.get("completed"))


def _patch(row: Json) -> Json | None:
    """What the step changed, as a part in the older shape: `hash` is the tree before the step; names as they stand."""
    snapshot = records.table(row.get("snapshot"))
    named = [item if isinstance(item, str) else _file_of(item) for item in _listed(snapshot.get("files"))]
    files = [name for name in named if name]
    start = records.text(snapshot.get("start"))
    if not start or not files:
        return None
    return {"type": "patch", "hash": start, "files": files} | _moment(records.table(row.get("time")).get("completed"))


def _file_of(item: object) -> str:
    fields = records.table(item)
    return records.text(fields.get("file")) or records.text(fields.get("path"))


def _moment(time: object) -> Json:
    ms = records.integer(time)
    return {"time": {"start": ms, "end": ms}} if ms else {}


def _tool(fields: Json) -> Json:
    """A tool call in the older shape: text content joined as the output, other content kept as attachments."""
    state = records.table(fields.get("state"))
    content: list[object] = state["content"] if isinstance(state.get("content"), list) else []
    texts = [item["text"] for item in content if isinstance(item, dict) and isinstance(item.get("text"), str)]
    attachments = [item for item in content if not (isinstance(item, dict) and isinstance(item.get("text"), str))]
    status = "pending" if state.get("status") == "streaming" else records.text(state.get("status"), "running")
    call: Json = {"status": status, "input": state.get("input"), "time": _span(records.table(fields.get("time")))}
    metadata = state.get("metadata", state.get("structured"))
    if metadata is not None:
        call["metadata"] = metadata
    if status == "completed":
        call["output"] = "\n".join(texts)
    elif texts:
        call["metadata"] = {**records.table(metadata), "output": "\n".join(texts)}
    if "error" in state:
        error = state["error"]
        call["error"] = (
            error if isinstance(error, str) else records.text(records.table(error).get("message")) or str(error)
        )
    if attachments:
        call["attachments"] = attachments
    known = {"type", "id", "name", "state", "time"}
    extra = {name: value for name, value in fields.items() if name not in known}
    return {
        "type": "tool",
        "tool": records.text(fields.get("name")),
        "callID": fields.get("id"),
        "state": call,
        **extra,
    }


def _span(time: Json) -> Json:
    start = time.get("ran") or time.get("created")
    return {"start": start} | ({"end": time["completed"]} if time.get("completed") else {})
