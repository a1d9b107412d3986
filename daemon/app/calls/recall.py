"""The calls that search the archive or export it.

Arguments arrive as clients wrote them. recall.query.arguments reads them, so that command line, MCP and HTTP have the
same defaults and errors. The answer's warnings begin with what was odd about the arguments, then why the archive may be
behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from daemon.app.indexing import NEWEST, Unindexed
from daemon.archive import Archive
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
            prepare=self.upkeep.load,
            in_memory=NEWEST,
            is_served=self.is_served,
        )

    def recall(self, request: calls.Recall) -> Json:
        """See calls.Recall.

        Raises:
            BadRequest: an unknown call, an invalid argument, an id that is not in the archive.
        """
        question, odd = read(request.call, request.arguments)
        behind = self.scan_sources(match=question.match if isinstance(question, queries.Recall) else "")
        answer = self._answer(question, request.here)
        path = getattr(question, "path", "")
        if path.startswith("/") and not (answer.get("results") or answer.get("sessions")):
            odd = [*odd, *([] if is_touched(self.archive, path) else [unknown(self.archive, path)])]
        answer["warnings"] = [*(redact(warning) for warning in (*odd, *behind)), *answer.get("warnings", ())]
        return answer

    def _answer(self, question: Any, directory: str) -> Json:
        archive, catalog, lexical = self.archive, self.catalog, self.unindexed.over(self.upkeep.lexical)
        by_query: dict[type[Any], Callable[[], Json]] = {
            queries.Recall: lambda: self.searching().answer(question, directory),
            queries.RecallGet: lambda: browse.get(archive, question),
            queries.RecallContext: lambda: browse.context(archive, question),
            queries.RecallMessages: lambda: browse.messages(archive, lexical, catalog, question, directory),
            queries.RecallSessions: lambda: browse.sessions(archive, catalog, question, directory),
            queries.RecallTimeline: lambda: timeline(archive, lexical, catalog, question, _now()),
            queries.RecallFiles: lambda: sessions_by_path(archive, lexical, catalog, question),
        }
        return by_query[type(question)]()

    def export(self, request: calls.Export, progress: Progress, on_part: OnPart) -> answers.Export:
        """See calls.Export.

        Raises:
            BadRequest: an invalid argument, a session that is not in the archive.
        """
        question, odd = read("export", request.arguments, EXPORT)
        behind = self.current(progress)
        answer = from_json(export(self.archive, question, on_part, progress), answers.Export)
        answer.warnings = [*(redact(warning) for warning in (*odd, *behind)), *answer.warnings]
        return answer


def _now() -> int:
    return time.time_ns() // 1_000_000
