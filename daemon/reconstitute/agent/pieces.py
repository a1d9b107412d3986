"""What the facts show of messages becomes known to the ledger, as far as it really stands in them.

The facts are worked out by code and shorten what they show; what a model may quote from them is checked against the
message once more before it counts as shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon.archive import Archive
from daemon.reconstitute.agent.context import quotes
from daemon.reconstitute.agent.context.blocks import Origin
from daemon.reconstitute.agent.context.ledger import Shown
from daemon.reconstitute.agent.context.messages import telling


class Pieces:
    """Notes texts in one run's ledger."""

    def __init__(self, archive: Archive, shown: Shown) -> None:
        self._archive, self._shown = archive, shown
        self._texts: dict[str, tuple[str, ...]] = {}

    def note(self, message_id: str, texts: Iterable[str] = (), *, path: str = "") -> None:
        """A message was named, and `texts` of it were shown, cleaned, on one line or several.

        With `path` they are of that file's content as the message left it, and taken as they are.
        """
        origin = Origin.find(self._archive, message_id) if message_id else None
        if origin is None:
            return
        said = [text for text in texts if text.strip()]
        if path:
            self._shown.note(origin)
            for text in said:
                self._shown.note_file(message_id, path, text)
            return
        held = self._held(message_id) if said else ()
        self._shown.note(origin, *(text for text in said if _stands(text, held)))

    def _held(self, message_id: str) -> tuple[str, ...]:
        if message_id not in self._texts:
            told = telling(self._archive, message_id)
            self._texts[message_id] = tuple(quotes.folded(part.text) for part in told.parts) if told else ()
        return self._texts[message_id]


def _stands(text: str, held: Iterable[str]) -> bool:
    wanted = quotes.folded(text)
    return bool(wanted) and any(wanted in each for each in held)
