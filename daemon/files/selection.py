"""Which files a person means, by patterns as in a .gitignore file. The only importer of pathspec."""

from __future__ import annotations

from collections.abc import Sequence

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from daemon.errors import BadRequest


class Selection:
    """Files that match `include`, or all if it is empty, without those that match `exclude`.

    A name without a slash matches at any depth, ``docs/`` a folder with all beneath it, ``/docs`` only at the top, and
    ``!`` takes back what an earlier pattern matches (gitignore(5)).
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        """Raises BadRequest for what is no pattern."""
        self._include = _patterns("include", include) if include else None
        self._exclude = _patterns("exclude", exclude)

    def __contains__(self, relative: str) -> bool:
        """Whether it has the file of this path, which is relative to the folder that the patterns are of."""
        is_included = self._include is None or self._include.match_file(relative)
        return is_included and not self._exclude.match_file(relative)


def _patterns(name: str, lines: Sequence[str]) -> GitIgnoreSpec:
    for line in lines:
        if not line.strip() or line.startswith("#") or "\0" in line:
            raise BadRequest(f"`{name}` {line!r}: not a pattern; write one as in a .gitignore file, such as '*.py'")
    try:
        return GitIgnoreSpec.from_lines(lines)
    except GitIgnorePatternError as error:
        raise BadRequest(f"`{name}`: {error}; write a pattern as in a .gitignore file, such as '*.py'") from None
