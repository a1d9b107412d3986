"""Which folders and files get a page, within the limit of pages, and how pages lead to one another.

Guarantees: a link is only given to a page of the set. Pure: paths and sizes in, paths out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.pages.layout import Layout, ancestors, between
from daemon.reconstitute.pages.transcripts import Chapter, Transcripts, divided

_MOST_BESIDE = 32 * 1024 * 1024
"""Bytes of recovered text that stand beside the pages of one tree."""


class Plan:
    """The pages of a tree of `sizes`: the bytes to stand beside each file's page by relative path, 0 for most.

    Where not every file can have a page, those that sessions worked on (`is_worked_on`) go first; of the `sessions`
    those that are `cited`, then the newest. Folders come before both, and sessions leave files at least half the room.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        is_worked_on: Callable[[str], bool],
        most_pages: int,
        sessions: Sequence[SessionFacts] = (),
        cited: Collection[str] = (),
    ) -> None:
        chapters = divided(sessions)
        self.layout = Layout(
            sizes, [relative for relative, size in sizes.items() if size], [chapter.path for chapter in chapters]
        )
        self._inside: dict[str, list[str]] = {}
        for relative in sorted(sizes):
            for folder in ("", *ancestors(relative)):
                self._inside.setdefault(folder, []).append(relative)
        speaking = [folder for folder in self.layout.folders if folder == "" or self._says_something(folder)]
        self.folders = tuple(speaking[:most_pages])
        self._has_page = frozenset(self.folders)
        self._folders_in: dict[str, list[str]] = {}
        for folder in self.folders:
            if folder:
                self._folders_in.setdefault(self.parent(folder), []).append(folder)
        room = max(0, most_pages - len(self.folders))
        chapters = [replace(one, path=path) for one, path in zip(chapters, self.layout.sessions, strict=True)]
        self.transcripts = Transcripts(sessions, _first(chapters, cited, max(room - len(sizes), room // 2)))
        ordered = sorted(sizes, key=lambda relative: (not is_worked_on(relative), relative))
        chosen = ordered[: room - len(self.transcripts.chapters)]
        self.files = tuple(sorted(chosen))
        self._paged = frozenset(chosen)
        self._beside = self._choose_beside(sizes, chosen, room - len(self.transcripts.chapters) - len(chosen))

    @property
    def left_out(self) -> int:
        """How many files have no page of their own because of the limit."""
        return len(self.beneath("")) - len(self.files)

    def beneath(self, folder: str) -> list[str]:
        """All files in and under a folder."""
        return self._inside.get(folder, [])

    def direct(self, folder: str) -> list[str]:
        """The files that lie in the folder itself."""
        return [relative for relative in self.beneath(folder) if posixpath.dirname(relative) == folder]

    def folders_in(self, folder: str) -> list[str]:
        """The folders with a page that come next beneath it."""
        return self._folders_in.get(folder, [])

    def parent(self, folder: str) -> str:
        """The nearest folder above that has a page."""
        return next((above for above in reversed(ancestors(folder)) if above in self._has_page), "")

    def folder_of(self, relative: str) -> str:
        """The nearest folder with a page that holds a file."""
        folder = posixpath.dirname(relative)
        return folder if folder in self._has_page else self.parent(folder)

    def href(self, page: str, relative: str) -> str:
        """The link from `page` to a file's or folder's page; empty where it has none."""
        if relative in self._paged:
            return between(page, self.layout.file(relative))
        return between(page, self.layout.folder(relative)) if relative in self._has_page else ""

    def beside(self, relative: str) -> str:
        """The path of the text that stands beside a file's page; empty where none does."""
        return self.layout.beside(relative) if relative in self._beside else ""

    def _says_something(self, folder: str) -> bool:
        """A folder that holds files itself or parts into several; one that only leads to another is passed over."""
        children = {relative[len(folder) + 1 :].split("/")[0] for relative in self.beneath(folder)}
        return len(children) > 1 or bool(self.direct(folder))

    def _choose_beside(self, sizes: Mapping[str, int], chosen: list[str], room: int) -> frozenset[str]:
        left = _MOST_BESIDE
        found: set[str] = set()
        for relative in chosen:
            if 0 < sizes[relative] <= left and len(found) < room:
                found.add(relative)
                left -= sizes[relative]
        return frozenset(found)


def _first(chapters: Sequence[Chapter], cited: Collection[str], most: int) -> list[Chapter]:
    """At most that many chapters, in their order: those of cited sessions, then of the newest, go first."""
    ranked = sorted(
        chapters, key=lambda one: (one.facts.id not in cited, -one.facts.session.created, one.facts.id, one.number)
    )
    chosen = {one.path for one in ranked[:most]}
    return [one for one in chapters if one.path in chosen]
