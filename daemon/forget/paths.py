"""Takes what is recorded of a file, or of everything beneath a folder, out of the records that stay.

The rule is that of `exclude.paths`, over what is archived (daemon.exclude.paths): parts that name the path, or whose
recorded edits are of it, keep only what they were. Snapshots lose its entries, lists of diffs and todos what names it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from daemon import records
from daemon.archive import Archive, Batch, keys
from daemon.archive.forgotten import LARGE
from daemon.archive.removal import Removal
from daemon.exclude import PATHS
from daemon.exclude.paths import PathExclusion, part_names
from daemon.files.trees import is_beneath
from daemon.ingest import Evidence
from daemon.model import Json, Message, Operation, Part, Session
from daemon.transcript.tool_calls import working_directory, worktree

_PIECE = 1 << 20

Pulse = Callable[[int], None]


class PathRemoval:
    """One removal of these absolute paths, which are one file or folder under all names it is recorded by."""

    def __init__(
        self, archive: Archive, batch: Batch, removal: Removal, evidence: Evidence, places: tuple[str, ...]
    ) -> None:
        self._archive, self._batch, self._removal, self._evidence = archive, batch, removal, evidence
        self._places = places
        self._recorded: dict[str, set[str]] = defaultdict(set)
        """By message, the parts that have recorded edits of the paths."""
        self.messages: set[str] = set()
        """Messages of which something goes."""
        self.sessions: set[str] = set()
        """Sessions of which something goes, their messages included."""
        self.parts = 0
        self.entries = 0
        """Records beside the parts of which something goes."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.parts or self.entries or self.sessions or self._removal.places)

    def run(self, pulse: Pulse) -> None:
        """Put all of it into the batch; the caller finishes the removal."""
        for place in self._places:
            for edit in (*self._archive.files.edits(place), *self._archive.files.beneath(place)):
                self._recorded[edit.message_id].add(edit.part_id)
        self._snapshots()
        done = 0
        for session_id in list(self._archive.all_session_ids()):
            session = self._archive.session(session_id)
            for message in self._archive.messages(session_id):
                self._message(message, session)
                done += 1
                pulse(done)
            if session is not None:
                self._session(session)
        for session_id in self.sessions:
            self._removal.forgotten_paths(session_id, self._places)
        self._large_records()
        self._queue()
        for old, new in self._archive.files.aliases().items():
            if self._is_meant(old) or self._is_meant(new):
                self._archive.files.set_alias(self._batch, old, None)

    def _is_meant(self, path: str) -> bool:
        return any(is_beneath(path, place) for place in self._places)

    def _exclusion(self, part_ids: Iterable[str] = ()) -> PathExclusion:
        return PathExclusion(self._is_meant, places=self._places, concerns=frozenset(part_ids).__contains__)

    # -- messages ------------------------------------------------------------------------------------------------

    def _message(self, message: Message, session: Session | None) -> None:
        exclusion = self._exclusion(self._recorded.get(message.id, ()))
        self._outputs(exclusion, message, session)
        shortened, reasons = exclusion.message(message, session)
        versions = list(self._versions(exclusion, message, session))
        replaced = self._replaced(message, shortened) if shortened is not None and PATHS in reasons else {}
        if not replaced and not versions:
            return
        for key, raw in versions:
            self._removal.version(key, raw)
        if shortened is not None and replaced:
            peek = partial(self._archive.messages, message.session_id)
            edits = self._evidence.of_message(self._batch, shortened, session, peek)
            self._removal.shorten(shortened, replaced, edits)
        self.parts += sum(map(bool, replaced))
        self.entries += len(versions) + ("" in replaced)
        self._note(message, [name for part in message.parts if part.id in replaced for name in part_names(part)])

    def _replaced(self, message: Message, shortened: Message) -> dict[str, bytes]:
        replaced = {} if shortened.raw == message.raw else {"": shortened.raw}
        for part, short in zip(message.parts, shortened.parts, strict=True):
            raw = short.raw
            if part.raw != raw:
                replaced[part.id] = raw
        return replaced

    def _versions(
        self, exclusion: PathExclusion, message: Message, session: Session | None
    ) -> Iterable[tuple[bytes, bytes]]:
        """The versions that were kept aside and concern the path."""
        for key, raw in self._archive.versions_of(message.id):
            if key.startswith(b"msg:"):
                head = records.message(raw, (), message.session_id)
                if exclusion.head(head, session, whole=True) is not head:
                    yield key, raw
            elif exclusion.concerns(_part(raw, message), message, session):
                yield key, raw

    def _outputs(self, exclusion: PathExclusion, message: Message, session: Session | None) -> None:
        """Remove spilled outputs that name the path, although the part does not."""
        bases = [base for base in (working_directory(message, session), worktree(message, session)) if base]
        for part in message.parts:
            state = records.table(part.data.get("state")) if part.type == "tool" else {}
            path = records.text(records.table(state.get("metadata")).get("outputPath"))
            blob = self._archive.objects.spill(path) if path else None
            text = (self._archive.objects.blob(blob) or b"") if blob else b""
            if text and exclusion.mentions([text.decode("utf-8", "replace")], bases):
                self._removal.output(path)
                self.entries += 1
                self._note(message, ())

    def _note(self, message: Message, part_ids: Iterable[str]) -> None:
        """Keep away what this message had, and the diffs of its turn, which are in the record of the prompt."""
        self.messages.add(message.id)
        self.sessions.add(message.session_id)
        self._removal.forgotten_paths(message.id, self._places, part_ids)
        if prompt := records.text(message.data.get("parentID")):
            self._removal.forgotten_paths(prompt, self._places)

    # -- sessions ------------------------------------------------------------------------------------------------

    def _session(self, session: Session) -> None:
        exclusion, found = self._exclusion(), 0
        meta: Json = records.load_object(self._batch.get(keys.session_meta(session.id)) or b"{}")
        shortened = exclusion.session(session)
        if shortened is not session:
            changed = {"raw": shortened.raw.decode("utf-8", "replace")}
            found += self._batch.put(keys.session_meta(session.id), records.dumps(meta | changed))
        for key, raw in self._archive.beside.versions(session.id):
            former = replace(session, raw=raw)
            if exclusion.session(former) is not former:
                self._removal.version(key, raw)
                found += 1
        found += self._extra(exclusion, session) + self._todos(exclusion, session)
        if found:
            self.entries += found
            self.sessions.add(session.id)

    def _extra(self, exclusion: PathExclusion, session: Session) -> bool:
        """Its reverts, and its diffs with their edits."""
        extra = self._archive.files.session_extra(session.id)
        if not extra:
            return False
        roots = self._roots(session)
        reverts = {
            source: [mark | {"diff": exclusion.revert_diff(records.text(mark.get("diff")), roots)} for mark in marks]
            for source, marks in extra.get("reverts", {}).items()
        }
        changes: Json = {"reverts": reverts} if extra.get("reverts") else {}
        if "diffs" in extra:
            changes["diffs"] = exclusion.diffs(extra["diffs"], roots)
        is_edited = any(self._is_meant(place[0]) for place in extra.get("edits", ()))
        if extra | changes == extra and not is_edited:
            return False
        texts = (records.text(mark.get("diff")) for marks in extra.get("reverts", {}).values() for mark in marks)
        self._removal.forgotten_paths(
            session.id, (), [text for text in texts if not exclusion.revert_diff(text, roots)]
        )
        self._removal.session_extra(session.id, extra | changes, self._is_meant)
        return True

    def _roots(self, session: Session) -> list[str]:
        """The folders that relative names in its data start from."""
        trees = (worktree(message, session) for message in self._archive.messages(session.id))
        root = next((tree for tree in trees if tree.startswith("/")), "")
        return [place for place in dict.fromkeys((root, session.directory)) if place]

    def _todos(self, exclusion: PathExclusion, session: Session) -> bool:
        key = keys.session_todos(session.id)
        by_source: Json = records.load_object(self._batch.get(key) or b"{}")
        kept = {
            source: listing | {"items": exclusion.todos(listing["items"], [session.directory])}
            for source, listing in by_source.items()
        }
        if kept == by_source:
            return False
        texts = (records.text(item.get("content")) for listing in by_source.values() for item in listing["items"])
        gone = [text for text in texts if not exclusion.todos([{"content": text}], [session.directory])]
        self._removal.forgotten_paths(session.id, (), gone)
        return self._batch.put(key, records.dumps(kept))

    # -- snapshots, large records, the queue -----------------------------------------------------------------------

    def _snapshots(self) -> None:
        """Take the paths out of the trees of all snapshots. Of a tree whose folder is not recorded, try those above."""
        known: dict[str, set[str]] = defaultdict(set)
        guessed: dict[str, set[str]] = defaultdict(set)
        for edit in self._archive.files.of_trees():
            if edit.operation is Operation.SNAPSHOT and edit.other:
                known[edit.blob].add(edit.other)
            else:
                guessed[edit.blob].add(edit.path)
        for session in self._archive.sessions():
            for marks in self._archive.files.session_extra(session.id).get("reverts", {}).values():
                for mark in marks:
                    guessed[records.text(mark.get("snapshot"))].add(session.directory)
        for tree, folders in known.items():
            for folder in folders:
                self._tree(tree, folder)
        for tree in guessed.keys() - known.keys() - {""}:
            for folder in {str(above) for path in guessed[tree] for above in (Path(path), *Path(path).parents)}:
                self._tree(tree, folder)

    def _tree(self, tree: str, folder: str) -> None:
        for place in self._places:
            if place == folder or not is_beneath(place, folder):
                continue
            above, _, name = place.rpartition("/")
            inner = above[len(folder.rstrip("/")) :].strip("/")
            entry = self._archive.objects.find(tree, inner)
            if entry is not None and self._removal.entries(entry[1], above, [name]):
                self.entries += 1
                self._archive.files.drop_views(self._batch, place)

    def _large_records(self) -> None:
        """Remove records that are kept as files and have the path's name in them: they are not parsed."""
        names = {place.rpartition("/")[2] for place in self._places}
        needles = [text.encode("utf-8", "replace") for name in names for text in (name, json.dumps(name)[1:-1])]
        for entry in self._archive.large():
            if _holds(Path(entry["file"]), needles):
                self._batch.drop(keys.large(entry["message"], entry["part"]))
                self._archive.forgotten.add(self._batch, LARGE, entry["message"], entry["part"])
                self.entries += 1

    def _queue(self) -> None:
        """Remove what is still to be captured for the path."""
        for name, value in self._archive.objects.capture_queue():
            if self._is_meant(records.text(records.load_object(value).get("place"))):
                self._batch.delete(keys.capture_queue(name))


def _part(raw: bytes, message: Message) -> Part:
    return records.part(raw, message.id, message.session_id)


def _holds(file: Path, needles: list[bytes]) -> bool:
    overlap, tail = max(map(len, needles)), b""
    try:
        with file.open("rb") as opened:
            while piece := opened.read(_PIECE):
                if any(needle in tail + piece for needle in needles):
                    return True
                tail = piece[-overlap:]
    except FileNotFoundError:
        pass
    return False
