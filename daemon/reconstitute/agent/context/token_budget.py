"""A conversation made to fit a model's context, by us: a server that must do it drops the front without a word
(docs/reliability.md, O3).

The opening always stays; old tool results give way first, then whole old turns. A tool result never stands without its
call. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon.chat.tokens import REPLY_ROOM, of_chat
from daemon.model import Json, OllamaMessage
from daemon.reconstitute.agent.limits import Ended, Over

OPENING = 2
"""The system's words, and the question with its context."""
LATEST = 4
"""The newest messages, which stay whole as long as that is possible."""
REPLY = 2048
"""Tokens kept free for the reply, or a quarter of a small context."""
LEFT_OUT = "(left out to make room; call the tool again if you need this)"
_GONE = "(earlier steps were left out to make room)"


def room(context_tokens: int) -> int:
    """How many tokens of messages and tools may be sent to a model with such a context."""
    return context_tokens - max(REPLY_ROOM, min(REPLY, context_tokens // 4))


def total(messages: Sequence[OllamaMessage], tools: Sequence[Json] = ()) -> int:
    """The most that all of it may be, tokens."""
    return int(of_chat(messages, tools).most)


def fit(messages: Sequence[OllamaMessage], tools: Sequence[Json], most: int) -> list[OllamaMessage]:
    """`messages`, with as much left out as is needed for `most` tokens.

    Raises:
        Over: the opening alone does not fit.
    """
    kept = list(messages)
    sizes = [total([message]) for message in kept]
    left = most - total([], tools)
    for stays in (LATEST, 1):
        for place in range(OPENING, max(OPENING, len(kept) - stays)):
            if sum(sizes) <= left:
                return kept
            if kept[place]["role"] == "tool":
                kept[place] = kept[place] | {"content": LEFT_OUT}
                sizes[place] = total([kept[place]])
    while total(kept) > left:
        kept = _without_oldest_turn(kept)
    return kept


def _without_oldest_turn(messages: list[OllamaMessage]) -> list[OllamaMessage]:
    """Without the first turn behind the opening: an assistant's message and what answers it."""
    start = OPENING + (1 if len(messages) > OPENING and messages[OPENING].get("content") == _GONE else 0)
    end = start + 1
    while end < len(messages) and messages[end]["role"] != "assistant":
        end += 1
    if start >= len(messages):
        raise Over(Ended.CONTEXT)
    return [*messages[:OPENING], {"role": "user", "content": _GONE}, *messages[end:]]
