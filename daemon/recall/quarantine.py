"""What OpenCode recorded and nobody could read, so that no search finds it: how much, a few samples, a warning.

The archive keeps such records aside with the reason. Each answer tells of them, so it is gone through only after it
was changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from daemon.archive import Archive
from daemon.model import Json
from daemon.recall.answer.snippet import counted, one_line
from daemon.redact import redact

_SAMPLES = 3
_LONGEST = 200
_RECORDS = ("message ", "session ")
"""How the places of OpenCode's records begin; the quarantine also has texts that no model can embed."""


@dataclass(frozen=True, slots=True)
class Aside:
    """`count` messages and sessions were not read, or not whole; `samples` are (which, why) of the latest, redacted."""

    count: int = 0
    samples: tuple[tuple[str, str], ...] = ()

    def coverage(self) -> Json:
        """``{loadErrorCount, loadErrors: [{record, reason}]}``; empty where everything was read."""
        if not self.count:
            return {}
        shown = [{"record": record, "reason": reason} for record, reason in self.samples]
        return {"loadErrorCount": self.count, "loadErrors": shown}

    def warnings(self) -> list[str]:
        """At most one: what is not found may stand there."""
        if not self.count:
            return []
        record, reason = self.samples[0]
        others = " and others" if self.count > 1 else ""
        some = f"{counted(self.count, 'recorded item')} could not be read, or not whole, and cannot be found"
        return [f"{some}: {record} ({reason}){others}; coverage.loadErrors and 'reconstitute status' say more"]


class KeptAside:
    """Counts once, and again after a change. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: tuple[int, Aside] = (-1, Aside())

    def now(self) -> Aside:
        """What is kept aside at the moment."""
        changes = self._archive.quarantine_changes  # before it is read: a change meanwhile is seen the next time
        if self._known[0] != changes:
            found = [entry for entry in self._archive.quarantined().items() if entry[0].startswith(_RECORDS)]
            found.sort(key=lambda entry: (-entry[1].get("time", 0), entry[0]))
            samples = tuple((_shown(place), _shown(str(entry.get("reason")))) for place, entry in found[:_SAMPLES])
            self._known = changes, Aside(len(found), samples)
        return self._known[1]


def _shown(text: str) -> str:
    line = one_line(redact(text))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
