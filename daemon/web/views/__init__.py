"""The views: each asks calls and renders their answers; its ROUTES stand here under its name."""

from __future__ import annotations

from starlette.routing import Route

from daemon.web.views import (
    days,
    file,
    folder,
    search,
    session,
    status,
)

ROUTES: list[Route] = [
    *days.ROUTES,
    *folder.ROUTES,
    *search.ROUTES,
    *file.ROUTES,
    *session.ROUTES,
    *status.ROUTES,
]
