"""Sessions leave the archive as files for other programs and for readers: JSON lines, chat messages, Markdown.

This module says what may be asked for, and `formats.export` answers. `sessions` finds the sessions and reads them,
`content` takes messages apart, `formats` writes them. What each field means is in docs/exports.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Format = Literal["jsonl", "messages", "markdown"]
Results = Literal["summary", "full", "none"]
Moment = int | float | str


class Export(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions, and in which form. All filters that are given must hold."""

    format: Annotated[Format, Meta(description="jsonl and messages: one session a line; markdown: a document.")] = (
        "jsonl"
    )
    session: Annotated[str, Meta(description="Only this session, by its id.")] = ""
    project: Annotated[
        str, Meta(description="Only this project: its id, or an absolute directory: what ran there or beneath.")
    ] = ""
    path: Annotated[str, Meta(description="Only sessions that touched this absolute path, or anything beneath it.")] = (
        ""
    )
    since: Annotated[
        Moment, Meta(description="Only sessions in which something happened since: a date, a time, 7d, '30d ago'.")
    ] = ""
    until: Annotated[
        Moment, Meta(description="Only sessions in which something happened until then; a date means its end.")
    ] = ""
    results: Annotated[
        Results | None,
        Meta(
            description="Tool calls: in a line each (summary), with arguments and results (full), or not at all. "
            "When not given: full for messages, summary for the others."
        ),
    ] = None
    source: Annotated[Literal["opencode", "gemini-cli"], Meta(description="What jsonl says in its field source.")] = (
        "opencode"
    )
    deleted: Annotated[bool, Meta(description="Also what OpenCode has deleted since; it is marked.")] = True
    raw: Annotated[bool, Meta(description="With the secrets in it.")] = False

    @property
    def shows(self) -> Results:
        """`results`, or what the format shows when nothing is said."""
        return self.results or ("full" if self.format == "messages" else "summary")
