"""What a client is told of a text while it comes: all of it but the thinking that some models write before it."""

from __future__ import annotations

import re

from daemon.chat import OnText

_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL)
_OPENINGS = ("<think", "<thought", "<reasoning")


class Visible:
    """Passes pieces of one text on; `told` is what was passed on so far."""

    def __init__(self, on_text: OnText | None) -> None:
        """With None nothing is told, and all of the text is left for the end."""
        self.told = ""
        self._on_text = on_text
        self._held = ""

    def begin(self) -> None:
        """Another text comes, in place of one of which nothing was told yet."""
        self._held = ""

    def take(self, piece: str) -> None:
        """One more piece."""
        if self._on_text is None:
            return
        self._held += piece
        if not self.told:
            self._held = _after_thinking(self._held)
        if self._held and not _may_be_thinking(self._held, is_first=not self.told):
            self.told += self._held
            piece, self._held = self._held, ""
            self._on_text(piece)

    def rest(self, content: str) -> str:
        """What is left to tell of the whole text."""
        if content.startswith(self.told):
            return content[len(self.told) :]
        return ""  # it was told with words that do not count: a model that tried in between to call what is not there

    def shown(self, content: str) -> str:
        """All that the client will have been told."""
        return self.told + self.rest(content)


def _after_thinking(text: str) -> str:
    while (thought := _THOUGHT.match(text)) is not None:
        text = text[thought.end() :]
    return text.lstrip()


def _may_be_thinking(text: str, *, is_first: bool) -> bool:
    return is_first and any(opening.startswith(text[: len(opening)]) for opening in _OPENINGS)
