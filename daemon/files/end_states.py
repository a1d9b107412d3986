"""The end state of every path, kept in the archive, so that a list of ten thousand files needs no replay.

A row is derived and disposable. Each commit that changes recorded edits marks their paths as outdated, and `refresh`
replays only the paths that depend on them. From the rows we also find folders that may be one folder under two names.
"""

from __future__ import annotations

import json
import posixpath
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from daemon import records
from daemon.archive import Archive
from daemon.files.history import FileHistory
from daemon.files.links import Links
from daemon.files.replay import World
from daemon.files.trees import above, is_beneath
from daemon.hints import hint
from daemon.model import FileEdit, Operation
from daemon.opencode.configuration import configured_by

_MANY = 200
"""With more outdated paths we rebuild all rows, because one read of everything is cheaper."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path: its present grade and the evidence for it, its last content, its last change (time in epoch ms).

    For a deleted path `sha256` and `size` are those of its last content. `time` is 0 if no change is recorded; `seen`
    is the time of its newest record. A change from outside has no session, and OUTSIDE as its tool.
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
    """The grade of the content of `sha256`, which for a deleted path shows whether it can be restored."""


OUTSIDE = "outside OpenCode"
_NOTE, _RULES = "file rows", "10"
"""The version of the rules for rows; raise it whenever the same events give another row."""
_STEP = 500
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Row)
Build = Callable[[Iterable[str], Callable[[], None], Links], World]


class EndStates:
    """The kept rows of one archive."""

    def __init__(self, archive: Archive, build: Build) -> None:
        self._archive = archive
        self._build = build
        self._lock = threading.Lock()
        """Held by a refresh: one that began earlier must not put its rows over those of a later one."""

    def rows(self, prefix: str) -> list[Row]:
        """Rows at or beneath `prefix`, sorted by path, as they were when last refreshed."""
        rows = [_decoded(raw) for raw in self._archive.files.views(prefix)]
        return sorted(rows, key=lambda row: row.path)

    def refresh(self, pulse: Callable[[], None] = lambda: None) -> int:
        """Rebuild the rows that depend on outdated paths; returns their number."""
        with self._lock:
            return self._refresh(pulse)

    def links(self, outdated: Iterable[str] | None = None) -> Links:
        """The links that are known now; `outdated` are the paths whose edits have changed since the last refresh."""
        if self._archive.note(_NOTE) != _RULES:
            outdated = self._archive.files.paths()
        return Links(self._archive, self._archive.files.outdated() if outdated is None else outdated)

    def _refresh(self, pulse: Callable[[], None]) -> int:
        outdated = self._archive.files.outdated()
        is_foreign = self._archive.note(_NOTE) != _RULES
        if not outdated and not is_foreign:
            return 0
        links = self.links(outdated)
        prefixes = ["/"] if is_foreign or len(outdated) > _MANY else self._dependent(outdated, links)
        world = self._build(prefixes, pulse, links)
        while through_links := [path for path in world.reached() if not _is_in(path, prefixes)]:
            prefixes = [*prefixes, *through_links]
            world = self._build(prefixes, pulse, links)
        rows = {}
        for number, path in enumerate(world.paths()):
            if number % _STEP == 0:
                pulse()
            if _is_in(path, prefixes):
                row = row_of(world.history(path))
                if row is not None:
                    rows[path] = _encoded(row)
        # A name that was taken for a file may have turned out to be a folder.
        for folder in {folder for prefix in prefixes for folder in above(prefix)}:
            if self._archive.files.view(folder) is not None and row_of(world.history(folder)) is None:
                rows[folder] = b""
        self._archive.commit_views(prefixes, rows, outdated, links.changed())
        if is_foreign:
            self._archive.set_note(_NOTE, _RULES)
        return len(rows)

    def _dependent(self, outdated: Iterable[str], links: Links) -> list[str]:
        """The paths themselves, and the targets of moves, copies and links from them; none beneath another."""
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
            if not edits:  # what was taken for a folder because of it may be a file
                waiting += [(folder, -1) for folder in above(path) if files.is_alone(folder)]
            edits += [edit for folder in above(path) for edit in of_folder(folder)]
            # A move before the content arrived does not concern it. So this loop ends.
            waiting += [(to, edit.time) for edit in edits if edit.time > after for to in _taken_to(edit, path)]
            # A file that changes the effects of a program changes the rows of the folder it ran in.
            waiting += [(edit.path, after) for edit in edits if edit.operation is Operation.RUN and edit.time > after]
            # A configuration decides whether formatters ran in its folder, also before we saw it.
            waiting += [(folder, -1) for folder in configured_by(path)]
            waiting += [(place, after) for place in links.led_to(self._archive, path)]
            waiting += [
                (new, -1) for old, new in files.aliases().items() if is_beneath(old, path) or is_beneath(path, old)
            ]
        return [
            path for path in prefixes if not any(path != prefix and is_beneath(path, prefix) for prefix in prefixes)
        ]


def _encoded(row: Row) -> bytes:
    try:
        return _ENCODER.encode(row)
    except UnicodeEncodeError:  # a name in a snapshot that is not UTF-8: with escapes, which msgspec does not know
        return json.dumps(msgspec.to_builtins(row)).encode()


def _decoded(raw: bytes) -> Row:
    try:
        return _DECODER.decode(raw)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(raw), Row)


def _is_in(path: str, prefixes: Iterable[str]) -> bool:
    return any(is_beneath(path, prefix) for prefix in prefixes)


def _taken_to(edit: FileEdit, path: str) -> Iterable[str]:
    """The targets of a move or copy of `path`, of something beneath it, or of a folder above it."""
    if edit.operation not in (Operation.MOVE, Operation.COPY) or edit.other is None:
        return
    if is_beneath(edit.path, path) or is_beneath(path, edit.path):
        yield edit.other
        tail = path[len(edit.path) :] if is_beneath(path, edit.path) else ""
        if edit.into is not True:
            yield edit.other + tail
        if edit.into is not False:
            yield posixpath.join(edit.other, posixpath.basename(edit.path)) + tail


def row_of(history: FileHistory) -> Row | None:
    """The row of a history; None for a path of which we only know that a command removed it."""
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
"""The share of the smaller folder's files that must have the same name and content in both."""


