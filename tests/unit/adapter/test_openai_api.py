"""The adapter's /v1, asked by OpenAI's own client and over plain HTTP, in front of a scripted OpenCode server."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import ollama
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.adapter import Adapter
from daemon.chat import ToolCall
from daemon.chat.action_text import Action, render
from tests.support.servers.adapter_opencode import (
    DOWN,
    MODEL,
    PIXEL,
    TOOLS,
    BreakingOpenCode,
    Client,
    ScriptedOpenCode,
    adapter,
    user,
)  # fmt: skip

PNG = f"data:image/png;base64,{PIXEL}"
SEEN: Any = {
    "role": "user",
    "content": [{"type": "text", "text": "See?"}, {"type": "image_url", "image_url": {"url": PNG}}],
}


def action(name: str, **arguments: Any) -> str:
    return render(Action("tool_call", call=ToolCall(name, arguments)))


def answer(text: str) -> str:
    return json.dumps({"action": "answer", "content": text})


def official(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@pytest.fixture
def ai(served: Adapter) -> Iterator[openai.OpenAI]:
    with official(served.url) as client:
        yield client


def complete(client: Client, **body: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", {"model": MODEL, "messages": [user("hi")], **body})


def events(reply: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream that ended well."""
    assert reply.headers["content-type"].startswith("text/event-stream")
    *lines, end = reply.text.removesuffix("\n\n").split("\n\n")
    assert end == "data: [DONE]"
    assert all(line.startswith("data: {") for line in lines)
    return [json.loads(line[6:]) for line in lines]


def error_of(reply: httpx.Response, status: int) -> dict[str, Any]:
    """The error in OpenAI's shape."""
    assert reply.status_code == status, reply.text
    assert list(reply.json()) == ["error"]
    error: dict[str, Any] = reply.json()["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert isinstance(error["message"], str)
    return error


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_answer_is_one_object_with_its_tokens(opencode: ScriptedOpenCode, ai: openai.OpenAI) -> None:
    opencode.script = ["<think>polite</think>Good day."]
    messages: Any = [{"role": "developer", "content": "Be brief."}, user("Hello")]
    said = ai.chat.completions.create(model=MODEL, messages=messages)
    assert (said.object, said.model) == ("chat.completion", MODEL)
    assert (said.choices[0].message.content, said.choices[0].finish_reason) == ("Good day.", "stop")
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.total_tokens) == (100, 10, 110)
    assert opencode.said() == "Hello"
    assert opencode.system().startswith("Be brief.\n\n")


