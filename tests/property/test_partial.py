"""Of a file that reads and recorded diffs show in part, every line that is called known stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from daemon.files import apply
from daemon.files.content import Fragments
from daemon.files.history import Grade, Revision
from daemon.model import FileEdit
from daemon.transcript.evidence.call_results import INEXACT_READ
from daemon.transcript.evidence.unified_diffs import hunks
from tests.recovery.forms import trimmed
from tests.support.stores.replaying import append, edit, last, lines, read, unclear

PATH = "/w/a"
_LINE = st.sampled_from(["a", "b", "c", "", "  a", "    b", "\tc", "a b", "}"])
_TEXT = st.builds(
    lambda rows, end, eol: ("\n".join(rows) + "\n" * end).replace("\n", eol),
    st.lists(_LINE, min_size=1, max_size=14),
    st.booleans(),
    st.sampled_from(["\n", "\n", "\r\n"]),
)
_MIXED = st.builds(
    lambda rows, last: "".join(map("".join, rows)) + last,
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "", "a b", "}"]), st.sampled_from(["\n", "\r\n"])), max_size=8),
    st.sampled_from(["", "a", "}"]),
)
_NEW = st.sampled_from(["x", "x\ny", "x\n", "\nx", "", "  x\n  y\n", "x\n\ny"])


@dataclass
class File:
    """A file as it is worked on, and what OpenCode 1.18 recorded of it."""

    text: str
    events: list[FileEdit]

    def read(self, first: int = 1, count: int | None = None) -> None:
        shown = apply.as_read(self.text).split("\n")
        second = len(self.events) + 1
        if count is None:
            self.events.append(read(second, PATH, "\n".join(shown), note=INEXACT_READ))
        elif shown[first - 1 : first - 1 + count]:
            self.events.append(lines(second, PATH, first, *shown[first - 1 : first - 1 + count]))

    def edit(self, old: str, new: str, *, is_shown: bool) -> bool:
        """Whether the edit succeeded.

        Left out are edits without a diff whose old text stands more than once, or only alike, in the file: no record
        tells their place (docs/reliability.md, F23).
        """
        after = apply.edited(self.text, old, new, False, "1.18.33")
        exact = old.replace("\n", "\r\n") if "\r\n" in self.text else old
        is_unique = exact in self.text and self.text.find(exact) == self.text.rfind(exact)
        if after is None or after == self.text:
            return False
        diff = hunks(trimmed(PATH, self.text, after)) if is_shown else ()  # none where line ends alone have changed
        if not (diff or is_unique):
            return False
        self.events.append(edit(len(self.events) + 1, PATH, old, new, hunks=diff))
        self.text = after
        return True

    def append(self, added: str) -> None:
        self.events.append(append(len(self.events) + 1, PATH, added))
        self.text += added

    def run_sed(self) -> None:
        """A command of which only that it may have changed the file is known."""
        self.events.append(unclear(len(self.events) + 1, PATH))
        self.text = self.text.replace("a", "A")

    @property
    def known(self) -> Fragments:
        return self.last.fragments or Fragments()

    @property
    def last(self) -> Revision:
        return last(PATH, self.events)

    def check(self) -> None:
        """Nothing that is called known is otherwise."""
        shown = apply.as_read(self.text).split("\n")
        plain = self.text.replace("\r\n", "\n")
        if self.known.is_stale:
            assert self.last.grade is Grade.STALE
            return
        for run in self.known.runs:
            if run.first is not None:
                assert list(run.lines) == shown[run.first - 1 : run.end - 1]
            else:
                assert "\n".join(run.lines) in plain
        if not self.known.has_gaps:
            assert self.known.runs[0].lines == tuple(shown)
        if self.known.newline is not None:
            assert self.known.newline == plain.endswith("\n")
        assert not self.last.outside_change


def _old(data: st.DataObject, text: str) -> str:
    """Some rows of the text, as a model would quote them; with the final newline, or without."""
    rows = apply.as_read(text).split("\n")
    start = data.draw(st.integers(0, len(rows) - 1))
    count = data.draw(st.integers(1, 3))
    return "\n".join(rows[start : start + count]) + data.draw(st.sampled_from(["", "\n"]))


@given(_TEXT, st.data())
def test_edits_after_a_complete_read_leave_every_line_known(text: str, data: st.DataObject) -> None:
    file = File(text, [])
    file.read()
    for _ in range(3):
        rows = len(apply.as_read(file.text).split("\n"))
        old = _old(data, file.text)
        if old.strip() and file.edit(old, data.draw(_NEW), is_shown=data.draw(st.booleans())):
            file.check()
            if file.events[-1].hunks or "\r" not in text:
                event(f"gaps: {file.known.has_gaps}")
            if file.events[-1].hunks and rows < 3:
                assert not file.known.has_gaps
                assert file.known.newline is not None  # every hunk of so short a file reaches its end


@given(_TEXT, st.lists(st.tuples(st.integers(1, 14), st.integers(1, 6)), max_size=3), st.data())
def test_edits_after_reads_of_some_lines_place_only_what_stands_there(
    text: str, ranges: list[tuple[int, int]], data: st.DataObject
) -> None:
    file = File(text, [])
    for first, count in ranges:
        file.read(first, count)
    for _ in range(3):
        old = _old(data, file.text)
        if old.strip() and file.edit(old, data.draw(_NEW), is_shown=True):
            file.check()
            event(f"gaps: {file.known.has_gaps}")


@given(_MIXED, st.data())
def test_mixed_line_ends_put_no_line_in_a_wrong_place(text: str, data: st.DataObject) -> None:
    """OpenCode may place an edit elsewhere than in a text whose lines all end alike; its diff tells where."""
    file = File(text, [])
    file.read()
    for _ in range(3):
        old = _old(data, file.text)
        if old.strip() and file.edit(old, data.draw(_NEW), is_shown=True):
            file.check()
            event(f"gaps: {file.known.has_gaps}")


_STEP = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 8), st.one_of(st.none(), st.integers(1, 6))),
    st.tuples(st.just("append"), st.sampled_from(["zz\n", "zz", "y\nz\n", "\n"])),
    st.tuples(st.just("edit")),
    st.tuples(st.just("sed")),
)


@given(_TEXT, st.lists(_STEP, min_size=2, max_size=6), st.data())
def test_every_line_called_known_stands_in_the_file(
    text: str, steps: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    file = File(text, [])
    file.read(1, 3)
    for name, *rest in steps:
        if name == "read":
            file.read(*rest)
        elif name == "append":
            file.append(*rest)
        elif name == "sed":
            file.run_sed()
        elif (old := _old(data, file.text)).strip():
            file.edit(old, data.draw(_NEW), is_shown=True)
        if not file.last.outside_change:
            file.check()
            event(f"{name}, stale: {file.known.is_stale}")
