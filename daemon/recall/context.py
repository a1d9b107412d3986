"""Hits become a `messages[]` array for a model: the hits with their surroundings, whole messages only.

Guarantees: nothing twice, sessions by time and within each the conversation's order, a message's replay list never
split (so a tool call keeps its result), at most `budget_chars` of JSON, and every string redacted on the way out.
Where the budget is short the least relevant hits go first; no message is ever cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from daemon.archive import Archive
from daemon.model import Hit, OllamaMessage
from daemon.redact import redact

BUDGET_CHARS = 48_000
"""About 12,000 tokens of English: fits the context length of a small local model beside the question."""

_AS_THEY_ARE = frozenset({"role", "images"})


def window(
    archive: Archive,
    hits: Sequence[Hit],
    before: int = 2,
    after: int = 2,
    budget_chars: int = BUDGET_CHARS,
) -> list[OllamaMessage]:
    """The hits' messages with `before` and `after` neighbours each, redacted, as Ollama takes them.

    `hits` come best first. A hit whose surroundings do not fit is taken with fewer of them, at last alone; one that
    does not fit alone is left out.
    """
    orders: dict[str, list[str]] = {}
    replays: dict[str, list[OllamaMessage]] = {}
    chosen: set[str] = set()
    room = budget_chars

    def cost(message_ids: Iterable[str]) -> int:
        for message_id in message_ids:
            if message_id not in replays:
                replays[message_id] = [redacted(entry) for entry in archive.replay(message_id)]
        return sum(len(json.dumps(entry, ensure_ascii=False)) for i in message_ids for entry in replays[i])

    for hit in hits:
        order = orders.setdefault(hit.session_id, archive.message_ids(hit.session_id))
        if hit.message_id not in order:
            continue
        place = order.index(hit.message_id)
        for less in range(max(before, after) + 1):
            around = order[max(0, place - max(0, before - less)) : place + max(0, after - less) + 1]
            new = [message_id for message_id in around if message_id not in chosen]
            needed = cost(new)
            if needed <= room:
                chosen.update(new)
                room -= needed
                break
    return [
        entry
        for session_id in _by_time(archive, orders)
        for message_id in orders[session_id]
        if message_id in chosen
        for entry in replays[message_id]
    ]


def _by_time(archive: Archive, session_ids: Iterable[str]) -> list[str]:
    def started(session_id: str) -> tuple[int, str]:
        session = archive.session(session_id)
        return (session.created if session else 0, session_id)

    return sorted(session_ids, key=started)


def redacted(entry: OllamaMessage) -> OllamaMessage:
    """A replay message with every string in it redacted, tool arguments included; its structure is kept."""
    return {key: value if key in _AS_THEY_ARE else _clean(value) for key, value in entry.items()}


def _clean(value: Any, name: str = "") -> Any:
    """`name` is the key a value stands under: a password is often known by nothing else."""
    if isinstance(value, str):
        shown = redact(value)
        labelled = redact(f"{name}={value}") if name and shown == value else ""
        return labelled[len(name) + 1 :] if labelled.startswith(f"{name}=") else shown
    if isinstance(value, dict):
        return {key: _clean(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, name) for item in value]
    return value
