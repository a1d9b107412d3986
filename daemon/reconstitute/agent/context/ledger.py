"""The ledger of one run: what a model was shown of which message, and whether a quote stands in it.

A quote may differ from the text in white space (any run of it is one space), the shape of quotation marks and
apostrophes, ``…`` for ``...``, and Unicode composition (NFC). Case, words and every other sign must be the same. An
ellipsis within a quote stands for anything: the parts around it must stand in the text in this order, each long enough.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from daemon.archive import Archive
from daemon.reconstitute.agent.context.blocks import Block, Origin, clean
from daemon.reconstitute.agent.context.messages import readable_message
from daemon.reconstitute.answer import Source

LEAST_WORDS = 3
"""A quote has so many words (a Chinese, Japanese or Korean character counts as one), or is a whole line of the text."""

_STRAIGHT = str.maketrans({**dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‘’‚‛", "'"), "…": "..."})
_GAP = re.compile(r"\s*(?:\[\.{3,}\]|\(\.{3,}\)|\.{3,})\s*")
_WIDE = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]+")
_ENDS = " \"'"


def folded_quote(text: str) -> str:
    """`text` in the form that quotes are compared in, on one line."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def find_quote(quote: str, pieces: Iterable[str]) -> str:
    """The quote as it stands in one of the texts, folded, gaps shown as `` … ``; empty where it stands in none."""
    folded = folded_quote(quote)
    for piece in pieces:
        text = folded_quote(piece)
        for reading in _readings(folded):
            if _stand_in_order(reading, text) and all(is_long_enough(part, piece) for part in reading):
                return " … ".join(reading)
    return ""


def is_long_enough(quote: str, piece: str = "") -> bool:
    """Whether a quote is long enough to say something, or is a whole line of `piece`."""
    part = folded_quote(quote)
    if len(_WORD.findall(part)) >= LEAST_WORDS:
        return True
    return bool(part) and any(part == folded_quote(line) for line in piece.split("\n"))


def _readings(folded: str) -> Iterable[list[str]]:
    """The parts of a quote that must stand in a text: as written, without its own quotation marks, around its gaps."""
    bare = folded.strip(_ENDS)
    readings: list[list[str]] = [[]]
    for reading in ([folded], [bare], [part for part in _GAP.split(bare) if part]):
        if reading not in readings and all(reading):
            readings.append(reading)
            yield reading


def _stand_in_order(parts: list[str], text: str) -> bool:
    place = 0
    for part in parts:
        start = _find_words(part, text, place)
        if start < 0:
            return False
        place = start + len(part)
    return True


def _find_words(part: str, text: str, place: int) -> int:
    """Where `part` stands in `text`, not beginning or ending within a word; -1: nowhere."""
    start = text.find(part, place)
    while start >= 0:
        if not _is_within_word(text, start) and not _is_within_word(text, start + len(part)):
            return start
        start = text.find(part, start + 1)
    return -1


def _is_within_word(text: str, place: int) -> bool:
    """Whether a word of a script that has spaces goes on across this place."""
    if not 0 < place < len(text):
        return False
    match = _WORD.match(text[place - 1 : place + 1])
    return match is not None and match.end() == 2


class Ledger:
    """Messages by id, in the order in which they were first shown."""

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._pieces: dict[str, dict[str, None]] = {}
        self._files: dict[str, dict[tuple[str, str], None]] = {}

    def add(self, block: Block) -> str:
        """Enter what a block shows. Returns the block's text."""
        self.note(block.origin, *block.pieces)
        return block.text

    def note(self, origin: Origin, *pieces: str) -> None:
        """Enter pieces of a message that were shown; without any, only that the message was named with its time."""
        self._origins.setdefault(origin.message_id, origin)
        self._pieces.setdefault(origin.message_id, {}).update(dict.fromkeys(piece for piece in pieces if piece.strip()))

    def note_file(self, message_id: str, path: str, piece: str) -> None:
        """Enter a piece of a file as a message left it; the message must be in the ledger already."""
        if piece.strip():
            self._files.setdefault(message_id, {})[path, piece] = None

    def find(self, quote: str, message_id: str) -> tuple[str, str]:
        """(the quote as it was shown, the path of the file that has it, or "" where the message itself has it).

        The quote is empty if neither the shown pieces of the message nor those of a file as it left it hold the quote.
        """
        in_message = find_quote(quote, self.pieces(message_id))
        if in_message:
            return in_message, ""
        for path, piece in self._files.get(message_id, ()):
            in_file = find_quote(quote, [piece])
            if in_file:
                return in_file, path
        return "", ""

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._origins

    def __iter__(self) -> Iterator[str]:
        return iter(self._origins)

    def __len__(self) -> int:
        return len(self._origins)

    def pieces(self, message_id: str) -> Sequence[str]:
        """The pieces of a message that were shown, each once."""
        return tuple(self._pieces.get(message_id, ()))

    def text(self, message_id: str) -> str:
        """The shown pieces of a message, joined; empty where nothing was shown."""
        return "\n".join(self.pieces(message_id))

    def source(self, message_id: str, quote: str, path: str = "") -> Source:
        """A shown message with a quote that `find` found in it, as the source of a statement.

        Raises:
            KeyError: the message was not shown.
        """
        origin = self._origins[message_id]
        return Source(origin.message_id, origin.session_id, clean(origin.title), origin.created, quote, path)

    def similar(self, message_id: str, limit: int = 3) -> list[str]:
        """The shown ids most like one that was not shown; the latest shown where none is like it."""
        like = difflib.get_close_matches(message_id[:100], self._origins, limit)
        return like or list(reversed(self._origins))[:limit]

    def hashes(self, archive: Archive) -> dict[str, str]:
        """Message id -> hash of its state in the archive, empty where it is gone: tells whether evidence changed."""
        return {message_id: (archive.state(message_id) or {}).get("hash", "") for message_id in sorted(self._origins)}


class VerifiedNotes:
    """Enters in a ledger what a text of ours shows of messages, as far as it really stands in them.

    Facts are worked out by code and shorten what they show. So a piece of a fact is compared with its message once more
    before it counts as shown and may be quoted.
    """

    def __init__(self, archive: Archive, ledger: Ledger) -> None:
        self._archive, self._ledger = archive, ledger
        self._texts: dict[str, tuple[str, ...]] = {}

    def note(self, message_id: str, pieces: Iterable[str] = (), *, path: str = "") -> None:
        """Enter that a message was named, and these cleaned `pieces` of it.

        With `path`, the pieces are of that file as the message left it, and are taken as they are.
        """
        origin = Origin.find(self._archive, message_id) if message_id else None
        if origin is None:
            return
        pieces = [piece for piece in pieces if piece.strip()]
        if path:
            self._ledger.note(origin)
            for piece in pieces:
                self._ledger.note_file(message_id, path, piece)
            return
        texts = self._message_texts(message_id) if pieces else ()
        self._ledger.note(origin, *(piece for piece in pieces if _stands_in(piece, texts)))

    def _message_texts(self, message_id: str) -> tuple[str, ...]:
        if message_id not in self._texts:
            message = readable_message(self._archive, message_id)
            self._texts[message_id] = tuple(folded_quote(part.text) for part in message.parts) if message else ()
        return self._texts[message_id]


def _stands_in(piece: str, texts: Iterable[str]) -> bool:
    folded = folded_quote(piece)
    return bool(folded) and any(folded in text for text in texts)
