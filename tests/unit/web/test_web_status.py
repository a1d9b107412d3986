"""The status in the browser: live, its checks, pausing and resuming, and the trajectories of answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.app import OneShot
from daemon.control import answers, calls
from daemon.control.answers import DiskStatus, ErrorStatus, JobsStatus, Pause, Status, TargetStatus
from daemon.reconstitute.agent.trajectory import Trajectory
from tests.unit.web.conftest import ADDRESS, Scripted, Visit
from tests.unit.web.places import HOSTILE, SECRET, engine_at, talk_in

ORIGIN = {"origin": ADDRESS}
LIVE = {"hx-request": "true"}
T = 1_795_262_400_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[OneShot]:
    with engine_at(tmp_path) as opened:
        yield opened


def token(text: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def test_the_status_of_a_real_archive(engine: OneShot, tmp_path: Path, visit: Visit) -> None:
    talk, folder = talk_in(tmp_path)
    talk.ask("Number the rows.")
    talk.write(f"{folder}/beds.lua", "rows = [1]\n")
    engine.call(calls.Index())
    shown = visit(engine).get("/status")
    assert shown.status_code == 200
    assert "<dt>Messages</dt><dd>2</dd>" in shown.text
    assert str(tmp_path / "archive") in shown.text
    assert "json:" in shown.text  # the source
    assert "Every message is indexed." in shown.text


def test_the_live_part_alone_is_what_htmx_gets(engine: OneShot, visit: Visit) -> None:
    browser = visit(engine)
    part = browser.get("/status", headers=LIVE).text
    assert "<html" not in part
    assert "<form" not in part  # what one types in must not be swapped away
    assert part.strip() in browser.get("/status").text or "Archive" in part


def test_what_waits_has_a_bar_and_the_time_left(visit: Visit) -> None:
    status = Status(
        outbox={"lexical": 0, "semantic": 300, "tools": 100},
        index={
            "lexical": {"state": "ready", "count": 5, "secondsLeft": 0},
            "semantic": {"state": "ready", "count": 600, "secondsLeft": 7000, "unread": 3},
        },
        archive=answers.ArchiveStatus(messages=1000),
    )
    shown = " ".join(visit(Scripted(status)).get("/status", headers=LIVE).text.split())
    assert '<progress max="1000" value="600"' in shown
    assert "400 messages not searchable by meaning yet; about 117 min left" in shown
    assert "cannot read 3 messages" in shown


def test_a_pause_a_full_disk_and_troubles_are_named(visit: Visit) -> None:
    status = Status(
        pause=Pause(T, None),
        disk=DiskStatus(T, "no space", ["embed", "jobs"]),
        troubles=[answers.Check("free space", "broken", "the disk is full", "free some space")],
        jobs=JobsStatus("/home/dev/garden", 2),
        targets=[TargetStatus("/home/dev/garden", "continuous", unanswered=2, warnings=["one", "two"])],
        errors=[ErrorStatus(T, "embedding", "it failed", "Retry")],
    )
    shown = visit(Scripted(status)).get("/status", headers=LIVE).text
    for words in ("Paused", "until it is resumed", "no space", "embedding, requests and pages", "the disk is full",
                  "free some space", "2 questions waiting for the model", "it failed", "/trajectories?path="):  # fmt: skip
        assert words in shown


def test_what_a_status_quotes_is_inert(visit: Visit) -> None:
    status = Status(
        version=HOSTILE,
        troubles=[answers.Check(HOSTILE, HOSTILE, HOSTILE, HOSTILE)],
        sources=[answers.SourceStatus(HOSTILE, HOSTILE, HOSTILE)],
        targets=[TargetStatus(HOSTILE, state=HOSTILE, warnings=[HOSTILE])],
        errors=[ErrorStatus(T, HOSTILE, HOSTILE, HOSTILE)],
        jobs=JobsStatus(HOSTILE, 1),
        answers=HOSTILE,
        index={"semantic": {"state": HOSTILE, "embedder": HOSTILE}},
    )
    shown = visit(Scripted(status)).get("/status").text
    assert "<img" not in shown
    assert "<script>alert" not in shown
    assert "\u202e" not in shown
    assert not re.search(r'="[^"]*"\s*onerror', shown)


def test_the_checks_are_made_on_demand(engine: OneShot, visit: Visit) -> None:
    browser = visit(engine)
    whole, part = browser.get("/status/doctor").text, browser.get("/status/doctor", headers=LIVE).text
    for row in engine.call(calls.Doctor()).checks:
        assert row.what in whole
    assert "<html" not in part
    assert "<table>" in part


def test_one_pauses_and_resumes(engine: OneShot, visit: Visit) -> None:
    browser = visit(engine)
    fields = {"form_token": token(browser.get("/status").text)}
    sent = browser.post("/status/pause", data=fields | {"until": "4h"}, headers=ORIGIN)
    assert (sent.status_code, sent.headers["location"]) == (303, "/status")
    paused = engine.pausing.state()
    assert paused is not None
    assert paused.until is not None
    assert round((paused.until - paused.since) / 3_600_000) == 4
    assert "Paused" in browser.get("/status", headers=LIVE).text
    browser.post("/status/pause", data=fields | {"until": "", "resume": "1"}, headers=ORIGIN)
    assert engine.pausing.state() is None


def test_an_end_of_a_pause_that_is_none_is_refused(engine: OneShot, visit: Visit) -> None:
    browser = visit(engine)
    fields = {"form_token": token(browser.get("/status").text), "until": "soon"}
    assert browser.post("/status/pause", data=fields, headers=ORIGIN).status_code == 400
    assert engine.pausing.state() is None


def test_a_trajectory_is_shown_step_by_step(engine: OneShot, visit: Visit) -> None:
    question = {"id": "purpose", "ask": f"What is it for? {HOSTILE}"}
    record = Trajectory(engine.archive, "/home/dev/garden", question, "qwen3:8b", lambda: T)
    record.thoughts[2] = f"I should read {HOSTILE}"
    record.save(
        [
            {"role": "system", "content": "You answer."},
            {"role": "user", "content": f"What is it for? {SECRET}"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "read_file", "arguments": {"path": f"/a/{HOSTILE}"}}}]},
            {"role": "tool", "tool_name": "read_file", "content": HOSTILE},
            {"role": "assistant", "content": "It grows beans."},
        ],
        steps=2, tokens=1900, seconds=3.5,
    )  # fmt: skip
    record.end("answered")
    browser = visit(engine)
    listed = browser.get("/trajectories").text
    assert "qwen3:8b" in listed
    assert "2 steps, 1,900 tokens" in listed
    address = re.search(r'href="(/trajectories\?[^"]*started=[^"]*)"', listed)
    assert address is not None
    shown = browser.get(address[1].replace("&amp;", "&")).text
    places = [shown.index(words) for words in ("You answer.", "I should read", "read_file", "It grows beans.")]
    assert places == sorted(places)
    for text in (listed, shown):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert SECRET not in text
        assert "\u202e" not in text


def test_without_trajectories_the_page_says_so(engine: OneShot, visit: Visit) -> None:
    assert "no model was asked" in visit(engine).get("/trajectories").text


@pytest.mark.parametrize("started", ["123", "9" * 15])
def test_a_trajectory_that_is_not_there_is_an_error(engine: OneShot, visit: Visit, started: str) -> None:
    assert visit(engine).get("/trajectories", params={"started": started}).status_code == 400


@pytest.mark.parametrize("started", ["x", "-1", "٣", "9" * 99])
def test_a_beginning_that_is_no_number_lists_all(engine: OneShot, visit: Visit, started: str) -> None:
    assert visit(engine).get("/trajectories", params={"started": started}).status_code == 200
