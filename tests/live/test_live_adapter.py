"""The adapter in front of a real OpenCode: Ollama's and OpenAI's own clients, unchanged, talk through it.

The model behind OpenCode is scripted and counts what it is asked; everything between it and the clients is real: the
adapter is the command, in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import ollama
import openai
import pytest

from tests.live.fetched import NotAvailableError, cache_dir, fetched, npm_install
from tests.live.opencode import MODEL, PROVIDER, OpenCode
from tests.live.scripted_model import ScriptedModel, Step
from tests.support.processes.daemon_process import CHECKOUT, until
from tests.support.servers.adapter_opencode import PIXEL

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

NAME = f"{PROVIDER}/{MODEL}"
CLIENT_VERSION = "0.6.4"
QUESTION = "What is the weather in Oslo, zqfjord"
IN_A_WORD = f"{QUESTION} in a word"
RESULT = "snow, -3 °C"
CALL = {"action": "tool_call", "tool_name": "get_weather", "arguments": {"city": "Oslo"}}
SLOW = "One word at a time, "
ANSWER = "It snows in Oslo, at -3 °C."


@dataclass
class Counting(ScriptedModel):
    """Keeps the messages of every request that is not for a title."""

    asked: list[list[dict[str, Any]]] = field(default_factory=list)

    def step(self, messages: list[dict[str, Any]]) -> Step:
        self.asked.append(messages)
        return super().step(messages)

    def deltas(self, step: Step) -> Iterator[dict[str, Any]]:
        for delta in super().deltas(step):
            time.sleep(1 if step.text.startswith(SLOW) else 0)
            yield delta


@pytest.fixture(scope="module")
def model() -> Iterator[Counting]:
    with Counting(lead_s=0.05) as server:
        server.add(
            QUESTION,
            [
                Step(text=f"```json\n{json.dumps(CALL)}\n```"),
                Step(text=json.dumps({"action": "answer", "content": ANSWER})),
            ],
        )
        server.add(IN_A_WORD, [Step(text="Snow.", reasoning="short")])
        yield server


@pytest.fixture(scope="module")
def client_package() -> Path:
    """npm's package ollama, downloaded on first use into the cache of the tests; skips as the other live tests do."""
    home = cache_dir() / "ollama-js" / CLIENT_VERSION
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm or node is not installed, so Ollama's JavaScript client cannot be had")
    try:
        fetched(home, lambda prefix: npm_install(npm, f"ollama@{CLIENT_VERSION}", prefix))
    except NotAvailableError as reason:
        pytest.skip(str(reason))
    return home / "node_modules" / "ollama" / "dist" / "index.mjs"


@contextmanager
def adapter(root: Path, opencode_url: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The command in a process of its own: (process, its address, the first model that it offers)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECONSTITUTE", "OPENCODE"))}
    places = {f"XDG_{kind}_HOME": str(root / kind) for kind in ("CONFIG", "DATA", "CACHE")}
    process = subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "adapter", "--port", "0", "--opencode", opencode_url],
        env={**kept, **places, "HOME": str(root), "PYTHONPATH": str(CHECKOUT)},
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first, offered = process.stdout.readline(), process.stdout.readline()
        assert first.startswith("listening on http://127.0.0.1:"), process.communicate(timeout=240)
        yield process, first.split()[-1], offered.strip()
    finally:
        process.kill()
        process.communicate(timeout=240)


@dataclass
class Running:
    """A real OpenCode, the adapter's process in front of it, and the model behind."""

    opencode: OpenCode
    model: Counting
    root: Path
    process: subprocess.Popen[str]
    url: str
    offered: str

    def sessions(self) -> list[str]:
        """Titles of the sessions that OpenCode has in the adapter's folder."""
        folder = self.root / "CACHE" / "reconstitute" / "opencode"
        return [session["title"] for session in self.opencode._call("GET", "/session", str(folder))]

    def waiting(self) -> int:
        return int(httpx.get(f"{self.url}/health", trust_env=False, verify=False).json()["sessions"]["waiting"])


