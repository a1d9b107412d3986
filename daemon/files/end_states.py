"""The end state of every path, kept in the archive, so that a list of ten thousand files needs no replay.

A row is derived and disposable. Each commit that changes recorded edits marks their paths as outdated, and `refresh`
replays only the paths that depend on them. From the rows we also find folders that may be one folder under two names.
"""

from __future__ import annotations

import json
import posixpath
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

import msgspec

from daemon import records
from daemon.archive import Archive
from daemon.files import links
from daemon.files.events import Loader
from daemon.files.history import FileHistory
from daemon.files.links import Links, Pair
from daemon.files.lots import USUAL, in_lots, in_no_lot
from daemon.files.replay import World
from daemon.files.trees import above, is_beneath, is_in
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
_NOTE, _RULES = "file rows", "12"
"""The version of the rules for rows; raise it whenever the same events give another row."""
_STEP = 500
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Row)
Build = Callable[[Collection[str], Callable[[], None], set[Pair]], World]


class EndStates:
    """The kept rows of one archive."""

    def __init__(self, archive: Archive, build: Build, lot_bytes: int = USUAL) -> None:
        self._archive = archive
        self._build = build
        self._lot_bytes = lot_bytes
        self._seen: dict[int, tuple[dict[str, bytes], links.ByFolder | None]] = {}
        """The marks of outdated paths when the pairs were last made, and these pairs, by archive.files.generation."""
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

    def pairs(self) -> set[Pair]:
        """All pairs of places that share a history, by what is recorded now (daemon.files.links).

        Only folders that have changed since the last call are looked at again.
        """
        generation, outdated = self._archive.files.generation, self._archive.files.outdated()
        seen, known = self._seen.get(generation, ({}, None))
        changed: Iterable[str] = [path for path, mark in outdated.items() if seen.get(path) != mark]
        if known is None:
            known = links.stored(self._archive)
            changed = {*self._archive.files.paths(), *known} if self._is_foreign() else changed
        known = links.brought_up_to_date(self._archive, known, changed)
        if generation == self._archive.files.generation:  # else a refresh has stored others
            self._seen = {generation: (outdated, known)}
        return {pair for pairs in known.values() for pair in pairs}

    def _is_foreign(self) -> bool:
        """Whether the rows are missing, or were made by other rules."""
        return self._archive.note(_NOTE) != _RULES

    def _refresh(self, pulse: Callable[[], None]) -> int:
        outdated = self._archive.files.outdated()
        is_foreign = self._is_foreign()
        if not outdated and not is_foreign:
            return 0
        before = links.stored(self._archive)
        changed = {*self._archive.files.paths(), *before} if is_foreign else outdated
        now = links.brought_up_to_date(self._archive, before, changed, pulse)
        pairs = {pair for pairs in now.values() for pair in pairs}
        if is_foreign or len(outdated) > _MANY:
            prefixes, rows = ["/"], self._all(pairs, pulse)
        else:
            former = {pair for pairs in before.values() for pair in pairs}
            others = {target for _, target in former ^ pairs}
            dependent = self._dependent({*outdated, *others}, Links(former | pairs))
            prefixes, rows = self._some(dependent, pairs, pulse)
        self._archive.commit_views(prefixes, rows, outdated, links.changes(before, now))
        if is_foreign:
            self._archive.set_note(_NOTE, _RULES)
        return len(rows)

    def _some(
        self, prefixes: list[str], pairs: set[Pair], pulse: Callable[[], None]
    ) -> tuple[list[str], dict[str, bytes]]:
        """The rows at and beneath these prefixes, and those that are reached from them through links."""
        world = self._build(prefixes, pulse, pairs)
        known = {*prefixes, *world.reached()}
        rows = _rows_of(world, (path for path in world.paths() if is_in(path, known)), pulse)
        # A name that was taken for a file may have turned out to be a folder.
        for folder in {folder for prefix in known for folder in above(prefix)}:
            if self._archive.files.view(folder) is not None and row_of(world.history(folder)) is None:
                rows[folder] = b""
        return sorted(known), rows

    def _all(self, pairs: set[Pair], pulse: Callable[[], None]) -> dict[str, bytes]:
        """All rows, replayed in lots."""
        sizes, whole = self._archive.files.sizes()
        loader = Loader(self._archive)
        renamed: dict[str, int] = defaultdict(int)
        for path, size in sizes.items():
            renamed[loader.renamed(path)] += size
        lots = in_lots(renamed, {loader.renamed(place) for place in whole}, self._lot_bytes)
        rows: dict[str, bytes] = {}
        folders: dict[str, bytes] = {}
        strangers: set[str] = set()
        done = 0
        while done < len(lots.lots):
            lot = lots.lots[done]
            places = set(lot)
            world = self._build(lot, pulse, pairs)
            rows |= _rows_of(world, (path for path in world.paths() if is_in(path, places)), pulse)
            strangers |= in_no_lot((*world.paths(), *world.reached()), lots)
            for folder in lots.divided:
                if any(is_beneath(place, folder) for place in lot) and folders.get(folder) != b"":
                    # A lot that holds what made it known as a folder has no row of it.
                    folders |= {folder: b""} | _rows_of(world, [folder], pulse)
            done += 1
            # Paths that nothing is recorded of by this name: reached through links, or made by programs.
            if done == len(lots.lots) and (left := in_no_lot(strangers, lots)):
                lots.lots.append(sorted(left))
        return rows | {folder: row for folder, row in folders.items() if row}

    def _dependent(self, outdated: Iterable[str], pairs: Links) -> list[str]:
        """The paths themselves, and the targets of moves, copies and links from them; none beneath another."""
        prefixes: dict[str, int] = {}
        files = self._archive.files
        aliases, loader = files.aliases().items(), Loader(self._archive)
        of_folder = lru_cache(maxsize=None)(files.edits)  # many paths lie in the same folders
        may_have_rows = lru_cache(maxsize=None)(lambda link: files.is_recorded(link) or files.has_view(link))
        waiting = [(path, -1, False) for path in outdated]
        while waiting:
            path, after, is_led = waiting.pop()
            if any(is_beneath(path, known) and since <= after for known, since in prefixes.items()):
                continue
            prefixes[path] = after
            edits = [*files.beneath(path), *files.edits(path)]
            found = []
            if not edits:  # what was taken for a folder because of it may be a file
                found += [(folder, -1) for folder in above(path) if files.is_alone(folder)]
            edits += [edit for folder in above(path) for edit in of_folder(folder)]
            # A move before the content arrived does not concern it. So this loop ends.
            found += [(to, edit.time) for edit in edits if edit.time > after for to in _taken_to(edit, path)]
            for name in loader.older_names(path):  # what was recorded there was done to this path
                former = [edit for folder in (name, *above(name)) for edit in of_folder(folder)]
                former += files.beneath(name)
                found += [(to, edit.time) for edit in former if edit.time > after for to in _taken_to(edit, name)]
            # A file that changes the effects of a program changes the rows of the folder it ran in.
            found += [(edit.path, after) for edit in edits if edit.operation is Operation.RUN and edit.time > after]
            # A configuration decides whether formatters ran in its folder, also before we saw it.
            found += [(folder, -1) for folder in configured_by(path)]
            found += [(new, -1) for old, new in aliases if is_beneath(old, path) or is_beneath(path, old)]
            waiting += [(place, since, False) for place, since in found]
            if not is_led:  # links that lead beneath themselves would be followed for ever
                waiting += [(place, after, True) for place in pairs.led_to(path)]
                waiting += [(name, after, True) for name, link in pairs.names([path]) if may_have_rows(link)]
        return [
            path for path in prefixes if not any(path != prefix and is_beneath(path, prefix) for prefix in prefixes)
        ]


def _rows_of(world: World, paths: Iterable[str], pulse: Callable[[], None]) -> dict[str, bytes]:
    rows = {}
    for number, path in enumerate(paths):
        if number % _STEP == 0:
            pulse()
        row = row_of(world.history(path))
        if row is not None:
            rows[path] = _encoded(row)
    return rows


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
