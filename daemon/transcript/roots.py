"""Which work tree the relative names in snapshots and recorded diffs start at; None rather than a wrong one.

The message's own `path.root` decides (a project's record mixes up clones: opencode-formats.md, Tools 1). A user message
has none: then the caller's, or the session record's `path` (1.18), or what the names themselves allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon import records
from daemon.errors import BadRecord
from daemon.model import Message, Session
from daemon.transcript.tool_calls import absolute


def work_tree(message: Message, session: Session | None, *, given: str = "", names: Sequence[str] = ()) -> str | None:
    """The absolute folder that `names` are relative to; None outside git, and where it cannot be known.

    `given` is what the caller knows, such as the `path.root` of another message of the turn. Names recorded in a
    session begin with the session's folder as seen from the work tree; so where they cannot, the session's folder is
    the work tree, and where they might, nothing is known.
    """
    told = records.text(records.table(message.data.get("path")).get("root")) or given
    if told:
        return _below_root(told)
    return None if session is None else session_tree(session, names)


def session_tree(session: Session, names: Sequence[str] = ()) -> str | None:
    """As work_tree, from the session's record alone."""
    directory = _below_root(session.directory)
    if directory is None:
        return None
    try:
        relative = records.load_object(session.raw).get("path")
    except BadRecord:
        relative = None
    if isinstance(relative, str):
        relative = relative.strip("/")
        if relative in ("", "."):
            return directory
        return _below_root(directory.removesuffix(f"/{relative}")) if directory.endswith(f"/{relative}") else None
    folders = directory.strip("/").split("/")
    beneath = ("/".join(folders[-count:]) + "/" for count in range(1, len(folders) + 1))
    if not names or any(all(name.startswith(folder) for name in names) for folder in beneath):
        return None
    return directory


def _below_root(path: str) -> str | None:
    """`path` made absolute, None for "/" (which OpenCode records outside git) and for what is no path."""
    found = absolute(path, "")
    return None if found == "/" else found
