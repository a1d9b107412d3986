"""Which folders belong together: a project that was renamed, moved or cloned has the same id, or the same files.

It only tells; `reconstitute alias` joins. A project's id is the hash of its repository's first commit, which a clone
shares and a rename keeps (opencode-formats.md, Directory).
"""

from __future__ import annotations

from collections import defaultdict

from daemon import records
from daemon.archive import Archive
from daemon.files.end_states import View
from daemon.files.trees import is_beneath
from daemon.hints import hint

_MOST = 5
_LEAST_ALIKE = 3
_SHARE = 0.5
"""Of the files of the smaller folder, how many have to stand in both under the same name with the same content."""


def hints(archive: Archive, view: View, prefix: str) -> list[str]:
    """One sentence for each folder that may be `prefix` under another name."""
    joined = archive.files.aliases()
    known = {*joined, *joined.values()}
    found: dict[str, str] = {}
    for other in _same_project(archive, prefix):
        found[other] = "is of the same project (the same first commit)"
    own = {row.path[len(prefix) + 1 :]: row.sha256 for row in view.rows(prefix) if row.sha256 and row.size}
    for other in {session.directory for session in archive.sessions() if session.directory} - {prefix}:
        if other in found or is_beneath(other, prefix) or is_beneath(prefix, other) or len(other) < 2:
            continue
        theirs = {row.path[len(other) + 1 :]: row.sha256 for row in view.rows(other) if row.sha256 and row.size}
        alike = sum(own.get(name) == sha256 for name, sha256 in theirs.items())
        if alike >= _LEAST_ALIKE and alike >= _SHARE * min(len(own), len(theirs)):
            found[other] = f"holds {alike} of the same files"
    return [
        f"{other} {why}; if it is the same folder under another name, join them: {hint('alias', old=other, new=prefix)}"
        for other, why in sorted(found.items())[:_MOST]
        if other not in known
    ]


def _same_project(archive: Archive, prefix: str) -> list[str]:
    """Other folders of the projects that `prefix` is a folder of."""
    folders: dict[str, set[str]] = defaultdict(set)
    for session in archive.sessions():
        if session.project_id not in {"", "global"} and session.directory:
            folders[session.project_id].add(session.directory)
    for name in archive.notes("projects "):
        for project in records.loads(archive.note(name).encode()):
            id_ = records.text(project.get("id"))
            if id_ and id_ != "global":
                places = [
                    project.get("worktree"),
                    *(project.get("sandboxes") or ()),
                    *(project.get("directories") or ()),
                ]
                folders[id_] |= {place for place in places if isinstance(place, str) and len(place) > 1}
    found: set[str] = set()
    for known in folders.values():
        if prefix in known:
            found |= {place for place in known if not is_beneath(place, prefix) and not is_beneath(prefix, place)}
    return sorted(found)
