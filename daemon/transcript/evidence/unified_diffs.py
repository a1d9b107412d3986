"""Unified diffs in records: those that show a whole file, and those that show the lines around a change.

User messages of 1.15 and later record diffs with every line (opencode-formats.md, Records): the bundles of 1.15.13 and
1.18.33 make them with an unlimited number of context lines, in one hunk. `full_diff` reads the file's text before and
after out of them, exactly, line ends and missing final newline too. Any other diff may end at three or four context
lines; it counts only if it shows by itself that it goes on to the end of the file. What leaves any doubt is None.

The result of an edit since 1.15 shows some lines, without their common indentation and CRs. That is no
patch: `hunks` tells at which line the change was, and what stood there.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from daemon import records
from daemon.transcript.evidence.call_results import files
from daemon.transcript.patch_text import Hunk
from daemon.transcript.tool_calls import Call, valid_text

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.ASCII)
_REFUSED = re.compile(r"(?:old mode|new mode|new file mode|deleted file mode|index) .*1[26]0000$")  # link, submodule
_UNMARKED = ("Binary files ", "GIT binary patch", "@@@")
_USUAL = 3  # context lines of git; jsdiff, which OpenCode's tools use, shows 4
_NO_NEWLINE = "\\"
NO_NEWLINE = "\\ No newline at end of file"
"""Stands behind the last line of a side that ends without a newline."""
_LONGEST = 256 * 1024  # bytes
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*", re.ASCII)


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
    match = _HUNK.match(header)
    if match is None:
        return None
    first_old, first_new = int(match[1]), int(match[3])
    left = {"-": _count(match[2]), "+": _count(match[4])}
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


def hunks_of_edit(made: Call, path: str) -> tuple[Hunk, ...]:
    """The hunks that the result of an edit of `path` shows; none where it shows none, or not whole ones."""
    texts = [records.table(made.metadata.get("filediff")).get("patch"), made.metadata.get("diff")]
    entries = files(made)
    if len(entries) == 1 and entries[0]["path"] == path:
        texts.append(entries[0].get("patch"))
    return next((hunks(text) for text in texts if isinstance(text, str) and text), ())


def hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff of one file; none if any of them is not whole, or the diff is very long."""
    if len(diff) > _LONGEST or len(diff.encode("utf-8", "surrogatepass")) > _LONGEST:
        return ()
    lines = valid_text(diff).split("\n")
    at = next((number for number, line in enumerate(lines) if _HEADER.fullmatch(line)), len(lines))
    whole: list[Hunk] = []
    while at < len(lines):
        header = _HEADER.fullmatch(lines[at])
        if header is None:
            return tuple(whole) if not "".join(lines[at:]) else ()
        hunk, at = _hunk_around(header, lines, at + 1)
        if hunk is None:
            return ()
        whole.append(hunk)
    return tuple(whole)


def _hunk_around(header: re.Match[str], lines: list[str], at: int) -> tuple[Hunk | None, int]:
    before, after = (int(header[number] or 1) if header[number] != "0" else 0 for number in (2, 4))
    old: list[str] = []
    new: list[str] = []
    last = ""
    while at < len(lines):
        sign, text = lines[at][:1], lines[at][1:]
        if sign == "\\" and last:
            old += [NO_NEWLINE] if last in " -" else []
            new += [NO_NEWLINE] if last in " +" else []
            before, after = before + (last in " -"), after + (last in " +")
            last = ""
        elif sign and sign in " -+" and (len(old) < before or len(new) < after):
            old += [text] if sign in " -" else []
            new += [text] if sign in " +" else []
            last = sign
        else:
            break
        at += 1
    if len(old) != before or len(new) != after:
        return None, at
    place = f"@@ -{header[1]},{header[2] or 1} +{header[3]},{header[4] or 1} @@"
    return (place, tuple(old), tuple(new), False), at
