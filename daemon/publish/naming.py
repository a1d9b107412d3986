"""Names for pages: harmless on any system, and no two alike (docs/reliability.md, P2). Pure functions."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Sequence

from daemon.filesystem import NAME_BYTES, is_git
from daemon.redact import redact

_BIDIRECTIONAL = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def names(paths: Sequence[str]) -> list[str]:
    """The names under which `publish` writes pages of these paths, in the same order.

    Every component becomes a harmless file name (docs/reliability.md, P2). Paths that meet on a system that folds case
    or Unicode forms get a number, and so does a folder that is called as a page is: the first in the sequence keeps its
    name.
    """
    used: set[str] = set()
    folders: dict[str, str] = {}

    def free(path: str, reserved: Callable[[str], bool]) -> str:
        chosen, number = path, 1
        while reserved(folded(chosen)):
            number += 1
            chosen = _numbered(path, number)
        return chosen

    def placed(folder: str) -> str:
        """Where the pages of `folder` go, with a slash at its end."""
        if folder and folder not in folders:
            outer, _, name = folder.rpartition("/")
            folders[folder] = free(placed(outer) + name, lambda name_: name_ in used)
            reserved.add(folded(folders[folder]))
        return f"{folders[folder]}/" if folder else ""

    reserved: set[str] = set()
    result = []
    for name in map(safe_path, paths):
        folder, _, base = name.rpartition("/")
        chosen = free(placed(folder) + base, lambda name_: name_ in used or name_ in reserved)
        used.add(folded(chosen))
        result.append(chosen)
    return result


def folders_above(path: str) -> list[str]:
    """The folders above a relative path, nearest first, without the root."""
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(len(names) - 1, 0, -1)]


def beside(path: str, word: str, number: int) -> str:
    """A name for what stands beside the page `path`: ``README.<word>.md``, then ``README.<word>-2.md`` and so on."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{_shortened(name, f'.{word}' + (f'-{number}' if number > 1 else ''))}"


def safe_path(path: str) -> str:
    """`path` with every component made a harmless file name; relative, never empty."""
    return "/".join(_safe(name) for name in redact(path).split("/") if name not in {"", "."}) or "_"


def _safe(name: str) -> str:
    """A file name that is harmless on any system: not climbing, no controls, not git's or our own, not too long."""
    name = redact(name)
    safe = "".join(
        "_" if c == "\\" or unicodedata.category(c) in {"Cc", "Cs"} or c in _BIDIRECTIONAL else c for c in name
    )
    if safe == ".." or is_git(safe) or safe.casefold().startswith(".reconstitute"):
        safe = "_" + safe.lstrip(".")
    return _shortened(safe, "")


def _shortened(name: str, addition: str) -> str:
    """`addition` put before the last suffix, and the middle cut so that all of it fits a file name."""
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > 16:
        stem, dot, suffix = name, "", ""
    tail = f"{addition}{dot}{suffix}"
    if len(f"{stem}{tail}".encode()) > NAME_BYTES:
        tail = f"~{hashlib.sha256(name.encode()).hexdigest()[:8]}{tail}"
        stem = stem.encode()[: NAME_BYTES - len(tail.encode())].decode("utf-8", "ignore")
    return stem + tail


def _numbered(path: str, number: int) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{_shortened(name, f'-{number}')}"


def folded(path: str) -> str:
    """What two names have in common that are one on a system which folds case or Unicode forms."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
