"""Loads the recorded events that the histories of some paths depend on, oldest first, each once.

A path's history depends on its own events, on those of the folders above it, and, if a move or a copy brought something
there, on the same events of the place it came from. Copies of a parent's calls in a fork are left out, states after a
turn get the time of the turn's end, and the effects of reverts are added as events.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from daemon.archive import Archive
from daemon.files.events.revert_records import SessionDiffCheck, check_session_diff
from daemon.files.events.reverts import Reverts
from daemon.files.trees import FOLDER_MODE, above, is_beneath, is_in
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.edits import NEVER_ENDED
from daemon.transcript.evidence.recorded_diffs import AFTER_SESSION, AFTER_TURN, BEFORE_REVERT, MAYBE_REVERTED
from daemon.transcript.evidence.steps import last_finish

_LONGEST_MS = 120_000
"""OpenCode's own limit for a command of the shell."""

_CARRIERS = frozenset({Operation.MOVE, Operation.COPY})
_Key = tuple[int, str, int]
_LAST: _Key = (1 << 62, "", 0)


class Loader:
    """Reads events from an archive; make one per replay, because it remembers what it has read."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._aliases = sorted(archive.files.aliases().items())
        self._events: dict[tuple[int, str, int, str], FileEdit] = {}
        self._carriers: list[FileEdit] = []
        self._looked_at: dict[str, int] = {}  # how many of those were looked at for a prefix
        self._read: set[str] = set()
        self._read_whole: set[str] = set()
        self._requested: dict[str, _Key] = {}
        self._ends: dict[str, int] = {}

    def renamed(self, path: str) -> str:
        """The present name of a path, by the aliases of folders."""
        for old, new in self._aliases:
            if is_beneath(path, old):
                path = new + path[len(old) :]
        return path

    def events(self, prefixes: Iterable[str]) -> list[FileEdit]:
        """The events for all paths at or beneath `prefixes`; `prefixes_read` then says which prefixes were read."""
        waiting = [(prefix, _LAST) for prefix in prefixes]
        while waiting:
            prefix, before = waiting.pop()
            if self._is_requested(prefix, before):
                continue
            self._requested[prefix] = before
            self._looked_at.pop(prefix, None)
            known = len(self._carriers)
            self._read_prefix(prefix)
            waiting += [(old, before) for old in self.older_names(prefix)]
            # Earlier prefixes too, if moves were revealed that concern them, as by an alias.
            for requested in list(self._requested) if len(self._carriers) > known else [prefix]:
                waiting += self._origins(requested)
        checks = self._session_diff_checks()
        edits = Reverts(self._archive).applied(ordered(self._events.values()))
        weighed = (event for edit in edits for event in self._weighed(edit, checks))
        return sorted(map(self._timed, weighed), key=_order)

    @property
    def requested(self) -> Collection[str]:
        """The prefixes of which all events were read, those beneath others too."""
        return self._requested.keys()

    def has_read(self, folder: str) -> bool:
        """Whether the events at a folder were read."""
        return folder in self._read or is_in(folder, self._requested)

    @property
    def prefixes_read(self) -> tuple[str, ...]:
        """The prefixes of which all events were read: the requested ones, and where their content came from."""
        return tuple(p for p in self._requested if p == "/" or not is_in(posixpath.dirname(p), self._requested))

    def _read_prefix(self, prefix: str) -> None:
        """Read the events at and beneath a prefix, and of the folders above it."""
        if is_in(prefix, self._read_whole):
            return
        self._read_whole.add(prefix)
        for folder in above(prefix):
            if folder not in self._read:
                self._read.add(folder)
                self._keep(self._archive.files.edits(folder))
        self._keep(self._archive.files.edits(prefix))
        self._keep(self._archive.files.beneath(prefix))

    def _origins(self, prefix: str) -> list[tuple[str, _Key]]:
        """The origins of moves and copies to `prefix`, and their times; only earlier events of an origin matter.

        Reads only the moves and copies since the last call for this prefix.
        """
        before, start = self._requested[prefix], self._looked_at.get(prefix, 0)
        self._looked_at[prefix] = len(self._carriers)
        origins: list[tuple[str, _Key]] = []
        for edit in self._carriers[start:]:
            if edit.operation is Operation.RUN:
                # The program's text, and those of the files beside it, show whether it wrote anything.
                if is_beneath(prefix, edit.path):
                    places = [edit.path, *([] if edit.other is None else [posixpath.dirname(edit.other)])]
                    origins += [(place, _order(edit)) for place in places]
                continue
            sources = [(source, _order(edit)) for source in _sources(edit, prefix)] if _order(edit) < before else []
            is_moved = edit.operation is Operation.MOVE and (
                is_beneath(prefix, edit.path) or is_beneath(edit.path, prefix)
            )
            if edit.into is None and (sources or is_moved):
                origins.append((edit.other or "", _order(edit)))  # its content shows whether it was a folder
            origins += sources
        return [(place, until) for place, until in origins if not self._is_requested(place, until)]

    def _is_requested(self, place: str, until: _Key) -> bool:
        return any(
            until <= self._requested[folder] for folder in (place, *above(place), "/") if folder in self._requested
        )

    def _keep(self, edits: Iterable[FileEdit]) -> None:
        for edit in edits:
            self._archive.secrets.learn(edit.session_id)  # a file's text is redacted with the secrets of its sessions
            renamed = self._renamed(edit) if self._aliases else edit
            key = renamed.time, renamed.part_id, renamed.number, renamed.path
            if key not in self._events and _is_carrier(renamed):
                self._carriers.append(renamed)
            self._events[key] = renamed

    # -- folders that were renamed outside of any session --------------------------------------------------------

    def older_names(self, prefix: str) -> Iterator[str]:
        """Where what is at or beneath `prefix` now was before, by the aliases of folders."""
        for old, new in self._aliases:
            if is_beneath(prefix, new):
                yield old + prefix[len(new) :]
            elif is_beneath(new, prefix):
                yield old

    def _renamed(self, edit: FileEdit) -> FileEdit:
        path, other = self.renamed(edit.path), edit.other and self.renamed(edit.other)
        if (path, other) == (edit.path, edit.other):
            return edit
        if edit.operation is Operation.SNAPSHOT and is_beneath(edit.path, other or path) != is_beneath(
            path, other or path
        ):
            # The folder is in another work tree now, or in none: of the tree only this folder counts.
            entry = self._archive.objects.find(edit.blob, edit.path[len((edit.other or "").rstrip("/")) + 1 :])
            blob = entry[1] if entry is not None and entry[0] == FOLDER_MODE else ""
            return replace(edit, path=path, other=path, blob=blob)
        # What its text calls by the old name would be looked for there.
        return replace(edit, path=path, other=other, launch=None)

    # -- times ---------------------------------------------------------------------------------------------------

    def _timed(self, edit: FileEdit) -> FileEdit:
        if edit.until == NEVER_ENDED:
            return replace(edit, until=self._latest_end(edit))
        if edit.tool != "summary":
            return edit
        if edit.note.startswith(AFTER_TURN):
            return replace(edit, time=max(edit.time, self._turn_end(edit)), started=edit.time)
        if edit.note.startswith(AFTER_SESSION):
            # Not the file's own time: where records were copied it may be another, or only of whole seconds.
            return replace(edit, time=self._session_end(edit.session_id) or edit.time, started=0)
        return edit

    def _latest_end(self, edit: FileEdit) -> int:
        """The latest possible effect of a call without an end: when the session went on, or after OpenCode's limit."""
        latest = edit.time + _LONGEST_MS
        order = self._archive.message_ids(edit.session_id)
        start = order.index(edit.message_id) + 1 if edit.message_id in order else len(order)
        following = self._archive.state(order[start]) if start < len(order) else None
        return min(latest, following["created"]) if following is not None else latest

    def _session_diff_checks(self) -> dict[str, SessionDiffCheck]:
        """For each session with a session_diff file, that file compared with its trees."""
        trees: dict[str, list[FileEdit]] = {e.session_id: [] for e in self._events.values() if _is_session_diff(e)}
        for edit in self._events.values():
            if edit.operation is Operation.SNAPSHOT and edit.session_id in trees:
                trees[edit.session_id].append(edit)
        for session_id, known in trees.items():
            session = self._archive.session(session_id)
            if not known and session is not None:  # taken in another folder than that of the file
                edits = self._archive.files.edits(session.directory)
                known += [edit for edit in edits if edit.session_id == session_id]
        return {session_id: check_session_diff(self._archive, session_id, known) for session_id, known in trees.items()}

    def _weighed(self, edit: FileEdit, checks: dict[str, SessionDiffCheck]) -> Iterator[FileEdit]:
        """The edit itself; of a session_diff file only what is certain even with an unrecorded revert."""
        check = checks.get(edit.session_id)
        if check is None or not _is_session_diff(edit):
            yield edit
            return
        is_journaled = self._is_journaled(edit.session_id)
        if not edit.note.startswith(AFTER_SESSION):
            if not is_journaled and (check.is_prompted or not check.is_matched):
                yield edit
        elif is_journaled or check.is_matched or not (check.is_prompted or check.is_kept):
            yield edit
        else:
            yield replace(edit, time=edit.time - 1, note=BEFORE_REVERT)
            yield replace(edit, operation=Operation.UNCLEAR, note=MAYBE_REVERTED, content=None)

    def _is_journaled(self, session_id: str) -> bool:
        return any(self._archive.files.session_extra(session_id).get("reverts", {}).values())

    def _turn_end(self, edit: FileEdit) -> int:
        """When the last step of the answer to a prompt ended, epoch ms; its diff has nothing later."""
        if edit.message_id not in self._ends:
            order = self._archive.message_ids(edit.session_id)
            end = edit.time
            start = order.index(edit.message_id) + 1 if edit.message_id in order else len(order)
            for message_id in order[start:]:
                message = self._archive.message(message_id)
                if message is None or message.role != "assistant":
                    break
                end = max(end, last_finish(message) or 0)
            self._ends[edit.message_id] = end
        return self._ends[edit.message_id]

    def _session_end(self, session_id: str) -> int:
        """When the last step of a session ended, epoch ms, which is the state in session_diff; 0 if unknown."""
        if session_id not in self._ends:
            messages = map(self._archive.message, reversed(self._archive.message_ids(session_id)))
            ends = (last_finish(message) for message in messages if message is not None)
            self._ends[session_id] = next(filter(None, ends), 0)
        return self._ends[session_id]


