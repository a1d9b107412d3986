"""About how much room a message takes up on a page, so that a session can be divided before it is rendered. Pure."""

from __future__ import annotations

from daemon.model import LargePart, Message, Part

MOST_TEXT = 100_000
"""Characters of one prompt, answer or piece of reasoning on a page."""
MOST_FOLDED = 8_000
"""Characters of one tool input, output or diff on a page."""
_FRAME = 400
_SPOKEN = frozenset({"text", "reasoning"})


def size(message: Message) -> int:
    """Bytes, about."""
    return _FRAME + sum(_size(part) for part in message.parts)


def _size(part: Part) -> int:
    if part.type in _SPOKEN:
        text = part.data.get("text")
        return min(len(text.encode("utf-8", "replace")), MOST_TEXT) if isinstance(text, str) else 0
    if part.type != "tool":
        return _FRAME
    most = 3 * MOST_FOLDED
    return _FRAME + (most if isinstance(part, LargePart) else min(len(part.raw), most))