def test_tokens_that_are_not_known_are_no_numbers(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.tokens = {}
    assert complete(client).json()["usage"] is None


def test_a_stream_is_events_with_the_role_once(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [["Good", " ", "day."]]
    received = events(complete(client, stream=True))
    deltas = [event["choices"][0]["delta"] for event in received]
    assert "".join(delta.get("content", "") for delta in deltas) == "Good day."
    assert ["role" in delta for delta in deltas] == [True] + [False] * (len(deltas) - 1)
    assert [event["choices"][0]["finish_reason"] for event in received] == [None] * (len(deltas) - 1) + ["stop"]
    assert len({event["id"] for event in received}) == 1
    assert not any("usage" in event for event in received)


def test_a_stream_ends_with_the_tokens_if_they_are_asked_for(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [["Good", " day."]]
    *before, last = events(complete(client, stream=True, stream_options={"include_usage": True}))
    assert all(event["usage"] is None for event in before)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@pytest.mark.parametrize("stop", ["END", ["never", "END", "ENDED"]])
def test_an_answer_ends_before_a_stop(opencode: ScriptedOpenCode, client: Client, stop: Any) -> None:
    opencode.script = [["One E", "N two E", "N", "D three EN", "D"]] * 2
    whole = complete(client, stop=stop).json()["choices"][0]
    assert (whole["message"]["content"], whole["finish_reason"]) == ("One EN two ", "stop")
    received = events(complete(client, stop=stop, stream=True))
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in received) == "One EN two "


def test_a_session_is_not_kept_that_has_more_than_the_client(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["One. Two.", "Three."]
    said = complete(client, stop=" Two").json()["choices"][0]["message"]
    complete(client, messages=[user("hi"), said, user("and?")], stop=" Two")
    assert opencode.created() == 2


@pytest.mark.parametrize("stop", [3, [3], {"a": 1}])
def test_a_stop_that_is_no_text_is_refused(client: Client, stop: Any) -> None:
    assert error_of(complete(client, stop=stop), 400)["message"].startswith("stop must be")


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_is_called_and_its_result_answered(opencode: ScriptedOpenCode, ai: openai.OpenAI, stream: bool) -> None:
    opencode.script = [action("get_weather", city="Oslo"), answer("It snows in Oslo.")]
    messages: list[Any] = [user("What is the weather in Oslo?")]

    def turn() -> Any:
        if not stream:
            return ai.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0]
        with ai.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as coming:
            for _ in coming:
                pass
            return coming.get_final_completion().choices[0]

    asked = turn()
    assert asked.finish_reason == "tool_calls"
    assert not asked.message.content
    (call,) = asked.message.tool_calls
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == (
        "function",
        "get_weather",
        {"city": "Oslo"},
    )
    messages += [
        {"role": "assistant", "tool_calls": [call.model_dump(include={"id": True, "type": True, "function": {"name", "arguments"}})]},
        {"role": "tool", "tool_call_id": call.id, "content": "snow, -3 °C"},
    ]  # fmt: skip
    answered = turn()
    assert (answered.message.content, answered.finish_reason) == ("It snows in Oslo.", "stop")
    assert opencode.said().startswith("Result of get_weather")
    assert "snow, -3 °C" in opencode.said()
    assert opencode.created() == 1  # the session knew the first turn


def test_results_are_told_apart_by_the_ids_of_their_calls(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [answer("ok")]
    calls = [
        {"id": name, "type": "function", "function": {"name": f"get_{name}", "arguments": "{}"}}
        for name in ("weather", "status")
    ]
    messages = [
        user("both"),
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "status", "content": "up"},
        {"role": "tool", "tool_call_id": "weather", "content": [{"type": "text", "text": "snow"}]},
    ]
    assert complete(client, messages=messages, tools=TOOLS).status_code == 200
    first, second = opencode.said().split("Result of ")[1:]
    assert first.startswith("get_status")
    assert "up" in first
    assert second.startswith("get_weather")
    assert "snow" in second


NAMED = {"type": "function", "function": {"name": "get_status"}}


@pytest.mark.parametrize(("choice", "offered"), [("required", ["get_weather", "get_status"]), (NAMED, ["get_status"])])
def test_a_tool_that_must_be_called_is_called(
    opencode: ScriptedOpenCode, client: Client, choice: Any, offered: list[str]
) -> None:
    opencode.script = [answer("It is up."), action("get_status")]
    said = complete(client, tools=TOOLS, tool_choice=choice).json()["choices"][0]
    assert said["message"]["tool_calls"][0]["function"] == {"name": "get_status", "arguments": "{}"}
    assert "must call one of the tools" in opencode.said()
    assert [name for name in ("get_weather", "get_status") if f"{name}: Does" in opencode.system()] == offered
    assert '"action": "chat"' not in opencode.system()


def test_words_in_place_of_a_call_that_must_be_are_an_error(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [answer("no"), "I would rather not."]
    error = error_of(complete(client, tools=TOOLS, tool_choice="required"), 502)
    assert "no tool was named" in error["message"]
    assert len(opencode.prompts) == 2


def test_without_a_choice_of_tools_none_is_told(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = ["Hello."]
    said = complete(client, tools=TOOLS, tool_choice="none").json()["choices"][0]
    assert said["message"]["content"] == "Hello."
    assert "get_weather" not in opencode.system()


@pytest.mark.parametrize(
    ("form", "replies", "content"),
    [
        ({"type": "text"}, ["words"], "words"),
        ({"type": "json_object"}, ["[1]", '```json\n{"a": 1}\n```'], '{"a": 1}'),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "required": ["a"]}}},
            ['{"b": 1}', '{"a": 2}'],
            '{"a": 2}',
        ),
    ],
)
def test_the_form_that_was_asked_for_is_checked(
    opencode: ScriptedOpenCode, client: Client, form: Any, replies: list[str], content: str
) -> None:
    opencode.script = list(replies)
    assert complete(client, response_format=form).json()["choices"][0]["message"]["content"] == content
    assert len(opencode.prompts) == len(replies)


