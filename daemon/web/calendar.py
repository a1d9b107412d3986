"""Days as a calendar, and what happened on one of them, session by session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from daemon.control.view_answers import ActiveDay
from daemon.model import Json

LEVELS = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """A day in a calendar; `level` is 0 for nothing, then 1 to LEVELS by how much happened."""

    day: ActiveDay
    level: int


@dataclass(frozen=True, slots=True)
class Week:
    """Monday to Sunday; None where the calendar has no such day. `month` stands above the first week of a month."""

    month: str
    cells: tuple[Cell | None, ...]


def weeks(days: Sequence[ActiveDay]) -> list[Week]:
    """Whole weeks of consecutive days, oldest first."""
    if not days:
        return []
    bounds = _bounds(days)
    cells: list[Cell | None] = [None] * date.fromisoformat(days[0].date).weekday()
    cells += [Cell(day, sum(day.messages > bound for bound in bounds)) for day in days]
    cells += [None] * (-len(cells) % 7)
    rows = []
    month = ""
    for start in range(0, len(cells), 7):
        week = tuple(cells[start : start + 7])
        first = next(cell for cell in week if cell is not None)
        name = date.fromisoformat(first.day.date).strftime("%b")
        rows.append(Week(name if name != month else "", week))
        month = name
    return rows


def _bounds(days: Sequence[ActiveDay]) -> list[int]:
    """A day is of the level of how many of these its messages exceed: 0, and quarters of the days with messages."""
    counts = sorted(day.messages for day in days if day.messages)
    return [0, *(counts[len(counts) * part // LEVELS] for part in range(1, LEVELS))] if counts else [0] * LEVELS


@dataclass(slots=True)
class DaySession:
    """What happened in one session on a day: `prompts` and `changes` are entries of the call `activity`."""

    id: str
    title: str
    began: bool = False
    prompts: list[Json] = field(default_factory=list)
    changes: list[Json] = field(default_factory=list)

    @property
    def paths(self) -> list[tuple[str, str, Json]]:
        """Each changed path once, with its last operation and entry."""
        last = {str(entry.get("path", "")): entry for entry in self.changes}
        return [(path, str(entry.get("operation", "")), entry) for path, entry in sorted(last.items())]


def by_session(entries: Iterable[Json]) -> list[DaySession]:
    """The sessions of a day, the one that something happened in last comes first."""
    sessions: dict[str, DaySession] = {}
    for entry in entries:
        session_id = str(entry.get("sessionID", ""))
        session = sessions.pop(session_id, None) or DaySession(session_id, str(entry.get("sessionTitle", "")))
        sessions[session_id] = session  # the last one that something happened in stands last
        if entry.get("type") == "session":
            session.began = True
        else:
            (session.prompts if entry.get("type") == "prompt" else session.changes).append(entry)
    return list(reversed(sessions.values()))


def day_of(text: str, today: date) -> date:
    """A date as it stands in an address; `today` where it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return today


def neighbours(day: date, today: date) -> tuple[str, str]:
    """The day before, and the day after; "" for one that has not come yet."""
    after = day + timedelta(1)
    return (day - timedelta(1)).isoformat(), after.isoformat() if after <= today else ""
