"""Which address does what: Ollama's API, as far as a model behind OpenCode can serve it, and /health.

Every error is ``{"error": text}`` with the status that Ollama gives it. What a model elsewhere cannot do (embeddings,
pulling, creating and so on) is refused with 501 and the reason.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from daemon.adapter import ollama_api
from daemon.adapter.delivery import Deliveries, Event, Lines, Piece, in_thread
from daemon.adapter.exchange import Answer, Exchange, HungUp, Unanswered
from daemon.adapter.guard import BODY_BYTES
from daemon.adapter.ollama_api import Catalog, ModelRequest, UnknownModel
from daemon.adapter.sessions import Sessions
from daemon.chat.opencode.server import OpenCodeServer
from daemon.errors import BadReply, BadRequest, ContextLost, ReconstituteError, Retry
from daemon.model import Json

READ_SECONDS = 30.0
_ELSEWHERE = "models are OpenCode's: add or remove them there, with opencode auth login or in opencode.json"
_REFUSED = {
    "/api/embed": "this model does not support embeddings; ask an Ollama server for them",
    "/api/embeddings": "this model does not support embeddings; ask an Ollama server for them",
    **dict.fromkeys(("/api/pull", "/api/push", "/api/create", "/api/delete", "/api/copy"), _ELSEWHERE),
    "/api/blobs/{digest}": _ELSEWHERE,
    "/v1/{rest:path}": "only Ollama's own API is spoken here: use /api/chat",
}


class Routes:
    """The HTTP side of one adapter."""

    def __init__(self, server: OpenCodeServer, sessions: Sessions, catalog: Catalog, seconds: float) -> None:
        self._server, self._sessions, self._catalog, self._seconds = server, sessions, catalog, seconds
        self._since = time.time()
        self.deliveries = Deliveries()

    def application(self) -> Starlette:
        """The ASGI application."""
        calls: dict[str, tuple[Callable[[Request], Awaitable[Response]], list[str]]] = {
            "/": (self._root, ["GET"]),
            "/health": (self._health, ["GET"]),
            "/api/version": (self._version, ["GET"]),
            "/api/tags": (self._tags, ["GET"]),
            "/api/ps": (self._ps, ["GET"]),
            "/api/show": (self._show, ["POST"]),
            "/api/chat": (self._chat, ["POST"]),
            "/api/generate": (self._generate, ["POST"]),
        }
        routes = [Route(where, call, methods=methods) for where, (call, methods) in calls.items()]
        methods = ["GET", "HEAD", "POST", "DELETE", "PUT"]
        routes += [Route(where, _refuse(why), methods=methods) for where, why in _REFUSED.items()]
        return Starlette(routes=routes, exception_handlers={HTTPException: _explain, Exception: _explain})

    async def _root(self, _request: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    async def _version(self, _request: Request) -> Response:
        return _json({"version": ollama_api.VERSION})

    async def _health(self, _request: Request) -> Response:
        in_use, waiting = self._sessions.counts()
        about: Json = {"url": self._server.url}
        try:
            about["version"] = await in_thread(partial(self._server.health, timeout_s=5.0))
        except Retry as error:
            about["error"] = str(error)
        answers = "version" in about
        state = {"status": "ok" if answers else "degraded", "opencode": about}
        return _json({**state, "sessions": {"in_use": in_use, "waiting": waiting}}, 200 if answers else 503)

    async def _tags(self, _request: Request) -> Response:
        return await self._answer(
            lambda: {"models": [ollama_api.model_entry(m, self._since) for m in self._catalog.all()]}
        )

    async def _show(self, request: Request) -> Response:
        data = await _body(request)
        return await self._answer(
            lambda: ollama_api.model_details(self._catalog.find(ollama_api.model_of(data)), self._since)
        )

    async def _ps(self, _request: Request) -> Response:
        def call() -> Json:
            latest = dict[str, float]()
            for name, seconds in self._sessions.waiting():
                latest[name] = max(seconds, latest.get(name, 0.0))
            models = {model.id: model for model in self._catalog.all()} if latest else {}
            now = time.time()
            return {"models": [ollama_api.running_model(models[n], now + s) for n, s in latest.items() if n in models]}

        return await self._answer(call)

    async def _answer(self, call: Callable[[], Json]) -> Response:
        try:
            return _json(await in_thread(call))
        except ReconstituteError as error:
            return _failed(error)

    async def _chat(self, request: Request) -> Response:
        return await self._converse("chat", request, ollama_api.chat)

    async def _generate(self, request: Request) -> Response:
        return await self._converse("generate", request, ollama_api.generate)

    async def _converse(self, api: ollama_api.Api, request: Request, read: Callable[[bytes], ModelRequest]) -> Response:
        data = await _body(request)
        try:
            model_request = await in_thread(partial(read, data))
            if model_request.is_empty:
                return await in_thread(partial(self._load, api, model_request))
            return await self._deliver(api, request, model_request)
        except ReconstituteError as error:
            return _failed(error)

    def _load(self, api: ollama_api.Api, model_request: ModelRequest) -> Response:
        """A request without a prompt: nothing is loaded, but idle sessions of the model may be released."""
        model = self._catalog.find(model_request.model)
        if not model_request.keeps:
            self._sessions.release(model.id)
        return _json(ollama_api.loaded(api, model_request.model, is_unload=not model_request.keeps))

    async def _deliver(self, api: ollama_api.Api, request: Request, model_request: ModelRequest) -> Response:
        def make(on_text: Callable[[str], None]) -> Exchange:
            model = self._catalog.find(model_request.model)
            return Exchange(
                _with_model_name(model_request, model.id),
                request.client.host if request.client else "",
                server=self._server,
                sessions=self._sessions,
                seconds=self._seconds,
                on_text=on_text if model_request.streams else None,
            )

        delivery = self.deliveries.begin(make, request.receive)
        first = await delivery.next()
        headers = {"reconstitute-ignored": ", ".join(model_request.ignored)} if model_request.ignored else {}
        if isinstance(first, Exception):
            return _failed(first)
        if model_request.streams:
            return Lines(first, delivery, lambda event: _lines(api, model_request.model, event), headers)
        if isinstance(first, Piece):
            raise TypeError("a piece of an answer that is not streamed")
        return _json(
            ollama_api.final(api, model_request.model, first.figures, first.content, first.calls), headers=headers
        )


def _with_model_name(request: ModelRequest, name: str) -> ModelRequest:
    """The request with the model's full name, because a client may use another spelling."""
    return replace(request, model=name)


