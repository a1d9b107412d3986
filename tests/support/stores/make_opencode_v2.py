"""Builds a database as OpenCode 2 is said to write it, for tests: there was no such version to observe.

Taken from opencode-formats.md, OpenCode 2: ``session_v2`` and ``session_message`` in the same file as the older tables,
which stay, frozen and stale. One call makes a file; `Session2` and `Row2` say what stands in it, the functions below
make the rows. `SAMPLE` has a row of every documented type and every state of a tool.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]

START_MS = 1_795_000_000_000
DIRECTORY = "/home/dev/projects/garden"

_TABLES = """
CREATE TABLE IF NOT EXISTS project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text,
    sandboxes text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
    directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_archived integer);
CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, fork text,
    slug text, directory text NOT NULL, path text, title text, version text NOT NULL, agent text, model text,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer, time_suspended integer,
    time_idle integer);
CREATE TABLE IF NOT EXISTS session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
    seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS session_message_session_seq_idx ON session_message (session_id, seq);
"""


@dataclass(frozen=True)
class Row2:
    """One row of ``session_message``; `data` is the message without id and type. `created` counts from START_MS."""

    id: str
    type: str
    data: Json
    created: int = 0
    updated: int | None = None

    @property
    def record(self) -> Json:
        """`data` with its time, as every documented message has one."""
        time = {"created": START_MS + self.created} | self.data.get("time", {})
        return self.data | {"time": time}


@dataclass(frozen=True)
class OldMessage:
    """One frozen row of ``message`` with its parts, in the shape of OpenCode 1."""

    id: str
    data: Json
    parts: dict[str, Json] = field(default_factory=dict)
    created: int = 0


@dataclass(frozen=True)
class Session2:
    """A session in the new tables, in the old ones, or in both.

    `rows` go to ``session_message``, `old` to ``message`` and ``part``. `in_new` and `in_old` say which table of
    sessions names it; a session may have rows and stand in neither, as an interrupted import would leave it.
    """

    id: str
    rows: Sequence[Row2] = ()
    old: Sequence[OldMessage] = ()
    title: str | None = "A session of OpenCode 2"
    old_title: str = "A session of OpenCode 1"
    directory: str = DIRECTORY
    project_id: str = "0" * 40
    parent_id: str | None = None
    created: int = 0
    updated: int = 0
    in_new: bool = True
    in_old: bool = False


def make_v2(path: Path, sessions: Sequence[Session2] | None = None) -> Path:
    """Write a database at `path` with these sessions (`SAMPLE` without any); more may be added by calling again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(_TABLES)
        for session in SAMPLE if sessions is None else sessions:
            _insert(database, session)
        database.commit()
    return path


def _insert(database: sqlite3.Connection, session: Session2) -> None:
    times = {"time_created": START_MS + session.created, "time_updated": START_MS + session.updated}
    place = {"id": session.id, "project_id": session.project_id, "parent_id": session.parent_id}
    place |= {"directory": session.directory, "slug": "quiet-orchard"}
    worktree = {"id": session.project_id, "worktree": session.directory, "vcs": "git", "sandboxes": "[]"}
    _put(database, "project", worktree | times, or_ignore=True)
    if session.in_new:
        _put(database, "session_v2", place | {"title": session.title, "version": "2.0.0"} | times)
    if session.in_old:
        _put(database, "session", place | {"title": session.old_title, "version": "1.18.33"} | times)
    for seq, row in enumerate(session.rows):
        updated = row.created if row.updated is None else row.updated
        stamps = {"time_created": START_MS + row.created, "time_updated": START_MS + updated}
        fields = {"id": row.id, "session_id": session.id, "type": row.type, "seq": seq, "data": json.dumps(row.record)}
        _put(database, "session_message", fields | stamps)
    for message in session.old:
        _insert_old(database, session.id, message)


def _insert_old(database: sqlite3.Connection, session_id: str, message: OldMessage) -> None:
    created = START_MS + message.created
    stamps = {"session_id": session_id, "time_created": created, "time_updated": created}
    data = {"time": {"created": created}} | message.data
    _put(database, "message", {"id": message.id, "data": json.dumps(data)} | stamps)
    for part_id, part in message.parts.items():
        _put(database, "part", {"id": part_id, "message_id": message.id, "data": json.dumps(part)} | stamps)


def _put(database: sqlite3.Connection, table: str, fields: Json, *, or_ignore: bool = False) -> None:
    verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
    marks = ", ".join("?" * len(fields))
    database.execute(f"{verb} INTO {table} ({', '.join(fields)}) VALUES ({marks})", tuple(fields.values()))


def user(id: str, text: str, created: int = 0, **more: Any) -> Row2:  # noqa: A002 - the column's name
    """A person's message."""
    return Row2(id, "user", {"text": text} | more, created)


