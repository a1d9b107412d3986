"""Leaves out what concerns certain paths, by the rule of exclude.paths, and their names too. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from daemon import records
from daemon.errors import BadRecord
from daemon.exclude import Exclusion, globs, mentions
from daemon.exclude.parts import without_names
from daemon.model import Json, Message, Part, Session
from daemon.private import FLAG
from daemon.transcript.evidence.attachments import announced_path
from daemon.transcript.evidence.edits import each_edit
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import absolute, worktree

_ONE_WORD = re.compile(r"[^\s\"'`<>()\[\]{}|,;=&:#\\]+")
_STEPS = frozenset({"step-start", "step-finish"})
_PROSE = frozenset({"text", "reasoning"})


class PathExclusion(Exclusion):
    """What a user wants forgotten of a path. `is_meant` says whether an absolute path is it, or beneath it.

    `places` are its names, if they are known. `concerns` says of the id of a part or call, or of a whole text beside
    the parts, that it is concerned in any case. What people and models say in their own words is not.
    """

    def __init__(
        self,
        is_meant: Callable[[str], bool],
        *,
        places: Sequence[str] = (),
        concerns: Callable[[str], bool] = lambda _: False,
    ) -> None:
        super().__init__()
        self._is_meant = lru_cache(maxsize=1 << 16)(is_meant)
        self._has_paths = True
        self._places = [place for place in places if _ONE_WORD.fullmatch(place) is None]
        """Names that a text may hold, and that do not stand there as one word."""
        self._literals = tuple(place.rpartition("/")[2] for place in places) or ("",)
        self._globs = [globs.beneath(place) for place in places]
        self._concerns = concerns

    def path(self, path: str) -> bool:
        """Whether it is meant."""
        return self._is_meant(path)

    def mentions(self, texts: Iterable[str], bases: Sequence[str]) -> bool:
        """See Exclusion. Without places, a relative name counts only where the folder is known."""
        whole = list(texts)
        return super().mentions(whole, bases or (["/"] if self._literals == ("",) else [])) or any(
            _is_spelled(place, spelling, bases)
            for place in self._places
            for text in whole
            for spelling in mentions.spellings(text, ())
        )

    def _parts_of_paths(self, message: Message, session: Session | None) -> dict[int, Json]:
        tree = worktree(message, session)
        remaining: dict[int, Json] = {}
        for number, (part, is_concerned) in enumerate(self._concerned(message, session)):
            remains = self._remains(part, tree, is_concerned=is_concerned)
            if remains is not None:
                remaining[number] = remains
        if any(remains["type"] == "tool" for remains in remaining.values()):
            others = {edit.part_id for edit in each_edit(message, session) if not self.path(edit.path)}
            for remains in remaining.values():
                if remains["type"] == "tool" and remains["id"] not in others:
                    remains[FLAG] = {"forgotten": True, "alone": True}
        return remaining

    def _remains(self, part: Part, tree: str, *, is_concerned: bool) -> Json | None:
        if part.type in _STEPS:
            return without_names(part.data) if self.path(tree) and "snapshot" in part.data else None
        if part.type == "patch":
            return self._patch(part.data, tree)
        if part.type in _PROSE:
            if part.data.get("synthetic") is not True:
                return None
            name = announced_path(records.text(part.data.get("text")))
            is_concerned |= bool(name) and self.path(absolute(name, tree) or "")
        return without_names(part.data) if is_concerned or any(map(self._concerns, part_names(part))) else None

    def _patch(self, data: Json, tree: str) -> Json | None:
        """The list of files that a step changed, without those that are meant."""
        files = data.get("files")
        listed: list[Any] = files if isinstance(files, list) else []
        kept = [name for name in listed if not self.path(absolute(records.text(name), tree) or "")]
        return {**data, "files": kept, FLAG: {"forgotten": True}} if len(kept) < len(listed) else None

    def concerns(self, part: Part, message: Message, session: Session | None) -> bool:
        """Whether another version of one of the message's parts concerns the paths."""
        alone = Message(message.id, message.session_id, message.role, message.created, message.data, b"", (part,))
        return bool(self._parts_of_paths(alone, session))

    def revert_diff(self, diff: str, roots: Sequence[str]) -> str:
        """See Exclusion."""
        return "" if self._concerns(diff) or self.mentions([diff], roots) else diff

    def _shows(self, value: object, roots: Sequence[str]) -> bool:
        diff = _diff_of(value)
        return self._concerns(diff) or super()._shows(value, roots) or self.mentions([diff], roots)

    def session(self, session: Session) -> Session:
        """See Exclusion."""
        data = self._session_data(records.load_object(session.raw), [session.directory])
        return session if data is None else replace(session, raw=records.dumps(data))

    def head(self, message: Message, session: Session | None, *, whole: bool) -> Message:
        """The message's own record; `whole` if all of its parts stay."""
        return self._head(message, session, whole=whole)[0]

    def diffs(self, diffs: list[Any], roots: Sequence[str]) -> list[Any]:
        """See Exclusion; nothing remains of the diffs of such a path."""
        kept = [diff for diff in diffs if not self._is_of(diff, roots)]
        return kept if len(kept) < len(diffs) else diffs

    def _is_of(self, diff: object, roots: Sequence[str]) -> bool:
        name = unquoted(records.text(records.table(diff).get("file")))
        return bool(name) and any(self.path(absolute(name, root) or "") for root in roots or ["/"])

    def todos(self, items: Collection[Json], roots: Sequence[str]) -> list[Json]:
        """A todo list without the items that name such a path."""
        bases = [root for root in roots if root and not self.path(root)] or ["/"]
        return [item for item in items if not self._is_todo_of(records.text(item.get("content")), bases)]

    def _is_todo_of(self, text: str, bases: Sequence[str]) -> bool:
        return self._concerns(text) or self.mentions([text], bases)


def part_names(part: Part) -> list[str]:
    """Its id, and the id of its call, which another store of the same message may keep where it makes new part ids."""
    call_id = records.text(part.data.get("callID"))
    return [part.id, call_id] if call_id else [part.id]


def _diff_of(value: object) -> str:
    """The diff in a session's pending revert; in a database it is JSON text."""
    if isinstance(value, str):
        try:
            value = records.load_object(value.encode())
        except BadRecord:
            return ""
    return records.text(records.table(value).get("diff"))


def _is_spelled(place: str, text: str, bases: Sequence[str]) -> bool:
    """Whether a text has this path, absolute or from one of the folders `bases` on, as a diff may name it, too."""
    names = [base.rstrip("/") + "/" for base in bases]
    relative = "|".join(re.escape(place[len(name) :]) for name in names if place.startswith(name))
    pattern = rf"(?<![\w.-]){re.escape(place)}" + (rf"|(?<![\w./-])(?:[ab]/|\./)?(?:{relative})" if relative else "")
    return place.rpartition("/")[2] in text and re.search(rf"(?:{pattern})(?![\w-]|\.\w)", text) is not None


def above(path: str) -> Iterator[str]:
    """An absolute path and every folder above it, without the root."""
    while len(path) > 1:
        yield path
        path = path.rpartition("/")[0]
