"""The templates of the pages, set up so that text of others cannot become markup.

Guarantees: every expression is escaped unless it is Markdown of our own making; a name that is not given is an error;
what a filter shows of a revision is redacted. It renders nothing by itself.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

from daemon import markdown
from daemon.display import counted
from daemon.reconstitute.pages.file import history
from daemon.reconstitute.recover import evidence
from daemon.redact import redact


@cache
def environment() -> jinja2.Environment:
    """Templates whose every expression is escaped by `markdown.finalize` unless it is Markdown; compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701 - pages are Markdown: finalize escapes for it, HTML escaping would not
        finalize=markdown.finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": markdown.code,
        "bare": markdown.bare,
        "cut": markdown.inline,
        "day": markdown.day,
        "moment": markdown.moment,
        "evidence": lambda revision: redact(evidence(revision)),
        "fence": markdown.fence,
        "iso": markdown.iso,
        "prose": markdown.prose,
        "quoted": markdown.quoted,
        "title": markdown.title,
        "tool": history.tool,
        "redacted": lambda text: redact(str(text)),
    }
    environment.globals["counted"] = counted
    environment.globals["link"] = markdown.link
    environment.globals["zone"] = markdown.zone
    return environment
