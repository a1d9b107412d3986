"""Applies a change to a file's text by the rules of OpenCode's versions.

Text in, text out. The rules changed between the versions that were read (opencode-formats.md, Tools 4 to 8); where a
version lies between two of these, or is unknown, a result counts only if all rules that may hold give it. So an
`Outcome` is one of three: a text with its rule; refused, which for a call that succeeded means that the file held
another text; or neither, if the result is uncertain. Nothing is raised, nothing is guessed. A byte order mark is the
character U+FEFF at the beginning of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from daemon.files.apply import patches, replacers
from daemon.files.apply.patches import PatchRules
from daemon.transcript.javascript import Costs, TooCostlyError, is_plain, replace_all, replace_first
from daemon.transcript.patch_text import Hunk
from daemon.transcript.tool_calls import release

__all__ = [
    "BOM",
    "Outcome",
    "as_read",
    "edited",
    "edited_by",
    "is_old",
    "patched",
    "patched_by",
    "replace_all",
    "written",
]

BOM = "\ufeff"
EFFORT = 4_000_000
"""After so many steps, of about a microsecond each, the result of the tolerant rules is uncertain."""

_FIRST_ONLY_CREATING = (1, 17, 0)
_LAST_OLD = (1, 2, 6)
_ODD_END = re.compile(r"[\r\u2028\u2029]")
_LINE_END = re.compile(r"\r\n|\r|\n|\u2028|\u2029")
_Rules = TypeVar("_Rules")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a change. `rule` says how the place was found, in words fit for evidence ("as it stands")."""

    text: str | None = None
    rule: str = ""
    refused: bool = False


_REFUSED = Outcome(refused=True)
_UNSURE = Outcome()


@dataclass(frozen=True, slots=True)
class _EditRules:
    """How the edit tool of some versions works.

    `mark`: what happens to a byte order mark ("dropped", "text": part of the first line, "kept"); `converts`: old and
    new text get the file's line ends; `strict`: the limits of 1.17 hold; `exact`: OpenCode 2's, without tolerance and
    with ``$`` patterns interpreted also in a single edit.
    """

    mark: str
    converts: bool = True
    strict: bool = False
    exact: bool = False


_EDIT_2 = _EditRules("kept", exact=True)
_EDIT_STRICT = _EditRules("kept", strict=True)
_FIRST_ALIKE = (1, 14, 34)
_Span = tuple[tuple[int, int, int], tuple[int, int, int]]
_ENDLESS = (1 << 30, 0, 0)

# First and last version for which rules are known. We assume that the last rules of 1.x hold until 2.
_EDITS: tuple[tuple[_Span, _EditRules], ...] = (
    (((0, 5, 29), (1, 2, 6)), _EditRules("dropped", converts=False)),
    (((1, 2, 12), (1, 2, 20)), _EditRules("text", converts=False)),
    (((1, 2, 27), (1, 3, 2)), _EditRules("text")),
    (((1, 14, 34), (1, 15, 13)), _EditRules("kept")),
    (((1, 17, 0), (1, 1 << 30, 0)), _EDIT_STRICT),
    (((2, 0, 0), _ENDLESS), _EDIT_2),
)


@dataclass(frozen=True, slots=True)
class _PatchRules:
    """How the patch tool of some versions works: whether it handles byte order marks, and how it places hunks."""

    keeps_mark: bool
    placing: PatchRules


_PATCHES: tuple[tuple[_Span, _PatchRules], ...] = (
    (((1, 0, 0), (1, 0, 0)), _PatchRules(False, PatchRules(exact=True))),
    (((1, 1, 34), (1, 3, 2)), _PatchRules(False, PatchRules())),
    (((1, 14, 34), (1, 1 << 30, 0)), _PatchRules(True, PatchRules())),
    (((2, 0, 0), _ENDLESS), _PatchRules(True, PatchRules(heeds_end=True, adds_last=True))),
)
_WRITES: tuple[tuple[_Span, bool], ...] = (((0, 5, 29), (1, 3, 2)), False), (((1, 14, 34), _ENDLESS), True)
"""Whether a byte order mark survives a write that has none."""


def as_read(text: str) -> str:
    """`text` as a read since 1.2 prints it: no byte order mark, no final newline, every line end a newline."""
    text = text.removeprefix(BOM)
    lines = text.split("\n") if not _ODD_END.search(text) else _LINE_END.split(text)
    return "\n".join(lines[:-1] if lines[-1] == "" else lines)


