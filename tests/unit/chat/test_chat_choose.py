"""Which chat model is meant: what the configuration names, and for auto what is there, said in one sentence."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from daemon import config
from daemon.chat import ModelUnavailable, ToolCall
from daemon.chat.actions import Actions
from daemon.chat.choose import choose
from daemon.chat.ollama import OllamaChat, ToolsOrActions
from daemon.chat.opencode import OpenCodeChat
from daemon.errors import ConfigError
from tests.support.servers.fake_ollama import DIGEST, FakeOllama, Turn, call

NOWHERE = "http://127.0.0.1:9"
"""Port 9 of loopback: nothing listens there, the connection is refused at once."""

USER = {"role": "user", "content": "what was decided?"}
TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the sessions",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
ACTION = json.dumps({"action": "tool_call", "tool_name": "search", "arguments": {"query": "a"}})
SEARCH = (ToolCall("search", {"query": "a"}),)


@pytest.fixture
def server():
    with FakeOllama({"chat:8b": DIGEST}) as fake:
        yield fake


def chosen(provider="auto", url=NOWHERE, model="chat:8b", opencode=NOWHERE, **more):
    return choose(config.Chat(provider=provider, url=url, model=model, **more), config.OpenCode(server_url=opencode))


@pytest.fixture
def opencode():
    """Something that says of its health what an OpenCode server says."""

    class Handler(BaseHTTPRequestHandler):
        asked: ClassVar[list[str]] = []

        def do_GET(self):
            self.asked.append(self.path)
            body = b'{"healthy": true, "version": "1.18.33"}' if self.path == "/global/health" else b"{}"
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        asked = Handler.asked

        @property
        def url(self):
            return f"http://127.0.0.1:{self.server_address[1]}"

    httpd = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield httpd
    httpd.shutdown()
    httpd.server_close()


# -- named ------------------------------------------------------------------------------------------------------------


def test_none_is_none():
    model, why = chosen("none")
    assert model is None
    assert "chat.provider is none" in why


def test_a_named_ollama_is_kept_while_it_is_down_and_serves_when_it_is_up(server):
    server.down()
    model, why = chosen("ollama", server.url)
    assert f"chat:8b (Ollama) at {server.url}: chat.provider is ollama" in why
    assert server.requests == []
    with pytest.raises(ModelUnavailable, match="ollama serve"):
        model.chat([USER], [TOOL])
    server.up()
    assert model.chat([USER]).content
    model.close()


def test_what_is_configured_is_asked_for(server):
    server.capabilities["chat:8b"] = ["completion", "thinking"]
    model, _ = chosen("ollama", server.url, num_ctx=4096, think=True, keep_alive="3m")
    model.chat([USER])
    sent = server.chats[-1]
    assert (sent["options"]["num_ctx"], sent["think"], sent["keep_alive"]) == (4096, True, "3m")
    assert model.context_tokens == 4096
    model.close()


def test_opencode_is_asked_only_where_it_is_named_and_speaks_actions(opencode):
    model, why = chosen("opencode", opencode=opencode.url)
    assert isinstance(model, Actions)
    assert isinstance(model._model, OpenCodeChat)
    assert f"{opencode.url}: chat.provider is opencode" in why
    assert opencode.asked == []
    model.close()


@pytest.mark.parametrize("provider", ["auto", "ollama"])
def test_an_address_that_is_none_is_a_configuration_error(provider):
    with pytest.raises(ConfigError, match=r"chat\.url"):
        chosen(provider, "http://[nonsense")


# -- auto -------------------------------------------------------------------------------------------------------------


def test_auto_takes_the_server_that_answers_and_has_the_model(server):
    model, why = chosen(url=server.url)
    assert model.name == "chat:8b (Ollama)"
    assert why == f"chat:8b (Ollama): {server.url} answers and has the model"
    assert server.chats == []
    model.close()


def test_auto_finds_a_model_named_without_its_tag(server):
    server.models["plain:latest"] = DIGEST
    model, why = chosen(url=server.url, model="plain")
    assert "has the model" in why
    assert model.chat([USER]).content
    model.close()


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ({"b:1": ["completion"], "c:1": ["completion", "tools"], "d:1": ["completion", "tools"]}, "c:1"),
        ({"b:1": ["completion"], "a:1": ["embedding"]}, "b:1"),
        ({"z:1": ["completion", "tools", "thinking"], "e:1": ["embedding"]}, "z:1"),
        ({"e:1": ["embedding"]}, None),
        ({"old:1": None}, None),
        ({"chat:8b": ["embedding"], "b:1": ["completion"]}, "b:1"),
        ({"chat:8b": None}, "chat:8b"),
        ({}, None),
    ],
)
def test_auto_takes_the_best_of_what_can_chat_and_says_so(server, there, taken):
    server.models, server.capabilities = dict.fromkeys(there, DIGEST), there
    model, why = chosen(url=server.url)
    assert (model.name if model else None) == (f"{taken} (Ollama)" if taken else None)
    if taken != "chat:8b":
        assert "chat:8b" in why
        assert "ollama pull chat:8b" in why
    if model is not None:
        model.close()


def test_the_choice_does_not_depend_on_the_order_that_a_server_lists(server):
    names = ["m:1", "a:1", "z:1", "k:1"]
    taken = set()
    for order in (names, names[::-1]):
        server.models = dict.fromkeys(order, DIGEST)
        model, _ = chosen(url=server.url)
        taken.add(model.name)
        model.close()
    assert taken == {"a:1 (Ollama)"}


def test_auto_looks_at_many_models_for_a_few_seconds_only(server, monkeypatch):
    monkeypatch.setattr("daemon.chat.choose._LOOK_S", 1.0)
    server.models = {f"m{number:03}:1": DIGEST for number in range(300)}
    server.delay_s = 0.2
    started = time.monotonic()
    model, why = chosen(url=server.url)
    assert model.name == "m000:1 (Ollama)"
    assert time.monotonic() - started < 50  # a minute for all
    assert "can chat" in why
    model.close()


def test_a_named_model_without_server_details_is_accepted(server):
    server.broken, server.broken_path = 404, "/api/show"
    server.chat_script = [call("search", query="a")]
    model, why = chosen(url=server.url)
    assert "has the model" in why
    assert model.chat([USER], [TOOL]).calls == SEARCH
    model.close()


def test_auto_without_a_server_says_what_was_tried_and_how_to_get_a_model():
    model, why = chosen()
    assert model is None
    for part in (NOWHERE, "nothing answers", "ollama serve", "ollama pull chat:8b", "from facts"):
        assert part in why
    assert "OpenCode" not in why


def test_auto_names_an_opencode_server_and_does_not_use_it(server, opencode):
    server.models.clear()
    for url in (NOWHERE, server.url):
        model, why = chosen(url=url, opencode=opencode.url)
        assert model is None
        assert f"an OpenCode server answers at {opencode.url}" in why
        assert "may cost money" in why
    assert set(opencode.asked) == {"/global/health"}


def test_auto_does_not_ask_opencode_where_ollama_has_a_model(server, opencode):
    model, why = chosen(url=server.url, opencode=opencode.url)
    assert "OpenCode" not in why
    assert opencode.asked == []
    model.close()


def test_what_is_no_opencode_server_is_not_named(server):
    model, why = chosen(opencode=server.url)
    assert model is None
    assert "OpenCode" not in why


def test_auto_does_not_wait_for_servers_that_accept_and_say_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        model, why = chosen(url=url, opencode=url)
    assert model is None
    assert "in time" in why
    assert time.monotonic() - started < 100  # not the 600 s of a reply


# -- tools, one way or the other --------------------------------------------------------------------------------------


def test_a_model_with_tools_is_given_them(server):
    server.chat_script = [call("search", query="a")]
    model, _ = chosen(url=server.url)
    assert model.chat([USER], [TOOL]).calls == SEARCH
    assert server.chats[-1]["tools"] == [TOOL]
    model.close()


@pytest.mark.parametrize("provider", ["auto", "ollama"])
def test_a_model_known_to_have_no_tools_is_told_them_in_words(server, provider):
    server.capabilities["chat:8b"], server.chat_script = ["completion"], [ACTION]
    model, why = chosen(provider, server.url)
    assert ("without tools" in why) is (provider == "auto")
    assert model.chat([USER], [TOOL]).calls == SEARCH
    assert [bool(body.get("tools")) for body in server.chats] == [False]
    model.close()


def test_a_model_that_refuses_tools_gets_them_in_words_from_then_on(server):
    server.refuses_tools = True
    server.chat_script = [ACTION, ACTION]
    model, _ = chosen(url=server.url)
    before = model.fingerprint
    assert model.chat([USER], [TOOL]).calls == SEARCH
    assert model.chat([USER, {"role": "assistant", "content": ""}, USER], [TOOL]).calls == SEARCH
    assert [bool(body.get("tools")) for body in server.chats] == [True, False, False]
    assert model.fingerprint == before  # so that a question is not asked again after every restart
    model.close()


def test_a_model_too_old_to_tell_is_tried_with_tools(server):
    server.capabilities["chat:8b"] = None
    server.chat_script = [call("search", query="a")]
    model, _ = chosen("ollama", server.url)
    assert model.chat([USER], [TOOL]).calls == SEARCH
    model.close()


def test_no_tools_and_tools_in_words_are_two_fingerprints(server):
    fingerprints = []
    for capabilities in (["completion", "tools"], ["completion"]):
        server.capabilities["chat:8b"] = capabilities
        model, _ = chosen("ollama", server.url)
        fingerprints.append(model.fingerprint)
        model.close()
    assert len(set(fingerprints)) == 2


def test_a_failure_that_is_no_refusal_changes_nothing(server):
    server.chat_script = [(503, "busy"), Turn({"content": "x"}, cut=True), call("search", query="a")]
    model = ToolsOrActions(OllamaChat(server.url, "chat:8b", timeout_s=60))
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            model.chat([USER], [TOOL])
    assert model.chat([USER], [TOOL]).calls == SEARCH
    assert "in words" not in model.name
    model.close()
