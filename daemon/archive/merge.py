"""Merges two readings of one message: each record in its current version, and nothing lost.

OpenCode rewrites a part for every token, and people and plugins edit texts and calls, so the newer version is current,
however short. Only a version that was blanked or pruned, or is still being written, does not replace a fuller one
(docs/reliability.md, S10). Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from daemon.model import Json, Message, Part, Parts, part_ids
from daemon.private import FLAG

_BOOKKEEPING = frozenset({"id", "sessionID", "messageID", "parentID", "callID", "type", "status", "role", "raw"})
_SETTLED = {"pending": 0, "streaming": 0, "running": 1, "completed": 2, "error": 2}
_INPUT = ("state", "input")
_EXTRAS = (("state", "metadata"), ("state", "attachments"), ("metadata",))
"""The extra data of a finished call. OpenCode may strip one form of it and add another."""

_LEFT_OUT = ("paths", "agents", "forgotten")
_ELLIPSES = ("...", "…")

Path = tuple[str | int, ...]


def leaves(value: object) -> Iterator[str]:
    """Every text with content in a record (not ids, types and states)."""
    return (leaf for _, leaf in _leaves(value, ()))


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Texts with their places. In a call's input everything counts: a todo's status, a number, a switch."""
    is_input = path[:2] == _INPUT
    if isinstance(value, dict):
        for key, item in value.items():
            if is_input or key not in _BOOKKEEPING:
                yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif isinstance(value, str):
        if value.strip():
            yield path, value
    elif is_input and value is not None:
        yield path, json.dumps(value)


def contains(new: Json, old: Json) -> bool:
    """Whether `new` contains every text of `old`: at the same place, or elsewhere if the place is gone.

    A text may have grown. Trailing white space does not count, because OpenCode trims a text when its stream ends.
    """
    places = dict(_leaves(new, ()))
    texts = places.values()
    return all(
        places[path].startswith(leaf.rstrip()) if path in places else path[:2] != _INPUT and stands_in(texts, leaf)
        for path, leaf in _leaves(old, ())
    )


def stands_in(texts: Iterable[str], leaf: str) -> bool:
    """Whether one of `texts` is this text, or a longer version of it."""
    return any(text.startswith(leaf.rstrip()) for text in texts)


def settledness(data: Json) -> int:
    """0 pending, 1 in progress, 2 final."""
    state = data.get("state")
    if isinstance(state, dict):
        return _SETTLED.get(str(state.get("status")), 1)
    time = data.get("time")
    if isinstance(time, dict) and ("start" in time or "created" in time):
        return 2 if time.get("end") or time.get("completed") else 1
    return 2


def choose(old: Json, new: Json) -> tuple[bool, bool]:
    """(whether `new`, the newer version, becomes the current one; whether the other one must be kept aside).

    >>> choose({"text": "a long answer"}, {"text": "Yes."})
    (True, True)
    >>> choose({"text": "a long answer"}, {"text": ""})
    (False, False)
    """
    if (is_excluded := _is_excluded(new)) != _is_excluded(old):
        return not is_excluded, False
    return _choice(old, new, replaces=_replaces(old, new))


def _is_excluded(data: Json) -> bool:
    """Whether settings left something out of this version: what is archived already stays, and the whole one wins."""
    reasons = data.get(FLAG)
    return isinstance(reasons, dict) and not reasons.keys().isdisjoint(_LEFT_OUT)


def choose_message(old: Json, new: Json) -> tuple[bool, bool]:
    """As `choose`, for the records of messages.

    OpenCode replaces the diffs of a turn after each of its steps, so an earlier step's diffs are then outdated. A
    record that we made for a removed message never replaces the real one.
    """
    if bool(old.get("orphan")) != bool(new.get("orphan")):
        return bool(old.get("orphan")), False
    summary = new.get("summary")
    if not isinstance(summary, dict) or not isinstance(summary.get("diffs"), list):
        return choose(old, new)
    without_summary = [{name: value for name, value in data.items() if name != "summary"} for data in (old, new)]
    return _choice(old, new, replaces=_replaces(*without_summary))


def _choice(old: Json, new: Json, *, replaces: bool) -> tuple[bool, bool]:
    current, replaced = (new, old) if replaces else (old, new)
    return replaces, not contains(current, replaced)


def _replaces(old: Json, new: Json) -> bool:
    before, now = settledness(old), settledness(new)
    if now != before and (now < before or "state" in new):
        return now > before
    return not _is_reduced(old, new)


def _is_reduced(old: Json, new: Json) -> bool:
    """Whether `new` is `old` with something blanked or pruned, and nothing added."""
    is_compacted = _compacted(new) and not _compacted(old)
    differences = list(_differences(old, new, (), is_compacted=is_compacted))
    if not any(kind == "dropped" for kind, _ in differences):
        return False
    is_finished_call = "state" in old and settledness(old) == settledness(new) == _SETTLED["completed"]
    return all(
        kind == "dropped" or (kind == "added" and is_finished_call and any(path[: len(e)] == e for e in _EXTRAS))
        for kind, path in differences
    )


def _compacted(data: Json) -> bool:
    time = data["state"].get("time") if isinstance(data.get("state"), dict) else None
    return isinstance(time, dict) and bool(time.get("compacted"))


