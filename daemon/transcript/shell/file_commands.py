"""The effects of ``rm``, ``mv``, ``cp`` and similar commands if they succeed; None if their words are in doubt.

Options that are not in these tables make a command uncertain; we never guess.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection
from dataclasses import dataclass

from daemon.model import Operation
from daemon.transcript.shell.names import words
from daemon.transcript.shell.state import Effect, Place, inside, is_system, overlap
from daemon.transcript.shell.words import Field


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one command: its options and its operands, as exact absolute paths."""

    options: frozenset[str]
    paths: tuple[str, ...]
    raw: tuple[str, ...]
    target: str | None = None
    new_folders: frozenset[str] = frozenset()


_LETTERS = {
    "rm": "rRfv", "rmdir": "v", "unlink": "", "mkdir": "pv", "touch": "acm", "mv": "fvTt", "cp": "fvpPRraTtd",
    "git mv": "fv", "git rm": "fq",
}  # fmt: skip
_LONG = {
    "rm": words("--recursive --force --verbose"), "rmdir": words("--verbose"), "mkdir": words("--parents --verbose"),
    "mv": words("--force --verbose --no-target-directory"), "touch": words("--no-create"),
    "cp": words("--force --verbose --recursive --archive --no-target-directory"),
    "git mv": words("--force --verbose"), "git rm": words("--force --quiet"),
}  # fmt: skip
_RECURSIVE = frozenset({"r", "R", "a", "--recursive", "--archive"})
_FORCED = frozenset({"f", "--force"})
VOCAL = words("cd rm mv cp mkdir rmdir unlink touch cat echo printf tee truncate git : true")
"""Commands that report a failure on standard error, after their own name."""


def certain(verb: str, fields: list[Field], place: Place, new_folders: Collection[str]) -> list[Effect] | None:
    """The effects of one command that succeeded, in order; None where they are not certain."""
    if verb == "truncate":
        return _truncate(fields, place)
    reader = _READERS.get(verb)
    arguments = _arguments(verb, fields, place, new_folders) if reader else None
    if reader is None or arguments is None:
        return None
    effects = reader(arguments)
    if effects is not None and len({effect.path for effect in effects}) < len(effects):
        return None
    return effects


def _arguments(  # noqa: C901, PLR0911 - one way out for every doubt
    verb: str, fields: list[Field], place: Place, new_folders: Collection[str]
) -> Arguments | None:
    """Options and operands, or None where one of them is not known."""
    options: set[str] = set()
    operands: list[Field] = []
    target: str | None = None
    remaining = fields[::-1]
    ends = False
    while remaining:
        field = remaining.pop()
        if not field.exact or field.text == "":
            return None
        if ends or not field.text.startswith("-") or field.text == "-":
            operands.append(field)
        elif field.text == "--":
            ends = True
        elif field.text.startswith("--"):
            if field.text not in _LONG.get(verb, ()):
                return None
            options.add(field.text)
        else:
            letters = field.text[1:]
            if not set(letters) <= set(_LETTERS[verb]):
                return None
            options |= set(letters)
            if "t" in letters and verb in ("mv", "cp"):
                if not letters.endswith("t") or not remaining or target is not None:
                    return None
                target = place.exact(remaining.pop())
                if target is None:
                    return None
    paths = [place.exact(field) for field in operands]
    known = [path for path in paths if path is not None and not is_system(path)]
    if len(known) != len(paths) or not known:
        return None
    raw = tuple(field.text for field in operands)
    return Arguments(frozenset(options), tuple(known), raw, target, frozenset(new_folders))


def _rm(arguments: Arguments) -> list[Effect] | None:
    recursive = bool(arguments.options & _RECURSIVE)
    if any(text.rstrip("/").rpartition("/")[2] in (".", "..") for text in arguments.raw):
        return None
    existed = None if arguments.options & _FORCED else True  # else it would have failed
    return [Effect(Operation.DELETE, path, recursive=recursive, existed=existed) for path in arguments.paths]


def _git_rm(arguments: Arguments) -> list[Effect] | None:
    return None if _has_pathspec(arguments) else _rm(arguments)


