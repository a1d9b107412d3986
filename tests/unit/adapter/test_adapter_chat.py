"""The adapter's chat and generate, over HTTP, in front of a scripted OpenCode server."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from daemon.adapter import Adapter
from daemon.chat import ToolCall
from daemon.chat.action_text import Action, render
from tests.support.servers.adapter_opencode import (
    DOWN,
    HANG,
    MODEL,
    STATUS,
    TOOLS,
    BreakingOpenCode,
    Client,
    ScriptedOpenCode,
    adapter,
    called,
    result,
    user,
)  # fmt: skip


def action(name: str, **arguments: Any) -> str:
    return render(Action("tool_call", call=ToolCall(name, arguments)))


def answer(text: str, kind: str = "answer") -> str:
    return json.dumps({"action": kind, "content": text})


def wait_for(is_so: Any, timeout_s: float = 90) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


# -- what a turn is ---------------------------------------------------------------------------------------------------


def test_a_conversation_without_tools_is_answered_in_plain_words(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["<think>polite</think>Good day."]
    said = client.chat([{"role": "system", "content": "Be brief."}, user("Hello, how are you?")])
    assert said["message"] == {"role": "assistant", "content": "Good day."}
    assert (said["model"], said["done"], said["done_reason"]) == (MODEL, True, "stop")
    assert opencode.said() == "Hello, how are you?"
    assert opencode.system().startswith("Be brief.\n\n")
    assert '"action"' not in opencode.system()


def test_figures_are_nanoseconds_and_the_servers_counts(opencode: ScriptedOpenCode, client: Client) -> None:
    said = client.chat([user("hi")])
    assert said["prompt_eval_count"] == 100
    assert said["eval_count"] == 10
    parts = [said[f"{name}_duration"] for name in ("load", "prompt_eval", "eval")]
    assert all(isinstance(part, int) and part > 0 for part in parts)
    assert abs(said["total_duration"] - sum(parts)) < 50_000_000
    assert said["total_duration"] > 1_000_000


def test_a_stream_tells_the_text_as_it_comes_and_ends_with_the_figures(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    opencode.script = [["<thi", "nk>x</think>", " Good", " ", "day", ".\n"]]
    *pieces, last = client.lines("/api/chat", {"messages": [user("hi")]})
    assert len(pieces) >= 3
    assert "".join(piece["message"]["content"] for piece in pieces).strip() == "Good day."
    assert not any(piece["done"] for piece in pieces)
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert last["eval_count"] == 10


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_is_called_answered_and_spoken_of(opencode: ScriptedOpenCode, client: Client, stream: bool) -> None:
    opencode.script = [action("get_weather", city="Oslo"), f"```json\n{answer('It snows in Oslo.')}\n```"]

    def turn(messages: list[dict[str, Any]]) -> dict[str, Any]:
        body = {"messages": messages, "tools": TOOLS}
        if not stream:
            return client.chat(**body)["message"]
        lines = client.lines("/api/chat", body)
        said: dict[str, Any] = {"role": "assistant", "content": "".join(x["message"]["content"] for x in lines)}
        calls = [call for x in lines for call in x["message"].get("tool_calls", [])]
        return said | ({"tool_calls": calls} if calls else {})

    messages = [user("What is the weather in Oslo?")]
    first = turn(messages)
    assert first == called("get_weather", city="Oslo")
    second = turn([*messages, first, result("snow, -3 °C")])
    assert second == {"role": "assistant", "content": "It snows in Oslo."}
    assert "get_weather: Does get_weather." in opencode.system(0)
    assert "- city (string, required)" in opencode.system(0)
    assert "snow, -3 °C" in opencode.said(1)
    assert "What is the weather" not in opencode.said(1)  # the session knows


def test_small_talk_is_a_chat(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [answer("You are welcome!", "chat")]
    assert client.chat([user("thanks")], tools=TOOLS)["message"]["content"] == "You are welcome!"


def test_a_tool_that_the_client_does_not_have_becomes_unknown(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [action("launch_rocket", speed=9)]
    assert client.chat([user("Take off!")], tools=TOOLS)["message"] == called("unknown")


def test_the_users_language_is_told_to_the_model(opencode: ScriptedOpenCode, client: Client) -> None:
    client.chat(
        [user("What is the time?"), {"role": "assistant", "content": "Noon."}, user("Wie ist das Wetter heute?")]
    )
    assert "That seems to be German." in opencode.system()


def test_the_whole_history_is_told_and_its_last_ten_messages_put_forward(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    history = [m for n in range(12) for m in (user(f"ask {n}."), {"role": "assistant", "content": f"told {n}."})]
    opencode.script = [answer("ok")]
    client.chat([*history, user("and now?")], tools=TOOLS)
    earlier, _, recent = opencode.said().partition("The latest messages")
    assert all(f"ask {n}." in opencode.said() and f"told {n}." in opencode.said() for n in range(12))
    assert "told 6." in earlier
    assert "ask 7." in earlier
    assert "told 7." in recent
    assert "and now?" in recent
    assert recent.count("User:") + recent.count("Assistant:") == 10


def test_a_result_without_a_name_gets_that_of_its_call(opencode: ScriptedOpenCode, client: Client) -> None:
    calls = called("get_weather", city="Oslo")
    calls["tool_calls"] += called("get_status")["tool_calls"]
    opencode.script = [answer("ok")]
    client.chat(
        [user("both"), calls, {"role": "tool", "content": "snow"}, {"role": "tool", "content": "up"}], tools=TOOLS
    )
    assert "Result of get_weather" in opencode.said()
    assert "Result of get_status" in opencode.said()


@pytest.mark.parametrize(
    ("form", "replies", "content"),
    [
        ("json", ['{"a": 1}'], '{"a": 1}'),
        ("json", ['```json\n{"a": 1}\n```'], '{"a": 1}'),
        ("json", ["Sure: 1", '{"a": 1}'], '{"a": 1}'),
        ({"type": "object", "required": ["a"]}, ['{"b": 1}', '{"a": 2}'], '{"a": 2}'),
        ({"type": "array"}, ["{}", "[1]"], "[1]"),
    ],
)
def test_the_form_that_was_asked_for_is_told_checked_and_asked_for_again(
    opencode: ScriptedOpenCode, client: Client, form: Any, replies: list[str], content: str
) -> None:
    opencode.script = list(replies)
    lines = client.lines("/api/chat", {"messages": [user("list them")], "format": form})
    assert "".join(one["message"]["content"] for one in lines) == content
    assert len(opencode.prompts) == len(replies)
    assert "JSON" in opencode.system()


def test_generate_is_a_turn_of_its_own(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["Blue.", ["Because ", "of light."]]
    body = {"prompt": "Why is the sky blue?", "system": "Be brief.", "template": "{{ x }}", "options": {"seed": 1}}
    whole = client.post("/api/generate", {"model": MODEL, "stream": False, **body})
    assert whole.json()["response"] == "Blue."
    assert whole.headers["reconstitute-ignored"] == "options, template"
    *pieces, last = client.lines("/api/generate", body)
    assert "".join(piece["response"] for piece in pieces) == "Because of light."
    assert (last["response"], last["done"], last["done_reason"]) == ("", True, "stop")
    assert opencode.said() == "Why is the sky blue?"
    assert opencode.system().startswith("Be brief.")


@pytest.mark.parametrize(("path", "text"), [("/api/chat", "message"), ("/api/generate", "response")])
def test_where_nothing_is_asked_no_model_is(opencode: ScriptedOpenCode, client: Client, path: str, text: str) -> None:
    loaded = client.post(path, {"model": MODEL}).json()
    assert (loaded["done"], loaded["done_reason"]) == (True, "load")
    assert text in loaded
    assert client.post(path, {"model": MODEL, "keep_alive": 0}).json()["done_reason"] == "unload"
    assert opencode.prompts == []
    assert opencode.created() == 0


# -- fallbacks ---------------------------------------------------------------------------------------------------------


def test_a_malformed_reply_is_told_what_was_wrong_and_asked_for_again(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    opencode.script = ['{"action": "tool_call", "tool_name": "get_status",}', action("get_status")]
    assert client.chat([user("How is it?")], tools=TOOLS)["message"] == called("get_status")
    assert "comma before a closing bracket" in opencode.said()
    assert opencode.created() == 1


def test_plain_words_after_a_result_are_the_answer(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["It snows."]
    said = client.chat([user("Weather?"), called("get_weather", city="Oslo"), result("snow")], tools=TOOLS)
    assert said["message"]["content"] == "It snows."
    assert len(opencode.prompts) == 1
    assert opencode.sessions == {}


def test_an_unusable_reply_after_a_result_is_asked_for_in_plain_words(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    opencode.script = ['{"oops": 1}', '{"oops": 2}', "It snows."]
    said = client.chat([user("Weather?"), called("get_weather", city="Oslo"), result("snow")], tools=TOOLS)
    assert said["message"]["content"] == "It snows."
    assert "from the result of the tool" in opencode.said()
    assert "snow" in opencode.said()
    assert '"action"' not in opencode.system()


def test_a_tool_plainly_named_is_called_when_the_model_fails(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ['{"oops": 1}', '{"oops": 2}']
    assert client.chat([user("please run get_status now")], tools=TOOLS)["message"] == called("get_status")
    assert len(opencode.prompts) == 2


def test_a_tool_plainly_named_is_called_though_the_server_is_down(opencode: ScriptedOpenCode, client: Client) -> None:
    client.http.get("/api/tags")
    opencode.fail["POST /session"] = 500
    assert client.chat([user("get_status")], tools=TOOLS)["message"] == called("get_status")


def test_plain_chat_comes_when_nothing_else_is_left(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ['{"oops": 1}', '{"oops": 2}', "I am not sure what you mean."]
    said = client.chat([user("Do the thing")], tools=TOOLS)
    assert said["message"]["content"] == "I am not sure what you mean."
    assert "no JSON" in opencode.said()
    assert "do not say that you did" in opencode.said()


def test_words_in_place_of_an_object_are_the_chat_if_no_object_comes(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    opencode.script = ["Which city do you mean?", "Which city, please?"]
    said = client.chat([user("Weather?")], tools=TOOLS)
    assert said["message"]["content"] == "Which city do you mean?"
    assert len(opencode.prompts) == 2


def test_when_everything_failed_the_error_is_in_the_users_language(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [DOWN] * 4
    body = {"model": MODEL, "messages": [user("Wie ist das Wetter?")], "tools": TOOLS, "stream": False}
    said = client.post("/api/chat", body)
    assert said.status_code == 503
    assert said.json()["error"].startswith("Das konnte ich gerade nicht beantworten.")
    assert "overloaded" in said.json()["error"]
    assert len(opencode.prompts) == 2  # the turn and plain chat
    assert opencode.sessions == {}


def test_an_error_before_the_first_word_of_a_stream_has_its_status(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [DOWN] * 4
    said = client.post("/api/chat", {"model": MODEL, "messages": [user("hi")]})
    assert said.status_code == 503
    assert set(said.json()) == {"error"}


@pytest.mark.parametrize(("path", "text"), [("/api/chat", "message"), ("/api/generate", "response")])
def test_an_error_in_the_middle_of_a_stream_is_its_last_line(path: str, text: str) -> None:
    body = {"messages": [user("Tell me what the story is")], "prompt": "Tell me what the story is"}
    with BreakingOpenCode(script=[["Once upon", " a time"]]) as opencode, adapter(opencode.url) as served:
        with Client(served.url) as client:
            *pieces, last = client.lines(path, body)
        assert "Once upon" in "".join(str(piece[text]) for piece in pieces)
        assert list(last) == ["error"]
        assert last["error"].startswith("I could not answer that just now. Please try again.")
        assert "overloaded" in last["error"]
        assert not any("I could not answer" in str(piece) for piece in pieces)
        assert len(opencode.prompts) == 1
        assert opencode.sessions == {}


def test_a_conversation_that_does_not_fit_is_the_clients_to_shorten(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [{"name": "ContextOverflowError", "data": {"message": "too long"}}]
    said = client.post("/api/chat", {"model": MODEL, "messages": [user("hi")], "stream": False})
    assert said.status_code == 400
    assert "does not fit" in said.json()["error"]
    assert len(opencode.prompts) == 1


def test_a_model_that_is_too_slow_is_an_error_in_time(opencode: ScriptedOpenCode) -> None:
    opencode.script = [HANG]
    with adapter(opencode.url, seconds=4) as served, Client(served.url) as client:
        begun = time.monotonic()
        said = client.post("/api/chat", {"model": MODEL, "messages": [user("hi")], "stream": False})
    assert said.status_code == 503
    assert "no answer within" in said.json()["error"]
    assert time.monotonic() - begun < 60
    assert len(opencode.prompts) == 1
    assert opencode.sessions == {}


def test_the_form_is_asked_for_in_a_fallback_too(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["no", "still no", '{"a": 1}']
    assert client.chat([user("list them")], format="json")["message"]["content"] == '{"a": 1}'
    assert "no JSON" not in opencode.said()
    opencode.script = ["no", "still no", "never", "never"]
    said = client.post("/api/chat", {"model": MODEL, "messages": [user("list them")], "format": "json"})
    assert said.status_code == 502
    assert "must be JSON" in said.json()["error"]
    assert len(opencode.prompts) == 6


def test_thinking_without_an_answer_is_not_an_answer(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [["<think>hm", ", hm"], ["Yes", "."]]
    lines = client.lines("/api/chat", {"messages": [user("Is it so?")]})
    assert "".join(line["message"]["content"] for line in lines) == "Yes."
    assert len(opencode.prompts) == 2


def test_a_failed_attempt_leaves_nothing_in_the_stream_of_the_next(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [DOWN, ["Good ", "day."]]
    lines = client.lines("/api/chat", {"messages": [user("hi")]})
    assert "".join(line["message"]["content"] for line in lines) == "Good day."
    assert opencode.sessions == {}


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_continued_conversation_costs_one_call_a_turn_and_one_session(
    opencode: ScriptedOpenCode, client: Client, served: Adapter
) -> None:
    messages = [user("one")]
    for number, text in enumerate(("two", "three", "four")):
        opencode.script = [f"reply {number}\n"]
        messages += [client.chat(messages)["message"], user(text)]
    assert opencode.created() == 1
    assert [opencode.said(n) for n in range(3)] == ["one", "two", "three"]
    health = client.http.get("/health").json()
    assert health["sessions"] == {"in_use": 0, "waiting": 1}
    running = client.http.get("/api/ps").json()["models"]
    assert [(m["name"], m["context_length"]) for m in running] == [(MODEL, 200_000)]


def test_blanks_ids_and_thinking_do_not_make_another_conversation(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [action("get_status"), answer("up")]
    call = called("get_status")
    client.chat([user("hi")], tools=TOOLS)
    call["tool_calls"][0] |= {"id": "call_1", "type": "function"}
    client.chat([user(" hi "), call | {"content": " ", "thinking": "hm"}, result("up", "get_status")], tools=TOOLS)
    assert opencode.created() == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body | {"messages": [user("one!"), *body["messages"][1:]]},
        lambda body: body | {"messages": [body["messages"][0], {"role": "assistant", "content": "no"}, user("x")]},
        lambda body: body | {"messages": [{"role": "system", "content": "Be rude."}, *body["messages"]]},
        lambda body: body | {"messages": [*body["messages"], {"role": "assistant", "content": "and"}, user("x")]},
        lambda body: body | {"messages": body["messages"][:1]},
        lambda body: body | {"tools": [STATUS]},
        lambda body: body | {"format": "json"},
        lambda body: body | {"model": "acme/small"},
    ],
    ids=["other words", "another reply", "another system text", "a reply put in", "the same again", "tools", "form", "model"],
)  # fmt: skip
def test_anything_else_gets_a_session_of_its_own(opencode: ScriptedOpenCode, client: Client, change: Any) -> None:
    opencode.script = ["first"]
    reply = client.chat([user("one")])["message"]
    opencode.script = ['{"action": "answer", "content": {}}']
    body = {"model": MODEL, "messages": [user("one"), reply, user("two")], "stream": False}
    assert client.post("/api/chat", change(body)).status_code == 200
    assert opencode.created() == 2


def test_one_session_is_never_used_by_two_at_once(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["first"]
    reply = client.chat([user("one")])["message"]
    follow_ups = [user("one"), reply, user("two")]
    for _ in range(2):  # the same conversation, branched: the first takes the session, and it has moved on
        opencode.script = ["second"]
        client.chat(follow_ups)
    assert opencode.created() == 2


def test_a_kept_session_that_is_gone_is_replaced_and_told_everything(
    opencode: ScriptedOpenCode, client: Client
) -> None:
    opencode.script = ["first", "second"]
    reply = client.chat([user("one")])["message"]
    opencode.sessions.clear()
    assert client.chat([user("one"), reply, user("two")])["message"]["content"] == "second"
    assert opencode.created() == 2
    assert "one" in opencode.said()
    assert "first" in opencode.said()


def test_a_turn_after_a_fallback_starts_afresh(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ['{"oops": 1}', '{"oops": 2}', "Hm?"]
    client.chat([user("Do it")], tools=TOOLS)
    assert opencode.sessions == {}


def test_keep_alive_of_nothing_keeps_no_session(opencode: ScriptedOpenCode, client: Client) -> None:
    client.chat([user("one")], keep_alive=0)
    assert opencode.sessions == {}
    client.chat([user("one")])
    assert len(opencode.sessions) == 1
    client.post("/api/chat", {"model": MODEL, "keep_alive": 0})
    assert opencode.sessions == {}


def test_sessions_go_after_their_time(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url, keep_minutes=0.01) as served, Client(served.url) as client:
        client.chat([user("one")])
        wait_for(lambda: not opencode.sessions)
        assert client.http.get("/health").json()["sessions"] == {"in_use": 0, "waiting": 0}
    with adapter(opencode.url, keep_minutes=0) as served, Client(served.url) as client:
        client.chat([user("one")])
        assert opencode.sessions == {}


def test_no_session_is_left_when_the_adapter_stops(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url) as served, Client(served.url) as client:
        for number in range(3):
            client.chat([user(f"conversation {number}")])
        assert len(opencode.sessions) == 3
    assert opencode.sessions == {}


@contextmanager
def asking(url: str, opencode: ScriptedOpenCode, *, stream: bool) -> Iterator[None]:
    """A connection of a client that waits for an answer which does not come."""
    opencode.script = [HANG]
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"model": MODEL, "messages": [user("hi")], "stream": stream}).encode()
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(f"POST /api/chat HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        wait_for(lambda: opencode.prompts)
        yield


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_stops_the_model_and_leaves_no_session(
    opencode: ScriptedOpenCode, served: Adapter, stream: bool
) -> None:
    with asking(served.url, opencode, stream=stream):
        assert len(opencode.sessions) == 1
    wait_for(lambda: not opencode.sessions)
    assert "POST /session/*/abort" in opencode.requests


def test_an_adapter_that_stops_in_the_middle_leaves_no_session(opencode: ScriptedOpenCode) -> None:
    with contextlib.ExitStack() as stack:
        with adapter(opencode.url) as served:
            stack.enter_context(asking(served.url, opencode, stream=True))
        assert opencode.sessions == {}
