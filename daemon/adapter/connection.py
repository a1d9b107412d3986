"""One connection to the adapter: how many there may be, and how long one may take to say what it wants.

uvicorn bounds neither: its time for an idle connection ends with the first byte of the next request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.adapter.responses import line

CONNECTIONS = 32
"""At once; a request may have 32 MB."""

HEADER_SECONDS = 10.0
"""From the first moment, or the first byte after an answer, to the end of a request's headers."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with both bounds; whoever is refused is told why, and hung up on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refused = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self._refuse(503, f"server busy: {CONNECTIONS} connections are open; try again later")
        else:
            self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self._refused:
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
        self._refuse(400, msg)

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
            self._refuse(408, f"the request's headers did not arrive within {HEADER_SECONDS:g} s")

    def _refuse(self, status: int, message: str) -> None:
        self._refused = True
        body = line({"error": message})
        head = (
            f"HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
