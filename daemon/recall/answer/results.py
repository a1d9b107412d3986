"""One result as clients see it: where it is from, how it was found, and a snippet.

Only messages that are shown are read from the archive. Agents know the field names from OpenCode's recall plugin.
Everything is redacted: the snippet, the title, the terms of the query.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from daemon.archive import Archive
from daemon.display import one_line
from daemon.model import Json, Kind, Message, Part
from daemon.recall.answer.excerpt import matched_part, snippet
from daemon.recall.catalog import Row
from daemon.recall.query import names
from daemon.recall.query.directories import Place
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.query.scope import ANYTHING, SectionFilter
from daemon.recall.ranking.grouping import Result
from daemon.records import table, text
from daemon.redact import redact

RECENT_MS = 7 * 86_400_000
_LONG_TITLE = 500
_LONGEST_TEXT = 8192
_MARGIN = 512
_COPIES = 5
"""Copies of a message that are named; all are counted."""
_NO_TIME = "some snippets are the beginnings of their texts"

_SOURCES = {
    Kind.TITLE: "title",
    Kind.REASONING: "reasoning",
    Kind.TOOL_INPUT: "tool",
    Kind.TOOL_OUTPUT: "tool",
    Kind.TASK: "tool",
}
_FIELDS = {Kind.TITLE: "title", Kind.REASONING: "reasoning", Kind.TOOL_INPUT: "command", Kind.TOOL_OUTPUT: "stdout"}
_PART_TYPES = {
    Kind.PROMPT: ("text",),
    Kind.ANSWER: ("text",),
    Kind.REASONING: ("reasoning",),
    Kind.TASK: ("subtask", "tool"),
    Kind.TOOL_INPUT: ("tool",),
    Kind.TOOL_OUTPUT: ("tool",),
}
_ANY_TYPE = ("text", "reasoning", "tool", "subtask")


@dataclass(frozen=True, slots=True)
class Display:
    """How results are rendered; `place` is what directories are measured by, `now` is epoch ms.

    `section_filter` has the requested kinds and tool. After `until`, on time.monotonic's clock, snippets are the
    beginnings of the texts, and `late` says so.
    """

    query: Query
    width: int
    explain: bool
    level: str
    place: Place | None
    now: int
    section_filter: SectionFilter = ANYTHING
    until: float = math.inf
    late: list[str] = field(default_factory=list)
    redacted: dict[str, str] = field(default_factory=dict)

    def clean(self, content: str) -> str:
        """The redacted text. Titles, directories and terms repeat in many results, so each is redacted once."""
        if content not in self.redacted:
            self.redacted[content] = redact(content)
        return self.redacted[content]

    @property
    def words(self) -> tuple[str, ...]:
        """What the query asks for, one by one, for snippets and titles."""
        return (*self.query.named, *self.query.words)


def as_json(archive: Archive, rows: Mapping[str, Row], result: Result, display: Display) -> Json | None:
    """The result as JSON; None if its message, or the part that passes the filter, has left the archive meanwhile."""
    message = archive.message(result.message_id)
    if message is None:
        return None
    row = rows.get(result.session_id)
    match = matched_part(result.match, message, row.title if row else "", display.section_filter, display.words)
    if match is None:
        return None
    result = replace(result, match=match)
    part = _part(message, result)
    kind = _kind(message, part) if _is_loose(result) else result.match.kind
    terms = tuple(dict.fromkeys(display.clean(names.written(term, result.match.text)) for term in result.terms))
    excerpt = _snippet(result, part, display)
    rendered: Json = {
        "sessionID": result.session_id,
        "sessionTitle": one_line(display.clean(row.title))[:_LONG_TITLE] if row else "",
        "directory": display.clean(row.directory) if row else "",
        "projectID": row.project_id if row else "",
        "messageID": message.id,
        "role": message.role,
        "time": message.created,
        "partID": result.match.part_id or (part.id if part else ""),
        "partType": _part_type(result, part),
        "kind": kind,
        "pruned": _is_pruned(part),
        "deleted": archive.is_deleted(message.id) or result.match.part_id in archive.gone(message.id),
        "archived": row is not None and row.archived is not None,
        "snippet": excerpt,
        "score": result.score,
        "matchMode": result.mode,
        "matchedTerms": list(terms),
        "source": _SOURCES.get(Kind(kind), "message") if kind else "message",
    }
    tool = result.match.tool or (text(part.data.get("tool")) if part and part.type == "tool" else "")
    if tool:
        rendered["toolName"] = display.clean(tool)
    if result.spelling_pairs:
        rendered["near"] = [[redact(name), redact(spelling)] for name, spelling in result.spelling_pairs]
    if result.copies:
        first = [
            {"messageID": message_id, "sessionID": session_id} for message_id, session_id in result.copies[:_COPIES]
        ]
        rendered["copies"] = {"count": len(result.copies), "first": first}
    if display.level != "part":
        rendered["hitCount"] = result.hits
    title_terms = _in_title(row, display)
    if title_terms:
        rendered["titleMatch"] = {"title": rendered["sessionTitle"], "matchedTerms": title_terms}
    relevance = result.relevance or (display.place.relevance(row) if display.place else "")
    if relevance:
        rendered["directoryRelevance"] = relevance
    rendered["why"] = _why(result, part, terms, display, relevance) | (
        {} if not title_terms else {"titleTerms": title_terms}
    )
    if display.explain:
        rendered["matchReasons"] = _reasons(result, kind, terms, title_terms)
    return rendered


def _why(result: Result, part: Part | None, terms: Sequence[str], display: Display, relevance: str) -> Json:
    why: Json = {
        "matchedFields": _fields(result, part),
        "matchedTerms": list(terms),
        "recency": "recent" if display.now - result.created <= RECENT_MS else "older",
        "confidence": _confidence(result, display),
    }
    return why | ({"directoryRelevance": relevance} if relevance else {})


def _fields(result: Result, part: Part | None) -> list[str]:
    """Which text matched; ``meaning`` or ``neighbours`` if the message itself has no word of the query."""
    if result.mode == "semantic":
        return ["meaning"]
    if not result.is_own:
        return ["neighbours"]
    named = _FIELDS.get(Kind(result.match.kind), "text") if result.match.kind else "text"
    if named == "stdout" and part is not None and table(part.data.get("state")).get("status") == "error":
        named = "stderr"
    return [named, "meaning"] if "semantic" in result.sources else [named]


def _confidence(result: Result, display: Display) -> str:
    """high: it holds all of the query; medium: some of it; low: only something similar."""
    if not result.is_by_words or result.grade > 1:
        return "low"
    if result.mode in {"literal", "regex"}:
        return "high"
    held, query_words = split(result.terms), split(display.words)
    if result.mode in {"smart", "hybrid"} and result.grade == Tier.WHOLE:
        held |= split(display.query.named)
    if held >= query_words and not result.spelling_pairs:
        return "high"
    return "medium" if result.grade == 0 and 2 * len(held & query_words) >= len(query_words) else "low"


def _reasons(result: Result, kind: str, terms: Sequence[str], title_terms: Sequence[str]) -> list[str]:
    reasons = [*result.reasons, f"kind {kind}"] if kind else list(result.reasons)
    if terms:
        reasons.append(f"contains {', '.join(terms)}")
    if result.spelling_pairs:
        reasons.append(
            "contains "
            + ", ".join(f"{redact(spelling)} for {redact(name)}" for name, spelling in result.spelling_pairs)
        )
    if result.mode == "semantic":
        reasons.append("contains no word of the query, only its meaning is similar")
    elif not result.is_own:
        reasons.append("contains no word of the query: its title or date, or the messages before it do")
    if title_terms:
        reasons.append(f"its session's title has {', '.join(title_terms)}")
    return reasons


# -- where it stands -------------------------------------------------------------------------------------------------


def _part(message: Message, result: Result) -> Part | None:
    """The part to show. A match by meaning names no part, so it is the part of its kind that has the text."""
    match = result.match
    if match.part_id:
        return next((part for part in message.parts if part.id == match.part_id), None)
    types = _PART_TYPES.get(Kind(match.kind), _ANY_TYPE) if match.kind else _ANY_TYPE
    of_kind = [part for type_ in types for part in message.parts if part.type == type_]
    begins = match.text.strip()[:40]
    holding = (part for part in of_kind if begins and begins in text(part.data.get("text")))
    return next(holding, of_kind[0] if of_kind else None)


def _is_loose(result: Result) -> bool:
    """Whether the match leaves its kind open: a match of a window, or of a chunk that begins with a title."""
    return not result.match.part_id and result.match.kind in {"", Kind.TITLE}


def _kind(message: Message, part: Part | None) -> str:
    if part is None:
        return ""
    if part.type == "text":
        return Kind.PROMPT if message.role == "user" else Kind.ANSWER
    return {"reasoning": Kind.REASONING, "tool": Kind.TOOL_OUTPUT}.get(part.type, Kind.TASK)


def _part_type(result: Result, part: Part | None) -> str:
    if part is not None:
        return part.type
    return result.match.part_id if result.match.part_id in {"title", "error"} else ""


def _is_pruned(part: Part | None) -> bool:
    """Whether OpenCode no longer shows this output to the model; the archive has it."""
    state = table(part.data.get("state")) if part is not None else {}
    return table(state.get("time")).get("compacted") is not None


def _snippet(result: Result, part: Part | None, display: Display) -> str:
    content = result.match.text
    if not content and part is not None:
        # Found by its neighbours, so we show its own beginning. We redact before cutting and drop the end, which may be
        # half of a secret.
        whole = text(part.data.get("text")) or text(table(part.data.get("state")).get("output"))
        content = redact(whole[:_LONGEST_TEXT])
        content = content if len(whole) <= _LONGEST_TEXT else content[:-_MARGIN]
    if content and time.monotonic() >= display.until:
        display.late[:] = [_NO_TIME]
        return redact(snippet(content[:_LONGEST_TEXT], (), display.width))
    exact = [display.query.text] if result.mode == "literal" else []
    spellings = [spelling for _, spelling in result.spelling_pairs]
    return redact(snippet(content, [*exact, *result.terms, *spellings, *display.words], display.width))


def _in_title(row: Row | None, display: Display) -> list[str]:
    """The words of the query that a session's title has."""
    if row is None or not row.title:
        return []
    title = row.title.casefold()
    return [display.clean(word) for word in display.words if len(word) > 1 and word.casefold() in title]
