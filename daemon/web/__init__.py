"""The service's page: what the archive holds, in a browser on this machine.

Server-rendered: `views/` ask the same calls as the command line, `templates/` render their answers, htmx fetches parts
of a page. `entrance` lets a browser in by a link that works once, `guard` keeps all others out. Nothing is loaded from
elsewhere, and text of records is never markup.
"""

from __future__ import annotations

import asyncio
import os
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from daemon.control import peer
from daemon.control.calls import Service
from daemon.errors import ReconstituteError, Retry
from daemon.http_server import BoundedConnection, serve
from daemon.web import views
from daemon.web.entrance import Entrance
from daemon.web.guard import ENTER, STATIC, Guard, set_session
from daemon.web.site import STATIC_FILES, Site, site_of, url

HOST = "127.0.0.1"
_BACKLOG = 64
_DRAIN_SECONDS = 2


def application(service: Service, entrance: Entrance, port: int) -> Guard:
    """The page as ASGI, for whoever asks at this port."""

    async def failed(http: HttpRequest, error: Exception) -> Response:
        return await site_of(http).error(http, error)

    routes = [
        Route(ENTER, _enter, methods=["GET"]),
        Mount(STATIC.rstrip("/"), StaticFiles(directory=STATIC_FILES)),
        *views.ROUTES,
    ]
    handlers = dict.fromkeys((HTTPException, ReconstituteError, ClientDisconnect, Exception), failed)
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.site = Site(service, entrance, port)
    return Guard(app, entrance, port)


async def _enter(http: HttpRequest) -> Response:
    """Exchange a link's key for a session.

    Not by a redirect: a browser that came from another program's page would not send the cookie along.
    """
    site = site_of(http)
    session = site.entrance.enter(http.query_params.get("key", ""))
    if session is None:
        return await site.page(http, "used.html", 403)
    response = await site.page(http, "enter.html")
    set_session(response, site.port, session)
    return response


class WebPage:
    """The page of one service. `start`, which may be called again, then `stop`; `link` while it runs."""

    def __init__(self, service: Service, port: int, *, is_enabled: bool = False) -> None:
        """`port` is where it listens; 0: any free one. `is_enabled`: whether it is wanted without being asked for."""
        self._service, self._port = service, port
        self.entrance = Entrance()
        self._is_enabled, self.is_asked_for = is_enabled, False
        self._starting = asyncio.Lock()
        self._socket: socket.socket | None = None
        self.kept: socket.socket | None = None
        """What it listened on, for its successor."""
        self._server: uvicorn.Server | None = None

    def follow(self, former: WebPage) -> None:
        """Take the place of the page of the service before a reload.

        Where the port stays, its browsers stay too: the socket was never closed, so nobody else listened there.
        """
        self.is_asked_for = former.is_asked_for
        kept, former.kept = former.kept, None
        if kept is None:
            return
        if self.is_wanted and self._port in (0, kept.getsockname()[1]):
            self.kept, self.entrance = kept, former.entrance
        else:
            kept.close()

    @property
    def is_wanted(self) -> bool:
        """Whether the configuration or somebody has asked for it."""
        return self._is_enabled or self.is_asked_for

    async def start(self) -> None:
        """Bind and answer; when this returns, a browser can ask.

        Raises:
            Retry: the port cannot be had.
        """
        async with self._starting:
            if self._server is None:
                self._socket, self.kept = self.kept or _bound(self._port), None
                app = application(self._service, self.entrance, self._socket.getsockname()[1])
                self._server = await serve(
                    app, _Connection, self._socket, backlog=_BACKLOG, drain_seconds=_DRAIN_SECONDS
                )

    async def stop(self, *, keep: bool = False) -> None:
        """Take no more requests and give those under way a moment. `keep`: new ones wait for a successor (`follow`)."""
        if self._server is not None and self._socket is not None:
            self.kept = self._socket.dup() if keep else None
            server, self._server = self._server, None
            await server.shutdown(sockets=[self._socket])

    @property
    def address(self) -> str:
        """Where it answers; empty while it does not run."""
        return f"http://{HOST}:{self._socket.getsockname()[1]}" if self._server and self._socket else ""

    def link(self) -> str:
        """An address that lets one browser in, once, within entrance.LINK_SECONDS."""
        return self.address + url(ENTER.strip("/"), key=self.entrance.new_link())


class _Connection(BoundedConnection):
    """One that refuses other users: nobody else can use up a link, or a cookie that a browser sent to his own port."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in control/server
        super().connection_made(transport)
        # Root reads everything anyway; and it relays for the browsers of a Windows machine around this one.
        uid = peer.tcp_uid(transport.get_extra_info("socket"))
        if not self.is_refused and uid not in (os.geteuid(), 0, None):
            self.refuse(403, "this page is another user's")


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise Retry(
            f"web.port: {HOST}:{port} cannot be listened on: {error.strerror}; choose another, or 0 for any free one"
        ) from None
    return listener
