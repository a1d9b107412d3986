"""Session: `/session/{id}`. Its messages come in windows, each of which is fetched when its place is seen."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from daemon.control import calls
from daemon.control.conversation_answers import Conversation
from daemon.errors import BadRequest
from daemon.web.diff_rows import rows
from daemon.web.site import is_part, site_of, url

WINDOW = 40
"""Messages that are fetched at once."""
WHOLE_CHARS = 4_000_000
"""Characters of each text of a message that is shown whole."""
_FORMATS = ("markdown", "messages")


async def session(http: Request) -> Response:
    """The window with the message in the address, and a place for each other window."""
    site, session_id = site_of(http), http.path_params["id"]
    message, after = http.query_params.get("message", ""), http.query_params.get("change_after", "")
    request = calls.Conversation(
        session_id,
        start=_number(http.query_params.get("start", ""), "start"),
        count=WINDOW,
        message_id=message,
        change_after=_number(after, "change_after", least=-1) if after and not message else None,
    )
    answer = await site.ask(request, http=http)
    if request.change_after is not None and answer.target is not None:
        found = answer.messages[answer.target - answer.start]
        return RedirectResponse(url("session", answer.session_id, message=found.id), 303)
    is_last = request.change_after is not None
    return await site.page(http, "session.html", **_values(answer), is_last_change=is_last)


async def messages(http: Request) -> Response:
    """One window, as a part of the page; with `inline` the first one of a sub-agent and a place for each other."""
    site, session_id = site_of(http), http.path_params["id"]
    start = _number(http.query_params.get("start", ""), "start")
    if not is_part(http):
        return RedirectResponse(url("session", session_id, start=start or None), 303)
    answer = await site.ask(calls.Conversation(session_id, start=start, count=WINDOW), http=http)
    name = "session_windows.html" if http.query_params.get("inline") else "session_window.html"
    return await site.page(http, name, **_values(answer))


async def message(http: Request) -> Response:
    """One message with nothing of it cut."""
    site, session_id, number = site_of(http), http.path_params["id"], http.path_params["number"]
    request = calls.Conversation(session_id, start=number, count=1, most_chars=WHOLE_CHARS)
    answer = await site.ask(request, http=http)
    if not answer.messages:
        raise BadRequest(f"session {session_id} has no message {number}")
    name = "session_window.html" if is_part(http) else "message.html"
    return await site.page(http, name, **_values(answer))


async def export(http: Request) -> Response:
    """The session as text to be copied: Markdown, or the entries of ``messages[]``."""
    site, session_id = site_of(http), http.path_params["id"]
    form = http.query_params.get("format", "markdown")
    if form not in _FORMATS:
        raise BadRequest(f"`format` {form!r}: unknown; use {' or '.join(_FORMATS)}")
    pieces: list[str] = []
    await site.ask(calls.Export({"format": form, "session": session_id}), pieces.append, http=http)
    text = "".join(pieces)
    if form == "messages":
        text = json.dumps(json.loads(text)["messages"], ensure_ascii=False, indent=1) + "\n"
    return PlainTextResponse(text.encode("utf-8", "replace"))


def _values(answer: Conversation) -> dict[str, Any]:
    return {"talk": answer, "window": WINDOW, "rows": rows}


def _number(text: str, name: str, least: int = 0) -> int:
    try:
        number = int(text[:12] or "0")
    except ValueError:
        number = least - 1
    if number < least:
        raise BadRequest(f"`{name}` {text!r}: not a number of a message")
    return number


ROUTES = [
    Route("/session/{id}", session),
    Route("/session/{id}/messages", messages),
    Route("/session/{id}/message/{number:int}", message),
    Route("/session/{id}/export", export),
]
