"""The ledger of one run: what the model was shown of which message, so that its citations can be held against it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from daemon.archive import Archive
from daemon.reconstitute.agent.context import quotes
from daemon.reconstitute.agent.context.blocks import Block, Origin, clean
from daemon.reconstitute.answer import Source


class Shown:
    """Messages by id, in the order in which they were first shown."""

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._pieces: dict[str, dict[str, None]] = {}
        self._files: dict[str, dict[tuple[str, str], None]] = {}

    def add(self, block: Block) -> str:
        """Note what a block shows; answers its text."""
        self.note(block.origin, *block.pieces)
        return block.text

    def note(self, origin: Origin, *pieces: str) -> None:
        """Note texts of a message that were shown; without any, only that the message was named with its time."""
        self._origins.setdefault(origin.message_id, origin)
        self._pieces.setdefault(origin.message_id, {}).update(dict.fromkeys(piece for piece in pieces if piece.strip()))

    def note_file(self, message_id: str, path: str, piece: str) -> None:
        """Note a piece of the content that a file had after a message, which was noted before."""
        if piece.strip():
            self._files.setdefault(message_id, {})[path, piece] = None

    def find(self, quote: str, message_id: str) -> tuple[str, str]:
        """(the quote as it was shown, the path of the file it stands in, or empty where the message itself has it).

        The quote is empty if neither what was shown of the message nor of a file as the message left it holds it.
        """
        said = quotes.find(quote, self.pieces(message_id))
        if said:
            return said, ""
        for path, piece in self._files.get(message_id, ()):
            held = quotes.find(quote, [piece])
            if held:
                return held, path
        return "", ""

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._origins

    def __iter__(self) -> Iterator[str]:
        return iter(self._origins)

    def __len__(self) -> int:
        return len(self._origins)

    def pieces(self, message_id: str) -> Sequence[str]:
        """The texts of a message that were shown, each once."""
        return tuple(self._pieces.get(message_id, ()))

    def text(self, message_id: str) -> str:
        """What was shown of a message, joined; empty where nothing was."""
        return "\n".join(self.pieces(message_id))

    def source(self, message_id: str, quote: str, path: str = "") -> Source:
        """A message that was shown, and the quote found in it (`find`), as what a statement stands on.

        Raises:
            KeyError: it was not shown.
        """
        origin = self._origins[message_id]
        return Source(origin.message_id, origin.session_id, clean(origin.title), origin.created, quote, path)

    def near(self, message_id: str, most: int = 3) -> list[str]:
        """The ids shown that are most like one that was not; the latest shown where none is like it."""
        like = difflib.get_close_matches(message_id[:100], self._origins, most)
        return like or list(reversed(self._origins))[:most]

    def hashes(self, archive: Archive) -> dict[str, str]:
        """Message id -> hash of its state in the archive, empty where it is gone: tells whether evidence changed."""
        return {message_id: (archive.state(message_id) or {}).get("hash", "") for message_id in sorted(self._origins)}
