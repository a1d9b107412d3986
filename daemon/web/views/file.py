"""File: `/file?path=…&at=…`. Its states are listed once; the lines of one are fetched, a window at a time."""

from __future__ import annotations

import base64
import posixpath
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.control import calls
from daemon.control.file_answers import FileRevision, History, LineAuthor, Lines
from daemon.errors import BadRequest, NotRecorded
from daemon.web.diff_rows import rows
from daemon.web.site import is_part, iso, site_of, url

WINDOW = 1000
"""Lines that are fetched at once."""
PARTIAL = ".partial"
"""Ends the name of a download of which only some lines are known."""


async def file(http: Request) -> Response:
    """The states of a file, and its lines at one moment; for htmx only those."""
    site, path, at = site_of(http), _path(http), http.query_params.get("at", "")
    lines = await site.ask(calls.Lines(path, at, count=WINDOW), http=http)
    if is_part(http):
        return await site.page(http, "file_state.html", **_values(lines))
    history = await site.ask(calls.History(path), http=http)
    if not history.revisions:
        raise NotRecorded(" ".join(history.warnings) or f"{path}: nothing is recorded of it")
    values = _values(lines) | {
        "history": history,
        "chosen": _chosen(history, lines),
        "describe": describe,
        "exact": exact,
    }
    return await site.page(http, "file.html", **values)


async def window(http: Request) -> Response:
    """More lines, as a part of the page."""
    site, path, at = site_of(http), _path(http), http.query_params.get("at", "")
    start = http.query_params.get("start", "0")
    if not is_part(http):
        return RedirectResponse(url("file", path=path, at=at), 303)
    if not (start.isascii() and start.isdecimal()):
        raise BadRequest(f"`start` {start!r}: not a number of a line")
    lines = await site.ask(calls.Lines(path, at, start=int(start[:12]), count=WINDOW), http=http)
    return await site.page(http, "file_window.html", **_values(lines))


async def diff(http: Request) -> Response:
    """What changed between two moments."""
    site, path = site_of(http), _path(http)
    old, new = (http.query_params.get(name, "") for name in ("old", "new"))
    answer = await site.ask(calls.Diff(path, old, new), http=http)
    name = "file_diff.html" if is_part(http) else "file_diff_page.html"
    return await site.page(http, name, diff=answer, rows=rows(answer.diff))


async def download(http: Request) -> Response:
    """The content at a moment as a file; its secrets are hidden unless `exact` is 1."""
    site, path = site_of(http), _path(http)
    at, is_exact = http.query_params.get("at", ""), http.query_params.get("exact") == "1"
    answer = await site.ask(calls.Content(path, at, raw=is_exact), http=http)
    if answer.content_base64 is None:
        raise NotRecorded(f"{path}: its content at that moment is not known, or it was deleted")
    name = posixpath.basename(path) + (PARTIAL if answer.partial else "")
    return Response(
        base64.b64decode(answer.content_base64),
        media_type="application/octet-stream",
        headers={"content-disposition": _attachment(name)},
    )


def _path(http: Request) -> str:
    path = http.query_params.get("path", "")
    if not path:
        raise BadRequest("`path` is missing: the absolute path of a file")
    return path


def _attachment(name: str) -> str:
    """The header that makes a browser keep a file under its name, which may hold any character (RFC 6266)."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_. ") else "_" for c in name) or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


def _values(lines: Lines) -> dict[str, Any]:
    return {"lines": lines, "window": WINDOW, "runs": runs(lines)}


def runs(lines: Lines) -> list[tuple[LineAuthor | None, list[str]]]:
    """Lines that follow each other and have the same author, with this author if there is one."""
    by = lines.by or [-1] * len(lines.lines)
    numbered = groupby(zip(by, lines.lines, strict=True), key=lambda pair: pair[0])
    return [(lines.authors[place] if place >= 0 else None, [text for _, text in pairs]) for place, pairs in numbered]


def _chosen(history: History, lines: Lines) -> int:
    """The number of the state that is shown; -1 before the first."""
    if lines.at is None:
        return len(history.revisions) - 1
    return sum(revision.time <= lines.at for revision in history.revisions) - 1


def describe(revision: FileRevision) -> str:
    """One state in a few words."""
    what = "changed outside of OpenCode" if revision.outside_change else revision.operation.replace("_", " ")
    return f"{what}, {revision.grade}{', deleted' if revision.deleted else ''}"


def exact(milliseconds: int) -> str:
    """A moment to the second: the states of a file often follow each other within a minute."""
    return iso(milliseconds)[:19].replace("T", " ") or "unknown time"


ROUTES = [
    Route("/file", file),
    Route("/file/lines", window),
    Route("/file/diff", diff),
    Route("/file/download", download),
]
