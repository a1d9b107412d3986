"""About how many tokens a conversation is, before any server has counted it: at least, and at most.

Every model cuts text in its own way, so one figure would be wrong for somebody. `most` decides what is sent: it leans
high, because what does not fit is dropped without a word. `least` is what a server's count is held against: it leans
low, because a count that is small for a good reason (a script with long tokens, runs of spaces) is no proof of a loss.
Scripts other than Latin are where models differ most: a character is a quarter of a token for one, and one for another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from daemon.model import Json, OllamaMessage

# A run of one mark ("=====", "-----") comes before single marks; a run of blanks is one token or part of the next.
_PIECE = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<blank>\s+)|(?P<run>([!-/:-@\[-`{-~])\5{3,})|(?P<marks>[!-/:-@\[-`{-~]+)"
    r"|(?P<wide>[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)|(?P<other>.)",
    re.DOTALL,
)
REPLY_ROOM = 512
"""What a reply must have left of a context; with less, the conversation does not fit."""

_MESSAGE = 8
"""What a template puts around one message, at most."""
_IMAGE = 1500


class Size(NamedTuple):
    """Tokens: at least, at most."""

    least: float
    most: float


@lru_cache(maxsize=512)
def of_text(text: str) -> Size:
    """The size of one text. Cached, because a conversation is measured again at every step."""
    least = most = 0.0
    for match in _PIECE.finditer(text):
        length = match.end() - match.start()
        low, high = _piece(match.lastgroup or "", length)
        least += low
        most += high
    return Size(least, most)


def of_chat(messages: Iterable[OllamaMessage], tools: Sequence[Json] = ()) -> Size:
    """The size of a whole request: texts and calls of the messages, and the tools' descriptions."""
    least, most = _json(tools) if tools else Size(0, 0)
    for message in messages:
        for size in (
            _text_size(message.get("content")),
            _text_size(message.get("thinking")),
            _json(message.get("tool_calls")),
        ):
            least += size.least
            most += size.most
        most += _MESSAGE + _IMAGE * len(message.get("images") or ())
    return Size(least, most)


def _piece(kind: str, length: int) -> tuple[float, float]:
    low, high = 0.2, 1.2  # any other character
    if kind == "word":  # beyond 16 letters it is no word: base64, hexadecimal, names run together
        low, high = max(1.0, length / 9), 1 + (length - 1) // 6 if length <= 16 else length / 2.5
    elif kind == "digits":
        low, high = max(0.5, length / 3), length
    elif kind == "blank":
        low, high = 0, 0 if length == 1 else 1 + length // 16
    elif kind == "run":
        low, high = length / 32, 1 + length / 4
    elif kind == "marks":
        low, high = length / 4, (length + 1) // 2
    elif kind == "wide":
        low, high = length / 2, length * 1.2
    return low, high


def _text_size(value: object) -> Size:
    return of_text(value) if isinstance(value, str) else Size(0, 0)


def _json(value: object) -> Size:
    """A template may write JSON with fewer marks, or as something else: at least half of what JSON would be."""
    if not value:
        return Size(0, 0)
    size = of_text(json.dumps(value, ensure_ascii=False, default=str))
    return Size(size.least / 2, size.most)
