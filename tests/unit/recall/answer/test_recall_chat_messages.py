"""Hits become a `messages[]` array for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Hit, Message, OllamaMessage, Part
from daemon.recall.answer.messages import IMAGE_TOKENS, around, tokens, window
from daemon.transcript.replay import clean_replay
from tests.support.chat_messages import ollama_problems
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, recorded

SECRET = "ghp_" + "a1B2" * 9
_SILENT = Message("msg_x", "ses_x", "assistant", 1, {}, b"{}")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        for sid in ("ses_a", "ses_b"):
            made.session(sid, "/home/dev/shop")
            for turn in range(3):
                made.say(sid, "user", f"question {turn} of {sid}")
                made.say(
                    sid, "assistant", "let me look", call("bash", output=f"TOKEN={SECRET}", command=f"echo {SECRET}")
                )
                made.say(sid, "assistant", f"answer {turn} of {sid}")
        yield made


def _hit(mid: str) -> Hit:
    sid = "ses_a" if int(mid[4:]) <= 9 else "ses_b"
    return Hit(mid, sid, "", "user", 0, "prompt", 1.0, "hybrid", "")


def _contents(messages) -> list[str]:
    return [message["content"] for message in messages if message["role"] != "tool"]


def test_a_hit_comes_with_its_neighbours_in_conversation_order(house: Recorded):
    assert _contents(window(house.archive, [_hit("msg_0004")], before=1, after=2)) == [
        "answer 0 of ses_a", "question 1 of ses_a", "let me look", "answer 1 of ses_a",
    ]  # fmt: skip


def test_sessions_follow_one_another_in_time_and_nothing_comes_twice(house: Recorded):
    messages = window(house.archive, [_hit("msg_0012"), _hit("msg_0003"), _hit("msg_0001"), _hit("msg_0010")], 1, 1)
    assert _contents(messages) == [
        "question 0 of ses_a", "let me look", "answer 0 of ses_a", "question 1 of ses_a",
        "question 0 of ses_b", "let me look", "answer 0 of ses_b", "question 1 of ses_b",
    ]  # fmt: skip


def test_a_tool_call_keeps_its_result_and_ollama_would_take_the_array(house: Recorded):
    messages = window(house.archive, [_hit("msg_0002")], before=0, after=0)
    assert [message["role"] for message in messages] == ["assistant", "tool"]
    assert ollama_problems(messages) == []


def test_no_secret_leaves_neither_in_text_nor_in_tool_arguments(house: Recorded):
    text = json.dumps(window(house.archive, [_hit("msg_0002"), _hit("msg_0014")]))
    assert SECRET not in text
    assert "REDACTED" in text


def test_an_argument_known_as_a_password_only_by_its_name_is_redacted():
    arguments = {"password": "Tr0ub4dor-and-3", "user": "dev"}
    state = {"status": "completed", "input": arguments, "output": "ok"}
    data = {"type": "tool", "tool": "login", "callID": "call_1", "state": state}
    part = Part("prt_x", "msg_x", "ses_x", "tool", data, b"{}")
    messages = clean_replay(replace(_SILENT, parts=(part,)))
    assert messages[0]["tool_calls"][0]["function"]["name"] == "login"
    assert messages[0]["tool_calls"][0]["function"]["arguments"]["user"] == "dev"
    assert "Tr0ub4dor-and-3" not in json.dumps(messages)


def test_the_best_hit_keeps_its_place_when_the_budget_is_short(house: Recorded):
    best, other = _hit("msg_0013"), _hit("msg_0004")
    alone = window(house.archive, [best], 1, 1)
    budget = sum(len(json.dumps(message, ensure_ascii=False)) for message in alone)
    assert window(house.archive, [best, other], 1, 1, budget) == alone


def test_a_hit_whose_neighbours_do_not_fit_comes_alone(house: Recorded):
    assert _contents(window(house.archive, [_hit("msg_0001")], 2, 2, budget_chars=120)) == ["question 0 of ses_a"]


def test_a_hit_too_long_for_the_budget_is_left_out_and_the_next_one_taken(house: Recorded):
    house.say("ses_b", "user", "x" * 1000)
    long = Hit("msg_0019", "ses_b", "", "user", 0, "prompt", 1.0, "hybrid", "")
    assert _contents(window(house.archive, [long, _hit("msg_0001")], 0, 0, budget_chars=200)) == ["question 0 of ses_a"]


def test_a_hit_on_an_unknown_message_adds_nothing(house: Recorded):
    assert window(house.archive, [Hit("msg_none", "ses_a", "", "user", 0, "prompt", 1.0, "hybrid", "")]) == []


@pytest.mark.parametrize(
    ("text", "most"),
    [("", 0), ("a", 1), ("four" * 100, 100), ("déjà" * 100, 100), ("日本" * 100, 200), ("한국어", 3), ("abcd日", 2)],
)
def test_four_latin_characters_or_one_of_another_script_are_a_token(text: str, most: int):
    empty = tokens({"role": "user", "content": ""})
    assert tokens({"role": "user", "content": text}) - empty == most


def test_all_that_a_model_reads_of_a_message_counts():
    plain = tokens({"role": "assistant", "content": "x" * 40})
    assert tokens({"role": "assistant", "content": "x" * 40, "thinking": "y" * 40}) == plain + 10
    assert tokens({"role": "user", "content": "x" * 40, "images": ["AAAA" * 10_000]}) == plain + IMAGE_TOKENS
    calls = [{"type": "function", "function": {"name": "bash", "arguments": {"command": "z" * 400}}}]
    assert tokens({"role": "assistant", "content": "", "tool_calls": calls}) > 100


def test_a_budget_of_tokens_holds_beside_the_one_of_characters(house: Recorded):
    everything = window(house.archive, [_hit("msg_0005")], 4, 4)
    room = sum(map(tokens, everything))
    assert window(house.archive, [_hit("msg_0005")], 4, 4, budget_tokens=room) == everything
    less = window(house.archive, [_hit("msg_0005")], 4, 4, budget_tokens=room - 1)
    assert 0 < sum(map(tokens, less)) < room
    assert window(house.archive, [_hit("msg_0005")], 4, 4, budget_tokens=0) == []


def _clean(house: Recorded, message_id: str) -> list[OllamaMessage]:
    message = house.archive.message(message_id)
    assert message is not None
    return clean_replay(message)


def test_what_stands_nearest_is_kept_when_not_all_neighbours_fit(house: Recorded):
    budget = sum(tokens(entry) for i in (3, 4, 5) for entry in _clean(house, f"msg_{i:04d}"))
    ids, messages = around(house.archive, "msg_0004", 3, 3, budget)
    assert ids == ["msg_0003", "msg_0004", "msg_0005"]
    assert _contents(messages) == ["answer 0 of ses_a", "question 1 of ses_a", "let me look"]


def test_around_an_unknown_message_is_nothing(house: Recorded):
    assert around(house.archive, "msg_none", 2, 2, 1000) == ([], [])


@given(
    st.lists(st.integers(1, 18), unique=True, max_size=6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 4000)
)
def test_whole_messages_within_the_budget_whatever_is_asked(shared: Recorded, numbers, before, after, budget):
    messages = window(shared.archive, [_hit(f"msg_{n:04d}") for n in numbers], before, after, budget)
    assert sum(len(json.dumps(message, ensure_ascii=False)) for message in messages) <= budget
    roles = [message["role"] for message in messages]
    assert ollama_problems(messages) == []
    assert roles.count("tool") == sum("tool_calls" in message for message in messages)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("shared")) as made:
        for sid in ("ses_a", "ses_b"):
            made.session(sid, "/home/dev/shop")
            for turn in range(3):
                made.say(sid, "user", f"question {turn}")
                made.say(sid, "assistant", "let me look", call("bash", output="out " * turn * 40, command="ls"))
                made.say(sid, "assistant", f"answer {turn}")
        yield made


@pytest.mark.parametrize("chosen", [["msg_0003", "fork_3"], ["fork_3", "msg_0003"], ["fork_3", "fork_new", "msg_0002"]])
def test_what_a_fork_has_copied_comes_once_and_costs_once(house: Recorded, chosen: list[str]):
    house.session("ses_fork", "/home/dev/shop")
    for number in range(1, 4):
        told = house.archive.message(f"msg_{number:04d}")
        assert told is not None
        parts = tuple(replace(part, id=f"fork_{part.id}", message_id=f"fork_{number}") for part in told.parts)
        copied = replace(told, id=f"fork_{number}", session_id="ses_fork", parts=parts)
        house.clock = told.created
        house.put("ses_fork", copied.id, copied.role, copied.parts)
    house.clock += MINUTE * 100
    house.put("ses_fork", "fork_new", "user", house.archive.message("msg_0004").parts)
    hits = [
        replace(_hit("msg_0001"), message_id=one, session_id="ses_a" if one[0] == "m" else "ses_fork") for one in chosen
    ]
    made = window(house.archive, hits, 2, 1)
    said = _contents(made)
    assert said[:3] == ["question 0 of ses_a", "let me look", "answer 0 of ses_a"]
    assert said.count("answer 0 of ses_a") == said.count("let me look") == 1
    assert said[-1] == "question 1 of ses_a"
    exact = sum(len(json.dumps(entry, ensure_ascii=False)) for entry in made)
    assert window(house.archive, hits, 2, 1, exact) == made
