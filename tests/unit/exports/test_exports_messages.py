"""The chat messages: what the archive keeps for Ollama, whole or cut, and always an array that Ollama takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.exports import Export
from daemon.exports.formats import export
from daemon.opencode.discover import Sources
from daemon.transcript.replay import replay
from tests.conftest import Sample
from tests.support.chat_messages import ollama_problems
from tests.support.stores.intake import intake_of
from tests.support.stores.recorded_sessions import Recorded, call, recorded

RESULTS = pytest.mark.parametrize("results", ["full", "summary", "none"])


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def lines(archive: Archive, **asked: Any) -> list[dict[str, Any]]:
    taken: list[str] = []
    export(archive, Export(format="messages", **asked), taken.append, lambda _: None)
    return [json.loads(line) for line in "".join(taken).splitlines()]


def test_a_session_is_its_replay_and_nothing_else(any_sample: Sample, tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        sources, intake = Sources(any_sample.data_dir, 64), intake_of(archive, quiet_s=0.3, free_mb=1)
        for source in sources.refresh():
            intake.scan(source)
        sources.close()
        found = lines(archive, raw=True)
        assert len(found) == archive.figures()["sessions"]
        for one in found:
            session = archive.session(one["session_id"])
            assert session is not None
            assert (one["title"], one["directory"]) == (session.title, session.directory)
            assert one["messages"] == [entry for message in archive.messages(session.id) for entry in replay(message)]
            assert ollama_problems(one["messages"]) == []
        for results in ("summary", "none"):
            assert [ollama_problems(one["messages"]) for one in lines(archive, results=results)] == [[]] * len(found)


@pytest.fixture
def busy(house: Recorded) -> Recorded:
    sid = house.session("ses_a", "/w")
    house.say(sid, "user", "Build it.")
    calls = [call("bash", command="make", output="y\n" * 500), call("write", filePath="/w/a", content="z" * 500)]
    house.say(sid, "assistant", {"type": "reasoning", "text": "Hm."}, *calls)
    house.say(sid, "assistant", call("bash", command="true"))
    house.say(sid, "assistant", "Built.")
    return house


def test_a_summary_keeps_each_call_and_the_length_of_its_result(busy: Recorded) -> None:
    (one,) = lines(busy.archive, results="summary")
    asked, first, second = one["messages"][1:4]
    make, write = (made["function"]["arguments"] for made in asked["tool_calls"])
    assert make == {"command": "make"}
    assert write == {"filePath": "/w/a", "content": "z" * 200 + "… [500 characters]"}
    assert first["content"] == ("y\n" * 100).rstrip() + "… [1000 characters]"
    assert second["content"] == ""


def test_without_results_only_what_was_said_is_left(busy: Recorded) -> None:
    (one,) = lines(busy.archive, results="none")
    assert one["messages"] == [
        {"role": "user", "content": "Build it."},
        {"role": "assistant", "content": "", "thinking": "Hm."},
        {"role": "assistant", "content": "Built."},
    ]


@RESULTS
def test_what_the_source_has_deleted_of_a_message_can_be_left_out(house: Recorded, results: str) -> None:
    sid = house.session("ses_a", "/w")
    parts = tuple(
        records.part(records.dumps({"id": name, "type": "text", "text": name}), "msg_1", sid) for name in ("a", "b")
    )
    message = records.message(b'{"id": "msg_1", "role": "user", "time": {"created": 5}}', parts, sid)
    batch = house.archive.batch()
    batch.message(message, source="test", generation=2, hash_="h", edits=[], gone=["b"])
    house.archive.commit(batch)
    assert [entry["content"] for entry in lines(house.archive, results=results)[0]["messages"]] == ["a", "b"]
    (left,) = lines(house.archive, results=results, deleted=False)
    assert left["messages"] == [{"role": "user", "content": "a"}]


def test_an_image_is_handed_on_as_it_was(house: Recorded) -> None:
    payload = "iVBORw0KGgo="
    part = {"type": "file", "mime": "image/png", "filename": "a.png", "url": f"data:image/png;base64,{payload}"}
    house.say(house.session("ses_a", "/w"), "user", part)
    (one,) = lines(house.archive)
    assert [entry.get("images") for entry in one["messages"]] == [[payload]]
