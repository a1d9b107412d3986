"""Compares a tree's folder with its new pages, and stages the difference as operations; nothing else is written.

What a person wrote has priority: a page whose body they edited stays as it is, with the current one beside it, and the
text in a Notes section follows its page to a new name. A page is ours as long as the manifest has its body.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from daemon.errors import OutputRefused
from daemon.filesystem.durable import Root
from daemon.model import Json, Page
from daemon.publish import edits
from daemon.publish.edits import MANIFEST
from daemon.publish.journal import CURRENT, Staging, as_json, current, exists, sha256
from daemon.publish.naming import beside, folded, folders_above, names
from daemon.redact import fingerprint, redact

_FORMER = "former"
"""The word in the new name of a page with notes whose name another page takes."""


@dataclass(slots=True)
class Published:
    """The result for each page; paths are relative to the tree's folder, as written.

    `kept` were edited by a person, `taken` are names where a file of theirs is, `nested` lie in the folder of another
    target's tree; none of these was touched. `current` maps a kept page to the current one beside it. `retired` are
    former pages that are kept because a person wrote in them. `renamed` has (requested path, written name) where they
    differ.
    """

    folder: str
    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    current: dict[str, str] = field(default_factory=dict)
    retired: list[str] = field(default_factory=list)

    @property
    def notices(self) -> list[str]:
        """A sentence for the user about each page that is kept for them."""
        notices = []
        for page in self.kept:
            goal = self.current.get(page)
            where = f"; the current page is {goal}" if goal else "; nothing can be written beside it"
            notices.append(f"{page} was edited by hand and is kept as it is{where}")
        return notices + [
            f"{page} is no longer a page of this tree; it is kept because you wrote in it" for page in self.retired
        ]


@dataclass(frozen=True, slots=True)
class _File:
    """The file at a name. `sha256` is None if nothing is there, "" if a folder or link is.

    `body` is the signature by which the page is ours, "" if it is not. `notes` are a person's notes in a page of ours.
    """

    sha256: str | None = None
    body: str = ""
    notes: bytes = edits.EMPTY

    @property
    def has_notes(self) -> bool:
        return bool(self.body and self.notes.strip())


class _Draft:
    """A page to publish; it is rendered when its content is first used."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.has_place = edits.has_place(name)
        # With other redaction rules, the same content gives another page.
        self.basis = hashlib.sha256(f"{page.basis}\0{fingerprint()}".encode()).hexdigest() if page.basis else ""

    @cached_property
    def data(self) -> bytes:
        return printable(self.page.text).encode()

    @cached_property
    def sha256(self) -> str:
        return sha256(self.data)

    @cached_property
    def body(self) -> str:
        return edits.signature(self.data) if self.has_place else self.sha256

    def has_basis_of(self, entry: Json) -> bool:
        return bool(self.basis) and entry.get("basis") == self.basis and ("body" in entry) == self.has_place

    def is_as(self, entry: Json) -> bool:
        """Whether this manifest entry describes the same page."""
        is_alike = ("body" in entry) == self.has_place
        return self.has_basis_of(entry) or (is_alike and entry["sha256"] == self.sha256)

    def entry(self, old: Json, was: str, main: str) -> Json:
        """The page's manifest entry. `old` has the same content, so its fields about the content are kept."""
        if old:
            fields: Json = {name: old[name] for name in ("sha256", "body", "was") if name in old}
        else:
            fields = {"sha256": self.sha256}
            fields |= {"body": self.body} if self.has_place else {}
            fields |= {"was": was} if self.has_place and was not in {"", self.body} else {}
        fields["sources"] = sorted(set(self.page.sources))
        optional = {"key": self.page.key, "basis": self.basis, "beside": main}
        return fields | {name: value for name, value in optional.items() if value}


