"""The JSON tree of OpenCode up to 1.1.65: one file a record (opencode-formats.md, Directory and Records and Writing).

A session is known by its own file or by messages that name it, never through its project, whose file may be missing.
A file that is being written does not count as damaged (json_files). No link is followed.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from daemon import records
from daemon.errors import BadRecord, SourceBusy, SourceMissing, Unreadable
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json, Part, Session
from daemon.opencode import JSON_TREE, Listing, Problem, Reading, RevertMark, TodoList, Unit, json_files
from daemon.opencode.shared import (
    PIECE,
    Gathered,
    orphan_record,
    oversize,
    pending_revert,
    project_record,
    unreadable_project,
)
from daemon.records import time_of, time_until


class JsonTree:
    """``storage/`` of one data directory."""

    kind = "JSON files (OpenCode up to 1.1)"
    generation = JSON_TREE

    def __init__(
        self,
        storage: Path,
        record_mb: int = 64,
        clock: Callable[[], float] = time.time,
        *,
        large: LargeFiles | None = None,
    ) -> None:
        self.storage = storage
        self.name = f"json:{storage}"
        self._limit = record_mb << 20
        self._large = large
        self._clock = clock
        self._lock = threading.Lock()
        self._hinted: set[str] = set()
        self._unsure = True
        self._files: dict[str, str] = {}  # session id -> path of its record
        self._owners: dict[str, str] = {}  # message id -> session id, for hints and for parts without a message
        self._orphans: dict[str, set[str]] = {}
        self._unlisted = ""  # why a project's folder could not be listed
        self._closed: dict[str, str] = {}  # path that we may not read -> its session's id, or "" for all sessions

    def close(self) -> None:
        """Nothing is held open."""

    # -- what may have changed -----------------------------------------------------------------------------------

    def hint(self, path: str) -> None:
        """Note which session a changed path belongs to; if that is unknown, `touched` returns None."""
        try:
            relative = Path(path).relative_to(self.storage).parts
        except ValueError:
            return
        with self._lock:
            match relative:
                case ("message", session_id, *_):
                    self._hinted.add(session_id)
                case ("session", _, name, *_):
                    self._hinted.add(name.removesuffix(".json"))
                    self._files.pop(name.removesuffix(".json"), None)
                case ("part", message_id, *_):
                    owner = self._owners.get(message_id) or self._owner_of_parts(message_id)
                    self._hinted.add(owner) if owner else None
                case ("todo", name, *_):
                    self._hinted.add(name.removesuffix(".json"))
                case ("session_diff" | "todo" | "project" | "share" | "migration", *_):
                    pass
                case _:
                    self._unsure = True

    def touched(self) -> Iterable[str] | None:
        """See Source."""
        opened = {path: session_id for path, session_id in list(self._closed.items()) if _may_read(path)}
        for path in opened:
            del self._closed[path]
        with self._lock:
            hinted, self._hinted = self._hinted, set()
            unsure, self._unsure = self._unsure, False
        return None if unsure or "" in opened.values() else hinted.union(opened.values())

    # -- listing -------------------------------------------------------------------------------------------------

    def state(self) -> None:
        """See Source: it has too many files."""

    def sessions(self) -> Listing[str]:
        """See Source."""
        if not self.storage.is_dir():
            raise SourceMissing(f"{self.storage}: OpenCode's JSON files are gone; nothing is concluded from that")
        try:
            files = self._session_files()
            folders = list(_entries(self.storage / "message"))
        except BadRecord as error:
            raise SourceMissing(f"{error}; nothing is concluded from that") from None
        stamps = Listing({session_id: _stamp(entry) for session_id, entry in files.items()})
        for entry in folders:
            if entry.name not in stamps and _holds_something(entry.path):
                stamps[entry.name] = "none"
        self._files = {session_id: entry.path for session_id, entry in files.items()}
        self._find_orphans(folders)
        return Listing(dict.fromkeys(self._orphans, "none") | stamps)

    def _session_files(self) -> dict[str, os.DirEntry[str]]:
        files: dict[str, os.DirEntry[str]] = {}
        self._unlisted = ""
        for project in _entries(self.storage / "session"):
            try:
                entries = list(_entries(project.path))
            except BadRecord as error:
                self._unlisted = str(error)
                self._closed[project.path] = ""
                continue
            for entry in entries:
                session_id = entry.name.removesuffix(".json")
                # A session moves from global to its project's folder when its directory becomes a git repository.
                if entry.name.endswith(".json") and _newer(entry, files.get(session_id)):
                    files[session_id] = entry
        return files

    def _find_orphans(self, folders: list[os.DirEntry[str]]) -> None:
        try:
            known = {entry.name.removesuffix(".json") for folder in folders for entry in _entries(folder.path)}
            parts = list(_entries(self.storage / "part"))
        except BadRecord:
            self._closed |= {folder.path: "" for folder in folders if not _may_read(folder.path)}
            return  # parts without a message are unknown then; the unreadable folder is reported elsewhere
        orphans: dict[str, set[str]] = {}
        for entry in parts:
            if entry.name not in known:
                owner = self._owners.get(entry.name) or self._owner_of_parts(entry.name)
                if owner:
                    self._owners[entry.name] = owner
                    orphans.setdefault(owner, set()).add(entry.name)
        self._orphans = orphans

    def _owner_of_parts(self, message_id: str) -> str | None:
        try:
            entries = list(_entries(self.storage / "part" / message_id))
        except BadRecord:
            return None  # tried again by the next full scan
        for entry in entries:
            try:
                return records.text(self._parse(Path(entry.path))[1].get("sessionID")) or None
            except (BadRecord, SourceBusy):
                continue  # the next one may name it; if none does, the next full scan tries again
        return None

    def messages(self, session_id: str) -> Listing[Unit]:
        """See Source."""
        units = Listing[Unit]()
        folder = self.storage / "message" / session_id
        if not _may_read(folder):
            self._closed[str(folder)] = session_id
        for entry in _entries(folder):
            message_id = entry.name.removesuffix(".json")
            if entry.name.endswith(".json"):
                self._owners[message_id] = session_id
                units[message_id] = self._unit(session_id, message_id, entry)
        for message_id in self._orphans.get(session_id, ()):
            if message_id not in units and _holds_something(self.storage / "part" / message_id):
                units[message_id] = self._unit(session_id, message_id, None)
        return units

    def holds(self, kind: str, ids: Iterable[str]) -> set[str]:  # noqa: ARG002 - see Source
        """See Source. Its listings are those of the file system, which hide nothing."""
        return set()

    def _unit(self, session_id: str, message_id: str, entry: os.DirEntry[str] | None) -> Unit:
        folder = self.storage / "part" / message_id
        closed: list[str] = []
        try:
            files = [e for e in _entries(folder) if e.name.endswith(".json")]
            stats = [(e.name, _stat(e)) for e in files]
        except BadRecord:
            files, closed = [], [str(folder)]
            stats = [("unreadable", _stat(folder))]  # reported when the message is read
        if entry is not None:
            files.append(entry)
            stats.append(("", _stat(entry)))
        closed += [
            e.path for e in files if not os.access(e.path, os.R_OK, effective_ids=True) and not _may_read(e.path)
        ]
        self._closed |= dict.fromkeys(closed, session_id)
        total = hashlib.sha256(b"".join(os.fsencode(path) + b"\n" for path in closed))
        for name, (mtime_ns, size, inode) in sorted(stats):
            total.update(f"{name}\0{mtime_ns}\0{size}\0{inode}\n".encode("utf-8", "surrogatepass"))
        changed = max((mtime for _, (mtime, _, _) in stats), default=0) // 1_000_000
        return Unit(total.hexdigest()[:24], changed)

    # -- reading -------------------------------------------------------------------------------------------------

    def _parse(self, path: Path) -> tuple[bytes, Json]:
        return json_files.load(path, self._limit, self._clock)

    def read_session(self, session_id: str) -> Session:
        """See Source."""
        path = self._files.get(session_id) or self._locate(session_id)
        if path is not None and not _may_read(path):
            self._closed[path] = session_id
        if path is None and self._unlisted:
            raise Unreadable(f"session {session_id}: its record may be where we cannot look: {self._unlisted}")
        if path is None:
            return self._session_of_messages(session_id)
        raw, data = self._parse(Path(path))
        time_, parent = records.table(data.get("time")), records.text(data.get("parentID"))
        return Session(
            id=session_id,
            project_id=records.text(data.get("projectID")) or Path(path).parent.name,
            directory=records.text(data.get("directory")),
            title=records.text(data.get("title")),
            created=records.integer(time_.get("created")),
            updated=records.integer(time_.get("updated")),
            raw=raw,
            parent_id=parent or None,
            archived=records.integer(time_.get("archived")) or None,
            version=records.text(data.get("version")),
        )

    def _locate(self, session_id: str) -> str | None:
        refused: Unreadable | None = None
        for project in _entries(self.storage / "session"):
            path = os.path.join(project.path, session_id + ".json")
            try:
                is_there = json_files.status(path) is not None
            except Unreadable as error:
                refused = error
                continue
            if is_there:
                self._files[session_id] = path
                return path
        if refused is not None:
            raise refused
        return None

    def _session_of_messages(self, session_id: str) -> Session:
        directory, first = "", 0
        for entry in sorted(_entries(self.storage / "message" / session_id), key=lambda e: e.name):
            try:
                _, data = self._parse(Path(entry.path))
            except (BadRecord, SourceBusy):
                continue  # reported when the message itself is read
            directory = directory or records.text(records.table(data.get("path")).get("cwd"))
            first = first or records.integer(records.table(data.get("time")).get("created"))
        now_ms = int(self._clock() * 1000)
        created = (time_of(session_id, first) if first else time_until(session_id, now_ms)) or 0
        return Session(session_id, "", directory, "", created, created, b"{}")

    def read_message(self, session_id: str, message_id: str) -> Reading:
        """See Source."""
        problems: list[Problem] = []
        parts = self._parts(session_id, message_id, problems)
        path = self.storage / "message" / session_id / f"{message_id}.json"
        try:
            orphan = json_files.status(path) is None
            if orphan and not parts and not problems:
                raise SourceBusy(f"{path}: gone between listing and reading")
            raw = (
                orphan_record(session_id, message_id, parts, int(self._clock() * 1000))
                if orphan
                else self._parse(path)[0]
            )
            message = records.message(raw, parts, session_id)
        except BadRecord as error:
            problems.append(self._problem(path, error, ""))
            return Reading(None, tuple(problems))
        return Reading(message, tuple(problems), orphan)

    def reverts(self, session_id: str) -> list[RevertMark]:
        """See Source. The tree has only a pending revert, and the record changed when it was made."""
        session = self.read_session(session_id)
        return pending_revert(records.load_object(session.raw).get("revert"), session.updated)

    def readings(self, session_id: str, message_ids: Sequence[str]) -> Iterator[tuple[str, Callable[[], Reading]]]:
        """See Source."""
        return ((message_id, partial(self.read_message, session_id, message_id)) for message_id in message_ids)

    def todos(self, session_id: str) -> TodoList | None:
        """See Source."""
        path = self.storage / "todo" / f"{session_id}.json"
        if not _may_read(path):
            self._closed[str(path)] = session_id
        status = json_files.status(path)
        if status is None:
            return None
        _, items = json_files.load(path, self._limit, self._clock, records.load_objects)
        return TodoList(tuple(items), status.st_mtime_ns // 1_000_000)

    def projects(self) -> list[Json]:
        """See Source."""
        projects: list[Json] = []
        for entry in sorted(_entries(self.storage / "project"), key=lambda e: e.name):
            if not entry.name.endswith(".json"):
                continue
            project_id = entry.name.removesuffix(".json")
            try:
                raw, data = self._parse(Path(entry.path))
            except (BadRecord, SourceBusy) as error:
                projects.append(unreadable_project(project_id, str(error)))
                continue
            projects.append(project_record({"id": project_id} | data, records.table(data.get("time")), raw))
        return projects

    def _parts(self, session_id: str, message_id: str, problems: list[Problem]) -> Sequence[Part]:
        folder = self.storage / "part" / message_id
        gathered = Gathered(session_id, message_id, self._large)
        try:
            entries = list(_entries(folder))
        except BadRecord as error:
            problems.append(Problem(str(folder), str(error), waits=True))
            return ()
        for entry in entries:
            if not entry.name.endswith(".json"):
                continue
            try:
                json_files.load(Path(entry.path), self._limit, self._clock, gathered.add)
            except BadRecord as error:
                problems.append(self._problem(Path(entry.path), error, entry.name.removesuffix(".json")))
        return gathered.parts()

    def _problem(self, path: Path, error: BadRecord, part_id: str) -> Problem:
        try:
            with json_files.opened(path) as (file, size):
                if size > self._limit:
                    return oversize(self._large, str(path), part_id, size, iter(lambda: file.read(PIECE), b""))
                raw = json_files.content(file, path)
        except (BadRecord, SourceBusy) as second:
            # A damaged or large record that is refused now may be good, or kept whole, at the next look.
            waits = isinstance(error, Unreadable) or isinstance(second, (Unreadable, SourceBusy))
            return Problem(str(path), str(error), waits=waits)
        return Problem(
            str(path), str(error), len(raw), hashlib.sha256(raw).hexdigest(), waits=isinstance(error, Unreadable)
        )


def _entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return  # a missing folder is empty; `sessions` checks for a missing storage/
    except OSError as error:
        raise Unreadable(f"{folder}: cannot be listed: {error.strerror}; check its permissions") from None


def _may_read(path: str | Path) -> bool:
    """Whether permissions allow reading a file or folder; True if it does not exist."""
    if os.access(path, os.R_OK, effective_ids=True):
        return not os.path.isdir(path) or os.access(path, os.X_OK, effective_ids=True)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # a folder above it is closed
    return False


def _holds_something(folder: str | Path) -> bool:
    """Whether a folder has entries; True if it cannot be listed."""
    try:
        return any(_entries(folder))
    except BadRecord:
        return True


def _stat(entry: os.DirEntry[str] | Path) -> tuple[int, int, int]:
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return (0, 0, 0)  # unlinked since it was listed: the next listing will not have it
    except OSError as error:
        return (0, -(error.errno or 1), 0)  # no other stamp is like it, so it is read again once the system allows it
    return (info.st_mtime_ns, info.st_size, info.st_ino)


def _stamp(entry: os.DirEntry[str]) -> str:
    return "{}-{}-{}".format(*_stat(entry))


def _newer(entry: os.DirEntry[str], incumbent: os.DirEntry[str] | None) -> bool:
    return incumbent is None or _stat(entry) > _stat(incumbent)
