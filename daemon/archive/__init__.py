"""The archive: our own copy of all records (docs/architecture.md, Keys).

Guarantees: every commit is one synced batch, counts and outbox included; records are stored as they were written, each
in its current version (merge). Safe to call from several threads. `store` handles the disk, `batch` the records. The
archive does not depend on sources and indexes.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import STAGES, Batch
from daemon.archive.files import NONE, FileRecords, Values
from daemon.archive.forgotten import Forgotten
from daemon.archive.keys import TOOLS
from daemon.archive.merge import merged, superseded
from daemon.archive.migrations import SCHEMA, backup_before, bring_up_to_date
from daemon.archive.objects import Objects
from daemon.archive.own_records import CONTENTS, OwnRecords
from daemon.archive.removal import Removal
from daemon.archive.session_records import KnownSecrets, SessionRecords, drop_unnamed, large_records, parts_of
from daemon.archive.store import Store
from daemon.archive.store.erasure import Erasure, Pulse
from daemon.archive.verify import OnPage, Verified, verify
from daemon.errors import DiskFull
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json, Message, Session

__all__ = [
    "CONTENTS",
    "SCHEMA",
    "STAGES",
    "TOOLS",
    "Archive",
    "Batch",
    "FileRecords",
    "Objects",
    "merged",
    "superseded",
]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Archive(OwnRecords):
    """Use it as a context manager, or close it. See docs/architecture.md, Keys, for the layout."""

    def __init__(
        self, directory: Path, clock: Callable[[], int] = _now_ms, *, on_step: Callable[[], None] = lambda: None
    ) -> None:
        """Open the archive, or create it if there is none. `on_step` is called after each step of a migration.

        Raises:
            ArchiveLocked: another process, or this one, has it open.
            ArchiveCorrupt: LevelDB refuses the files, or a newer Reconstitute wrote them.
            DiskFull: there is no space to open it, or for the backup before a migration.
        """
        self.directory = directory
        self.large_files = LargeFiles(directory / "large")
        self._clock = clock
        self._write = threading.RLock()
        self._store = Store(directory)
        self.off: frozenset[str] = frozenset()
        """Stages of the outbox that nobody empties, because the configuration says so."""
        try:
            bring_up_to_date(self._store, directory, on_step)
            self._store.drop_unfinished()
            drop_unnamed(self._store, self.large_files)
            self._count()
            self.files = FileRecords(self._store)
            self.beside = SessionRecords(self._store)
            self.objects = Objects(self._store, lambda: self._counts)
            self.forgotten = Forgotten(self._store)
            self._touched: list[str] = []
            self._quarantine_changes = 0
            self._in_doubt: set[bytes] = set()
            self.secrets = KnownSecrets(self, self._store, self._write)
        except BaseException:
            self._store.close()
            raise

    def _count(self) -> None:
        self._counts: dict[str, int] = self._load(keys.COUNTS) or {}
        stages = (*STAGES, TOOLS)
        self._waiting = {stage: sum(1 for _ in self._store.keys(f"out:{stage}:".encode())) for stage in stages}

    def mend(self) -> None:
        """After a commit failed because the disk was full: make the next commit possible. Call it between two pieces of
        work, because the failed commit may be stored after all, and batches begun before are refused.

        Raises:
            DiskFull: there is not enough space yet.
        """
        with self._write:
            if self._store.has_failed:
                self._store.mend()
                self._count()
                self._announce(self._in_doubt)
                self._in_doubt = set()
                self.secrets.reread()

    def close(self) -> None:
        """Release LevelDB, then the lock. Closing twice is harmless."""
        with self._write:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    # -- commits -------------------------------------------------------------------------------------------------

    def batch(self) -> Batch:
        """An empty commit to fill."""
        return Batch(self._store)

    def removal(self, batch: Batch) -> Removal:
        """What removes sessions and messages in this batch."""
        return Removal(self._store, self.objects, self.forgotten, batch)

    def erasure(self, pulse: Pulse) -> Erasure:
        """What erases the bytes of what was removed."""
        return Erasure(self._store, self._write, pulse)

    def commit(self, batch: Batch) -> None:
        """Write all of it, synced, or none of it.

        Raises:
            DiskFull: there is no space; fill a new batch after `mend`.
        """
        batch.finish()
        with self._write:
            batch.check_begun()
            counts = {name: self._counts.get(name, 0) + added for name, added in batch.counts.items()}
            counts |= self.objects.counted(batch.changes)
            is_record = any(not key.startswith(keys.NO_RECORDS) for key in batch.changes)
            counts["revision"] = self.revision + is_record
            # Counted here, not in the batch, because another thread may have emptied the outbox since the batch was
            # begun.
            waiting = Counter(dict.fromkeys(self._waiting, 0))
            for key, value in batch.changes.items():
                if key.startswith(keys.OUTBOX):
                    waiting[keys.stage(key)] += (value is not None) - (self._store.stored(key) is not None)
            try:
                self._store.write(batch.changes | {keys.COUNTS: records.dumps(counts)}, batch.fresh)
            except DiskFull:
                self._in_doubt |= batch.changes.keys()  # it may be there after `mend`
                raise
            self._counts = counts
            for stage, added in waiting.items():
                self._waiting[stage] += added
            self._announce(batch.changes)
            if any(key.startswith(keys.LARGE) for key in batch.changes):
                drop_unnamed(self._store, self.large_files)

    def _announce(self, written: Iterable[bytes]) -> None:
        """Invalidate sessions that are cached in memory.

        Called after the write, or a reader during it would cache the old state for good.
        """
        self._touched += [touched for key in written if (touched := keys.session_of_meta(key))]
        self._quarantine_changes += any(key.startswith(keys.QUARANTINE) for key in written)
        if any(key.startswith(keys.FORGOTTEN) for key in written):
            self.forgotten.reread()

    def commit_views(self, prefixes: Iterable[str], rows: Values, marks: Values, links: Values = NONE) -> None:
        """`rows` are now the end states at and beneath `prefixes`, `links` those of outdated folders, as of `marks`."""
        with self._write:  # no mark may be renewed between our check and its removal
            batch = self.batch()
            self.files.put_views(batch, prefixes, rows)
            self.files.put_links(batch, links)
            self.files.current(batch, marks)
            self.commit(batch)
            self.files.generation += 1

    # -- OpenCode's records --------------------------------------------------------------------------------------

    def session(self, session_id: str) -> Session | None:
        """The session, even if its source has deleted it."""
        entry = self._load(keys.session_meta(session_id))
        self.secrets.learn(session_id)
        return None if entry is None else _session(entry)

    def sessions(self) -> Iterator[Session]:
        """All sessions, by id."""
        for key, raw in self._store.scan(b"sess:"):
            if key.endswith(b":meta"):
                yield _session(records.load_object(raw))

    def sessions_touched(self, since: int = 0) -> tuple[int, list[str]]:
        """The next value for `since`, and the ids of the sessions whose own record was written since this one.

        Start with 0: sessions that existed when the archive was opened do not count as touched.
        """
        now = len(self._touched)
        return now, self._touched[since:now]

    def session_state(self, session_id: str) -> Json | None:
        """generation, sources, deleted (ms or null) of a session."""
        entry: Json | None = self._load(keys.session_meta(session_id))
        return entry and {name: entry[name] for name in ("generation", "sources", "deleted")}

    def message_ids(self, session_id: str) -> list[str]:
        """In conversation order."""
        return list(self._load(keys.session_order(session_id)) or ())

    def all_session_ids(self, begin: str = "") -> Iterator[str]:
        """Every session whose id begins so, by id, also one of which only messages are known."""
        names = (
            key.split(b":", 2)[1] for key in self._store.keys(b"sess:" + keys.escape(begin).encode("utf-8", "replace"))
        )
        return (keys.unescape(name.decode()) for name, _ in itertools.groupby(names))

    def all_message_ids(self, begin: str = "") -> Iterator[str]:
        """Every message whose id begins so, by id."""
        for key in self._store.keys(b"msg:" + keys.escape(begin).encode("utf-8", "replace")):
            if key.endswith(b":hash"):
                yield keys.unescape(key.decode()[4:-5])

    def message(self, message_id: str) -> Message | None:
        """The message with its parts in order, each in its current version (merge)."""
        raw, state = self._store.get(keys.message_raw(message_id)), self.state(message_id)
        if raw is None or state is None:
            return None
        self.secrets.learn(state["session"])
        return records.message(raw, parts_of(self._store, message_id, state), state["session"])

    def messages(self, session_id: str) -> Iterator[Message]:
        """A session's messages in conversation order."""
        for message_id in self.message_ids(session_id):
            message = self.message(message_id)
            if message is not None:
                yield message

    def versions(self, message_id: str) -> list[bytes]:
        """Raw records of this message and its parts that are not current and have content of their own."""
        return [raw for _, raw in self.versions_of(message_id)]

    def versions_of(self, message_id: str) -> Iterator[tuple[bytes, bytes]]:
        """The same with their keys: the message's own first."""
        yield from self._store.scan(keys.message_versions(message_id))
        yield from self._store.scan(keys.part_versions(message_id))

    def state(self, message_id: str) -> Json | None:
        """hash, session, created, generation, sources, deleted, parts, gone, edits of a message."""
        state: Json | None = self._load(keys.message_state(message_id))
        return state

    def gone(self, message_id: str) -> frozenset[str]:
        """The ids of archived parts that the message's source has dropped."""
        return frozenset((self.state(message_id) or {}).get("gone", ()))

    def large(self) -> list[Json]:
        """The records that are stored whole as files (session_records.large_records)."""
        return large_records(self._store, self.large_files)

    def is_deleted(self, message_id: str) -> bool:
        """Whether no source has it any longer."""
        state = self.state(message_id)
        return state is not None and state["deleted"] is not None

    # -- files ---------------------------------------------------------------------------------------------------

    def paths(self, prefix: str = "/") -> Iterator[str]:
        """Recorded absolute paths equal to `prefix` or beneath it, sorted."""
        return self.files.paths(prefix)

    # -- the outbox ----------------------------------------------------------------------------------------------

    def outbox(self, stage: str, limit: int) -> list[tuple[str, bytes, bytes]]:
        """The newest messages waiting for `stage`: (message id, key, value); pass the entries to `done`."""
        entries = []
        for key, value in self._store.scan(f"out:{stage}:".encode()):
            entries.append((keys.unescape(key.decode().rsplit(":", 1)[1]), key, value))
            if len(entries) >= limit:
                break
        return entries

    def done(self, entries: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Remove entries from the outbox, except those whose message has changed since."""
        with self._write:
            batch = self.batch()
            for _, key, value in entries:
                if self._store.get(key) == value:
                    batch.delete(key)
            self.commit(batch)

    def waiting(self, stage: str) -> int:
        """How many messages wait for `stage`; 0 if the configuration disables it."""
        return 0 if stage in self.off else self._waiting[stage]

    def enqueue_all(self, stage: str) -> int:
        """Put every message into the outbox of one stage again, to rebuild an index."""
        total = 0
        batch = self.batch()
        for message_id in self.all_message_ids():
            state = self.state(message_id)
            if state is None:
                continue
            batch.enqueue_in(stage, message_id, state["created"], state["hash"])
            total += 1
            if len(batch) >= 500:
                self.commit(batch)
                batch = self.batch()
        self.commit(batch)
        return total

    # -- cursors and quarantine ----------------------------------------------------------------------------------

    def marks(self, source: str, session_id: str) -> dict[str, str]:
        """The cursor of one session in one source: unit -> stamp ("" is the session's own record)."""
        prefix = keys.cursor_prefix(source, session_id)
        return {keys.unescape(key[len(prefix) :].decode()): value.decode() for key, value in self._store.scan(prefix)}

    def marked_sessions(self, source: str) -> set[str]:
        """Sessions of this source at the last scan."""
        prefix = keys.cursor_prefix(source)
        return {
            keys.unescape(key[len(prefix) :].decode().split(":", 1)[0]) for key in self._store.keys(prefix)
        } - {""}  # fmt: skip

    def quarantined(self, source: str = "") -> dict[str, Json]:
        """Unreadable records: place -> entry."""
        prefix = keys.QUARANTINE + (keys.escape(source).encode() + b":" if source else b"")
        return {
            keys.unescape(key.decode().rsplit(":", 1)[1]): records.load_object(raw)
            for key, raw in self._store.scan(prefix)
        }

    @property
    def quarantine_changes(self) -> int:
        """Grows whenever what could not be read becomes more, less or other."""
        return self._quarantine_changes

    def unknown_types(self) -> dict[str, int]:
        """Part types that no version of ours knew when they were read: type -> number of messages."""
        counts: dict[str, int] = {}
        for key in self._store.keys(b"unk:"):
            type_ = keys.unescape(key.decode().split(":")[1])
            counts[type_] = counts.get(type_, 0) + 1
        return counts

    def stored_rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything in LevelDB at one moment, for a backup (Store.stored_rows)."""
        return self._store.stored_rows()

    def backup_before_migration(self) -> Path | None:
        """The folder with the backup that was made before the last migration, while it is there."""
        return backup_before(self._store, self.directory)

    # -- figures -------------------------------------------------------------------------------------------------

    def verify(self, on_page: OnPage | None = None) -> Verified:
        """Read a sample of the archive; with `on_page` all of it, large files too (verify). Raises ArchiveCorrupt."""
        return verify(self._store, self.large_files, on_page)

    def figures(self) -> Json:
        """sessions, messages, parts, bytes on disk."""
        counts = {name: self._counts.get(name, 0) for name in ("sessions", "messages", "parts")}
        return counts | {"bytes": self._store.bytes_on_disk()}

    @property
    def revision(self) -> int:
        """Grows with each commit that changes what is recorded: equal numbers, equal records."""
        return self._counts.get("revision", 0)

    def message_count(self) -> int:
        """How many messages there are; unlike `figures` it does not look at the files, which are many."""
        return self._counts.get("messages", 0)


def _session(entry: Json) -> Session:
    return Session(
        id=entry["id"],
        project_id=entry["project_id"],
        directory=entry["directory"],
        title=entry["title"],
        created=entry["created"],
        updated=entry["updated"],
        raw=entry["raw"].encode(),
        parent_id=entry["parent_id"],
        archived=entry["archived"],
        version=entry["version"],
    )
