"""The agent loop against a scripted Ollama server: how a question ends, what is told, and what is saved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive
from daemon.chat import ModelUnavailable
from daemon.chat.ollama import OllamaChat
from daemon.model import Json, OllamaMessage
from daemon.reconstitute.agent import trajectory
from daemon.reconstitute.agent.limits import (
    LEFT_OUT,
    OPENING,
    Ended,
    Limits,
    QuestionOver,
    count_tokens,
    fit_into,
    sendable_tokens,
)
from daemon.reconstitute.agent.loop import ANSWER, MOST_CALLS, NOT_DONE, Loop
from daemon.reconstitute.agent.outcomes import CachedModel
from daemon.reconstitute.agent.trajectory import MOST_BYTES, RUNNING, WAITING, Trajectory
from tests.support.servers.fake_ollama import FakeOllama, Turn, call

TARGET = "/home/a/shop"
QUESTION = {"id": "purpose", "ask": "What is it for?"}
START: list[OllamaMessage] = [
    {"role": "system", "content": "You look things up."},
    {"role": "user", "content": "What is it for?"},
]
DONE = call(ANSWER, statements=[])


class Lookup:
    """Two tools: one that looks something up, and the answer."""

    def __init__(self, result: str = "nothing found") -> None:
        self.result = result
        self.calls: list[tuple[str, Json]] = []

    def schemas(self) -> list[Json]:
        return [
            {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}
            for name in ("look", ANSWER)
        ]

    def call(self, name: str, arguments: Json) -> str:
        self.calls.append((name, arguments))
        return "taken" if name == ANSWER else self.result

    @property
    def is_done(self) -> Ended | None:
        return Ended.ANSWERED if any(name == ANSWER for name, _ in self.calls) else None


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama({"chat:latest": "cd" * 32}) as server:
        server.capabilities["chat:latest"] = ["completion", "tools", "thinking"]
        yield server


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as archive:
        yield archive


def run(
    server: FakeOllama,
    archive: Archive,
    script: Any,
    *,
    tools: Lookup | None = None,
    limits: Limits | None = None,
    num_ctx: int = 16384,
    clock: Any = None,
    start: list[OllamaMessage] | None = None,
    think: bool = False,
    pulse: Any = lambda _: None,
) -> tuple[Ended, Loop, Lookup]:
    server.chat_script = script
    tools = tools or Lookup()
    model = OllamaChat(server.url, "chat", num_ctx=num_ctx, think=think)
    saved = Trajectory(archive, TARGET, QUESTION, model.name, lambda: 1_790_000_000_000)
    ticking = {"clock": clock} if clock is not None else {}
    loop = Loop(CachedModel(model, archive), tools, limits or Limits(), saved, pulse=pulse, **ticking)
    try:
        return loop.run(start or START), loop, tools
    finally:
        model.close()


def look(number: int) -> dict[str, Any]:
    return call("look", place=number)


def test_tools_are_called_until_the_answer_and_results_return_by_name(server: FakeOllama, archive: Archive):
    ended, loop, tools = run(server, archive, [look(1), look(2), DONE])
    assert ended is Ended.ANSWERED
    assert [name for name, _ in tools.calls] == ["look", "look", ANSWER]
    assert [message["role"] for message in loop.messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert server.chats[-1]["messages"][3] == {"role": "tool", "tool_name": "look", "content": "nothing found"}
    assert all(chat["options"]["num_ctx"] == 16384 for chat in server.chats)


def test_several_calls_of_one_reply_are_all_done_in_order(server: FakeOllama, archive: Archive):
    both = {"role": "assistant", "content": "", "tool_calls": look(1)["tool_calls"] + look(2)["tool_calls"]}
    ended, _, tools = run(server, archive, [both, DONE])
    assert ended is Ended.ANSWERED
    assert [arguments for _, arguments in tools.calls][:2] == [{"place": 1}, {"place": 2}]


def several(calls: int, first: int = 0) -> dict[str, Any]:
    made = [one for number in range(calls) for one in look(first + number)["tool_calls"]]
    return {"role": "assistant", "content": "", "tool_calls": made}


def test_of_too_many_calls_in_a_reply_some_run_and_each_gets_a_result(server: FakeOllama, archive: Archive):
    ended, loop, tools = run(server, archive, [several(MOST_CALLS + 5), DONE])
    assert ended is Ended.ANSWERED
    assert len(tools.calls) == MOST_CALLS + 1
    results = [message["content"] for message in loop.messages[OPENING:] if message["role"] == "tool"]
    assert results == ["nothing found"] * MOST_CALLS + [NOT_DONE] * 5 + ["taken"]


def test_the_time_is_looked_at_before_each_call_of_a_reply(server: FakeOllama, archive: Archive):
    tools, now = Lookup(), 0.0

    def clock() -> float:
        return now + 100.0 * len(tools.calls)

    ended, _, _ = run(server, archive, [several(9)], tools=tools, limits=Limits(seconds=300), clock=clock)
    assert ended is Ended.TIME
    assert len(tools.calls) == 3


def test_each_call_and_each_step_sends_a_heartbeat(server: FakeOllama, archive: Archive):
    told: list[str] = []
    run(server, archive, [several(4), several(3, 4), DONE], pulse=told.append)
    assert told.count("") >= 4 + 1 + 3 + 1


class Stop(Exception):
    pass


def test_a_heartbeat_can_interrupt_a_reply_and_progress_is_saved(server: FakeOllama, archive: Archive):
    """Everything that arrived before the interruption is saved."""
    tools = Lookup()

    def pulse(_text: str) -> None:
        if len(tools.calls) == 2:
            raise Stop

    with pytest.raises(Stop):
        run(server, archive, [several(9), DONE], tools=tools, pulse=pulse)
    assert len(tools.calls) == 2
    [record] = trajectory.read(archive, TARGET)
    assert record["state"] == RUNNING
    assert [message["role"] for message in said(archive, record)] == ["system", "user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("limits", "ended", "steps"),
    [
        (Limits(steps=5), Ended.STEPS, 5),
        (Limits(tokens=400), Ended.TOKENS, None),
        (Limits(steps=1), Ended.STEPS, 1),
    ],
)
def test_a_model_that_never_stops_is_stopped(
    server: FakeOllama, archive: Archive, limits: Limits, ended: Ended, steps: int | None
):
    numbers = iter(range(10_000))
    got, _, _ = run(server, archive, lambda _body: look(next(numbers)), limits=limits)
    assert got is ended
    assert steps is None or len(server.chats) == steps
    assert len(server.chats) < 60


def test_the_time_ends_a_question(server: FakeOllama, archive: Archive):
    seconds = iter(range(0, 100_000, 100))
    numbers = iter(range(10_000))
    ended, _, _ = run(
        server, archive, lambda _body: look(next(numbers)), limits=Limits(seconds=900), clock=lambda: next(seconds)
    )
    assert ended is Ended.TIME


def test_the_same_call_again_and_again_ends_a_question(server: FakeOllama, archive: Archive):
    ended, _, tools = run(server, archive, lambda _body: look(1), limits=Limits(repeats=3))
    assert ended is Ended.REPEATS
    assert len(tools.calls) == 2


def test_a_call_between_equal_ones_makes_them_no_repetition(server: FakeOllama, archive: Archive):
    ended, _, _ = run(server, archive, [look(1), look(2), look(1), look(2), look(1), DONE])
    assert ended is Ended.ANSWERED


BAD = {
    "plain text": "It is a shop.",
    "nothing": {"role": "assistant", "content": ""},
    "a call that the server could not read": (500, "error parsing tool call: raw='{\"place\": '"),
    "a call without a name": {"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": {}}}]},
    "cut off": Turn({"role": "assistant", "content": "I th"}, done_reason="length"),
    "only thoughts": {"role": "assistant", "content": "", "thinking": "It may be a shop."},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_third_unusable_reply_ends_the_question(server: FakeOllama, archive: Archive, bad: Any):
    """The first two replies are sent back with what was wrong."""
    ended, _, tools = run(server, archive, [bad] * 9)
    assert ended is Ended.FORMAT
    assert len(server.chats) == 3
    assert tools.calls == []
    assert "could not be used" in server.chats[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_good_reply_between_makes_up_for_bad_ones(server: FakeOllama, archive: Archive, bad: Any):
    ended, _, _ = run(server, archive, [bad, bad, look(1), bad, bad, DONE])
    assert ended is Ended.ANSWERED


def test_an_answer_written_into_the_text_counts_as_the_call(server: FakeOllama, archive: Archive):
    said = 'Here it is:\n```json\n{"statements": [{"text": "A shop."}], "confidence": "low"}\n```'
    ended, loop, tools = run(server, archive, [said])
    assert ended is Ended.ANSWERED
    assert tools.calls == [(ANSWER, {"statements": [{"text": "A shop."}], "confidence": "low"})]
    assert loop.messages[-1]["role"] == "user", "a tool result belongs to a call"


def test_old_results_make_room_for_new_ones_and_every_call_keeps_a_result(server: FakeOllama, archive: Archive):
    numbers = iter(range(12))

    def script(_body: Any) -> Any:
        number = next(numbers)
        return look(number) if number < 11 else DONE

    ended, loop, _ = run(server, archive, script, tools=Lookup("many words " * 250), num_ctx=4096)
    assert ended is Ended.ANSWERED
    last = server.chats[-1]["messages"]
    assert last[:OPENING] == START
    assert count_tokens(last) < count_tokens(loop.messages)
    assert any(message["content"] == LEFT_OUT for message in last if message["role"] == "tool")
    for before, message in pairwise(last):
        assert message["role"] != "tool" or before.get("tool_calls") or before["role"] == "tool"


def test_an_opening_that_is_too_large_ends_the_question_unasked(server: FakeOllama, archive: Archive):
    start = [START[0], {"role": "user", "content": "word " * 8000}]
    ended, _, _ = run(server, archive, [DONE], num_ctx=2048, start=start)
    assert ended is Ended.CONTEXT
    assert server.chats == []


def test_a_server_that_drops_the_front_voids_the_reply_and_gets_less(server: FakeOllama, archive: Archive):
    server.truncate_chat_chars = 6000
    start = [START[0], {"role": "user", "content": "one two three four five six " * 200}]
    ended, _, tools = run(server, archive, lambda _body: DONE, tools=Lookup("x"), start=start)
    assert ended is not Ended.ANSWERED or len(str(server.chats[-1]["messages"])) <= 6000 + 500
    assert ended is Ended.CONTEXT or tools.calls


def test_every_step_is_saved_also_when_the_server_goes(server: FakeOllama, archive: Archive):
    with pytest.raises(ModelUnavailable):
        run(server, archive, [look(1), look(2), (503, "shutting down")])
    [record] = trajectory.read(archive, TARGET)
    assert record["state"].startswith(WAITING)
    assert "shutting down" in record["state"]
    assert [message["role"] for message in said(archive, record)[OPENING:]] == ["assistant", "tool"] * 2
    assert record["question"] == QUESTION


def test_a_question_that_was_cut_short_goes_on_where_it_was(server: FakeOllama, archive: Archive):
    with pytest.raises(ModelUnavailable):
        run(server, archive, [look(1), look(2), (503, "shutting down")])
    asked = len(server.chats)
    ended, _, tools = run(server, archive, [DONE])
    assert ended is Ended.ANSWERED
    assert len(server.chats) == asked + 1, "what was replied before is not asked again"
    assert [name for name, _ in tools.calls] == ["look", "look", ANSWER]
    [record] = trajectory.read(archive, TARGET)
    assert (record["resumed"], record["state"]) == (1, Ended.ANSWERED.value)
    assert [message["role"] for message in said(archive, record)[OPENING:]] == ["assistant", "tool"] * 3


def test_a_resumed_run_that_differs_leaves_nothing_of_the_first(archive: Archive):
    for first, replies in (("a", 5), ("b", 2)):
        saved = Trajectory(archive, TARGET, QUESTION, "m", lambda: 1_790_000_000_000)
        for number in range(1, replies + 1):
            messages = [{"role": "assistant", "content": f"{first}{each}"} for each in range(number)]
            saved.save(messages, steps=number, tokens=1, seconds=0.1)
    [record] = trajectory.read(archive, TARGET)
    assert [message["content"] for message in said(archive, record)] == ["b0", "b1"]


def test_a_step_writes_what_is_new_and_the_list_is_small(archive: Archive):
    saved = Trajectory(archive, TARGET, QUESTION, "m", lambda: 1_790_000_000_000)
    messages: list[OllamaMessage] = []
    sizes = []
    for number in range(30):
        messages.append({"role": "tool", "tool_name": "look", "content": f"{number} " * 3000})
        before = stored(archive)
        saved.save(messages, steps=number, tokens=1, seconds=0.1)
        after = stored(archive)
        sizes.append(sum(len(value) for name, value in after.items() if before.get(name) != value))
    assert max(sizes) < 2 * min(sizes[10:])
    [record] = trajectory.read(archive, TARGET)
    assert (record["count"], "messages" in record) == (30, False)
    assert len(str(record)) < 1000
    assert said(archive, record) == messages


def test_one_record_is_bounded_and_its_end_is_still_seen(archive: Archive):
    saved = Trajectory(archive, TARGET, QUESTION, "m", lambda: 1_790_000_000_000)
    messages = [{"role": "tool", "tool_name": "look", "content": f"{number} " + "x" * 400_000} for number in range(40)]
    for most in (3, 20, 40):
        saved.save(messages[:most], steps=most, tokens=1, seconds=0.1)
    kept = said(archive, trajectory.read(archive, TARGET)[0])
    assert kept[:8] == messages[:8]
    assert [message["content"].split()[0] for message in kept] == [str(number) for number in range(40)]
    assert "cut" in kept[-1]["content"]
    calls = [{"function": {"name": "n" * 400, "arguments": {"x": "y"}}}] * 99
    more = [{"role": "assistant", "content": "x" * 500, "tool_calls": calls}] * 2000
    saved.save(messages + more, steps=41, tokens=1, seconds=0.1)
    assert sum(map(len, stored(archive).values())) < MOST_BYTES * 1.02


def said(archive: Archive, record: Json) -> list[OllamaMessage]:
    return trajectory.messages(archive, TARGET, record["started"])


def stored(archive: Archive) -> dict[str, bytes]:
    return {name: records.dumps(archive.target_get(TARGET, name)) for name in archive.target_names(TARGET)}


def test_thoughts_stay_in_the_trajectory_and_out_of_the_conversation(server: FakeOllama, archive: Archive):
    first = look(1) | {"thinking": "Perhaps a shop."}
    _, loop, _ = run(server, archive, [first, DONE], think=True)
    assert "Perhaps" not in str(server.chats[-1]["messages"])
    assert "Perhaps" not in str(loop.messages)
    [record] = trajectory.read(archive, TARGET)
    assert said(archive, record)[OPENING]["thinking"] == "Perhaps a shop."


def test_only_the_newest_trajectories_are_kept(archive: Archive):
    for number in range(7):
        saved = Trajectory(archive, TARGET, {"id": f"q{number}", "ask": "?"}, "m", lambda: 1_790_000_000_000)
        saved.save(START, steps=1, tokens=1, seconds=0.1)
        saved.end("done")
    trajectory.trim(archive, TARGET, 3)
    assert [record["question"]["id"] for record in trajectory.read(archive, TARGET)] == ["q4", "q5", "q6"]
    assert len(archive.target_names(TARGET)) == 6, "a head and one list of messages each"
    assert archive.targets() == [TARGET]


_TURNS = st.lists(st.tuples(st.sampled_from(["call", "text", "calls"]), st.integers(0, 3000)), max_size=14)


@given(_TURNS, st.integers(900, 20_000))
def test_a_shortened_conversation_keeps_its_opening_and_whole_calls(turns: list[tuple[str, int]], context: int):
    messages = list(START)
    for kind, size in turns:
        if kind == "text":
            messages += [{"role": "assistant", "content": "a" * size}, {"role": "user", "content": "not usable"}]
            continue
        calls = [{"function": {"name": "look", "arguments": {}}}] * (2 if kind == "calls" else 1)
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_name": "look", "content": "b" * size} for _ in calls]
    most = sendable_tokens(context)
    if count_tokens(START) > most - 20:
        with pytest.raises(QuestionOver):
            fit_into(messages, [], count_tokens(START) - 1)
        return
    left = fit_into(messages, [], most)
    assert count_tokens(left) <= most
    assert left[:OPENING] == START
    wanted = 0
    for message in left[OPENING:]:
        if message["role"] == "tool":
            wanted -= 1
            assert wanted >= 0
        else:
            assert wanted == 0
            wanted = len(message.get("tool_calls", ()))
    assert wanted == 0
