"""Two readings of one message become one: each of its records in the current version, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from daemon.archive import merge
from daemon.model import Json, Message, Part


def merged(
    old: Message | None, new: Message, is_newer: Callable[[str], bool] = lambda _: True
) -> tuple[Message, list[tuple[str | None, bytes]], list[str]]:
    """`new` with nothing lost that `old` had: (message, versions to keep aside, ids of parts the source dropped).

    `is_newer` tells of a part's id, or "" for the message's own record, whether it was written later than in `old`.
    """
    if old is None:
        return new, [], []
    versions: list[tuple[str | None, bytes]] = []
    parts = {part.id: part for part in new.parts}
    for part in old.parts:
        if part.id in parts:
            parts[part.id] = _current(part, parts[part.id], versions, is_newer=is_newer(part.id))
    gone = [part.id for part in old.parts if part.id not in parts]
    order = [part.id for part in new.parts]
    for number, part in enumerate(old.parts):
        if part.id not in parts:  # behind the part it used to follow
            before = old.parts[number - 1].id if number else ""
            order.insert(order.index(before) + 1 if before in order else 0, part.id)
            parts[part.id] = part
    first, last = (old, new) if is_newer("") else (new, old)
    replaces, aside = merge.choose_message(first.data, last.data)
    head, other = (last, first) if replaces else (first, last)
    if aside:
        versions.append((None, other.raw))
    return replace(head, parts=tuple(parts[part_id] for part_id in order)), versions, gone


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


def _current(old: Part, new: Part, versions: list[tuple[str | None, bytes]], *, is_newer: bool) -> Part:
    first, last = (old, new) if is_newer else (new, old)
    replaces, aside = merge.choose(first.data, last.data)
    current, other = (last, first) if replaces else (first, last)
    if aside:
        versions.append((new.id, other.raw))
    return current
