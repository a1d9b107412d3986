"""Leaves out what concerns certain paths, by the rule of exclude.paths, and their names too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from daemon import records
from daemon.exclude import Exclusion
from daemon.exclude.parts import without_names
from daemon.model import Json, Message, Part, Session
from daemon.private import FLAG
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import absolute, working_directory, worktree

_STEPS = frozenset({"step-start", "step-finish"})
_PROSE = frozenset({"text", "reasoning"})


class PathExclusion(Exclusion):
    """What a user wants forgotten of a path. `is_meant` says whether an absolute path is it, or beneath it.

    `part_ids` are concerned in any case. Every path that is meant contains one of the texts `literals`. What people and
    models say of a path in their own words is not concerned.
    """

    def __init__(
        self,
        is_meant: Callable[[str], bool],
        *,
        literals: Sequence[str] = ("",),
        concerns_part: Callable[[str], bool] = lambda _: False,
    ) -> None:
        super().__init__()
        self._is_meant = lru_cache(maxsize=1 << 16)(is_meant)
        self._has_paths = True
        self._literals = tuple(literals)
        self._concerns_part = concerns_part

    def path(self, path: str) -> bool:
        """Whether it is meant."""
        return self._is_meant(path)

    def mentions(self, texts: Iterable[str], bases: Sequence[str]) -> bool:
        """See Exclusion. Without literals, a relative name counts only where the folder is known."""
        return super().mentions(texts, bases or (["/"] if self._literals == ("",) else []))

    def _parts_of_paths(self, message: Message, session: Session | None) -> dict[int, Json]:
        tree = worktree(message, session)
        remaining: dict[int, Json] = {}
        for number, (part, is_concerned) in enumerate(self._concerned(message, session)):
            remains = self._remains(part, tree, is_concerned=is_concerned)
            if remains is not None:
                remaining[number] = remains
        return remaining

    def _remains(self, part: Part, tree: str, *, is_concerned: bool) -> Json | None:
        if part.type in _STEPS:
            return without_names(part.data) if self.path(tree) and "snapshot" in part.data else None
        if part.type == "patch":
            return self._patch(part.data, tree)
        if part.type in _PROSE and part.data.get("synthetic") is not True:
            return None
        return without_names(part.data) if is_concerned or self._concerns_part(part.id) else None

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
        bases = [root for root in roots if not self.path(root)]
        return [item for item in items if not self.mentions([records.text(item.get("content"))], bases or ["/"])]


def above(path: str) -> Iterator[str]:
    """An absolute path and every folder above it, without the root."""
    while len(path) > 1:
        yield path
        path = path.rpartition("/")[0]
