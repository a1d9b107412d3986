"""What OpenCode recorded and nobody could read is told of, so that nobody takes it for not recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.model import Json
from daemon.recall.catalog import Quarantine
from daemon.recall.query import Recall
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore, session, text, user
from tests.support.stores.recorded_sessions import Recorded, recorded

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        made.session("zoo", "/work/zoo")
        made.say("zoo", "user", "The okapi is here.")
        made.index()
        yield made


def _ask(house: Recorded, query: str, match: str = "hybrid") -> Json:
    return house.recall(budget_s=60.0).answer(Recall(query=query, match=match))


def _set_aside(house: Recorded, place: str, reason: str = "no JSON", at: int = 1, source: str = "test") -> None:
    batch = house.archive.batch()
    batch.quarantine(source, place, {"reason": reason, "time": at})
    house.archive.commit(batch)


def _about(answer: Json) -> list[str]:
    return [warning for warning in answer["warnings"] if "could not be read" in warning]


def test_a_message_with_a_broken_part_is_told_by_coverage_and_by_a_warning(tmp_path: Path):
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_1"))
    store.message(
        user("msg_1", "ses_1"),
        text("prt_1", "msg_1", "ses_1", "An okapi."),
        text("prt_2", "msg_1", "ses_1", "A tapir."),
    )
    broken = next((tmp_path / "oc").rglob("prt_2.json"))
    broken.write_bytes(broken.read_bytes()[:-9])
    os.utime(broken, (1, 1))  # a fresh one may still be being written
    tables: dict[str, Any] = {
        "opencode": {"data_dir": str(tmp_path / "oc")},
        "archive": {"dir": str(tmp_path / "archive")},
        "embedding": {"provider": "builtin"},
    }
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        answer = engine.recall("recall", {"query": "tapir"})
        assert answer["coverage"]["loadErrorCount"] == 1
        assert answer["coverage"]["loadErrors"][0]["record"] == "message msg_1"
        assert answer["coverage"]["loadErrors"][0]["reason"]
        assert len(_about(answer)) == 1
        assert "message msg_1" in _about(answer)[0]
        assert "coverage" not in _about(answer)[0]  # which the command line and the short form of MCP do not show
        assert not any("no current text" in warning for warning in answer["warnings"])


@pytest.mark.parametrize("match", ["hybrid", "literal", "smart", "fuzzy", "regex"])
def test_where_everything_was_read_nothing_is_said(house: Recorded, match: str):
    answer = _ask(house, "tapir", match)
    assert not {"loadErrorCount", "loadErrors"} & answer["coverage"].keys()
    assert _about(answer) == []


@pytest.mark.parametrize("match", ["hybrid", "literal", "smart", "fuzzy", "regex", "semantic"])
def test_the_warning_comes_where_something_is_missed_and_coverage_always(house: Recorded, match: str):
    _set_aside(house, "message msg_broken")
    found, missed = _ask(house, "okapi", match), _ask(house, "tapir", match)
    assert (found["coverage"]["loadErrorCount"], missed["coverage"]["loadErrorCount"]) == (1, 1)
    assert _about(found) == []
    assert len(_about(missed)) == 1 or (match == "semantic" and missed["results"])


def test_nothing_is_said_of_texts_outside_the_filters(house: Recorded):
    _set_aside(house, "message msg_broken")
    request = Recall(query="okapi", match="fuzzy", role="assistant")
    said = "; ".join(house.recall(budget_s=60.0).answer(request)["warnings"])
    assert "no text that could be searched within the filters contains 'okapi'" in said


def test_the_latest_few_are_shown_without_secrets_and_short(house: Recorded):
    for number in range(9):
        _set_aside(house, f"message msg_{number}", f"line {number}: {SECRET} {'x' * 999}", at=number)
    _set_aside(house, f"session {SECRET}", at=99)
    coverage = _ask(house, "tapir")["coverage"]
    shown = coverage["loadErrors"]
    assert coverage["loadErrorCount"] == 10
    assert [one["record"].partition(" ")[0] for one in shown] == ["session", "message", "message"]
    assert shown[1]["record"] == "message msg_8"
    assert SECRET not in str(shown) + str(_about(_ask(house, "tapir")))
    assert max(len(value) for one in shown for value in one.values()) <= 200


def test_texts_that_no_model_can_embed_are_no_records(house: Recorded):
    _set_aside(house, "msg_0001#3", source="embedder")
    assert "loadErrorCount" not in _ask(house, "tapir")["coverage"]


def test_what_was_read_after_all_is_not_told_any_more(house: Recorded):
    known = Quarantine(house.archive)
    assert known.summary().count == 0
    _set_aside(house, "message msg_broken")
    assert known.summary().count == 1
    batch = house.archive.batch()
    batch.release("test", "message msg_broken")
    house.archive.commit(batch)
    assert known.summary().count == 0


def test_it_costs_a_question_nothing(house: Recorded):
    batch = house.archive.batch()
    for number in range(20_000):
        batch.quarantine("test", f"message msg_{number}", {"reason": "no JSON", "time": number})
    house.archive.commit(batch)
    known = Quarantine(house.archive)
    began = time.process_time()
    known.summary()
    first, began = time.process_time() - began, time.process_time()
    for _ in range(100):
        known.summary()
    assert (time.process_time() - began) / 100 < first / 100