def _lines(api: ollama_api.Api, model: str, event: Event) -> list[Json]:
    """An event as lines of a stream that has begun."""
    if isinstance(event, Piece):
        return [ollama_api.piece(api, model, event.text)]
    if isinstance(event, Answer):
        last = [ollama_api.piece(api, model, event.unsent, event.calls)] if event.unsent or event.calls else []
        return [*last, ollama_api.final(api, model, event.figures)]
    cause = event.cause if isinstance(event, Unanswered) else event
    return [ollama_api.broken_off(api, model, _message(cause), event.apology if isinstance(event, Unanswered) else "")]


async def _body(request: Request) -> bytes:
    """The body, bounded in size and time; raises HTTPException."""
    data = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > BODY_BYTES:
                    raise HTTPException(413, f"the body is larger than {BODY_BYTES >> 20} MB")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {READ_SECONDS:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body broke off") from None
    return bytes(data)


def _status(error: Exception) -> int:
    """The HTTP status that Ollama uses for this error."""
    if isinstance(error, Unanswered):
        return _status(error.cause)
    statuses: tuple[tuple[type[Exception], int], ...] = (
        (UnknownModel, 404),
        (BadRequest, 400),
        (ContextLost, 400),
        (BadReply, 502),
        (Retry, 503),
        (HungUp, 499),
    )
    return next((status for kind, status in statuses if isinstance(error, kind)), 500)


def _message(error: Exception) -> str:
    if isinstance(error, ReconstituteError):
        return str(error)
    # Another exception's text may quote a message: the log has it.
    return f"the adapter: an error of its own ({type(error).__name__}); its log says more"


def _failed(error: Exception) -> Response:
    return _json({"error": _message(error)}, _status(error))


async def _explain(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return _failed(error)
    reasons = {
        404: f"{request.url.path} is no address of Ollama's",
        405: f"{request.method} is not for this address",
    }
    return _json({"error": reasons.get(error.status_code, error.detail)}, error.status_code)


def _refuse(why: str) -> Callable[[Request], Awaitable[Response]]:
    async def refuse(_request: Request) -> Response:
        return _json({"error": why}, 501)

    return refuse


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status_code=status, media_type="application/json; charset=utf-8", headers=headers)
