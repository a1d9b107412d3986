"""Writes what OpenCode would have on disk: the JSON tree of 1.1.65, the database of 1.18.33, or both after a migration;
snapshot repositories made by git itself; spilled tool output."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.stores.make_opencode import JsonStore

Json = dict[str, Any]
MISSING_TREE = "5ca1ab1e" * 5
"""A tree id that no repository has: what a snapshot's collection leaves behind."""

DATABASES = ("sqlite15", "sqlite")
"""Of 1.15.13, whose journal is empty, and of 1.18.33."""

_SCHEMA = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, time_created integer NOT NULL,
    time_updated integer NOT NULL, sandboxes text NOT NULL, commands text);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
    path text, title text NOT NULL, version text NOT NULL, summary_additions integer, summary_deletions integer,
    summary_files integer, summary_diffs text, revert text, permission text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
    data text NOT NULL);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""


@dataclass(frozen=True)
class Link:
    """A symbolic link, as a file of a tree."""

    target: str


Content = bytes | Link


@dataclass(frozen=True)
class Mark:
    """An entry of the event journal: what happened to a session or a message at `time`, epoch ms."""

    time: int
    session_id: str
    kind: str
    data: Json


@dataclass
class Recorded:
    """One message as OpenCode wrote it; `removed`, or without the parts from `cut` on, by the clean-up after a revert."""

    info: Json
    parts: list[Json] = field(default_factory=list)
    clocks: list[int] = field(default_factory=list)
    """When each part was first written, epoch ms."""
    removed: bool = False
    cut: str = ""


