"""Recognises published pages: which are ours, by the manifest, and which a person has edited or deleted since.

`PageChangeCheck` is a cheap check. It reads a page only if its stamp (`lstat`) has changed; writing in a Notes section
is no change. It is a hint, like a watch: the next run finds what it misses.

The manifest of a tree says which pages are ours and how to recognise them. For each page it has ``sha256``, the hash of
its body as rendered. For a Markdown page it also has ``body``, the signature that recognises the page whatever its
Notes section holds (`signature`), and ``was``, the signature of the page it replaced. ``key`` and ``basis`` are those
of the `Page`; ``beside`` of a current page names the edited page in the same folder. Trees of version 0.1 have only
``sha256``, of the whole file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

import orjson

from daemon.errors import OutputRefused
from daemon.filesystem import regular_file
from daemon.filesystem.durable import Root
from daemon.model import Json
from daemon.publish import journal
from daemon.publish.journal import exists, sha256
from daemon.publish.naming import folders_above

MANIFEST = ".reconstitute.json"
FORMAT = 1
_OPTIONAL = ("body", "was", "key", "basis", "beside")


def read_manifest(root: Root, folder: str) -> Json | None:
    """The manifest of the tree in `folder`; None if there is none.

    Raises:
        OutputRefused: it is damaged, or of another version.
    """
    path = f"{folder}/{MANIFEST}".lstrip("/")
    data = root.read(path)
    if data is None:
        return None
    try:
        manifest = orjson.loads(data)
        is_sound = manifest["format"] == FORMAT and isinstance(manifest["tree"], str)
        if is_sound and all(map(_is_sound, manifest["pages"].values())):
            return dict(manifest)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        pass
    raise OutputRefused(f"{root.path / path}: damaged, or of another version; move the folder away to write it anew")


def known_pages(root: Root, tree: str, folder: str) -> tuple[dict[str, Json], bool]:
    """(pages that we wrote in `folder`, by its manifest or that of an enclosing tree; whether it has its own).

    Raises:
        OutputRefused: the folder is another tree's, or holds files that are not ours.
    """
    own_manifest = read_manifest(root, folder)
    if own_manifest is not None:
        if own_manifest["tree"] != tree:
            tree_name = own_manifest["tree"]
            text = f"{root.path / folder}: already holds the tree of {tree_name!r}; name another output directory"
            raise OutputRefused(text)
        return own_manifest["pages"], True
    enclosing = [(outer, read_manifest(root, outer)) for outer in (*folders_above(folder), "") if folder]
    pages: dict[str, Json] = {}
    for outer, manifest in reversed(enclosing):  # the nearest one wins
        prefix = folder.removeprefix(outer).lstrip("/") + "/"
        entries = manifest["pages"] if manifest else {}
        pages |= {path.removeprefix(prefix): page for path, page in entries.items() if path.startswith(prefix)}
    if not pages and not _is_vacant(root, folder):
        text = f"{root.path / folder}: holds files that are not ours; move them away or name another output directory"
        raise OutputRefused(text)
    return pages, False


def _is_sound(page: Json) -> bool:
    return isinstance(page["sha256"], str) and all(isinstance(page.get(name, ""), str) for name in _OPTIONAL)


def _is_vacant(root: Root, folder: str) -> bool:
    """Whether a folder holds nothing but other trees of ours, and folders on the way to them."""
    for name in root.list(folder):
        path = f"{folder}/{name}".lstrip("/")
        if path == journal.STAGING or exists(root, f"{path}/{MANIFEST}"):
            continue
        status = root.stat(path)
        if status is None or not stat.S_ISDIR(status.st_mode) or not _is_vacant(root, path):
            return False
    return True


OPEN = b"<!-- notes: what you write between these marks is kept -->"
CLOSE = b"<!-- /notes -->"
EMPTY = b"\n\n"
_HEADING = b"\n## Notes\n\n"
_MOST_MARKS = 50
"""Opening marks that are tried; each costs a hash of the page up to it."""
_BOM = b"\xef\xbb\xbf"
SLACK_NS = 50_000_000
"""The clock of file stamps may be some milliseconds behind."""


def has_place(path: str) -> bool:
    """Whether a page of this name has a Notes section; only Markdown pages have one."""
    return path.casefold().endswith(".md")


def composed(body: bytes, notes: bytes = EMPTY) -> bytes:
    """The page: `body`, then the Notes section with the bytes `notes` between its marks."""
    newline = b"" if body.endswith(b"\n") or not body else b"\n"
    return b"".join((body, newline, _HEADING, OPEN, notes, CLOSE, b"\n"))


def signature(body: bytes) -> str:
    """The hash of everything before the opening mark of a page with this body, as `own_notes` compares it."""
    return _normal(composed(body).rpartition(OPEN)[0])


def own_notes(data: bytes, signatures: Collection[str]) -> tuple[str, bytes] | None:
    """(signature, text between the marks) of a page with one of these signatures; None for any other page.

    The marks must end the page. They may also occur in its body, as in a quoted file, and in what a person wrote.
    """
    end = data.rfind(CLOSE)
    if end < 0 or data[end + len(CLOSE) :].strip():
        return None
    starts = [match.start() for match in re.finditer(re.escape(OPEN), data[:end])]
    for start in starts[-_MOST_MARKS:]:
        candidate = _normal(data[:start])
        if candidate in signatures:
            return candidate, data[start + len(OPEN) : end]
    return None


def joined(pieces: Collection[bytes]) -> bytes:
    """Several notes as one, in order, without empty ones."""
    texts = [piece for piece in pieces if piece.strip()]
    return b"\n".join(texts) if texts else EMPTY


def _normal(text: bytes) -> str:
    lines = (line.rstrip(b" \t\r") for line in text.removeprefix(_BOM).split(b"\n"))
    return hashlib.sha256(b"\n".join(lines).rstrip(b"\n")).hexdigest()


Stamp = tuple[int, int, int, int, int]


def stamp(path: str) -> Stamp | None:
    """Type, size, modification and change time (ns) and inode of the file at `path`; None if nothing is there.

    Every write changes one of them: programs can set all but the change time.

    Raises:
        OSError: they cannot be read.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class PageChangeCheck:
    """The pages of one tree, as published by a run that began at `began_ns`."""

    def __init__(self, output_root: Path, folder: str, began_ns: int) -> None:
        self._pages: dict[str, tuple[str, Stamp | tuple[()] | None]] = {}
        self._edited: set[str] = set()
        with Root(output_root) as root:
            listed = (read_manifest(root, folder) or {"pages": {}})["pages"]
        for name, entry in listed.items():
            path = os.path.join(output_root, folder, name)
            if entry.get("beside"):
                self._edited.add(os.path.join(os.path.dirname(path), entry["beside"]))
            last_stamp = _stamp(path)
            # A page written during the run is read once, because a person may have written it.
            is_new = last_stamp is not None and max(last_stamp[2:4]) >= began_ns - SLACK_NS
            self._pages[path] = (str(entry.get("body", entry["sha256"])), () if is_new else last_stamp)

    @property
    def paths(self) -> list[str]:
        """The pages."""
        return list(self._pages)

    def has_changed(self) -> bool:
        """Whether a page has changed since the last check, apart from its Notes section."""
        return any(self._is_other(path, *page) for path, page in self._pages.items())

    def _is_other(self, path: str, body: str, last_stamp: Stamp | tuple[()] | None) -> bool:
        now = _stamp(path)
        if now == last_stamp:
            return False
        self._pages[path] = (body, now)
        return path in self._edited or not _is_ours(path, body)


def _stamp(path: str) -> Stamp | None:
    try:
        return stamp(path)
    except OSError:
        return None


def _is_ours(path: str, body: str) -> bool:
    try:
        with regular_file.opened(path) as file:
            data = file.read()
    except OSError:
        return False
    return own_notes(data, {body}) is not None or sha256(data) == body
