"""Which shell commands only look, so that their failure tells nothing: a search without a match is no setback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from daemon.reconstitute.facts.shell.runs import ASKS

_LOOKS = frozenset(
    "grep egrep fgrep zgrep rg ag ack test [ [[ diff cmp comm which type hash whereis locate ls ll tree cat bat head "  # noqa: SIM905
    "tail less more find fd stat file wc du df pgrep pidof ps readlink realpath echo printf true false : sleep cd pwd "
    "env printenv whoami id hostname uname date sort uniq cut tr nl column basename dirname xxd od strings sha256sum "
    "md5sum".split()
)
_ANSWERS_1 = frozenset("grep egrep fgrep zgrep rg ag ack test [ [[ diff cmp pgrep false".split())  # noqa: SIM905
_GIT_LOOKS = frozenset(
    "status log show diff rev-parse ls-files ls-tree branch blame grep remote describe tag cat-file check-ignore "  # noqa: SIM905
    "reflog shortlog".split()
)
_ASSIGNED = re.compile(r"\w+=")
_BETWEEN = {"&&", "||", ";", "|", "&", "|&", ";;", "(", ")"}
_NOT_FOUND = 127
_OUT_OF_TIME = 124
"""The status of `timeout` for a command that it ended, as was wanted."""

_ENDS = re.compile(r"\bexit [1-9]|(?:^|[;&|]\s*)false\s*$")

Simple = tuple[str, ...]


def is_tool(name: str) -> bool:
    """Whether a word names one of the commands to look with, or to edit text with."""
    return name.strip() in _LOOKS | {"sed", "awk", "perl", "ripgrep"}


def is_look(name: str) -> bool:
    """Whether a program only looks, or prints; without a name nothing is run."""
    return name in _LOOKS or not name


def fails_on_purpose(command: str) -> bool:
    """Whether a command says itself that it shall fail."""
    return _ENDS.search(command) is not None


def only_looks(command: str, status: int | None) -> bool:
    """Whether a command that ended with `status` did nothing but look, or answered "no" by it."""
    made = parts(command)
    if not made:
        return False
    if status == _NOT_FOUND and any(len(words) > 1 and words[1] in ASKS for _, words in made):
        return False  # whoever asks for its version wanted to use it
    if all(_is_look(words) for _, words in made):
        return True
    if status == _OUT_OF_TIME and any("timeout" in words[:2] for _, words in made):
        return True
    between, last = made[-1]
    return status == 1 and between in {"|", ";"} and last[0] in _ANSWERS_1


def parts(command: str) -> list[tuple[str, Simple]]:
    """The simple commands of a line, each with what stands before it; none where there is a here-document."""
    if "<<" in command or len(command) > 4000:
        return []
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    made: list[tuple[str, list[str]]] = [("", [])]
    for token in tokens:
        if token in _BETWEEN:
            made.append((token, []))
        else:
            made[-1][1].append(token)
    cut = [(between, _without_assignments(words)) for between, words in made]
    return [(between, words) for between, words in cut if words]


def _without_assignments(words: Sequence[str]) -> Simple:
    start = next((place for place, word in enumerate(words) if not _ASSIGNED.match(word)), len(words))
    return tuple(words[start:])


def _is_look(words: Simple) -> bool:
    name = words[0].rsplit("/", 1)[-1]
    if name == "git":
        return next((word for word in words[1:] if not word.startswith("-")), "") in _GIT_LOOKS
    if name == "command":
        return words[1:2] in {("-v",), ("-V",)}
    if name == "find" and ("-delete" in words or "-exec" in words):
        return False
    return name in _LOOKS or (len(words) == 2 and words[1] in ASKS)