def is_old(version: str) -> bool:
    """Whether `version` is known to drop a byte order mark on every edit."""
    number = release(version)
    return number is not None and number <= _LAST_OLD


def only_creates(version: str) -> bool:
    """Whether an edit without old text certainly succeeds only if there was no file."""
    number = release(version)
    return number is not None and number >= _FIRST_ONLY_CREATING


def written(content: str, base: str | None, version: str) -> str | None:
    """The file after the write tool wrote `content` over `base`; None as base means that the old text is unknown.

    Since 1.14 a byte order mark survives a write without one. We assume that an unknown old text had none, and
    `changes` says so in the evidence.
    """
    if base is None or not base.startswith(BOM) or content.startswith(BOM):
        return content
    return _agreed(Outcome(BOM + content if has_mark else content) for has_mark in _possible(_WRITES, version)).text


def edited(base: str, old: str, new: str, replace_all: bool, version: str) -> str | None:
    """The file after one edit of `base`; None if OpenCode would have refused it or the result is uncertain."""
    return edited_by(base, old, new, replace_all, version).text


def edited_by(base: str, old: str, new: str, replace_all: bool, version: str) -> Outcome:
    """The outcome of one edit of `base`.

    An empty `old` replaces the whole file. Since 1.17 that succeeds only if there was no file; a call that succeeded
    has written `new` in any case.
    """
    if not replace_all and _is_plain(base, old, new):
        at = base.find(old)
        if at >= 0 and base.find(old, at + 1) < 0:  # most edits are such, and no version treats them in another way
            return Outcome(base[:at] + new + base[at + len(old) :], "as it stands")
    known: dict[tuple[str, str, str, bool, bool], Outcome] = {}

    def by(rules: _EditRules) -> Outcome:
        text = base if rules.mark == "text" else base.removeprefix(BOM)
        texts = _in_kind(text, old, new) if rules.converts or rules.exact else (old, new)
        key = (text, *texts, rules.strict, rules.exact)
        if key not in known:
            known[key] = _replaced(text, *texts, replace_all, rules)
        return _marked(known[key], base.startswith(BOM) and rules.mark == "kept", rules.mark == "kept")

    if base.startswith(BOM + BOM):
        return _UNSURE  # how many of two marks survive differs from version to version, and from tool to tool
    if old == "":
        return _made_whole(base, new, version)
    outcome = _agreed(by(rules) for rules in _possible(_EDITS, version))
    alternatives = {by(rules).text for rules in _silent(version)}
    return outcome if alternatives <= {None, outcome.text} else _UNSURE


def _is_plain(base: str, old: str, new: str) -> bool:
    """Whether all versions treat the texts alike: no odd line ends, byte order marks or ``$`` patterns."""
    marked = base.startswith(BOM) or new.startswith(BOM)
    return old not in ("", new) and not marked and "$" not in new and not any("\r" in text for text in (base, old, new))


def patched(base: str, hunks: Sequence[Hunk], version: str) -> str | None:
    """The file after a patch's hunks; None if OpenCode would have refused them or the result is uncertain."""
    return patched_by(base, hunks, version).text


def patched_by(base: str, hunks: Sequence[Hunk], version: str) -> Outcome:
    """The outcome of the hunks of one apply_patch update of `base`."""

    def by(rules: _PatchRules) -> Outcome:
        text = base.removeprefix(BOM) if rules.keeps_mark else base
        after = patches.patched(text, hunks, rules.placing)
        if after is None:
            return _REFUSED
        outcome = Outcome(after, "lines of the patch")
        return _marked(outcome, rules.keeps_mark and base.startswith(BOM), rules.keeps_mark)

    if base.startswith(BOM + BOM):
        return _UNSURE
    return _agreed(by(rules) for rules in _possible(_PATCHES, version))


def _possible(table: Iterable[tuple[_Span, _Rules]], version: str) -> list[_Rules]:
    """The rules of a version, or the two candidates if it lies between; all of 1.x for an unknown version."""
    number = release(version)
    rows = list(table)
    if number is None or number < rows[0][0][0]:
        return [rules for (first, _), rules in rows if first < (2, 0, 0)]
    possible = [rules for (first, last), rules in rows if first <= number <= last]
    if not possible:
        before = [rules for (_, last), rules in rows if last < number][-1:]
        possible = before + [rules for (first, _), rules in rows if first > number][:1]
    if number >= (2, 0, 0) and rows[-1][0][0] >= (2, 0, 0):
        # OpenCode 2 is known from what 1.18 already carries of it only: the last rules of 1.x have to agree.
        possible = [rules for _, rules in rows][-2:]
    return list(dict.fromkeys(possible))


