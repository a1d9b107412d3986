"""Uses the diff recorded with an edit: whether it fits a text, and which lines are known after it.

OpenCode since 1.15 records no text before and after, but a diff with some lines around the change. The diff lacks the
lines' common indentation and their CRs (opencode-formats.md, Records), so it proves nothing by itself, but it can
contradict. If we know every line of a file but not the line ends, we apply OpenCode's rules to every possible text, and
accept what all results that fit the diff have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daemon.files import apply
from daemon.files.content import Fragments, Run
from daemon.model import FileEdit, Operation
from daemon.transcript.patch_text import Hunk

NO_NEWLINE = "\\ No newline at end of file"
_MARK = "\ufeff"
_PLACE = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LINE_END = re.compile(r"\r\n|\r|\n")


def fits(before: str, after: str, hunks: tuple[Hunk, ...]) -> bool:
    """Whether every line of the diff is at its place before and after, and no other line was added or removed."""
    if not hunks:
        return True
    old, new = _lines(before.removeprefix(_MARK)), _lines(after.removeprefix(_MARK))
    for head, shown_before, shown_after, _ in hunks:
        place = _PLACE.match(head)
        if place is None:
            return True  # not a diff that we know how to read
        if not _stands(old, int(place[1]), shown_before) or not _stands(new, int(place[2]), shown_after):
            return False
    grown = sum(_count(shown_after) - _count(shown_before) for _, shown_before, shown_after, _ in hunks)
    return _newlines(after) - _newlines(before) == grown


def _count(lines: tuple[str, ...]) -> int:
    return len(lines) - (lines[-1:] == (NO_NEWLINE,))


def _newlines(text: str) -> int:
    """How many lines a diff counts, which takes a lone CR for no end of a line."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def fits_before(before: str, hunks: tuple[Hunk, ...]) -> bool:
    """Whether every old line of the diff is at its place in the text before."""
    old = _lines(before.removeprefix(_MARK))
    places = ((_PLACE.match(head), lines) for head, lines, _, _ in hunks)
    return all(place is None or _stands(old, int(place[1]), lines) for place, lines in places)


def text_after(before: str, hunks: tuple[Hunk, ...]) -> str | None:
    """The text after the change, except for CRs, which no diff has; None if the diff lacks some characters.

    It lacks them if all of its lines have lost common indentation.
    """
    plain = before.removeprefix(_MARK)
    old = plain.split("\n")
    is_ended = old[-1] == ""
    if is_ended:
        old.pop()
    result: list[str] = []
    at = 0
    is_untrimmed = False
    for head, was, now, _ in hunks:
        place = _PLACE.match(head)
        was_open, now_open = (side[-1:] == (NO_NEWLINE,) for side in (was, now))
        lines = was[:-1] if was_open else was
        start = 0 if place is None else int(place[1]) - bool(lines)
        if place is None or "\r" in before or start < at or tuple(old[start : start + len(lines)]) != lines:
            return None
        result += [*old[at:start], *(now[:-1] if now_open else now)]
        at = start + len(lines)
        is_untrimmed = is_untrimmed or any(line.strip() for line in lines)
        is_ended = not now_open if at == len(old) else is_ended
    text = "".join(f"{line}\n" for line in (*result, *old[at:]))
    return before[: len(before) - len(plain)] + (text if is_ended else text[:-1]) if is_untrimmed else None


def _lines(text: str) -> list[str]:
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def _stands(lines: list[str], first: int, expected: tuple[str, ...]) -> bool:
    """Whether the diff's lines are at line `first` (counting from 1), except for common indentation."""
    ends_without = expected[-1:] == (NO_NEWLINE,)
    expected_lines = expected[:-1] if ends_without else expected
    start = max(first - 1, 0)
    lines_at_place = lines[
        start : min(start + len(expected_lines), len(lines) - (lines[-1] == ""))
    ]  # there is no line after the last newline
    if len(lines_at_place) != len(expected_lines):
        return False
    last = start + len(expected_lines)
    if expected_lines and ends_without != (last == len(lines) and lines[-1] != ""):
        return False
    cut = {
        len(line) - len(text)
        for line, text in zip(lines_at_place, expected_lines, strict=True)
        if line.strip() and text.strip()
    }
    if len(cut) > 1:
        return False
    return all(
        line.endswith(text) and not line[: len(line) - len(text)].strip()
        for line, text in zip(lines_at_place, expected_lines, strict=True)
        if line.strip() or text.strip()
    )


_LEAST_CONTEXT = 3
"""Unchanged lines after a change in every diff, unless the file ends there."""


def lines_by_rules(fragments: Fragments, edit: FileEdit, make: Callable[[str], apply.Outcome]) -> Fragments | None:
    """All lines after an edit of a file whose lines are all known; None if they are uncertain.

    `make` is the edit by OpenCode's rules. The result is empty if no possible text can have been changed so, because
    then something else has changed the file before.
    """
    texts_after: set[str] = set()
    ends_before: set[bool] = set()
    for text in _texts(fragments):
        outcome = make(text)
        if outcome.text is None and not outcome.refused:
            return None
        if outcome.text is None:
            continue
        if edit.operation is not Operation.EDIT or fits(text, outcome.text, edit.hunks):
            texts_after.add(outcome.text)
            ends_before.add(text.endswith("\n"))
    if not texts_after:
        return None if _may_stand(fragments, edit) else Fragments()
    lines = {apply.as_read(text) for text in texts_after}
    if len(lines) > 1:
        return None
    ends = {text.endswith("\n") for text in texts_after}
    # With mixed line ends, a single match with or without the last newline proves nothing.
    shown_hunks = [_read(hunk) for hunk in edit.hunks if edit.operation is Operation.EDIT]
    is_told = (
        fragments.newline is not None or len(ends_before) > 1 or any(hunk and hunk.reaches_end for hunk in shown_hunks)
    )
    runs = tuple(Run(1, tuple(text.split("\n"))) for text in lines)
    return Fragments(runs, is_all=True, newline=ends.pop() if is_told and len(ends) == 1 else None)


