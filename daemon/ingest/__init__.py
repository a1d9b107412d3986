"""Ingest: `Intake` scans sources into the archive, the drains take the outbox into the indexes.

Either can stop anywhere and is simply started again: the cursor moves in the commit that holds its data, and an outbox
entry is removed only after the index has it. Sessions that we started ourselves are counted but not archived. A session
that is already archived is never dropped, even if its title changes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from daemon import log
from daemon.archive import Archive
from daemon.embed import BadInput, Embedder, Vector
from daemon.exclude import Exclusion
from daemon.filesystem import disk_space
from daemon.ingest.absence import gone
from daemon.ingest.capture import Capture
from daemon.ingest.evidence import Evidence
from daemon.ingest.indexes import Upkeep
from daemon.ingest.outbox import Drained, Entries, LexicalDrain, SemanticDrain, entry_of, index_fingerprint
from daemon.ingest.scan_result import Captured, ScanResult, SessionCounts
from daemon.ingest.screened_source import ScreenedFiles, ScreenedSource
from daemon.ingest.session_scan import ScanContext, SessionScan
from daemon.model import Json, SourceCounts
from daemon.opencode import Listing, Source
from daemon.redact import redact_value

__all__ = [
    "Capture",
    "Captured",
    "Drained",
    "Entries",
    "Evidence",
    "Intake",
    "LazyEmbedder",
    "LexicalDrain",
    "ScanResult",
    "ScreenedFiles",
    "SemanticDrain",
    "Upkeep",
    "entry_of",
]

_LOG = log.get("intake")
_SESSIONS = "list of sessions"
"""The place of what is damaged there."""

Progress = Callable[[int, int], None]


class Intake:
    """Scans sources and moves the cursor. Have only one, and call it from one thread."""

    def __init__(
        self,
        archive: Archive,
        *,
        quiet_s: float,
        free_mb: int,
        record_mb: int = 64,
        evidence: Evidence,
        clock: Callable[[], float] = time.time,
        exclusion: Exclusion | None = None,
    ) -> None:
        self._archive = archive
        self._evidence = evidence
        self._free_mb = free_mb
        self._context = ScanContext(archive, evidence, quiet_s, record_mb, clock, exclusion or Exclusion())
        self._figures: dict[str, dict[str, SessionCounts]] = {}  # by source and session
        self.last_scan: dict[str, int] = {}

    def scan(
        self,
        source: Source,
        only: Iterable[str] | None = None,
        *,
        patient: bool = True,
        progress: Progress | None = None,
    ) -> ScanResult:
        """Scan `only` these sessions, or all.

        With `patient` false, unfinished messages are archived as they are, because a single run must not leave them
        out. `progress` is called with (sessions done, of how many) after each session and each commit of a long one; it
        may raise.

        Raises:
            SourceMissing: the source is gone; the archive is unchanged.
            DiskFull: the disk is nearly full; nothing was read.
        """
        disk_space.check(self._archive.directory, self._free_mb, "nothing is read")
        total = ScanResult()
        listed = None if only is not None else source.sessions()
        names = sorted(only) if only is not None else sorted(listed or ())
        sessions = [name for name in names if not self._archive.forgotten.has_session(name)]
        figures = self._figures.setdefault(source.name, {})
        for number, session_id in enumerate(sessions):

            def pulse(done: int = number) -> None:
                if progress is not None:
                    progress(done, len(sessions))

            session = SessionScan(self._context, source, session_id, patient=patient)
            counts = session.run(pulse)
            if counts is not None:
                figures[session_id] = counts
            total += session.result
            pulse(number + 1)
        if listed is not None:
            gone_ids, problem = self._gone(source, listed)
            total.is_whole = not problem
            for session_id in sorted(gone_ids):
                total.removed += SessionScan(self._context, source, session_id, patient=False).forget()
            self._figures[source.name] = {name: counts for name, counts in figures.items() if name in listed}
            self._evidence.of_projects(ScreenedSource(source, self._context.exclusion))
            self.last_scan[source.name] = self._context.now()
        return total

    def unchanged(self, source: Source) -> None:
        """Count as a full scan that nothing was written into the source since the last one."""
        self.last_scan[source.name] = self._context.now()

    def _gone(self, source: Source, listed: Listing[str]) -> tuple[set[str], str]:
        """The archived sessions that the source has no more, and what is damaged there, which is noted."""
        reasons = [listed.problem] if listed.problem else []
        missing = self._archive.marked_sessions(source.name) - set(listed)
        certain = (
            gone(source, "session", missing, lambda error: reasons.append(str(error))) if listed.is_whole else set()
        )
        problem = "".join(reasons[:1])
        noted = self._archive.quarantined(source.name).get(_SESSIONS, {}).get("reason", "")
        if problem != noted:
            batch = self._archive.batch()
            if problem:
                _LOG.warning("set aside", source=source.name, place=_SESSIONS, reason=problem)
                batch.quarantine(source.name, _SESSIONS, {"reason": problem, "time": self._context.now()})
            else:
                batch.release(source.name, _SESSIONS)
            self._archive.commit(batch)
        return certain, problem

    def counts(self, source: Source) -> SourceCounts:
        """Messages seen, kept and skipped since the start, unknown part types and quarantine for ever."""
        figures = list(self._figures.get(source.name, {}).values())  # another thread may be scanning
        listed, archived = sum(counts.seen for counts in figures), sum(counts.kept for counts in figures)
        return SourceCounts(
            listed,
            archived,
            listed - archived,
            self._archive.unknown_types(),
            len(self._archive.quarantined(source.name)),
            dict(sum((Counter(counts.excluded) for counts in figures), Counter())),
        )

    def set_aside(self, source: Source, most: int) -> list[Json]:
        """The source's unreadable records, the latest first: ``{"place", "reason", "time"}``."""
        entries = [{"place": place, **entry} for place, entry in self._archive.quarantined(source.name).items()]
        entries.sort(key=lambda entry: -entry.get("time", 0))
        return [
            {name: redact_value(entry.get(name)) for name in ("place", "reason", "time")} for entry in entries[:most]
        ]


class LazyEmbedder:
    """An Embedder that stands for the one `Upkeep` chooses, which happens at the first call and not before."""

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        """See Embedder."""
        return index_fingerprint(self._embedder())

    @property
    def dims(self) -> int:
        """See Embedder."""
        return self._embedder().dims

    @property
    def name(self) -> str:
        """See Embedder."""
        return self._embedder().name

    def close(self) -> None:
        """Its owner closes it."""

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """See Embedder."""
        return self._embedder().embed(texts)

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder."""
        return self._embedder().embed_query(text)

    def legible(self, text: str) -> float:
        """See Embedder."""
        return self._embedder().legible(text)

    def known_words(self, text: str) -> float:
        """See Embedder."""
        return self._embedder().known_words(text)