def _silent(version: str) -> list[_EditRules]:
    """Rules that may hold although the record does not show it: they must not find another place.

    A record without a version may be of OpenCode 2. A session keeps the version that created it when a newer OpenCode
    continues it, and an edit by 1.17 looks like one by 1.14 (one by an older version does not).
    """
    number = release(version)
    if number is None:
        return [_EDIT_2]
    return [_EDIT_STRICT] if _FIRST_ALIKE <= number < (2, 0, 0) else []


def _agreed(outcomes: Iterable[Outcome]) -> Outcome:
    """The common outcome, with the newest rule; unsure if they differ."""
    last: Outcome | None = None
    for outcome in outcomes:
        if last is not None and (outcome.text, outcome.refused) != (last.text, last.refused):
            return _UNSURE
        last = outcome
    return last or _UNSURE


def _marked(outcome: Outcome, has_mark: bool, knows_marks: bool) -> Outcome:
    """The outcome with the byte order mark that its rules put before the text."""
    text = outcome.text
    if text is None or not knows_marks:
        return outcome
    is_marked = has_mark or text.startswith(BOM)
    text = text.removeprefix(BOM)
    return Outcome(BOM + text.removeprefix(BOM) if is_marked else text, outcome.rule)


def _made_whole(base: str, new: str, version: str) -> Outcome:
    """An edit without old text: up to 1.15 it overwrites (1.14 and 1.15 keep a mark), since 1.17 it only creates."""

    def by(rules: _EditRules) -> Outcome:
        has_mark = rules.mark == "kept" and not rules.strict and not rules.exact and base.startswith(BOM)
        return Outcome(BOM + new.removeprefix(BOM) if has_mark else new, "whole text")

    return _agreed(by(rules) for rules in _possible(_EDITS, version))


def _in_kind(text: str, old: str, new: str) -> tuple[str, str]:
    """Old and new text with the line ends of `text`."""
    if "\r\n" in text:
        return _with_ends(old, "\r\n"), _with_ends(new, "\r\n")
    return _with_ends(old, "\n"), _with_ends(new, "\n")


def _with_ends(text: str, end: str) -> str:
    text = text.replace("\r\n", "\n")
    return text if end == "\n" else text.replace("\n", end)


def _replaced(text: str, old: str, new: str, everywhere: bool, rules: _EditRules) -> Outcome:
    if old in (new, ""):
        return _REFUSED
    if rules.exact:
        return _replaced_exactly(text, old, new, everywhere)
    at = text.find(old)
    if at >= 0:
        if everywhere:
            return Outcome(replace_all(text, old, new), "as it stands, everywhere")
        # The first is compared with the last occurrence, so that overlapping ones count as two.
        if text.rfind(old) == at:
            return Outcome(text[:at] + new + text[at + len(old) :], "as it stands")
    try:
        return _replaced_tolerantly(text, old, new, everywhere, rules.strict)
    except TooCostlyError:
        return _UNSURE


def _replaced_exactly(text: str, old: str, new: str, everywhere: bool) -> Outcome:
    count = text.count(old)
    if count == 0 or (count > 1 and not everywhere):
        return _REFUSED
    if everywhere:
        return Outcome(replace_all(text, old, new), "as it stands, everywhere")
    return Outcome(replace_first(text, old, new), "as it stands")


def _replaced_tolerantly(text: str, old: str, new: str, everywhere: bool, strict: bool) -> Outcome:
    costs = Costs(EFFORT)
    tried = {old}
    for rule, place in replacers.candidates(text, old, strict, costs):
        if place in tried:
            continue
        tried.add(place)
        costs.spend(1 + len(text) // 2000)
        at = text.find(place)
        if at < 0:
            continue
        if strict and replacers.is_oversized(place, old):
            return _REFUSED
        if everywhere:
            if place == "" and not is_plain(text):
                return _UNSURE  # the new text would part the halves of a character
            return Outcome(replace_all(text, place, new), f"{rule}, everywhere")
        if text.rfind(place) == at:
            return Outcome(text[:at] + new + text[at + len(place) :], rule)
    return _REFUSED
