"""How a call is answered: its body checked, its work done in a thread of its own, its result or error sent as JSON.

Guarantees: bodies and waiting times are bounded; what a caller gets wrong is answered with the error shape of
control.calls; a stream says at least every ALIVE_SECONDS that it lives; progress may be left out for a slow reader,
a file's content and the result never are. A caller that hangs up ends the sending of contents, and no other work.
"""

from __future__ import annotations

import asyncio
import base64
import difflib
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon import records
from daemon.control.calls import FileContent, Progress, Take, TakeText
from daemon.errors import BadRequest, ReconstituteError, Retry, Skip
from daemon.model import Json
from daemon.redact import redact

BODY_BYTES = 1 << 20
READ_SECONDS = 5.0
ALIVE_SECONDS = 5.0
"""A stream says at least this often that it lives: with an empty line when there is no progress."""
WAITING_LINES = 256
"""Progress lines held for a slow reader; beyond that they are left out."""
WAITING_CONTENTS = 4
TOGETHER_BYTES = 1 << 18
"""Contents are sent in pieces of about this size; so many are held for a slow reader, then the work waits."""

T = TypeVar("T")
Call = Callable[[Progress], Json]
_log = logging.getLogger(__name__)


class HungUp(ReconstituteError):  # noqa: N818 - not a failure
    """The caller is gone; nobody waits for the rest."""


async def body(request: Request, schema: type[T]) -> T:
    """The request's JSON body as `schema`; an empty body is an empty object.

    Raises:
        BadRequest: too large, too slow, not JSON, an unknown or missing field, a wrong type.
    """
    where, data = request.url.path, b""
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > BODY_BYTES:
                    raise _refusal(413, f"{where}: the body is larger than {BODY_BYTES} bytes; ask for less at once")
    except TimeoutError:
        raise _refusal(408, f"{where}: the body did not arrive within {READ_SECONDS:g} s; send it again") from None
    try:
        # Not by msgspec alone: a lone surrogate, as a file's name may hold, comes as an escape that it refuses.
        return msgspec.convert(json.loads(data or b"{}"), records.built(schema))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        fields = [f.name for f in msgspec.structs.fields(schema)]  # type: ignore[arg-type]
        unknown = str(error).partition("unknown field `")[2].partition("`")[0]
        near = difflib.get_close_matches(unknown, fields, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(fields) or 'no fields'}"
        raise BadRequest(f"{where}: {error}; {hint}") from None


def _refusal(status: int, message: str) -> BadRequest:
    error = BadRequest(message)
    error.status = status  # type: ignore[attr-defined]  # a nearer HTTP status than 400
    return error


def _start(loop: asyncio.AbstractEventLoop, work: Callable[[], tuple[Callable[..., object], tuple[Any, ...]]]) -> None:
    """Run `work` in a daemon thread, then on the loop what it returns: a function and its arguments.

    Not in an executor: its threads would be waited for at exit, however long they take (docs/reliability.md, D3).
    """

    def run() -> None:
        function, arguments = work()
        _tell(loop, function, *arguments)

    threading.Thread(target=run, name="control-call", daemon=True).start()


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        _log.info("a control call ended after the server had stopped; its answer went nowhere")


async def answer(where: str, call: Callable[[], Json]) -> Response:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def settle(response: Response) -> None:
        if not done.done():
            done.set_result(response)

    def work() -> tuple[Callable[..., object], tuple[Response]]:
        try:
            return settle, (respond(_encode(call()), 200),)
        except BaseException as error:  # noqa: BLE001 - a fault of ours is logged and answered; the daemon goes on
            _note_fault(where, error)
            return settle, (respond(error_bytes(error), status_of(error)),)

    _start(loop, work)
    return await done


def stream(where: str, call: Call) -> Response:
    """Progress lines while `call` works, then one line with its result or its error."""
    return _stream(_Lines(where, lambda _lines, progress: call(progress)))


def stream_contents(where: str, call: Callable[[Take, Progress], Json]) -> Response:
    """As `stream`, and what `call` hands to its Take in between, a line each: ``{"content": {...}}``."""
    return _stream(_Lines(where, lambda lines, progress: call(lines.take, progress)))


