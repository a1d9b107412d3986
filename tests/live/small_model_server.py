"""A real small model behind Ollama's HTTP API; run as a process of its own with the model's packages on its path.

``python small_model_server.py MODEL.gguf MOST_TOKENS FORM.json`` prints its address when the model is loaded, and ends
when its standard input does, so it cannot outlive the tests. It says of itself what is so: a model that completes text
and has no tools, with the context length that it was made for. A prompt longer than `num_ctx` is refused, as servers
since 0.12.6 do that are told not to truncate; counts are the runtime's own, of the whole prompt. It answers only
streaming requests. A reply has at most MOST_TOKENS tokens, whatever is asked for: a small model that has lost its
thread would go on to the end of the context, for minutes on a slow processor. For the same reason the model is given
only the end of a long message: reading all of it takes up to a minute, and so small a model does not follow it anyway.

The model is there under two names. As FORMED it is held to the JSON schema in FORM.json while it speaks, as Ollama's
`format` does: so small a model never finds a form by itself, and what is behind the form would not be reached.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME = "smollm2:135m"
FORMED = "smollm2-formed:135m"
DEFAULT_CTX = 4096
READ_CHARACTERS = 800
"""Of each message, from its end."""
NOW = "2026-01-01T00:00:00Z"


class RefusedError(Exception):
    """An answer of Ollama's other than a reply: status and error text."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Small:
    """The model in its runtime, which has an HTTP API of its own (OpenAI's); asked over that."""

    gguf: Path
    most: int
    form: Any
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    chats: int = 0

    def __post_init__(self) -> None:
        runtime: Any = importlib.import_module("xllamacpp")
        parameters = runtime.CommonParams()
        parameters.model.path = str(self.gguf)
        parameters.n_ctx, parameters.n_parallel, parameters.port, parameters.warmup = 8192, 1, 0, False
        # One thread: several wait for one another in busy loops, and beside other work all but stand still.
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        # Without flash attention a token after a long prompt takes half as long on a processor.
        parameters.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._runtime = runtime.Server(parameters)
        self._address = urlsplit(self._runtime.listening_address)
        with closing(self._connection()) as connection:
            connection.request("GET", "/v1/models")
            about = json.load(connection.getresponse())["data"][0]["meta"]
        self.context_length: int = about["n_ctx_train"]
        self.digest = hashlib.sha256(self.gguf.read_bytes()).hexdigest()

    def chat(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The lines of one reply."""
        self.chats = next(self.count)
        options = body.get("options") or {}
        context = min(options.get("num_ctx") or DEFAULT_CTX, self.context_length)
        prompt_tokens = self._tokens(body["messages"])
        room = context - prompt_tokens
        if room < 1:
            raise RefusedError(400, f"prompt too long; exceeded max context length by {1 - room} tokens")
        asked = options.get("num_predict") or -1
        request = {
            "messages": [each | {"content": each["content"][-READ_CHARACTERS:]} for each in body["messages"]],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": options.get("temperature", 0.8),
            "seed": options.get("seed", 0),
            "max_tokens": min(asked if asked > 0 else room, room, self.most),
        }
        if body["model"] == FORMED:
            # A small model likes to write blanks between the tokens of JSON: a third of its reply.
            form = self.form | {"x-guidance": {"whitespace_flexible": False}}
            request["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps(form)}"
        return self._lines(body["model"], request, prompt_tokens)

    def _lines(self, name: str, request: dict[str, Any], prompt_tokens: int) -> Iterator[dict[str, Any]]:
        line = {"model": name, "created_at": NOW, "done": False}
        reason, usage = "stop", dict[str, Any]()
        # Whoever stops reading closes this, which hangs up, and the runtime stops.
        with closing(self._connection()) as connection:
            for chunk in _events(self._asked(connection, "/v1/chat/completions", request)):
                usage = chunk.get("usage") or usage
                for choice in chunk["choices"]:
                    reason = choice["finish_reason"] or reason
                    if text := choice["delta"].get("content"):
                        yield line | {"message": {"role": "assistant", "content": text}}
        end = {"done": True, "done_reason": reason, "message": {"role": "assistant", "content": ""}}
        yield line | end | {"prompt_eval_count": prompt_tokens, "eval_count": usage["completion_tokens"]}

    def _tokens(self, messages: list[dict[str, Any]]) -> int:
        """How many the prompt is, template included."""
        prompt = self._post("/apply-template", {"messages": messages})["prompt"]
        return len(self._post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with closing(self._connection()) as connection:
            answer: dict[str, Any] = json.load(self._asked(connection, path, body))
        return answer

    def _asked(self, connection: HTTPConnection, path: str, body: dict[str, Any]) -> HTTPResponse:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RefusedError(500, f"the runtime answers {response.status} to {path}: {response.read(500)!r}")
        return response

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(str(self._address.hostname), self._address.port, timeout=600)


def _events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The objects of a stream of server-sent events."""
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


class Handler(BaseHTTPRequestHandler):
    """Ollama's paths, and /count: how many chats were asked for."""

    small: Small

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        about = {"modified_at": NOW, "size": 1, "digest": self.small.digest, "details": {"family": "llama"}}
        answers: dict[str, dict[str, Any]] = {
            "/api/version": {"version": "0.33.0"},
            "/api/tags": {"models": [{"name": name, "model": name} | about for name in (NAME, FORMED)]},
            "/count": {"chats": self.small.chats},
        }
        if self.path in answers:
            self._send(200, [answers[self.path]])
        else:
            self._send(404, [{"error": "not found"}])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            lines = iter(self._answer(body))
            first = next(lines)
        except RefusedError as refusal:
            self._send(refusal.status, [{"error": str(refusal)}])
        else:
            self._send(200, itertools.chain([first], lines))

    def _answer(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if body.get("model") not in {NAME, FORMED}:
            raise RefusedError(404, f"model {body.get('model')!r} not found, try pulling it first")
        if self.path == "/api/show":
            info = {"general.architecture": "llama", "llama.context_length": self.small.context_length}
            return iter([{"details": {"family": "llama"}, "model_info": info, "capabilities": ["completion"]}])
        if self.path != "/api/chat" or body.get("stream") is False:
            raise RefusedError(404, "this server has /api/chat with stream, /api/show, /api/tags and /api/version")
        for name in ("tools", "think"):
            if body.get(name):
                raise RefusedError(400, f"{NAME} does not support {'thinking' if name == 'think' else name}")
        return self.small.chat(body)

    def _send(self, status: int, lines: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-ndjson" if self.path == "/api/chat" else "application/json")
        self.end_headers()
        try:
            for line in lines:
                self.wfile.write(json.dumps(line).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # who asked has hung up


def main(gguf: str, most: str, form: str) -> None:
    Handler.small = Small(Path(gguf), int(most), json.loads(Path(form).read_text()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
