"""What every view uses: the calls, the templates, the forms, and pages for errors.

Text of records is inert: each expression of a template is escaped, and invisible characters are shown by name. The
calls redact what they answer; messages of errors are redacted here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import jinja2
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response

from daemon import __version__, log
from daemon.control import calls
from daemon.control.calls import OnPart, Progress, Request, Service, silent
from daemon.control.responses import in_thread, status_of
from daemon.display import counted, duration, short_id, shorten, size, visible
from daemon.errors import BadRequest, NotRecorded, ReconstituteError
from daemon.hints import for_commands
from daemon.redact import redact
from daemon.web.entrance import Entrance
from daemon.web.guard import session_of
from daemon.web.runs import Runs

A = TypeVar("A")
HERE = Path(__file__).parent
STATIC_FILES = HERE / "static"
FORM_TOKEN = "form_token"  # noqa: S105 - the field's name
WHOLE = "whole"
"""In the address of a search that completes the results that are shown."""
_BODY_BYTES = 1 << 16
_READ_SECONDS = 5.0
_AT_ONCE = 6
"""Calls that work at the same time; more wait, so that fast typing leaves the service to others."""
_LONG_AT_ONCE = 2
_LONG = (calls.Doctor, calls.Forget, calls.Page, calls.Restore, calls.Unfinished)
"""Calls that may take minutes: the others, as a search or Resume, must not wait for them."""
_LOG = log.get("web")


class Site:
    """One page over one service."""

    def __init__(self, service: Service, entrance: Entrance, port: int) -> None:
        self._service, self.entrance, self.port = service, entrance, port
        self._turns, self._long_turns = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_LONG_AT_ONCE)
        self._templates = _environment()
        self.runs = Runs()

    async def ask(self, request: Request[A], on_part: OnPart = silent, *, http: HttpRequest | None = None) -> A:
        """The answer to a call, worked out in a thread; `on_part` gets, in that thread, what the call hands out.

        With `http`, nothing is asked if that request's browser has gone away while it waited for its turn.

        Raises:
            ReconstituteError: see control.calls.Service.
        """
        async with self._long_turns if isinstance(request, _LONG) else self._turns:
            if http is not None and await http.is_disconnected():
                raise ClientDisconnect
            return await in_thread(lambda: self._service.call(request, on_part=on_part))

    async def ask_long(self, request: Request[A], progress: Progress) -> A:
        """As `ask`, for work of minutes: it does not keep others waiting. `progress` is called in the thread."""
        return await in_thread(lambda: self._service.call(request, progress=progress))

    async def page(self, http: HttpRequest, name: str, status: int = 200, **values: Any) -> Response:
        """A template with these values; `path`, the address asked for, and `form_token` are there too."""
        values |= {"path": http.url.path, FORM_TOKEN: self.entrance.form_token(session_of(http.scope))}
        text = await in_thread(lambda: self._templates.get_template(name).render(values))
        return HTMLResponse(text, status)

    async def form(self, http: HttpRequest) -> dict[str, str]:
        """The fields of a form of ours that was sent by POST.

        Raises:
            BadRequest: too large, too slow, or without the token of this session.
        """
        data = bytearray()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                async for piece in http.stream():
                    data += piece
                    if len(data) > _BODY_BYTES:
                        raise BadRequest(f"the form is larger than {_BODY_BYTES >> 10} kB; send less")
        except TimeoutError:
            raise BadRequest("the form did not arrive in time; send it again") from None
        try:
            fields = dict(parse_qsl(data.decode(errors="replace"), keep_blank_values=True, max_num_fields=200))
        except ValueError:
            raise BadRequest("the form has too many fields; send less") from None
        if not self.entrance.is_form_token(session_of(http.scope), fields.pop(FORM_TOKEN, "")):
            raise BadRequest("the form is not one of this session's; load the page anew, then send it again")
        return fields

    async def error(self, http: HttpRequest, error: Exception) -> Response:
        """A page that says what went wrong; for a part of a page only the sentence."""
        status, message = 500, f"internal error ({type(error).__name__}); see the service's log"
        if isinstance(error, HTTPException):
            status = error.status_code
            message = {404: f"{http.url.path}: there is no such page"}.get(status, error.detail)
        elif isinstance(error, ReconstituteError):
            status, message = 404 if isinstance(error, NotRecorded) else status_of(error), redact(str(error))
        elif isinstance(error, ClientDisconnect):
            return Response(status_code=204)
        else:  # its text may quote a message: the log has it, redacted
            _LOG.error("a page failed by a fault of ours", path=http.url.path, exc_info=error)
        name = "error.html" if is_part(http) else "error_page.html"
        response = await self.page(http, name, status, message=message)
        if WHOLE in http.query_params:
            response.headers["hx-reswap"] = "afterbegin"  # above what is shown already, which stays
        return response


def site_of(http: HttpRequest) -> Site:
    """The site that a request was sent to."""
    site: Site = http.app.state.site
    return site


def is_part(http: HttpRequest) -> bool:
    """Whether htmx asks, for a part of a page that is there already."""
    return http.headers.get("hx-request") == "true"


def url(*segments: str, **query: object) -> str:
    """An address of ours; empty values of the query are left out.

    >>> url(), url("session", "ses_1", message="msg_1", q="")
    ('/', '/session/ses_1?message=msg_1')
    """
    fields = [(name.rstrip("_"), value) for name, value in query.items() if value not in ("", None, False, [])]
    path = "/" + "/".join(quote(segment, safe="", errors="replace") for segment in segments)
    return path + (f"?{urlencode(fields, doseq=True, errors='replace')}" if fields else "")


def moment(milliseconds: float | None) -> str:
    """Epoch ms as local time to the minute; a dash where there is none.

    >>> moment(None)
    '–'
    """
    return _local(milliseconds, lambda when: when.strftime("%Y-%m-%d %H:%M")) or "–"


def iso(milliseconds: float | None) -> str:
    """Epoch ms for the attribute `datetime`; empty where there is none."""
    return _local(milliseconds, lambda when: when.isoformat(timespec="seconds"))


def _local(milliseconds: float | None, form: Callable[[datetime], str]) -> str:
    try:
        return form(datetime.fromtimestamp(milliseconds / 1000).astimezone()) if milliseconds else ""
    except (ValueError, OverflowError, OSError):
        return ""


def marked(text: str, terms: Sequence[str]) -> Markup:
    """`text`, escaped, with every occurrence of `terms` in a <mark>.

    >>> marked("<b>Rate</b> limit", ["rate"])
    Markup('&lt;b&gt;<mark>Rate</mark>&lt;/b&gt; limit')
    """
    words = sorted((re.escape(term) for term in terms if term.strip()), key=len, reverse=True)
    pieces = re.split(f"({'|'.join(words)})", text, flags=re.IGNORECASE) if words else [text]
    mark = Markup("<mark>{}</mark>")
    return Markup("").join(mark.format(visible(p)) if i % 2 else visible(p) for i, p in enumerate(pieces))


def number(value: object) -> str:
    """A number with its thousands apart; a dash for what is none.

    >>> number(144_000), number(None)
    ('144,000', '–')
    """
    return f"{value:,}" if isinstance(value, int | float) else "–"


def as_json(value: object) -> str:
    """A value as JSON over several lines, for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "hinted": lambda text: for_commands(str(text)),
        "duration": duration,
        "as_json": as_json,
        "iso": iso,
        "marked": marked,
        "moment": moment,
        "number": number,
        "redacted": redact,
        "short_id": short_id,
        "shorten": shorten,
        "size": size,
    }
    environment.globals |= {"counted": counted, "url": url, "static": _static_url, "version": __version__}
    return environment


def _visible(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _static_url(name: str) -> str:
    return f"/static/{name}?v={_static_version()}"


@cache
def _static_version() -> str:
    """Changes with the files, so that browsers may keep them."""
    content = b"".join(file.read_bytes() for file in sorted(STATIC_FILES.iterdir()) if file.is_file())
    return hashlib.sha256(content).hexdigest()[:12]
