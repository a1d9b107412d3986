"""Divides all recorded paths into lots that are replayed one after another, so that their events need little memory.

A lot is some folders with everything beneath them. A work tree of which there are snapshots stays in one lot, because
its trees show files of which nothing else is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from daemon.files.trees import above, is_in

USUAL = 16 << 20
"""Bytes of the recorded events of a lot, as JSON; replayed they take about ten times as much memory."""
_MOST_PLACES = 200
"""Folders in a lot: what is read for each is compared with all others."""


@dataclass(frozen=True, slots=True)
class Lots:
    """`lots` hold every recorded path but the `divided` folders, whose inner paths are in several lots."""

    lots: list[list[str]] = field(default_factory=list)
    divided: set[str] = field(default_factory=set)


def in_lots(sizes: Mapping[str, int], whole: Collection[str], most: int = USUAL) -> Lots:
    """Lots of about `most` bytes. `sizes` has the bytes of the events of each path; `whole` are not divided."""
    total: dict[str, int] = defaultdict(int)
    inner: dict[str, set[str]] = defaultdict(set)
    for path, size in (dict.fromkeys(whole, 0) | dict(sizes)).items():
        total[path] += size
        below = path
        for folder in (*above(path), "/"):
            total[folder] += size
            inner[folder].add(below)
            below = folder
    inner["/"].discard("/")
    result, room = Lots(), 0
    waiting = ["/"]
    while waiting:
        place = waiting.pop()
        if place not in whole and total[place] > most and inner[place]:
            waiting += sorted(inner[place], reverse=True)
            if place in sizes:
                result.divided.add(place)
            continue
        if not result.lots or total[place] > room or len(result.lots[-1]) == _MOST_PLACES:
            result.lots.append([])
            room = most
        result.lots[-1].append(place)
        room -= total[place]
    return result


def in_no_lot(paths: Iterable[str], lots: Lots) -> set[str]:
    """Those of `paths` that are in no lot."""
    places = {place for lot in lots.lots for place in lot}
    return {path for path in paths if path not in lots.divided and not is_in(path, places)}
