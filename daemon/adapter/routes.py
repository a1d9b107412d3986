"""Which address does what: both APIs, as far as a model behind OpenCode can serve them, and /health.

Every error has the shape of the API whose address was asked (`failures`). What a model elsewhere cannot do (embeddings,
pulling, creating and so on) is refused with 501 and the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from daemon.adapter import failures, ollama_api, openai_api
from daemon.adapter.catalog import Catalog
from daemon.adapter.delivery import AnswerFormat, Deliveries, Piece, StreamedAnswer, in_thread
from daemon.adapter.exchange import Exchange
from daemon.adapter.failures import Failure, failure_of
from daemon.adapter.guard import BODY_BYTES
from daemon.adapter.model_request import ModelRequest, encoded
from daemon.adapter.sessions import Sessions
from daemon.chat.opencode.server import OpenCodeServer
from daemon.errors import BadRequest, ReconstituteError, Retry
from daemon.model import Json

READ_SECONDS = 30.0
_ELSEWHERE = "models are OpenCode's: add or remove them there, with opencode auth login or in opencode.json"
_REFUSED = {
    "/api/embed": "this model does not support embeddings; ask an Ollama server for them",
    "/api/embeddings": "this model does not support embeddings; ask an Ollama server for them",
    **dict.fromkeys(("/api/pull", "/api/push", "/api/create", "/api/delete", "/api/copy"), _ELSEWHERE),
    "/api/blobs/{digest}": _ELSEWHERE,
    "/v1/{rest:path}": "of OpenAI's API, only /v1/chat/completions and /v1/models are served here",
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
            "/v1/models": (self._list_models, ["GET"]),
            "/v1/models/{model:path}": (self._retrieve_model, ["GET"]),
            "/v1/chat/completions": (self._complete, ["POST"]),
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

    async def _tags(self, request: Request) -> Response:
        return await self._answer(
            request, lambda: {"models": [ollama_api.model_entry(m, self._since) for m in self._catalog.all()]}
        )

    async def _show(self, request: Request) -> Response:
        data = await _body(request)
        return await self._answer(
            request, lambda: ollama_api.model_details(self._catalog.find(ollama_api.model_of(data)), self._since)
        )

    async def _list_models(self, request: Request) -> Response:
        def call() -> Json:
            models = [openai_api.model_entry(model, self._since) for model in self._catalog.all()]
            return {"object": "list", "data": models}

        return await self._answer(request, call)

    async def _retrieve_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        return await self._answer(request, lambda: openai_api.model_entry(self._catalog.find(name), self._since))

    async def _ps(self, request: Request) -> Response:
        def call() -> Json:
            latest = dict[str, float]()
            for name, seconds in self._sessions.waiting():
                latest[name] = max(seconds, latest.get(name, 0.0))
            models = {model.id: model for model in self._catalog.all()} if latest else {}
            now = time.time()
            return {"models": [ollama_api.running_model(models[n], now + s) for n, s in latest.items() if n in models]}

        return await self._answer(request, call)

    async def _answer(self, request: Request, call: Callable[[], Json]) -> Response:
        try:
            return _json(await in_thread(call))
        except ReconstituteError as error:
            return _failed(request, error)

    async def _chat(self, request: Request) -> Response:
        return await self._converse(request, ollama_api.chat)

    async def _generate(self, request: Request) -> Response:
        return await self._converse(request, ollama_api.generate)

    async def _complete(self, request: Request) -> Response:
        data = await _body(request)
        try:
            return await self._deliver(request, *await in_thread(partial(openai_api.chat, data)))
        except ReconstituteError as error:
            return _failed(request, error)

    async def _converse(
        self, request: Request, read: Callable[[bytes], tuple[ModelRequest, ollama_api.OllamaFormat]]
    ) -> Response:
        data = await _body(request)
        try:
            model_request, answer_format = await in_thread(partial(read, data))
            if model_request.is_empty:
                return await in_thread(partial(self._load, model_request, answer_format))
            return await self._deliver(request, model_request, answer_format)
        except ReconstituteError as error:
            return _failed(request, error)

    def _load(self, model_request: ModelRequest, answer_format: ollama_api.OllamaFormat) -> Response:
        """A request without a prompt: nothing is loaded, but idle sessions of the model may be released."""
        model = self._catalog.find(model_request.model)
        if not model_request.keeps:
            self._sessions.release(model.id)
        return _json(answer_format.loaded(is_unload=not model_request.keeps))

    async def _deliver(self, request: Request, model_request: ModelRequest, answer_format: AnswerFormat) -> Response:
        def make(on_text: Callable[[str], None]) -> Exchange:
            model = self._catalog.find(model_request.model)
            if model_request.has_images and not model.takes_images:
                raise BadRequest(f"{model.id} does not take images; ask a model that can see, or send the text alone")
            return Exchange(
                replace(model_request, model=model.id),  # a client may use another spelling
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
            return _failed(request, first)
        if model_request.streams:
            return StreamedAnswer(first, delivery, answer_format, headers)
        if isinstance(first, Piece):
            raise TypeError("a piece of an answer that is not streamed")
        return _json(answer_format.whole(first), headers=headers)


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


def _failed(request: Request, error: Exception) -> Response:
    return failures.response(request.url.path, failure_of(error))


async def _explain(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return _failed(request, error)
    reasons = {
        404: f"{request.url.path} is not an address of Ollama's or OpenAI's",
        405: f"{request.method} is not for this address",
    }
    message = reasons.get(error.status_code, error.detail)
    return failures.response(request.url.path, Failure(error.status_code, message))


def _refuse(why: str) -> Callable[[Request], Awaitable[Response]]:
    async def refuse(request: Request) -> Response:
        return failures.response(request.url.path, Failure(501, why))

    return refuse


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encoded(value), status, headers, media_type="application/json; charset=utf-8")
