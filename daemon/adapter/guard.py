"""Who may ask, before a body is read: host, origin, token, size of the body.

A page whose name resolves to 127.0.0.1 has its own name in the Host header (DNS rebinding); a page of any site may send
a form, and has its own address in the Origin header. Only `adapter.origins` lets pages in, with the headers that
browsers require.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.adapter.failures import Failure, in_shape_of, response
from daemon.adapter.model_request import encoded
from daemon.config import Adapter
from daemon.http_server import BoundedConnection

BODY_BYTES = 32 << 20
_STAINLESS = (
    "arch", "async", "helper-method", "lang", "os", "package-version", "retry-count", "runtime", "runtime-version",
    "timeout",
)  # fmt: skip
"""Headers of OpenAI's JavaScript client, which its requests have in a page too."""
_ALLOWED = {
    "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
    "access-control-allow-headers": "authorization, content-type, user-agent, accept, x-requested-with, "
    + ", ".join(f"x-stainless-{name}" for name in _STAINLESS),
    "access-control-max-age": "600",
}


def is_loopback(host: str) -> bool:
    """Whether a host, as an address or a name without port, is this machine and nothing else."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


class Guard:
    """ASGI around ASGI; `local`: it listens on loopback, so the Host header has to name this machine."""

    def __init__(self, app: ASGIApp, config: Adapter, *, local: bool) -> None:
        self._app, self._token, self._local = app, config.token, local
        self._origins = [_pattern(origin) for origin in config.origins]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        allowing = {"access-control-allow-origin": origin, "vary": "Origin"} if origin else {}
        path = str(scope["path"])
        if self._local and not is_loopback(_name_of(f"//{host}")):
            refusal = _refusal(path, 403, f"the host {host!r} is not this machine; use http://127.0.0.1")
            allowing = {}
        elif origin and not any(allowed.fullmatch(origin.lower()) for allowed in self._origins):
            refusal = _refusal(
                path, 403, f"pages of {origin} may not use this server; adapter.origins names those that may"
            )
            allowing = {}
        elif origin and scope["method"] == "OPTIONS":
            refusal = Response(status_code=204, headers=_ALLOWED)  # a browser sends no token yet
        elif not self._is_known(headers.get("authorization", "")):
            refusal = _refusal(path, 401, "send Authorization: Bearer TOKEN, with the token that adapter.token has")
        elif _length(headers.get("content-length", "")) > BODY_BYTES:
            refusal = _refusal(path, 413, f"the body is larger than {BODY_BYTES >> 20} MB")
        else:
            await self._app(scope, receive, _with_headers(send, allowing) if origin else send)
            return
        refusal.headers.update(allowing)
        await refusal(scope, receive, send)

    def _is_known(self, authorization: str) -> bool:
        kind, _, credentials = authorization.partition(" ")
        right = hmac.compare_digest(credentials.strip().encode(), self._token.encode())
        return not self._token or (kind.lower() == "bearer" and right)


def _pattern(origin: str) -> re.Pattern[str]:
    """An origin as the configuration has it: `*` stands for anything but a slash, alone for every origin."""
    return re.compile(".*" if origin == "*" else re.escape(origin.lower().rstrip("/")).replace(r"\*", "[^/]*"))


def _length(text: str) -> int:
    """What a Content-Length says; 0 without one, then the bytes are counted as they come."""
    return int(text[:20]) if text.isdecimal() else 0


def _name_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _refusal(path: str, status: int, message: str) -> Response:
    """Hangs up too: what follows is the body that nobody reads."""
    is_unknown = status == 401
    headers = {"connection": "close"} | ({"www-authenticate": "Bearer"} if is_unknown else {})
    return response(path, Failure(status, message, "invalid_api_key" if is_unknown else None), headers)


def _with_headers(send: Send, extra: dict[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(extra)
        await send(message)

    return sending


class Connection(BoundedConnection):
    """One with the bounds; a refused client gets the reason in Ollama's shape, since the path may not have come yet."""

    def refusal(self, status: int, message: str) -> tuple[str, bytes]:
        """See BoundedConnection."""
        return "application/json", encoded(in_shape_of("", Failure(status, message)))
