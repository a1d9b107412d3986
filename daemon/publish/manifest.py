"""The manifest of a tree: which pages are ours, and how to recognise them.

Of each page it has ``sha256``, the hash of its body as it was made; of a Markdown page also ``body``, the signature by
which the page is recognised whatever its Notes place holds (publish.edits), and ``was``, the signature of the page it
replaced. ``key`` and ``basis`` are those of the `Page`; ``beside`` names the edited page in the same folder that a
current one stands beside. Trees that version 0.1 wrote have ``sha256`` alone, and that of the whole file.
"""

from __future__ import annotations

import stat

import orjson

from daemon.errors import OutputRefused
from daemon.filesystem.durable import Root
from daemon.model import Json
from daemon.publish import journal
from daemon.publish.journal import exists
from daemon.publish.naming import folders_above

MANIFEST = ".reconstitute.json"
FORMAT = 1
_OPTIONAL = ("body", "was", "key", "basis", "beside")


def read(root: Root, folder: str) -> Json | None:
    """The manifest of the tree in `folder`; None where there is none.

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


def known(root: Root, tree: str, folder: str) -> tuple[dict[str, Json], bool]:
    """Pages we wrote in `folder` earlier, by the manifest of `tree` or of a tree around it; whether it has its own.

    Raises:
        OutputRefused: the folder is another tree's, or holds files that are not ours.
    """
    own = read(root, folder)
    if own is not None:
        if own["tree"] != tree:
            text = f"{root.path / folder}: already holds the tree of {own['tree']!r}; name another output directory"
            raise OutputRefused(text)
        return own["pages"], True
    enclosing = [(outer, read(root, outer)) for outer in (*folders_above(folder), "") if folder]
    pages: dict[str, Json] = {}
    for outer, manifest in reversed(enclosing):  # the nearest one's word counts
        prefix = folder.removeprefix(outer).lstrip("/") + "/"
        there = manifest["pages"] if manifest else {}
        pages |= {path.removeprefix(prefix): page for path, page in there.items() if path.startswith(prefix)}
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