def test_a_conversation_may_go_on_in_the_other_api(opencode: ScriptedOpenCode, client: Client) -> None:
    """Both are translations in front of the same exchange, so the second turn finds the session of the first."""
    opencode.script = ["first", "second"]
    reply = client.chat([user("one")])["message"]
    said = complete(client, messages=[user("one"), reply, user("two")]).json()
    assert said["choices"][0]["message"]["content"] == "second"
    assert opencode.said() == "two"
    assert opencode.created() == 1


# -- images ------------------------------------------------------------------------------------------------------------


def test_an_image_is_shown_to_a_model_that_can_see(opencode: ScriptedOpenCode, ai: openai.OpenAI) -> None:
    opencode.script = ["A pixel.", "Still a pixel."]
    messages: list[Any] = [SEEN]
    assert ai.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content == "A pixel."
    assert opencode.images() == [PNG]
    assert opencode.said() == "See?\n[attached image 1]"
    messages += [{"role": "assistant", "content": "A pixel."}, user("And now?")]
    ai.chat.completions.create(model=MODEL, messages=messages)
    assert (opencode.said(), opencode.images()) == ("And now?", [])  # the session has it
    opencode.script = ["Two pixels."]
    ai.chat.completions.create(model=MODEL, messages=[*messages[:1], {"role": "assistant", "content": "?"}, SEEN])
    assert opencode.images() == [PNG, PNG]
    assert "[attached image 1]" in opencode.said()
    assert opencode.said().index("[attached image 1]") < opencode.said().index("[attached image 2]")


def test_ollamas_images_are_shown_too(opencode: ScriptedOpenCode, served: Adapter) -> None:
    opencode.script = ["A pixel.", "A pixel."]
    with ollama.Client(host=served.url) as client:
        said = client.chat(MODEL, [{"role": "user", "content": "See?", "images": [PIXEL]}])
        assert said.message.content == "A pixel."
        assert client.generate(MODEL, "", images=[PIXEL]).response == "A pixel."
    assert opencode.images(0) == opencode.images(1) == [PNG]
    assert opencode.said() == "[attached image 1]"


def test_an_image_that_opencode_cannot_decode_is_the_clients_fault(opencode: ScriptedOpenCode, client: Client) -> None:
    reason = "ImageDecodeError: Image could not be decoded"
    opencode.script = [{"name": "UnknownError", "data": {"message": reason}}]
    assert "cannot be decoded" in error_of(complete(client, messages=[SEEN]), 400)["message"]
    assert len(opencode.prompts) == 1
    assert opencode.sessions == {}


def test_another_image_is_another_conversation(opencode: ScriptedOpenCode, client: Client) -> None:
    other = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    seen = {"role": "user", "content": [SEEN["content"][0], {"type": "image_url", "image_url": {"url": other}}]}
    opencode.script = ["first", "second"]
    complete(client, messages=[SEEN])
    complete(client, messages=[seen, {"role": "assistant", "content": "first"}, user("two")])
    assert opencode.created() == 2
    assert opencode.images() == [other]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_models_are_listed_and_found_by_their_names(ai: openai.OpenAI) -> None:
    assert [(m.id, m.owned_by, m.object) for m in ai.models.list()] == [
        ("acme/large", "acme", "model"),
        ("acme/small", "acme", "model"),
    ]
    assert ai.models.retrieve("acme/small").id == "acme/small"
    for ask in (
        lambda: ai.models.retrieve("acme/none"),
        lambda: ai.chat.completions.create(model="acme/none", messages=[user("hi")]),  # type: ignore[list-item]
    ):
        with pytest.raises(openai.NotFoundError, match="model 'acme/none' not found") as missing:
            ask()
        assert missing.value.code == "model_not_found"