def _may_stand(fragments: Fragments, edit: FileEdit) -> bool:
    """Whether the edit can have matched these lines, whatever their line ends.

    With mixed line ends, a match may be the only one although other lines look the same.
    """
    if edit.operation is Operation.EDIT and edit.hunks:
        return any(fits_before(text, edit.hunks) for text in _texts(fragments))
    old = (
        (edit.old or "").split("\n")
        if edit.operation is Operation.EDIT
        else [line for h in edit.hunks for line in h[1]]
    )
    old_words = ["".join(line.split()) for line in old]
    known = ["".join(line.split()) for line in fragments.runs[0].lines]
    return all("\\" in line or any(line in known_line for known_line in known) for line in old_words)


def _texts(fragments: Fragments) -> Iterator[str]:
    """Every text that the file may have: with and without final newline, CRs and byte order mark."""
    plain = "\n".join(fragments.runs[0].lines)
    for newline in (True, False) if fragments.newline is None else (fragments.newline,):
        text = plain + "\n" * newline
        for ended in dict.fromkeys((text, text.replace("\r\n", "\n").replace("\n", "\r\n"))):
            yield ended
            yield apply.BOM + ended


@dataclass(frozen=True, slots=True)
class _NumberedHunk:
    """One hunk: the numbers of its first lines before and after, its lines, and which sides the mark says to end."""

    old_first: int
    new_first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    old_marked: bool
    new_marked: bool

    @property
    def reaches_end(self) -> bool:
        """Whether the file must end after it."""
        pairs = zip(reversed(self.old), reversed(self.new), strict=False)
        same = next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(self.old), len(self.new)))
        return self.old_marked or self.new_marked or same < _LEAST_CONTEXT


def lines_by_diff(fragments: Fragments, edit: FileEdit) -> Fragments | None:
    """The known lines after an edit, by its recorded diff; None without a readable diff.

    The diff lacks the lines' common indentation: its lines are exact only if one of them is known and complete in it.
    """
    hunks = [hunk for hunk in map(_read, edit.hunks) if hunk is not None]
    if not hunks or len(hunks) != len(edit.hunks):
        return None
    placed = [run for run in fragments.runs if run.first is not None]
    known = {run.first_line + n: line for run in placed for n, line in enumerate(run.lines)}
    cuts = _cuts(known, hunks)
    if cuts is None or len(cuts) > 1:  # what was known is not so any more
        known, cuts = {}, set()
    after: dict[int, str] = {}
    behind, shift = 1, 0
    for hunk in hunks:
        shift = hunk.new_first - hunk.old_first
        after |= {n + shift: line for n, line in known.items() if behind <= n < hunk.old_first}
        if cuts == {0}:
            after |= dict(enumerate(hunk.new, hunk.new_first))
        behind = hunk.old_first + len(hunk.old)
        shift = hunk.new_first + len(hunk.new) - behind
    end, is_end = hunks[-1].new_first + len(hunks[-1].new) - 1, hunks[-1].reaches_end
    if not is_end:
        after |= {n + shift: line for n, line in known.items() if n >= behind}
    is_all = is_end and 0 < end == len(after)
    loose = Fragments(tuple(run for run in fragments.runs if run.first is None)).edited(edit.old or "", edit.new or "")
    text = "\n".join(after[n] for n in sorted(after))
    unplaced = [run for run in loose.runs if run.first is None and "\n".join(run.lines) not in text]
    return Fragments(
        (*_runs(after), *(() if is_all else unplaced)), is_all, not hunks[-1].new_marked if is_end and end else None
    )


def _read(hunk: Hunk) -> _NumberedHunk | None:
    head, old, new, _ = hunk
    place = _PLACE.match(head)
    if place is None:
        return None
    (old, old_marked), (new, new_marked) = _side(old), _side(new)
    # A side without lines names the line before it.
    return _NumberedHunk(int(place[1]) + (not old), int(place[2]) + (not new), old, new, old_marked, new_marked)


def _side(lines: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The lines of one side, and whether they end the file without a newline."""
    is_marked = lines[-1:] == (NO_NEWLINE,)
    return (lines[:-1] if is_marked else lines), is_marked


def _cuts(known: dict[int, str], hunks: list[_NumberedHunk]) -> set[int] | None:
    """The indentation that the diff has lost, by the known lines in it; None if it has other lines."""
    cuts: set[int] = set()
    for hunk in hunks:
        for number, text in enumerate(hunk.old, hunk.old_first):
            line = known.get(number, text).rstrip("\r")
            if number in known and (line.strip() or text.strip()):
                cut = len(line) - len(text)
                if not line.endswith(text) or line[:cut].strip():
                    return None
                cuts.add(cut)
    return cuts


def _runs(known: dict[int, str]) -> list[Run]:
    runs: list[Run] = []
    for number, line in sorted(known.items()):
        if runs and runs[-1].end == number:
            runs[-1] = Run(runs[-1].first, (*runs[-1].lines, line))
        else:
            runs.append(Run(number, (line,)))
    return runs
