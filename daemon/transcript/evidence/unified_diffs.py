"""Reads unified diffs in records: those of a whole file, and those of the lines around a change.

User messages of 1.15 and later record diffs with every line (opencode-formats.md, Records): the bundles of 1.15.13 and
1.18.33 make them with an unlimited number of context lines, in one hunk. `full_diff` reads the exact text of the file
before and after from them, with line ends and a missing final newline. Any other diff may end at three or four context
lines; it counts only if it proves that it reaches the end of the file. A doubtful diff gives None.

The result of an edit since 1.15 has some lines, without their common indentation and CRs. That is not a patch: `hunks`
reads the line number of the change and the old lines.

A revert records a `git diff` over several files (`revert.diff`), from the snapshot tree before it to the files after
it: `changes` gives for each path its blob before and after, and the changed lines. White space at the end of the whole
text is missing there. Check a result of `patched` against the blob ids.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from daemon import records
from daemon.transcript.evidence.call_results import files
from daemon.transcript.patch_text import Hunk
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import Call, valid_text

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.ASCII)
_REFUSED = re.compile(r"(?:old mode|new mode|new file mode|deleted file mode|index) .*1[26]0000$")  # link, submodule
_UNMARKED = ("Binary files ", "GIT binary patch", "@@@")
_USUAL = 3  # context lines of git; jsdiff, which OpenCode's tools use, shows 4
_NO_NEWLINE = "\\"
NO_NEWLINE = "\\ No newline at end of file"
"""Follows the last line of a side that ends without a newline."""
_LONGEST = 256 * 1024  # bytes
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sides:
    """A file's text before and after; None if the diff says that there was no file."""

    before: str | None
    after: str | None


def full_diff(text: str, *, complete: bool = False) -> Sides | None:
    """Both sides of a diff of one file; None if it does not prove them.

    `complete`: its writer always includes every line. Otherwise the last context lines must be fewer than git's usual
    number, or than elsewhere in this diff, or have the mark of a missing final newline.
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
    """An empty file that was created or removed, in git's form; any other diff without lines has no content."""
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
    remaining = {"-": _count(match[2]), "+": _count(match[4])}
    if first_old > 1 or first_new > 1:
        return None
    hunk: list[tuple[str, str]] = []
    for number, line in enumerate(body):
        sign, words = line[:1], line[1:]
        if sign == _NO_NEWLINE and hunk:
            hunk[-1] = (hunk[-1][0], hunk[-1][1].removesuffix("\n"))
        elif sign in (" ", "-", "+") and any(remaining.values()):
            hunk.append((sign, words + "\n"))
            for side in remaining:
                remaining[side] -= sign in (" ", side)
        else:
            is_end = not any(remaining.values()) and not "".join(body[number:])
            return hunk if is_end and _is_sound(hunk) else None
    return hunk if not any(remaining.values()) and _is_sound(hunk) else None


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


def hunks_of_edit(tool_call: Call, path: str) -> tuple[Hunk, ...]:
    """The hunks that the result of an edit of `path` shows; none where it shows none, or not whole ones."""
    texts = [records.table(tool_call.metadata.get("filediff")).get("patch"), tool_call.metadata.get("diff")]
    entries = files(tool_call)
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


_INDEX = re.compile(r"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})(?: \d+)?", re.ASCII)
_GIT_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
_NO_NEWLINE_BYTES = b"\\"


@dataclass(frozen=True, slots=True)
class Change:
    """One path of a diff. `source` is the path it had before; `blob` begins the git id of its content afterwards.

    `blob` is empty where the content stayed as it was. `is_gone`: there is no file any more. `hunks` are the lines
    from the first ``@@`` on.
    """

    source: str
    blob: str = ""
    is_gone: bool = False
    hunks: tuple[str, ...] = ()


def changes(diff: str) -> dict[str, Change] | None:
    """The change of each path; None if the diff cannot be read."""
    changes_by_path: dict[str, Change] = {}
    sections = re.split(r"^diff --git ", diff.strip("\n"), flags=re.MULTILINE)
    if sections[0].strip():
        return None
    for section in sections[1:]:
        lines = section.split("\n")
        at = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
        paths = _paths(lines[0], lines[1:at])
        if paths is None:
            return None
        old, new = paths
        index = next(filter(None, map(_INDEX.fullmatch, lines[1:at])), None)
        is_gone = any(line.startswith("deleted file mode ") for line in lines[1:at])
        changes_by_path[new] = Change(old, index[2] if index and not is_gone else "", is_gone, tuple(lines[at:]))
        if any(line.startswith("rename from ") for line in lines[1:at]):
            changes_by_path[old] = replace(changes_by_path.get(old, Change(old)), is_gone=True)
    return changes_by_path


_NAMES = (("rename from ", "", 0), ("rename to ", "", 1), ("--- ", "a/", 0), ("+++ ", "b/", 1))
"""Lines that name one side: their beginning, the prefix of the path, and the side."""


def _paths(title: str, head: list[str]) -> tuple[str, str] | None:
    """The path before and after, by the lines that name it alone, else by the title, which names both."""
    named = ["", ""]
    for line in head:
        for mark, prefix, side in _NAMES:
            if line.startswith(mark):
                name = unquoted(line[len(mark) :].removesuffix("\t"))
                if name == "/dev/null":
                    continue
                if not name.startswith(prefix):
                    return None
                named[side] = name[len(prefix) :]
    if not any(named):
        half = (len(title) - 1) // 2
        old, new = unquoted(title[:half]), unquoted(title[half + 1 :])
        named = [old[2:], new[2:]] if old[:2] == "a/" and new[:2] == "b/" and old[2:] == new[2:] else named
    old, new = named[0] or named[1], named[1] or named[0]
    return (old, new) if old else None


def patched(before: bytes, hunks: tuple[str, ...]) -> bytes | None:
    """`before` with the hunks applied at their lines; None if they do not fit."""
    old = re.findall(rb"[^\n]*\n|[^\n]+", before)
    result: list[bytes] = []
    at = 0
    lines = [line.encode("utf-8", "surrogatepass") for line in hunks]
    for first, body in _hunks(lines):
        if not at <= first <= len(old):
            return None
        result += old[at:first]
        at = first
        for sign, words in body:
            if sign != b"+":
                if at >= len(old) or old[at] != words:
                    return None
                at += 1
            if sign != b"-":
                result.append(words)
    return b"".join([*result, *old[at:]])


def _hunks(lines: list[bytes]) -> Iterator[tuple[int, list[tuple[bytes, bytes]]]]:
    """Each hunk: the number of old lines before it, and its lines as (sign, text with its newline)."""
    first = -1
    body: list[tuple[bytes, bytes]] = []
    for line in lines:
        header = _GIT_HUNK.match(line)
        if header is not None:
            if first >= 0:
                yield first, body
            first, body = int(header[1]) - (header[2] != b"0"), []
        elif line[:1] == _NO_NEWLINE_BYTES and body:
            body[-1] = body[-1][0], body[-1][1].removesuffix(b"\n")
        elif first >= 0:
            body.append((line[:1], line[1:] + b"\n"))
    if first >= 0:
        yield first, body
