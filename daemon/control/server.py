"""The daemon's side of the control socket: HTTP over a Unix socket, for this user alone.

Guarantees (docs/reliability.md, M1 to M3): the socket appears with mode 0600 inside a directory of mode 0700 that is
ours; only a dead socket is ever replaced, and only our own removed; a peer with another uid is hung up on before it is
read; bodies, waiting times and the number of connections are bounded; what a caller gets wrong is answered with the
error shape of control.protocol. uvicorn's signal handling, logging set-up and polling loop are not used.

Does not: know what the calls mean. A Service does the work, in a thread of its own per call.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.control import endpoint
from daemon.control.protocol import Progress, Service
from daemon.errors import BadRequest, ReconstituteError, Retry, Skip
from daemon.model import Json

BODY_BYTES = 1 << 20
READ_SECONDS = 5.0
CONNECTIONS = 16
ALIVE_SECONDS = 5.0
"""A stream says at least this often that it lives: with an empty line when there is no progress."""
WAITING_LINES = 256
"""Progress lines held for a slow reader; beyond that they are left out. The result never is."""
DRAIN_SECONDS = 3

T = TypeVar("T")
Call = Callable[[Progress], Json]
_log = logging.getLogger(__name__)


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /search."""

    query: str
    mode: str = "hybrid"
    limit: int = 10
    context: bool = False


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /index."""


class Reconstitute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /reconstitute."""

    path: str
    questions: list[str] | None = None
    at: str = ""
    output: str = ""


class Server:
    """Serves one Service at one socket path."""

    def __init__(self, service: Service, socket_path: Path, *, uid: int | None = None) -> None:
        """`uid` is whose calls are answered: the daemon's own user when not given."""
        self._path = socket_path
        self._uid = os.geteuid() if uid is None else uid
        self._app = _application(service)
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
        protocol = partial(_Connection, allowed_uid=self._uid)
        config = uvicorn.Config(
            self._app,
            http=protocol,  # type: ignore[arg-type]  # anything that makes a protocol will do
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            backlog=CONNECTIONS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        config.load()
        self._server = uvicorn.Server(config)
        # startup() and shutdown() without serve(): that would take the signals and wake ten times a second.
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])

    async def stop(self) -> None:
        """Take no more calls, give those under way a moment, close. Stopping twice is no error."""
        if self._server is None or self._socket is None:
            return
        server, self._server = self._server, None
        if not endpoint.remove(self._path, self._inode):
            _log.warning("the control socket's file was replaced or removed by someone else")
        await server.shutdown(sockets=[self._socket])


