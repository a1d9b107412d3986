"""Two readings of one message become one: each of its records in the current version, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from daemon.archive import merge
from daemon.model import Json, Message, Part, Parts, part_ids


class Merged(NamedTuple):
    """`message` with `versions` to be kept aside, each (part id or None for the message's own record, raw bytes).

    `gone` are the ids of the parts that only the old reading has, `from_old` those of the records that come from it;
    "" is the message's own.
    """

    message: Message
    versions: list[tuple[str | None, bytes]]
    gone: list[str]
    from_old: frozenset[str]


def merged(old: Message | None, new: Message, is_newer: Callable[[str], bool] = lambda _: True) -> Merged:
    """`new` with nothing lost that `old` had. Where one of them is large, its parts are looked at one by one.

    `is_newer` tells of a part's id, or "" for the message's own record, whether it was written later than in `old`.
    """
    if old is None:
        return Merged(new, [], [], frozenset())
    versions: list[tuple[str | None, bytes]] = []
    were, order = part_ids(old.parts), part_ids(new.parts)
    place = {part_id: (new.parts, number) for number, part_id in enumerate(order)}
    gone = [part_id for part_id in were if part_id not in place]
    from_old = set(gone)
    for number, part_id in enumerate(were):
        if part_id not in place:  # behind the part it used to follow
            before = were[number - 1] if number else ""
            order.insert(order.index(before) + 1 if before in order else 0, part_id)
            place[part_id] = old.parts, number
            continue
        parts, there = place[part_id]
        if _stays(old.parts[number], parts[there], versions, is_newer=is_newer(part_id)):
            from_old.add(part_id)
            place[part_id] = old.parts, number

    def load(number: int) -> Part:
        parts, there = place[order[number]]
        return parts[there]

    whole: Sequence[Part] = Parts(order, load)
    if not isinstance(old.parts, Parts) and not isinstance(new.parts, Parts):
        whole = tuple(whole)
    first, last = (old, new) if is_newer("") else (new, old)
    replaces, aside = merge.choose_message(first.data, last.data)
    head, other = (last, first) if replaces else (first, last)
    if aside:
        versions.append((None, other.raw))
    if head is old:
        from_old.add("")
    return Merged(replace(head, parts=whole), versions, gone, frozenset(from_old))


def superseded(older: Message, newer: Message) -> tuple[Message, list[tuple[str | None, bytes]]]:
    """One message in two generations of storage that number their parts differently (OpenCode 2 has no part records).

    Putting the parts together would say everything twice. The newer generation wins, unless the older one says all that
    it says and more (texts before and after an edit, which OpenCode 2 leaves out); what only the loser says is kept
    aside.
    """
    said_before, said_now = (
        {"parts": [part.data for part in message.parts if not part.type.startswith("step-")]}
        for message in (older, newer)
    )
    texts = {leaf.rstrip() for leaf in merge.leaves(said_before)}
    if all(leaf.rstrip() in texts for leaf in merge.leaves(said_now)):
        whole, other = older, newer
    else:
        whole, other = newer, older
    kept = list(merge.leaves({"head": whole.data, "parts": [part.data for part in whole.parts]}))

    def is_said(data: Json) -> bool:
        return all(merge.stands_in(kept, leaf) for leaf in merge.leaves(data))

    aside: list[tuple[str | None, bytes]] = [(part.id, part.raw) for part in other.parts if not is_said(part.data)]
    return whole, aside + ([] if is_said(other.data) else [(None, other.raw)])


def _stays(old: Part, new: Part, versions: list[tuple[str | None, bytes]], *, is_newer: bool) -> bool:
    """Whether `old` is current; the other one goes into `versions` if it says something of its own."""
    first, last = (old, new) if is_newer else (new, old)
    replaces, aside = merge.choose(first.data, last.data)
    current, other = (last, first) if replaces else (first, last)
    if aside:
        versions.append((new.id, other.raw))
    return current is old
