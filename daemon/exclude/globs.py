r"""Whether a pattern in a shell command (``cat /vault/*``) may stand for an excluded path. Pure.

Both are patterns, so they are compared as such: is there a path that both match? Within a text, `_ANY` stands for one
character and `_MANY` for any number of them; ``**`` is a component that stands for any number of components.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from daemon.transcript.shell.heredocs import NotUnderstood, skeleton

_ANY, _MANY = "\x01", "\x02"
_TREE = _MANY * 2
_WORD = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s;&|()<>`'\"\\])+", re.DOTALL)
_PIECE = re.compile(
    r"'(?P<raw>[^']*)'|\"(?P<quoted>(?:\\.|[^\"\\])*)\"|\\(?P<escaped>.)|(?P<any>\?|\[[^\]/\s]+\])"
    r"|(?P<many>\*|(?<!\$)\{[^{}\s/]*,[^{}\s/]*\})|(?P<plain>.)",
    re.DOTALL,
)
_PATTERN_PIECE = re.compile(r"\\(?P<escaped>.)|(?P<any>\?|\[[^\]/]+\])|(?P<many>\*)|(?P<plain>.)", re.DOTALL)
_ASSIGNED = re.compile(r"--?[\w-]+=|\w+=|@")
_NESTED = re.compile(r"\b(?:ba|da|k|z)?sh\s+(?:-\w+\s+)*-\w*c\s+(?:'(?P<raw>[^']*)'|\"(?P<quoted>(?:\\.|[^\"\\])*)\")")
_MOST = 10_000
"""Characters that are compared with each pattern. A command whose patterns have more counts as one that may."""


def patterns(lines: Iterable[str]) -> list[list[str]]:
    """Each line of a .gitignore file as the components of a path from the root; what takes a path back is left out."""
    compiled = list[list[str]]()
    for line in lines:
        if not line.startswith("!"):
            names = [_marked(name, _PATTERN_PIECE) for name in line.strip("/").split("/")]
            is_anchored = "/" in line.rstrip("/")
            compiled.append([*([] if is_anchored else [_TREE]), *names, _TREE])
    return compiled


def beneath(path: str) -> list[str]:
    """The pattern of an absolute path and of everything beneath it."""
    return [*path.strip("/").split("/"), _TREE]


def may_reach(command: str, excluded: Sequence[Sequence[str]], bases: Sequence[str]) -> bool:
    """Whether a word of a command, as a pattern from one of the folders `bases`, may match one of `patterns`."""
    words = list(dict.fromkeys(_globs(command)))
    return sum(map(len, words)) > _MOST or any(
        _common(pattern, path, _TREE, _is_same_name)
        for word in words
        for base in (("/",) if word.startswith("/") else bases)
        for path in [posixpath.normpath(posixpath.join(base, word)).strip("/").split("/")]
        for pattern in excluded
    )


def _globs(command: str) -> Iterator[str]:
    """The words of a command that are patterns. Here-documents are no words."""
    try:
        text, _ = skeleton(command)
    except NotUnderstood:
        text = command
    for nested in _NESTED.finditer(text):
        yield from _globs(nested[nested.lastgroup or 0])
    for word in _WORD.findall(text):
        marked = _marked(word)
        if _ANY in marked or _MANY in marked:
            yield marked
            option = _ASSIGNED.match(marked)
            if option:
                yield marked[option.end() :]


def _marked(text: str, pieces: re.Pattern[str] = _PIECE) -> str:
    """A word without quotes and backslashes, and with marks for its wildcards."""
    marks = {"any": _ANY, "many": _MANY}
    return "".join(marks.get(match.lastgroup or "", match[match.lastgroup or 0]) for match in pieces.finditer(text))


def _is_same_name(excluded: str, written: str) -> bool:
    if excluded.startswith(".") and written[0] in (_ANY, _MANY):
        return False  # a shell's wildcard matches no hidden file
    return _common(excluded, written, _MANY, lambda one, other: one == other or _ANY in (one, other))


def _common(one: Sequence[str], other: Sequence[str], many: str, agree: Callable[[str, str], bool]) -> bool:
    """Whether some sequence matches both; `many` stands for any number of elements."""
    rests = {(len(one), len(other)): True}  # whether what follows from these places on has something in common
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            first, second = one[i] if i < len(one) else "", other[j] if j < len(other) else ""
            if many in (first, second):  # it ends here, or takes the other's next element too
                rests[i, j] = rests.get((i + 1, j), False) or rests.get((i, j + 1), False)
            elif first and second:
                rests[i, j] = rests.get((i + 1, j + 1), False) and agree(first, second)
    return rests.get((0, 0), False)