@pytest.fixture(scope="module")
def running(binary: Path, model: Counting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("live-adapter")
    with (
        OpenCode(binary, root / "oc", model.url, takes_images=True) as opencode,
        adapter(root, str(opencode._http.base_url)) as (process, url, offered),
    ):
        yield Running(opencode, model, root, process, url, offered)


@pytest.fixture
def client(running: Running) -> Iterator[ollama.Client]:
    with ollama.Client(host=running.url) as official:
        yield official


@pytest.fixture
def ai(running: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as official:
        yield official


def get_weather(city: str) -> str:
    """The weather now.

    Args:
        city: which
    """
    return f"{RESULT} in {city}"


def test_it_says_which_models_it_offers(running: Running, client: ollama.Client) -> None:
    assert running.offered == NAME
    assert [entry.model for entry in client.list().models] == [NAME]
    shown = client.show(f"{NAME}:latest")
    assert shown.capabilities == ["completion", "tools", "vision"]
    assert shown.modelinfo == {
        "general.architecture": PROVIDER,
        "general.basename": "Scripted",
        f"{PROVIDER}.context_length": 2_000_000,
    }


@pytest.mark.parametrize("stream", [False, True])
def test_the_python_client_holds_a_tool_calling_conversation(
    running: Running, client: ollama.Client, stream: bool
) -> None:
    before = len(running.model.asked)

    def turn(messages: list[Any]) -> ollama.Message:
        if not stream:
            return client.chat(NAME, messages, tools=[get_weather]).message
        content, calls, last = "", list[Any](), None
        for last in client.chat(NAME, messages, tools=[get_weather], stream=True):
            content += last.message.content or ""
            calls += last.message.tool_calls or []
        assert last is not None
        assert (last.done, last.done_reason) == (True, "stop")
        assert last.eval_count
        return ollama.Message(role="assistant", content=content, tool_calls=calls or None)

    messages: list[Any] = [{"role": "user", "content": f"{QUESTION} ({stream})?"}]
    asked = turn(messages)
    assert asked.tool_calls is not None
    assert [(call.function.name, call.function.arguments) for call in asked.tool_calls] == [
        ("get_weather", {"city": "Oslo"})
    ]
    assert len(running.model.asked) == before + 1
    given = get_weather(**asked.tool_calls[0].function.arguments)
    messages += [asked, {"role": "tool", "tool_name": "get_weather", "content": given}]
    waiting = running.waiting()
    answered = turn(messages)
    assert answered.content == ANSWER
    assert not answered.tool_calls
    # One model call, in the session that knew the first turn: its messages are there as they were said.
    assert len(running.model.asked) == before + 2
    assert running.waiting() == waiting == len(running.sessions())
    told = running.model.asked[-1]
    assert [m["role"] for m in told if m["role"] != "system"] == ["user", "assistant", "user"]
    assert RESULT in json.dumps(told[-1], ensure_ascii=False)
    assert not any("tools" in message for message in told)


@pytest.mark.parametrize("stream", [False, True])
def test_the_javascript_client_holds_a_tool_calling_conversation(
    running: Running, client_package: Path, stream: bool
) -> None:
    before = len(running.model.asked)
    script = Path(__file__).with_name("adapter_client.mjs")
    arguments = [str(client_package), running.url, NAME, f"{QUESTION} js {stream}?", "true" if stream else "false"]
    done = subprocess.run(["node", str(script), *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert [call["function"] for call in seen["asked"]["tool_calls"]] == [
        {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ]
    assert seen["answered"]["content"] == ANSWER
    assert seen["listed"] == [NAME]
    assert seen["shown"] == ["completion", "tools", "vision"]
    assert seen["missing"] == "model 'nobody/nothing' not found"
    assert len(running.model.asked) == before + 3


@pytest.mark.parametrize("stream", [False, True])
def test_openais_client_holds_a_tool_calling_conversation(running: Running, ai: openai.OpenAI, stream: bool) -> None:
    before = len(running.model.asked)
    parameters = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
    messages: list[Any] = [{"role": "user", "content": f"{QUESTION} (v1 {stream})?"}]

    def turn() -> Any:
        if not stream:
            return ai.chat.completions.create(model=NAME, messages=messages, tools=tools)
        usage = {"include_usage": True}
        with ai.chat.completions.stream(model=NAME, messages=messages, tools=tools, stream_options=usage) as coming:
            return coming.get_final_completion()

    asked = turn().choices[0]
    assert asked.finish_reason == "tool_calls"
    call = asked.message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Oslo"})
    function = {"name": call.function.name, "arguments": call.function.arguments}
    messages += [
        {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call.id, "content": get_weather("Oslo")},
    ]
    answered = turn()
    assert (answered.choices[0].message.content, answered.choices[0].finish_reason) == (ANSWER, "stop")
    assert answered.usage.prompt_tokens == 100
    assert len(running.model.asked) == before + 2
    assert RESULT in json.dumps(running.model.asked[-1][-1], ensure_ascii=False)


def test_an_image_reaches_the_model(running: Running, client: ollama.Client, ai: openai.OpenAI) -> None:
    running.model.add("zqpixel", [Step(text="A pixel.")])
    url = f"data:image/png;base64,{PIXEL}"
    content: Any = [{"type": "text", "text": "See zqpixel?"}, {"type": "image_url", "image_url": {"url": url}}]
    said = ai.chat.completions.create(model=NAME, messages=[{"role": "user", "content": content}])
    assert said.choices[0].message.content == "A pixel."
    assert url in json.dumps(running.model.asked[-1])
    shown = client.chat(NAME, [{"role": "user", "content": "And this zqpixel?", "images": [PIXEL]}])
    assert shown.message.content == "A pixel."
    assert url in json.dumps(running.model.asked[-1])


def test_openais_client_lists_models_and_gets_its_errors(ai: openai.OpenAI) -> None:
    assert [entry.id for entry in ai.models.list()] == [NAME]
    assert ai.models.retrieve(NAME).owned_by == PROVIDER
    with pytest.raises(openai.NotFoundError, match="model 'nobody/nothing' not found"):
        ai.chat.completions.create(model="nobody/nothing", messages=[{"role": "user", "content": "hi"}])


def test_the_python_client_generates_streams_and_gets_its_errors(client: ollama.Client) -> None:
    assert client.generate(NAME, IN_A_WORD).response == "Snow."
    pieces = [part.response for part in client.generate(NAME, IN_A_WORD, stream=True)]
    assert "".join(pieces) == "Snow."
    with pytest.raises(ollama.ResponseError, match="not found") as missing:
        client.chat("nobody/nothing", [{"role": "user", "content": "hi"}])
    assert missing.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="does not support embeddings") as refused:
        client.embed(NAME, "some text")
    assert refused.value.status_code == 501
    assert [entry.model for entry in client.ps().models] == [NAME]


def test_a_long_text_streams_in_pieces(running: Running, client: ollama.Client) -> None:
    text = "One piece comes after the other, and so on. " * 40
    running.model.add("zqstory", [Step(text=text)])
    messages = [{"role": "user", "content": "Tell me the zqstory."}]
    pieces = [part.message.content for part in client.chat(NAME, messages, stream=True)]
    assert "".join(piece or "" for piece in pieces).strip() == text.strip()
    assert len(pieces) > 5


@pytest.mark.parametrize("mark", ["zqearly", "zqlate"])
def test_a_client_that_hangs_up_leaves_no_session(running: Running, mark: str) -> None:
    before = running.sessions()
    running.model.add(mark, [Step(text=SLOW * 100)])
    body = {"model": NAME, "messages": [{"role": "user", "content": f"Tell me of {mark}."}]}
    asked = len(running.model.asked)
    with httpx.Client(base_url=running.url, timeout=240, trust_env=False, verify=False) as plain:
        if mark == "zqlate":
            with plain.stream("POST", "/api/chat", json=body) as answer:
                assert json.loads(next(answer.iter_lines()))["message"]["content"].startswith("One")
        else:
            with pytest.raises(httpx.ReadTimeout):
                plain.post("/api/chat", json=body | {"stream": False}, timeout=3)
    until(lambda: running.sessions() == before, what="the session's deletion")
    assert len(running.model.asked) == asked + 1


def test_clients_that_ask_at_once_get_each_their_own_answer(running: Running) -> None:
    marks = [f"zqcrowd{letter}" for letter in "abcdef"]
    for mark in marks:
        running.model.add(mark, [Step(text=f"First of {mark}."), Step(text=f"Second of {mark}.")])

    def converse(mark: str) -> list[str | None]:
        with ollama.Client(host=running.url) as client:
            messages: list[Any] = [{"role": "user", "content": f"Tell me of {mark}."}]
            messages.append(client.chat(NAME, messages).message)
            second = client.chat(NAME, [*messages, {"role": "user", "content": "Go on."}]).message
            return [messages[-1].content, second.content]

    asked = len(running.model.asked)
    with ThreadPoolExecutor(len(marks)) as pool:
        said = list(pool.map(converse, marks))
    assert said == [[f"First of {mark}.", f"Second of {mark}."] for mark in marks]
    assert len(running.model.asked) == asked + 2 * len(marks)


def test_what_a_killed_adapter_left_is_deleted_by_the_next(running: Running) -> None:
    before = len(running.sessions())
    opencode_url = str(running.opencode._http.base_url)
    with adapter(running.root, opencode_url) as (process, url, _), ollama.Client(host=url) as client:
        assert client.chat(NAME, [{"role": "user", "content": IN_A_WORD}]).message.content == "Snow."
        assert len(running.sessions()) == before + 1
        process.kill()
        process.wait(timeout=240)
    assert len(running.sessions()) == before + 1
    with adapter(running.root, opencode_url):
        until(lambda: len(running.sessions()) == before, what="the session's deletion")


def test_ctrl_c_ends_it_cleanly_with_every_session_deleted(running: Running, tmp_path: Path) -> None:
    """An adapter of its own: the others go on with theirs."""
    with adapter(tmp_path, str(running.opencode._http.base_url)) as (process, url, offered):
        own = replace(running, root=tmp_path, process=process, url=url, offered=offered)
        with ollama.Client(host=url) as client:
            client.chat(NAME, [{"role": "user", "content": IN_A_WORD}])
        assert own.sessions()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0
        assert output == "stopped\n"
        assert errors == ""
        assert own.sessions() == []


def test_an_opencode_that_ends_in_the_middle_of_a_stream_is_an_error(
    binary: Path, model: Counting, tmp_path: Path
) -> None:
    """In both APIs the client raises it, and the text is what the model wrote."""
    model.add("zqbreak", [Step(text=SLOW * 100)])
    texts: list[list[str]] = [[], []]
    messages: Any = [{"role": "user", "content": "Tell me of zqbreak."}]

    def listen_by_ollama(url: str) -> None:
        with ollama.Client(host=url) as client, pytest.raises(ollama.ResponseError, match="could not answer"):
            texts[0].extend(part.message.content or "" for part in client.chat(NAME, messages, stream=True))

    def listen_by_openai(url: str) -> None:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as ai:
            stream = ai.chat.completions.create(model=NAME, messages=messages, stream=True)
            with pytest.raises(openai.APIError, match="could not answer"):
                texts[1].extend(chunk.choices[0].delta.content or "" for chunk in stream)

    with (
        OpenCode(binary, tmp_path / "oc", model.url) as opencode,
        adapter(tmp_path, str(opencode._http.base_url)) as (_, url, _),
        ThreadPoolExecutor(2) as pool,
    ):
        listeners = [pool.submit(listen, url) for listen in (listen_by_ollama, listen_by_openai)]
        until(lambda: all(texts), what="the first words")
        opencode.kill()
        for listener in listeners:
            listener.result(240)
    for pieces in texts:
        assert (SLOW * 100).startswith("".join(pieces))
