"""How OpenCode's tools turn texts into texts and what they print, written a second time and on its own.

Formats sections 3 and 9 say what differs between 1.1.65 (`old`) and 1.18.33: byte order marks, line ends, an empty old
text, what a read shows, what stands beside an edit. Nothing here is taken from daemon/, so that agreement means something.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

BOM = "\ufeff"
OLD, NEW = "1.1.65", "1.18.33"


class ToolError(Exception):
    """The tool call fails with this message and changes nothing."""


def text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def is_binary(raw: bytes) -> bool:
    return b"\0" in raw


def written(raw: bytes | None, content: str, version: str) -> bytes:
    """What `write` leaves: since 1.18 a byte order mark stays although the new content has none."""
    keeps = version == NEW and raw is not None and raw.startswith(BOM.encode()) and not content.startswith(BOM)
    return ((BOM if keeps else "") + content).encode()


def edited(raw: bytes | None, old: str, new: str, everywhere: bool, version: str) -> tuple[str, str, bytes]:
    """(recorded text before, recorded text after, bytes on the disk)."""
    if old == new:
        raise ToolError("No changes to apply: oldString and newString are identical.")
    if old == "":
        if raw is not None and version == NEW:
            raise ToolError("oldString cannot be empty when editing an existing file.")
        return "", new, new.encode()
    if raw is None:
        raise ToolError("File not found")
    whole = text_of(raw)
    text = whole.removeprefix(BOM)
    if version == NEW:
        end = "\r\n" if "\r\n" in text else "\n"
        old, new = (part.replace("\r\n", "\n").replace("\n", end) for part in (old, new))
    after = _replaced(text, old, new, everywhere)
    mark = BOM if version == NEW and whole.startswith(BOM) else ""
    return text, after, (mark + after.removeprefix(BOM) if mark else after).encode()


def _replaced(text: str, old: str, new: str, everywhere: bool) -> str:
    found = False
    for search in (*_exact(text, old), *_line_trimmed(text, old)):
        at = text.find(search)
        found = True
        if everywhere:
            return _replace_all(text, search, new)
        if text.rfind(search) == at:
            return text[:at] + new + text[at + len(search) :]
    raise ToolError("Found multiple matches for oldString." if found else "Could not find oldString in the file.")


def _exact(text: str, old: str) -> Iterator[str]:
    if old in text:
        yield old


def _line_trimmed(text: str, old: str) -> Iterator[str]:
    lines, wanted = text.split("\n"), old.split("\n")
    if wanted[-1] == "":
        wanted.pop()
    for at in range(len(lines) - len(wanted) + 1):
        block = lines[at : at + len(wanted)]
        if wanted and [line.strip() for line in block] == [line.strip() for line in wanted] and "\n".join(block):
            yield "\n".join(block)


def _replace_all(text: str, old: str, new: str) -> str:
    """JavaScript's replaceAll: each place by itself, with what ``$`` stands for there."""
    out, done = "", 0
    at = text.find(old)
    while at >= 0:
        out += text[done:at] + _expanded(new, old, text[:at], text[at + len(old) :])
        done = at + len(old)
        at = text.find(old, done)
    return out + text[done:]


def _expanded(new: str, match: str, before: str, behind: str) -> str:
    out, at = "", 0
    while at < len(new):
        special = {"$$": "$", "$&": match, "$`": before, "$'": behind}.get(new[at : at + 2])
        out += new[at] if special is None else special
        at += 1 if special is None else 2
    return out


