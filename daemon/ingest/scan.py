"""From a source into the archive: what is new, altered or gone since the cursor.

Every commit holds records, replay, file edits, outbox entries and the cursor of the same messages. Listing decides what
to read, content decides what changed. A record that cannot be read is set aside with the reason and the pass goes on;
one that is being written is left for the next pass. Our own sessions with a model are seen, counted and left out; one
that is in the archive already stays the user's, whatever its title becomes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from daemon import log, records
from daemon.archive import STAGES, Archive, Batch
from daemon.errors import BadRecord, ReconstituteError, SourceBusy
from daemon.filesystem import disk_space
from daemon.ingest.evidence import Evidence
from daemon.ingest.own import is_own
from daemon.ingest.taken import Taken
from daemon.ingest.versions import Origin, combine
from daemon.model import Json, Message, Parts, Session, SourceCounts
from daemon.opencode import Problem, Reading, Source, Unit
from daemon.redact import redact_value
from daemon.transcript.replay import replay, unknown_types

_LOG = log.get("intake")
_BATCH_BYTES = 4 << 20
_BATCH_MESSAGES = 200
_DOUBT_MS = 2000
"""A unit that changed this recently may change again within the resolution of its stamp: look again next time (S2)."""

_PATIENCE_S = 5.0
"""A message that never comes to rest is taken in this often, as far as it has got."""

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Visit:
    """One session of one source, while it is being looked at."""

    source: Source
    session_id: str
    patient: bool
    batch: Batch
    taken: Taken
    session: Session | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.source.name


class Intake:
    """Owns the cursor's moves. One at a time; call from one thread."""

    def __init__(
        self,
        archive: Archive,
        *,
        quiet_s: float,
        free_mb: int,
        record_mb: int = 64,
        evidence: Evidence,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._archive = archive
        self._evidence = evidence
        self._quiet_s = quiet_s
        self._free_mb = free_mb
        self._record_mb = record_mb
        self._clock = clock
        self._begun: dict[str, float] = {}  # message id -> when it was first seen unfinished
        self._figures: dict[str, dict[str, tuple[int, int]]] = {}  # source -> session -> (seen, kept)
        self.last_scan: dict[str, int] = {}

    def take(
        self,
        source: Source,
        only: Iterable[str] | None = None,
        *,
        patient: bool = True,
        progress: Progress | None = None,
    ) -> Taken:
        """One pass over `only` these sessions, or over all.

        With `patient` false, what is being written is taken as it is (a single run must not leave it behind).
        `progress` is told (sessions done, of how many) after each session and each commit of a long one; it may raise.

        Raises:
            SourceMissing: the source is gone; nothing was concluded from that.
            DiskFull: the disk is nearly full; nothing was taken.
        """
        disk_space.check(self._archive.directory, self._free_mb, "nothing is read")
        total = Taken()
        listed = None if only is not None else source.sessions()
        sessions = sorted(only) if only is not None else sorted(listed or ())
        for number, session_id in enumerate(sessions):

            def pulse(done: int = number) -> None:
                if progress is not None:
                    progress(done, len(sessions))

            total += self._session(source, session_id, patient=patient, pulse=pulse)
            pulse(number + 1)
        if listed is not None:
            gone = self._archive.marked_sessions(source.name) - set(listed)
            for session_id in sorted(gone):
                total.removed += self._lost_session(source, session_id)
            self._figures[source.name] = {
                name: counts for name, counts in self._figures.get(source.name, {}).items() if name in listed
            }
            self._evidence.of_projects(source)
            self.last_scan[source.name] = int(self._clock() * 1000)
        return total

    def counts(self, source: Source) -> SourceCounts:
        """Messages seen, kept and skipped since the start, unknown part types and quarantine for ever."""
        figures = list(self._figures.get(source.name, {}).values())  # the intake goes on meanwhile
        seen, kept = sum(s for s, _ in figures), sum(k for _, k in figures)
        return SourceCounts(
            seen, kept, seen - kept, self._archive.unknown_types(), len(self._archive.quarantined(source.name))
        )

    def set_aside(self, source: Source, most: int) -> list[Json]:
        """What could not be read there, the latest first: ``{"place", "reason", "time"}``."""
        found = [{"place": place, **entry} for place, entry in self._archive.quarantined(source.name).items()]
        found.sort(key=lambda entry: -entry.get("time", 0))
        return [{name: redact_value(entry.get(name)) for name in ("place", "reason", "time")} for entry in found[:most]]

    # -- one session ---------------------------------------------------------------------------------------------

    def _session(self, source: Source, session_id: str, *, patient: bool, pulse: Callable[[], None]) -> Taken:
        visit = _Visit(source, session_id, patient, self._archive.batch(), Taken())
        try:
            units = visit.units = source.messages(session_id)
        except BadRecord as error:
            self._quarantine(visit, f"session {session_id}", {"reason": str(error)})
            self._archive.commit(visit.batch)
            return visit.taken
        session = self._read_session(visit)
        if visit.session is None and self._is_left_out(visit, session):
            self._figures.setdefault(source.name, {})[session_id] = (len(units), 0)
            return Taken()
        if session is not None:
            self._record_session(visit, session)
        marks = self._archive.marks(source.name, session_id)
        kept = 0
        waiting = 0
        for message_id, unit in units.items():
            mark = marks.get(message_id, "")
            if mark in (unit.stamp, self._failed(unit), self._failed(unit, partly=True)):
                kept += not mark.startswith("!")
                continue
            if self._message(visit, message_id, unit):
                kept += 1
                waiting += 1
            if visit.batch.size > _BATCH_BYTES or waiting >= _BATCH_MESSAGES:
                self._archive.commit(visit.batch)
                visit.batch, waiting = self._archive.batch(), 0
                pulse()
        self._forget(visit, marks.keys() - units.keys() - {""})
        session = self._archive.session(session_id) or visit.session
        if session is not None:
            self._beside_messages(visit, session)
        if len(visit.batch):
            self._archive.commit(visit.batch)
        self._figures.setdefault(source.name, {})[session_id] = (len(units), kept)
        return visit.taken

    def _forget(self, visit: _Visit, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            visit.batch.mark(visit.name, visit.session_id, message_id, None)
            if message_id:
                visit.batch.release(visit.name, f"message {message_id}")
                visit.taken.removed += visit.batch.forget_message_source(message_id, visit.name, self._now())

    def _beside_messages(self, visit: _Visit, session: Session) -> None:
        is_new = self._evidence.of_session(visit.batch, visit.source, session, partial(self._peek, visit))
        try:
            is_new |= self._evidence.of_todos(visit.batch, visit.source, visit.session_id, self._now())
        except SourceBusy:
            visit.taken.postponed.add(visit.session_id)
        if is_new:
            self._concerns(visit, session)

    def _concerns(self, visit: _Visit, session: Session) -> None:
        """What is said of a session, beside its messages, concerns its directory and whatever it touched."""
        visit.taken.places |= visit.batch.places(visit.session_id) | ({session.directory} - {""})

    def _is_left_out(self, visit: _Visit, session: Session | None) -> bool:
        """Whether a session that is not archived is ours, or one of which this source has nothing but events."""
        if session is not None and session.raw == b"{}" and all(unit.is_event for unit in visit.units.values()):
            return True
        return is_own(session, self._read_messages(visit))

    def _read_session(self, visit: _Visit) -> Session | None:
        """The record at the source; None, and noted, when it cannot be read now. `visit` gets what the archive has."""
        visit.session = self._archive.session(visit.session_id)
        try:
            return visit.source.read_session(visit.session_id)
        except SourceBusy:
            visit.taken.postponed.add(visit.session_id)
        except BadRecord as error:
            self._quarantine(visit, f"session {visit.session_id}", {"reason": str(error)})
        return None

    def _record_session(self, visit: _Visit, session: Session) -> None:
        before = visit.session
        visit.batch.release(visit.name, f"session {visit.session_id}")
        if session.raw == b"{}" and before is not None:
            # No record at the source: made up from the messages, or a session that is just being made or deleted. What
            # the archive has says more, and the source has deleted it.
            visit.batch.forget_session_source(visit.session_id, visit.name, self._now())
            return
        visit.session = session
        if visit.batch.session(session, visit.name, visit.source.generation):
            visit.taken.changed += 1
            if before is not None and _is_told_otherwise(before, session):
                self._concerns(visit, session)
            if before is not None and before.title != session.title:
                self._reindex_title(visit)
        visit.batch.mark(visit.name, visit.session_id, "", "seen")

    def _reindex_title(self, visit: _Visit) -> None:
        """The title is searched with the session's first message, and by words with each."""
        for number, message_id in enumerate(self._archive.message_ids(visit.session_id)):
            state = self._archive.state(message_id)
            if state is None:
                continue
            for stage in STAGES if number == 0 else ("lexical",):
                visit.batch.enqueue_in(stage, message_id, state["created"], state["hash"])

    def _lost_session(self, source: Source, session_id: str) -> int:
        visit = _Visit(source, session_id, False, self._archive.batch(), Taken())
        visit.batch.release(source.name, f"session {session_id}")
        self._forget(visit, self._archive.marks(source.name, session_id))
        visit.taken.removed += visit.batch.forget_session_source(session_id, source.name, self._now())
        self._archive.commit(visit.batch)
        return visit.taken.removed

    # -- one message ---------------------------------------------------------------------------------------------

    def _message(self, visit: _Visit, message_id: str, unit: Unit) -> bool:
        """Take one message in; False when it has to wait or cannot be read."""
        try:
            reading = visit.source.read_message(visit.session_id, message_id)
        except SourceBusy:
            visit.taken.postponed.add(visit.session_id)
            return False
        except ReconstituteError:
            raise
        except Exception as error:  # noqa: BLE001 - a record of a shape nobody foresaw must not stop all the others
            reading = _unforeseen(message_id, error)
        if reading.event:
            self._archive.beside.put_event(visit.batch, visit.session_id, message_id, reading.event)
            visit.batch.release(visit.name, f"message {message_id}")
            visit.batch.mark(visit.name, visit.session_id, message_id, unit.stamp)
            return True
        if visit.patient and reading.message is not None and self._is_moving(reading.message, unit):
            visit.taken.postponed.add(visit.session_id)
            return False
        self._begun.pop(message_id, None)
        self._set_aside(visit, message_id, unit, reading)
        waits = "?" if any(problem.waits for problem in reading.problems) else ""
        if reading.message is None:
            visit.batch.mark(visit.name, visit.session_id, message_id, self._failed(unit) + waits)
            return False
        visit.taken.changed += self._store(visit, reading.message, unit, orphan=reading.orphan)
        doubt = "?" if self._now() - unit.changed < _DOUBT_MS else ""
        doubt = waits or doubt
        mark = self._failed(unit, partly=True) if reading.problems else unit.stamp
        visit.batch.mark(visit.name, visit.session_id, message_id, mark + doubt)
        return True

    def _peek(self, visit: _Visit) -> Iterator[Message]:
        """The session's messages as its source has them now, then as the archive has them."""
        yield from self._read_messages(visit)
        yield from self._archive.messages(visit.session_id)

    def _read_messages(self, visit: _Visit) -> Iterator[Message]:
        """The session's messages as its source has them now, those that can be read."""
        for message_id in visit.units:
            try:
                found = visit.source.read_message(visit.session_id, message_id).message
            except (SourceBusy, BadRecord):
                continue  # it is read, and reported, in its own turn
            except ReconstituteError:
                raise
            except Exception:  # noqa: BLE001 - as above: a shape nobody foresaw
                _LOG.debug("passed over", source=visit.name, message=message_id)
                continue
            if found is not None:
                yield found

    def _failed(self, unit: Unit, *, partly: bool = False) -> str:
        """The mark of a message that could not be read, or not all of it; with a larger limit it is tried again."""
        return f"{'~' if partly else '!'}{self._record_mb}!{unit.stamp}"

    def _is_moving(self, message: Message, unit: Unit) -> bool:
        """Whether it is unfinished and has changed a moment ago: a text part is rewritten for every token."""
        if message.is_complete or (self._now() - unit.changed) / 1000 >= self._quiet_s:
            return False
        first = self._begun.setdefault(message.id, self._clock())
        if self._clock() - first < _PATIENCE_S:
            return True
        self._begun[message.id] = self._clock()
        return False

    def _set_aside(self, visit: _Visit, message_id: str, unit: Unit, reading: Reading) -> None:
        place = f"message {message_id}"
        if not reading.problems:
            visit.batch.release(visit.name, place)
            return
        entry: Json = {
            "reason": "; ".join(problem.reason for problem in reading.problems[:5]),
            "records": [
                {"place": p.place, "reason": p.reason, "size": p.size, "sha256": p.sha256} for p in reading.problems
            ],
        }
        self._quarantine(visit, place, entry)
        for problem in reading.problems:
            if problem.is_kept:
                self._name_large(visit, message_id, unit, problem)

    def _name_large(self, visit: _Visit, message_id: str, unit: Unit, problem: Problem) -> None:
        """Say of which record the file is; of several sources the newest version counts, as for smaller records."""
        origin = _origin(visit, unit)
        named = visit.batch.large(message_id, problem.part_id)
        if named is None or origin.follows(Origin(*named["origin"])):
            kept = {"sha256": problem.sha256, "bytes": problem.size, "place": problem.place, "origin": list(origin)}
            visit.batch.put_large(message_id, problem.part_id, kept)

    def _quarantine(self, visit: _Visit, place: str, entry: Json) -> None:
        """Keep aside that something there cannot be read, and say so once."""
        if (self._archive.quarantined(visit.name).get(place) or {}).get("reason") != entry["reason"]:
            _LOG.warning("set aside", source=visit.name, place=place, reason=entry["reason"])
        visit.taken.quarantined += len(entry.get("records", (place,)))
        visit.batch.quarantine(visit.name, place, entry | {"time": self._now()})

    def _store(self, visit: _Visit, message: Message, unit: Unit, *, orphan: bool) -> bool:
        """Put the message into the batch; whether its content was new."""
        hash_ = records.message_digest(message)
        state = self._archive.state(message.id)
        if state is not None and state["hash"] == hash_:
            visit.batch.keep_source(message.id, visit.name)
        else:
            self._merge(visit, message, unit, hash_, state)
        if orphan:  # only its parts are left: the source removed the message
            visit.batch.tombstone(message.id, self._now())
        return state is None or state["hash"] != hash_

    def _merge(self, visit: _Visit, message: Message, unit: Unit, hash_: str, state: Json | None) -> None:
        stored = self._archive.message(message.id) if state is not None else None
        made = combine(stored, state, message, _origin(visit, unit), hash_)
        whole = made.message
        is_same = stored is not None and records.same(whole, stored)
        if is_same and not made.versions and made.gone == (state or {}).get("gone"):
            visit.batch.keep_source(message.id, visit.name)
            return
        changes = self._evidence.of_message(visit.batch, whole, visit.session, partial(self._peek, visit))
        if visit.session is not None and visit.session.directory:
            visit.taken.places.add(visit.session.directory)
        visit.taken.places |= visit.batch.message(
            whole,
            source=visit.name,
            generation=made.generation,
            hash_=made.hash_,
            replay=None if isinstance(whole.parts, Parts) else replay(whole),
            edits=changes,
            versions=made.versions,
            gone=made.gone,
            origins=made.origins,
            unknown=unknown_types(whole),
        )

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _is_told_otherwise(before: Session, session: Session) -> bool:
    """Whether pages may tell otherwise of a session, even without another message of it."""
    if (before.title, before.directory, before.archived) != (session.title, session.directory, session.archived):
        return True
    was, now = (records.load_object(one.raw).get("revert") for one in (before, session))
    return bool(was != now)


def _origin(visit: _Visit, unit: Unit) -> Origin:
    return Origin(visit.source.generation, unit.changed, visit.name)


def _unforeseen(message_id: str, error: Exception) -> Reading:
    reason = f"message {message_id}: not understood ({type(error).__name__}: {error}); please report it"
    return Reading(None, (Problem(f"message {message_id}", reason),))
