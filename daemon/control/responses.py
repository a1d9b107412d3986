"""From a call's request to its response: the body is checked, the work done in a thread, the answer sent as JSON.

Guarantees: bodies and waiting times are bounded; a caller's mistake is answered with the error shape of control.calls;
a stream says at least every ALIVE_SECONDS that it lives; progress may be left out for a slow reader, the parts of an
answer and the result never are. A caller that hangs up ends the sending of parts, and no other work.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from daemon.control.answers import from_json, to_json
from daemon.control.calls import Call, Request, Service
from daemon.errors import BadRequest, ReconstituteError, Retry, Skip, described
from daemon.redact import redact

BODY_BYTES = 1 << 20
READ_SECONDS = 5.0
ALIVE_SECONDS = 5.0
"""A stream says at least this often that it lives: with an empty line when there is no progress."""
WAITING_LINES = 256
"""Progress lines held for a slow reader; beyond that they are left out."""
WAITING_PARTS = 4
TOGETHER_BYTES = 1 << 18
"""Parts are sent in pieces of about this size; so many are held for a slow reader, then the work waits."""

HEADERS = {"connection": "close", "cache-control": "no-store"}
_log = logging.getLogger(__name__)


T = TypeVar("T")


class HungUp(ReconstituteError):
    """The caller is gone; nobody waits for the rest."""


async def read(http: HttpRequest, call: Call) -> Request[Any]:
    """The request in an HTTP request's body and address; an empty body is an empty object.

    Raises:
        BadRequest: too large, too slow, not JSON, an unknown or missing field, a wrong type.
    """
    where, data = http.url.path, b""
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for piece in http.stream():
                data += piece
                if len(data) > BODY_BYTES:
                    raise _refusal(413, f"{where}: the body is larger than {BODY_BYTES} bytes; ask for less at once")
    except TimeoutError:
        raise _refusal(408, f"{where}: the body did not arrive within {READ_SECONDS:g} s; send it again") from None
    try:
        # Not by msgspec alone: a lone surrogate, as a file's name may hold, comes as an escape that it refuses.
        body = json.loads(data or b"{}")
        if isinstance(body, dict):
            for name in body.keys() & http.path_params.keys():
                del body[name]
                body[f"{name} in the body"] = None  # refused as every unknown field is
            body |= http.path_params
        return from_json(body, call.request)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"{where}: {error}; {_hint(str(error), call)}") from None


def _hint(error: str, call: Call) -> str:
    fields = [f.encode_name for f in msgspec.structs.fields(call.request) if f.name not in call.fields_in_address]
    unknown = error.partition("unknown field `")[2].partition("`")[0]
    alike = difflib.get_close_matches(unknown, fields, n=1)
    return f"did you mean {alike[0]}?" if alike else f"it takes {', '.join(fields) or 'no fields'}"


def _refusal(status: int, message: str) -> BadRequest:
    error = BadRequest(message)
    error.status = status
    return error


def as_json(value: object) -> Response:
    """A whole answer in JSON."""
    return respond(_encode(to_json(value)), 200)


async def answer(where: str, work: Callable[[], T], form: Callable[[T], Response] = as_json) -> Response:
    """The answer of `work`, or its error."""

    def respond_to(work: Callable[[], T]) -> Response:
        try:
            return form(work())
        except BaseException as error:  # noqa: BLE001 - a fault of ours is logged and answered; the daemon goes on
            _log_fault(where, error)
            return respond(error_bytes(error), status_of(error))

    return await in_thread(lambda: respond_to(work))


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises, in a thread that `finish` waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(function: Callable[[Any], None], value: object) -> None:
        if not future.done():
            function(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (future.set_result, work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            outcome = (future.set_exception, error)
        _on_loop(loop, settle, *outcome)

    _start(run)
    return await future


def stream(where: str, service: Service, call: Call, request: Request[Any]) -> Response:
    """Progress lines and parts while `service` works, then one line with its result or its error."""
    lines = _Lines(where, service, call, request)
    return StreamingResponse(lines.all(), media_type="application/x-ndjson", headers=HEADERS)


_UNDER_WAY = set[threading.Thread]()


def _start(run: Callable[[], None]) -> None:
    """Not in an executor: its threads would be waited for at exit, however long they take (docs/reliability.md, D3)."""

    def work() -> None:
        try:
            run()
        finally:
            _UNDER_WAY.discard(thread)

    thread = threading.Thread(target=work, name="control-call", daemon=True)
    _UNDER_WAY.add(thread)
    thread.start()


def finish(within_s: float) -> bool:
    """Wait for calls that are still at work, also those whose callers are gone; whether all ended."""
    until = time.monotonic() + within_s
    for thread in list(_UNDER_WAY):
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in list(_UNDER_WAY))


def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        _log.info("a control call ended after the server had stopped; its answer went nowhere")


class _Lines:
    """The lines of one stream: made in a thread of the call's own, sent from the loop.

    A caller that hangs up does not stop the work: its thread goes on to its end, or to the next part it would send.
    """

    def __init__(self, where: str, service: Service, call: Call, request: Request[Any]) -> None:
        self._where = where
        self._service = service
        self._call = call
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[tuple[bytes, bool, bool]] = asyncio.Queue()
        self._free = threading.Semaphore(WAITING_PARTS)
        self._disconnected = threading.Event()
        self._parts: list[bytes] = []
        self._parts_bytes = 0

    async def all(self) -> AsyncIterator[bytes]:
        """Line after line, until the last."""
        _start(self._run)
        is_last = False
        try:
            while not is_last:
                is_part = False
                try:
                    async with asyncio.timeout(ALIVE_SECONDS):
                        line, is_part, is_last = await self._waiting.get()
                except TimeoutError:
                    line = b""
                yield line + b"\n"
                if is_part:
                    self._free.release()
        finally:
            self._disconnected.set()

    def _run(self) -> None:
        try:
            result = self._service.call(self._request, progress=self._progress, on_part=self._on_part)
            last = _encode({"result": to_json(result)})
            self._send_parts()
        except BaseException as error:  # noqa: BLE001 - as in answer
            _log_fault(self._where, error)
            last = error_bytes(error)
        _on_loop(self._loop, self._waiting.put_nowait, (last, False, True))

    def _progress(self, event: object) -> None:
        _on_loop(self._loop, self._offer, _encode(event))

    def _offer(self, line: bytes) -> None:
        if self._waiting.qsize() < WAITING_LINES:
            self._waiting.put_nowait((line, False, False))

    def _on_part(self, part: object) -> None:
        line = _encode({self._call.part_name: to_json(part)})
        self._parts.append(line)
        self._parts_bytes += len(line)
        if self._parts_bytes >= TOGETHER_BYTES:
            self._send_parts()

    def _send_parts(self) -> None:
        if not self._parts:
            return
        while not self._free.acquire(timeout=1):
            if self._disconnected.is_set():
                raise HungUp(f"{self._where}: the caller is gone; call again")
        lines = b"\n".join(self._parts)
        self._parts, self._parts_bytes = [], 0
        _on_loop(self._loop, self._waiting.put_nowait, (lines, True, False))


def _encode(value: object) -> bytes:
    # ensure_ascii: a lone surrogate travels as an escape where UTF-8 would refuse it.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def error_bytes(error: BaseException) -> bytes:
    """The body that says what went wrong."""
    if not isinstance(error, ReconstituteError):
        # Another exception's text may quote a message: the log has it, redacted.
        fault = type(error).__name__
        error = ReconstituteError(f"the service: internal error ({fault}); see its log")
    # An error quotes what was wrong with a call, and that may hold a secret.
    return _encode({"error": described(error, redact(str(error)))})


def status_of(error: BaseException) -> int:
    """The HTTP status of an error."""
    if isinstance(error, ReconstituteError) and error.status is not None:
        return error.status
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Skip):
        return 422
    return 503 if isinstance(error, Retry) else 500


def respond(body: bytes, status: int) -> Response:
    """A whole response in JSON."""
    return Response(body, status_code=status, media_type="application/json", headers=HEADERS)


def _log_fault(where: str, error: BaseException) -> None:
    if not isinstance(error, ReconstituteError):
        _log.error("a control call failed by a fault of ours: %s", where, exc_info=error)
