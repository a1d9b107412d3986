"""Decides what is never taken in from OpenCode's records: the one place that does. Pure.

`Exclusion` has the user's settings and rewrites what a source gave: a session's record, a message, its parts, lists of
diffs. What is left out is replaced by a mark, and the record says so under ``leftOut``, so that nothing is concluded
from what remains of it. Private blocks are taken out whatever the settings are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from daemon import private, records
from daemon.config.sections import Exclude, absolute
from daemon.errors import BadRecord
from daemon.exclude import globs, mentions
from daemon.exclude.parts import of_agents, of_paths
from daemon.model import Json, LargePart, Message, Part, Parts, Session
from daemon.private import FLAG
from daemon.transcript.evidence.attachments import announced_path
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import working_directory, worktree

if TYPE_CHECKING:
    from daemon.path_patterns import PathPatterns

VERSION = "2"
"""Version of these rules; raise it to read again what they changed."""

PATHS, AGENTS, TASKS, PRIVATE, LARGE = "paths", "agents", "tasks", "private", "large"
"""Why something of a message was left out. AGENTS: all of it; TASKS: what it gave an excluded agent to do."""

EXCLUDED = "excluded by exclude.paths"
"""The reason of a capture that was left out."""

_WILDCARD = re.compile(r"[*?\[\]\\]")
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|$)")


class Exclusion:
    """The settings of `[exclude]`, as decisions. Safe from several threads."""

    def __init__(self, settings: Exclude | None = None, *, reads_outputs: bool = True) -> None:
        """`reads_outputs`: a call also concerns a path by what it printed, or by a pattern of a shell that fits it."""
        self._reads_outputs = reads_outputs
        settings = settings or Exclude()
        self._projects = tuple(dict.fromkeys(place for text in settings.projects for place in _places(text)))
        self._agents = frozenset(settings.agents)
        lines = [line for text in settings.paths for line in _lines(text)]
        self._patterns = _compiled(lines) if lines else None
        self._globs = globs.patterns(lines) if reads_outputs else []
        self._has_paths = bool(lines)
        self._literals = tuple(dict.fromkeys(map(_literal, lines)))
        self._matches = lru_cache(maxsize=1 << 16)(self._match)
        parts = (VERSION, *self._projects, "", *sorted(self._agents), "", *lines)
        self.fingerprint = records.digest(*(part.encode("utf-8", "replace") for part in parts))[:12]

    @property
    def has_projects(self) -> bool:
        """Whether sessions are excluded by their folder."""
        return bool(self._projects)

    @property
    def has_agents(self) -> bool:
        """Whether messages are excluded by their agent."""
        return bool(self._agents)

    @property
    def reads_whole_records(self) -> bool:
        """Whether only the whole of a record shows if something in it is excluded."""
        return bool(self._has_paths or self._agents)

    # -- decisions -----------------------------------------------------------------------------------------------

    def project(self, folder: str) -> bool:
        """Whether sessions that ran in this folder are excluded."""
        path = f"/{os.path.normpath(folder).lstrip('/')}/" if folder.startswith("/") else ""
        return any(path.startswith(f"{project.rstrip('/')}/") for project in self._projects) if path else False

    def agent(self, name: object) -> bool:
        """Whether this agent's messages are excluded."""
        return isinstance(name, str) and name in self._agents

    def path(self, path: str) -> bool:
        """Whether the content of this absolute path is excluded."""
        return self._has_paths and self._matches(path)

    def _match(self, path: str) -> bool:
        relative = path.lstrip("/")
        return self._patterns is not None and (self._patterns.match(relative) or self._patterns.match(f"{relative}/"))

    def mentions(self, texts: Iterable[str], bases: Sequence[str]) -> bool:
        """Whether one of `texts` names an excluded path; its relative names start from one of the folders `bases`.

        Where no folder is known, a text that may name one counts as if it did.
        """
        if not self._has_paths:
            return False
        if any(self.path(base) for base in bases):
            return True
        homes = _homes(bases)
        spelled = (spelling for text in texts for spelling in mentions.spellings(text, homes))
        suspect = (text for text in spelled if any(literal in text for literal in self._literals))
        return any(not bases or any(map(self.path, mentions.paths(text, bases))) for text in suspect)

    def spill(self, output: bytes, bases: Sequence[str]) -> str:
        """Why a tool's spilled output is left out; empty if it is not."""
        if self.mentions([output.decode("utf-8", "replace")], bases):
            return EXCLUDED
        return "holds a private block" if private.holds_tag(output) else ""

    # -- records -------------------------------------------------------------------------------------------------

    def session(self, session: Session) -> Session:
        """The session's record without private blocks, and without the diffs that show excluded paths."""
        raw, title = session.raw, session.title
        if self._has_paths and raw != b"{}":
            data = self._session_data(records.load_object(raw), [session.directory])
            raw = raw if data is None else records.dumps(data)
        if private.may_hold_block(raw) or "private" in title.lower():
            raw, title = _without_blocks(raw), private.without_blocks(title)
        return session if raw is session.raw and title == session.title else replace(session, raw=raw, title=title)

    def _session_data(self, data: Json, roots: Sequence[str]) -> Json | None:
        """A session's record whose diffs show no excluded path; None if none of them did. It may be JSON in JSON."""
        changed: Json = {}
        for name in ("revert", "summary_diffs"):
            if data.get(name) is not None and self._shows(data[name], roots):
                changed[name] = _without_diff(data[name]) if name == "revert" else None
        summary = records.table(data.get("summary"))
        if isinstance(summary.get("diffs"), list):
            diffs = self.diffs(summary["diffs"], roots)
            changed |= {} if diffs is summary["diffs"] else {"summary": {**summary, "diffs": diffs}}
        return {**data, **changed} if changed else None

    def _shows(self, value: object, roots: Sequence[str]) -> bool:
        """Whether a field of a session's record shows an excluded path."""
        return self.mentions(_texts(value), roots)

    def revert_diff(self, diff: str, roots: Sequence[str]) -> str:
        """The diff of a revert; empty if it shows something excluded, because a part of it would mislead."""
        is_shown = private.without_blocks(diff, is_window=True) == diff and not self.mentions([diff], roots)
        return diff if is_shown else ""

    def untitled(self, session: Session) -> Session:
        """The session's record without its title, which a model made from what was said to an excluded agent."""
        data = records.load_object(session.raw)
        raw = records.dumps(data | {"title": ""}) if "title" in data else session.raw
        return replace(session, raw=raw, title="")

    def message(self, message: Message, session: Session | None) -> tuple[Message | None, frozenset[str]]:
        """The message without what is excluded, or None if all of it is; and why something was left out."""
        if self._agents and any(self.agent(message.data.get(name)) for name in ("agent", "mode")):
            return None, frozenset({AGENTS})
        reasons = set[str]()
        parts: Sequence[Part] = message.parts
        by_number = self._parts_of_paths(message, session) if self._has_paths else {}
        if isinstance(parts, Parts):
            is_same = True
            for number, part in enumerate(parts):
                screened, of_part = self._part(part, by_number.get(number))
                is_same &= screened is part
                reasons |= of_part
            parts = parts if is_same else Parts(parts.ids, partial(self._loaded, parts, by_number))
        else:
            whole = [self._part(part, by_number.get(number)) for number, part in enumerate(parts)]
            reasons.update(*(of_part for _, of_part in whole))
            is_same = all(screened is part for (screened, _), part in zip(whole, parts, strict=True))
            parts = parts if is_same else tuple(screened for screened, _ in whole)
        head, of_head = self._head(message, session, whole=not reasons & {PATHS, TASKS})
        if head is message and is_same:
            return message, frozenset()
        return replace(head, parts=parts), frozenset(reasons | of_head)

    def _head(self, message: Message, session: Session | None, *, whole: bool) -> tuple[Message, set[str]]:
        """The message's own record. Without `whole`, OpenCode 2's row in it goes too, because it repeats the parts."""
        data, reasons = message.data, set[str]()
        if not whole and "v2" in data:
            data = {**data, "v2": private.EXCLUDED}
        summary = records.table(data.get("summary"))
        if self._has_paths and isinstance(summary.get("diffs"), list):
            diffs = self.diffs(summary["diffs"], [worktree(message, session), working_directory(message, session)])
            if diffs is not summary["diffs"]:
                data = {**data, "summary": {**summary, "diffs": diffs}}
                reasons.add(PATHS)
        if private.may_hold_block(message.raw):
            cleaned = _cleaned(data)
            if cleaned is not data:
                data = cleaned
                reasons.add(PRIVATE)
        if data is message.data:
            return message, reasons
        data = _flagged(data, reasons)
        return replace(message, data=data, raw=records.dumps(data)), reasons

    def _part(self, part: Part, by_path: Json | None) -> tuple[Part, set[str]]:
        """A part without what is excluded; `by_path` is what remains of one that concerns an excluded path."""
        data, reasons = part.data, set[str]()
        if by_path is not None:
            data = by_path
            if data.get(FLAG):
                reasons.add(PATHS)
        if self._agents and (remains := of_agents(data, self.agent)) is not None:
            data = remains
            reasons.add(TASKS)
        if private.may_hold_block(part.raw):
            cleaned = _cleaned(data)
            if cleaned is not data:
                data = _flagged(cleaned, {PRIVATE})
                reasons.add(PRIVATE)
        if data is part.data:
            return part, reasons
        return Part(part.id, part.message_id, part.session_id, part.type, data, records.dumps(data)), reasons

    def _loaded(self, parts: Parts, by_number: Mapping[int, Json], number: int) -> Part:
        """One part of a large message; its record is made anew at each access, like those that stay as they are."""
        part = parts[number]
        screened = self._part(part, by_number.get(number))[0]
        if screened is part:
            return part
        return LargePart.of(screened, lambda: self._part(parts[number], by_number.get(number))[0].raw)

    def _parts_of_paths(self, message: Message, session: Session | None) -> dict[int, Json]:
        """By number, what remains of the parts that concern an excluded path."""
        remaining: dict[int, Json] = {}
        for number, (part, is_concerned) in enumerate(self._concerned(message, session)):
            remains = of_paths(part.data, is_concerned=is_concerned)
            if remains is not None:
                remaining[number] = remains
        return remaining

    def _concerned(self, message: Message, session: Session | None) -> Iterator[tuple[Part, bool]]:
        """Each part of a message, and whether it concerns an excluded path."""
        places = dict.fromkeys((working_directory(message, session), worktree(message, session)))
        bases = [place for place in places if place.startswith("/")]
        is_announced = False
        for part in message.parts:
            if part.type == "text" and part.data.get("synthetic") is True:
                text = records.text(part.data.get("text"))
                name = announced_path(text)
                is_announced = self.mentions([name], bases) if name else is_announced
                is_concerned = not name and (is_announced or self.mentions([text.partition("\n")[0]], bases))
            else:
                folders = [*bases, *mentions.entered(part.data, bases)]
                is_concerned = self.mentions(self._texts_of(part), folders) or self._globs_reach(part, folders)
                is_concerned |= is_announced and part.type == "file"
            yield part, is_concerned

    def _globs_reach(self, part: Part, bases: Sequence[str]) -> bool:
        command = mentions.command(part.data)
        return bool(command) and any(
            globs.may_reach(text, self._globs, bases) for text in mentions.at_home(command, _homes(bases))
        )

    def _texts_of(self, part: Part) -> Iterator[str]:
        if not self._reads_outputs and records.text(part.data.get("tool")) not in _FINDING:
            return mentions.texts(part.data, in_state=("input",))
        return mentions.texts(part.data)

    def diffs(self, diffs: list[Any], roots: Sequence[str]) -> list[Any]:
        """A list of recorded diffs without the texts of excluded paths; the same object if there was none."""
        kept = [self._diff(diff, roots) for diff in diffs]
        return kept if any(a is not b for a, b in zip(diffs, kept, strict=True)) else diffs

    def _diff(self, diff: Any, roots: Sequence[str]) -> Any:
        name = unquoted(records.text(records.table(diff).get("file")))
        if not name or not self.mentions([name], roots):
            return diff
        return {key: diff[key] for key in ("file", "status", "additions", "deletions") if key in diff} | {
            FLAG: {PATHS: True}
        }

    def values(self, values: Iterable[Json]) -> list[Json]:
        """Records beside the messages (todo items, diffs) without private blocks, each flagged if it had one."""
        return [value if (clean := private.cleaned(value)) is value else _flagged(clean, {PRIVATE}) for value in values]

    def event(self, raw: bytes) -> bytes:
        """The record of an event without private blocks."""
        return _without_blocks(raw) if private.may_hold_block(raw) else raw


