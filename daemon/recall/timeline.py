"""What happened around a message, a session or a moment: sessions begun, prompts and file changes, in order of time.

We read from the anchor outwards, so the cost depends on what is shown and not on the size of the archive. Sessions come
from the catalog, prompts and tool calls from the lexical index by time, changes from the records of the calls. Reads
and other observations of files are not changes. All output is redacted; times are epoch ms.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from daemon.archive import Archive
from daemon.archive.paths import CHANGES
from daemon.display import one_line, shorten
from daemon.errors import BadRequest
from daemon.hints import not_searchable
from daemon.index import Filters, LexicalIndex, Match
from daemon.model import FileEdit, Json, Kind, Message, Operation, Part
from daemon.moments import parse_time
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import RecallTimeline
from daemon.recall.query.directories import absolute, is_within
from daemon.records import text
from daemon.redact import redact
from daemon.transcript.evidence.edits import edits

LINE = 160
"""Characters of an entry's text in the index format."""
MOST_CALLS = 2_000
"""Tool calls on each side that we read, to find those that changed a file."""
_PAGE = 64

_LONGEST_CALL_MS = 900_000
"""A change is listed in the right place if its call ends at most so long after the message began."""
_PROMPTS = (Kind.PROMPT, Kind.TASK)
"""The kinds of text in a prompt. A prompt may consist of a task for a sub-agent alone."""
_RANKS = {"session": 0, "prompt": 1, "answer": 2, "file": 3}
_NO_CHANGE = frozenset({"read", "glob", "grep", "list", "ls", "webfetch", "websearch", "todowrite", "todoread", "lsp"})
"""OpenCode's tools that change no file: their records are not opened."""