def patched(raw: bytes | None, line: int, new: str) -> tuple[list[str], bytes]:
    """One hunk that puts `new` in the place of a line: (its lines with what stands around them, bytes after).

    Only for texts that every version reads alike; a line that occurs twice is told apart by its neighbours.
    """
    if raw is None:
        raise ToolError("apply_patch verification failed: Failed to read file to update")
    text = text_of(raw)
    if is_binary(raw) or "\r" in text or BOM in text or "\ufffd" in text or not text.endswith("\n"):
        raise ToolError("apply_patch verification failed: Failed to find expected lines")
    lines = text.split("\n")[:-1]
    if not text.strip() or "" in (lines[-1], new):
        raise ToolError("apply_patch verification failed: Failed to find expected lines")
    at = line % len(lines)
    first, last = max(at - 1, 0), min(at + 2, len(lines))
    old = lines[first:last]
    place = next(n for n in range(len(lines)) if lines[n : n + len(old)] == old)
    hunk = [f" {text}" for text in lines[first:at]] + [f"-{lines[at]}", *(f"+{text}" for text in new.split("\n"))]
    hunk += [f" {text}" for text in lines[at + 1 : last]]
    after = [*lines]
    after[place + at - first] = new
    if after[-1] == "":
        raise ToolError("apply_patch verification failed")
    return ["@@", *hunk], ("\n".join(after) + "\n").encode()


def read(path: str, raw: bytes, version: str, offset: int | None, limit: int) -> tuple[str, dict[str, object]]:
    """(output, metadata) of the read tool."""
    if is_binary(raw):
        raise ToolError(f"Cannot read binary file: {path}")
    text = text_of(raw).removeprefix(BOM)
    if version == NEW:
        lines = text.replace("\r\n", "\n").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
    else:
        lines = text.split("\n")
    first = (offset or 1) - 1
    shown = lines[first : first + limit]
    if offset and not shown:
        raise ToolError(f"Offset {offset} is out of range for this file ({len(lines)} lines)")
    body = "\n".join(f"{number}: {line}" for number, line in enumerate(shown, first + 1))
    last = first + len(shown)
    more = last < len(lines)
    end = f"(End of file - total {len(lines)} lines)"
    if more and version == NEW:
        end = f"(Showing lines {first + 1}-{last} of {len(lines)}. Use offset={last + 1} to continue.)"
    elif more:
        end = f"(File has more lines. Use 'offset' parameter to read beyond line {last})"
    gap = "\n" if version == NEW else ""
    output = f"<path>{path}</path>\n<type>file</type>\n<content>{gap}{body}\n\n{end}\n</content>"
    metadata: dict[str, object] = {"preview": "\n".join(shown[:20]), "truncated": more, "loaded": []}
    if version == NEW:
        display = {"type": "file", "path": path, "text": "\n".join(shown), "lineStart": first + 1, "lineEnd": last}
        metadata["display"] = display | {"totalLines": len(lines), "truncated": more}
    return output, metadata


def diff(name: str, before: str, after: str, context: int | None = None) -> str:
    """A patch as npm's `diff` prints it; all lines as context where `context` is None."""
    ends = [text.split("\n") for text in (before, after)]
    olds, news = ([line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else []) for lines in ends)
    width = len(olds) + len(news) + 1 if context is None else context
    body = list(difflib.unified_diff(olds, news, n=width))[2:]
    out = f"Index: {name}\n{'=' * 67}\n--- {name}\t\n+++ {name}\t\n"
    for found in body:
        line = _explicit(found) if found.startswith("@@") else found
        out += line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return out


def _explicit(header: str) -> str:
    """``@@ -3 +3 @@`` with the counts that npm's diff never leaves out."""
    marks = header.split()
    return " ".join(["@@", *(mark if "," in mark else f"{mark},1" for mark in marks[1:3]), "@@\n"])


def trimmed(patch: str) -> str:
    """OpenCode's trimDiff: the indentation that all lines share is gone, so that the patch no longer applies."""
    lines = patch.replace("\r\n", "\n").split("\n")
    content = [n for n, line in enumerate(lines) if line[:1] in ("+", "-", " ") and line[:3] not in ("---", "+++")]
    bodies = [lines[n][1:] for n in content if lines[n][1:].strip()]
    indent = min((len(body) - len(body.lstrip()) for body in bodies), default=0)
    for n in content:
        lines[n] = lines[n][0] + lines[n][1 + indent :]
    return "\n".join(lines)


def relative(path: str, base: str) -> str:
    return os.path.relpath(path, base)
