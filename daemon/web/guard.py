"""Who may ask, before anything is read: host, origin and session of each request; and headers for each answer.

A page whose name resolves to 127.0.0.1 has its own name in the Host header (DNS rebinding). A page of any site may send
a form or load a picture; the browser says so in Origin and Sec-Fetch-Site. Other programs of this machine lack the
session's cookie. The headers keep the page out of frames, and let it load and send nothing but from and to here.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.web.entrance import SESSION_SECONDS, Entrance

ENTER = "/enter"
STATIC = "/static/"
_SAFE = frozenset({"GET", "HEAD"})
_SESSION = "reconstitute.session"
"""The key in a request's scope under which its session stands."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not no-referrer: with it a browser sends forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_UNKNOWN = "This browser has no session here. Open the page with: reconstitute web"


class Guard:
    """ASGI around ASGI, for the page that listens on `port` of 127.0.0.1."""

    def __init__(self, app: ASGIApp, entrance: Entrance, port: int) -> None:
        self._app, self._entrance = app, entrance
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        headers, path, method = Headers(scope=scope), str(scope["path"]), str(scope["method"])
        session = _cookie(headers, self._cookie)
        app: ASGIApp = self._app
        if reason := self._foreign(headers, path, method):
            app = _refusal(403, reason)
        elif not (path == ENTER or path.startswith(STATIC) or self._entrance.is_open(session)):
            app = _refusal(401, _UNKNOWN)
        scope[_SESSION] = session
        await app(scope, receive, _with_headers(send, is_static=path.startswith(STATIC)))

    def _foreign(self, headers: Headers, path: str, method: str) -> str:
        """Why this request is not from a page of ours or from the user himself; "" if it is."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if host not in self._hosts:
            return "This is not an address of the page. Use http://127.0.0.1, with its port."
        is_ours = [origin.lower() for origin in origins] == [f"http://{host}"]
        if (origins or method not in _SAFE) and not is_ours:
            return "Other pages may not use this one."
        site = headers.get("sec-fetch-site", "same-origin")
        is_link = path == ENTER and method in _SAFE and headers.get("sec-fetch-dest") == "document"
        if site not in ("same-origin", "none") and not is_link:
            return "Other pages may not use this one."
        return ""


def cookie_name(port: int) -> str:
    """Browsers send a cookie to all ports of a host, so each page has a name of its own."""
    return f"reconstitute-{port}"


def set_session(response: Response, port: int, session: str) -> None:
    """Let a browser keep its session."""
    response.set_cookie(cookie_name(port), session, max_age=SESSION_SECONDS, path="/", httponly=True, samesite="strict")


def session_of(scope: Scope) -> str:
    """The session of a request that has passed the guard."""
    return str(scope[_SESSION])


def _cookie(headers: Headers, name: str) -> str:
    """The value of one cookie; "" if there is none.

    Browsers send the cookies of every page on 127.0.0.1. SimpleCookie stops at the first one that it cannot read.
    """
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _refusal(status: int, reason: str) -> Response:
    """A whole page without anything that would have to be loaded."""
    title = "Not open" if status == 401 else "Refused"
    text = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><p>{reason}</p>'
    # Hangs up too: what follows is a body that nobody reads.
    return HTMLResponse(text, status, {"connection": "close"})


def _with_headers(send: Send, *, is_static: bool) -> Send:
    caching = "private, max-age=86400" if is_static else "no-store"

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS | {"cache-control": caching})
        await send(message)

    return sending
