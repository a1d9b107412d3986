"""Export, parse it back, and it equals the archive: whatever the records say, in whatever order they were taken in."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive
from daemon.exports import Export
from daemon.exports.formats import export
from daemon.model import Message, Session
from daemon.transcript.replay import BOOKKEEPING
from tests.support.chat_messages import ollama_problems
from tests.support.examples import examples

NAMES = st.text(st.characters(), max_size=12)  # with lone surrogates and control characters
TIMES = st.sampled_from([0, 1, 1_786_706_395_000, 1_795_230_486_655, 253_402_300_799_999]) | st.integers(1, 2**41)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(st.sampled_from(["input", "output", "error", "x", "text", "time", "metadata"]), VALUES)
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": NAMES}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "text": NAMES}, optional={"time": TABLES, "metadata": TABLES}),
    st.fixed_dictionaries({"type": st.just("tool"), "tool": NAMES, "callID": NAMES, "state": TABLES}),
    st.fixed_dictionaries({"type": st.sampled_from(["text", "reasoning", "tool", "file", "sticker"])}, optional={
        "text": VALUES, "state": VALUES, "url": st.just("data:image/png;base64,iVBORw0KGgo="), "role": VALUES,
    }),
    st.just({"type": "step-start", "snapshot": "abc"}),
)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "tool"]),
        "time": st.fixed_dictionaries({}, optional={"created": TIMES, "completed": TIMES}),
        "parts": st.lists(PARTS, max_size=4),
    },
    optional={"tokens": TABLES, "modelID": NAMES, "model": TABLES, "error": VALUES, "agent": NAMES, "system": VALUES},
)
SESSIONS = st.lists(
    st.tuples(TIMES, TIMES, NAMES, st.sampled_from(["", "global", "abc"]), st.lists(MESSAGES, max_size=4)), max_size=4
)


def raw(record: dict[str, Any]) -> bytes:
    """As JavaScript would write it: lone surrogates are escapes."""
    return json.dumps(record).encode()


def fill(archive: Archive, told: list[Any], order: list[int]) -> None:
    """Sessions with ids that say nothing of their times; messages are taken in in another order than they were made."""
    waiting = []
    batch = archive.batch()
    for number, (created, updated, title, project, messages) in enumerate(told):
        session = Session(f"ses_{7 * number % 5}{number}", project, "/w", title, created, updated, b"{}")
        batch.session(session, "test", 1)
        for place, record in enumerate(messages):
            mid = f"msg_{(3 * place + number) % 4}{number}{place}"
            parts = tuple(
                records.part(raw(part | {"id": f"prt_{mid}_{k}"}), mid, session.id)
                for k, part in enumerate(record["parts"])
            )
            data = {key: value for key, value in record.items() if key != "parts"}
            waiting.append(records.message(raw(data | {"id": mid}), parts, session.id))
    for _, message in sorted(zip(order * len(waiting), waiting, strict=False), key=lambda pair: pair[0]):
        batch.message(message, source="test", generation=1, hash_=message.id, edits=())
    archive.commit(batch)


def lines(archive: Archive, **asked: Any) -> list[dict[str, Any]]:
    taken: list[str] = []
    answer = export(archive, Export(**asked), taken.append, lambda _: None)
    text = "".join(taken).encode().decode()
    found = [json.loads(line, parse_constant=lambda name: 1 / 0) for line in text.splitlines()]
    assert len(found) == answer["sessions"]
    assert sum(len(one["messages"]) for one in found) == answer["messages"] or asked["format"] != "jsonl"
    return found


def plain(value: Any) -> Any:
    """What JSON can hold of it."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def ms(iso: str | None) -> int:
    if iso is None:
        return 0
    assert (iso[-5], iso[-1]) == (".", "Z")
    return round(
        (dt.datetime.fromisoformat(iso) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(milliseconds=1)
    )


def told_by_archive(message: Message) -> dict[str, Any]:
    said = [part for part in message.parts if part.type not in BOOKKEEPING]
    texts = [part for part in said if part.type == "text" and isinstance(part.data.get("text"), str)]
    thoughts = [part for part in said if part.type == "reasoning" and isinstance(part.data.get("text"), str)]
    calls = [part for part in said if part.type == "tool" and isinstance(part.data.get("state"), dict)]
    others = [part for part in said if part not in [*texts, *thoughts, *calls]]
    return {
        "id": message.id,
        "role": message.role,
        "time": message.created,
        "content": "".join(part.data["text"] for part in texts),
        "thoughts": [part.data["text"] for part in thoughts],
        "tokens": plain(message.data.get("tokens")),
        "calls": [(part.id, part.data.get("callID", ""), plain(part.data["state"])) for part in calls],
        "others": [plain(part.data) for part in others],
        "error": plain(message.data.get("error")) or None,
    }  # fmt: skip


def told_by_export(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": entry["id"],
        "role": entry["role"],
        "time": ms(entry["timestamp"]),
        "content": entry["content"],
        "thoughts": [thought["description"] for thought in entry["thoughts"]],
        "tokens": entry["tokens"],
        "calls": [(call["id"], call["call_id"], call["state"]) for call in entry["tool_calls"]],
        "others": entry.get("parts", []),
        "error": entry.get("error"),
    }


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SESSIONS, st.permutations(range(16)))
def test_what_is_exported_and_parsed_equals_the_archive(told: list[Any], order: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, Archive(Path(folder) / "archive") as archive:
        fill(archive, told, order)
        found = lines(archive, format="jsonl", results="full", raw=True)
        sessions = sorted(archive.sessions(), key=lambda session: (session.created, session.id))
        assert [(one["session_id"], ms(one["start_time"]), ms(one["last_updated"])) for one in found] == [
            (session.id, session.created, session.updated) for session in sessions
        ]
        assert [(one["title"], one["project_hash"]) for one in found] == [(s.title, s.project_id) for s in sessions]
        for session, one in zip(sessions, found, strict=True):
            kept = list(archive.messages(session.id))
            assert [told_by_export(entry) for entry in one["messages"]] == [told_by_archive(m) for m in kept]
            assert kept == sorted(kept, key=lambda message: (message.created, message.id))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SESSIONS, st.sampled_from(["summary", "full", "none", None]), st.booleans(), st.booleans())
def test_every_form_of_any_record_is_valid(told: list[Any], results: str | None, secret: bool, deleted: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, Archive(Path(folder) / "archive") as archive:
        fill(archive, told, [0])
        options = {"results": results, "raw": secret, "deleted": deleted}
        for one in lines(archive, format="jsonl", **options):
            for entry in one["messages"]:
                assert list(entry)[:7] == ["id", "role", "timestamp", "model", "content", "thoughts", "tokens"]
                assert ("tool_calls" in entry) is (results != "none")
        for one in lines(archive, format="messages", **options):
            assert ollama_problems(one["messages"]) == []
        pieces: list[str] = []
        export(archive, Export(format="markdown", **options), pieces.append, lambda _: None)
        assert "".join(pieces).encode().decode().count("\n- Session: ") == len(told)
