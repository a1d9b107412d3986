"""OpenCode's tolerant searches for the old text of an edit that does not occur exactly once.

OpenCode then tries a series of ever looser searches, each of which yields places in the file; it takes the first place
whose text occurs once (or at all, if every place is to be replaced). `candidates` yields these places in OpenCode's
order, each as its text; `apply` chooses among them. Read in, and checked against, the versions from 0.5.29 to 1.18.33
(opencode-formats.md, Tools 5).

Two of its nine searches are left out, because an earlier one has already yielded their places: another indentation is
also another run of blanks, and the exact text is searched first. A trimmed line has no blanks at its ends. Our
implementation differs from OpenCode's: one search in the joined text finds whole runs of lines, so that a file of 10 MB
takes about a second. A search that would take much longer raises TooCostlyError.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from daemon.transcript.javascript import BLANK_RUN, BLANKS, Costs, TooCostlyError, collapsed, distance, length

_ALIKE_STRICT = 0.65
_ALIKE_OF_SEVERAL = 0.3
_LONGEST_OLD = 20_000  # lines; JavaScript itself gives up on some searches for more
_ESCAPED = re.compile(r"\\([ntr'\"`\\\n$])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NEVER = "\udfff"  # occurs in no file, because half a character cannot be written


class Lines:
    """A file's text as lines, in the forms that the ways of matching compare."""

    def __init__(self, text: str, costs: Costs) -> None:
        self.text = text
        self.costs = costs
        self.rows = text.split("\n")

    @cached_property
    def trimmed(self) -> list[str]:
        """Each line without the blanks at its ends."""
        return [row.strip(BLANKS) for row in self.rows]

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins in the text."""
        return [0, *accumulate(len(row) + 1 for row in self.rows)][:-1]

    def block(self, start: int, count: int) -> str:
        """The text of `count` lines."""
        self.costs.spend(1 + count // 16)
        return "\n".join(self.rows[start : start + count])

    def line_at(self, offset: int) -> int:
        """The line of the character at `offset`."""
        return bisect_left(self.starts, offset + 1) - 1


def candidates(text: str, old: str, strict: bool, costs: Costs) -> Iterator[tuple[str, str]]:
    """(name of the search, text of a place that it finds) in OpenCode's order, without the exact text itself.

    `strict`: the rules since 1.17, which require more similarity in the middle of a block. `old` is not empty.
    """
    block_lines = old.split("\n")
    if len(block_lines) > _LONGEST_OLD:
        raise TooCostlyError
    file = Lines(text, costs)
    ways: tuple[tuple[str, Callable[[], Iterable[str]]], ...] = (
        ("lines without their outer blanks", lambda: _trimmed_lines(file, block_lines)),
        ("first and last line of a block", lambda: _anchored(file, block_lines, strict)),
        ("any run of blanks alike", lambda: _any_blanks(file, old, block_lines)),
        ("escapes resolved", lambda: _escapes_resolved(file, old)),
        ("old text without its outer blanks", lambda: _outer_blanks_dropped(file, old, block_lines)),
        ("half of a block's lines", lambda: _half_alike(file, block_lines)),
    )
    for name, way in ways:
        for place in way():
            yield name, place


def is_oversized(place: str, old: str) -> bool:
    """Whether OpenCode since 1.17 refuses the edit because `place` is so much larger than `old`."""
    lines = old.count("\n") + 1
    if place.count("\n") + 1 >= max(lines + 3, 2 * lines):
        return True
    size = length(old.strip(BLANKS))
    return lines > 1 and length(place.strip(BLANKS)) > max(size + 500, 4 * size)


def _without_end(block_lines: Sequence[str]) -> Sequence[str]:
    return block_lines[:-1] if block_lines[-1] == "" else block_lines


def _runs(keys: Sequence[str], block_lines: Sequence[str]) -> Iterator[int]:
    """Each place of `block_lines` in `keys`; an entry contains no newline."""
    hay, needle = ("\n" + "\n".join(part) + "\n" for part in (keys, block_lines))
    at = hay.find(needle)
    if at < 0:
        return
    starts = [0, *accumulate(len(key) + 1 for key in keys)]
    while at >= 0:
        yield bisect_left(starts, at)
        at = hay.find(needle, at + 1)


def _trimmed_lines(file: Lines, block_lines: Sequence[str]) -> Iterator[str]:
    block_lines = _without_end(block_lines)
    for start in _runs(file.trimmed, [row.strip(BLANKS) for row in block_lines]):
        yield file.block(start, len(block_lines))


def _blocks(file: Lines, first: str, last: str) -> Iterator[tuple[int, int]]:
    """(first line, how many) from each line that is `first` to the next `last` that is not on the line behind it."""
    ends = [number for number, row in enumerate(file.trimmed) if row == last]
    for start, row in enumerate(file.trimmed):
        if row != first:
            continue
        at = bisect_left(ends, start + 2)
        if at == len(ends):
            return
        yield start, ends[at] - start + 1


def _anchored(file: Lines, block_lines: Sequence[str], strict: bool) -> Iterator[str]:
    if len(block_lines) < 3:
        return
    inner = [row.strip(BLANKS) for row in _without_end(block_lines)]
    size = len(inner)
    blocks = list(_blocks(file, inner[0], inner[-1]))
    if strict:
        blocks = [block for block in blocks if abs(block[1] - size) <= max(1, size // 4)]
    if not blocks:
        return
    if len(blocks) == 1:
        chosen = blocks[0]
        is_alike = not strict or _reaches(file, inner, chosen)
    else:
        scores = [_likeness(file, inner, block) for block in blocks]
        best = max(scores)
        chosen = blocks[scores.index(best)]
        is_alike = best >= (_ALIKE_STRICT if strict else _ALIKE_OF_SEVERAL)
    if is_alike:
        yield file.block(*chosen)


def _shares(file: Lines, inner: Sequence[str], block: tuple[int, int]) -> Iterator[float]:
    """How alike the lines between first and last are, pair by pair; two empty lines are passed over."""
    start, count = block
    for number in range(1, min(len(inner), count) - 1):
        recorded_line, inner_line = file.trimmed[start + number], inner[number]
        longer = max(length(recorded_line), length(inner_line))
        file.costs.spend(1)
        if longer:
            yield 1 - distance(recorded_line, inner_line, file.costs) / longer


def _reaches(file: Lines, inner: Sequence[str], block: tuple[int, int]) -> bool:
    """Whether the only block is alike enough; summed in OpenCode's order, so that the rounding is the same."""
    pairs = min(len(inner), block[1]) - 2
    if pairs <= 0:
        return True
    total = 0.0
    for share in _shares(file, inner, block):
        total += share / pairs
        if total >= _ALIKE_STRICT:
            return True
    return False


