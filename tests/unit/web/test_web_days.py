"""Today, the calendar and what is left open, in the browser and as calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from daemon.app import OneShot
from daemon.control import calls
from daemon.control.view_answers import ActiveDay, Activity
from daemon.days import Days
from daemon.errors import BadRequest
from daemon.recall.activity import by_day
from daemon.web.calendar import by_session, day_of, neighbours, weeks
from tests.support.stores.make_opencode import T0
from tests.unit.web.conftest import Scripted, Visit
from tests.unit.web.places import DAY, HOSTILE, SECRET, engine_at, talk_in


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[OneShot]:
    with engine_at(tmp_path) as opened:
        yield opened


def test_messages_prompts_and_sessions_are_counted_by_day(engine: OneShot, tmp_path: Path) -> None:
    talk, folder = talk_in(tmp_path)
    talk.ask("Number the rows.")
    talk.write(f"{folder}/beds.lua", "rows = [1]\n")
    talk.answer("Done.")
    answer = engine.call(calls.Activity("2026-11-20", "2026-11-22"))
    assert answer.days == [
        ActiveDay("2026-11-20"), ActiveDay(DAY, messages=3, prompts=1, sessions=1), ActiveDay("2026-11-22"),
    ]  # fmt: skip
    assert answer.entries == []


def test_messages_that_are_not_indexed_yet_count_once(engine: OneShot, tmp_path: Path) -> None:
    """What waits is searched in memory, over an index that may have an older version of it."""
    talk, _ = talk_in(tmp_path)
    talk.ask("Number the rows.")
    engine.call(calls.Index())
    talk.ask("Again.")
    engine.scan(everything=True, words=False)
    engine.archive.enqueue_all("lexical")  # both wait now, one of them is indexed already
    lexical = engine.unindexed.over(engine.upkeep.lexical)
    [day] = by_day(lexical, engine.catalog, Days(date(2026, 11, 21), date(2026, 11, 22)))
    assert (day.messages, day.prompts) == (2, 2)


def test_only_a_folder_is_counted(engine: OneShot, tmp_path: Path) -> None:
    talk, folder = talk_in(tmp_path)
    talk.ask("Number the rows.")
    here = engine.call(calls.Activity(DAY, DAY, project=folder)).days
    elsewhere = engine.call(calls.Activity(DAY, DAY, project=f"{folder}-2", limit=5))
    assert [(day.messages, day.sessions) for day in here] == [(1, 1)]
    assert [(day.messages, day.sessions) for day in elsewhere.days] == [(0, 0)]
    assert elsewhere.entries == []


@pytest.mark.parametrize(
    ("after", "before", "project"), [("2026-11-22", "2026-11-21", ""), ("x", "", ""), ("", "", "a")]
)
def test_days_that_make_no_sense_are_refused(engine: OneShot, after: str, before: str, project: str) -> None:
    with pytest.raises(BadRequest):
        engine.call(calls.Activity(after, before, project))


def test_the_entries_of_a_day_are_those_of_that_day(engine: OneShot, tmp_path: Path) -> None:
    talk, folder = talk_in(tmp_path)
    talk.ask("Number the rows.")
    talk.write(f"{folder}/beds.lua", "rows = [1]\n")
    day = engine.call(calls.Activity(DAY, DAY, limit=50))
    assert [entry["type"] for entry in day.entries] == ["session", "prompt", "file"]
    assert not day.has_more
    cut = engine.call(calls.Activity(DAY, DAY, limit=2))
    assert ([entry["type"] for entry in cut.entries], cut.has_more) == (["session", "prompt"], True)
    assert engine.call(calls.Activity("2026-11-20", "2026-11-20", limit=50)).entries == []
    assert engine.call(calls.Activity("2026-11-22", "2026-11-22", limit=50)).entries == []


def test_what_is_left_open_is_told_by_folder(engine: OneShot, tmp_path: Path) -> None:
    talk, folder = talk_in(tmp_path)
    talk.ask("Number the rows.")
    talk.answer("Done. Should the beds be watered on Mondays or on Fridays?")
    answer = engine.call(calls.Unfinished("2026-01-01"))
    [open_folder] = answer.folders
    [point] = open_folder.points
    assert open_folder.path == folder
    assert point.kind == "question not answered in its session"
    assert "on Mondays or on Fridays" in point.text
    assert (point.session_id, point.session_title) == ("ses_a", "Garden")
    assert (answer.sessions, answer.left_out) == (1, 0)
    assert engine.call(calls.Unfinished("2026-11-25")).folders == []


def test_a_day_is_shown_session_by_session(engine: OneShot, tmp_path: Path, visit: Visit) -> None:
    talk, folder = talk_in(tmp_path)
    prompt = talk.ask("Number the rows.")
    talk.write(f"{folder}/beds.lua", "rows = [1]\n")
    engine.call(calls.Index())
    shown = visit(engine).get("/history", params={"day": DAY, "until": DAY}).text
    assert "Saturday, 2026-11-21" in shown
    assert "2 messages, 1 prompt, 1 session begun" in shown
    assert f'href="/session/ses_a?message={prompt}"' in shown
    assert "Number the rows." in shown
    assert "1 file changed" in shown
    assert "beds.lua" in shown
    assert f"{DAY}: 2 messages" in shown  # in the calendar
    assert 'aria-current="date"' in shown


def test_hostile_records_are_inert_in_days(
    engine: OneShot, tmp_path: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk, folder = talk_in(tmp_path, title=HOSTILE)
    talk.ask(f"{HOSTILE} {SECRET}")
    talk.write(f"{folder}/<img src=x>.txt", "x\n")
    talk.answer(f"Done. Should the beds be watered on Mondays or on Fridays, {HOSTILE}?")
    engine.call(calls.Index())
    browser = visit(engine)
    monkeypatch.setattr(time, "time_ns", lambda: (T0 + 86_400_000) * 1_000_000)  # within a week
    assert "Mondays" in browser.get("/today/open").text
    for shown in (browser.get("/history", params={"day": DAY, "until": DAY}).text, browser.get("/today/open").text):
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "\u202e" not in shown
        assert SECRET not in shown
    assert "alert(1)" in browser.get("/history", params={"day": DAY, "until": DAY}).text


def test_today_is_today(engine: OneShot, visit: Visit) -> None:
    shown = visit(engine).get("/today").text
    assert date.today().isoformat() in shown
    assert "Nothing is recorded of this day." in shown
    assert 'hx-get="/today/open"' in shown


@pytest.mark.parametrize("day", ["", "x", "0001-01-01", "9999-12-31", "2026-13-01", "<b>"])
def test_a_day_that_is_none_is_no_error(engine: OneShot, visit: Visit, day: str) -> None:
    assert visit(engine).get("/history", params={"day": day, "until": day}).status_code == 200


def test_an_answer_of_an_older_service_is_no_error(visit: Visit) -> None:
    assert visit(Scripted(Activity(), Activity())).get("/history").status_code == 200


# -- pure parts ------------------------------------------------------------------------------------------------------


def test_weeks_begin_on_monday_and_are_whole() -> None:
    days = [ActiveDay(f"2026-11-{number:02}", messages=number % 5) for number in range(4, 18)]  # from a Wednesday on
    grid = weeks(days)
    assert [len(week.cells) for week in grid] == [7, 7, 7]
    assert grid[0].cells[:2] == (None, None)
    assert grid[0].cells[2].day.date == "2026-11-04"
    assert grid[2].cells[1].day.date == "2026-11-17"
    assert grid[2].cells[2:] == (None,) * 5
    assert [week.month for week in grid] == ["Nov", "", ""]


def test_levels_tell_much_from_little() -> None:
    counts = [0, 1, 2, 5, 40, 0, 300]
    [week] = weeks([ActiveDay(f"2026-11-{16 + n:02}", messages=count) for n, count in enumerate(counts)])
    levels = [cell.level for cell in week.cells]
    assert levels[0] == levels[5] == 0
    assert levels[6] == max(levels) == 4
    ordered = [level for _, level in sorted(zip(counts, levels, strict=True))]
    assert ordered == sorted(ordered)
    assert all(cell.level == 0 for cell in weeks([ActiveDay("2026-11-16")])[0].cells[:1])
    assert weeks([]) == []


def test_the_session_of_the_last_entry_comes_first() -> None:
    entries = [
        {"type": "session", "sessionID": "a", "sessionTitle": "A"},
        {"type": "prompt", "sessionID": "a"},
        {"type": "prompt", "sessionID": "b"},
        {"type": "file", "sessionID": "a", "path": "/x", "operation": "write"},
        {"type": "file", "sessionID": "a", "path": "/x", "operation": "edit"},
    ]
    first, second = by_session(entries)
    assert (first.id, first.title, first.began, len(first.prompts)) == ("a", "A", True, 1)
    assert [(path, operation) for path, operation, _ in first.paths] == [("/x", "edit")]
    assert (second.id, second.began) == ("b", False)


def test_days_and_their_neighbours() -> None:
    now = date(2026, 11, 21)
    assert day_of("2026-11-20", now) == date(2026, 11, 20)
    assert day_of("yesterday", now) == now
    assert neighbours(now, now) == ("2026-11-20", "")
    assert neighbours(date(2026, 11, 20), now) == ("2026-11-19", "2026-11-21")
