"""Whether what the result of an edit shows of the file fits the text we take the file to have had.

OpenCode since 1.15 records no text before and after, but a diff with some lines around the change. It has lost the
lines' common indentation and their CRs (opencode-formats.md, Records), so it proves nothing; but it can contradict.
"""

from __future__ import annotations

import re

from daemon.transcript.patch_text import Hunk

NO_NEWLINE = "\\ No newline at end of file"
_MARK = "\ufeff"
_PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINE_END = re.compile(r"\r\n|\r|\n")


def fits(before: str, after: str, hunks: tuple[Hunk, ...]) -> bool:
    """Whether every line that the diff shows stands at its place in the text before, and in the text after."""
    if not hunks:
        return True
    old, new = _lines(before.removeprefix(_MARK)), _lines(after.removeprefix(_MARK))
    for head, shown_before, shown_after, _ in hunks:
        place = _PLACE.match(head)
        if place is None:
            return True  # not a diff that we know how to read
        if not _stands(old, int(place[1]), shown_before) or not _stands(new, int(place[3]), shown_after):
            return False
    return True


def fits_before(before: str, hunks: tuple[Hunk, ...]) -> bool:
    """Whether every line that the diff shows of the text before stands at its place in it."""
    old = _lines(before.removeprefix(_MARK))
    places = ((_PLACE.match(head), lines) for head, lines, _, _ in hunks)
    return all(place is None or _stands(old, int(place[1]), lines) for place, lines in places)


def applied(before: str, hunks: tuple[Hunk, ...]) -> str | None:
    """The text after the change, but for CRs, which no diff shows; None where the diff does not tell every character.

    It does not where all of its lines have lost indentation in common.
    """
    plain = before.removeprefix(_MARK)
    old = plain.split("\n")
    is_ended = old[-1] == ""
    if is_ended:
        old.pop()
    made: list[str] = []
    at = 0
    is_untrimmed = False
    for head, was, now, _ in hunks:
        place = _PLACE.match(head)
        was_open, now_open = (side[-1:] == (NO_NEWLINE,) for side in (was, now))
        lines = was[:-1] if was_open else was
        start = 0 if place is None else int(place[1]) - bool(lines)
        if place is None or "\r" in before or start < at or tuple(old[start : start + len(lines)]) != lines:
            return None
        made += [*old[at:start], *(now[:-1] if now_open else now)]
        at = start + len(lines)
        is_untrimmed = is_untrimmed or any(line.strip() for line in lines)
        is_ended = not now_open if at == len(old) else is_ended
    text = "".join(f"{line}\n" for line in (*made, *old[at:]))
    return before[: len(before) - len(plain)] + (text if is_ended else text[:-1]) if is_untrimmed else None


def _lines(text: str) -> list[str]:
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def _stands(lines: list[str], first: int, shown: tuple[str, ...]) -> bool:
    """Whether the shown lines stand from line `first` on (1 is the first), but for indentation in common."""
    ends_without = shown[-1:] == (NO_NEWLINE,)
    wanted = shown[:-1] if ends_without else shown
    start = max(first - 1, 0)
    there = lines[start : start + len(wanted)]
    if len(there) != len(wanted):
        return False
    last = start + len(wanted)
    if wanted and ends_without != (last == len(lines) and lines[-1] != ""):
        return False
    cut = {len(line) - len(seen) for line, seen in zip(there, wanted, strict=True) if line.strip() and seen.strip()}
    if len(cut) > 1:
        return False
    return all(
        line.endswith(seen) and not line[: len(line) - len(seen)].strip()
        for line, seen in zip(there, wanted, strict=True)
        if line.strip() or seen.strip()
    )