def _likeness(file: Lines, inner: Sequence[str], block: tuple[int, int]) -> float:
    pairs = min(len(inner), block[1]) - 2
    if pairs <= 0:
        return 1.0
    total = 0.0
    for share in _shares(file, inner, block):
        total += share
    return total / pairs


def _any_blanks(file: Lines, old: str, block_lines: Sequence[str]) -> Iterator[str]:
    sought = collapsed(old)
    lines = [collapsed(row) for row in file.rows]
    words: re.Pattern[str] | None = None
    for row, line in zip(file.rows, lines, strict=True):
        if line == sought:
            yield row
        elif sought in line:
            words = words or re.compile(BLANK_RUN.join(map(re.escape, sought.split(" "))))
            yield words.search(row)[0]  # type: ignore[index]  # the collapsed line holds the words, so does the line
    if len(block_lines) < 2:
        return
    # All lines as one, a space behind each that is not empty: a block of lines is a slice of it.
    joined = "".join(line + " " for line in lines if line)
    ends = [0, *accumulate(len(line) + 1 if line else 0 for line in lines)]
    for start in range(len(lines) - len(block_lines) + 1):
        size = max(0, ends[start + len(block_lines)] - ends[start] - 1)
        if size == len(sought) and joined.startswith(sought, ends[start]):
            yield file.block(start, len(block_lines))


def _resolved(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def _escapes_resolved(file: Lines, old: str) -> Iterator[str]:
    if "\\" not in old and "\\" not in file.text:
        return
    sought = _resolved(old)
    if sought in file.text:
        yield sought
    block_lines = sought.split("\n")
    # A line whose own escapes hold a newline would make the block longer than what is sought. A backslash at the end
    # of a line escapes the newline behind it, but for the block's last line, which has none.
    inner = [_resolved(row + "\n")[:-1] for row in file.rows]
    inner = [_NEVER if "\n" in row else row for row in inner]
    last = len(block_lines) - 1
    for start in _runs(inner, block_lines[:-1]) if last else range(len(inner)):
        if start + last < len(file.rows) and _resolved(file.rows[start + last]) == block_lines[-1]:
            yield file.block(start, len(block_lines))


def _outer_blanks_dropped(file: Lines, old: str, block_lines: Sequence[str]) -> Iterator[str]:
    sought = old.strip(BLANKS)
    if sought == old:
        return
    if sought in file.text:
        yield sought
    for start in _padded(file, sought, len(block_lines)) if sought else _empty_runs(file, len(block_lines)):
        yield file.block(start, len(block_lines))


def _empty_runs(file: Lines, count: int) -> Iterator[int]:
    """Where `count` lines without anything but blanks begin."""
    return _runs(file.trimmed, [""] * count)


def _padded(file: Lines, sought: str, count: int) -> list[int]:
    """Where `count` lines begin that hold nothing but `sought` and blanks."""
    starts: set[int] = set()
    at = file.text.find(sought)
    while at >= 0:
        first, last = file.line_at(at), file.line_at(at + len(sought) - 1)
        head = file.text[file.starts[first] : at]
        tail = file.text[at + len(sought) : file.starts[last] + len(file.rows[last])]
        if not (head + tail).strip(BLANKS):
            starts.update(_spans(file, first, last, count))
        at = file.text.find(sought, at + 1)
    return sorted(starts)


def _spans(file: Lines, first: int, last: int, count: int) -> Iterator[int]:
    """Where `count` lines begin that hold those from `first` to `last`, and else only empty ones."""
    spare = count - (last - first + 1)
    if spare < 0:
        return
    above = below = 0
    while above < spare and above < first and not file.trimmed[first - above - 1]:
        above += 1
    while below < spare and last + below + 1 < len(file.rows) and not file.trimmed[last + below + 1]:
        below += 1
    for up in range(above + 1):
        if spare - up <= below:
            yield first - up


def _half_alike(file: Lines, block_lines: Sequence[str]) -> Iterator[str]:
    if len(block_lines) < 3:
        return
    inner = [row.strip(BLANKS) for row in _without_end(block_lines)]
    for start, count in _blocks(file, inner[0], inner[-1]):
        if count != len(inner):
            continue
        file.costs.spend(1 + count // 8)
        pairs = [
            pair for pair in zip(file.trimmed[start + 1 : start + count - 1], inner[1:-1], strict=True) if any(pair)
        ]
        if not pairs or sum(first == second for first, second in pairs) / len(pairs) >= 0.5:
            yield file.block(start, count)
