"""The Ollama server over its official client: what a failure means, and that nothing lasts longer than its time."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import ollama
import pytest
from httpcore._backends.sync import SyncStream

import daemon
from daemon.errors import ConfigError, ModelUnavailable
from daemon.ollama_server import ModelInfo, OllamaServer, Refused, _Deadline, full_name
from tests.support.servers.fake_ollama import DIGEST, FakeOllama, Turn, call

MODELS = {"chat:8b": DIGEST, "plain:latest": "cd" * 32}


@pytest.fixture
def fake():
    with FakeOllama(dict(MODELS)) as server:
        yield server


@pytest.fixture
def server(fake):
    made = OllamaServer(fake.url, 5, setting="chat.url")
    yield made
    made.close()


def body(**more):
    return {"model": "chat:8b", "messages": [{"role": "user", "content": "hello"}], **more}


def heard(server, **more):
    return list(server.chat(body(**more)))


def test_models_have_their_digests_and_may_be_named_without_latest(server):
    assert server.models() == MODELS
    assert server.digest("plain") == server.digest("plain:latest") == "cd" * 32
    assert full_name("hf.co/some/model") == "hf.co/some/model:latest"


@pytest.mark.parametrize(
    ("capabilities", "tools"), [(["completion", "tools"], True), (["completion"], False), (None, None)]
)
def test_what_a_model_can_do_is_told_or_not_known(fake, server, capabilities, tools):
    fake.capabilities["chat:8b"], fake.context_lengths["chat:8b"] = capabilities, 40_960
    shown = server.show("chat:8b")
    assert shown.can("tools") is tools
    assert shown.context_tokens == 40_960


def test_a_reply_comes_in_pieces_and_ends_with_done(fake, server):
    fake.chat_script = ["A text of more than one piece, as every reply of some length is."]
    lines = heard(server)
    assert len(lines) > 2
    assert "".join(line["message"]["content"] for line in lines).startswith("A text of more")
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]


def test_a_request_goes_out_as_it_was_given(fake, server):
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "default": 5}}}
    tool = {"type": "function", "function": {"name": "t", "description": "d", "parameters": parameters}}
    images = [{"role": "user", "content": "look", "images": ["/etc/hostname"]}]
    list(server.chat(body(messages=images, tools=[tool], truncate=False)))
    sent = fake.chats[-1]
    assert sent["tools"] == [tool]
    assert sent["messages"] == images  # a path stays a path: no file is read for it
    assert sent["truncate"] is False


# -- O6 ---------------------------------------------------------------------------------------------------------------

EVERY_CALL = {
    "models": lambda server: server.models(),
    "digest": lambda server: server.digest("chat:8b"),
    "show": lambda server: server.show("chat:8b"),
    "embed": lambda server: server.embed("chat:8b", ["text"], num_ctx=512, keep_alive="1m"),
    "chat": heard,
}


@pytest.mark.parametrize("asked", EVERY_CALL)
def test_a_server_that_is_down_is_named_with_the_command_to_start_it(fake, server, asked):
    """It serves again as soon as the server is up."""
    fake.down()
    with pytest.raises(ModelUnavailable, match=rf"{fake.url}: nothing answers.*ollama serve"):
        EVERY_CALL[asked](server)
    fake.up()
    EVERY_CALL[asked](server)
    fake.down()
    fake.up()
    EVERY_CALL[asked](server)


@pytest.mark.parametrize("asked", ["digest", "embed", "chat"])
def test_a_missing_model_is_named_with_the_way_to_get_it(fake, server, asked):
    fake.models.clear()
    with pytest.raises(ModelUnavailable, match=rf"{fake.url}: does not have chat:8b.*ollama pull chat:8b"):
        EVERY_CALL[asked](server)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
@pytest.mark.parametrize("asked", ["embed", "chat"])
def test_a_busy_server_is_asked_again_later(fake, server, asked, status):
    fake.broken = status
    with pytest.raises(ModelUnavailable, match=f"busy.*{status}"):
        EVERY_CALL[asked](server)


@pytest.mark.parametrize("status", [400, 401, 403, 500])
@pytest.mark.parametrize("asked", ["embed", "chat"])
def test_what_else_a_server_refuses_is_for_the_caller_to_judge(fake, server, asked, status):
    fake.broken, fake.broken_reason = status, "a reason of its own"
    with pytest.raises(Refused) as refused:
        EVERY_CALL[asked](server)
    assert (refused.value.status, refused.value.reason) == (status, "a reason of its own")


@pytest.mark.parametrize(
    ("turn", "status", "reason"),
    [
        (Turn({"content": "so far"}, error="error parsing tool call: raw='{'"), None, "error parsing tool call"),
        (Turn(raw=b'{"error parsing tool call":"invalid character"}\n'), None, "error parsing tool call: invalid"),
        (Turn(raw=b"<html>a proxy's page</html>"), 200, "not Ollama's"),
        (Turn(raw=b"null\n"), 200, "not Ollama's"),
        (Turn(raw=b"[1]\n"), 200, "not Ollama's"),
        (Turn(raw=b'{"error":{"message":"as OpenAI writes it"}}\n'), 200, "not Ollama's"),
        (Turn(raw=b'{"done":tru'), 200, "not Ollama's"),
        (Turn(raw=b'{"a":' * 100_000 + b"1" + b"}" * 100_000), None, "failed to parse JSON"),
        (Turn(raw=b'{"message":{"n":' + b"9" * 10_000 + b"}}\n"), None, "failed to parse JSON"),
    ],
)
def test_an_error_in_the_stream_and_a_stream_that_is_none(fake, server, turn, status, reason):
    fake.chat_script = [turn]
    with pytest.raises(Refused) as refused:
        heard(server)
    assert refused.value.status == status
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    ("turn", "cause"),
    [
        (Turn({"content": "so far"}, cut=True), "the connection broke"),
        (Turn(raw=b""), "ended in the middle"),
        (Turn(raw=b'{"message":{"content":"so far"},"done":false}\n'), "ended in the middle"),
    ],
)
def test_a_reply_that_ends_in_the_middle_is_none(fake, server, turn, cause):
    fake.chat_script = [turn]
    with pytest.raises(ModelUnavailable, match=cause):
        heard(server)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_server_that_lists_no_models_is_said_not_to_be_ollama(fake, server, status):
    fake.broken, fake.broken_path = status, "/api/tags"
    with pytest.raises(ModelUnavailable, match=f"{fake.url}.*{status}.*is this Ollama"):
        server.models()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_of_a_model_that_a_server_says_nothing_of_nothing_is_known(fake, server, status):
    fake.broken, fake.broken_path = status, "/api/show"
    assert server.show("chat:8b") == ModelInfo(None, None)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("head", [False, True])
def test_a_reply_that_trickles_is_ended_when_its_time_is_over(fake, head, ends):
    fake.trickle_s, fake.trickle_head = 0.05, head
    fake.chat_script = [Turn(raw=b"{" * 9000) if ends else "word " * 1000]
    hasty = OllamaServer(fake.url, 2, setting="chat.url")
    assert hasty.models()  # a connection that is there already would not be seen being made
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="in time"):
        list(hasty.chat(body()))
    assert time.monotonic() - started < 30  # a byte every 50 ms: more than 200 s in all
    hasty.close()


@pytest.mark.parametrize("asked", EVERY_CALL)
@pytest.mark.parametrize("head", [b"content-length: 100000\r\n\r\n", b"x: "], ids=["body", "head"])
def test_no_call_lasts_longer_than_its_time_however_its_bytes_trickle(asked, head):
    def trickle(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + head)
            while True:
                connection.sendall(b" ")
                time.sleep(0.05)

    def listen(listening):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=trickle, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as slow:
        threading.Thread(target=listen, args=(slow,), daemon=True).start()
        hasty = OllamaServer(f"http://127.0.0.1:{slow.getsockname()[1]}", 0.4, setting="chat.url")
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match="in time"):
            EVERY_CALL[asked](hasty)
        assert time.monotonic() - started < 30
        hasty.close()


def test_a_connection_made_when_the_time_is_over_is_ended_at_once():
    ours, theirs = socket.socketpair()
    with _Deadline(0.01) as deadline, ours, theirs:
        until = time.monotonic() + 90
        while not deadline.passed and time.monotonic() < until:
            time.sleep(0.01)
        deadline.trace("connection.connect_tcp.complete", {"return_value": SyncStream(ours)})
        theirs.settimeout(90)
        assert theirs.recv(1) == b""


def test_a_reply_within_its_time_is_whole_however_slowly_it_comes(fake, server):
    fake.trickle_s, fake.chat_script = 0.0005, ["a slow answer"]
    assert "".join(line["message"]["content"] for line in heard(server)) == "a slow answer"


def test_a_server_that_accepts_and_says_nothing_is_too_slow():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hasty = OllamaServer(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.3, setting="chat.url")
        for asked in (hasty.models, lambda: list(hasty.chat(body()))):
            with pytest.raises(ModelUnavailable, match="in time"):
                asked()
        hasty.close()


def test_a_server_that_speaks_no_http_or_no_tls_is_unavailable():
    def hang_up(listening):
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.sendall(b"220 mail ready\r\n")
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=hang_up, args=(other,), daemon=True).start()
        for scheme in ("http", "https"):
            asked = OllamaServer(f"{scheme}://127.0.0.1:{other.getsockname()[1]}", 2, setting="chat.url")
            with pytest.raises(ModelUnavailable, match=f"{scheme}://127"):
                asked.models()
            with pytest.raises(ModelUnavailable, match=f"{scheme}://127"):
                list(asked.chat(body()))
            asked.close()


def test_a_reader_that_stops_in_the_middle_leaves_no_connection(fake, server):
    fake.trickle_s, fake.chat_script = 0.001, ["word " * 2000]
    lines = server.chat(body())
    next(lines)
    lines.close()
    until = time.monotonic() + 90
    while fake.connections and time.monotonic() < until:
        time.sleep(0.02)
    assert not fake.connections


def test_what_a_reader_raises_is_its_own(fake, server):
    def read():
        for _ in server.chat(body()):
            raise ValueError("mine")

    fake.chat_script = [call("tool")]
    with pytest.raises(ValueError, match="mine"):
        read()


def test_an_address_that_is_none_names_the_setting():
    with pytest.raises(ConfigError, match=r"chat\.url"):
        OllamaServer("http://[nonsense", 1, setting="chat.url")


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(fake, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    made = OllamaServer(fake.url, 5, setting="chat.url")
    assert made.models()
    made.close()


def test_only_one_module_imports_the_client():
    root = Path(daemon.__file__).parent
    wanted = re.compile(r"^ *(import|from) ollama\b", re.MULTILINE)
    found = [path.relative_to(root) for path in root.rglob("*.py") if wanted.search(path.read_text())]
    assert found == [Path("ollama_server.py")]


def test_choosing_loads_no_client_before_it_is_needed():
    code = "import sys, daemon.chat.choose, daemon.embed.choose; print({'ollama', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# -- the stand-in itself ----------------------------------------------------------------------------------------------


def test_the_stand_in_has_every_endpoint_that_the_official_client_asks(fake):
    client = ollama.Client(fake.url)
    user = [{"role": "user", "content": "hello"}]
    fake.chat_script = lambda body: f"{body['messages'][-1]['content']}, you"
    assert client.chat("chat:8b", user).message.content == "hello, you"
    pieces = [part.message.content for part in client.chat("chat:8b", user, stream=True)]
    assert "".join(pieces) == "hello, you"
    assert client.generate("chat:8b", "hello").response == "hello, you"
    assert "".join(part.response or "" for part in client.generate("chat:8b", "hello", stream=True)) == "hello, you"
    assert [entry.model for entry in client.ps().models] == ["chat:8b"]
    assert {entry.model for entry in client.list().models} == set(MODELS)
    assert client.show("plain").capabilities == ["embedding", "completion", "tools"]
    assert len(client.embed("plain", ["a", "b"]).embeddings) == 2
    assert fake.count["/api/chat"] == 2
    client.close()


@pytest.mark.parametrize(
    ("capabilities", "asked", "refusal"),
    [
        (["completion"], {"tools": [{"type": "function", "function": {"name": "t"}}]}, "does not support tools"),
        (["completion"], {"think": True}, "does not support thinking"),
        (["completion"], {"keep_alive": "-1"}, "missing unit in duration"),
    ],
)
def test_the_stand_in_refuses_what_ollama_refuses(fake, server, capabilities, asked, refusal):
    fake.capabilities["chat:8b"] = capabilities
    with pytest.raises(Refused, match=refusal) as error:
        heard(server, **asked)
    assert error.value.status == 400


def test_a_script_that_fails_says_so_where_the_test_sees_it(fake, server):
    fake.chat_script = lambda body: body["no such key"]
    with pytest.raises(Refused, match="the script failed: KeyError"):
        heard(server)
