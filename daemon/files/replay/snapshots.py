"""Replays snapshot trees as observations of the files in their folder.

A tree is a vote, not a proof (opencode-formats.md, Snapshots): files outside the session's folder may be old, ignored
and large files are missing, and with a fast model the tree may already contain the effects of its step's calls.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence

from daemon.files import trees
from daemon.files.content import Content
from daemon.files.events import formatters
from daemon.files.history import LOST_FOLDER, SNAPSHOT, Grade, Revision
from daemon.files.replay import changes, observe
from daemon.files.replay.track import Track, started
from daemon.files.replay.tracks import Tracks
from daemon.model import FileEdit, Operation
from daemon.records import blob_id
from daemon.transcript.tool_calls import release

_LEAVES_OUT = (1, 15, 0)
"""Since this version trees leave out large files."""

_EMPTY = blob_id(b"")


class Snapshots:
    """Replays SNAPSHOT events.

    `later` are the future changes of each path; `may_format` as in World.
    """

    def __init__(
        self,
        tracks: Tracks,
        objects: trees.Objects,
        path_filter: trees.PathFilter,
        later: Mapping[str, Iterable[FileEdit]],
        may_format: Callable[[FileEdit], bool] = formatters.may_run,
    ) -> None:
        self._tracks = tracks
        self._objects = objects
        self._path_filter = path_filter
        self._later = later
        self._may_format = may_format
        self._lost: dict[str, tuple[trees.Root, Revision]] = {}

    @property
    def lost(self) -> dict[str, Revision]:
        """Folders in the newest tree of their work tree whose own trees are not archived."""
        return {path: revision for path, (_, revision) in self._lost.items()}

    def observe_tree(self, edit: FileEdit) -> None:
        """A tree of a work tree (`other`), in which OpenCode updated the folder `path`."""
        scope, place = edit.path, edit.other or edit.path
        if not trees.is_beneath(scope, place):
            scope = place
        if not self._path_filter.may_hold(scope) or self._objects.tree(edit.blob) is None:
            return
        root = self._tracks.roots.get(place) or self._tracks.add_root(place)
        self._find_again(root, edit.blob)
        if self._folder(root, edit.blob, scope) is None:
            self._lose(root, edit, scope, (self._entry(root, edit.blob, scope) or (0, ""))[1])
            return
        candidates = self._candidates(root, scope, edit.blob)
        before = root.before(scope)
        is_fresh = before is not None and self._folder(root, before.tree, scope) != self._folder(root, edit.blob, scope)
        for path, entry in candidates.items():
            if entry is not None and entry[0] == trees.UNKNOWN and path not in root.touched:
                self._lose(root, edit, path, entry[1])
                continue
            self._look(root, edit, path, entry, is_fresh=is_fresh)
            root.touched.pop(path, None)
        root.covered[scope] = trees.Covered(scope, edit.blob, self._tracks.number)

    def _lose(self, root: trees.Root, edit: FileEdit, folder: str, tree: str) -> None:
        """A tree has a folder whose own tree is not archived: pruned, or only in a project that is gone."""
        note = f"{LOST_FOLDER} that snapshot tree {edit.blob[:12]} names; its own tree {tree[:12]} is not kept"
        origin = edit.session_id, edit.message_id, edit.part_id, edit.tool, edit.operation
        self._lost[folder] = root, Revision(edit.time, Grade.LOST, None, *origin, note=note)

    def _find_again(self, root: trees.Root, tree: str) -> None:
        """Forget lost folders that a later tree no longer has, or has with archived content."""
        for path, (place, _) in list(self._lost.items()):
            entry = self._entry(root, tree, path) if place is root else (trees.UNKNOWN, "")
            if entry is None or (entry[0] != trees.UNKNOWN and self._folder(root, tree, path) is not None):
                del self._lost[path]

    def denies(self, path: str, content: Content | None) -> bool:
        """Whether the newest tree that covers a path has something else there; False without one."""
        places = [root for root in self._tracks.roots.values() if trees.is_beneath(path, root.path)]
        root = max(places, key=lambda place: len(place.path), default=None)
        covered = None if root is None else root.before(path)
        if root is None or covered is None:
            return False
        entry = self._entry(root, covered.tree, path)
        if entry is None or content is None:
            return (entry is None) is not (content is None)
        return entry[0] not in (trees.UNKNOWN, trees.LINK_MODE, trees.MODULE_MODE) and entry[1] != content.id

    def lacks(self, path: str, since: int) -> bool:
        """Whether a tree after event `since`, the last that covered a path, shows that nothing was there."""
        return any(
            (covered := root.before(path)) is not None
            and covered.number > since
            and self._entry(root, covered.tree, path) is None
            for root in self._tracks.roots.values()
        )

    def _entry(self, root: trees.Root, tree: str, path: str) -> trees.Entry | None:
        return self._objects.find(tree, path[len(root.path.rstrip("/")) + 1 :])

    def _folder(self, root: trees.Root, tree: str, path: str) -> str | None:
        """The id of a folder's own tree; empty if there is none, None if unknown."""
        entry = self._entry(root, tree, path)
        if entry is None or entry[0] not in (trees.FOLDER_MODE, trees.UNKNOWN):
            return ""
        return entry[1] if self._objects.tree(entry[1]) is not None else None

    def _candidates(self, root: trees.Root, scope: str, tree: str) -> dict[str, trees.Entry | None]:
        """Paths in scope of which the tree may show something new, with their entries in it."""
        before = root.before(scope)
        old = "" if before is None else self._folder(root, before.tree, scope) or ""
        new = self._folder(root, tree, scope) or ""
        candidates: dict[str, trees.Entry | None] = {
            path: entry for path, _, entry in trees.differing(self._objects, old, new, scope, self._path_filter)
        }
        for path in root.touched:
            if path not in candidates and trees.is_beneath(path, scope):
                entry = self._entry(root, tree, path)
                candidates[path] = None if entry is not None and entry[0] == trees.FOLDER_MODE else entry
        return candidates

    def _may_ignore(self, root: trees.Root, tree: str, path: str) -> bool:
        """Whether a .gitignore in the tree names something on the way of `path`, so that git may leave it out.

        OpenCode takes a file that has become ignored out of its trees, also some time after.
        """
        names = path[len(root.path.rstrip("/")) + 1 :].split("/")
        marks = {*names, f"*{posixpath.splitext(names[-1])[1]}"} - {"*"}
        folder = root.path.rstrip("/")
        for name in names:
            entry = self._entry(root, tree, f"{folder}/.gitignore")
            text = None if entry is None else self._objects.blob(entry[1])
            if entry is not None and (text is None or any(mark.encode() in text for mark in marks)):
                return True
            folder = f"{folder}/{name}"
        return False

    def _look(self, root: trees.Root, edit: FileEdit, path: str, entry: trees.Entry | None, *, is_fresh: bool) -> None:
        """Observe one path as the tree's `entry` shows it."""
        if entry is not None and entry[0] in (trees.MODULE_MODE, trees.UNKNOWN):
            return
        if entry is not None and entry[0] == trees.LINK_MODE:
            target = self._objects.blob(entry[1])
            if target:
                self._tracks.folders.link(path, target, edit.time)
            return  # a link is not a file; its target is handled under its own path
        if self._tracks.folders.is_link(path):
            self._tracks.folders.unlink(path)
        track = self._tracks.known(path)
        if track is None and entry is not None:
            track = self._tracks.of(path)
        if track is None or track.path != path:
            return
        content = None if entry is None else self._content(entry[1])
        latest = edit.time if edit.until is None else edit.until
        pending = [
            later
            for later in self._later.get(track.path, ())
            if later.message_id == edit.message_id or (started(later) <= latest and edit.time <= later.time)
        ]
        if self._is_race(track, pending, content) or observe.is_outdated(track, edit, content):
            return
        if not observe.holds(track, content) and any(later.message_id != edit.message_id for later in pending):
            # The tree may show what a call under way has done or not, so the call's result is not certain.
            track.unended_until = max(track.unended_until, latest + 1)
        before = root.before(path)
        previous = None
        if before is not None:
            old = self._entry(root, before.tree, path)
            previous = "" if old is None else None if old[0] == trees.UNKNOWN else old[1]
        observation = observe.Observation(
            kind=SNAPSHOT,
            evidence=_evidence(edit),
            content=content,
            previous=previous,
            since=before.number if before is not None else 0,
            mode=0 if entry is None else entry[0],
            is_fresh=is_fresh,
            may_ignore=content is None and self._may_ignore(root, edit.blob, path),
            largest=observe.LARGE if (release(edit.version) or _LEAVES_OUT) >= _LEAVES_OUT else 1 << 62,
            is_captured=entry is None or entry[1] == _EMPTY or self._objects.has(entry[1]),
        )
        observe.observe(track, edit, observation)

    def _content(self, id_: str) -> Content:
        # The empty file need not have been captured: its hash says all.
        return Content(b"") if id_ == _EMPTY else Content(None, id_=id_, load=self._objects.blob)

    def _is_race(self, track: Track, pending: Sequence[FileEdit], content: Content | None) -> bool:
        """Whether the tree already shows the result of a call that is under way: the snapshot was taken too late."""
        if not pending or content is None:
            return False
        text = track.text if track.exists else ""
        if any(later.operation is Operation.WRITE and self._may_format(later) for later in pending):
            return True  # it may have the text after a formatter, which the call does not record
        for later in pending:
            text = later.content if text is None else changes.outcome(text, later)
            if text is not None and Content(text.encode("utf-8", "replace")).id == content.id:
                return True
        return False


def _evidence(edit: FileEdit) -> str:
    return f"snapshot tree {edit.blob[:12]} at the {edit.note or 'end'} of a step"