class Plan:
    """Stages the operations that are needed; `result` has what they will do to each page."""

    def __init__(self, root: Root, tree: str, folder: str, pages: Sequence[Page], staging: Staging) -> None:
        self._root = root
        self._tree = printable(tree)
        self._staging = staging
        self.result = Published(folder)
        self._old, has_manifest = edits.known_pages(root, self._tree, folder)
        self._beside: dict[str, list[str]] = {}
        self._by_key: dict[str, list[str]] = {}
        for name, entry in sorted(self._old.items()):
            if entry.get("beside"):
                self._beside.setdefault(posixpath.join(posixpath.dirname(name), entry["beside"]), []).append(name)
            elif entry.get("key"):
                self._by_key.setdefault(entry["key"], []).append(name)
        self._new: dict[str, Json] = {}
        self._trees: dict[str, bool] = {}
        self._moved: set[str] = set()  # names whose notes have gone to another page
        self._displaced: list[str] = []  # names with notes that another page takes
        if pages or has_manifest:
            paths = names([page.path for page in pages])
            self._reserved = {folded(name) for name in paths}
            self._used = self._reserved | {folded(name) for name in self._old}
            self._used |= {folder for name in self._reserved for folder in folders_above(name)}
            for page, name in zip(pages, paths, strict=True):
                self._plan_page(page, name)
            self._retire()
            self._rename_displaced()
            self._finish()

    def _plan_page(self, page: Page, name: str) -> None:
        if name != page.path:
            self.result.renamed.append((page.path, name))
        if self._is_nested(name):
            self.result.nested.append(name)
            return
        draft, old = _Draft(page, name), self._old.get(name)
        entries = [self._old[candidate] for candidate in (name, *self._beside.get(name, ())) if candidate in self._old]
        is_new = not any(draft.has_basis_of(entry) for entry in entries)
        file = self._inspect(name, entries, draft.body if is_new else "")
        if file.sha256 is None or file.body:
            is_same = old is not None and not old.get("beside") and old.get("key", "") in {"", page.key}
            self._place(draft, name, file, old if is_same else None)
        elif old is None:
            self.result.taken.append(name)
        else:
            self.result.kept.append(name)
            self._new[name] = old
            goal = self._beside_name(name)
            if goal:
                self.result.current[name] = goal
                before = self._old.get(goal)
                file = self._inspect(goal, [before] if before else [])
                self._place(draft, goal, file, before, main=posixpath.basename(name))

    def _place(self, draft: _Draft, name: str, file: _File, old: Json | None, main: str = "") -> None:
        """Put the page at `name`, where nothing or a page of ours is (`file`); `old` is the entry of the same page."""
        is_own = old is not None or name not in self._old  # not in the manifest: a person put a copy of this page here
        pieces = [file.notes] if is_own else []
        if file.has_notes and not is_own:
            self._displaced.append(name)
        main_name = posixpath.join(posixpath.dirname(name), main) if main else name
        brought = list(self._notes_for(draft.page, name, main_name))
        is_current = old is not None and file.body == old.get("body", old["sha256"]) and draft.is_as(old)
        if is_current and not brought:
            self._new[name] = draft.entry(old or {}, "", main)
            self.result.unchanged.append(name)
            return
        data = draft.data
        if draft.has_place:
            data = edits.composed(data, edits.joined([*pieces, *brought]))
        self._staging.put(self._path(name), data, file.sha256, carries=bool(brought))
        self._new[name] = draft.entry({}, file.body if old else "", main)
        self.result.written.append(name)

    def _notes_for(self, page: Page, goal: str, main: str) -> Iterator[bytes]:
        """Notes to move to the page `main`, now at `goal`: from its former names and the pages beside it."""
        for name in dict.fromkeys([*self._beside.get(main, ()), *self._by_key.get(page.key, ())]):
            if name == goal or name in self._moved or self._is_nested(name):
                continue
            file = self._inspect(name, [self._old[name]])
            if file.has_notes:
                self._moved.add(name)
                yield file.notes

    def _beside_name(self, name: str) -> str:
        """The name of the current page beside an edited one; "" if nothing can be written there."""
        for old in self._beside.get(name, ()):
            file = self._inspect(old, [self._old[old]])
            if folded(old) not in self._reserved and (file.sha256 is None or file.body):
                return old
        return self._free(name, CURRENT)

    def _free(self, name: str, word: str) -> str:
        try:
            self._root.list(self._path(posixpath.dirname(name)))
        except OutputRefused:
            return ""  # a file of the person is in the way of the folder
        for number in itertools.count(1):
            candidate = beside(name, word, number)
            if folded(candidate) not in self._used and not exists(self._root, self._path(candidate)):
                self._used.add(folded(candidate))
                return candidate
        raise AssertionError

    def _retire(self) -> None:
        """Remove pages of ours that no longer belong to the tree, unless a person wrote in them."""
        for name in sorted(self._old.keys() - self._new.keys()):
            if self._is_nested(name):
                continue
            file = self._inspect(name, [self._old[name]])
            if file.sha256 is None:
                continue
            if file.body and (name in self._moved or not file.has_notes):
                self._staging.remove(self._path(name), file.sha256)
                self.result.removed.append(name)
            else:
                self._new[name] = self._old[name]
                self.result.retired.append(name)

    def _rename_displaced(self) -> None:
        """Rename pages with notes whose name another page takes, unless the notes have moved to another page."""
        for name in self._displaced:
            goal = "" if name in self._moved else self._free(name, _FORMER)
            data = self._root.read(self._path(name)) if goal else None
            if data is not None:
                self._staging.put(self._path(goal), data, None, carries=True)
                self._new[goal] = {key: value for key, value in self._old[name].items() if key != "beside"}
                self.result.retired.append(goal)

    def _finish(self) -> None:
        renamed = sorted([printable(path), name] for path, name in self.result.renamed)
        data = as_json({"format": edits.FORMAT, "tree": self._tree, "pages": self._new, "renamed": renamed})
        before = current(self._root, self._path(MANIFEST))
        if before != sha256(data):
            self._staging.put(self._path(MANIFEST), data, before)

    def _inspect(self, name: str, entries: Iterable[Json], also: str = "") -> _File:
        """The file at `name`. It is ours if one of these entries, or the signature `also`, has its body."""
        try:
            data = self._root.read(self._path(name))
        except OutputRefused:
            return _File("")
        if data is None:
            return _File()
        digest, digests = sha256(data), {also}
        for entry in entries:
            digests |= {str(entry.get("body", entry["sha256"])), str(entry.get("was", ""))}
        notes = edits.own_notes(data, digests)
        if notes is not None:
            return _File(digest, notes[0], notes[1])
        return _File(digest, digest if digest in digests else "", edits.EMPTY)

    def _path(self, name: str) -> str:
        return f"{self.result.folder}/{name}".strip("/")

    def _is_nested(self, name: str) -> bool:
        folders = folders_above(name)
        for folder in folders:
            if folder not in self._trees:
                self._trees[folder] = exists(self._root, f"{self._path(folder)}/{MANIFEST}")
        return any(self._trees[folder] for folder in folders)


def printable(text: str) -> str:
    """`text` redacted, with lone surrogates escaped, so that it can be encoded."""
    return redact(text).encode("utf-8", "backslashreplace").decode()
