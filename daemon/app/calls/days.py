"""The calls that look at all folders at once: how much happened on each day, and what recent sessions left open."""

from __future__ import annotations

import time
from datetime import timedelta

from daemon.app.calls.files import absolute
from daemon.app.calls.recall import RecallCalls
from daemon.control import calls, view_answers
from daemon.control.calls import Progress
from daemon.days import Days, local
from daemon.errors import BadRequest
from daemon.hints import not_searchable
from daemon.moments import parse_time
from daemon.recall import activity
from daemon.recall.query import RecallTimeline
from daemon.recall.query.directories import is_within
from daemon.recall.timeline import span
from daemon.redact import redact

_USUAL_DAYS = 365
_MOST_ENTRIES = 1_000


class DayCalls(RecallCalls):
    """A part of the engine: it has the archive, its sessions and its indexes."""

    def activity(self, request: calls.Activity) -> view_answers.Activity:
        """See calls.Activity.

        Raises:
            BadRequest: a time or a path makes no sense.
        """
        folder = absolute(request.project) if request.project.strip() else ""
        warnings = self.scan_sources()
        now = time.time_ns() // 1_000_000
        end = parse_time(request.before, now, "before", is_end=True)
        begin = parse_time(request.after, now, "after")
        last = local(now if end is None else end).date()
        first = last - timedelta(_USUAL_DAYS - 1) if begin is None else local(begin).date()
        if first > last:
            raise BadRequest(f"`after` {request.after!r}: is later than `before`; exchange the two")
        days = Days(first, last + timedelta(1))
        lexical = self.unindexed.over(self.upkeep.lexical)
        answer = view_answers.Activity(
            days=[
                view_answers.ActiveDay(day.date.isoformat(), day.messages, day.prompts, day.sessions)
                for day in activity.by_day(lexical, self.catalog, days, folder)
            ],
        )
        if request.limit > 0:
            around = RecallTimeline(format="full", project=folder)
            limit = min(request.limit, _MOST_ENTRIES)
            what = span(self.archive, lexical, self.catalog, around, bounds=days.bounds, limit=limit)
            answer.entries, answer.has_more = what["entries"], what["hasMore"]
            warnings += what["warnings"]
        if waiting := self.archive.waiting("lexical"):
            warnings.append(f"not everything is counted: {not_searchable(waiting)}")
        answer.warnings = [redact(warning) for warning in warnings]
        return answer

    def unfinished(self, request: calls.Unfinished, progress: Progress) -> view_answers.Unfinished:
        """See calls.Unfinished.

        Raises:
            BadRequest: `since` is no time, or `project` is not an absolute path.
        """
        # Late: the facts take a while to import, which no other of these calls needs.
        from daemon.reconstitute import unfinished  # noqa: PLC0415 - see above

        folder = absolute(request.project) if request.project.strip() else ""
        warnings = self.current(progress)
        since = parse_time(request.since, time.time_ns() // 1_000_000, "since") or 0
        rows = [
            row
            for row in self.catalog.rows().values()
            if row.updated >= since and (not folder or is_within(row.directory, folder))
        ]
        sessions = [session for row in rows if (session := self.archive.session(row.id)) is not None]
        recent = unfinished.find(self.archive, sessions, progress)
        return view_answers.Unfinished(
            folders=[
                view_answers.OpenFolder(
                    redact(each.path),
                    [
                        view_answers.OpenPoint(
                            kind=unfinished.words(point),
                            text=redact(point.text),
                            detail=redact(point.detail),
                            time=point.time,
                            session_id=point.citation.session_id,
                            session_title=redact(each.titles.get(point.citation.session_id, "")),
                            message_id=point.citation.message_id,
                        )
                        for point in each.points
                    ],
                )
                for each in recent.folders
            ],
            sessions=recent.sessions,
            left_out=recent.left_out,
            warnings=[redact(warning) for warning in warnings],
        )