def alias_hints(archive: Archive, end_states: EndStates, prefix: str) -> list[str]:
    """One sentence for each folder that may be `prefix` under another name: of the same project, or with its files.

    A project's id is the hash of its repository's first commit, which a clone shares and a rename keeps.
    """
    joined = archive.files.aliases()
    known = {*joined, *joined.values()}
    reasons: dict[str, str] = {}
    for former in _same_project(archive, prefix):
        reasons[former] = "is of the same project (the same first commit)"
    own_files = {row.path[len(prefix) + 1 :]: row.sha256 for row in end_states.rows(prefix) if row.sha256 and row.size}
    for former in {session.directory for session in archive.sessions() if session.directory} - {prefix}:
        if former in reasons or is_beneath(former, prefix) or is_beneath(prefix, former) or len(former) < 2:
            continue
        other_files = {
            row.path[len(former) + 1 :]: row.sha256 for row in end_states.rows(former) if row.sha256 and row.size
        }
        alike = sum(own_files.get(name) == sha256 for name, sha256 in other_files.items())
        if alike >= _LEAST_ALIKE and alike >= _SHARE * min(len(own_files), len(other_files)):
            reasons[former] = f"holds {alike} of the same files"
    return [
        f"{former} {why}; if it is the same folder under another name, join them: "
        f"{hint('alias', old=former, new=prefix)}"
        for former, why in sorted(reasons.items())[:_MOST]
        if former not in known
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
    folders_beside: set[str] = set()
    for known in folders.values():
        if prefix in known:
            folders_beside |= {
                place for place in known if not is_beneath(place, prefix) and not is_beneath(prefix, place)
            }
    return sorted(folders_beside)
