"""What a client is told of an error: a status, a message, and the shape that its API gives them."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from daemon.adapter.catalog import UnknownModel
from daemon.adapter.exchange import HungUp, Unanswered
from daemon.adapter.model_request import encoded
from daemon.errors import BadReply, BadRequest, ContextLost, ReconstituteError, Retry
from daemon.model import Json

_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownModel, 404),
    (BadRequest, 400),
    (ContextLost, 400),
    (BadReply, 502),
    (Retry, 503),
    (HungUp, 499),
)
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (UnknownModel, "model_not_found"),
    (ContextLost, "context_length_exceeded"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a client sees it; `code` is OpenAI's word for it, where there is one."""

    status: int
    message: str
    code: str | None = None


def failure_of(error: Exception) -> Failure:
    """The error as a client is to see it, with the status that both APIs give it."""
    if not isinstance(error, ReconstituteError):
        # Another exception's text may quote a message: the log has it.
        return Failure(500, f"the adapter: an error of its own ({type(error).__name__}); its log says more")
    cause = error.cause if isinstance(error, Unanswered) else error
    status = next((status for kind, status in _STATUSES if isinstance(cause, kind)), 500)
    code = next((code for kind, code in _CODES if isinstance(cause, kind)), None)
    return Failure(status, str(error), code)


def in_shape_of(path: str, failure: Failure) -> Json:
    """The error as the API at this path writes it: OpenAI's beneath /v1, Ollama's elsewhere."""
    if not (path == "/v1" or path.startswith("/v1/")):
        return {"error": failure.message}
    kind = "invalid_request_error" if failure.status < 500 else "api_error"
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": failure.code}}


def response(path: str, failure: Failure, headers: dict[str, str] | None = None) -> Response:
    """The error as a whole response."""
    body = encoded(in_shape_of(path, failure))
    # OpenAI's clients ask twice more after any 5xx. What fails here was tried more than once, or can never be.
    final = {"x-should-retry": "false"} if failure.status in (501, 502) else {}
    return Response(body, failure.status, final | (headers or {}), media_type="application/json; charset=utf-8")
