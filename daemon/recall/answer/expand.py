"""The best results in full: the message, its surroundings, or an array of chat messages, within budgets.

A budget that is too small is never an error: we return what fits, mark texts that were cut, and warn about the rest.
All texts come from `messages`, which redacts them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from daemon import records
from daemon.archive import Archive
from daemon.display import counted
from daemon.model import Hit, Json
from daemon.recall.answer import messages
from daemon.recall.answer.messages import cut_to_fit, tokens, window
from daemon.recall.catalog import Row
from daemon.recall.query import Recall
from daemon.recall.ranking.grouping import Result

_AUTO_MOST = 12
"""Messages on each side in which window "auto" looks for the beginning and the end of a turn."""
_LEAST_CHARS = 200
"""If less of a message could be shown, it is left out."""
_LEAST_PART = 40
_UNBOUNDED = 1 << 62
_MARKS = 3 * len(messages.TRUNCATED)
"""A part has up to three texts, each with a mark where it was cut."""


@dataclass(slots=True)
class Expansion:
    """Expanded results; `is_short`: a budget left something out; `late`: what the deadline left out."""

    expanded: list[Json] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_short: bool = False
    late: list[str] = field(default_factory=list)


def expand(
    archive: Archive, rows: Mapping[str, Row], request: Recall, results: Sequence[Result], until: float = math.inf
) -> Expansion:
    """Expand the first `expandResults` of the shown `results`.

    After `until`, on time.monotonic's clock, no further result is expanded; the best one always is.

    A message is shown once. A later expansion lists it in ``shownBefore``, as ``{messageID, resultIndex}`` with the
    result that shows it.
    """
    expansion = Expansion()
    if request.expand == "none" or not results:
        return expansion
    chosen = list(results[: request.expandResults])
    if request.expand == "messages":
        is_late = time.monotonic() >= until
        expansion = _as_messages(archive, rows, request, chosen[:1] if is_late else chosen)
        expansion.late += _late_note(len(chosen) - 1) if is_late else []
        return expansion
    budget = _Budget(request.expandBudgetMessages, request.expandBudgetChars)
    omitted, result_numbers = 0, dict[str, int]()
    for number, result in enumerate(chosen):
        if number and time.monotonic() >= until:
            expansion.late += _late_note(len(chosen) - number)
            break
        entry, missing = _expanded(archive, request, number, result, result_numbers=result_numbers, budget=budget)
        omitted += missing
        expansion.expanded += [entry] if entry else []
    if omitted or budget.was_cut:
        expansion.is_short = True
        expansion.warnings.append(_short_of(request, omitted))
    return expansion


def _expanded(
    archive: Archive, request: Recall, number: int, result: Result, *, result_numbers: dict[str, int], budget: _Budget
) -> tuple[Json, int]:
    """One expanded result, empty if nothing of it fits, and how many of its messages did not fit.

    `result_numbers` maps the messages that were shown before to the number of their result; those of this one are
    added.
    """
    order = archive.message_ids(result.session_id)
    if request.expand == "message" or result.message_id not in order:
        first = last = order.index(result.message_id) if result.message_id in order else 0
        ids = [result.message_id]
    else:
        first, last = _around(archive, order, order.index(result.message_id), request.window)
        ids = order[first : last + 1]
    before = [message_id for message_id in ids if message_id in result_numbers]
    items, missing = _items(
        archive, [message_id for message_id in ids if message_id not in result_numbers], result.message_id, budget
    )
    if not items and not before:
        return {}, missing
    entry: Json = {
        "resultIndex": number,
        "sessionID": result.session_id,
        "messageID": result.message_id,
        "mode": request.expand,
    }
    new_ids = [item["message"]["id"] for item in items]
    if before:
        entry["shownBefore"] = [
            {"messageID": message_id, "resultIndex": result_numbers[message_id]} for message_id in before
        ]
    if request.expand == "message" and items:
        entry["message"] = items[0]
    elif request.expand != "message":
        places = [order.index(message_id) for message_id in (*new_ids, *before) if message_id in order]
        first, last = min(places, default=first), max(places, default=last)
        entry |= {"messages": items, "hasMoreBefore": first > 0, "hasMoreAfter": last < len(order) - 1}
    result_numbers |= dict.fromkeys(new_ids, number)
    return entry, missing


def _late_note(results: int) -> list[str]:
    return [f"{counted(results, 'result')} not expanded"] if results else []


def _short_of(request: Recall, omitted: int) -> str:
    lost = f"{counted(omitted, 'message')} left out" if omitted else "texts were cut"
    return (
        f"expansion: {lost}, to stay within `expandBudgetMessages` {request.expandBudgetMessages} and "
        f"`expandBudgetChars` {request.expandBudgetChars}; `recall_get()` and `recall_context()` show them in full"
    )


# -- messages as recorded --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Budget:
    messages: int
    chars: int
    was_cut: bool = False


def _items(archive: Archive, ids: Sequence[str], center: str, budget: _Budget) -> tuple[list[Json], int]:
    """Messages as items, in order, and how many did not fit. The one in the middle goes first."""
    items: dict[str, Json] = {}
    missing = 0
    middle = ids.index(center) if center in ids else 0
    for message_id in sorted(ids, key=lambda each: abs(ids.index(each) - middle)):
        if budget.messages < 1 or budget.chars < _LEAST_CHARS:
            missing += 1
            continue
        message = archive.message(message_id)
        if message is None:
            continue
        deleted, gone = archive.is_deleted(message_id), archive.gone(message_id)
        show = partial(messages.item, message, center=message_id == center, deleted=deleted, gone=gone)
        item = _fitting(show, budget)
        items[message_id] = item
        budget.messages -= 1
    return [items[message_id] for message_id in ids if message_id in items], missing


def _fitting(show: Callable[..., Json], budget: _Budget) -> Json:
    """A message within the remaining budget. If it is too long, its longest parts are cut and its last ones dropped."""
    item = show()
    if _size(item) > budget.chars:
        budget.was_cut = True
        most = _part_limit(item, budget.chars)
        item = show(max_chars=most)
        count, budget_chars = 0, budget.chars
        for part in item["parts"]:
            budget_chars -= _texts(part)
            if budget_chars < 0 and count:
                break
            count += 1
        if count < len(item["parts"]):
            item["partsOmitted"] = len(item["parts"]) - count
            item["parts"] = item["parts"][:count]
    budget.chars -= min(_size(item), budget.chars)
    return item


def _part_limit(item: Json, chars: int) -> int:
    """The length to cut parts to, so that all of them about fit: short ones stay whole, long ones are cut."""
    sizes = sorted(_texts(part) for part in item["parts"])
    for number, size in enumerate(sizes):
        share = chars // (len(sizes) - number)
        if size > share:
            return max(share - _MARKS, _LEAST_PART)
        chars -= size
    return max(chars, _LEAST_PART)


def _size(item: Json) -> int:
    return sum(_texts(part) for part in item["parts"])


def _texts(part: Json) -> int:
    """Characters of a part's texts: its content, and a tool's input and output."""
    return sum(_length(part.get(name)) for name in ("content", "input", "output", "error"))


def _length(value: object) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else len(records.dumps(value).decode("utf-8", "replace"))


def _around(archive: Archive, order: Sequence[str], place: int, neighbours: int | str) -> tuple[int, int]:
    """First and last place of the neighbours; "auto": from the prompt that began the turn to its last answer."""
    if isinstance(neighbours, int):
        side = max(0, min(neighbours, 50))
        return max(0, place - side), min(len(order) - 1, place + side)
    first = last = place
    while first > max(0, place - _AUTO_MOST) and not _is_prompt(archive, order[first]):
        first -= 1
    while last < min(len(order) - 1, place + _AUTO_MOST) and not _is_prompt(archive, order[last + 1]):
        last += 1
    return first, last


def _is_prompt(archive: Archive, message_id: str) -> bool:
    message = archive.message(message_id)
    return message is not None and message.role == "user"


# -- messages for a model --------------------------------------------------------------------------------------------


def _as_messages(archive: Archive, rows: Mapping[str, Row], request: Recall, results: Sequence[Result]) -> Expansion:
    hits = [_hit(result, rows.get(result.session_id)) for result in results]
    side = max(0, min(request.window, 50)) if isinstance(request.window, int) else 3
    orders = [archive.message_ids(result.session_id) for result in results]
    spans = [
        (order, order.index(result.message_id) if result.message_id in order else -1)
        for order, result in zip(orders, results, strict=True)
    ]
    count, before, after = _sides(spans, side, request.expandBudgetMessages)
    omitted = len(_union(spans, side, side)) - len(_union(spans[:count], before, after))
    entries = window(archive, hits[:count], before, after, _UNBOUNDED)
    budget_tokens = request.expandBudgetTokens or None
    fits = _fits(entries, request.expandBudgetChars, budget_tokens)
    if not fits:
        entries = window(archive, hits[:count], before, after, request.expandBudgetChars, budget_tokens=budget_tokens)
    expansion = Expansion()
    is_cut = not fits and not entries
    if is_cut:
        entries = cut_to_fit(archive, results[0].message_id, request.expandBudgetChars, budget_tokens)
    if not entries:
        return expansion
    first = results[0]
    expansion.expanded.append(
        {
            "resultIndex": 0,
            "sessionID": first.session_id,
            "messageID": first.message_id,
            "mode": "messages",
            "messages": entries,
            "tokens": sum(tokens(entry) for entry in entries),
        }
    )
    if omitted or not fits:
        expansion.is_short = True
        lost = f"{counted(omitted, 'message')} left out" if omitted else "messages were left out"
        lost = "the texts of the best result were cut, the messages around it left out" if is_cut else lost
        expansion.warnings.append(
            f"expansion: {lost}, to stay within `expandBudgetMessages` {request.expandBudgetMessages}, "
            f"`expandBudgetChars` {request.expandBudgetChars} and `expandBudgetTokens` "
            f"{request.expandBudgetTokens or 'without limit'}; `recall_context()` shows them"
        )
    return expansion


def _sides(spans: Sequence[tuple[Sequence[str], int]], side: int, most: int) -> tuple[int, int, int]:
    """(spans, messages before each, messages after each), so that all are at most `most` messages.

    A span is a session's messages and the place of one of them. At most `side` messages are on a side; if one side
    needs fewer, the other may have more.
    """
    count = len(spans)
    while count > 1 and len(_union(spans[:count], 0, 0)) > most:
        count -= 1
    before = after = 0
    for step in range(1, side + 1):
        if before == step - 1 and len(_union(spans[:count], step, after)) <= most:
            before = step
        if after == step - 1 and len(_union(spans[:count], before, step)) <= most:
            after = step
    return count, before, after


def _union(spans: Sequence[tuple[Sequence[str], int]], before: int, after: int) -> set[str]:
    """The messages of the spans with so many neighbours."""
    return {
        message_id
        for order, place in spans
        if place >= 0
        for message_id in order[max(0, place - before) : place + after + 1]
    }


def _fits(entries: Sequence[Json], chars: int, budget_tokens: int | None) -> bool:
    """Whether messages for a model are within both budgets, measured as messages.window does."""
    if sum(len(json.dumps(entry, ensure_ascii=False)) for entry in entries) > chars:
        return False
    return budget_tokens is None or sum(tokens(entry) for entry in entries) <= budget_tokens


def _hit(result: Result, row: Row | None) -> Hit:
    return Hit(
        message_id=result.message_id,
        session_id=result.session_id,
        title=row.title if row else "",
        role="",
        created=result.created,
        kind=result.match.kind,
        score=result.score,
        mode=result.mode,
        snippet="",
    )