class _Connection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with the peer checked, one request each, and no waiting for slow senders."""

    def __init__(self, *args: Any, allowed_uid: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._allowed_uid = allowed_uid
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        credentials = transport.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
        _, uid, _ = struct.unpack("3i", credentials)
        if uid != self._allowed_uid:
            _log.warning("a process of uid %d called at the control socket and was refused", uid)
            self._refused = True
            transport.abort()
        elif len(self.connections) > CONNECTIONS:
            self._refuse(503, Retry(f"the control socket: {CONNECTIONS} calls are under way; try again later"))
        else:
            self.loop.call_later(READ_SECONDS, self._require_request)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, BadRequest(f"the control socket: {msg} It speaks HTTP/1.1"))

    def _refuse(self, status: int, error: ReconstituteError) -> None:
        self._refused = True
        body = _error_bytes(error)
        head = f"HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _require_request(self) -> None:
        cycle: object = self.cycle
        if cycle is None and not self.transport.is_closing():
            self.transport.abort()


def _application(service: Service) -> Starlette:
    async def status(_request: Request) -> Response:
        return await _answer("/status", service.status)

    async def search(request: Request) -> Response:
        body = await _body(request, Search)
        call = partial(service.search, body.query, mode=body.mode, limit=body.limit, context=body.context)
        return await _answer("/search", call)

    async def index(request: Request) -> Response:
        await _body(request, Index)
        return _stream("/index", service.index)

    async def reconstitute(request: Request) -> Response:
        body = await _body(request, Reconstitute)

        def call(progress: Progress) -> Json:
            return service.reconstitute(
                body.path, questions=body.questions, at=body.at, output=body.output, progress=progress
            )

        return _stream("/reconstitute", call)

    routes = [
        Route("/status", status, methods=["GET"]),
        Route("/search", search, methods=["POST"]),
        Route("/index", index, methods=["POST"]),
        Route("/reconstitute", reconstitute, methods=["POST"]),
    ]
    known = ", ".join(f"{next(iter(r.methods or ()))} {r.path}" for r in routes).replace("HEAD", "GET")

    async def refuse(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        reason = BadRequest(f"{request.method} {request.url.path}: not a call of this daemon; it takes {known}")
        return _respond(_error_bytes(reason), code)

    async def explain(_request: Request, error: Exception) -> Response:
        return _respond(_error_bytes(error), getattr(error, "status", None) or _status(error))

    return Starlette(routes=routes, exception_handlers={HTTPException: refuse, ReconstituteError: explain})


async def _body(request: Request, schema: type[T]) -> T:
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
        return msgspec.json.decode(data or b"{}", type=schema)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
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


async def _answer(where: str, call: Callable[[], Json]) -> Response:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def settle(response: Response) -> None:
        if not done.done():
            done.set_result(response)

    def work() -> tuple[Callable[..., object], tuple[Response]]:
        try:
            return settle, (_respond(_encode(call()), 200),)
        except BaseException as error:  # noqa: BLE001 - a fault of ours is logged and answered; the daemon goes on
            _note_fault(where, error)
            return settle, (_respond(_error_bytes(error), _status(error)),)

    _start(loop, work)
    return await done


def _stream(where: str, call: Call) -> Response:
    headers = {"connection": "close", "cache-control": "no-store"}
    return StreamingResponse(_lines(where, call), media_type="application/x-ndjson", headers=headers)


async def _lines(where: str, call: Call) -> AsyncIterator[bytes]:
    """Progress lines while `call` works, then one line with its result or its error.

    A caller that hangs up does not stop the work: its thread goes on to its end.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()

    def offer(line: bytes) -> None:
        if waiting.qsize() < WAITING_LINES:
            waiting.put_nowait((line, False))

    def work() -> tuple[Callable[..., object], tuple[tuple[bytes, bool]]]:
        try:
            result = call(lambda event: _tell(loop, offer, _encode(event)))
            return waiting.put_nowait, ((_encode({"result": result}), True),)
        except BaseException as error:  # noqa: BLE001 - as in _answer
            _note_fault(where, error)
            return waiting.put_nowait, ((_error_bytes(error), True),)

    _start(loop, work)
    last = False
    while not last:
        try:
            async with asyncio.timeout(ALIVE_SECONDS):
                line, last = await waiting.get()
        except TimeoutError:
            line = b""
        yield line + b"\n"


def _encode(value: Json) -> bytes:
    # ensure_ascii: a lone surrogate travels as an escape where UTF-8 would refuse it.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _error_bytes(error: BaseException) -> bytes:
    if isinstance(error, ReconstituteError):
        kind, message, code = type(error).__name__, str(error), error.exit_code
    else:
        # Another exception's text may quote a message: the log has it, redacted.
        kind, code = "ReconstituteError", ReconstituteError.exit_code
        message = f"the daemon: an error of its own ({type(error).__name__}); its log says more"
    return _encode({"error": {"type": kind, "message": message, "exit_code": code}})


def _status(error: BaseException) -> int:
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Skip):
        return 422
    return 503 if isinstance(error, Retry) else 500


def _respond(body: bytes, status: int) -> Response:
    headers = {"connection": "close", "cache-control": "no-store"}
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def _note_fault(where: str, error: BaseException) -> None:
    if not isinstance(error, ReconstituteError):
        _log.error("a control call failed by a fault of ours: %s", where, exc_info=error)