REFUSED: dict[str, Any] = {
    "n": 2, "logprobs": True, "top_logprobs": 3, "logit_bias": {"50256": -100}, "audio": {"voice": "x"},
    "functions": [{"name": "f"}], "function_call": "auto", "modalities": ["text", "audio"], "web_search_options": {"a": 1},
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_what_would_change_the_answer_is_refused(
    opencode: ScriptedOpenCode, client: Client, name: str, value: Any
) -> None:
    error = error_of(complete(client, **{name: value}), 400)
    assert error["message"].startswith(f"{name} is not supported: ")
    assert error["type"] == "invalid_request_error"
    assert opencode.requests == []


def test_what_asks_for_nothing_else_is_accepted(opencode: ScriptedOpenCode, client: Client) -> None:
    nothing = dict.fromkeys(REFUSED) | {
        "n": 1,
        "logprobs": False,
        "top_logprobs": 0,
        "stop": [],
        "modalities": ["text"],
    }
    plain = {"user": "me", "store": True, "metadata": {}, "parallel_tool_calls": True, "made_up": 1}
    said = complete(client, **nothing, **plain)
    assert said.status_code == 200
    assert "reconstitute-ignored" not in said.headers
    said = complete(client, temperature=0, max_tokens=5, top_p=None)
    assert said.headers["reconstitute-ignored"] == "temperature, max_tokens"


MALFORMED: dict[str, tuple[Any, str]] = {
    "no body": (b"", "missing request body"),
    "no JSON": (b"{", "cannot be read"),
    "no object": (b"[]", "must be a JSON object"),
    "deep": (b"[" * 5000, "cannot be read"),
    "no model": ({"model": ""}, "model is required"),
    "no message": ({"messages": []}, "none to answer"),
    "only a system text": ({"messages": [{"role": "system", "content": "x"}]}, "none to answer"),
    "messages of another type": ({"messages": "hi"}, "messages"),
    "a role of nobody": ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
    "a sound": ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, '"input_audio"'),
    "an image elsewhere": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}]},
        "data: URL",
    ),
    "an image that is none": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,aGk="}]}]},
        "PNG, JPEG, GIF or WebP",
    ),
    "an image for the blind": ({"model": "acme/small", "messages": [SEEN]}, "acme/small does not take images"),
    "an image of the system": ({"messages": [SEEN | {"role": "developer"}, user("x")]}, "system message"),
    "a result of no call": ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "tool_call_id"),
    "a tool without a name": ({"tools": [{"type": "function", "function": {}}]}, "needs a name"),
    "a tool that is no function": ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "needs a name"),
    "a choice of nothing": ({"tool_choice": "required"}, "no such tool"),
    "a choice of another": ({"tools": TOOLS, "tool_choice": {"function": {"name": "x"}}}, "no such tool"),
    "a choice of another type": ({"tools": TOOLS, "tool_choice": "any"}, "tool_choice must be"),
    "a form of nothing": ({"response_format": {"type": "grammar"}}, "response_format.type"),
    "a form that is no schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "objekt"}}}},
        "no JSON schema",
    ),
    "a form without a schema": ({"response_format": {"type": "json_schema"}}, "json_schema.schema"),
    "a stream of another type": ({"stream": "yes"}, "stream"),
}


