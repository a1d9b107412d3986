"""Scans one session of one source into the archive: everything new, changed or gone since the cursor.

Every commit contains the records, file edits, outbox entries and cursor of the same messages. The listing decides what
we read, and the content decides what has changed. An unreadable record is quarantined with the reason; an unfinished
one is left for the next scan.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from daemon import log, records
from daemon.archive import STAGES, Archive, keys
from daemon.archive.forgotten import LARGE, MESSAGE, SESSION
from daemon.errors import BadRecord, ReconstituteError, SourceBusy, Unreadable
from daemon.exclude import AGENTS, Exclusion
from daemon.ingest.absence import gone
from daemon.ingest.evidence import Evidence
from daemon.ingest.scan_result import ScanResult, SessionCounts
from daemon.ingest.screened_source import ScreenedSource
from daemon.ingest.session_exclusion import COUNTED, SESSIONS_BY_AGENTS, SESSIONS_BY_PROJECTS, SessionExclusion
from daemon.ingest.versions import Origin, combine, has_changed, is_own
from daemon.model import Json, Message, Session
from daemon.opencode import Problem, Reading, Source, Unit
from daemon.transcript.replay import unknown_types

_LOG = log.get("intake")
_BATCH_BYTES = 4 << 20
_BATCH_MESSAGES = 200
_DOUBT_MS = 2000
"""A message changed this shortly before it was listed may change again under the same stamp: read it again (S2)."""

_PATIENCE_S = 5.0
"""A message that keeps changing is archived this often, as it is."""


@dataclass(frozen=True, slots=True)
class ScanContext:
    """The objects that every session's scan needs."""

    archive: Archive
    evidence: Evidence
    quiet_s: float
    record_mb: int
    clock: Callable[[], float] = time.time
    exclusion: Exclusion = field(default_factory=Exclusion)
    begun: dict[str, float] = field(default_factory=dict)
    """Message id -> when it was first seen unfinished."""

    def now(self) -> int:
        """The time in epoch milliseconds."""
        return int(self.clock() * 1000)


