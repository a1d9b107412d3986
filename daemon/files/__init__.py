"""What became of each file, by the archive: the reading side of `history`, with moves and reverts looked up.

Every answer is computed from the archive at the moment it is asked; nothing is kept. No other disk is read.
"""

from __future__ import annotations

from daemon.archive import Archive
from daemon.files import doubts
from daemon.files.history import FileHistory, Revision, earlier
from daemon.files.history import history as history_of
from daemon.model import FileEdit

__all__ = ["FileHistory", "Files", "Revision"]


class Files:
    """File histories out of an open archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def history(self, path: str) -> FileHistory:
        """All revisions of an absolute path, oldest first; empty when no session has touched it.

        Raises:
            ArchiveCorrupt: a stored edit failed its check.
        """
        return history_of(path, self._edits(path), self._before)

    def latest(self, path: str) -> Revision | None:
        """The newest proven revision of `path`; `history(path).stale` says whether something may have followed."""
        return self.history(path).latest_proven

    def paths(self, prefix: str = "/") -> list[str]:
        """Recorded absolute paths equal to `prefix` or beneath it, sorted; those of folders that commands named too."""
        return list(self._archive.paths(prefix))

    def _edits(self, path: str) -> list[FileEdit]:
        edits = self._archive.file_edits(path)
        found = doubts.with_reverts(edits, self._archive.session, self._is_removed)
        if edits:
            for folder in doubts.folders(path):
                found += doubts.of_folder(path, self._archive.file_edits(folder))
        return found

    def _before(self, path: str, edit: FileEdit) -> Revision | None:
        """The state of `path` just before the call that made `edit`. Ends, since each look goes further back."""
        return history_of(path, earlier(self._edits(path), edit), self._before).latest

    def _is_removed(self, edit: FileEdit) -> bool:
        """Whether the source dropped the message, but not its session: that is what a revert leaves behind."""
        session = self._archive.session_state(edit.session_id)
        gone = session is not None and session["deleted"] is not None
        return not gone and self._archive.is_deleted(edit.message_id)
