"""How uvicorn answers at a socket here, and its HTTP/1.1 connection with two bounds that it lacks.

They are the number of connections and the time for a request's headers (its limit for an idle connection ends with the
first byte of the next request), for the doors that any program of this machine can reach.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 32
"""At once."""
HEADER_SECONDS = 10.0
"""From the first moment, or the first byte after an answer, to the end of a request's headers."""


class BoundedConnection(H11Protocol):
    """A refused client gets the reason and is disconnected."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_refused = False
        self._deadline: asyncio.TimerHandle | None = None

    def refusal(self, status: int, message: str) -> tuple[str, bytes]:
        """Type and body of the answer to a refused client."""
        del status
        return "text/plain; charset=utf-8", message.encode()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in control/server
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self.refuse(503, f"server busy: {CONNECTIONS} connections are open; try again later")
        else:
            self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self.is_refused:
            return
        if not self._is_answering():
            self._await_headers()
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, msg)

    def refuse(self, status: int, message: str) -> None:
        """Say why, and hang up."""
        self.is_refused = True
        kind, body = self.refusal(status, message)
        head = (
            f"HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_headers(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_answering() and not self.transport.is_closing():
            self.refuse(408, f"the request's headers did not arrive within {HEADER_SECONDS:g} s")


async def serve(
    app: ASGIApp, connection: Callable[..., H11Protocol], listener: socket.socket, *, backlog: int, drain_seconds: int
) -> uvicorn.Server:
    """Answer at `listener`; end it with `shutdown`, which gives requests under way `drain_seconds`.

    `connection` makes the protocol of each connection.
    """
    config = uvicorn.Config(
        app,
        http=connection,  # type: ignore[arg-type]  # anything that makes a protocol will do
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # A client is known by its address: nobody may claim another one in a header.
        proxy_headers=False,
        server_header=False,
        backlog=backlog,
        timeout_graceful_shutdown=drain_seconds,
    )
    config.load()
    server = uvicorn.Server(config)
    # startup() and shutdown() without serve(): that would take the signals and wake ten times a second.
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    return server