def stream_text(where: str, call: Callable[[TakeText, Progress], Json]) -> Response:
    """As `stream`, and what `call` hands to its TakeText in between, a line each: ``{"text": "..."}``."""
    return _stream(_Lines(where, lambda lines, progress: call(lines.take_text, progress)))


def _stream(lines: _Lines) -> Response:
    headers = {"connection": "close", "cache-control": "no-store"}
    return StreamingResponse(lines.all(), media_type="application/x-ndjson", headers=headers)


class _Lines:
    """The lines of one stream: made in a thread of the call's own, sent from the loop.

    A caller that hangs up does not stop the work: its thread goes on to its end, or to the next content it would send.
    """

    def __init__(self, where: str, call: Callable[[_Lines, Progress], Json]) -> None:
        self._where = where
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[tuple[bytes, bool, bool]] = asyncio.Queue()
        self._room = threading.Semaphore(WAITING_CONTENTS)
        self._gone = threading.Event()
        self._kept: list[bytes] = []
        self._kept_bytes = 0

    async def all(self) -> AsyncIterator[bytes]:
        """Line after line, until the last."""
        _start(self._loop, self._work)
        last = False
        try:
            while not last:
                is_content = False
                try:
                    async with asyncio.timeout(ALIVE_SECONDS):
                        line, is_content, last = await self._waiting.get()
                except TimeoutError:
                    line = b""
                yield line + b"\n"
                if is_content:
                    self._room.release()
        finally:
            self._gone.set()

    def _offer(self, line: bytes) -> None:
        if self._waiting.qsize() < WAITING_LINES:
            self._waiting.put_nowait((line, False, False))

    def _work(self) -> tuple[Callable[..., object], tuple[tuple[bytes, bool, bool]]]:
        try:
            result = self._call(self, lambda event: _tell(self._loop, self._offer, _encode(event)))
            last = _encode({"result": result})
            self._send_kept()
        except BaseException as error:  # noqa: BLE001 - as in answer
            _note_fault(self._where, error)
            last = error_bytes(error)
        return self._waiting.put_nowait, ((last, False, True),)

    def take(self, content: FileContent) -> None:
        """A Take."""
        described = {name: getattr(content, name) for name in content.__slots__ if name != "data"}
        self._keep(_encode({"content": described | {"data": base64.b64encode(content.data).decode()}}))

    def take_text(self, piece: str) -> None:
        """A TakeText."""
        self._keep(_encode({"text": piece}))

    def _keep(self, line: bytes) -> None:
        self._kept.append(line)
        self._kept_bytes += len(line)
        if self._kept_bytes >= TOGETHER_BYTES:
            self._send_kept()

    def _send_kept(self) -> None:
        if not self._kept:
            return
        while not self._room.acquire(timeout=1):
            if self._gone.is_set():
                raise HungUp(f"{self._where}: the caller is gone; call again")
        lines = b"\n".join(self._kept)
        self._kept, self._kept_bytes = [], 0
        _tell(self._loop, self._waiting.put_nowait, (lines, True, False))


def _encode(value: Json) -> bytes:
    # ensure_ascii: a lone surrogate travels as an escape where UTF-8 would refuse it.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def error_bytes(error: BaseException) -> bytes:
    if isinstance(error, ReconstituteError):
        # What was wrong with a call is told in its own words, and these may hold a secret.
        kind, message, code = type(error).__name__, redact(str(error)), error.exit_code
    else:
        # Another exception's text may quote a message: the log has it, redacted.
        kind, code = "ReconstituteError", ReconstituteError.exit_code
        message = f"the daemon: an error of its own ({type(error).__name__}); its log says more"
    return _encode({"error": {"type": kind, "message": message, "exit_code": code}})


def status_of(error: BaseException) -> int:
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Skip):
        return 422
    return 503 if isinstance(error, Retry) else 500


def respond(body: bytes, status: int) -> Response:
    headers = {"connection": "close", "cache-control": "no-store"}
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def _note_fault(where: str, error: BaseException) -> None:
    if not isinstance(error, ReconstituteError):
        _log.error("a control call failed by a fault of ours: %s", where, exc_info=error)
