"""The JSON lines: all that was said in the sample archives, under the names of the guide, summarised, whole or left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.exports import Export, content
from daemon.exports.formats import export
from daemon.model import Part
from daemon.opencode.discover import Sources
from daemon.redact import redact_value
from daemon.transcript.replay import BOOKKEEPING
from tests.conftest import Sample
from tests.support.stores.intake import intake_of
from tests.support.stores.recorded_sessions import START, Recorded, call, recorded
from tests.support.stores.sample_records import load

SEEDED = ["session_id", "project_hash", "start_time", "last_updated", "source", "messages"]
SEEDED_OF_MESSAGE = ["role", "timestamp", "model", "content", "thoughts", "tokens"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def lines(archive: Archive, **asked: Any) -> list[dict[str, Any]]:
    taken: list[str] = []
    export(archive, Export(format="jsonl", **asked), taken.append, lambda _: None)
    return [json.loads(line) for line in "".join(taken).splitlines()]


def only_message(archive: Archive, **asked: Any) -> dict[str, Any]:
    (session,) = lines(archive, **asked)
    (message,) = session["messages"]
    return message


# -- complete ------------------------------------------------------------------------------------------------------------


def is_told(part: Part, entry: dict[str, Any]) -> bool:
    if part.type in BOOKKEEPING:
        return True
    if part.type == "text":
        return part.data["text"] in entry["content"]
    if part.type == "reasoning":
        return part.data["text"] in [thought["description"] for thought in entry["thoughts"]]
    if part.type == "tool":
        return {"id": part.id, "tool": part.data["tool"], "state": part.data["state"]}.items() <= next(
            made.items() for made in entry["tool_calls"] if made["id"] == part.id
        )
    return {key: value for key, value in part.data.items() if key not in ("messageID", "sessionID")} in entry["parts"]


def test_every_message_and_part_of_a_sample_archive_is_in_the_export(any_sample: Sample, tmp_path: Path) -> None:
    truth = load(any_sample, tmp_path)
    with Archive(tmp_path / "archive") as archive:
        sources, intake = Sources(any_sample.data_dir, 64), intake_of(archive, quiet_s=0.3, free_mb=1)
        for source in sources.refresh():
            intake.scan(source)
        sources.close()
        found = lines(archive, results="full", raw=True)
        figures = archive.figures()
    assert (len(found), sum(len(one["messages"]) for one in found)) == (figures["sessions"], figures["messages"])
    entries = {entry["id"]: (one, entry) for one in found for entry in one["messages"]}
    assert set(truth.sessions) <= {one["session_id"] for one in found}
    assert len(truth.messages) > 100
    for message in truth.messages:
        one, entry = entries[message.id]
        assert one["session_id"] == message.session_id
        assert [part.id for part in message.parts if not is_told(part, entry)] == []
        assert entry["tokens"] == message.data.get("tokens")
        if message.id not in truth.removed:
            assert (entry["role"], entry["timestamp"]) == (message.role, content.iso(message.created))
            assert "deleted" not in entry
        elif any_sample.name == "json":
            assert entry["deleted"]


def test_a_session_deleted_at_the_source_is_marked_and_can_be_excluded(house: Recorded) -> None:
    house.session("ses_a", "/w", "Kept")
    house.say("ses_a", "user", "one")
    house.delete(house.say("ses_a", "user", "two"))
    gone = house.session("ses_b", "/w", "Gone")
    batch = house.archive.batch()
    batch.forget_session_source(gone, "test", START)
    house.archive.commit(batch)
    kept, lost = lines(house.archive)
    assert (kept["deleted"], lost["deleted"]) == (None, content.iso(START))
    assert [entry.get("deleted") is not None for entry in kept["messages"]] == [False, True]
    (kept,) = lines(house.archive, deleted=False)
    assert [entry["content"] for entry in kept["messages"]] == ["one"]


def test_a_part_deleted_at_the_source_is_named_and_can_be_excluded(house: Recorded) -> None:
    sid = house.session("ses_a", "/w")
    parts = tuple(
        records.part(records.dumps({"id": name, "type": "text", "text": name}), "msg_1", sid) for name in ("a", "b")
    )
    message = records.message(b'{"id": "msg_1", "role": "assistant", "time": {"created": 5}}', parts, sid)
    batch = house.archive.batch()
    batch.message(message, source="test", generation=2, hash_="h", edits=[], gone=["b"])
    house.archive.commit(batch)
    whole, rest = only_message(house.archive), only_message(house.archive, deleted=False)
    assert (whole["content"], whole["deleted_parts"]) == ("ab", ["b"])
    assert (rest["content"], "deleted_parts" in rest) == ("a", False)


# -- the guide's names ---------------------------------------------------------------------------------------------------


def test_a_line_has_all_fields_of_the_guide_with_its_names_and_iso_times(house: Recorded) -> None:
    sid = house.session("ses_a", "/w/shop", "The cart")
    thought = {"type": "reasoning", "text": "Hm.", "metadata": {"subject": "Doubt"}, "time": {"start": START + 7}}
    parts = ["One. ", thought, {"type": "reasoning", "text": "Well."}, "Two."]
    tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 0, "write": 0}}
    mid = house.say(sid, "assistant", *parts)
    message = house.archive.message(mid)
    assert message is not None
    house.put(sid, mid, "assistant", message.parts, tokens=tokens, modelID="m-1", providerID="lab", agent="build")
    (line,) = lines(house.archive)
    assert [name for name in SEEDED if name not in line] == []
    session = {name: line[name] for name in SEEDED[:-1]}
    assert session == {
        "session_id": "ses_a",
        "project_hash": "prj",
        "start_time": "2026-11-18T11:07:40.000Z",
        "last_updated": "2026-11-18T11:07:40.000Z",
        "source": "opencode",
    }
    (entry,) = line["messages"]
    assert {name: entry[name] for name in SEEDED_OF_MESSAGE} == {
        "role": "assistant",
        "timestamp": "2026-11-18T11:08:40.000Z",
        "model": "m-1",
        "content": "One. Two.",
        "thoughts": [
            {"subject": "Doubt", "description": "Hm.", "timestamp": "2026-11-18T11:06:40.007Z"},
            {"subject": "Thinking", "description": "Well.", "timestamp": "2026-11-18T11:08:40.000Z"},
        ],
        "tokens": tokens,
    }
    assert lines(house.archive, source="gemini-cli")[0]["source"] == "gemini-cli"


def test_a_prompt_names_its_intended_model_or_null(house: Recorded) -> None:
    sid = house.session("ses_a", "/w")
    house.put(sid, "msg_1", "user", (), model={"providerID": "lab", "modelID": "m-2"})
    entry = only_message(house.archive)
    assert (entry["model"], entry["provider"], entry["tokens"], entry["thoughts"]) == ("m-2", "lab", None, [])


CALLS: list[tuple[dict[str, Any], str]] = [
    (call("bash", command="pytest -q", output="a\nb\n"), "bash pytest -q (completed, 2 lines)"),
    (call("bash", command="false", output="no", metadata={"exit": 1}), "bash false (completed, exit 1, 1 line)"),
    (call("bash", command="cat <<EOF\n  x\nEOF"), "bash cat <<EOF x EOF (completed)"),
    ({"type": "tool", "tool": "edit", "state": {"status": "error", "input": {"filePath": "/w/a"}, "error": "not\nfound"}},
     "edit /w/a (error, not found)"),
    ({"type": "tool", "tool": "read", "state": {"status": "running", "input": {"filePath": "/w/a"}, "title": ""}},
     "read /w/a (running)"),
    ({"type": "tool", "tool": "odd", "state": {"status": "completed", "input": {"a": 1, "b": "c", "d": [2]}}},
     "odd a=1, b=c (completed)"),
    ({"type": "tool", "tool": "odd", "state": {"input": "bare"}}, "odd bare (unknown)"),
    ({"type": "tool", "state": {"status": 5, "input": None, "output": {}}}, "unknown (unknown)"),
    (call("write", filePath="/w/" + "long " * 100), "write write (completed)"),
    (call("bash", command="x" * 500), "bash " + "x" * 159 + "… (completed)"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "summary"), CALLS, ids=[summary[:30] for _, summary in CALLS])
def test_a_tool_call_is_told_in_one_line(house: Recorded, part: dict[str, Any], summary: str) -> None:
    house.say(house.session("ses_a", "/w"), "assistant", part)
    (told,) = only_message(house.archive)["tool_calls"]
    assert told["summary"] == summary
    assert "state" not in told


def test_results_are_whole_or_left_out_as_asked(house: Recorded) -> None:
    part = call("bash", command="make", output="x\n" * 5000, metadata={"exit": 0})
    house.say(house.session("ses_a", "/w"), "assistant", "Building.", part)
    (full,) = only_message(house.archive, results="full")["tool_calls"]
    assert full["state"]["output"] == "x\n" * 5000
    assert full["state"]["input"] == {"command": "make"}
    none = only_message(house.archive, results="none")
    assert (none["content"], "tool_calls" in none) == ("Building.", False)


def test_an_attachment_is_named_and_its_bytes_come_with_full_results(house: Recorded) -> None:
    url = "data:image/png;base64," + "iVBORw0KGgo=" * 50
    house.say(
        house.session("ses_a", "/w"), "user", {"type": "file", "mime": "image/png", "filename": "a.png", "url": url}
    )
    (short,) = only_message(house.archive)["parts"]
    (whole,) = only_message(house.archive, results="full")["parts"]
    assert (short["filename"], short["url"]) == ("a.png", "data:image/png;base64,[600 characters]")
    assert whole["url"] == url


# -- lines that every reader takes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("a\u2028b\u2029c\x85d", '"a\\u2028b\\u2029c\\u0085d"'),
        ("\x1b[31m\x9b1m\x7f", '"\\u001b[31m\\u009b1m\\u007f"'),
        ("\x7f", '"\\u007f"'),
        ("\ud800x", '"\ufffdx"'),
        ("日本", '"日本"'),
        ({"a": float("nan"), "b": [float("-inf")]}, '{"a":null,"b":[null]}'),
        (2**70, str(2**70)),
    ],
)
def test_a_value_is_one_line_of_valid_json(value: Any, line: str) -> None:
    assert content.line(value) == line


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1_795_230_486_655, "2026-11-21T03:08:06.655Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, None),
        (-5, None),
        (0, None),
        (None, None),
    ],
)
def test_times_are_iso_as_in_javascript_or_null(ms: int | None, text: str | None) -> None:
    assert content.iso(ms) == text


def test_deeply_nested_data_is_cut_to_its_frame_and_loses_its_secrets() -> None:
    secret = "ghp_" + "a1B2" * 9
    deep: Any = [secret]
    for _ in range(600):
        deep = {"a": deep}
    shown = redact_value([{"function": {"name": "f", "arguments": {"x": deep, "password": "Tr0ub4dor-and-3"}}}])
    arguments = shown[0]["function"]["arguments"]
    assert shown[0]["function"]["name"] == "f"
    assert secret not in content.line(shown)
    assert "REDACTED" in content.line(arguments["x"])
    assert "Tr0ub4dor" not in arguments["password"]


def test_a_message_made_up_for_orphaned_parts_says_so_and_has_no_end_time(house: Recorded) -> None:
    house.session("ses_a", "/w")
    house.put("ses_a", "msg_o", "assistant", (), orphan=True)
    house.put("ses_a", "msg_p", "assistant", ())
    (session,) = lines(house.archive)
    made, told = session["messages"]
    assert (made["id"], made["orphan"], "completed" in made) == ("msg_o", True, False)
    assert ("orphan" in told, "completed" in told) == (False, True)