def _homes(bases: Sequence[str]) -> dict[str, None]:
    return dict.fromkeys([os.path.expanduser("~"), *(match[0] for base in bases if (match := _HOME.match(base)))])


_FINDING = frozenset({"grep", "glob", "list"})
"""Tools that print lines or names of files that only their output names."""
_IDS = ("id", "sessionID", "messageID", "type", "role")


def _cleaned(data: Json) -> Json:
    """A record's data without private blocks; its ids stay as they are."""
    inner = {key: value for key, value in data.items() if key not in _IDS}
    clean = private.cleaned(inner)
    return data if clean is inner else {key: data[key] for key in _IDS if key in data} | clean


def _flagged(data: Json, reasons: Iterable[str]) -> Json:
    return {**data, FLAG: {**records.table(data.get(FLAG)), **dict.fromkeys(sorted(reasons), True)}}


def _texts(value: object) -> list[str]:
    if value is None or isinstance(value, str):
        return [value] if value else []
    return [records.dumps(value).decode().replace("\\n", "\n")]


def _without_diff(revert: object) -> object:
    """A pending revert without its diff; in a database it is JSON text."""
    if isinstance(revert, str):
        try:
            return records.dumps(_without_diff(records.load_object(revert.encode()))).decode()
        except BadRecord:
            return None
    return {key: value for key, value in records.table(revert).items() if key != "diff"}


