"""Which recorded messages a model is shown first for a question, within a budget, oldest first.

Recall's order decides, and that of the passages which would be quoted without a model; what touched the path in
question is put forward. The same evidence gives the same text: the question's key is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from daemon.archive import Archive
from daemon.chat.tokens import of_text
from daemon.files.trees import is_beneath
from daemon.reconstitute.agent.context import prompt
from daemon.reconstitute.agent.context.blocks import Block
from daemon.reconstitute.agent.context.case import Case
from daemon.reconstitute.agent.context.ledger import Shown
from daemon.reconstitute.agent.context.messages import message_block
from daemon.reconstitute.agent.context.token_budget import total
from daemon.reconstitute.agent.tools.schemas import schemas
from daemon.reconstitute.questions import Question
from daemon.reconstitute.scope import Scope

_SHARE = 0.4
"""Of the model's room; the rest is for the tools and for what they show."""
BYTES_PER_TOKEN = 3
"""Of usual text, by the higher estimate."""
_MOST_TOKENS = 20_000
_LONGEST, _SHORTEST = 4_000, 400
"""Bytes of one message."""
_QUESTION = 300
"""Tokens of the question, which stands there twice, and of some facts."""
_TOUCHING = 0.05
_SMOOTHING = 10
"""Reciprocal ranks: the first place counts 1/10, the tenth 1/20."""


def budget(room_tokens: int) -> int:
    """Tokens of excerpts, for a model with this room. What every question begins with takes most of a small one: the
    excerpts have half of the rest at most, or the opening would not fit, or no result of a tool beside it.
    """
    rest = max(0, room_tokens - _constant() - _QUESTION)
    return min(_MOST_TOKENS, int(room_tokens * _SHARE), rest // 2)


@cache
def _constant() -> int:
    """Tokens of the system's words and the tools' descriptions."""
    return total([prompt.system()], schemas())


def excerpts(archive: Archive, case: Case, question: Question, path: str, *, shown: Shown, most: int) -> str:
    """Delimited blocks of messages, at most `most` tokens, and the ledger knows them."""
    ranks = case.searches.ranks(question)
    blocks: dict[tuple[int, str], str] = {}
    left = float(most)
    for message_id in _order(case.scope, path, ranks, case.quoted.get(question.id, ())):
        message = archive.message(message_id)
        block = _fitting(archive, message_id, left) if message is not None else None
        if message is None or block is None:
            if left * BYTES_PER_TOKEN < _SHORTEST:
                break
            continue
        left -= of_text(block.text).most
        blocks[message.created, message_id] = shown.add(block)
    return "\n\n".join(blocks[key] for key in sorted(blocks))


def _fitting(archive: Archive, message_id: str, left: float) -> Block | None:
    """A message's block in at most so many tokens; tables of numbers have a token for each digit, so it is measured."""
    size = min(_LONGEST, int(left * BYTES_PER_TOKEN))
    while size >= _SHORTEST:
        block = message_block(archive, message_id, size)
        if block is None or of_text(block.text).most <= left:
            return block
        size //= 2
    return None


def _order(scope: Scope, path: str, ranks: Mapping[str, int], quoted: Sequence[str]) -> list[str]:
    """The messages, most telling first."""
    scores = {message_id: 1 / (_SMOOTHING + place) for message_id, place in ranks.items()}
    for place, message_id in enumerate(quoted):
        scores[message_id] = scores.get(message_id, 0.0) + 1 / (_SMOOTHING + place)
    if path != scope.target:
        for message_id in _touching(scope, path):
            scores[message_id] = scores.get(message_id, 0.0) + _TOUCHING
    return sorted(scores, key=lambda message_id: (-round(scores[message_id], 9), message_id))


def _touching(scope: Scope, path: str) -> Iterable[str]:
    return {message for one, messages in scope.touched.items() if is_beneath(one, path) for message in messages}
