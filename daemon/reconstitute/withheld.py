"""Files whose names say that they hold secrets: pages name them, and show nothing of their content.

`restore` and `show` give them all the same, because there the user asks for exactly that file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from daemon.archive import Archive
from daemon.config import Exclude
from daemon.exclude import Exclusion
from daemon.files import FileHistory, Files, Grade, Revision
from daemon.model import Hit, Message, Session
from daemon.path_patterns import PathPatterns
from daemon.private import EXCLUDED, FLAG

SECRET_FILES = (
    ".env", ".env.*", "*.env", "!.env.example", "!.env.sample", "!.env.template", "!example.env", "!sample.env",
    "!template.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa", "id_dsa", "id_ecdsa",
    "id_ed25519", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd", "credentials",
)  # fmt: skip
"""Names of such files, as patterns."""
_IN_CALLS = [name for name in SECRET_FILES if name != "credentials"]
"""Those that are looked for in calls, where the others would be plain words."""

REASON = "its content is withheld from pages because of its name; `reconstitute show` prints it"

_names = PathPatterns(SECRET_FILES)


def is_secret(path: str) -> bool:
    """Whether a file's name says that it holds secrets."""
    return _names.match(posixpath.basename(path))


def without_content(history: FileHistory) -> FileHistory:
    """The history of such a file with its changes and without what it held; any other as it is."""
    if not is_secret(history.path):
        return history
    return FileHistory(history.path, tuple(map(_emptied, history.revisions)))


def _emptied(revision: Revision) -> Revision:
    if revision.deleted:
        return replace(revision, whole=None, fragments=None, blob="")
    return replace(revision, grade=Grade.LOST, whole=None, fragments=None, blob="", note=REASON)


def files_view(files: Files) -> Files:
    """`files` whose single histories are without what such files held."""
    return cast("Files", _FilesView(files))


class _FilesView:
    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def history(self, path: str, until: int | None = None) -> FileHistory:
        """See Files."""
        return without_content(self._files.history(path, until))


def view(archive: Archive) -> Archive:
    """The archive with messages whose calls on such files have no content; everything else is as it is."""
    return cast("Archive", _View(archive))


class _View:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._exclusion = Exclusion(Exclude(paths=_IN_CALLS), reads_outputs=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def message(self, message_id: str) -> Message | None:
        """See Archive."""
        message = self._archive.message(message_id)
        return None if message is None else self._visible(message, self._archive.session(message.session_id))

    def messages(self, session_id: str) -> Iterator[Message]:
        """See Archive."""
        session = self._archive.session(session_id)
        visible = (self._visible(message, session) for message in self._archive.messages(session_id))
        return (message for message in visible if message is not None)

    def _visible(self, message: Message, session: Session | None) -> Message | None:
        return self._exclusion.message(message, session)[0]


def visible_hit(archive: Archive, hit: Hit) -> Hit:
    """A search result without its excerpt, if that is of a call on such a file."""
    message = archive.message(hit.message_id) if hit.part_id else None
    parts = message.parts if message is not None else ()
    return replace(hit, snippet=EXCLUDED) if any(p.id == hit.part_id and p.data.get(FLAG) for p in parts) else hit
