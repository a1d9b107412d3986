"""The end state of every path, kept in the archive, so that ten thousand files are listed without a replay.

A row is derived and disposable. Each commit that changes recorded edits marks their paths as outdated; `refresh`
replays what depends on those, and nothing else. The rows also tell which folders may be one folder under two names.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from daemon import records
from daemon.archive import Archive
from daemon.files.history import FileHistory
from daemon.files.replay import World
from daemon.files.trees import above, is_beneath
from daemon.hints import hint
from daemon.model import FileEdit, Operation
from daemon.opencode.configuration import configured_by

_MANY = 200
"""With more outdated paths everything is made anew: reading all once is cheaper than each with its folders."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path: its present grade and what speaks for it, its last content, its last change (time in epoch ms).

    For a deleted path `sha256` and `size` are those of the last content it had. `time` is 0 where no record tells of a
    change, `seen` when the newest record of it was made. A change from outside has no session, and OUTSIDE as its tool.
    """

    path: str
    grade: str
    evidence: tuple[str, ...] = ()
    sha256: str = ""
    size: int | None = None
    deleted: bool = False
    note: str = ""
    seen: int = 0
    time: int = 0
    session_id: str = ""
    message_id: str = ""
    tool: str = ""
    last_grade: str = ""
    """Of the content that `sha256` names: its own, which for a deleted path tells whether it can be had."""


OUTSIDE = "outside OpenCode"
_NOTE, _RULES = "file rows", "7"
"""Under which rules the kept rows were made; raised whenever a row of the same events becomes another one."""
_STEP = 500
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Row)
Build = Callable[[Iterable[str], Callable[[], None]], World]


class EndStates:
    """The kept rows of one archive."""

    def __init__(self, archive: Archive, build: Build) -> None:
        self._archive = archive
        self._build = build

    def rows(self, prefix: str) -> list[Row]:
        """Rows at or beneath `prefix`, sorted by path, as they were when last refreshed."""
        rows = [_DECODER.decode(raw) for raw in self._archive.files.views(prefix)]
        return sorted(rows, key=lambda row: row.path)

    def refresh(self, pulse: Callable[[], None] = lambda: None) -> int:
        """Make the rows anew that depend on what has changed; answers how many there are of those."""
        outdated = self._archive.files.outdated()
        is_foreign = self._archive.note(_NOTE) != _RULES
        if not outdated and not is_foreign:
            return 0
        prefixes = ["/"] if is_foreign or len(outdated) > _MANY else self._dependent(outdated)
        world = self._build(prefixes, pulse)
        through_links = {world.real(prefix) for prefix in prefixes} - set(prefixes)
        if through_links:
            prefixes = [*prefixes, *through_links]
            world = self._build(prefixes, pulse)
        rows = {}
        for number, path in enumerate(world.paths()):
            if number % _STEP == 0:
                pulse()
            if any(is_beneath(path, prefix) for prefix in prefixes):
                row = row_of(world.history(path))
                if row is not None:
                    rows[path] = _ENCODER.encode(row)
        self._archive.commit_views(prefixes, rows, outdated)
        if is_foreign:
            self._archive.set_note(_NOTE, _RULES)
        return len(rows)

    def _dependent(self, outdated: Iterable[str]) -> list[str]:
        """The paths themselves, and wherever moves and copies took what was there; none beneath another."""
        prefixes: dict[str, int] = {}
        files = self._archive.files
        of_folder = lru_cache(maxsize=None)(files.edits)  # many paths lie in the same folders
        waiting = [(path, -1) for path in outdated]
        while waiting:
            path, after = waiting.pop()
            if any(is_beneath(path, known) and since <= after for known, since in prefixes.items()):
                continue
            prefixes[path] = after
            edits = [*files.beneath(path), *files.edits(path)]
            edits += [edit for folder in above(path) for edit in of_folder(folder)]
            # What was taken away before it can have been there is not concerned: so this comes to an end.
            waiting += [(to, edit.time) for edit in edits if edit.time > after for to in _taken_to(edit, path)]
            # A file that changes what a program is taken to have done changes what is said of the folder it ran in.
            waiting += [(edit.path, after) for edit in edits if edit.operation is Operation.RUN and edit.time > after]
            # A configuration tells whether formatters ran in its folder, before it was seen, too.
            waiting += [(folder, -1) for folder in configured_by(path)]
            waiting += [
                (new, -1) for old, new in files.aliases().items() if is_beneath(old, path) or is_beneath(path, old)
            ]
        return [path for path in prefixes if not any(path != other and is_beneath(path, other) for other in prefixes)]


def _taken_to(edit: FileEdit, path: str) -> Iterable[str]:
    """Where a move or copy of what is at or beneath `path`, or of a folder that holds it, took it."""
    if edit.operation not in (Operation.MOVE, Operation.COPY) or edit.other is None:
        return
    if is_beneath(edit.path, path) or is_beneath(path, edit.path):
        yield edit.other
        rest = path[len(edit.path) :] if is_beneath(path, edit.path) else ""
        if edit.into is not True:
            yield edit.other + rest
        if edit.into is not False:
            yield posixpath.join(edit.other, posixpath.basename(edit.path)) + rest


def row_of(history: FileHistory) -> Row | None:
    """The row of a history; None for a path that a command took away and of which nothing else is known."""
    last = history.latest
    if last is None:
        return None
    content, changed = history.last_content, history.last_change
    if last.deleted and content is None and all(r.deleted or not r.evidence for r in history.revisions):
        return None
    maker = None if changed is None or changed.is_from_outside else changed
    note = "; ".join(dict.fromkeys(r.note for r in reversed(history.revisions[-3:]) if r.note and not last.proven))
    return Row(
        path=history.path,
        grade=last.grade.value,
        evidence=last.evidence,
        sha256="" if content is None else content.sha256,
        size=None if content is None else content.size,
        deleted=last.deleted,
        note=note,
        seen=last.time,
        time=0 if changed is None else changed.time,
        session_id="" if maker is None else maker.session_id,
        message_id="" if maker is None else maker.message_id,
        tool=maker.tool if maker is not None else "" if changed is None else OUTSIDE,
        last_grade="" if content is None else content.grade.value,
    )


_MOST = 5
_LEAST_ALIKE = 3
_SHARE = 0.5
"""Of the files of the smaller folder, how many have to stand in both under the same name with the same content."""


def alias_hints(archive: Archive, end_states: EndStates, prefix: str) -> list[str]:
    """One sentence for each folder that may be `prefix` under another name: of the same project, or with its files.

    A project's id is the hash of its repository's first commit, which a clone shares and a rename keeps.
    """
    joined = archive.files.aliases()
    known = {*joined, *joined.values()}
    reasons: dict[str, str] = {}
    for other in _same_project(archive, prefix):
        reasons[other] = "is of the same project (the same first commit)"
    own = {row.path[len(prefix) + 1 :]: row.sha256 for row in end_states.rows(prefix) if row.sha256 and row.size}
    for other in {session.directory for session in archive.sessions() if session.directory} - {prefix}:
        if other in reasons or is_beneath(other, prefix) or is_beneath(prefix, other) or len(other) < 2:
            continue
        theirs = {row.path[len(other) + 1 :]: row.sha256 for row in end_states.rows(other) if row.sha256 and row.size}
        alike = sum(own.get(name) == sha256 for name, sha256 in theirs.items())
        if alike >= _LEAST_ALIKE and alike >= _SHARE * min(len(own), len(theirs)):
            reasons[other] = f"holds {alike} of the same files"
    return [
        f"{other} {why}; if it is the same folder under another name, join them: {hint('alias', old=other, new=prefix)}"
        for other, why in sorted(reasons.items())[:_MOST]
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
    others: set[str] = set()
    for known in folders.values():
        if prefix in known:
            others |= {place for place in known if not is_beneath(place, prefix) and not is_beneath(prefix, place)}
    return sorted(others)
