"""Law: what a kind of evidence does not show is never called proven.

A file lives through writes, edits, formatters, commands and changes from outside; now and then a record shows it, each
kind without something: a byte order mark, line ends, the final newline. Left out is what docs/recovery.md says that
nobody can know: a mark of a file of a kind that seldom has one and of which no record shows any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from daemon.files import apply
from daemon.files.events import ordered
from daemon.files.events.formatters import may_run
from daemon.files.replay import replay
from daemon.model import FileEdit
from daemon.opencode.configuration import Settings
from daemon.transcript.evidence.call_results import INEXACT_READ
from daemon.transcript.evidence.recorded_diffs import NO_MARK
from daemon.transcript.evidence.unified_diffs import hunks
from tests.recovery.forms import trimmed
from tests.support.examples import examples
from tests.support.stores.replaying import Objects, edit, read, snapshot, state, unclear, write

BOM = "\ufeff"
OLD, NEW = "1.1.65", "1.18.33"
PATHS = ("/w/a.lua", "/w/a.go", "/w/a.c", "/w/a.txt", "/w/a.cs")
"""No formatter and no mark; a formatter; a formatter and perhaps a mark; perhaps a mark; usually a mark."""
_MARKED = (".c", ".txt", ".cs")

CHANGES: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "drop the mark": lambda text: text.removeprefix(BOM),
    "unify the line ends": lambda text: text.replace("\r\n", "\n"),
    "end the last line": lambda text: text if text.endswith("\n") else text + "\n",
    "change the text": lambda text: text + "z\n",
    "change the text and drop the mark": lambda text: text.removeprefix(BOM) + "z\n",
}
"""What a formatter or a command may do. Neither puts a mark where none was."""


@dataclass
class File:
    """A file, and what OpenCode recorded of it; `text` is None where there is none."""

    path: str
    text: str | None
    settings: Settings
    events: list[FileEdit] = field(default_factory=list)
    objects: Objects = field(default_factory=Objects)
    was_changed_outside: bool = False
    is_unseen: bool = False
    """Whether nothing has shown the file since it was changed from outside."""

    @property
    def second(self) -> int:
        return len(self.events) + 1

    def write(self, content: str, version: str, is_told: bool, formatter: str) -> None:
        existed = self.text is not None if is_told else None
        kept = BOM if version == NEW and (self.text or "").startswith(BOM) and not content.startswith(BOM) else ""
        self._called(
            write(self.second, self.path, content, version=version, existed=existed), kept + content, formatter
        )
        # What became of the mark of a file that nobody has seen since, nothing tells.
        self.is_unseen = self.is_unseen and version == NEW and not content.startswith(BOM)

    def edit(self, old: str, new: str, version: str, formatter: str) -> None:
        before = self.text
        if before is None or not old.strip():
            return
        after = apply.edited(before, old, new, False, version)
        if after is None or after == before:
            return
        call = edit(self.second, self.path, old, new, version=version)
        after = CHANGES[formatter](after) if self._may_format(call) else after
        if version == OLD:
            shown = {"before": before.removeprefix(BOM), "after": after.removeprefix(BOM)}
            call = edit(self.second, self.path, old, new, version=version, **shown)
            after = after.removeprefix(BOM)
        else:
            diff = hunks(trimmed(self.path, before.removeprefix(BOM), after.removeprefix(BOM)))
            call = edit(self.second, self.path, old, new, version=version, hunks=diff)
        self.events.append(call)
        self.text = after

    def doubt(self, change: str) -> None:
        self.events.append(unclear(self.second, self.path))
        self.text = None if self.text is None else CHANGES[change](self.text)

    def outside(self, change: str) -> None:
        """A visible change that leaves no record."""
        if self.text is not None:
            self.text = CHANGES[change](f"{self.text}o\n")
            self.was_changed_outside = self.is_unseen = True

    def see(self, kind: str) -> None:
        """A record shows the file, but for what its kind hides."""
        if self.text is None:
            return
        plain = self.text.removeprefix(BOM)
        if kind == "read":
            shown = read(self.second, self.path, plain, version=OLD)
        elif kind == "read of lines":
            shown = read(self.second, self.path, apply.as_read(plain), note=INEXACT_READ)
        elif kind == "diff":
            shown = state(self.second, self.path, self.text, note="after the turn")
        elif kind == "decoded diff":
            shown = state(self.second, self.path, plain, note="after the turn" + NO_MARK)
        elif kind == "attachment":
            shown = state(self.second, self.path, self.text, tool="attachment")
        else:
            name = self.path.removeprefix("/w/")
            tree = self.objects.put({name: self.text.encode()}, f"t{self.second}")
            shown = snapshot(self.second, tree, "/w")
        self.events.append(shown)
        self.is_unseen = False

    def _called(self, call: FileEdit, text: str, formatter: str) -> None:
        self.events.append(call)
        self.text = CHANGES[formatter](text) if self._may_format(call) else text

    def _may_format(self, call: FileEdit) -> bool:
        return may_run(call, self.settings)

    def check(self) -> None:
        world = replay(ordered(self.events), self.objects, may_format=self._may_format)
        revisions = world.history(self.path).revisions
        if not revisions:
            return
        now = revisions[-1]
        if now.proven and not self.is_unseen:
            truth = None if self.text is None else self.text.encode()
            assert (None if now.deleted else now.content) == truth, now
        if not self.was_changed_outside:
            assert [one for one in revisions if one.outside_change] == []


_LINES = st.lists(
    st.tuples(st.sampled_from(["x", "y", "x y", " x", ""]), st.sampled_from(["\n", "\n", "\r\n"])),
    min_size=1,
    max_size=5,
)
_TEXTS = st.builds(
    lambda lines, is_ended: "".join("".join(pair) for pair in lines).removesuffix("" if is_ended else lines[-1][1]),
    _LINES,
    st.booleans(),
)
_VERSION = st.sampled_from([OLD, NEW])
_CHANGE = st.sampled_from(list(CHANGES))
_SNIPPETS = st.sampled_from(["x", "y", "x\ny", " x", "x\n", "y\nx\n"])
_OLD_EVIDENCE, _NEW_EVIDENCE = ("read", "diff"), ("read of lines", "decoded diff", "attachment", "tree")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.tuples(st.sampled_from(["", "", BOM]), _TEXTS).map("".join), _VERSION, st.booleans(), _CHANGE),
        st.tuples(st.just("edit"), _SNIPPETS, st.sampled_from(["q", "q\nr", ""]), _VERSION, _CHANGE),
        st.tuples(st.just("doubt"), _CHANGE),
        st.tuples(st.just("outside"), _CHANGE),
        st.tuples(st.just("see"), st.sampled_from([*_OLD_EVIDENCE, *_NEW_EVIDENCE])),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(st.sampled_from(PATHS), st.booleans(), st.one_of(st.none(), _TEXTS), st.booleans(), _STEPS)
@example("/w/a.c", True, "x\n", True, [("write", "y\n", NEW, True, "nothing"), ("see", "decoded diff")])
@example("/w/a.go", False, None, False, [("write", BOM + "y\n", OLD, True, "nothing"), ("see", "read")])
@example(
    "/w/a.txt",
    False,
    None,
    False,
    [("write", BOM + "y\n", NEW, True, "nothing"), ("outside", "nothing"), ("see", "read")],
)
@example(
    "/w/a.lua",
    False,
    None,
    False,
    [("write", BOM + "y\n", NEW, True, "nothing"), ("doubt", "drop the mark"), ("write", "x\n", NEW, True, "nothing")],
)
@example(
    "/w/a.txt",
    False,
    "x\n",
    True,
    [("write", "y\n", NEW, True, "nothing"), ("doubt", "nothing"), ("see", "decoded diff")],
)
def test_what_evidence_hides_is_never_called_proven(
    path: str, are_on: bool, text: str | None, is_marked: bool, steps: list[tuple[Any, ...]]
) -> None:
    seldom = not path.endswith(_MARKED) or (not path.endswith(".cs") and ("see", "read") in steps)
    file = File(path, text if text is None or seldom or not is_marked else BOM + text, Settings(is_on=are_on))
    for name, *rest in steps:
        getattr(file, name)(*rest)
        note(f"{name} {rest}: {file.text!r}")
        file.check()