def _without_blocks(raw: bytes) -> bytes:
    data = records.load_object(raw)
    if any(private.without_blocks(text, is_window=True) != text for text in _texts(data.get("revert"))):
        data = {**data, "revert": _without_diff(data["revert"])}
        return records.dumps(_flagged(_cleaned(data), {PRIVATE}))
    cleaned = _cleaned(data)
    return raw if cleaned is data else records.dumps(_flagged(cleaned, {PRIVATE}))


def _compiled(lines: list[str]) -> PathPatterns:
    from daemon.path_patterns import PathPatterns  # noqa: PLC0415 - slow to load, and most users exclude no path

    return PathPatterns(lines)


def _places(text: str) -> list[str]:
    """A folder as it is written, and where it leads to, because OpenCode may record either."""
    place = str(absolute(text))
    return [place, os.path.realpath(place)]


def _lines(text: str) -> list[str]:
    """A pattern of exclude.paths as gitignore patterns from the root of the file system."""
    sign, body = ("!", text[1:]) if text.startswith("!") else ("", text)
    if body.startswith("~"):
        body = os.path.expanduser(body)
    if not body.startswith("/") or _WILDCARD.search(body):
        return [sign + body]
    end = "/" if body.endswith("/") else ""
    return list(dict.fromkeys(sign + place + end for place in _places(body)))


def _literal(line: str) -> str:
    """A text that every path contains which the pattern matches, or the folder that it is used from; may be empty."""
    name = line.lstrip("!").rstrip("/").rpartition("/")[2]
    return max(_WILDCARD.split(name), key=len)
