"""Which sessions are not read at all, and the cursor of messages from which something was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from daemon import records
from daemon.errors import BadRecord, SourceBusy
from daemon.exclude import AGENTS, LARGE, PATHS, PRIVATE, TASKS, Exclusion
from daemon.ingest.screened_source import ScreenedSource
from daemon.model import Json
from daemon.opencode import Reading, Unit

SESSIONS_BY_PROJECTS, SESSIONS_BY_AGENTS = "sessionsByProjects", "sessionsByAgents"
COUNTED = {
    AGENTS: "messagesByAgents",
    TASKS: "messagesWithExcludedTasks",
    PATHS: "messagesByPaths",
    PRIVATE: "messagesWithPrivateBlocks",
    LARGE: "messagesWithLargeRecords",
}
"""How `status` names what was left out of messages."""


class SessionExclusion:
    """What the settings say of one session of a source."""

    def __init__(self, exclusion: Exclusion, source: ScreenedSource, session_id: str) -> None:
        self._exclusion, self._source, self._id = exclusion, source, session_id

    def by_project(self, folder: str, units: Mapping[str, Unit]) -> bool:
        """Whether it ran in an excluded folder, by its own folder or by its first message that names one.

        If nothing tells where it ran, it counts as excluded as soon as any folder is.
        """
        if not self._exclusion.has_projects:
            return False
        if self._exclusion.project(folder):
            return True
        for message_id in units:
            path = records.table(self._data_of(message_id).get("path"))
            named = {records.text(path.get(name)) for name in ("cwd", "root")} - {"", "/"}
            if named:
                return any(map(self._exclusion.project, named))
        return not folder and bool(units)

    def has_agent(self, units: Mapping[str, Unit], marks: Mapping[str, str]) -> bool:
        """Whether a message of it is of an excluded agent."""
        if not self._exclusion.has_agents:
            return False
        for message_id, unit in units.items():
            mark, reasons = self.read_mark(marks.get(message_id, ""))
            if mark == unit.stamp:
                if AGENTS in reasons:
                    return True
                continue
            reading = self._read(message_id)
            if reading is not None and AGENTS in reading.excluded:
                return True
        return False

    def _data_of(self, message_id: str) -> Json:
        reading = self._read(message_id)
        return {} if reading is None or reading.message is None else reading.message.data

    def _read(self, message_id: str) -> Reading | None:
        try:
            return self._source.read_message(self._id, message_id)
        except (SourceBusy, BadRecord):
            return None  # reported when the message itself is scanned

    def prefix(self, reasons: Iterable[str]) -> str:
        """Begins the cursor of a message from which something was left out, so that other settings read it again."""
        return f"x{','.join(sorted(reasons))}!{self._exclusion.fingerprint}!" if reasons else ""

    def read_mark(self, mark: str) -> tuple[str, frozenset[str]]:
        """A stored cursor without that prefix, and its reasons; empty if it was made under other settings."""
        if not mark.startswith("x"):
            return mark, frozenset()
        reasons, fingerprint, rest = mark[1:].split("!", 2)
        is_current = fingerprint == self._exclusion.fingerprint
        return (rest, frozenset(reasons.split(","))) if is_current else ("", frozenset())
