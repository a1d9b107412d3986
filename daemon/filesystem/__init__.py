"""Access to the disk: durable writes of our own files, careful reads of others' files, and free space.

This module decides which names and paths we may write: nothing outside a folder, and nothing that git would run.
"""

from __future__ import annotations

import errno
import unicodedata

from daemon.errors import OutputFailed, OutputRefused

NAME_BYTES = 255
"""The longest name that Linux file systems allow."""

_PASSING = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""Errors that a disk, or a system short of something, may give for a moment."""


def refusal(error: OSError, message: str) -> OutputRefused:
    """What an error means for whoever wanted to write: it may pass, or the place is not ours."""
    return OutputFailed(message) if error.errno in _PASSING else OutputRefused(message)


def components(rel: str) -> tuple[str, ...]:
    """Split a path beneath a root into its names.

    Raises:
        OutputRefused: the path climbs, is absolute or empty, or holds a name that must not be made: ``..``, ``.git`` in
            any spelling, a control character, a lone surrogate, a backslash, over 255 bytes (docs/reliability.md, P2).
    """
    names = inside(rel)
    for name in names:
        reason = _objection(name)
        if reason:
            raise OutputRefused(f"{rel!r}: {name!r} {reason}; choose another name")
    return names


def is_git(name: str) -> bool:
    """Whether some system would treat `name` as git's folder: other case, ignorable characters, trailing dots."""
    bare = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    return bare.casefold().rstrip(". ") in {".git", "git~1"}


def _objection(name: str) -> str:
    if any(unicodedata.category(c) == "Cc" for c in name):
        return "holds a control character"
    if any(unicodedata.category(c) == "Cs" for c in name):
        return "is not valid Unicode"
    if len(name.encode()) > NAME_BYTES:
        return f"is longer than {NAME_BYTES} bytes"
    if "\\" in name:
        return "holds a backslash"
    if is_git(name):
        return "is git's own folder"
    return ""


def inside(rel: str) -> tuple[str, ...]:
    names = tuple(rel.split("/"))
    if not all(names) or "." in names or ".." in names or "\0" in rel:
        raise OutputRefused(
            f"{rel!r}: not a plain path beneath the output directory; write it without '..', '.' or '//'"
        )
    return names
