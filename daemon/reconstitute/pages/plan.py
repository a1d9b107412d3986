"""Which folders and files get a page, within the limit of pages, and how pages lead to one another.

Guarantees: a link is only given to a page of the set. Pure: paths and sizes in, paths out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from daemon import markdown
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.pages.layout import Chapter, Layout, Transcripts, ancestors, between, divided
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.redact import redact

_MOST_BESIDE = 32 * 1024 * 1024
"""Bytes of recovered text that stand beside the pages of one tree."""
_MOST_TITLE = 60
_MOST_NAME = 80


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
        pages_left = max(0, most_pages - len(self.folders))
        chapters = [replace(chapter, path=path) for chapter, path in zip(chapters, self.layout.sessions, strict=True)]
        self.transcripts = Transcripts(sessions, _first(chapters, cited, max(pages_left - len(sizes), pages_left // 2)))
        ordered = sorted(sizes, key=lambda relative: (not is_worked_on(relative), relative))
        chosen = ordered[: pages_left - len(self.transcripts.chapters)]
        self.files = tuple(sorted(chosen))
        self._paged = frozenset(chosen)
        self._beside = self._choose_beside(sizes, chosen, pages_left - len(self.transcripts.chapters) - len(chosen))

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

    def _choose_beside(self, sizes: Mapping[str, int], chosen: list[str], limit: int) -> frozenset[str]:
        bytes_left = _MOST_BESIDE
        chosen_beside: set[str] = set()
        for relative in chosen:
            if 0 < sizes[relative] <= bytes_left and len(chosen_beside) < limit:
                chosen_beside.add(relative)
                bytes_left -= sizes[relative]
        return frozenset(chosen_beside)


def _first(chapters: Sequence[Chapter], cited: Collection[str], limit: int) -> list[Chapter]:
    """At most that many chapters, in their order: those of cited sessions, then of the newest, go first."""
    ranked = sorted(
        chapters,
        key=lambda chapter: (
            chapter.facts.id not in cited,
            -chapter.facts.session.created,
            chapter.facts.id,
            chapter.number,
        ),
    )
    chosen = {chapter.path for chapter in ranked[:limit]}
    return [chapter for chapter in chapters if chapter.path in chosen]


class Links:
    """The links of `page`, the page of `folder` (relative to the target)."""

    def __init__(self, page: str, folder: str, index: MaterialIndex, plan: Plan, transcripts: Transcripts) -> None:
        self.page = page
        self._folder = folder
        self._index = index
        self._plan = plan
        self._transcripts = transcripts

    @property
    def target(self) -> str:
        """The absolute path of the target."""
        return self._index.target

    def href(self, path: str) -> str:
        """To the page of a file or folder by its absolute path; empty where it has none."""
        relative = self._index.relative(path)
        return self._plan.href(self.page, relative) if relative else ""

    def label(self, path: str) -> str:
        """The path relative to the page's folder, redacted and cut; not escaped."""
        relative = self._index.relative(path)
        inside = f"{self._folder}/"
        name = relative[len(inside) :] if self._folder and relative.startswith(inside) else relative
        return markdown.cut(redact(name or path), _MOST_NAME)

    def file(self, path: str) -> markdown.Markdown:
        """A file or folder by its absolute path, as a link where it has a page."""
        href = self.href(path)
        return markdown.link(self.label(path), href) if href else self.name(path)

    def name(self, path: str) -> markdown.Markdown:
        """Its name as code."""
        return markdown.code(self.label(path))

    def session(self, session_id: str, title: str, limit: int = _MOST_TITLE) -> markdown.Markdown:
        """A session by its title, as a link where it has a page."""
        label = markdown.cut(markdown.bare(title), limit) or "without title"
        href = self._transcripts.href(self.page, session_id)
        return markdown.link(label, href) if href else markdown.inline(label)


def references(index: MaterialIndex, plan: Plan, page: str, paths: Iterable[str]) -> list[markdown.Markdown]:
    """Paths a statement speaks of: a link where the set has a page of it, else the name."""
    rendered = []
    for path in dict.fromkeys(paths):
        relative = index.relative(path)
        href = plan.href(page, relative) if relative else ""
        name = redact(relative or path)
        rendered.append(markdown.link(name, href) if href else markdown.code(name))
    return rendered
