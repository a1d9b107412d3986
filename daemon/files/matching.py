"""OpenCode's own way from a file's text and an edit to the text after it, where it is certain.

Text in, text out; None means: not certain, so nobody may call the result proven. The rules changed between the versions
that were observed (formats section 9: 4, 6, 7, 8); for a version in between, or one that is not known, a result counts
only when the old and the new rules agree on it. A byte order mark is the character U+FEFF at the beginning of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from daemon.transcript.patch_text import Hunk
from daemon.transcript.reads import release

BOM = "\ufeff"
_LAST_OLD = (1, 1, 65)
_FIRST_NEW = (1, 18)
_LINE_END = re.compile(r"\r\n|\r|\n|\u2028|\u2029")
_SPECIAL = re.compile(r"\$[$&`']")


def shown(text: str) -> str:
    """`text` as a read since 1.2 shows it: no byte order mark, no final newline, every line end a newline."""
    lines = _LINE_END.split(text.removeprefix(BOM))
    return "\n".join(lines[:-1] if lines[-1] == "" else lines)


def written(content: str, base: str | None, version: str) -> str | None:
    """The file after the write tool wrote `content` over `base`; None as base means that no text was known.

    Since 1.18 a byte order mark survives a write that has none. Where nothing is known of the old text it is taken to
    have had none, which the evidence says (`history` does).
    """
    if base is None or not base.startswith(BOM) or content.startswith(BOM):
        return content
    return _agreed(version, lambda: content, lambda: BOM + content)


def edited(base: str, old: str, new: str, replace_all: bool, version: str) -> str | None:
    """The file after one edit of `base`; None where `old` does not occur as it stands, or not exactly once.

    An empty `old` stands for the whole file. The tolerant matchers that OpenCode tries next have their place here.
    """
    if old == "":
        return written(new, base, version)
    return _agreed(
        version,
        lambda: _replaced(base.removeprefix(BOM), old, new, replace_all),
        lambda: _replaced_in_kind(base, old, new, replace_all),
    )


def patched(base: str, hunks: Sequence[Hunk], version: str) -> str | None:
    """The file after a patch's hunks; None where one's lines do not stand there as they are, or versions differ."""
    text = base.removeprefix(BOM)
    lines = text.split("\n")
    ends_with_newline = lines[-1] == ""
    if ends_with_newline:
        lines.pop()
    places = _places(lines, hunks)
    if places is None:
        return None
    for start, length, new in reversed(places):
        lines[start : start + length] = new
    if lines and lines[-1] == "":
        return None  # whether a blank last line gets a newline behind it has changed between versions
    after = "\n".join([*lines, ""])
    if base.startswith(BOM):
        return _agreed(version, lambda: None, lambda: BOM + after)
    return after


def replace_all(text: str, old: str, new: str) -> str:
    """JavaScript's ``text.replaceAll(old, new)``: ``$$``, ``$&``, ``$` `` and ``$'`` in `new` are interpreted."""
    if not _SPECIAL.search(new):
        return text.replace(old, new)
    pieces = []
    done = 0
    while (at := text.find(old, done)) >= 0:
        special = {"$$": "$", "$&": old, "$`": text[:at], "$'": text[at + len(old) :]}
        pieces += [text[done:at], _SPECIAL.sub(lambda found, table=special: table[found[0]], new)]  # type: ignore[misc]
        done = at + len(old)
    return "".join([*pieces, text[done:]])


def is_old(version: str) -> bool:
    """Whether the rules up to 1.1.65 are known to hold."""
    number = release(version)
    return number is not None and number <= _LAST_OLD


def _agreed(version: str, old: Callable[[], str | None], new: Callable[[], str | None]) -> str | None:
    number = release(version)
    if number is not None and (number <= _LAST_OLD or number >= _FIRST_NEW):
        return old() if number <= _LAST_OLD else new()
    first = old()
    return first if first is not None and first == new() else None


def _replaced(text: str, old: str, new: str, everywhere: bool) -> str | None:
    at = text.find(old)
    if at < 0:
        return None
    if everywhere:
        return replace_all(text, old, new)
    # OpenCode compares the first with the last occurrence, so that overlapping ones count as two.
    return text[:at] + new + text[at + len(old) :] if text.rfind(old) == at else None


def _replaced_in_kind(base: str, old: str, new: str, everywhere: bool) -> str | None:
    """The rules of 1.18: byte order mark kept, old and new text given the file's line ends."""
    text = base.removeprefix(BOM)
    end = "\r\n" if "\r\n" in text else "\n"
    old, new = (part.replace("\r\n", "\n").replace("\n", end) for part in (old, new))
    after = _replaced(text, old, new, everywhere)
    if after is None:
        return None
    return BOM + after.removeprefix(BOM) if base.startswith(BOM) else after


def _places(lines: list[str], hunks: Sequence[Hunk]) -> list[tuple[int, int, list[str]]] | None:
    """(first line, how many, new lines) of each hunk, in the file's order; None where one is not certain."""
    places: list[tuple[int, int, list[str]]] = []
    at = 0
    for context, old, new, ends_file in hunks:
        if context:
            found = _find(lines, (context,), at)
            if found is None:
                return None
            at = found + 1
        if not old:
            if lines and lines[-1] == "":
                return None  # where an addition goes before a blank last line has changed between versions
            places.append((len(lines), 0, list(new)))
            continue
        hit = _find(lines, old, at)
        if hit is None or (ends_file and _find(lines, old, hit + 1) is not None):
            return None
        places.append((hit, len(old), list(new)))
        at = hit + len(old)
    return sorted(places, key=lambda place: place[0])


def _find(lines: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    """The first place at or behind `start` where `wanted` stands line for line."""
    span = len(wanted)
    return next(
        (at for at in range(start, len(lines) - span + 1) if tuple(lines[at : at + span]) == tuple(wanted)), None
    )
