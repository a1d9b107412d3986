"""Days: `/today` with what is left open, and `/history`, a calendar of activity with what happened on a day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.control import calls
from daemon.control.view_answers import Activity
from daemon.web.calendar import by_session, day_of, neighbours, weeks
from daemon.web.site import is_part, site_of

_DAYS = 371
"""Days of a calendar: 53 weeks."""
_ENTRIES = 500
_EARLIEST = date(2001, 1, 1)


async def today(http: Request) -> Response:
    """What happened today over all folders."""
    return await _page(http, "today.html", date.today())  # noqa: DTZ011 - the user's own day


async def open_points(http: Request) -> Response:
    """What the sessions of the last week left open; read by htmx, because it takes a moment."""
    site = site_of(http)
    answer = await site.ask(calls.Unfinished(), http=http)
    return await site.page(http, "open_points.html" if is_part(http) else "open_page.html", answer=answer)


async def history(http: Request) -> Response:
    """The calendar of a year, and one day of it."""
    last = date.today()  # noqa: DTZ011 - as above
    query = http.query_params
    day = max(_EARLIEST, min(last, day_of(query.get("day", ""), last)))
    end = max(day, min(last, day_of(query.get("until", ""), last)))
    first = max(_EARLIEST, end - timedelta(_DAYS - 1))
    year = await site_of(http).ask(calls.Activity(first.isoformat(), end.isoformat(), _folder(http)), http=http)
    return await _page(
        http, "history.html", day, weeks=weeks(year.days), year=year, until=end.isoformat() if end < last else "",
        earlier=(first - timedelta(1)).isoformat(), total=sum(each.messages for each in year.days),
    )  # fmt: skip


async def _page(http: Request, name: str, day: date, **values: Any) -> Response:
    site, folder = site_of(http), _folder(http)
    text = day.isoformat()
    answer: Activity = await site.ask(calls.Activity(text, text, folder, limit=_ENTRIES), http=http)
    before, after = neighbours(day, date.today())  # noqa: DTZ011 - as above
    return await site.page(
        http, name, day=text, weekday=day.strftime("%A"), answer=answer, project=folder, before=before, after=after,
        counts=answer.days[0] if answer.days else None, sessions=by_session(answer.entries), **values,
    )  # fmt: skip


def _folder(http: Request) -> str:
    return http.query_params.get("project", "").strip()


ROUTES = [
    Route("/today", today),
    Route("/today/open", open_points),
    Route("/history", history),
]
