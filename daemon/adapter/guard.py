"""Who may ask: on a loopback address, only what names this machine, and no page of another site through a browser.

A page whose name is made to lead to 127.0.0.1 has its own name in the Host header (DNS rebinding); a page of any site
may send a form, and has its own address in the Origin header. Both are refused before the body is read. Pages of this
machine get the headers that a browser wants, so that Ollama's browser client works.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.adapter.shapes import line

_APPS = ("app", "file", "tauri", "vscode-webview", "vscode-file")
"""Schemes of programs on this machine that show pages; no website has one. Ollama lets the same ones in."""
_ALLOWED = {
    "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
    "access-control-allow-headers": "authorization, content-type, user-agent, accept, x-requested-with",
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

    def __init__(self, app: ASGIApp, *, local: bool) -> None:
        self._app, self._local = app, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if self._local and not is_loopback(_name_of(f"//{host}")):
            await _refusal(f"the host {host!r} is not this machine; use http://127.0.0.1")(scope, receive, send)
        elif origin and not self._is_ours(origin, host):
            await _refusal(f"pages of {origin} may not use this server")(scope, receive, send)
        elif origin and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=_ALLOWED | _allowing(origin))(scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send, _allowing(origin)) if origin else send)

    def _is_ours(self, origin: str, host: str) -> bool:
        if origin.partition("://")[0] in _APPS:
            return True
        is_same = not self._local and urlsplit(origin).netloc == host
        return origin.startswith(("http://", "https://")) and (is_same or is_loopback(_name_of(origin)))


def _name_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _allowing(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}


def _refusal(message: str) -> Response:
    return Response(line({"error": message}), status_code=403, media_type="application/json")


def _with_headers(send: Send, more: dict[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(more)
        await send(message)

    return sending
