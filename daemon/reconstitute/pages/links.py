"""How one page leads to the files and sessions that it names; a name without a page of its own is only a name."""

from __future__ import annotations

from daemon import markdown
from daemon.reconstitute.pages.material import Known
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.pages.transcripts import Transcripts
from daemon.redact import redact

_MOST_TITLE = 60
_MOST_NAME = 80


class Links:
    """The links of `page`, the page of `folder` (relative to the target)."""

    def __init__(self, page: str, folder: str, known: Known, plan: Plan, transcripts: Transcripts) -> None:
        self.page = page
        self._folder = folder
        self._known = known
        self._plan = plan
        self._transcripts = transcripts

    @property
    def target(self) -> str:
        """The absolute path of the target."""
        return self._known.target

    def href(self, path: str) -> str:
        """To the page of a file or folder by its absolute path; empty where it has none."""
        relative = self._known.relative(path)
        return self._plan.href(self.page, relative) if relative else ""

    def label(self, path: str) -> str:
        """The path relative to the page's folder, redacted and cut; not escaped."""
        relative = self._known.relative(path)
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

    def session(self, session_id: str, title: str, most: int = _MOST_TITLE) -> markdown.Markdown:
        """A session by its title, as a link where it has a page."""
        label = markdown.cut(markdown.bare(title), most) or "without title"
        href = self._transcripts.href(self.page, session_id)
        return markdown.link(label, href) if href else markdown.inline(label)
