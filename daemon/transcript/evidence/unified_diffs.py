"""A unified diff that shows a whole file: its text before and after, exactly, line ends and missing final newline too.

User messages of 1.15 and later record such diffs (opencode-formats.md, Records): the bundles of 1.15.13 and 1.18.33
make them with an unlimited number of context lines, in one hunk. Any other diff may end at three or four context lines;
it counts only if it shows by itself that it goes on to the end of the file. A diff that leaves any doubt is None.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.ASCII)
_REFUSED = re.compile(r"(?:old mode|new mode|new file mode|deleted file mode|index) .*1[26]0000$")  # link, submodule
_UNMARKED = ("Binary files ", "GIT binary patch", "@@@")
_USUAL = 3  # context lines of git; jsdiff, which OpenCode's tools use, shows 4
_NO_NEWLINE = "\\"


@dataclass(frozen=True, slots=True)
class Sides:
    """A file's text before and after; None where the diff says that there was no file."""

    before: str | None
    after: str | None


def full_diff(text: str, *, complete: bool = False) -> Sides | None:
    """Both sides of a diff of one file; None where it does not prove them.

    `complete`: whoever made it is known to show every line. Otherwise the last context lines must be fewer than git
    ever cuts to, or than this diff shows elsewhere, or carry the mark of a missing final newline.
    """
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    head = lines[:at]
    if any(line.startswith(_UNMARKED) or _REFUSED.match(line) for line in head):
        return None
    if sum(line.startswith("--- ") for line in head) > 1 or sum(line.startswith("diff ") for line in head) > 1:
        return None
    if at == len(lines):
        return _without_hunk(head)
    hunk = _hunk(lines[at], lines[at + 1 :]) if text.endswith("\n") else None  # else its last line may be cut
    if hunk is None or not (complete or _reaches_the_end(hunk)):
        return None
    before = None if _is_missing(head, "--- /dev/null", "new file mode") else _side(hunk, "-")
    after = None if _is_missing(head, "+++ /dev/null", "deleted file mode") else _side(hunk, "+")
    return Sides(before, after)


def _without_hunk(head: list[str]) -> Sides | None:
    """An empty file that was made or removed, as git tells it; any other diff without lines tells no content."""
    if any(line.startswith(("rename ", "copy ", "similarity ")) for line in head):
        return None
    if any(line.startswith("new file mode") for line in head):
        return Sides(None, "")
    return Sides("", None) if any(line.startswith("deleted file mode") for line in head) else None


def _is_missing(head: list[str], *marks: str) -> bool:
    return any(line.startswith(marks) for line in head)


def _hunk(header: str, body: list[str]) -> list[tuple[str, str]] | None:
    """The lines of the only hunk as (sign, text with its newline); None if it is not the only one, or not whole."""
    found = _HUNK.match(header)
    if found is None:
        return None
    first_old, first_new = int(found[1]), int(found[3])
    left = {"-": _count(found[2]), "+": _count(found[4])}
    if first_old > 1 or first_new > 1:
        return None
    hunk: list[tuple[str, str]] = []
    for number, line in enumerate(body):
        sign, words = line[:1], line[1:]
        if sign == _NO_NEWLINE and hunk:
            hunk[-1] = (hunk[-1][0], hunk[-1][1].removesuffix("\n"))
        elif sign in (" ", "-", "+") and any(left.values()):
            hunk.append((sign, words + "\n"))
            for side in left:
                left[side] -= sign in (" ", side)
        else:
            is_end = not any(left.values()) and not "".join(body[number:])
            return hunk if is_end and _is_sound(hunk) else None
    return hunk if not any(left.values()) and _is_sound(hunk) else None


def _is_sound(hunk: list[tuple[str, str]]) -> bool:
    """Whether only the last line of a side lacks its newline."""
    sides = ([words for sign, words in hunk if sign in (" ", side)] for side in "-+")
    return all(words.endswith("\n") for side in sides for words in side[:-1])


def _count(number: str | None) -> int:
    return 1 if number is None else int(number)


def _side(hunk: list[tuple[str, str]], side: str) -> str:
    return "".join(words for sign, words in hunk if sign in (" ", side))


def _reaches_the_end(hunk: list[tuple[str, str]]) -> bool:
    """Whether the hunk must have shown the file's last line, whatever number of context lines it was made with.

    With n of them, at most n lines stand before the first change, 2 n between two, and n behind the last.
    """
    changes = [number for number, (sign, _) in enumerate(hunk) if sign != " "]
    if not changes:
        return False
    behind = len(hunk) - 1 - changes[-1]
    between = [later - earlier - 1 for earlier, later in itertools.pairwise(changes)]
    surely = max([_USUAL, changes[0], *((gap + 1) // 2 for gap in between)])
    # The mark belongs to both sides only on a context line; on a changed line nothing may follow on its side.
    return behind < surely or not hunk[-1][1].endswith("\n")
