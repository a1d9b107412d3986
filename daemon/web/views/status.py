"""Status: `/status`, its checks on demand, a pause and its end, and how models came to their answers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.control import calls
from daemon.web.site import is_part, site_of, url

_SPANS = ("", "1h", "4h", "12h", "1d")
"""The ends of a pause that are offered; "": until it is resumed."""


async def status(http: Request) -> Response:
    """What `status` says; for htmx, which asks every few seconds, only what may have changed."""
    site = site_of(http)
    answer = await site.ask(calls.Status(), http=http)
    name = "status_live.html" if is_part(http) else "status.html"
    return await site.page(http, name, answer=answer, spans=_SPANS)


async def doctor(http: Request) -> Response:
    """What `doctor` says of the archive and what stands on it."""
    site = site_of(http)
    answer = await site.ask(calls.Doctor(), http=http)
    name = "doctor_rows.html" if is_part(http) else "doctor.html"
    return await site.page(http, name, answer=answer)


async def pause(http: Request) -> Response:
    """Pause the work, or resume it."""
    site = site_of(http)
    fields = await site.form(http)
    is_resumed = bool(fields.get("resume"))
    await site.ask(calls.Pause(until="" if is_resumed else fields.get("until", ""), resume=is_resumed))
    return RedirectResponse(url("status"), 303)


async def trajectories(http: Request) -> Response:
    """How questions were answered, of one target or of all; with `started` one of them, step by step."""
    site, query = site_of(http), http.query_params
    path, started = query.get("path", ""), query.get("started", "")
    number = int(started) if started.isascii() and started.isdecimal() and len(started) < 16 else 0
    answer = await site.ask(calls.Trajectories(path=path, started=number), http=http)
    name = "trajectory.html" if number else "trajectories.html"
    return await site.page(http, name, answer=answer, target=path)


ROUTES = [
    Route("/status", status),
    Route("/status/doctor", doctor),
    Route("/status/pause", pause, methods=["POST"]),
    Route("/trajectories", trajectories),
]
