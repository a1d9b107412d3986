"""Which recorded messages recall thinks nearest to a question, among those that have to do with a target.

An answer is kept for as long as the target's evidence is the same: a run with nothing new searches nothing, and embeds
no query (design section 4, cache:search). What recall had to warn of is handed on, and such an answer is not kept.
"""

from __future__ import annotations

from daemon.archive import Archive
from daemon.errors import BadRequest, Retry, Skip
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.recall.search import Recall
from daemon.reconstitute.questions import Question
from daemon.reconstitute.scope import Scope
from daemon.records import digest, dumps

_CANDIDATES = 60
_MOST_SESSIONS = 6
_LONGEST = 2000
"""Characters of a query; a person may ask at length."""
_KEPT_S = 30 * 86_400.0
_KIND = "search"
VERSION = "2"


class Searches:
    """The questions' searches over one target's scope; `warnings` gathers what recall said."""

    def __init__(
        self,
        archive: Archive,
        recall: Recall,
        path: str,
        scope: Scope,
        moment: int | None = None,
        *,
        is_early: bool = False,
    ) -> None:
        """`moment` (epoch ms): nothing that was said later is looked at. `is_early`: the indexes have not everything
        yet, so no answer is kept, nor taken from an earlier time.
        """
        self._moment, self._is_early = moment, is_early
        self._archive, self._recall, self._path, self._scope = archive, recall, path, scope
        self._known = {message_id for one in scope.sessions for message_id in one.message_ids}
        self._is_over = False
        self.warnings: list[str] = []

    def ranks(self, question: Question) -> dict[str, int]:
        """The best place in recall, from 0, of each message of the scope, over the question's queries."""
        key = digest(self._scope.fingerprint.encode(), dumps([self._path, question.queries, self._moment, VERSION]))
        stored: dict[str, int] | None = None if self._is_early else self._archive.cache_get(_KIND, key)
        if stored is not None:
            return stored
        said = len(self.warnings)
        ranks = self._search(question)
        if not self._is_early and not self._is_over and len(self.warnings) == said and not self.warnings:
            self._archive.cache_put(_KIND, key, ranks, _KEPT_S)
        return ranks

    def _search(self, question: Question) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for query, filters in self._asks(question):
            if self._is_over or not query.strip():
                continue
            try:
                answer = self._recall.search(query[:_LONGEST], limit=_CANDIDATES, filters=filters)
            except BadRequest:
                raise
            except (Retry, Skip) as error:  # the pages can do without recall's ranks, and say so
                self._warn(f"recall did not answer: {error}")
                self._is_over = True
                return {}
            for warning in answer.degraded:
                self._warn(warning)
            for place, hit in enumerate(hit for hit in answer.hits if hit.message_id in self._known):
                ranks[hit.message_id] = min(place, ranks.get(hit.message_id, place))
        return ranks

    def _asks(self, question: Question) -> list[tuple[str, Filters]]:
        """Everything beneath the target at once, and the busiest sessions elsewhere one by one."""
        outside = [one for one in self._scope.sessions if not is_beneath(one.session.directory, self._path)]
        busiest = sorted(outside, key=lambda one: (-len(one.message_ids), one.session.id))[:_MOST_SESSIONS]
        end = None if self._moment is None else self._moment + 1
        asks = [
            (query, Filters(session_id=one.session.id, before=end)) for one in busiest for query in question.queries[:1]
        ]
        if len(outside) < len(self._scope.sessions):
            asks += [(query, Filters(directory=self._path, before=end)) for query in question.queries]
        return asks

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)
