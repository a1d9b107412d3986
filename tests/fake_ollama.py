"""A stand-in for an Ollama server: real HTTP on 127.0.0.1, the real endpoints, and a switch for each known failure.

It lies in this: vectors are hashed bags of words (texts that share words are near), one character is one token, chat
answers come from a script. Switches are plain attributes and may be changed while it runs. `requests` records every
call as (path, body). It can go down and come up again on the same port.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

DIGEST = "ab12cd34" * 8
NOW = "2026-01-01T00:00:00Z"


def vector(text: str, dims: int) -> list[float]:
    """A unit vector of hashed words; the same words in any order give the same vector."""
    values = [0.0] * dims
    for word in text.lower().split() or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        values[int.from_bytes(digest[:4], "little") % dims] += 1.0 if digest[4] & 1 else -1.0
    values[0] += 0.01
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values]


class FakeOllama:
    """Use as a context manager; `url` is where it listens."""

    def __init__(self, models: dict[str, str] | None = None, dims: int = 64) -> None:
        self.models = {"embedder:latest": DIGEST} if models is None else models
        self.dims = dims
        self.requests: list[tuple[str, Any]] = []
        self.connections: set[socket.socket] = set()
        self.in_flight = 0
        self.most_in_flight = 0
        # Switches, by the row of docs/reliability.md that each stands for.
        self.nan_mark = ""  # O1: a text with this mark fails its whole batch with a 500
        self.nan_unless_suffix = ""  # O1: ... unless the text ends so, as a trivial variant does
        self.context_chars = 0  # O2: a longer text is a 400; 0: no limit
        self.truncate_chat_chars = 0  # O3: the front of a longer conversation is dropped silently
        self.empty_shape: Any = ...  # O4: this in place of the vectors: [], None, or "absent" for {}
        self.vector_shape: Any = ...  # O4: this in place of each single vector
        self.broken = 0  # O6: every embed and chat call answers with this status
        self.broken_path = ""  # ... only for this path, when given
        self.delay_s = 0.0  # O6: a cold start
        self.chat_script: list[Any] = []  # O7, O8: message dicts, or (status, error text), one per chat call
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> Self:
        """Listen; on the same port as before, when it was up before."""
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def down(self) -> None:
        """Stop listening and drop what is open."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None
            for connection in list(self.connections):
                with suppress(OSError):  # the client may have gone first
                    connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, *error: object) -> None:
        self.down()

    def embedded(self) -> list[str]:
        """Every text that was sent to be embedded, in order."""
        return [text for path, body in self.requests if path == "/api/embed" for text in _texts(body)]

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1

    def has(self, model: str) -> bool:
        return model in self.models or f"{model}:latest" in self.models


def _texts(body: Any) -> list[str]:
    given = body.get("input", [])
    return [given] if isinstance(given, str) else list(given)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeOllama
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def setup(self) -> None:
        super().setup()
        self.fake.connections.add(self.connection)

    def finish(self) -> None:
        self.fake.connections.discard(self.connection)
        super().finish()

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.fake.requests.append((self.path, None))
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": NOW,
                "size": 1000,
                "digest": digest,
                "details": {"family": "bert"},
            }
            for name, digest in self.fake.models.items()
        ]
        answers = {
            "/api/version": {"version": "0.33.0"},
            "/api/tags": {"models": models},
            "/api/ps": {"models": models},
        }
        if self.path in answers:
            self.answer(answers[self.path])
        elif self.path == "/":
            self.send(200, b"Ollama is running", "text/plain")
        else:
            self.fail(404, "not found")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        fake = self.fake
        fake.requests.append((self.path, body))
        routes = {"/api/embed": self.embed, "/api/show": self.show, "/api/chat": self.chat, "/api/generate": self.chat}
        with fake.counted():
            if fake.delay_s:
                time.sleep(fake.delay_s)
            if self.path not in routes:
                self.fail(404, "not found")
            elif not fake.has(body.get("model", "")):
                self.fail(404, f'model "{body.get("model")}" not found, try pulling it first')
            elif fake.broken and fake.broken_path in {"", self.path}:
                self.fail(fake.broken, "the model runner has unexpectedly stopped")
            else:
                routes[self.path](body)

    def embed(self, body: Any) -> None:
        fake, texts = self.fake, _texts(body)
        for text in texts:
            saved = fake.nan_unless_suffix and text.endswith(fake.nan_unless_suffix)
            if fake.nan_mark and fake.nan_mark in text and not saved:
                self.fail(500, "failed to encode response: json: unsupported value: NaN")
                return
            if fake.context_chars and len(text) > fake.context_chars:
                self.fail(400, "the input length exceeds the context length")
                return
        vectors: Any = [vector(text, fake.dims) if text.strip() else [] for text in texts]
        if fake.vector_shape is not ...:
            vectors = [fake.vector_shape for _ in texts]
        answer = {"model": body["model"], "embeddings": vectors, "total_duration": 1, "load_duration": 1}
        if fake.empty_shape == "absent":
            del answer["embeddings"]
        elif fake.empty_shape is not ...:
            answer["embeddings"] = fake.empty_shape
        self.answer(answer)

    def show(self, body: Any) -> None:
        info = {"bert.context_length": 2048, "bert.embedding_length": self.fake.dims}
        details = {"family": "bert", "parameter_size": "1M", "quantization_level": "F32"}
        self.answer({"details": details, "model_info": info, "capabilities": ["embedding", "completion", "tools"]})

    def chat(self, body: Any) -> None:
        fake, is_chat = self.fake, self.path == "/api/chat"
        messages = body["messages"] if is_chat else [{"role": "user", "content": body.get("prompt", "")}]
        size = sum(len(message.get("content") or "") for message in messages)
        limit = fake.truncate_chat_chars
        reply = (
            fake.chat_script.pop(0)
            if fake.chat_script
            else {"role": "assistant", "content": f"{len(messages)} messages"}
        )
        if isinstance(reply, tuple):
            self.fail(*reply)
            return
        end = {"model": body["model"], "created_at": NOW, "done": True, "done_reason": "stop", "total_duration": 1}
        end |= {"eval_count": 1, "prompt_eval_count": min(size, limit) if limit else size}
        whole = {"message": reply} if is_chat else {"response": reply.get("content", "")}
        if body.get("stream", True):
            empty = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
            lines = [{"model": body["model"], "created_at": NOW, "done": False, **whole}, {**end, **empty}]
            self.send(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), "application/x-ndjson")
        else:
            self.answer({**end, **whole})

    def answer(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode(), "application/json")

    def fail(self, status: int, reason: str) -> None:
        self.send(status, json.dumps({"error": reason}).encode(), "application/json")

    def send(self, status: int, data: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting: that is what a timeout test wants
