"""The calls of the control socket: which address takes which body, and which method of the Service it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.config import Config
from daemon.control import identity, responses
from daemon.control.calls import Progress, Service, Take, TakeText
from daemon.errors import BadRequest, ReconstituteError
from daemon.model import Json


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /recall/CALL; what the arguments may be is recall.query.request's."""

    arguments: dict[str, Any] = {}
    here: str = ""


class Export(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /export."""

    arguments: dict[str, Any] = {}


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /index."""


class Reconstitute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /reconstitute."""

    path: str
    questions: list[str] | None = None
    at: str = ""
    output: str = ""


class Estimate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /estimate."""

    path: str
    questions: list[str] | None = None
    at: str = ""


class Files(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /files."""

    path: str = "/"
    at: str = ""
    lost: bool = False


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /history."""

    path: str
    diff: bool = False
    lines: bool = False


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /content."""

    path: str
    at: str = ""
    raw: bool = False


class Restore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /restore."""

    path: str
    at: str = ""
    deleted: bool = False
    grade: str = "proven"


class Trajectories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /trajectories."""

    path: str = ""
    started: int = 0


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /alias."""

    old: str = ""
    new: str = ""
    remove: bool = False


_Call = Callable[[Request], Awaitable[Response]]


def application(service: Service, config: Config | None = None) -> Starlette:
    """The calls of `service`; `config` is what it works with, None refuses no caller (control.identity)."""

    async def status(request: Request) -> Response:
        differing = identity.differences(config, request.headers.get(identity.HEADER))
        return await responses.answer(
            "/status", lambda: service.status() | ({"differs": differing} if differing else {})
        )

    calls = _about_recall(service) | _about_targets(service) | _about_files(service)
    routes = [Route("/status", status, methods=["GET"])]
    routes += [Route(where, _checked(call, config), methods=["POST"]) for where, call in calls.items()]
    known = ", ".join(f"{next(iter(r.methods or ()))} {r.path}" for r in routes).replace("HEAD", "GET")

    async def refuse(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        reason = BadRequest(f"{request.method} {request.url.path}: not a call of this daemon; it takes {known}")
        return responses.respond(responses.error_bytes(reason), code)

    async def explain(_request: Request, error: Exception) -> Response:
        return responses.respond(
            responses.error_bytes(error), getattr(error, "status", None) or responses.status_of(error)
        )

    return Starlette(routes=routes, exception_handlers={HTTPException: refuse, ReconstituteError: explain})


def _checked(call: _Call, config: Config | None) -> _Call:
    """`call`, for callers that mean the settings of `config`."""

    async def checked(request: Request) -> Response:
        identity.check(config, request.headers.get(identity.HEADER))
        return await call(request)

    return checked


def _about_targets(service: Service) -> dict[str, _Call]:
    async def index(request: Request) -> Response:
        await responses.body(request, Index)
        return responses.stream("/index", service.index)

    async def reconstitute(request: Request) -> Response:
        body = await responses.body(request, Reconstitute)

        def call(progress: Progress) -> Json:
            return service.reconstitute(
                body.path, questions=body.questions, at=body.at, output=body.output, progress=progress
            )

        return responses.stream("/reconstitute", call)

    async def estimate(request: Request) -> Response:
        body = await responses.body(request, Estimate)

        def call(progress: Progress) -> Json:
            return service.estimate(body.path, questions=body.questions, at=body.at, progress=progress)

        return responses.stream("/estimate", call)

    async def trajectories(request: Request) -> Response:
        body = await responses.body(request, Trajectories)
        return await responses.answer("/trajectories", partial(service.trajectories, body.path, started=body.started))

    return {"/index": index, "/reconstitute": reconstitute, "/estimate": estimate, "/trajectories": trajectories}


def _about_recall(service: Service) -> dict[str, _Call]:
    async def recall(request: Request) -> Response:
        name = request.path_params["call"]
        body = await responses.body(request, Recall)
        call = partial(service.recall, name, body.arguments, here=body.here)
        return await responses.answer(f"/recall/{name}", call)

    async def export(request: Request) -> Response:
        body = await responses.body(request, Export)

        def call(take: TakeText, progress: Progress) -> Json:
            return service.export(body.arguments, take=take, progress=progress)

        return responses.stream_text("/export", call)

    return {"/recall/{call}": recall, "/export": export}


def _about_files(service: Service) -> dict[str, _Call]:
    async def files(request: Request) -> Response:
        body = await responses.body(request, Files)
        return responses.stream(
            "/files", lambda progress: service.files(body.path, at=body.at, lost=body.lost, progress=progress)
        )

    async def history(request: Request) -> Response:
        body = await responses.body(request, History)
        return responses.stream(
            "/history",
            lambda progress: service.history(body.path, diff=body.diff, lines=body.lines, progress=progress),
        )

    async def content(request: Request) -> Response:
        body = await responses.body(request, Content)
        return responses.stream(
            "/content", lambda progress: service.content(body.path, at=body.at, raw=body.raw, progress=progress)
        )

    async def restore(request: Request) -> Response:
        body = await responses.body(request, Restore)

        def call(take: Take, progress: Progress) -> Json:
            return service.restore(
                body.path, at=body.at, deleted=body.deleted, grade=body.grade, take=take, progress=progress
            )

        return responses.stream_contents("/restore", call)

    async def alias(request: Request) -> Response:
        body = await responses.body(request, Alias)
        return await responses.answer("/alias", partial(service.alias, body.old, body.new, remove=body.remove))

    return {"/files": files, "/history": history, "/content": content, "/restore": restore, "/alias": alias}