def _rmdir(arguments: Arguments) -> list[Effect]:
    return [Effect(Operation.DELETE, path, recursive=True) for path in arguments.paths]


def _unlink(arguments: Arguments) -> list[Effect] | None:
    return [Effect(Operation.DELETE, arguments.paths[0])] if len(arguments.paths) == 1 else None


def _mkdir(arguments: Arguments) -> list[Effect]:
    return [Effect(Operation.FOLDER, path) for path in dict.fromkeys(arguments.paths)]


def _touch(arguments: Arguments) -> list[Effect] | None:
    if arguments.options & {"c", "--no-create"}:
        return []
    return [Effect(Operation.TOUCH, path) for path in dict.fromkeys(arguments.paths)]


def _mv(arguments: Arguments) -> list[Effect] | None:
    return _far(arguments, Operation.MOVE, recursive=False)


def _git_mv(arguments: Arguments) -> list[Effect] | None:
    return None if _has_pathspec(arguments) else _mv(arguments)


def _cp(arguments: Arguments) -> list[Effect] | None:
    if arguments.options & set("Pd") and not arguments.options & _RECURSIVE:
        return None
    return _far(arguments, Operation.COPY, recursive=bool(arguments.options & _RECURSIVE))


def _has_pathspec(arguments: Arguments) -> bool:
    """Git reads patterns itself, also quoted ones."""
    return any(set(text) & set("*?[:\\") for text in arguments.raw)


def _far(arguments: Arguments, operation: Operation, *, recursive: bool) -> list[Effect] | None:
    """The effects of a move or copy: its target, and whether that is a folder to move into."""
    is_plain = bool(arguments.options & {"T", "--no-target-directory"})
    sources = arguments.paths if arguments.target else arguments.paths[:-1]
    raw = arguments.raw[: len(sources)]
    target = arguments.target or arguments.paths[-1]
    if not sources or (is_plain and (arguments.target or len(sources) > 1)):
        return None
    if any(text.endswith(("/.", "/..")) or text in (".", "..") for text in raw):
        return None
    into = _into(
        arguments, target, len(sources), is_plain=is_plain, may_be_folder=recursive or operation is Operation.MOVE
    )
    names = [inside(target, source) for source in sources]
    if len(set(names)) < len(names) or (into is None and is_system(target)):
        return None
    if any(overlap(source, end) for source in sources for end in ([target] if into is False else names)):
        return None
    if into is not True and any(overlap(source, target) for source in sources):
        return None
    return [Effect(operation, source, other=target, into=into, recursive=recursive) for source in sources]


def _into(arguments: Arguments, target: str, count: int, *, is_plain: bool, may_be_folder: bool) -> bool | None:
    if is_plain:
        return False
    if (
        arguments.target
        or count > 1
        or target in arguments.new_folders
        or arguments.raw[-1] in (".", "..", "./", "../")
    ):
        return True
    # A folder moved or copied to "new/" becomes "new", where that is not there yet.
    if arguments.raw[-1].endswith(("/", "/.", "/..")) and not may_be_folder:
        return True
    return None


def _truncate(fields: list[Field], place: Place) -> list[Effect] | None:
    texts = [field.text for field in fields if field.exact]
    if texts[:2] == ["-s", "0"]:
        operands = fields[2:]
    elif texts[:1] in (["-s0"], ["--size=0"]):
        operands = fields[1:]
    else:
        return None
    paths = [place.exact(field) for field in operands if not field.text.startswith("-")]
    if not paths or len(paths) != len(operands) or None in paths:
        return None
    return [Effect(Operation.WRITE, path, content="") for path in paths if path is not None]


_READERS: dict[str, Callable[[Arguments], list[Effect] | None]] = {
    "rm": _rm,
    "git rm": _git_rm,
    "rmdir": _rmdir,
    "unlink": _unlink,
    "mkdir": _mkdir,
    "touch": _touch,
    "mv": _mv,
    "git mv": _git_mv,
    "cp": _cp,
}


def parent(path: str) -> str:
    """The folder that holds `path`."""
    return posixpath.dirname(path)