def assistant(id: str, content: list[Json], created: int = 0, **more: Any) -> Row2:  # noqa: A002
    """A finished answer; pass ``time={}`` for one still being written."""
    data: Json = {
        "agent": "build",
        "model": {"id": "scripted", "providerID": "scripted"},
        "content": content,
        "finish": "stop",
        "time": {"completed": START_MS + created + 500},
    }
    return Row2(id, "assistant", data | more, created)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def reasoning(words: str) -> Json:
    return {"type": "reasoning", "text": words, "time": {"created": START_MS, "completed": START_MS + 10}}


def tool(name: str, arguments: Json, output: str = "", call: str = "call_1", **state: Any) -> Json:
    """A completed tool call; `state` overrides any field of its state."""
    made: Json = {"status": "completed", "input": arguments, "content": [text(output)]} | state
    time = {"created": START_MS, "ran": START_MS + 1, "completed": START_MS + 2}
    return {"type": "tool", "id": call, "name": name, "state": made, "time": time}


def _every_type() -> list[Row2]:
    written = tool("write", {"path": f"{DIRECTORY}/bed.md", "content": "# Bed\n"}, "Wrote file successfully.", "call_w")
    changed = tool(
        "edit",
        {"path": f"{DIRECTORY}/bed.md", "oldString": "# Bed", "newString": "# Flower bed"},
        "Edit applied successfully.",
        "call_e",
        metadata={"files": [{"file": f"{DIRECTORY}/bed.md", "patch": "@@", "status": "modified"}]},
    )
    failed = tool("read", {"path": f"{DIRECTORY}/none.md"}, call="call_r", status="error", error="File not found")
    streaming = {"type": "tool", "id": "call_s", "name": "write", "state": {"status": "streaming", "input": '{"path'}}
    running = tool("bash", {"command": "sleep 9"}, call="call_b", status="running", metadata={"output": "half"})
    older = tool("bash", {"command": "ls"}, "bed.md", "call_o", structured={"exit": 0})
    return [
        user("msg_2a", "Plant tulips in the garden.", 0, files=[{"uri": "file:///tmp/plan.png", "mime": "image/png"}]),
        Row2("msg_2b", "agent-switched", {"agent": "build"}, 1),
        Row2("msg_2c", "model-switched", {"model": {"id": "scripted", "providerID": "scripted"}}, 2),
        assistant("msg_2d", [reasoning("Tulips need cold."), text("I write the bed."), written, changed, older], 3,
                  snapshot={"start": "1" * 40, "end": "2" * 40, "files": ["bed.md"]}),
        assistant("msg_2e", [failed, text("That file is not there.")], 4, error={"name": "APIError", "message": "stopped"}),
        Row2("msg_2f", "synthetic", {"text": "The plan was updated.", "description": "plan"}, 5),
        Row2("msg_2g", "system", {"text": "You are a gardener."}, 6),
        Row2("msg_2h", "skill", {"skill": "pruning", "name": "pruning", "text": "Cut in winter."}, 7),
        Row2("msg_2i", "shell", {"shellID": "sh_1", "command": "date", "status": "exited", "exit": 0, "output": "Monday"}, 8),
        Row2("msg_2j", "compaction", {"status": "completed", "reason": "auto", "summary": "Tulips planted.", "recent": ""}, 9),
        Row2("msg_2k", "location-switched", {"directory": DIRECTORY}, 10),
        Row2("msg_2l", "idle", {"outcome": "completed"}, 11),
        assistant("msg_2m", [text("Still "), streaming, running], 12, finish=None, time={}),
    ]  # fmt: skip


def _old(id: str, words: str, created: int) -> OldMessage:  # noqa: A002
    return OldMessage(id, {"role": "user", "agent": "build"}, {f"prt_{id[4:]}": text(words)}, created)


SAMPLE: tuple[Session2, ...] = (
    Session2("ses_2_every_type", _every_type()),
    Session2("ses_2_untitled", [user("msg_2n", "Nobody named this session.", 20)], title=None, created=20),
    Session2(
        "ses_2_in_both",
        [user("msg_2o", "The newer text of a shared message.", 30), user("msg_2p", "Said in OpenCode 2 alone.", 31)],
        [_old("msg_2o", "The stale text of a shared message.", 30), _old("msg_1q", "Said in OpenCode 1 alone.", 29)],
        created=29,
        in_old=True,
    ),
    Session2("ses_1_only_old", (), [_old("msg_1r", "Never imported into OpenCode 2.", 5)], in_new=False, in_old=True),
    Session2("ses_2_without_a_session_row", [user("msg_2s", "My session row is missing.", 40)], in_new=False),
)
"""New alone, without a title, in both generations with one id shared and stale, old alone, and rows without a session."""
