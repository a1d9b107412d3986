"""Whether a text names a path, as a whole name and no part of a longer one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from daemon.files.trees import is_beneath


def names(text: str, path: str, folders: Iterable[str]) -> bool:
    """Whether `text` has the absolute `path`, or it relative to one of `folders` that hold it.

    A relative name without a slash or a dot may be any word: it counts with a slash behind it or in backticks only.
    """
    if _has(text, path, r"(?<![\w.-])"):
        return True
    for folder in dict.fromkeys(folders):
        if not folder or folder == path or not is_beneath(path, folder):
            continue
        relative = path[len(folder.rstrip("/")) + 1 :]
        if _has(text, relative, r"(?<![\w./-])(?:\./)?", is_word="/" not in relative and "." not in relative):
            return True
    return False


def _has(text: str, path: str, start: str, *, is_word: bool = False) -> bool:
    if path not in text:
        return False
    escaped = re.escape(path)
    pattern = rf"{start}{escaped}/|`(?:\./)?{escaped}`" if is_word else rf"{start}{escaped}(?![\w-]|\.\w)"
    return re.search(pattern, text) is not None
