"""Hits become a `messages[]` array for a model: the hits with their surroundings, whole messages only.

Guarantees: nothing twice, not even what forks of a session have copied of it; sessions by time and within each the
conversation's order, a message's replay list never split (so a tool call keeps its result), never more than the budget,
and every string redacted on the way out. Where the budget is short the least relevant hits go first, then the farthest
neighbours; no message is ever cut.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from daemon.archive import Archive
from daemon.model import Hit, OllamaMessage
from daemon.transcript.replay import clean_replay

BUDGET_CHARS = 48_000
"""About 12,000 tokens of English: fits the context length of a small local model beside the question."""

CHARS_PER_TOKEN = 4
IMAGE_TOKENS = 1_000
_FRAME_TOKENS = 4
"""What a chat template puts around a message: its role and its ends."""

_AS_THEY_ARE = frozenset({"role", "images"})
_Telling: TypeAlias = tuple[str, int]
"""Role, time and replay of a message, as JSON, and how often its session had said just this before.

A fork of a session has copies of its messages, under new ids: by this they are the same.
"""
_NOT_LATIN = re.compile("[^\x00-\u024f]")


def tokens(entry: OllamaMessage) -> int:
    """About how many tokens a model makes of a message; an estimate, since every model cuts text in its own way.

    Four characters of Latin text are one token; each character of any other script is one, as Chinese, Japanese and
    Korean characters mostly are. Tool calls count as their JSON, an image as IMAGE_TOKENS.
    """
    spoken = {key: value for key, value in entry.items() if key not in _AS_THEY_ARE}
    text = "".join(value if isinstance(value, str) else _json(value) for value in spoken.values())
    wide = 0 if text.isascii() else len(_NOT_LATIN.findall(text))
    latin = -(-(len(text) - wide) // CHARS_PER_TOKEN)
    return _FRAME_TOKENS + latin + wide + IMAGE_TOKENS * len(entry.get("images", ()))


def window(
    archive: Archive,
    hits: Sequence[Hit],
    before: int = 2,
    after: int = 2,
    budget_chars: int = BUDGET_CHARS,
    *,
    budget_tokens: int | None = None,
) -> list[OllamaMessage]:
    """The hits' messages with `before` and `after` neighbours each, redacted, as Ollama takes them.

    `hits` come best first. At most `budget_chars` characters of JSON and, unless it is None, `budget_tokens` of what
    `tokens` estimates. A hit whose surroundings do not fit is taken with fewer of them, at last alone; one that does
    not fit alone is left out.
    """
    orders: dict[str, list[str]] = {}
    taken = _Taken(archive, budget_chars, budget_tokens)
    for hit in hits:
        order = orders.setdefault(hit.session_id, archive.message_ids(hit.session_id))
        if hit.message_id in order:
            taken.grow(order, order.index(hit.message_id), before, after)
    ordered = (message_id for session_id in _by_time(archive, orders) for message_id in orders[session_id])
    return taken.messages(ordered)


def around(
    archive: Archive, message_id: str, before: int, after: int, budget: int
) -> tuple[list[str], list[OllamaMessage]]:
    """A message with its neighbours within `budget` tokens: the ids of the messages that fit, and their array.

    The ids are an unbroken stretch of the conversation; both are empty where the message alone does not fit, or is not
    in the archive.
    """
    state = archive.state(message_id)
    order = archive.message_ids(state["session"]) if state is not None else []
    taken = _Taken(archive, None, budget)
    if message_id in order:
        taken.grow(order, order.index(message_id), before, after)
    return [one for one in order if one in taken], taken.messages(order)


class _Taken:
    """Messages that were taken so far, and the room that is left for others; None is no limit."""

    def __init__(self, archive: Archive, chars: int | None, tokens_: int | None) -> None:
        self._archive = archive
        self._chars, self._tokens = chars, tokens_
        self._replays: dict[_Telling, list[OllamaMessage]] = {}
        self._told: dict[str, _Telling] = {}
        self._said: Counter[tuple[str, str]] = Counter()

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._told

    def grow(self, order: Sequence[str], place: int, before: int, after: int) -> None:
        """Take the message at `place`, then its neighbours, the nearest first, on each side until one does not fit."""
        if not self._take(order[place]):
            return
        left = list(reversed(order[max(0, place - before) : place]))
        right = list(order[place + 1 : place + 1 + after])
        while left or right:
            for side in (left, right):
                if side and not self._take(side.pop(0)):
                    side.clear()

    def _take(self, message_id: str) -> bool:
        if message_id in self._told:
            return True
        message = self._archive.message(message_id)
        entries = [] if message is None else clean_replay(message, self._archive.replay(message_id) or None)
        said = _json([message.role, message.created, entries]) if message is not None else message_id
        session_id = message.session_id if message is not None else ""
        telling = (said, self._said[said, session_id])
        if telling in self._replays:  # a copy is shown once, and has its room already
            entries = []
        chars = self._chars if self._chars is None else self._chars - sum(len(_json(entry)) for entry in entries)
        left = self._tokens if self._tokens is None else self._tokens - sum(map(tokens, entries))
        if (chars is not None and chars < 0) or (left is not None and left < 0):
            return False
        self._chars, self._tokens = chars, left
        self._told[message_id] = telling
        self._said[said, session_id] += 1
        self._replays.setdefault(telling, entries)
        return True

    def messages(self, ordered: Iterable[str]) -> list[OllamaMessage]:
        """What was taken, in this order; what a fork has copied of its session stands where it comes first."""
        tellings = dict.fromkeys(self._told[message_id] for message_id in ordered if message_id in self._told)
        return [entry for telling in tellings for entry in self._replays[telling]]


def _by_time(archive: Archive, session_ids: Iterable[str]) -> list[str]:
    def started(session_id: str) -> tuple[int, str]:
        session = archive.session(session_id)
        return (session.created if session else 0, session_id)

    return sorted(session_ids, key=started)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
