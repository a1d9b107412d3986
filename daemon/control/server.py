"""The daemon's side of the control socket: HTTP over a Unix socket, for this user alone.

Guarantees (docs/reliability.md, M1 to M3): the socket appears with mode 0600 inside a directory of mode 0700 that is
ours; only a dead socket is ever replaced, and only our own removed; a peer with another uid is hung up on before it is
read; bodies, waiting times and the number of connections are bounded; what a caller gets wrong is answered with the
error shape of control.calls. uvicorn's signal handling, logging set-up and polling loop are not used.

Does not: know what the calls mean. A Service does the work, in a thread of its own per call.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.config import Config
from daemon.control import answers, endpoint, identity, metrics, peer, responses
from daemon.control.calls import CALLS, A, Call, Doctor, OnPart, Progress, Request, Service, Status, silent
from daemon.days import in_zone
from daemon.errors import BadRequest, ReconstituteError, Retry
from daemon.http_server import serve

CONNECTIONS = 16
DRAIN_SECONDS = 3

_log = logging.getLogger(__name__)


def application(service: Service, config: Config | None = None) -> Starlette:
    """The calls of `service`, each at its address; `config` is what it works with, None refuses no caller."""
    routes = [Route(call.address, _endpoint(service, call, config), methods=[call.method]) for call in CALLS.values()]
    routes.append(Route(metrics.ADDRESS, _metrics(service), methods=["GET"]))
    addresses = ", ".join([*(f"{call.method} {call.address}" for call in CALLS.values()), f"GET {metrics.ADDRESS}"])

    async def refuse(http: HttpRequest, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        reason = BadRequest(f"{http.method} {http.url.path}: not a call of this daemon; it takes {addresses}")
        return responses.respond(responses.error_bytes(reason), code)

    async def explain(_http: HttpRequest, error: Exception) -> Response:
        status = responses.status_of(error)
        return responses.respond(responses.error_bytes(error), status)

    return Starlette(routes=routes, exception_handlers={HTTPException: refuse, ReconstituteError: explain})


def _endpoint(service: Service, call: Call, config: Config | None) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def endpoint(http: HttpRequest) -> Response:
        settings, where = http.headers.get(identity.HEADER), http.url.path
        differing = identity.differences(config, settings)
        if call.request not in (Status, Doctor):  # `status` says how they differ, and `doctor` asks it
            identity.check(config, settings)
        request = await responses.read(http, call)
        zoned = _Zoned(service, http.headers.get(identity.ZONE, ""))
        if call.seconds is None:
            return responses.stream(where, zoned, call, request)

        def work() -> object:
            answer = zoned.call(request)
            if differing and isinstance(answer, answers.Status):
                answer.differs = differing
            return answer

        return await responses.answer(where, work)

    return endpoint


def _metrics(service: Service) -> Callable[[HttpRequest], Awaitable[Response]]:
    def form(text: str) -> Response:
        return Response(text, media_type=metrics.MEDIA_TYPE, headers=responses.HEADERS)

    async def endpoint(http: HttpRequest) -> Response:
        return await responses.answer(http.url.path, lambda: metrics.text(service.call(Status())), form)

    return endpoint


class _Zoned:
    """A service whose callers mean their own zone by the days and times that they name."""

    def __init__(self, service: Service, zone: str) -> None:
        self._service, self._zone = service, zone

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """See Service."""
        with in_zone(self._zone):
            return self._service.call(request, progress=progress, on_part=on_part)


class Server:
    """Serves one Service at one socket path."""

    def __init__(
        self, service: Service, socket_path: Path, *, config: Config | None = None, uid: int | None = None
    ) -> None:
        """`uid` is whose calls are answered: the daemon's own user when not given.

        `config` is what the service works with: a call that names other settings is refused (control.identity).
        """
        self._path = socket_path
        self._uid = os.geteuid() if uid is None else uid
        self._app = application(service, config)
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._inode = (0, 0)

    async def start(self) -> None:
        """Bind and answer; when this returns, a client can call.

        Raises:
            ConfigError: the path is too long, or its directory or what lies there is not safe to use.
            ArchiveLocked: another daemon answers there.
        """
        self._socket, self._inode = endpoint.bind(self._path)
        connection = partial(_Connection, allowed_uid=self._uid)
        self._server = await serve(
            self._app, connection, self._socket, backlog=CONNECTIONS, drain_seconds=DRAIN_SECONDS
        )

    async def stop(self) -> None:
        """Take no more calls, give those under way a moment, close. Stopping twice is no error.

        A call goes on when its caller hangs up: when this returns, it has ended too, or DRAIN_SECONDS are over.
        """
        if self._server is None or self._socket is None:
            return
        server, self._server = self._server, None
        if not endpoint.remove(self._path, self._inode):
            _log.warning("the control socket's file was replaced or removed by someone else")
        until = time.monotonic() + DRAIN_SECONDS
        await server.shutdown(sockets=[self._socket])
        if not await asyncio.to_thread(responses.finish, max(0.0, until - time.monotonic())):
            _log.warning("a control call was still at work %d s after the server was stopped", DRAIN_SECONDS)


def _peer_uid(transport: asyncio.Transport) -> int | None:
    """The caller's user id; None where the kernel does not say, which is nobody's."""
    connection: socket.socket = transport.get_extra_info("socket")
    try:
        return peer.uid(connection)
    except OSError as error:
        _log.warning("the caller at the control socket is not known: %s", error)
        return None


class _Connection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with the peer checked, one request each, and no waiting for slow senders."""

    def __init__(self, *args: Any, allowed_uid: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._allowed_uid = allowed_uid
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn names a narrower type
        super().connection_made(transport)
        uid = _peer_uid(transport)
        if uid != self._allowed_uid:
            _log.warning("a process of uid %s called at the control socket and was refused", uid)
            self._refused = True
            transport.abort()
        elif len(self.connections) > CONNECTIONS:
            self._refuse(503, Retry(f"the control socket: {CONNECTIONS} calls are under way; try again later"))
        else:
            self.loop.call_later(responses.READ_SECONDS, self._require_request)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, BadRequest(f"the control socket: {msg} It speaks HTTP/1.1"))

    def _refuse(self, status: int, error: ReconstituteError) -> None:
        self._refused = True
        body = responses.error_bytes(error)
        head = f"HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _require_request(self) -> None:
        cycle: object = self.cycle
        if cycle is None and not self.transport.is_closing():
            self.transport.abort()
