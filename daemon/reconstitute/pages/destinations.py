"""What the links of one page lead to, for a reader that has other addresses than files of a tree.

Guarantees: only links of ours are read, and only those that lead to a page of the set are answered. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from daemon.model import Page
from daemon.reconstitute.pages.layout import anchor
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Plan

_HREF = re.compile(r"\]\(([^()\s]+)\)")
"""The end of a link; all that a link's target can hold is quoted (markdown.Href), and no text of others has one."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A file or folder by its absolute `path`, or a session, or a message in it."""

    path: str = ""
    is_folder: bool = False
    session_id: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """The Markdown of a page, and what its links to other pages of the tree lead to, by each link's target."""

    text: str
    links: dict[str, Destination]


def linked(page: Page, text: str, index: MaterialIndex, plan: Plan) -> LinkedPage:
    """`page`, whose content is `text` and which belongs to the tree of `plan`."""
    places = dict(_places(index, plan))
    links = {}
    for href in dict.fromkeys(_HREF.findall(text)):
        where, _, fragment = href.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), unquote(where)))
        destination = places.get((place, fragment)) or places.get((place, ""))
        if where and destination is not None:
            links[href] = destination
    return LinkedPage(text, links)


def _places(index: MaterialIndex, plan: Plan) -> Iterator[tuple[tuple[str, str], Destination]]:
    """(page, anchor on it) and what is there."""
    for folder in plan.folders:
        yield (
            (plan.layout.folder(folder), ""),
            Destination(posixpath.join(index.target, folder) if folder else index.target, is_folder=True),
        )
    for relative in plan.files:
        yield (plan.layout.file(relative), ""), Destination(index.files[relative].path)
    for chapter in plan.transcripts.chapters:
        first = next(iter(chapter.messages), "") if chapter.number > 1 else ""
        yield (chapter.path, ""), Destination(session_id=chapter.facts.id, message_id=first)
        for message_id, number in chapter.messages.items():
            yield (chapter.path, anchor(number)), Destination(session_id=chapter.facts.id, message_id=message_id)
