"""The adapter's addresses beside chat: Ollama's answers, refusals in Ollama's shape, and who may ask at all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ollama
import pytest

from daemon.adapter import Adapter, routes
from daemon.adapter.guard import is_loopback
from tests.support.servers.adapter_opencode import HANG, MODEL, PIXEL, Client, ScriptedOpenCode, adapter, user


def test_it_says_that_it_runs_as_ollama_does(client: Client) -> None:
    assert client.http.get("/").text == "Ollama is running"
    assert client.http.head("/").status_code == 200
    assert client.http.get("/api/version").json() == {"version": "0.13.0"}


def test_models_are_opencodes_the_default_first(client: Client, opencode: ScriptedOpenCode) -> None:
    models = client.http.get("/api/tags").json()["models"]
    assert [m["name"] for m in models] == [m["model"] for m in models] == ["acme/large", "acme/small"]
    assert models[0]["details"]["family"] == "acme"
    assert len(models[0]["digest"]) == 64
    opencode.default_model = "acme/small"
    with adapter(opencode.url) as other, Client(other.url) as second:
        assert [m["name"] for m in second.http.get("/api/tags").json()["models"]] == ["acme/small", "acme/large"]


@pytest.mark.parametrize("body", [{"model": MODEL}, {"name": MODEL}, {"model": f"{MODEL}:latest", "verbose": True}])
def test_a_model_is_shown_with_tools_and_its_context(client: Client, body: dict[str, Any]) -> None:
    shown = client.post("/api/show", body).json()
    assert shown["capabilities"] == ["completion", "tools", "vision"]
    assert shown["model_info"]["acme.context_length"] == 200_000


def test_latest_is_tolerated_and_answered_by_the_name_that_was_used(client: Client) -> None:
    said = client.post("/api/chat", {"model": f"{MODEL}:latest", "messages": [user("hi")], "stream": False})
    assert said.json()["model"] == f"{MODEL}:latest"


def test_nothing_runs_before_anything_was_asked(client: Client) -> None:
    assert client.http.get("/api/ps").json() == {"models": []}


def test_ollamas_own_client_reads_all_of_it(served: Adapter, opencode: ScriptedOpenCode) -> None:
    opencode.script = ["Good day."]
    with ollama.Client(host=served.url) as official:
        assert official.chat(MODEL, [user("hi")]).message.content == "Good day."
        assert [m.model for m in official.list().models] == ["acme/large", "acme/small"]
        assert [m.model for m in official.ps().models] == [MODEL]
        with pytest.raises(ollama.ResponseError, match="model 'x' not found") as missing:
            official.show("x")
    assert missing.value.status_code == 404


def test_health_says_whether_opencode_answers(client: Client, opencode: ScriptedOpenCode) -> None:
    healthy = client.http.get("/health")
    assert (healthy.status_code, healthy.json()["status"]) == (200, "ok")
    assert healthy.json()["opencode"] == {"url": opencode.url, "version": "1.18.33"}
    opencode.fail["GET /global/health"] = 500
    ill = client.http.get("/health")
    assert (ill.status_code, ill.json()["status"]) == (503, "degraded")
    assert "HTTP 500" in ill.json()["opencode"]["error"]


REFUSALS = {
    "no body": ("POST", "/api/chat", b"", 400, "missing request body"),
    "no JSON": ("POST", "/api/chat", b"{", 400, "cannot be read"),
    "deep": ("POST", "/api/chat", b"[" * 5000, 400, "cannot be read"),
    "no model": ("POST", "/api/chat", {"messages": []}, 400, "model is required"),
    "no model to show": ("POST", "/api/show", {}, 400, "model is required"),
    "unknown model": ("POST", "/api/chat", {"model": "x", "messages": [user("hi")]}, 404, "model 'x' not found"),
    "unknown model, streaming": ("POST", "/api/generate", {"model": "x", "prompt": "hi"}, 404, "model 'x' not found"),
    "unknown model to load": ("POST", "/api/generate", {"model": "x"}, 404, "model 'x' not found"),
    "a role of nobody": ("POST", "/api/chat", {"model": MODEL, "messages": [{"role": "god"}]}, 400, "role"),
    "messages of another type": ("POST", "/api/chat", {"model": MODEL, "messages": "hi"}, 400, "messages"),
    "a tool without a name": (
        "POST",
        "/api/chat",
        {"model": MODEL, "tools": [{}], "messages": [user("x")]},
        400,
        "name",
    ),
    "a form of nothing": (
        "POST",
        "/api/chat",
        {"model": MODEL, "format": "xml", "messages": [user("x")]},
        400,
        "format",
    ),
    "what is no image": ("POST", "/api/generate", {"model": MODEL, "images": ["aGk="]}, 400, "an image must be PNG"),
    "what is not base64": ("POST", "/api/generate", {"model": MODEL, "images": ["a b!"]}, 400, "base64"),
    "an image for the blind": (
        "POST",
        "/api/chat",
        {"model": "acme/small", "messages": [user("x") | {"images": [PIXEL]}]},
        400,
        "acme/small does not take images",
    ),
    "an image of the system": (
        "POST",
        "/api/chat",
        {"model": MODEL, "messages": [{"role": "system", "images": [PIXEL]}, user("x")]},
        400,
        "system message",
    ),
    "probabilities": ("POST", "/api/generate", {"model": MODEL, "prompt": "a", "logprobs": True}, 400, "logprobs"),
    "a text to fill in": ("POST", "/api/generate", {"model": MODEL, "prompt": "a", "suffix": "b"}, 400, "insert"),
    "raw with a system text": ("POST", "/api/generate", {"model": MODEL, "raw": True, "system": "s"}, 400, "raw mode"),
    "embeddings": ("POST", "/api/embed", {"model": MODEL, "input": "x"}, 501, "does not support embeddings"),
    "old embeddings": ("POST", "/api/embeddings", {"model": MODEL}, 501, "does not support embeddings"),
    "pull": ("POST", "/api/pull", {"model": "x"}, 501, "opencode auth login"),
    "push": ("POST", "/api/push", {"model": "x"}, 501, "OpenCode"),
    "create": ("POST", "/api/create", {"model": "x"}, 501, "OpenCode"),
    "copy": ("POST", "/api/copy", {"source": "x"}, 501, "OpenCode"),
    "delete": ("DELETE", "/api/delete", {"model": "x"}, 501, "OpenCode"),
    "a blob": ("POST", "/api/blobs/sha256:00", b"x", 501, "OpenCode"),
    "an unknown address": ("GET", "/api/nothing", b"", 404, "/api/nothing"),
    "another method": ("GET", "/api/chat", b"", 405, "GET"),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_is_refused_in_ollamas_shape(
    client: Client, opencode: ScriptedOpenCode, method: str, path: str, body: Any, status: int, reason: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.http.request(method, path, content=content)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert reason in answer.json()["error"]
    assert opencode.sessions == {}


def test_half_of_a_surrogate_pair_is_no_reason_to_fail(client: Client, opencode: ScriptedOpenCode) -> None:
    body = rb'{"model": "acme/large", "stream": false, "messages": [{"role": "user", "content": "cut \ud83d"}]}'
    assert client.http.post("/api/chat", content=body).status_code == 200
    assert opencode.said() == "cut \N{REPLACEMENT CHARACTER}"


def test_a_body_that_is_too_large_is_not_read_to_its_end(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_BYTES", 1000)
    answer = client.post("/api/chat", {"model": MODEL, "messages": [user("x" * 2000)]})
    assert answer.status_code == 413
    assert "larger than" in answer.json()["error"]


def test_more_at_once_than_it_can_take_is_refused(client: Client, served: Adapter, opencode: ScriptedOpenCode) -> None:
    served._routes.deliveries._limit = 0
    answer = client.post("/api/chat", {"model": MODEL, "messages": [user("hi")]})
    assert answer.status_code == 503
    assert "server busy" in answer.json()["error"]
    assert opencode.sessions == {}


def test_a_fault_of_ours_is_an_error_without_its_text(
    client: Client, opencode: ScriptedOpenCode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr("daemon.adapter.prompts.system", broken)
    answer = client.post("/api/chat", {"model": MODEL, "messages": [user("hi")], "stream": False})
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["error"]
    assert "secret" not in answer.text
    assert opencode.sessions == {}
    assert "a fault of ours" in caplog.text


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1:11435", "localhost", "LOCALHOST:80", "app.localhost", "[::1]:11435", "127.9.9.9"]
)
def test_this_machines_names_are_let_in(client: Client, host: str) -> None:
    assert client.http.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:11435", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil", "[", "0.0.0.0"],
)
def test_a_name_that_was_made_to_lead_here_is_refused(client: Client, opencode: ScriptedOpenCode, host: str) -> None:
    answer = client.http.post("/api/chat", headers={"host": host}, json={"model": MODEL, "messages": [user("hi")]})
    assert answer.status_code == 403
    assert set(answer.json()) == {"error"}
    assert opencode.requests == []


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1.evil.example", "null", "http://[", "ftp://localhost"]
)
def test_a_page_of_another_site_is_refused(client: Client, opencode: ScriptedOpenCode, origin: str) -> None:
    answer = client.http.post("/api/chat", headers={"origin": origin, "content-type": "text/plain"}, content=b"{}")
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert opencode.requests == []


NAMED = ["http://localhost:3000", "app://*", "http://[::1]:*", "https://nas.home"]


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "app://obsidian.md", "http://[::1]:5173", "HTTPS://nas.home", "http://[::1]:1"]
)
def test_a_page_that_is_named_gets_what_its_browser_wants(opencode: ScriptedOpenCode, origin: str) -> None:
    with adapter(opencode.url, origins=NAMED, token="sesame") as served, Client(served.url) as client:
        asked = client.http.options("/api/chat", headers={"origin": origin, "access-control-request-method": "POST"})
        assert asked.status_code == 204
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "authorization" in asked.headers["access-control-allow-headers"]
        answer = client.http.get("/api/tags", headers={"origin": origin, "authorization": "Bearer sesame"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)


@pytest.mark.parametrize("named", [[], NAMED])
@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3001",
        "http://localhost",
        "https://127.0.0.1",
        "appx://a",
        "http://[::1]:1/x",
        "https://nas.homes",
    ],
)
def test_a_page_that_nobody_named_is_refused_wherever_it_is(
    opencode: ScriptedOpenCode, origin: str, named: list[str]
) -> None:
    with adapter(opencode.url, origins=named) as served, Client(served.url) as client:
        assert client.http.get("/api/tags", headers={"origin": origin}).status_code == 403
        assert client.http.options("/api/chat", headers={"origin": origin}).status_code == 403


def test_other_addresses_accept_any_host_but_only_listed_origins(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url, host="0.0.0.0", origins=["https://nas.home"]) as served, Client(served.url) as client:
        assert not served.is_local
        mine = {"host": "nas.home:11435"}
        assert client.http.get("/", headers=mine).status_code == 200
        assert client.http.get("/", headers=mine | {"origin": "http://nas.home:11435"}).status_code == 403
        assert client.http.get("/", headers=mine | {"origin": "https://nas.home"}).status_code == 200


def test_with_a_star_every_page_may_ask(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url, origins=["*"]) as served, Client(served.url) as client:
        assert client.http.get("/", headers={"origin": "https://any.example"}).status_code == 200


def test_an_address_of_ipv6_is_served_and_written_with_its_brackets(opencode: ScriptedOpenCode) -> None:
    with adapter(opencode.url, host="::1") as served, Client(served.url) as client:
        assert served.url.startswith("http://[::1]:")
        assert client.http.get("/").status_code == 200


LOCAL = ["127.0.0.1", "::1", "[::1]", "::ffff:127.0.0.1", "localhost", "localhost.", "a.localhost"]
OPEN = ["", "::", "0.0.0.0", "192.168.0.2", "127.1", "localhostx", "example.org"]


@pytest.mark.parametrize(("host", "local"), [*((host, True) for host in LOCAL), *((host, False) for host in OPEN)])
def test_loopback_is_known_from_every_other_address(host: str, local: bool) -> None:
    assert is_loopback(host) is local


# -- the command -------------------------------------------------------------------------------------------------------


def command(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "XDG_CONFIG_HOME": str(tmp_path)}
    return subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "adapter", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_address_and_models_and_deletes_its_sessions(
    opencode: ScriptedOpenCode, tmp_path: Path, number: signal.Signals
) -> None:
    with command(tmp_path, "--port", "0", "--opencode", opencode.url) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("listening on http://127.0.0.1:")
        assert lines[1:] == ["  acme/large\n", "  acme/small\n"]
        with Client(lines[0].split()[-1]) as client:
            client.chat([user("hi")])
            assert len(opencode.sessions) == 1
            process.send_signal(number)
            out, errors = process.communicate(timeout=90)
    assert (process.returncode, out, errors) == (0, "stopped\n", "")
    assert opencode.sessions == {}


def test_the_command_ends_while_a_model_is_at_work(opencode: ScriptedOpenCode, tmp_path: Path) -> None:
    opencode.script = [HANG]
    with command(tmp_path, "--port", "0", "--opencode", opencode.url) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().split()[-1].removeprefix("http://").partition(":")
        body = json.dumps({"model": MODEL, "messages": [user("hi")]}).encode()
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(
                f"POST /api/chat HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
            )
            while not opencode.prompts:
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=90)
    assert process.returncode == 0
    assert opencode.sessions == {}


def test_without_opencode_the_command_waits_for_it_and_says_so(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with command(tmp_path, "--port", "0", "--opencode", address) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            url = process.stdout.readline().split()[-1]
            assert "opencode serve" in process.stderr.readline()
            with Client(url) as client:
                assert client.http.get("/api/tags").status_code == 503
                assert client.http.get("/health").json()["status"] == "degraded"
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=90)
    assert process.returncode == 0


def test_an_open_address_is_warned_of(opencode: ScriptedOpenCode, tmp_path: Path) -> None:
    with command(tmp_path, "--host", "0.0.0.0", "--port", "0", "--opencode", opencode.url) as process:
        assert process.stderr is not None
        assert "can be reached from other machines, and asks nobody who he is" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["--opencode", "localhost:4096"], 64, "begins with http://"),
        (["--port", "70000"], 64, "--port"),
        (["--host", "192.0.2.1"], 78, "cannot be listened on"),
        (["--host", "no such host"], 78, "adapter.host"),
        (["--port", "TAKEN"], 78, "choose another with --host or --port"),
    ],
)
def test_an_address_that_cannot_be_had_is_an_exit_code_and_a_reason(
    tmp_path: Path, words: list[str], code: int, reason: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with command(tmp_path, *(word.replace("TAKEN", port) for word in words)) as process:
            _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert reason in errors
    assert "Traceback" not in errors