_Key: TypeAlias = tuple[int, int, str, str, int, str]
"""Unique for each entry: time, rank of the type, session, message, place in the message, path."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """`note` is part of the text in the full format only."""

    key: _Key
    type: str
    text: str
    note: str = ""
    more: Json = field(default_factory=dict)


def timeline(archive: Archive, lexical: LexicalIndex, catalog: Catalog, request: RecallTimeline, now: int) -> Json:
    """``{ok, anchor: {type, id?, time}, entries, hasMoreBefore, hasMoreAfter, warnings}``; `now` is epoch ms.

    An entry is ``{type, time, sessionID, sessionTitle, messageID?, path?, operation?, tool?, text, anchor}``, its type
    ``session``, ``prompt`` or ``file``; a message of the assistant that is the anchor is an ``answer``. `depth_before`
    entries come before the anchor and `depth_after` after it; one at the time of a moment comes after it.

    Raises:
        BadRequest: the anchor, the session or the project is not known.
        IndexBroken: the index must be rebuilt.
    """
    walk = _Walk(archive, lexical, catalog.rows(), request)
    anchor, key, own = walk.anchor(now)
    before = list(itertools.islice(walk.entries(key, is_before=True), request.depth_before + 1))
    after = list(itertools.islice(walk.entries(key, is_before=False), request.depth_after + 1))
    if waiting := archive.waiting("lexical"):
        walk.warnings.append(f"not everything is shown: {not_searchable(waiting)}")
    selected = [*reversed(before[: request.depth_before]), *own, *after[: request.depth_after]]
    return {
        "ok": True,
        "anchor": anchor,
        "entries": [walk.as_json(entry, is_anchor=entry in own) for entry in selected],
        "hasMoreBefore": len(before) > request.depth_before or "before" in walk.unread,
        "hasMoreAfter": len(after) > request.depth_after or "after" in walk.unread,
        "warnings": walk.warnings,
    }


def span(
    archive: Archive,
    lexical: LexicalIndex,
    catalog: Catalog,
    request: RecallTimeline,
    *,
    bounds: tuple[int, int],
    limit: int,
) -> Json:
    """``{entries, hasMore, warnings}``: the entries of `timeline` from the first of `bounds` until before the second.

    At most `limit`, the oldest first; of the request only its filters and its format count.

    Raises:
        BadRequest, IndexBroken: as timeline.
    """
    begin, end = bounds
    walk = _Walk(archive, lexical, catalog.rows(), request, until=end)
    stream = walk.entries((begin, -1, "", "", 0, ""), is_before=False)
    entries = list(itertools.islice(itertools.takewhile(lambda entry: entry.key[0] < end, stream), limit + 1))
    return {
        "entries": [walk.as_json(entry, is_anchor=False) for entry in entries[:limit]],
        "hasMore": len(entries) > limit or bool(walk.unread),
        "warnings": walk.warnings,
    }


class _Walk:
    """Reads the records for one timeline; without messages made at `until` (epoch ms) or later."""

    def __init__(
        self,
        archive: Archive,
        lexical: LexicalIndex,
        rows: Mapping[str, Row],
        request: RecallTimeline,
        until: int | None = None,
    ) -> None:
        self._until = until
        self._archive, self._lexical, self._rows, self._request = archive, lexical, rows, request
        self.warnings: list[str] = []
        self._chosen = _chosen(rows, request, self.warnings)
        self.unread: set[str] = set()

    def anchor(self, now: int) -> tuple[Json, _Key, list[_Entry]]:
        """The anchor as JSON, its key, and its entry if it is a message or session."""
        anchor = self._request.anchor.strip() or "now"
        message = self._archive.message(anchor)
        if message is not None:
            entry = _message_entry(message)
            return {"type": "message", "id": message.id, "time": message.created}, entry.key, [entry]
        if anchor in self._rows:
            entry = _session_entry(self._rows[anchor])
            return {"type": "session", "id": anchor, "time": entry.key[0]}, entry.key, [entry]
        if re.match(r"(?:msg|ses)_", anchor):
            raise BadRequest(f"`anchor` {anchor!r} is not in the archive; `recall()` and `recall_sessions()` give ids")
        time = parse_time(anchor, now, "anchor")
        time = now if time is None else time
        return {"type": "time", "time": time}, (time, -1, "", "", 0, ""), []

    def entries(self, key: _Key, *, is_before: bool) -> Iterator[_Entry]:
        """All entries on one side of `key`, from there outwards."""
        ways: dict[str, Callable[[int, bool], Iterator[_Entry]]] = {
            "session": self._sessions,
            "prompt": self._prompts,
            "file": self._changes,
        }
        streams = [ways[kind](key[0], is_before) for kind in dict.fromkeys(self._request.kinds or ways)]
        for entry in heapq.merge(*streams, key=lambda entry: entry.key, reverse=is_before):
            if entry.type and (entry.key < key if is_before else entry.key > key):
                yield entry

    def as_json(self, entry: _Entry, *, is_anchor: bool) -> Json:
        """The entry as JSON."""
        row = self._rows.get(entry.key[2])
        is_full = self._request.format == "full"
        spoken = redact(f"{entry.text}: {entry.note}" if entry.note and is_full else entry.text)
        line = one_line(spoken)
        return {
            "type": entry.type,
            "time": entry.key[0],
            "sessionID": entry.key[2],
            "sessionTitle": redact(row.title) if row else "",
            **({"messageID": entry.key[3]} if entry.key[3] else {}),
            **{name: redact(value) for name, value in entry.more.items() if value},
            "text": spoken if is_full else shorten(line, LINE),
            "anchor": is_anchor,
        }

    # -- the three kinds, each from a time outwards; what stands at that time comes on both sides --------------------

    def _sessions(self, time: int, is_before: bool) -> Iterator[_Entry]:
        rows = self._rows.values() if self._chosen is None else [self._rows[session_id] for session_id in self._chosen]
        side = [row for row in rows if (row.created <= time if is_before else row.created >= time)]
        return map(_session_entry, sorted(side, key=lambda row: (row.created, row.id), reverse=is_before))

    def _prompts(self, time: int, is_before: bool) -> Iterator[_Entry]:
        """Prompts in order. The index has those of one millisecond in any order, so they are sorted here."""
        same: list[_Entry] = []
        message_ids: set[str] = set()
        for match in self._matches(_PROMPTS, time + 1 if is_before else time, is_before):
            message = None if match.message_id in message_ids else self._archive.message(match.message_id)
            if message is None or message.role != "user":
                continue  # another part of the same prompt, a task that a model gave, or the index is behind
            message_ids.add(match.message_id)
            entry = _message_entry(message)
            if same and same[0].key[0] != entry.key[0]:
                yield from sorted(same, key=lambda each: each.key, reverse=is_before)
                same = []
            same.append(entry)
        yield from sorted(same, key=lambda each: each.key, reverse=is_before)

    def _changes(self, time: int, is_before: bool) -> Iterator[_Entry]:
        """Changes in order. Calls come by the time of their message, but a change happens later, so each waits until no
        nearer one can come.

        Backwards, that is when the calls are older by more than a call may last; forwards, when they are as late.
        Entries without a type report progress, so that the caller can stop before distant changes are read.
        """
        waiting: list[_Entry] = []
        message_ids: set[str] = set()
        start = time + 1 if is_before else time - _LONGEST_CALL_MS
        for match in self._matches((Kind.TOOL_INPUT,), start, is_before, MOST_CALLS):
            state = self._archive.state(match.message_id)
            if state is None or match.message_id in message_ids:
                continue
            bound = state["created"] + (_LONGEST_CALL_MS if is_before else 0)
            while waiting and (waiting[-1].key[0] > bound if is_before else waiting[-1].key[0] < bound):
                yield waiting.pop()
            yield _Entry((bound, 9 if is_before else -9, "", "", 0, ""), "", "")
            if state["edits"] and match.tool not in _NO_CHANGE:
                message_ids.add(match.message_id)
                waiting += self._changed(match.message_id)
                waiting.sort(key=lambda entry: entry.key, reverse=not is_before)
        yield from reversed(waiting)

    def _changed(self, message_id: str) -> Iterator[_Entry]:
        """The changes that a message's calls made."""
        message = self._archive.message(message_id)
        session = self._archive.session(message.session_id) if message is not None else None
        for place, edit in enumerate(edits(message, session) if message is not None else ()):
            if edit.operation in CHANGES:
                yield _change_entry(edit, place, session.directory if session is not None else "")

    def _matches(self, kinds: tuple[Kind, ...], time: int, is_before: bool, most: int | None = None) -> Iterator[Match]:
        """Parts of these kinds from `time` outwards, in growing pages; after `most` no more, with a warning."""
        filters = Filters(
            session_id=self._request.sessionID.strip(),
            sessions=self._chosen,
            kinds=tuple(map(str, kinds)),
            before=self._until,
        )
        done, limit = 0, _PAGE if most is not None else max(self._request.depth_before, self._request.depth_after) + 8
        while True:
            matches = self._lexical.by_time(time, filters, limit, before=is_before)
            yield from matches[done:]
            done = len(matches)
            if done < limit:
                return
            if most is not None and done >= most:
                side = "before" if is_before else "after"
                self.unread.add(side)
                self.warnings.append(f"not all file changes {side} the anchor: only the nearest {done} calls were read")
                return
            limit *= 2


