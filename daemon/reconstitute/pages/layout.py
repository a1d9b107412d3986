"""Where each recorded file and folder has its page, and how pages link to one another.

Guarantees: the names are those that `publish` will write (so every link leads to its page), and distinct where a file
system folds case or Unicode forms. Same paths, same layout. It writes nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from itertools import islice

from daemon.publish import names

README = "README.md"


class Layout:
    """Page paths for relative file paths (``src/app.py``) and the folders above them ("" is the target itself).

    A folder's page comes before any file's: a recovered file ``README`` is the one that gets a number. The `large`
    files have a text beside their page (``src/data.json.txt``) that holds the whole of them. `sessions` are the wanted
    paths of session pages, which have precedence over files, so that their names depend on no file.
    """

    def __init__(self, files: Iterable[str], large: Iterable[str] = (), sessions: Sequence[str] = ()) -> None:
        ordered, texts = sorted(set(files)), sorted(set(large))
        found = {folder for path in ordered for folder in ancestors(path)}
        folders = ["", *sorted(found, key=lambda folder: (folder.count("/"), folder))]
        wanted = [posixpath.join(folder, README) for folder in folders]
        pages = iter(
            names([*wanted, *sessions, *(f"{path}.md" for path in ordered), *(f"{path}.txt" for path in texts)])
        )
        self._folders = dict(zip(folders, pages, strict=False))
        self.sessions = tuple(islice(pages, len(sessions)))
        self._files = dict(zip(ordered, pages, strict=False))
        self._texts = dict(zip(texts, pages, strict=True))

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders, the target first, then by depth and name."""
        return tuple(self._folders)

    def folder(self, folder: str) -> str:
        """The page of a folder."""
        return self._folders[folder]

    def file(self, path: str) -> str:
        """The page of a file."""
        return self._files[path]

    def beside(self, path: str) -> str:
        """The text beside the page of a large file."""
        return self._texts[path]


def ancestors(path: str) -> list[str]:
    """The folders above a relative path, outermost first, without "" itself."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def between(page: str, other: str) -> str:
    """The relative path from one page to another."""
    return posixpath.relpath(other, posixpath.dirname(page) or ".")
