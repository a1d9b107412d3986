"""Laws of contexts: whatever was recorded, whatever is asked, a context is an array that a model takes as it is.

The sessions hold what OpenCode writes and what it should not: calls that were interrupted, that failed, with images,
records with fields missing or of another type, messages with nothing in them, equal times.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.archive import Archive
from daemon.model import Hit, Message, OllamaMessage
from daemon.recall.answer.messages import around, tokens, window
from daemon.recall.browse import context
from daemon.recall.query import RecallContext
from daemon.transcript.replay import clean_replay
from tests.support.chat_messages import ollama_problems
from tests.support.examples import examples
from tests.support.stores.records import message, session

SECRET = "ghp_" + "a1B2" * 9
_PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG and more").decode()
_TEXTS = st.sampled_from(
    ["", "short", "日本語のテキスト", "한국어", f"key {SECRET}", "x" * 700, "a\nb\n", "\u2028", "🙂" * 40]
)
_TOOLS = st.sampled_from(["bash", "write", "", f"mcp_{SECRET}", "工具", "name"])
_ODD = st.sampled_from([None, 7, True, [], {}, "", ["a", None], {"a": {"b": [1]}}, {"password": "Tr0ub4dor-and-3"}])
_FILE = st.fixed_dictionaries(
    {"type": st.just("file"), "mime": st.just("image/png"), "url": st.sampled_from([_PNG, "data:image/png;base64,%%", "", "file:///w/a"])}
)  # fmt: skip
_STATE = st.fixed_dictionaries(
    {"status": st.sampled_from(["completed", "error", "running", "pending", "odd", 3])},
    optional={"input": _ODD, "output": _TEXTS | _ODD, "error": _TEXTS | _ODD, "attachments": st.lists(_FILE | _ODD, max_size=2)},
)  # fmt: skip
_CALL = st.fixed_dictionaries({"type": st.just("tool"), "tool": _TOOLS | _ODD, "state": _STATE | _ODD})
_PART = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "reasoning"]), "text": _TEXTS | _ODD}),
    _CALL,
    _CALL,
    _FILE,
    st.fixed_dictionaries(
        {"type": st.sampled_from(["step-start", "patch", "subtask", "retry", "hologram"]), "x": _ODD}
    ),
)
_MESSAGE = st.tuples(
    st.sampled_from(["user", "assistant", "assistant", "system", "synthetic"]),
    st.lists(_PART, max_size=4),
    st.integers(0, 3),
    st.fixed_dictionaries({}, optional={"error": _ODD, "system": _TEXTS}),
)
_SESSIONS = st.lists(st.lists(_MESSAGE, max_size=7), min_size=1, max_size=3)
_BUDGET = st.one_of(st.integers(0, 400), st.integers(0, 6000))


@contextmanager
def _archived(told: Sequence[Sequence[Any]]) -> Iterator[tuple[Archive, list[Message]]]:
    """An archive of these sessions and its messages in the order a context has: sessions and messages by time."""
    with tempfile.TemporaryDirectory() as folder, Archive(Path(folder) / "archive") as archive:
        batch = archive.batch()
        made: list[Message] = []
        for number, messages in enumerate(told):
            sid = f"ses_{number}"
            batch.session(session(id=sid, created=9 - number), "test", 2)
            for place, (role, parts, created, more) in enumerate(messages):
                one = message(*parts, role=role, id=f"msg_{number}_{place}", session_id=sid, created=created, **more)
                batch.message(one, source="test", generation=2, hash_="", edits=())
                made.append(one)
        archive.commit(batch)
        yield archive, sorted(made, key=lambda m: (-int(m.session_id[4:]), m.created, m.id))


def _hits(messages: Sequence[Message], chosen: Sequence[int]) -> list[Hit]:
    every = [messages[number % len(messages)] for number in chosen if messages]
    return [Hit(m.id, m.session_id, "", m.role, m.created, "prompt", 1.0, "hybrid", "") for m in every]


def _clean(archive: Archive, message_id: str) -> list[OllamaMessage]:
    message = archive.message(message_id)
    assert message is not None
    return clean_replay(message)


def _are_whole_messages(archive: Archive, ordered: Sequence[str], array: Sequence[OllamaMessage]) -> bool:
    """Whether `array` is made of whole messages of the archive, in this order, each at most once.

    Messages may look alike, so every place that could be reached with some of them so far is kept.
    """
    reached = {0}
    for message_id in ordered:
        whole = _clean(archive, message_id)
        reached |= {at + len(whole) for at in reached if array[at : at + len(whole)] == whole}
    return len(array) in reached


@settings(max_examples=examples(100))
@given(
    _SESSIONS,
    st.lists(st.integers(0, 99), max_size=5),
    st.integers(0, 3),
    st.integers(0, 3),
    _BUDGET,
    st.none() | _BUDGET,
)
def test_a_context_holds_whole_messages_in_order_within_the_budget(told, chosen, before, after, chars, most):
    with _archived(told) as (archive, messages):
        array = window(archive, _hits(messages, chosen), before, after, chars, budget_tokens=most)
        assert ollama_problems(array) == []
        assert sum(len(_json(entry)) for entry in array) <= chars
        assert most is None or sum(map(tokens, array)) <= most
        assert SECRET not in _json(array)
        assert "Tr0ub4dor" not in _json(array)
        assert _are_whole_messages(archive, [m.id for m in messages], array)


@settings(max_examples=examples(100))
@given(_SESSIONS, st.integers(0, 99), st.integers(0, 4), st.integers(0, 4), _BUDGET)
def test_a_context_around_a_message_is_an_unbroken_stretch_that_has_it(told, number, before, after, budget):
    with _archived(told) as (archive, messages):
        if not messages:
            assert around(archive, "msg_0_0", before, after, budget) == ([], [])
            return
        one = messages[number % len(messages)]
        ids, array = around(archive, one.id, before, after, budget)
        order = archive.message_ids(one.session_id)
        place = order.index(one.id)
        assert ollama_problems(array) == []
        assert sum(map(tokens, array)) <= budget
        assert array == [entry for message_id in ids for entry in _clean(archive, message_id)]
        alone = sum(map(tokens, _clean(archive, one.id)))
        assert (one.id in ids) == (alone <= budget)
        if ids:
            first = order.index(ids[0])
            assert ids == order[first : first + len(ids)]
            assert place - before <= first <= place < first + len(ids) <= place + after + 1


@settings(max_examples=examples(60))
@given(_SESSIONS, st.integers(0, 99), st.integers(0, 4))
def test_with_room_for_all_nothing_of_the_window_is_missing(told, number, each):
    with _archived(told) as (archive, messages):
        for one in messages[number % 7 : number % 7 + 1]:
            order = archive.message_ids(one.session_id)
            place = order.index(one.id)
            wanted = order[max(0, place - each) : place + each + 1]
            ids, _ = around(archive, one.id, each, each, 10**9)
            answer = context(archive, RecallContext(messageID=one.id, window=each))
            assert ids == wanted == [item["message"]["id"] for item in answer["messages"]]
            assert answer["hasMoreBefore"] == (order[0] != wanted[0])
            assert answer["hasMoreAfter"] == (order[-1] != wanted[-1])


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_estimate_of_tokens_never_shrinks_as_a_text_grows(text: str, more: str):
    assert tokens({"role": "user", "content": text}) <= tokens({"role": "user", "content": text + more})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
