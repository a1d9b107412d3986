"""One find as clients see it: where it is from, how it was found, and the few words that show it.

Only what is shown is read from the archive. Field names are those that agents know from OpenCode's recall plugin.
Everything is redacted: the snippet, the title, the terms of the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from daemon.archive import Archive
from daemon.display import one_line
from daemon.model import Json, Kind, Message, Part
from daemon.recall.answer.excerpt import meant, snippet
from daemon.recall.catalog import Row
from daemon.recall.query import names
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.query.places import Place
from daemon.recall.query.scope import ANYTHING, Allowed
from daemon.recall.ranking.grouping import Find
from daemon.records import table, text
from daemon.redact import redact

RECENT_MS = 7 * 86_400_000
_LONG_TITLE = 500
_SHOWN_TEXT = 8192
_MARGIN = 512

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
class Looks:
    """How finds are to be shown; `place` is what directories are measured by, `now` is epoch ms.

    `allowed` are the kinds and the tool that were asked for.
    """

    query: Query
    width: int
    explain: bool
    level: str
    place: Place | None
    now: int
    allowed: Allowed = ANYTHING
    seen: dict[str, str] = field(default_factory=dict)

    def clean(self, shown: str) -> str:
        """Redacted; titles, directories and terms come again with each result and are looked at once."""
        if shown not in self.seen:
            self.seen[shown] = redact(shown)
        return self.seen[shown]

    @property
    def words(self) -> tuple[str, ...]:
        """What the query asks for, one by one, for snippets and titles."""
        return (*self.query.named, *self.query.words)


def result(archive: Archive, rows: Mapping[str, Row], find: Find, looks: Looks) -> Json | None:
    """The result of one find; None where its message, or what is allowed of it, has left the archive meanwhile."""
    message = archive.message(find.message_id)
    if message is None:
        return None
    row = rows.get(find.session_id)
    match = meant(find.match, message, row.title if row else "", looks.allowed, looks.words)
    if match is None:
        return None
    find = replace(find, match=match)
    part = _part(message, find)
    kind = _kind(message, part) if _is_loose(find) else find.match.kind
    terms = tuple(dict.fromkeys(looks.clean(names.written(term, find.match.text)) for term in find.terms))
    shown = _snippet(find, part, looks)
    made: Json = {
        "sessionID": find.session_id,
        "sessionTitle": one_line(looks.clean(row.title))[:_LONG_TITLE] if row else "",
        "directory": looks.clean(row.directory) if row else "",
        "projectID": row.project_id if row else "",
        "messageID": message.id,
        "role": message.role,
        "time": message.created,
        "partID": find.match.part_id or (part.id if part else ""),
        "partType": _part_type(find, part),
        "kind": kind,
        "pruned": _is_pruned(part),
        "deleted": archive.is_deleted(message.id) or find.match.part_id in archive.gone(message.id),
        "archived": row is not None and row.archived is not None,
        "snippet": shown,
        "score": find.score,
        "matchMode": find.mode,
        "matchedTerms": list(terms),
        "source": _SOURCES.get(Kind(kind), "message") if kind else "message",
    }
    tool = find.match.tool or (text(part.data.get("tool")) if part and part.type == "tool" else "")
    if tool:
        made["toolName"] = looks.clean(tool)
    if find.near:
        made["near"] = [[redact(asked), redact(there)] for asked, there in find.near]
    if looks.level != "part":
        made["hitCount"] = find.hits
    title_terms = _in_title(row, looks)
    if title_terms:
        made["titleMatch"] = {"title": made["sessionTitle"], "matchedTerms": title_terms}
    relevance = find.relevance or (looks.place.relevance(row) if looks.place else "")
    if relevance:
        made["directoryRelevance"] = relevance
    made["why"] = _why(find, part, terms, looks, relevance) | ({} if not title_terms else {"titleTerms": title_terms})
    if looks.explain:
        made["matchReasons"] = _reasons(find, kind, terms, title_terms)
    return made


def _why(find: Find, part: Part | None, terms: Sequence[str], looks: Looks, relevance: str) -> Json:
    why: Json = {
        "matchedFields": _fields(find, part),
        "matchedTerms": list(terms),
        "recency": "recent" if looks.now - find.created <= RECENT_MS else "older",
        "confidence": _confidence(find, looks),
    }
    return why | ({"directoryRelevance": relevance} if relevance else {})


def _fields(find: Find, part: Part | None) -> list[str]:
    """Which text matched; ``meaning`` and ``neighbours`` where the message itself has no word of the query."""
    if find.mode == "semantic":
        return ["meaning"]
    if not find.is_own:
        return ["neighbours"]
    named = _FIELDS.get(Kind(find.match.kind), "text") if find.match.kind else "text"
    if named == "stdout" and part is not None and table(part.data.get("state")).get("status") == "error":
        named = "stderr"
    return [named, "meaning"] if "semantic" in find.sources else [named]


def _confidence(find: Find, looks: Looks) -> str:
    """high: it holds all that was asked for; medium: some of it; low: only something near it."""
    if not find.is_by_words or find.grade > 1:
        return "low"
    if find.mode in {"literal", "regex"}:
        return "high"
    held, asked = split(find.terms), split(looks.words)
    if find.mode in {"smart", "hybrid"} and find.grade == Tier.WHOLE:
        held |= split(looks.query.named)
    if held >= asked and not find.near:
        return "high"
    return "medium" if find.grade == 0 and 2 * len(held & asked) >= len(asked) else "low"


def _reasons(find: Find, kind: str, terms: Sequence[str], title_terms: Sequence[str]) -> list[str]:
    said = [*find.reasons, f"kind {kind}"] if kind else list(find.reasons)
    if terms:
        said.append(f"holds {', '.join(terms)}")
    if find.near:
        said.append("holds " + ", ".join(f"{redact(there)} for {redact(asked)}" for asked, there in find.near))
    if find.mode == "semantic":
        said.append("holds no word of the query: only its meaning is near")
    elif not find.is_own:
        said.append("holds no word of the query: the messages before it do")
    if title_terms:
        said.append(f"its session's title has {', '.join(title_terms)}")
    return said


# -- where it stands -------------------------------------------------------------------------------------------------


def _part(message: Message, find: Find) -> Part | None:
    """The part that is shown. Of a find by meaning, which knows of no part, the one of its kind that has its text."""
    match = find.match
    if match.part_id:
        return next((part for part in message.parts if part.id == match.part_id), None)
    types = _PART_TYPES.get(Kind(match.kind), _ANY_TYPE) if match.kind else _ANY_TYPE
    of_kind = [part for type_ in types for part in message.parts if part.type == type_]
    begins = match.text.strip()[:40]
    holding = (part for part in of_kind if begins and begins in text(part.data.get("text")))
    return next(holding, of_kind[0] if of_kind else None)


def _is_loose(find: Find) -> bool:
    """Whether the match says nothing certain of its kind: of a whole window, or of a chunk that begins with a title."""
    return not find.match.part_id and find.match.kind in {"", Kind.TITLE}


def _kind(message: Message, part: Part | None) -> str:
    if part is None:
        return ""
    if part.type == "text":
        return Kind.PROMPT if message.role == "user" else Kind.ANSWER
    return {"reasoning": Kind.REASONING, "tool": Kind.TOOL_OUTPUT}.get(part.type, Kind.TASK)


def _part_type(find: Find, part: Part | None) -> str:
    if part is not None:
        return part.type
    return find.match.part_id if find.match.part_id in {"title", "error"} else ""


def _is_pruned(part: Part | None) -> bool:
    """Whether OpenCode no longer shows this output to the model; the archive has it."""
    state = table(part.data.get("state")) if part is not None else {}
    return table(state.get("time")).get("compacted") is not None


def _snippet(find: Find, part: Part | None, looks: Looks) -> str:
    shown = find.match.text
    if not shown and part is not None:
        # Found by its neighbours: its own beginning. Redacted before it is cut, the end given away for a half secret.
        whole = text(part.data.get("text")) or text(table(part.data.get("state")).get("output"))
        shown = redact(whole[:_SHOWN_TEXT])
        shown = shown if len(whole) <= _SHOWN_TEXT else shown[:-_MARGIN]
    exact = [looks.query.text] if find.mode == "literal" else []
    near = [there for _, there in find.near]
    return redact(snippet(shown, [*exact, *find.terms, *near, *looks.words], looks.width))


def _in_title(row: Row | None, looks: Looks) -> list[str]:
    """The words of the query that a session's title has."""
    if row is None or not row.title:
        return []
    title = row.title.casefold()
    return [looks.clean(word) for word in looks.words if len(word) > 1 and word.casefold() in title]
