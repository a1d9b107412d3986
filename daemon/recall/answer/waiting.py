"""What an answer cannot know of: messages that are not indexed or embedded yet, or not legible, with their share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from daemon.display import counted

_FIX = "run `index()` once, or keep the service running"
_SERVED = "the service goes on with them by itself"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many of the `messages` each index, lexical or semantic, does not hold yet.

    `unread` are those that it will never hold by meaning, because its model cannot read them.
    `is_served`: the service answers.
    """

    messages: int
    missing: Mapping[str, int]
    unread: int = 0
    is_served: bool = False

    def shortfalls(self, asked: Collection[str], model: str, *, by_meaning_alone: bool) -> list[str]:
        """A sentence for each index that was asked and is not complete.

        What the model cannot read lacks only where nothing is found by words.
        """
        unread = self.unread if by_meaning_alone and "semantic" in asked else 0
        made = [self._sentence(stage, unread) for stage, missing in self.missing.items() if missing and stage in asked]
        if unread:
            share = f"meaning knows {self._share(self.missing['semantic'] + unread)} % of the messages"
            made.append(f"{share}; {model} cannot read {counted(unread, 'message')}, which only words find")
        return made

    def _share(self, missing: int) -> int:
        return max(0, self.messages - missing) * 100 // max(1, self.messages)

    def _sentence(self, stage: str, unread: int) -> str:
        missing = self.missing[stage]
        known = self._share(missing + (unread if stage == "semantic" else 0))
        who, done, how = (
            ("words know", "indexed", "words") if stage == "lexical" else ("meaning knows", "embedded", "meaning")
        )
        wait = f"{counted(missing, 'message')} {'is' if missing == 1 else 'are'} not {done} yet"
        return f"{who} {known} % of the messages; {wait}, so not found by {how}; {_SERVED if self.is_served else _FIX}"
