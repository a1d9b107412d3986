"""An exchange in a thread of its own, and its events to whoever waits for them; a client that hangs up ends it.

The thread is a daemon: an executor's would be waited for at exit, however long a model takes (docs/reliability.md, D3).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from daemon.adapter.exchange import Answer, Exchange, HungUp
from daemon.adapter.failures import Failure, failure_of
from daemon.chat import OnText
from daemon.errors import ReconstituteError, Retry
from daemon.model import Json

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of an answer that is not complete yet."""

    text: str


Event = Piece | Answer | Exception


class AnswerFormat(Protocol):
    """How an API writes the answer to one request, whole or as a stream."""

    media_type: str
    """Of a stream."""

    def piece(self, text: str) -> bytes:
        """Some text of an answer that is not complete yet."""

    def end(self, answer: Answer) -> bytes:
        """What was not sent yet, and the end of the stream."""

    def broken_off(self, failure: Failure) -> bytes:
        """The end of a stream that failed after it had begun: the error, by which clients know that text is missing."""

    def whole(self, answer: Answer) -> Json:
        """An answer that is not streamed."""


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises, in a thread that nobody waits for at exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(function: Callable[[Any], None], value: object) -> None:
        if not future.done():
            function(value)

    def work() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (future.set_result, call())
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            outcome = (future.set_exception, error)
        _on_loop(loop, settle, *outcome)

    threading.Thread(target=work, name="adapter-call", daemon=True).start()
    return await future


class Deliveries:
    """All exchanges under way, at most `limit` at once."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._running = dict[threading.Thread, Delivery]()

    def begin(self, make: Callable[[OnText], Exchange], receive: Receive) -> Delivery:
        """Start the exchange that `make` creates; `receive` reports when the client disconnects.

        Raises:
            Retry: too many are under way.
        """
        if len(self._running) >= self._limit:
            raise Retry("server busy, please try again. maximum pending requests exceeded")
        delivery = Delivery(make, receive, self._running.pop)
        self._running[delivery.thread] = delivery
        delivery.thread.start()
        return delivery

    async def end(self, within_s: float) -> None:
        """Call off all exchanges, tell their clients why, and wait for them, at most `within_s` seconds."""
        running = list(self._running.values())
        for delivery in running:
            delivery.call_off(Retry("the adapter is stopping; ask again when it runs"))
        deadline = time.monotonic() + within_s
        for delivery in running:
            await asyncio.to_thread(delivery.thread.join, max(0.0, deadline - time.monotonic()))


class Delivery:
    """One exchange. Ask for its `next` event until that is Answer or an exception."""

    def __init__(
        self, make: Callable[[OnText], Exchange], receive: Receive, ended: Callable[[threading.Thread, None], Any]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._disconnection = self._loop.create_task(_disconnected(receive))
        self._make, self._ended = make, ended
        self._exchange: Exchange | None = None
        self._is_off = False
        self._end: ReconstituteError = HungUp("the client hung up")
        self.thread = threading.Thread(target=self._run, name="adapter-exchange", daemon=True)

    async def next(self) -> Event:
        """The next event, in order; when it was called off the reason, and HungUp when the client is gone."""
        coming = self._loop.create_task(self._events.get())
        await asyncio.wait({coming, self._disconnection}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done() and not self._disconnection.done():
            event = coming.result()
            if not isinstance(event, Piece):
                self._disconnection.cancel()
            return event
        coming.cancel()
        self.call_off()
        return self._end

    def call_off(self, reason: ReconstituteError | None = None) -> None:
        """Stop the model; it takes a call to the server, hence a thread. `reason` is told to a client that listens."""
        self._is_off = True
        self._end = reason or self._end
        self._disconnection.cancel()
        if self._exchange is not None and self.thread.is_alive():
            threading.Thread(target=self._exchange.call_off, name="adapter-call-off", daemon=True).start()

    def _run(self) -> None:
        try:
            self._exchange = self._make(lambda text: self._put(Piece(text)))
            if self._is_off:
                self._exchange.call_off()
            event: Event = self._exchange.run()
        except HungUp as end:
            event = end
        except ReconstituteError as error:
            event = error
        except Exception as error:  # noqa: BLE001 - a fault of ours is logged and answered; the adapter goes on
            _log.exception("a request failed by a fault of ours")
            event = error
        self._put(event)
        _on_loop(self._loop, self._ended, self.thread, None)

    def _put(self, event: Event) -> None:
        _on_loop(self._loop, self._events.put_nowait, event)


def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        _log.info("a request ended after the server had stopped; its answer went nowhere")


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamedAnswer(Response):
    """An answer in pieces, whose first event has come already."""

    def __init__(self, first: Event, delivery: Delivery, answer_format: AnswerFormat, headers: dict[str, str]) -> None:
        super().__init__(headers=headers, media_type=answer_format.media_type)
        del self.headers["content-length"]
        self._first, self._delivery, self._format = first, delivery, answer_format

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """ASGI."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        event = self._first
        try:
            while not isinstance(event, HungUp):
                is_more = isinstance(event, Piece)
                await send({"type": "http.response.body", "body": self._written(event), "more_body": is_more})
                if not is_more:
                    return
                event = await self._delivery.next()
        finally:
            self._delivery.call_off()

    def _written(self, event: Event) -> bytes:
        if isinstance(event, Piece):
            return self._format.piece(event.text)
        if isinstance(event, Answer):
            return self._format.end(event)
        return self._format.broken_off(failure_of(event))
