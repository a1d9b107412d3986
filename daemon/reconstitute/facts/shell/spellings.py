"""The different ways to write one command: ``npm test`` is ``npm run test``, ``./bin/x`` is ``sh bin/x``.

Two spellings are equal only if they surely mean the same. Pure, never raises.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence

from daemon.transcript.shell import known_programs
from daemon.transcript.shell.known_programs import PYTHON, packages
from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

_LONGEST = 1000
_LONGEST_LINE = 200
"""A longer line of a README is prose."""
_SHELLS = words("sh bash zsh dash ksh")
_INTERPRETERS = (_SHELLS | frozenset(known_programs.DIALECTS)) - {"java"}
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_COMPOSE = words("docker-compose podman-compose")
_MAKES = words("make gmake")
_FOLDER = re.compile(r"cd ([^\s&;|]+) && (.*)", re.DOTALL)
_CODE = re.compile(r"`([^`\n]{1,200})`")
_PROMPT = re.compile(r"^\s*(?:[$>%]\s+)?")

Spelling = tuple[str, ...]


def of(command: str, folder: str = "") -> Spelling:
    """The folder and words of a simple command, the same for all ways to write it; empty if it is no simple command.

    `folder` is relative, and so is one that the command itself names (``cd x && ...``, ``make -C x``).
    """
    moved = _FOLDER.fullmatch(command.strip()[:_LONGEST])
    if moved is not None:
        return of(moved[2], posixpath.join(folder, moved[1].strip("'\"")))
    try:
        args = shlex.split(command[:_LONGEST])
    except ValueError:
        return ()
    while args and _ASSIGNED.fullmatch(args[0]):
        args = args[1:]
    return () if any(word in {"&&", "||", "|", ";", "&"} for word in args) else of_words(args, folder)


def of_words(args: Sequence[str], folder: str) -> Spelling:
    """The spelling of a simple command given as words, without assignments."""
    if not args:
        return ()
    name, remaining = args[0].removeprefix("./") or ".", list(args[1:])
    if name in packages.SCRIPTED:
        return _of_package(name, remaining, folder)
    if name in _MAKES:
        return _of_make(remaining, folder)
    return posixpath.normpath(folder), *_of_program(name, remaining)


def _of_program(name: str, args: list[str]) -> Spelling:
    if name in _COMPOSE or (name == "docker" and args[:1] == ["compose"]):
        args = args if name in _COMPOSE else args[1:]
        return "compose", *(word for word in args if not word.startswith("-"))
    is_python = PYTHON.fullmatch(name) is not None
    if (is_python or name in _INTERPRETERS) and args and not args[0].startswith("-"):
        return args[0].removeprefix("./"), *args[1:]
    return "python" if is_python else name, *args


def _of_package(name: str, args: list[str], folder: str) -> Spelling:
    """The script of package.json, whichever package manager runs it."""
    script = packages.script_of(name, [Field(word) for word in args])
    if script is None or not script[0] or script[0] in packages.HOOKED:
        return posixpath.normpath(folder), name, *args
    script_args = args[args.index("--") + 1 :] if "--" in args else []
    return posixpath.normpath(posixpath.join(folder, script[1].text)), "package.json", script[0], *script_args


def _of_make(args: list[str], folder: str) -> Spelling:
    targets: list[str] = []
    while args:
        word, args = args[0], args[1:]
        if word in {"-C", "--directory"} and args:
            folder, args = posixpath.join(folder, args[0]), args[1:]
        elif word in {"-f", "--file", "--makefile"} or word.startswith(("-f", "--file=", "--makefile=")):
            return ()  # another makefile
        elif not word.startswith("-"):
            targets.append(word)
    return posixpath.normpath(folder), "make", *targets


def is_run_by(spelling: Spelling, command: Spelling, *, is_default: bool = False) -> bool:
    """Whether `command` also runs `spelling`, perhaps with more arguments.

    `is_default`: `spelling` is what its tool runs without arguments.
    """
    if not spelling or not command:
        return False
    if is_default and command == spelling[:-1]:
        return True
    if command[1:] == ("compose", "up") and spelling[:3] == (command[0], "compose", "up"):
        return True  # all services
    return command[: len(spelling)] == spelling


def in_text(text: str) -> frozenset[Spelling]:
    """The commands that a README names, as code or on lines of their own; a single word only as code."""
    lines = (_PROMPT.sub("", raw, count=1).strip() for raw in text.split("\n") if len(raw) <= _LONGEST_LINE)
    commands = [*in_code(text), *(line for line in lines if " " in line)]
    return frozenset(filter(None, map(of, commands)))


def in_code(text: str) -> tuple[str, ...]:
    """The commands that a README shows as code, in order: in the text, in blocks, or behind a shell's prompt."""
    commands: list[str] = []
    is_block = False
    for raw in text.split("\n"):
        if raw.lstrip().startswith(("```", "~~~")):
            is_block = not is_block
        elif len(raw) <= _LONGEST_LINE:
            is_line = is_block or raw.startswith(("    ", "\t", "$ "))
            commands += (
                [_PROMPT.sub("", raw, count=1).strip()] if is_line else [match[1] for match in _CODE.finditer(raw)]
            )
    return tuple(dict.fromkeys(filter(None, commands)))


def mentions(spelling: Spelling, commands: Iterable[str], *, is_default: bool = False) -> bool:
    """Whether one of the `commands` has the words of `spelling`, in whatever spelling: it may have run it."""
    spelled = spelling[1:-1] if is_default else spelling[1:]
    needles = {piece for word in spelled if word != "package.json" for piece in re.findall(r"\w+", word)}
    return any(needles <= set(re.findall(r"\w+", command)) for command in commands)