def _chosen(rows: Mapping[str, Row], request: RecallTimeline, warnings: list[str]) -> frozenset[str] | None:
    """The requested sessions; None means all."""
    session_id, project = request.sessionID.strip(), request.project.strip()
    chosen = None
    if project.startswith("/"):
        folder = absolute(project, "", "project")
        chosen = frozenset(row.id for row in rows.values() if is_within(row.directory, folder))
        if not chosen:
            warnings.append(
                f"no recorded session is of {redact(folder)} or beneath it; `recall_sessions()` lists those there are"
            )
    elif project:
        chosen = frozenset(row.id for row in rows.values() if row.project_id == project)
        if not chosen:
            raise BadRequest(f"`project` {project!r} is not in the archive; give its id, or an absolute directory")
    if not session_id:
        return chosen
    if session_id not in rows:
        raise BadRequest(f"session {session_id!r} is not in the archive; `recall_sessions()` lists those that are")
    return frozenset({session_id}) if chosen is None else chosen & {session_id}


def _session_entry(row: Row) -> _Entry:
    return _Entry((row.created, _RANKS["session"], row.id, "", 0, ""), "session", row.title)


def _message_entry(message: Message) -> _Entry:
    """A message as an entry, with its text; a message without text has its tasks and file names instead."""
    kind = "prompt" if message.role == "user" else "answer"
    spoken = [part for part in message.parts if part.type == "text" and part.data.get("synthetic") is not True]
    words = [word for part in spoken if (word := text(part.data.get("text"))).strip()]
    words = words or [word for part in message.parts for word in _descriptions(part)]
    key = (message.created, _RANKS[kind], message.session_id, message.id, 0, "")
    return _Entry(key, kind, "\n".join(words))


def _descriptions(part: Part) -> Iterator[str]:
    """The description of a part without text: of a task its fields, of a file its name."""
    keys = ("description", "prompt", "command", "name") if part.type in ("subtask", "agent") else ("filename",)
    words = dict.fromkeys(text(part.data.get(key)) for key in keys)
    yield from (word for word in words if word.strip())


def _change_entry(edit: FileEdit, place: int, directory: str) -> _Entry:
    folder = directory.rstrip("/")

    def relative(path: str) -> str:
        return path[len(folder) + 1 :] if path.startswith(folder + "/") else path

    goal = f" -> {relative(edit.other)}" if edit.other and edit.operation in (Operation.MOVE, Operation.COPY) else ""
    line = f"{edit.operation} {relative(edit.path)}{goal}"
    more = {"path": edit.path, "operation": str(edit.operation), "tool": edit.tool}
    key = (edit.time, _RANKS["file"], edit.session_id, edit.message_id, place, edit.path)
    return _Entry(key, "file", line, edit.note, more)
