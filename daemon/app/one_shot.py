"""The engine of a single command, when no daemon runs: it looks at the sources itself before it answers."""

from __future__ import annotations

from daemon.app.engine import Engine
from daemon.control.protocol import Progress
from daemon.errors import ReconstituteError
from daemon.model import Json


class OneShot(Engine):
    """An engine that is current when asked, and has its semantic index open when that is searched."""

    def status(self) -> Json:
        """See Service."""
        self.take(everything=True, patient=False)
        return super().status()

    def look(self, *, by_meaning: bool) -> list[str]:
        """See RecallCalls. What is not embedded yet is found by its words; the answer says how much that is."""
        self.take(everything=True, patient=False)
        if by_meaning:
            self._open_semantic()
        return self.unread

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> Json:
        """See Service."""
        self.take(everything=True, patient=False, progress=progress)
        self._open_semantic()
        answer = super().reconstitute(path, questions=questions, at=at, output=output, progress=progress)
        answer["warnings"] += self.unread
        return answer

    def current(self, progress: Progress) -> list[str]:
        """See FileCalls."""
        self.take(everything=True, patient=False, words=False, progress=progress)
        return self.unread

    def _open_semantic(self) -> None:
        try:
            self.upkeep.open_semantic()
        except ReconstituteError as error:  # recall answers by words then, and says so
            self.report("semantic index", error)
