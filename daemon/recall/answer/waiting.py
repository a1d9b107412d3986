"""What an answer cannot know of: messages that wait to be indexed by words or to be embedded, with their share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from daemon.display import counted

_FIX = "run `index()` once, or keep the service running"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many of the `messages` each index, lexical or semantic, does not hold yet."""

    messages: int
    missing: Mapping[str, int]

    def shortfalls(self, asked: Collection[str]) -> list[str]:
        """A sentence for each index that was asked and is not complete."""
        return [self._sentence(stage) for stage, missing in self.missing.items() if missing and stage in asked]

    def _sentence(self, stage: str) -> str:
        missing = self.missing[stage]
        known = max(0, self.messages - missing) * 100 // max(1, self.messages)
        who, done, how = (
            ("words know", "indexed", "words") if stage == "lexical" else ("meaning knows", "embedded", "meaning")
        )
        wait = f"{counted(missing, 'message')} {'is' if missing == 1 else 'are'} not {done} yet"
        return f"{who} {known} % of the messages; {wait}, so not found by {how}; {_FIX}"