class SessionScan:
    """One scan of one session; use it once. `result` has the outcome."""

    def __init__(self, context: ScanContext, source: Source, session_id: str, *, patient: bool) -> None:
        """`patient`: an unfinished message is left for the next scan."""
        self._context = context
        self._archive = context.archive
        self._source = ScreenedSource(source, context.exclusion, context.archive.forgotten)
        self._exclusion = SessionExclusion(context.exclusion, self._source, session_id)
        self._excluded: Counter[str] = Counter()
        self._name = source.name
        self._id = session_id
        self._patient = patient
        self._batch = self._archive.batch()
        self._session: Session | None = None
        self._units: Mapping[str, Unit] = {}
        self._is_whole = True
        self._listed = 0
        self.result = ScanResult()

    def run(self, pulse: Callable[[], None]) -> SessionCounts | None:
        """Scan the session; returns None if it could not be listed, or if nothing says yet whether it is ours.

        `pulse` is called after each commit of a long one.
        """
        # OpenCode deletes a session's record last. So if we read it first, it exists as long as a message is listed,
        # and with it the title by which we recognise our own sessions.
        session = self._read_session()
        self._source.session = session or self._session
        self._listed = self._context.now()
        folder = self._source.session.directory if self._source.session is not None else ""
        if self._context.exclusion.project(folder):
            return SessionCounts(0, 0, {SESSIONS_BY_PROJECTS: 1})
        # A refused record may have a title that says that it is ours, and what is archived once stays archived.
        is_unknown = self._source.session is None and bool(self.result.refused)
        if is_unknown or not self._list():
            self._archive.commit(self._batch)
            return None
        if self._exclusion.by_project(folder, self._units):
            return SessionCounts(0, 0, {SESSIONS_BY_PROJECTS: 1})
        marks = self._archive.marks(self._name, self._id)
        has_agent = self._exclusion.has_agent(self._units, marks)
        if has_agent and self._session is None and next(self._read_messages(), None) is None:
            return SessionCounts(len(self._units), 0, {SESSIONS_BY_AGENTS: 1})
        if self._session is None and self._is_left_out(session):
            self.result = ScanResult()
            return SessionCounts(len(self._units), 0)
        if session is not None:
            self._record_session(self._context.exclusion.untitled(session) if has_agent else session)
        count = self._scan_messages(marks, pulse)
        if self._is_whole:
            missing = marks.keys() - self._units.keys() - {""}
            self._forget(gone(self._source, "message", missing, partial(self._note, f"messages of {self._id}")))
        session = self._archive.session(self._id) or self._session
        if session is not None:
            self._beside_messages(session)
        if len(self._batch):
            self._archive.commit(self._batch)
        return SessionCounts(len(self._units), count, self._excluded)

    def _list(self) -> bool:
        """Whether the session's messages could be listed."""
        try:
            units = self._source.messages(self._id)
        except BadRecord as error:
            self._note(f"messages of {self._id}", error)
            return False
        self._is_whole = units.is_whole
        place = f"messages of {self._id}"
        self._note(place, (BadRecord if units.is_whole else Unreadable)(units.problem) if units.problem else None)
        forgotten = self._archive.forgotten
        self._units = {name: unit for name, unit in units.items() if not forgotten.has(MESSAGE, name)}
        return True

    def forget(self) -> int:
        """The source no longer has the session; returns how many records lost their last source."""
        for kind in ("session", "messages of", "session_diff of", "todo list of", "reverts of"):
            self._batch.release(self._name, f"{kind} {self._id}")
        self._forget(self._archive.marks(self._name, self._id))
        self.result.removed += self._batch.forget_session_source(self._id, self._name, self._context.now())
        self._archive.commit(self._batch)
        return self.result.removed

    def _forget(self, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            self._batch.mark(self._name, self._id, message_id, None)
            if message_id:
                self._batch.release(self._name, f"message {message_id}")
                self.result.removed += self._batch.forget_message_source(message_id, self._name, self._context.now())

    def _beside_messages(self, session: Session) -> None:
        evidence = self._context.evidence
        is_new = evidence.of_session(self._batch, self._source, session, self._stored_and_new, self._note)
        is_new |= evidence.of_todos(self._batch, self._source, self._id, self._note)
        if is_new:
            self._concerns(session)

    def _concerns(self, session: Session) -> None:
        """Note a change beside the messages, which concerns the session's directory and every path it touched."""
        self.result.places |= self._batch.places(self._id) | ({session.directory} - {""})

    def _is_left_out(self, session: Session | None) -> bool:
        """Whether a session that is not archived is ours, has nothing but events, or goes with a forgotten one."""
        if session is not None and self._archive.forgotten.has_session(session.id, session.parent_id):
            self._archive.forgotten.add(self._batch, SESSION, session.id)  # so that what it starts is left out too
            self._archive.commit(self._batch)
            return True
        if session is not None and session.raw == b"{}" and all(unit.is_event for unit in self._units.values()):
            return True
        return is_own(session, self._read_messages())

    def _read_session(self) -> Session | None:
        """The source's current record; None, and noted in the result, if it cannot be read."""
        self._session = self._archive.session(self._id)
        try:
            return self._source.read_session(self._id)
        except (BadRecord, SourceBusy) as error:
            self._note(f"session {self._id}", error)
        return None

    def _record_session(self, session: Session) -> None:
        before = self._session
        self._batch.release(self._name, f"session {self._id}")
        if session.raw == b"{}" and before is not None:
            # No record at the source: made from the messages, or the session is just being created or deleted. The
            # archived record has more, and the source has deleted it.
            self._batch.forget_session_source(self._id, self._name, self._context.now())
            return
        self._session = session
        if self._batch.session(session, self._name, self._source.generation):
            self.result.changed += 1
            if before is not None and has_changed(before, session):
                self._concerns(session)
            if before is not None and before.title != session.title:
                self._reindex_title()
        self._batch.mark(self._name, self._id, "", "seen")

    def _reindex_title(self) -> None:
        """Index again what contains the title: the first message, and in the lexical index every message."""
        for number, message_id in enumerate(self._archive.message_ids(self._id)):
            state = self._archive.state(message_id)
            if state is None:
                continue
            for stage in STAGES if number == 0 else ("lexical",):
                self._batch.enqueue_in(stage, message_id, state["created"], state["hash"])

    # -- messages ------------------------------------------------------------------------------------------------

    def _scan_messages(self, marks: Mapping[str, str], pulse: Callable[[], None]) -> int:
        """Archive messages that are new or changed since `marks`; returns how many are archived now."""
        count = waiting = 0
        altered: list[str] = []
        for message_id, unit in self._units.items():
            mark = marks.get(message_id, "")
            if mark == unit.stamp:  # as nearly all are
                count += 1
                continue
            mark, reasons = self._exclusion.read_mark(mark)
            if mark == unit.stamp or mark in (self._failed(unit), self._failed(unit, partly=True)):
                count += not mark.startswith("!") and AGENTS not in reasons
                self._excluded.update(COUNTED[reason] for reason in reasons)
            else:
                altered.append(message_id)
        for message_id, read in self._source.readings(self._id, altered):
            if self._scan_message(message_id, self._units[message_id], read):
                count += 1
                waiting += 1
            if self._batch.size > _BATCH_BYTES or waiting >= _BATCH_MESSAGES:
                self._archive.commit(self._batch)
                self._batch, waiting = self._archive.batch(), 0
                pulse()
        return count

    def _scan_message(self, message_id: str, unit: Unit, read: Callable[[], Reading]) -> bool:
        """Archive one message; False if it must wait or cannot be read."""
        try:
            reading = read()
        except SourceBusy:
            self.result.postponed.add(self._id)
            return False
        except ReconstituteError:
            raise
        except Exception as error:  # noqa: BLE001 - a record of an unexpected shape must not stop the others
            reading = _unforeseen(message_id, error)
        if reading.event:
            self._archive.beside.put_event(self._batch, self._id, message_id, reading.event)
            self._batch.release(self._name, f"message {message_id}")
            self._batch.mark(self._name, self._id, message_id, unit.stamp)
            return True
        if self._patient and reading.message is not None and self._is_moving(reading.message, unit):
            self.result.moving.add(self._id)
            return False
        self._set_aside(message_id, unit, reading)
        self._excluded.update(COUNTED[reason] for reason in reading.excluded)
        waits = "?" if any(problem.waits for problem in reading.problems) else ""
        if waits:
            self.result.refused.add(self._id)
        prefix = self._exclusion.prefix(reading.excluded)
        if reading.message is None:
            mark = unit.stamp if AGENTS in reading.excluded else self._failed(unit)
            self._batch.mark(self._name, self._id, message_id, prefix + mark + waits)
            return False
        self.result.changed += self._store(
            reading.message, unit, orphan=reading.orphan, is_whole=not any(p.waits for p in reading.problems)
        )
        # Judged by the time of the listing: it may take long from reading a record to archiving it.
        doubt = waits or ("?" if self._listed - unit.changed < _DOUBT_MS else "")
        mark = self._failed(unit, partly=True) if reading.problems else unit.stamp
        self._batch.mark(self._name, self._id, message_id, prefix + mark + doubt)
        return True

    def _stored_and_new(self) -> Iterator[Message]:
        """The session's messages in its source, then those in the archive."""
        yield from self._read_messages()
        yield from self._archive.messages(self._id)

    def _read_messages(self) -> Iterator[Message]:
        """The session's readable messages in its source."""
        for message_id in self._units:
            try:
                message = self._source.read_message(self._id, message_id).message
            except (SourceBusy, BadRecord):
                continue  # reported when the message itself is scanned
            except ReconstituteError:
                raise
            except Exception:  # noqa: BLE001 - an unexpected shape, as above
                _LOG.debug("passed over", source=self._name, message=message_id)
                continue
            if message is not None:
                yield message

    def _failed(self, unit: Unit, *, partly: bool = False) -> str:
        """The cursor of a message that was not read, or only partly, so that a larger limit reads it again."""
        return f"{'~' if partly else '!'}{self._context.record_mb}!{unit.stamp}"

    def _is_moving(self, message: Message, unit: Unit) -> bool:
        """Whether it is unfinished and just changed, because OpenCode rewrites a text part for every token."""
        if message.is_complete or (self._context.now() - unit.changed) / 1000 >= self._context.quiet_s:
            self._context.begun.pop(message.id, None)
            return False
        first = self._context.begun.setdefault(message.id, self._context.clock())
        if self._context.clock() - first < _PATIENCE_S:
            return True
        self._context.begun[message.id] = self._context.clock()
        return False

    def _set_aside(self, message_id: str, unit: Unit, reading: Reading) -> None:
        place = f"message {message_id}"
        if not reading.problems:
            self._batch.release(self._name, place)
            return
        entry: Json = {
            "reason": "; ".join(problem.reason for problem in reading.problems[:5]),
            "records": [
                {"place": p.place, "reason": p.reason, "size": p.size, "sha256": p.sha256} for p in reading.problems
            ],
        }
        self._quarantine(place, entry)
        for problem in reading.problems:
            if problem.is_kept:
                self._name_large(message_id, unit, problem)

    def _name_large(self, message_id: str, unit: Unit, problem: Problem) -> None:
        """Note which record is in the file; of several sources the newest version counts, as for smaller records."""
        if self._archive.forgotten.has(LARGE, message_id, problem.part_id):
            self._batch.drop(keys.large(message_id, problem.part_id))  # with it the file that was just written
            return
        origin = self._origin(unit)
        named = self._batch.large(message_id, problem.part_id)
        if named is None or origin.follows(Origin(*named["origin"])):
            kept = {"sha256": problem.sha256, "bytes": problem.size, "place": problem.place, "origin": list(origin)}
            self._batch.put_large(message_id, problem.part_id, kept)

    def _note(self, place: str, error: BadRecord | SourceBusy | None) -> None:
        """Note that a record cannot be read; or with None, that it was read."""
        if error is None:
            self._batch.release(self._name, place)
            return
        if isinstance(error, SourceBusy):
            self.result.postponed.add(self._id)
            return
        if isinstance(error, Unreadable):
            self.result.refused.add(self._id)
        self._quarantine(place, {"reason": str(error)})

    def _quarantine(self, place: str, entry: Json) -> None:
        """Note that a record cannot be read, and log it once."""
        self.result.quarantined += len(entry.get("records", (place,)))
        if (self._archive.quarantined(self._name).get(place) or {}).get("reason") == entry["reason"]:
            return  # what cannot be read is tried at every look, and nothing is written for that
        _LOG.warning("set aside", source=self._name, place=place, reason=entry["reason"])
        self._batch.quarantine(self._name, place, entry | {"time": self._context.now()})

    def _store(self, message: Message, unit: Unit, *, orphan: bool, is_whole: bool) -> bool:
        """Put the message into the batch; returns whether its content was new. Not `is_whole`: parts were refused."""
        hash_ = records.message_digest(message)
        state = self._archive.state(message.id)
        if state is not None and state["hash"] == hash_:
            self._batch.keep_source(message.id, self._name)
        else:
            self._merge(message, unit, hash_, state, is_whole=is_whole)
        if orphan:  # the source removed the message and left its parts
            self._batch.tombstone(message.id, self._context.now())
        return state is None or state["hash"] != hash_

    def _merge(self, message: Message, unit: Unit, hash_: str, state: Json | None, *, is_whole: bool) -> None:
        stored = self._archive.message(message.id) if state is not None else None
        combined = combine(stored, state, message, self._origin(unit), hash_)
        known = set((state or {}).get("gone", ()))
        dropped = set(combined.gone) - known
        if dropped:
            note = partial(self._note, f"message {message.id}")
            dropped = gone(self._source, "part", dropped, note) if is_whole else set()
            combined = replace(combined, gone=sorted(known & set(combined.gone) | dropped))
        whole = combined.message
        is_same = stored is not None and records.same(whole, stored)
        if is_same and not combined.versions and combined.gone == (state or {}).get("gone"):
            self._batch.keep_source(message.id, self._name)
            return
        changes = self._context.evidence.of_message(self._batch, whole, self._session, self._stored_and_new)
        if self._session is not None and self._session.directory:
            self.result.places.add(self._session.directory)
        self.result.places |= self._batch.message(
            whole,
            source=self._name,
            generation=combined.generation,
            hash_=combined.hash_,
            edits=changes,
            versions=combined.versions,
            gone=combined.gone,
            origins=combined.origins,
            unknown=unknown_types(whole),
        )

    def _origin(self, unit: Unit) -> Origin:
        return Origin(self._source.generation, unit.changed, self._name)


def _unforeseen(message_id: str, error: Exception) -> Reading:
    reason = f"message {message_id}: not understood ({type(error).__name__}: {error}); please report it"
    return Reading(None, (Problem(f"message {message_id}", reason, waits=isinstance(error, OSError)),))
