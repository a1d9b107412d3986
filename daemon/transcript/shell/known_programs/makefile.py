"""Which command lines ``make`` may take out of a makefile with plain recipes.

Only what GNU make and POSIX make surely read alike is understood: explicit rules, recipes behind a tab, variables set
once to a plain text. Whether targets were up to date is not considered: any of them may have been made.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"([A-Za-z_]\w*)[ \t]*(:{1,2}|\?)?=[ \t]*(.*)", re.ASCII)
_RULE = re.compile(r"([\w./ \t$(){}-]+?)[ \t]*:(?![:=])[ \t]*([\w./ \t$(){}|-]*)(?:;(.*))?", re.ASCII)
_REFERENCE = re.compile(r"\$(?:\(([A-Za-z_]\w*)\)|\{([A-Za-z_]\w*)\}|([@<^*?%+$])|)", re.ASCII)
_DECIDING = re.compile(r"SHELL|\.SHELLFLAGS|MAKEFLAGS|MAKEFILES|VPATH|GNUMAKEFLAGS|PATH|HOME|IFS|CDPATH")
_QUIET = frozenset({"-s", "--silent", "--quiet", "-k", "--keep-going", "-B", "--always-make", "--no-print-directory"})
_JOBS = re.compile(r"-j\d*|--jobs=\d+")
_MADE_BY_ITSELF = re.compile(
    r"\.(?:[acfFprshly]|o|cc|cpp|C|S|mod|sym|def|dvi|tex|texinfo|texi|txinfo|info|w|web|cweb|ch|el|out|sh)?"
)
"""Suffixes of files, and none, that make can build without a rule."""
_DEEPEST = 8
_LONGEST_LINE = 20_000


class _NotPlain(Exception):  # the answer "no", never an error that anybody sees
    """Something in it decides what runs, and this is not read here."""


def is_plainly_called(texts: Sequence[str]) -> bool:
    """Whether the words after ``make`` determine the makefile and its folder."""
    remaining = [word for word in texts[::-1] if word not in _QUIET and not _JOBS.fullmatch(word)]
    options: set[str] = set()
    while remaining:
        word = remaining.pop()
        if word in ("-C", "-f"):
            if word in options or not remaining:
                return False
            options.add(word)
            remaining.pop()
        elif word.startswith("-"):
            return False
    return True


@dataclass(slots=True)
class _Makefile:
    variables: dict[str, str | None] = field(default_factory=dict)
    needs: dict[str, list[str]] = field(default_factory=dict)
    recipes: dict[str, list[str]] = field(default_factory=dict)
    phony: set[str] = field(default_factory=set)
    first: str = ""
    expanded: dict[tuple[str, str], str] = field(default_factory=dict)


def read(text: str, arguments: Sequence[str | None], folder: str) -> list[tuple[str, str]] | None:
    """(folder, command line) of every recipe that may have run; None where that is not understood."""
    try:
        goals, overrides, folder = _called(arguments, folder)
        if overrides and "make" in text.lower():
            return None  # another make that it starts gets these variables, too
        makefile = _parsed(text, overrides)
        return [(folder, line) for line in _lines(makefile, goals or [makefile.first])]
    except _NotPlain:
        return None


def _called(arguments: Sequence[str | None], folder: str) -> tuple[list[str], dict[str, str], str]:
    goals, overrides = [], {}
    remaining = list(arguments[:0:-1])
    while remaining:
        word = remaining.pop()
        if word is None:
            raise _NotPlain
        variable = _VARIABLE.fullmatch(word)
        if word in ("-C", "-f"):
            value = remaining.pop() if remaining else None
            if value is None:
                raise _NotPlain
            folder = posixpath.normpath(posixpath.join(folder, value)) if word == "-C" else folder
        elif variable and "$" not in word:
            overrides[variable[1]] = variable[3]
        elif not word.startswith("-") and "=" not in word:
            goals.append(word)
        elif word not in _QUIET and not _JOBS.fullmatch(word):
            raise _NotPlain
    return goals, overrides, folder


def _parsed(text: str, overrides: dict[str, str]) -> _Makefile:
    makefile = _Makefile()
    if re.search(r"[\r\0\x01]|\\#", text) or any(_DECIDING.fullmatch(name) for name in overrides):
        raise _NotPlain
    targets: list[str] | None = None
    for line in text.replace("\\\n", "\x01").split("\n"):
        if line.startswith("\t"):
            if targets is None or len(line) > _LONGEST_LINE:
                raise _NotPlain
            for target in targets:
                makefile.recipes.setdefault(target, []).append(
                    line[1:].replace("\x01\t", "\\\n").replace("\x01", "\\\n")
                )
            continue
        plain = line.partition("#")[0].replace("\x01", " ").strip()
        if not plain:
            continue
        variable, rule = _VARIABLE.fullmatch(plain), _RULE.fullmatch(plain)
        if variable:
            _set(makefile, variable, overrides)
            targets = None
        elif rule and rule[3] is None:
            targets = _rule(makefile, rule[1], rule[2])
        else:
            raise _NotPlain
    makefile.variables |= overrides
    return makefile


def _set(makefile: _Makefile, variable: re.Match[str], overrides: dict[str, str]) -> None:
    name, operator, value = variable.groups()
    if name in makefile.variables or _DECIDING.fullmatch(name) or name in ("MAKE", "CURDIR"):
        raise _NotPlain  # set twice, its value depends on where it is used
    if re.search(r"\$[({](?:shell|eval|file|foreach|call|if|or|and|origin|guile)\b", value):
        raise _NotPlain
    makefile.variables[name] = overrides.get(name, None if operator == "?" else value)


def _rule(makefile: _Makefile, target_names: str, need_names: str) -> list[str]:
    targets, needs = target_names.split(), need_names.replace("|", " ").split()
    if any("$" in name for name in [*targets, *needs]) or set(targets) & {
        ".ONESHELL",
        ".DEFAULT",
        ".SUFFIXES",
        ".EXPORT_ALL_VARIABLES",
    }:
        raise _NotPlain
    if targets == [".PHONY"]:
        makefile.phony.update(needs)
        return targets
    for target in targets:
        if target.startswith(".") and "/" not in target:
            raise _NotPlain  # a special target, or a suffix rule
        makefile.first = makefile.first or target
        makefile.needs.setdefault(target, []).extend(needs)
        if target in makefile.recipes:
            raise _NotPlain  # which of two recipes counts
    return targets


def _lines(makefile: _Makefile, goals: list[str]) -> list[str]:
    lines: list[str] = []
    visited: set[str] = set()
    waiting = goals[::-1]
    while waiting:
        target = waiting.pop()
        if target in visited:
            continue
        visited.add(target)
        if not makefile.recipes.get(target) and not _is_source(makefile, target):
            raise _NotPlain
        lines += [_expanded(makefile, line, target, 0).lstrip("@-+ \t") for line in makefile.recipes.get(target, ())]
        waiting += makefile.needs.get(target, [])[::-1]
    return [line for line in lines if line]


def _is_source(makefile: _Makefile, target: str) -> bool:
    """Whether no rule that make brings along could make a target without a recipe."""
    if target in makefile.phony:
        return True
    return not _MADE_BY_ITSELF.fullmatch(posixpath.splitext(target)[1])


def _expanded(makefile: _Makefile, line: str, target: str, depth: int) -> str:
    """A recipe line with its references replaced."""
    if depth > _DEEPEST:
        raise _NotPlain

    def value(match: re.Match[str]) -> str:
        if match[3] in ("$", "@"):
            return "$" if match[3] == "$" else target
        name = match[1] or match[2]
        if name == "MAKE":
            return "make"
        text = makefile.variables.get(name)
        if text is None:
            raise _NotPlain
        if (name, target) not in makefile.expanded:
            makefile.expanded[name, target] = _expanded(makefile, text, target, depth + 1)
        return makefile.expanded[name, target]

    whole = _REFERENCE.sub(value, line)
    if len(whole) > _LONGEST_LINE:
        raise _NotPlain
    return whole