def _is_session_diff(edit: FileEdit) -> bool:
    return edit.tool == "summary" and not edit.message_id


def _is_carrier(edit: FileEdit) -> bool:
    """Whether this event's effect on a path depends on other paths."""
    if edit.operation is Operation.RUN:
        return edit.content is not None or edit.other is not None
    return edit.operation in _CARRIERS and edit.other is not None


def _order(edit: FileEdit) -> _Key:
    # The diff of a turn comes after the last tree of that turn, although their times are the same.
    behind = "~" if edit.tool == "summary" and edit.note.startswith(AFTER_TURN) else ""
    return edit.time, behind + edit.part_id, edit.number


def _sources(edit: FileEdit, prefix: str) -> Iterator[str]:
    """The former paths of the files that a move or copy brought to `prefix` or beneath it."""
    destination = edit.other or ""
    targets = []
    if edit.into is not True:
        targets.append(destination)
    if edit.into is not False:
        targets.append(posixpath.join(destination, posixpath.basename(edit.path)))
    for target in targets:
        if is_beneath(target, prefix):
            yield edit.path
        elif is_beneath(prefix, target):
            yield edit.path + prefix[len(target) :]


def ordered(edits: Iterable[FileEdit]) -> list[FileEdit]:
    """`edits` by time, without copies of a parent's calls in a fork, which have the same times."""
    edits_in_order: list[FileEdit] = []
    known: dict[tuple[int, str, Operation], list[FileEdit]] = {}
    for edit in sorted(edits, key=_order):
        alike = known.setdefault((edit.time, edit.path, edit.operation), [])
        if not any(
            earlier.session_id != edit.session_id and _without_history(earlier) == _without_history(edit)
            for earlier in alike
        ):
            alike.append(edit)
            edits_in_order.append(edit)
    return edits_in_order


def _without_history(edit: FileEdit) -> FileEdit:
    return replace(edit, session_id="", message_id="", part_id="", version="", number=0)
