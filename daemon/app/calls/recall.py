"""The calls that search the archive or export it.

Arguments arrive as clients wrote them. recall.query.arguments reads them, so that command line, MCP and HTTP have the
same defaults and errors. The answer's warnings begin with those about the arguments, then why the archive may lack
recent messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from daemon.app.indexing import NEWEST, Unindexed
from daemon.archive import Archive
from daemon.archive.ids import with_whole_ids
from daemon.archive.paths import is_touched, unknown
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.answers import from_json
from daemon.control.calls import OnPart, Progress
from daemon.exports import Export
from daemon.exports.formats import export
from daemon.ingest import LazyEmbedder, Upkeep
from daemon.model import Json
from daemon.recall import browse
from daemon.recall import query as queries
from daemon.recall.catalog import Catalog
from daemon.recall.query.arguments import read
from daemon.recall.search import RecallEngine
from daemon.recall.sessions_by_path import sessions_by_path
from daemon.recall.timeline import timeline
from daemon.redact import redact

EXPORT: dict[str, type[Any]] = {"export": Export}


class RecallCalls:
    """A part of the engine: it has the archive, its sessions and its indexes."""

    archive: Archive
    upkeep: Upkeep
    config: Config
    catalog: Catalog
    unindexed: Unindexed
    is_served = False

    @property
    def is_indexing(self) -> bool:
        """Whether what waits to be indexed will be, without a further call."""
        return self.is_served

    def index_failed(self, _index: str, _error: Exception) -> None:
        """Called with the name of an index that failed in a search."""

    def scan_sources(self, *, match: str = "") -> list[str]:
        """Bring the archive up to date; returns warnings if it is not. In the daemon the loops do it.

        `match` is the mode of a search; "" for other calls.
        """
        del match
        return []

    def current(self, _progress: Progress) -> list[str]:
        """As `scan_sources`, without the indexes."""
        return []

    def searching(self) -> RecallEngine:
        """The search engine over the indexes that are open now."""
        return RecallEngine(
            self.archive,
            self.unindexed.over(self.upkeep.lexical),
            lambda: self.upkeep.semantic,
            LazyEmbedder(lambda: self.upkeep.embedder),
            catalog=self.catalog,
            on_failure=self.index_failed,
            prepare=lambda is_needed: self.upkeep.load(is_needed=is_needed),
            in_memory=0 if self.unindexed.is_off else NEWEST,
            is_served=self.is_indexing,
        )

    def recall(self, request: calls.Recall) -> Json:
        """See calls.Recall.

        Raises:
            BadRequest: an unknown call, an invalid argument, an id that is not in the archive.
        """
        query, about_arguments = read(request.call, request.arguments)
        about_archive = self.scan_sources(match=query.match if isinstance(query, queries.Recall) else "")
        query = with_whole_ids(self.archive, query)
        answer = self._answer(query, request.here)
        path = getattr(query, "path", "")
        is_empty = not (answer.get("results") or answer.get("sessions"))
        if path.startswith("/") and is_empty and not is_touched(self.archive, path):
            about_arguments.append(unknown(self.archive, path))
        first_warnings = [redact(warning) for warning in (*about_arguments, *about_archive)]
        answer["warnings"] = [*first_warnings, *answer.get("warnings", ())]
        return answer

    def _answer(self, query: Any, directory: str) -> Json:
        archive, catalog, lexical = self.archive, self.catalog, self.unindexed.over(self.upkeep.lexical)
        by_query: dict[type[Any], Callable[[], Json]] = {
            queries.Recall: lambda: self.searching().answer(query, directory),
            queries.RecallGet: lambda: browse.get(archive, query),
            queries.RecallContext: lambda: browse.context(archive, query),
            queries.RecallMessages: lambda: browse.messages(archive, lexical, catalog, query, directory),
            queries.RecallSessions: lambda: browse.sessions(archive, catalog, query, directory),
            queries.RecallTimeline: lambda: timeline(archive, lexical, catalog, query, _now()),
            queries.RecallFiles: lambda: sessions_by_path(archive, lexical, catalog, query),
        }
        return by_query[type(query)]()

    def export(self, request: calls.Export, progress: Progress, on_part: OnPart) -> answers.Export:
        """See calls.Export.

        Raises:
            BadRequest: an invalid argument, a session that is not in the archive.
        """
        query, about_arguments = read("export", request.arguments, EXPORT)
        about_archive = self.current(progress)
        query = with_whole_ids(self.archive, query)
        answer = from_json(export(self.archive, query, on_part, progress), answers.Export)
        answer.warnings = [*(redact(warning) for warning in (*about_arguments, *about_archive)), *answer.warnings]
        return answer


def _now() -> int:
    return time.time_ns() // 1_000_000
