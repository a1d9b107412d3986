"""A folder: its page `/folder`, its files, a restore with a preview, and a run that writes its pages.

The page is the Markdown that a run writes, from the same code, shown as HTML.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.control import answers, calls, file_answers
from daemon.control.calls import FileContent, Progress
from daemon.control.view_answers import PageLink
from daemon.errors import BadRequest
from daemon.redact import redact
from daemon.web.page_markdown import html
from daemon.web.site import is_part, site_of, url
from daemon.web.tree import level

GRADES = ("proven", "stale", "partial")
_ROWS = 200
_MOST_LISTED = 200
_MOST_SKIPPED = 50


async def folder(http: Request) -> Response:
    """The page of a folder or file."""
    site, path, at = site_of(http), _path(http), http.query_params.get("at", "").strip()
    answer = await site.ask(calls.Page(path, at), http=http)
    text = html(answer.text, {link.href: _address(link, at) for link in answer.links})
    return await site.page(http, "folder.html", folder=path, at=at, tab="page", text=text, answer=answer)


async def files(http: Request) -> Response:
    """One level of the recorded files, and how the disk compares; further rows for htmx."""
    site, path, query = site_of(http), _path(http), http.query_params
    at, is_lost, start = query.get("at", "").strip(), query.get("lost") == "1", _number(query.get("start", ""))
    answer = await site.ask(calls.Files(path, at, lost=is_lost), http=http)
    tree = level(path, answer.files)
    rows = tree.entries
    if is_lost:  # as the call has them, the most recoverable first, whatever folder they are in
        rows = [entry for file in answer.files for entry in level(posixpath.dirname(file.path), [file]).entries]
    name = "folder_rows.html" if is_part(http) and start else "folder_files.html"
    end = start + _ROWS
    return await site.page(
        http, name, folder=path, at=at, tab="files", answer=answer, total=tree.total, is_lost=is_lost,
        rows=rows[start:end], next=end if end < len(rows) else 0,
    )  # fmt: skip


@dataclass(slots=True)
class Preview:
    """What a restore would write: the first files, and how many of each grade."""

    listed: list[tuple[str, str, int]] = field(default_factory=list)
    grades: Counter[str] = field(default_factory=Counter)
    size: int = 0

    def add(self, content: FileContent) -> None:
        """Count one file."""
        self.grades[content.grade] += 1
        self.size += len(content.data)
        if len(self.listed) < _MOST_LISTED:
            self.listed.append((redact(content.relative), content.grade, len(content.data)))


async def restore(http: Request) -> Response:
    """What would be written, and the form that does it; nothing is written by looking."""
    site, query = site_of(http), http.query_params
    request = _restore(dict(query))
    preview = Preview()
    answer = await site.ask(request, preview.add, http=http)
    return await site.page(
        http, "folder_restore.html", folder=request.path, at=request.at, tab="restore", request=request, answer=answer,
        preview=preview, grades=GRADES, skipped=_skipped(answer.skipped), to=query.get("to", ""),
    )  # fmt: skip


async def restore_into(http: Request) -> Response:
    """Write the files into a new or empty folder."""
    site = site_of(http)
    fields = await site.form(http)
    request = _restore(fields)
    request.to = fields.get("to", "").strip()
    if not request.to.startswith("/"):
        raise BadRequest("the new folder: write its absolute path, as in /home/ada/shop-back")
    answer = await site.ask(request)
    return await site.page(
        http, "folder_restored.html", folder=request.path, at=request.at, tab="restore", to=request.to, answer=answer,
        skipped=_skipped(answer.skipped),
    )  # fmt: skip


async def forget(http: Request) -> Response:
    """What would be forgotten, and the form that does it."""
    site, name = site_of(http), http.query_params.get("name", "").strip()
    answer = await site.ask(calls.Forget(name), http=http)
    return await site.page(http, "forget.html", what=name, answer=answer)


async def forget_now(http: Request) -> Response:
    """Forget for good, if the box is ticked."""
    site = site_of(http)
    fields = await site.form(http)
    name = fields.get("name", "")
    if fields.get("sure") != "1":
        raise BadRequest("nothing was forgotten: tick the box that says that you are sure")
    answer = await site.ask(calls.Forget(name, confirmed=True))
    return await site.page(http, "forget.html", what=name, answer=answer)


async def run(http: Request) -> Response:
    """Ask for a reconstitution; its page says how far it is."""
    site = site_of(http)
    path = _absolute((await site.form(http)).get("path", ""))

    async def work(progress: Progress) -> answers.Run:
        return await site.ask_long(calls.Reconstitute(path), progress)

    site.runs.start(path, work)
    return RedirectResponse(url("folder", "run", path=path), 303)


async def run_state(http: Request) -> Response:
    """How far the last run is that was asked for here."""
    site, path = site_of(http), _path(http)
    name = "run_state.html" if is_part(http) else "run.html"
    return await site.page(http, name, folder=path, at="", tab="run", work=site.runs.of(path))


def _path(http: Request) -> str:
    return _absolute(http.query_params.get("path", ""))


def _absolute(path: str) -> str:
    """
    Raises:
        BadRequest: it is no absolute path.
    """
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"{path!r}: not an absolute path; write it from the root, as in /home/ada/shop")
    return posixpath.normpath("/" + path.lstrip("/"))


def _restore(fields: dict[str, str]) -> calls.Restore:
    grade = fields.get("grade", "") or GRADES[0]
    path, at = _absolute(fields.get("path", "")), fields.get("at", "").strip()
    return calls.Restore(path, at, deleted=fields.get("deleted") == "1", grade=grade)


def _skipped(skipped: list[file_answers.SkippedFile]) -> list[tuple[str, int, str]]:
    """(reason, how many files, the first of them), the most frequent first."""
    reasons = Counter(file.reason for file in skipped)
    first = {file.reason: file.path for file in reversed(skipped)}
    return [(redact(why), count, redact(first[why])) for why, count in reasons.most_common(_MOST_SKIPPED)]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


def _address(link: PageLink, at: str) -> str:
    if link.session_id:
        return url("session", link.session_id, message=link.message_id)
    return url("folder" if link.folder else "file", path=link.path, at=at)


ROUTES = [
    Route("/folder", folder),
    Route("/folder/files", files),
    Route("/folder/restore", restore),
    Route("/folder/restore", restore_into, methods=["POST"]),
    Route("/folder/run", run_state),
    Route("/folder/run", run, methods=["POST"]),
    Route("/forget", forget),
    Route("/forget", forget_now, methods=["POST"]),
]
