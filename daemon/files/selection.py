"""Which files a person means, by patterns as in a .gitignore file."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.errors import BadRequest
from daemon.path_patterns import PathPatterns


class Selection:
    """Files that match `include`, or all if it is empty, without those that match `exclude`."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        """Raises BadRequest for what is no pattern."""
        self._include = _patterns("include", include) if include else None
        self._exclude = _patterns("exclude", exclude)

    def __contains__(self, relative: str) -> bool:
        """Whether it has the file of this path, which is relative to the folder that the patterns are of."""
        is_included = self._include is None or self._include.match(relative)
        return is_included and not self._exclude.match(relative)


def _patterns(name: str, lines: Sequence[str]) -> PathPatterns:
    try:
        return PathPatterns(lines)
    except ValueError as error:
        raise BadRequest(f"`{name}` {error}; write a pattern as in a .gitignore file, such as '*.py'") from None
