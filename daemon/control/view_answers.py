"""What the calls about a folder's page, about days and about what is left open answer (docs/json.md)."""

from __future__ import annotations

from daemon.control.answers import Answer
from daemon.model import Json


class PageLink(Answer):
    """What a link of a page leads to: a file or `folder` by its absolute `path`, or a session, or a message in it."""

    href: str = ""
    path: str = ""
    folder: bool = False
    session_id: str = ""
    message_id: str = ""


class Page(Answer):
    """The page of a folder or file as Markdown, as a run would write it; `links` are those in it to other pages."""

    path: str = ""
    at: int | None = None
    text: str = ""
    links: list[PageLink] = []
    warnings: list[str] = []


class ActiveDay(Answer):
    """A day of the caller's zone: the messages of it, the prompts among them, and the sessions that began on it."""

    date: str = ""
    messages: int = 0
    prompts: int = 0
    sessions: int = 0


class Activity(Answer):
    """The days, oldest first. `entries` are those of recall_timeline, oldest first; `has_more` if some are left out."""

    days: list[ActiveDay] = []
    entries: list[Json] = []
    has_more: bool = False
    warnings: list[str] = []


class OpenPoint(Answer):
    """Something that nothing in the records settles; `kind` is what it is, in the words of a folder's page."""

    kind: str = ""
    text: str = ""
    detail: str = ""
    time: int = 0
    session_id: str = ""
    session_title: str = ""
    message_id: str = ""


class OpenFolder(Answer):
    """What is left open in the sessions of one folder, the surest first."""

    path: str = ""
    points: list[OpenPoint] = []


class Unfinished(Answer):
    """The folders, last worked in first; `sessions` were read, and `left_out` older ones of the same time were not."""

    folders: list[OpenFolder] = []
    sessions: int = 0
    left_out: int = 0
    warnings: list[str] = []
