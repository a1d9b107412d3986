"""Patterns of paths, as in a .gitignore file. The only importer of pathspec."""

from __future__ import annotations

from collections.abc import Sequence

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError


class PathPatterns:
    """Some patterns, of which the last that matches a path decides.

    A name without a slash matches at any depth, ``docs/`` a folder with all beneath it, ``/docs`` only at the top, and
    ``!`` takes back what an earlier pattern matches (gitignore(5)).
    """

    def __init__(self, lines: Sequence[str]) -> None:
        """Raises ValueError, with the reason, for what is no pattern."""
        for line in lines:
            if not line.strip() or line.startswith("#") or "\0" in line:
                raise ValueError(f"{line!r}: not a pattern")
        try:
            self._spec = GitIgnoreSpec.from_lines(lines)
        except GitIgnorePatternError as error:
            raise ValueError(str(error)) from None

    def match(self, relative: str) -> bool:
        """Whether they match this path, which is relative to the folder that the patterns are of."""
        return self._spec.match_file(relative)
