"""FakeOpenCode with a script for the adapter's tests, the adapter in front of it, and what its clients send.

Each prompt takes the next line of the script: text, as one piece or several, or what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import msgspec

from daemon.adapter import Adapter
from daemon.config import Config
from tests.support.servers.fake_opencode import FakeOpenCode

HANG = "hang until aborted"
MODEL = "acme/large"
DOWN = {"name": "APIError", "data": {"message": "overloaded", "statusCode": 500}}
ABORTED = {"name": "MessageAbortedError", "data": {"message": "aborted"}}


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
"""A PNG of one transparent pixel, in base64."""


@dataclass
class ScriptedOpenCode(FakeOpenCode):
    """`script`: what the model says, one entry a prompt; a dict is an error, HANG goes on until it is aborted."""

    script: list[str | list[str] | dict[str, Any]] = field(default_factory=list)

    def _play(self, session: str, body: dict[str, Any]) -> None:
        said = self.script.pop(0) if self.script else "There is no more script."
        self.error, self.pieces = None, []
        if said == HANG:
            while not self.closing.wait(0.02):
                if "POST /session/*/abort" in self.requests:
                    break
            self.error = ABORTED
        elif isinstance(said, dict):
            self.error = said
        else:
            self.pieces = [said] if isinstance(said, str) else said
        super()._play(session, body)

    def said(self, number: int = -1) -> str:
        """The text of one prompt."""
        return str(self.prompts[number]["parts"][0]["text"])

    def images(self, number: int = -1) -> list[str]:
        """The addresses of the images of one prompt."""
        return [part["url"] for part in self.prompts[number]["parts"][1:]]

    def system(self, number: int = -1) -> str:
        return str(self.prompts[number]["system"])

    def created(self) -> int:
        return self.requests.count("POST /session")


@contextmanager
def adapter(
    url: str, *, keep_minutes: float = 10, seconds: float = 30, host: str = "127.0.0.1", **more: Any
) -> Iterator[Adapter]:
    """A running adapter in front of the OpenCode server at `url`; `more` are further keys of [adapter]."""
    config = msgspec.convert(
        {
            "opencode": {"server_url": url},
            "adapter": {"host": host, "port": 0, "prompt_seconds": seconds, "session_minutes": keep_minutes, **more},
        },
        Config,
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = Adapter(config)
    try:
        asyncio.run_coroutine_threadsafe(served.start(), loop).result(30)
        yield served
    finally:
        asyncio.run_coroutine_threadsafe(served.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def tool(name: str, *required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "required": list(required), "properties": properties}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


WEATHER = tool("get_weather", "city", city={"type": "string"})
STATUS = tool("get_status")
TOOLS = [WEATHER, STATUS]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(text: str, name: str = "get_weather") -> dict[str, Any]:
    return {"role": "tool", "tool_name": name, "content": text}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


class BreakingOpenCode(ScriptedOpenCode):
    """Fails each answer after its pieces."""

    def _stream(self, session: str, answer: str) -> None:
        super()._stream(session, answer)
        self.error = DOWN


class Client:
    """Plain HTTP to an adapter; use it as a context manager."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=240, trust_env=False, verify=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def chat(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """The whole answer, which must be one."""
        answer = self.post("/api/chat", {"model": MODEL, "messages": messages, "stream": False, **more})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def lines(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The lines of a stream."""
        answer = self.post(path, {"model": MODEL, **body})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in answer.text.splitlines()]

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(path, json=body, headers=headers)