@pytest.mark.parametrize(("body", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_what_makes_no_sense_is_refused(opencode: ScriptedOpenCode, client: Client, body: Any, reason: str) -> None:
    if isinstance(body, bytes):
        reply = client.http.post("/v1/chat/completions", content=body)
    else:
        reply = complete(client, **body)
    assert reason in error_of(reply, 400)["message"]
    assert opencode.sessions == {}


ELSEWHERE = {
    "embeddings": ("POST", "/v1/embeddings", 501),
    "responses": ("POST", "/v1/responses", 501),
    "the root": ("GET", "/v1/", 501),
    "another method": ("GET", "/v1/chat/completions", 501),
}


@pytest.mark.parametrize(("method", "path", "status"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_other_addresses_of_openai_are_refused(client: Client, method: str, path: str, status: int) -> None:
    assert "/v1/chat/completions" in error_of(client.http.request(method, path), status)["message"]


def test_who_may_not_ask_is_told_so_in_openais_shape(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url, token="sesame") as served, Client(served.url) as client:
        error = error_of(client.http.get("/v1/models", headers={"authorization": "Bearer wrong"}), 401)
        assert error["code"] == "invalid_api_key"
        error_of(client.http.get("/v1/models", headers={"origin": "https://evil.example"}), 403)
        with openai.OpenAI(base_url=f"{served.url}/v1", api_key="sesame", max_retries=0) as ai:
            assert [model.id for model in ai.models.list()] == ["acme/large", "acme/small"]


def test_what_was_tried_in_vain_is_not_asked_again(opencode: ScriptedOpenCode, served: Adapter) -> None:
    opencode.script = ["no"] * 10
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none") as ai:
        form: Any = {"type": "json_object"}
        with pytest.raises(openai.InternalServerError, match="must be JSON"):
            ai.chat.completions.create(model=MODEL, messages=[user("hi")], response_format=form)  # type: ignore[list-item]
    assert len(opencode.prompts) == 3


def test_an_error_before_the_first_word_has_its_status(opencode: ScriptedOpenCode, client: Client) -> None:
    opencode.script = [DOWN] * 4
    error = error_of(complete(client, stream=True), 503)
    assert "overloaded" in error["message"]
    assert error["type"] == "api_error"
    opencode.script = [{"name": "ContextOverflowError", "data": {"message": "too long"}}]
    assert error_of(complete(client), 400)["code"] == "context_length_exceeded"


def test_an_error_in_the_middle_of_a_stream_is_its_last_event() -> None:
    script: Any = [["Once upon", " a time"]] * 2
    with BreakingOpenCode(script=script) as opencode, adapter(opencode.url) as served:
        with Client(served.url) as client:
            *pieces, last = complete(client, stream=True).text.removesuffix("\n\n").split("\n\n")
        assert list(json.loads(last.removeprefix("data: "))) == ["error"]
        assert not any("could not answer" in piece for piece in pieces)
        texts = list[Any]()
        with official(served.url) as ai:
            stream = ai.chat.completions.create(model=MODEL, messages=[user("hi")], stream=True)  # type: ignore[list-item]
            with pytest.raises(openai.APIError, match="overloaded"):
                texts.extend(chunk.choices[0].delta.content for chunk in stream)
        assert texts == ["Once upon", " a time"]
        assert opencode.sessions == {}


@pytest.mark.parametrize("path", ["/api/chat", "/v1/chat/completions"])
def test_an_adapter_that_stops_in_the_middle_of_a_stream_says_so(path: str) -> None:
    class Endless(ScriptedOpenCode):
        def _stream(self, session: str, answer: str) -> None:
            super()._stream(session, answer)
            while not self.closing.wait(0.02) and "POST /session/*/abort" not in self.requests:
                pass

    lines, begun = list[str](), threading.Event()

    def listen(url: str) -> None:
        body = {"model": MODEL, "messages": [user("hi")], "stream": True}
        with Client(url) as client, client.http.stream("POST", path, json=body) as reply:
            for line in filter(None, reply.iter_lines()):
                lines.append(line)
                begun.set()

    with Endless(script=["Once upon"]) as opencode:
        with adapter(opencode.url) as served:
            listener = threading.Thread(target=listen, args=(served.url,))
            listener.start()
            assert begun.wait(60)
        listener.join(60)
        assert opencode.sessions == {}
    assert "Once upon" in lines[0]
    assert "the adapter is stopping" in lines[-1]
    assert list(json.loads(lines[-1].removeprefix("data: "))) == ["error"]


# -- hostile bodies ----------------------------------------------------------------------------------------------------

JUNK: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["function", PNG]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "function", "name", "url", "id", "properties", "items"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
CALL = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
SPEECH = [SEEN, {"role": "assistant", "content": "x", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "a", "content": "y"}]  # fmt: skip
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
VALID: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": MODEL,
        "messages": SPEECH,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": TOOLS,
        "tool_choice": NAMED,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        "n": 1,
    },
    "/api/chat": {
        "model": MODEL,
        "messages": [user("x") | {"images": [PIXEL]}, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_name": "a", "content": "y"}],
        "tools": TOOLS,
        "format": SCHEMA,
        "options": {"temperature": 1},
        "keep_alive": "1m",
        "think": False,
    },
}  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn, path: str) -> dict[str, Any]:
    """A valid body with junk in one or two places, of any depth."""
    body = copy.deepcopy(VALID[path])
    for _ in range(draw(st.integers(1, 2))):
        place: Any = body
        key = draw(st.sampled_from(sorted(body)))
        while isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
            place = place[key]
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        place[key] = draw(JUNK)
    return body


@pytest.mark.parametrize("path", VALID)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_spoiled_body_is_answered_or_refused_in_its_apis_shape(
    opencode: ScriptedOpenCode, client: Client, path: str, data: st.DataObject
) -> None:
    """Whatever is in it, no fault of ours comes to light: status 500 would be one."""
    opencode.script = [action("get_weather", city="Oslo"), '{"a": []}', '{"a": []}']
    reply = client.http.post(path, content=json.dumps(data.draw(spoiled(path))).encode())
    if reply.status_code == 200:
        return
    assert reply.status_code in (400, 404, 502), reply.text
    if path.startswith("/v1"):
        error_of(reply, reply.status_code)
    else:
        assert list(reply.json()) == ["error"]
        assert isinstance(reply.json()["error"], str)