def _differences(old: object, new: object, path: Path, *, is_compacted: bool) -> Iterator[tuple[str, Path]]:
    """The change of each text, ``dropped``, ``added`` (or grown) or ``changed``, and its place."""
    both = _side_by_side(old, new) if path != _INPUT else None
    if both is not None:
        for key, was, is_now in both:
            yield from _differences(was, is_now, (*path, key), is_compacted=is_compacted)
        return
    before, now = dict(_leaves(old, path)), dict(_leaves(new, path))
    if path == _INPUT and new:  # a call is created whole, so one with less input is another call
        kind = "" if before == now else _replaced_input(before, now)
    elif bool(before) != bool(now):
        kind = "dropped" if before else "added"
    else:
        kind = "" if before == now else _replaced(old, new, path, is_compacted=is_compacted)
    if kind:
        yield kind, path


def _side_by_side(old: object, new: object) -> list[tuple[str | int, object, object]] | None:
    """The values of two tables, or of a list and one at least as long, by place; None for anything else."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = (name for name in dict.fromkeys((*old, *new)) if name not in _BOOKKEEPING)
        return [(name, old.get(name), new.get(name)) for name in names]
    if isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        return [(number, was, is_now) for number, (was, is_now) in enumerate(zip_longest(old, new))]
    return None


def _replaced(old: object, new: object, path: Path, *, is_compacted: bool) -> str:
    """The kind of change from one value to another at a place; empty if only its end was trimmed."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return "changed"
    if new.rstrip().startswith(old.rstrip()):
        return "" if new.rstrip() == old.rstrip() else "added"
    is_pruned = path[-1:] == ("output",) and (is_compacted or _is_remainder(old, new))
    return "dropped" if is_pruned else "changed"


def _replaced_input(before: dict[Path, str], now: dict[Path, str]) -> str:
    """The kind of change of a call's input. A notice is not an input, and must not count as the written text."""
    if not before:
        return "added"
    is_pruned = before.keys() == now.keys() and all(
        now[path] == text or _is_notice(now[path].strip(), alone=True) for path, text in before.items()
    )
    return "dropped" if is_pruned else "changed"


def _is_remainder(old: str, new: str) -> bool:
    """Whether `new` is the head or the tail of the output `old`, or both with a notice between, or only a notice."""
    if old.startswith(new.strip()) or old.endswith(new.strip()):
        return True
    old_lines = {line.rstrip() for line in old.splitlines()}
    lines = [line.strip() for line in new.splitlines() if line.strip()]
    new_lines = [line for line in new.splitlines() if line.rstrip() not in old_lines]
    is_alone = len(lines) == 1
    return (
        len(new_lines) == 1 and (is_alone or len(new) < len(old)) and _is_notice(new_lines[0].strip(), alone=is_alone)
    )


def _is_notice(line: str, *, alone: bool) -> bool:
    """Words in brackets; beside lines of the output itself, also what begins or ends with an ellipsis."""
    is_bracketed = "\n" not in line and line[:1] in ("[", "(") and line[-1:] in ("]", ")") and line[1:2].isalpha()
    return is_bracketed or (not alone and (line.startswith(_ELLIPSES) or line.endswith(_ELLIPSES)))


class Merged(NamedTuple):
    """`message`, and `versions` to keep aside, each (part id or None for the message's own record, raw bytes).

    `gone` are the ids of parts that only the old reading has; `from_old` are the ids of records that come from it, with
    "" for the message's own.
    """

    message: Message
    versions: list[tuple[str | None, bytes]]
    gone: list[str]
    from_old: frozenset[str]


def merged(old: Message | None, new: Message, is_newer: Callable[[str], bool] = lambda _: True) -> Merged:
    """`new` with everything that only `old` has. If one of them is large, its parts are loaded one by one.

    `is_newer` says whether a part (by id, "" for the message's own record) was written later than in `old`.
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
    replaces, aside = choose_message(first.data, last.data)
    head, replaced = (last, first) if replaces else (first, last)
    if aside:
        versions.append((None, replaced.raw))
    if head is old:
        from_old.add("")
    return Merged(replace(head, parts=whole), versions, gone, frozenset(from_old))


def superseded(older: Message, newer: Message) -> tuple[Message, list[tuple[str | None, bytes]]]:
    """One message in two generations of storage that number their parts differently (OpenCode 2 has no part records).

    Combining the parts would duplicate everything. The newer generation wins, unless the older one has all its texts
    and more (texts before and after an edit, which OpenCode 2 leaves out). Content that only the loser has is kept
    aside.
    """
    parts_before, parts_now = (
        {"parts": [part.data for part in message.parts if not part.type.startswith("step-")]}
        for message in (older, newer)
    )
    texts = {leaf.rstrip() for leaf in leaves(parts_before)}
    if all(leaf.rstrip() in texts for leaf in leaves(parts_now)):
        whole, replaced = older, newer
    else:
        whole, replaced = newer, older
    whole_leaves = list(leaves({"head": whole.data, "parts": [part.data for part in whole.parts]}))

    def is_said(data: Json) -> bool:
        return all(stands_in(whole_leaves, leaf) for leaf in leaves(data))

    aside: list[tuple[str | None, bytes]] = [(part.id, part.raw) for part in replaced.parts if not is_said(part.data)]
    return whole, aside + ([] if is_said(replaced.data) else [(None, replaced.raw)])


def _stays(old: Part, new: Part, versions: list[tuple[str | None, bytes]], *, is_newer: bool) -> bool:
    """Whether `old` is current; the other part goes into `versions` if it has content of its own."""
    first, last = (old, new) if is_newer else (new, old)
    replaces, aside = choose(first.data, last.data)
    current, replaced = (last, first) if replaces else (first, last)
    if aside:
        versions.append((new.id, replaced.raw))
    return current is old