class Snapshots:
    """OpenCode's snapshot repositories: a git directory apart from the work tree, trees and no commits."""

    def __init__(self, git_dir: Path, scratch: Path) -> None:
        self._git_dir, self._scratch = git_dir, scratch
        self._taken: dict[tuple[tuple[str, Content], ...], str] = {}

    def take(self, files: Mapping[str, Content]) -> str:
        """The id of the tree that holds `files`, by paths relative to the work tree."""
        key = tuple(sorted(files.items(), key=lambda item: item[0]))
        if key not in self._taken:
            if not self._taken:
                self._git_dir.mkdir(parents=True)
                self._git("init", "--quiet")
                self._git("config", "core.autocrlf", "false")
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch.mkdir(parents=True)
            for name, content in files.items():
                self._place(self._scratch / name, content)
            self._git("add", "--all", "--force", ".")
            self._taken[key] = self._git("write-tree")
        return self._taken[key]

    def diff(self, one: str, other: str) -> str:
        """What OpenCode records with a revert: git's diff, without blank space at either end."""
        return self._git("diff", "--no-ext-diff", one, other)

    def _place(self, path: Path, content: Content) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content.target)
        else:
            path.write_bytes(content)

    def _git(self, *arguments: str) -> str:
        environment = os.environ | {
            "GIT_DIR": str(self._git_dir),
            "GIT_WORK_TREE": str(self._scratch),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        cwd = self._scratch if self._scratch.exists() else self._git_dir
        done = subprocess.run(
            ("git", *arguments), cwd=cwd, env=environment, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()


def git_dir(data_dir: Path, project: str, worktree: str, kind: str) -> Path:
    """Where the version of `kind` keeps the snapshots of a work tree."""
    place = data_dir / "snapshot" / project
    return place / hashlib.sha1(worktree.encode()).hexdigest() if kind in DATABASES else place


def write(
    data_dir: Path,
    kind: str,
    projects: list[Json],
    sessions: list[Json],
    messages: list[Recorded],
    marks: list[Mark],
    session_diffs: Mapping[str, list[Json]],
) -> None:
    """Everything that was recorded, in the storage of `kind`: json, sqlite15, sqlite, or both json and sqlite alike."""
    if kind in ("json", "both"):
        _write_json(data_dir, projects, sessions, messages)
    if kind in (*DATABASES, "both"):
        _write_database(data_dir, projects, sessions, messages, marks if kind == "sqlite" else None)
    for session_id, diffs in session_diffs.items():
        place = data_dir / "storage" / "session_diff"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{session_id}.json").write_text(json.dumps(diffs, indent=2))


def _write_json(data_dir: Path, projects: list[Json], sessions: list[Json], messages: list[Recorded]) -> None:
    store = JsonStore(data_dir)
    store.raw("migration", "2")
    for project in projects:
        store.raw(f"project/{project['id']}.json", json.dumps(project, indent=2))
    for session in sessions:
        store.session(session)
    for recorded in messages:
        if not recorded.removed:
            store.message(recorded.info)
        for part in recorded.parts:  # they stay as orphans where their message was removed
            store.part(part)


def _without(record: Json, *names: str) -> str:
    return json.dumps({name: value for name, value in record.items() if name not in names})


def _write_database(
    data_dir: Path, projects: list[Json], sessions: list[Json], messages: list[Recorded], marks: list[Mark] | None
) -> None:
    data_dir.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(data_dir / "opencode.db")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(_SCHEMA)
        for project in projects:
            times = project["time"]
            row = (project["id"], project["worktree"], project.get("vcs"), None, times["created"], times["updated"])
            database.execute("INSERT INTO project VALUES (?,?,?,?,?,?,'[]',NULL)", row)
        for session in sessions:
            _session_row(database, session)
        for recorded in messages:
            if not recorded.removed:
                _message_rows(database, recorded)
        if marks is not None:  # what was migrated has no journal
            _journal(database, sessions, messages, marks)


def _session_row(database: sqlite3.Connection, session: Json) -> None:
    time, revert = session["time"], session.get("revert")
    database.execute(
        "INSERT INTO session VALUES (?,?,?,?,?,'',?,?,0,0,0,NULL,?,NULL,?,?,NULL,NULL)",
        (
            session["id"],
            session["projectID"],
            session.get("parentID"),
            session["slug"],
            session["directory"],
            session["title"],
            session["version"],
            json.dumps(revert) if revert else None,
            time["created"],
            time["updated"],
        ),
    )


def _message_rows(database: sqlite3.Connection, recorded: Recorded) -> None:
    info, created = recorded.info, recorded.info["time"]["created"]
    updated = info["time"].get("completed", created)
    values = (info["id"], info["sessionID"], created, updated, _without(info, "id", "sessionID"))
    database.execute("INSERT INTO message VALUES (?,?,?,?,?)", values)
    for part in recorded.parts:
        if recorded.cut and part["id"] >= recorded.cut:
            continue
        data = _without(part, "id", "sessionID", "messageID")
        row = (part["id"], part["messageID"], part["sessionID"], created, updated, data)
        database.execute("INSERT INTO part VALUES (?,?,?,?,?,?)", row)


def _journal(database: sqlite3.Connection, sessions: list[Json], messages: list[Recorded], marks: list[Mark]) -> None:
    """The append-only ``event`` table, which still has what a revert removed."""
    number = 0
    for session in sessions:
        session_id, created = session["id"], session["time"]["created"]
        plain = {name: value for name, value in session.items() if name != "revert"}
        told: list[Mark] = [Mark(created, session_id, "session.created.1", {"info": plain})]
        for recorded in messages:
            if recorded.info["sessionID"] == session_id:
                told += _told(recorded)
        told += [mark for mark in marks if mark.session_id == session_id]
        for sequence, mark in enumerate(sorted(told, key=lambda mark: mark.time)):
            bits = (mark.time * 4096 + sequence % 4096) & ((1 << 48) - 1)
            data = json.dumps({"sessionID": session_id, **mark.data})
            number += 1
            row = (f"evt_{bits:012x}{number:014d}", session_id, sequence, mark.kind, data)
            database.execute("INSERT INTO event VALUES (?,?,?,?,?)", row)
        database.execute("INSERT INTO event_sequence VALUES (?,?,NULL)", (session_id, len(told) - 1))


def _told(recorded: Recorded) -> Iterator[Mark]:
    info, session_id = recorded.info, recorded.info["sessionID"]
    first = {"created": info["time"]["created"]}
    yield Mark(first["created"], session_id, "message.updated.1", {"info": info | {"time": first}})
    for part, clock in zip(recorded.parts, recorded.clocks, strict=True):
        yield Mark(clock, session_id, "message.part.updated.1", {"part": part, "time": clock})
    if "completed" in info["time"]:
        yield Mark(info["time"]["completed"], session_id, "message.updated.1", {"info": info})
