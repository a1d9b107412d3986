"""Odd questions to one invented history in several languages: where the right answer stands, with the built-in model.

What is asked and what is right is data, odd_questions.toml. A place that is not the first is a known fault, with its
reason; when a change mends it the table must say so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.embed.builtin import Builtin
from daemon.index.lexical import Lexical
from daemon.index.semantic import Semantic
from daemon.recall.query import Recall
from tests.support.stores.recorded_sessions import START, Recorded, call

TABLE = tomllib.loads((Path(__file__).parent / "odd_questions.toml").read_text())
NOW = START
DAY = 86_400_000
QUESTIONS = [(kind, number, row) for kind, rows in TABLE["questions"].items() for number, row in enumerate(rows)]


@dataclass
class History:
    """The archive, and the ids of its messages by their names in the table."""

    house: Recorded
    ids: dict[str, str]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    directory, model = tmp_path_factory.mktemp("history"), Builtin()
    with (
        Archive(directory / "archive") as archive,
        closing(Lexical(directory / "lexical")) as lexical,
        closing(Semantic(directory / "semantic", model.fingerprint, model.dims)) as vectors,
    ):
        house, ids = Recorded(archive, lexical, model, vectors), {}
        for number, session in enumerate(TABLE["sessions"]):
            house.clock = NOW - session["days"] * DAY
            sid = house.session(f"ses_{number}", f"/work/{number}", session["title"])
            for name, role, text in session["messages"]:
                part = call("bash", command="run", output=text) if role == "tool" else text
                ids[name] = house.say(sid, "user" if role == "user" else "assistant", part)
        house.index()
        yield History(house, ids)


@pytest.mark.parametrize(("kind", "number", "row"), QUESTIONS, ids=lambda value: str(value)[:40])
def test_the_right_answer_stands_in_its_place(history: History, kind: str, number: int, row: dict[str, Any]):
    query = " ".join([row["ask"]] * int(row.get("times", 1)))
    if kind == "long" and " " not in row["ask"]:
        query = query.replace(" ", "")
    asked = {name: row[name] for name in ("match", "after", "before") if name in row}
    found = history.house.recall(budget_s=60.0).answer(Recall(query=query, results=10, **asked), now=NOW)["results"]
    ids = [one["messageID"] for one in found]
    if not row["right"]:
        assert len(ids) == row.get("results", 0)
        return
    names = [row["right"]] if isinstance(row["right"], str) else row["right"]
    right = {history.ids[name] for name in names}
    place = next((place for place, found_id in enumerate(ids, start=1) if found_id in right), 0)
    assert place == row.get("place", 1), [one["snippet"][:60] for one in found[:3]]


def test_the_table_is_whole():
    """About a hundred questions, each once, and what is known to be wrong says why."""
    rows = [row for _, _, row in QUESTIONS]
    assert len(rows) >= 100
    assert len({(row["ask"], row.get("match"), row.get("after"), row.get("before")) for row in rows}) == len(rows)
    assert all(row.get("reason") for row in rows if row.get("place", 1) != 1 or row.get("results"))
