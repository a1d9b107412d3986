"""A stand-in for the language model: an OpenAI-compatible chat-completions server with a fixed script.

It keeps no state. The last user message that holds a scripted prompt selects the script, the number of assistant
messages after it selects the step, so any number of sessions may run at once and a retried request gets the same answer.
Title requests are answered too. It listens on loopback, on a port the system chooses, in threads of this process.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "scripted"
LAST_STEP_TEXT = "There is nothing more to do."
TITLE = "A scripted session"


@dataclass(frozen=True)
class Call:
    """One tool call of a step."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What the model says in one answer: reasoning first, then text, then its tool calls."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    prompt_tokens: int = 100
    """How long it says that the conversation was."""


@dataclass
class ScriptedModel:
    """The server; use it as a context manager.

    `lead_s` is the pause after the first chunk. Below about 0.35 s a tool runs before OpenCode has taken the snapshot
    that should precede it, which no real model is fast enough to provoke. `chunk` characters go out every `pause_s`.
    """

    lead_s: float = 0.4
    pause_s: float = 0.005
    chunk: int = 16
    scripts: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._serial = itertools.count(1)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def add(self, prompt: str, steps: Sequence[Step]) -> None:
        """Answer a user message that contains `prompt` with these steps, one per request."""
        self.scripts[prompt] = tuple(steps)

    def step(self, messages: list[dict[str, Any]]) -> Step:
        """The answer to a conversation, from its text alone."""
        for position in range(len(messages) - 1, -1, -1):
            if messages[position].get("role") != "user":
                continue
            said = _text(messages[position])
            known = [prompt for prompt in list(self.scripts) if prompt in said]
            if known:
                steps = self.scripts[max(known, key=len)]
                number = sum(message.get("role") == "assistant" for message in messages[position + 1 :])
                return steps[number] if number < len(steps) else Step(text=LAST_STEP_TEXT)
        return Step(text=LAST_STEP_TEXT)

    def deltas(self, step: Step) -> Iterator[dict[str, Any]]:
        """The streamed pieces of one step, as the protocol's ``delta`` objects."""
        for piece in self._pieces(step.reasoning):
            yield {"reasoning_content": piece}
        for piece in self._pieces(step.text):
            yield {"content": piece}
        for index, call in enumerate(step.calls):
            name = {"name": call.tool, "arguments": ""}
            yield {
                "tool_calls": [
                    {"index": index, "id": f"call_{next(self._serial)}", "type": "function", "function": name}
                ]
            }
            for piece in self._pieces(json.dumps(call.arguments)):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _pieces(self, text: str) -> Iterator[str]:
        # A long text in small chunks would take minutes; forty chunks show streaming as well as a thousand do.
        size = max(self.chunk, len(text) // 40)
        return (text[start : start + size] for start in range(0, len(text), size))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


class _Server(ThreadingHTTPServer):
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Be quiet: a request for every step is nothing to report."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        system = "\n".join(_text(m) for m in body["messages"] if m.get("role") == "system").lower()
        is_title = not body.get("tools") and "title generator" in system
        step = Step(text=TITLE) if is_title else self.server.model.step(body["messages"])
        try:
            if body.get("stream"):
                self._stream(step, lead_s=0 if is_title else self.server.model.lead_s)
            else:
                self._whole(step)
        except (BrokenPipeError, ConnectionResetError):
            pass  # OpenCode was killed or aborted the turn; both are the tests' doing

    def _whole(self, step: Step) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": step.text}, "finish_reason": "stop"}
        body = json.dumps({**_envelope("chat.completion"), "choices": [choice], "usage": _usage(step)}).encode()
        self._head("application/json", {"content-length": str(len(body))})
        self.wfile.write(body)

    def _stream(self, step: Step, lead_s: float) -> None:
        self._head("text/event-stream", {"connection": "close"})
        self._send({"role": "assistant", "content": ""})
        time.sleep(lead_s)
        for delta in self.server.model.deltas(step):
            self._send(delta)
            time.sleep(self.server.model.pause_s)
        self._send({}, finish="tool_calls" if step.calls else "stop")
        self._event({**_envelope("chat.completion.chunk"), "choices": [], "usage": _usage(step)})
        self.wfile.write(b"data: [DONE]\n\n")

    def _head(self, kind: str, more: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {"content-type": kind, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._event({**_envelope("chat.completion.chunk"), "choices": [choice]})

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": int(time.time()), "model": MODEL}


def _usage(step: Step) -> dict[str, int]:
    said = 1 + (len(step.text) + len(step.reasoning)) // 4
    read = step.prompt_tokens
    return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}
