"""A stand-in for an Ollama server: real HTTP on 127.0.0.1, the real endpoints, and a switch for each known failure.

It lies in this: vectors are hashed bags of words (texts that share words are near), limits are in characters, a token
of a chat is a word, three digits or two marks (`tokens`), and what it says in a chat comes from a script. Switches are
plain attributes and may be changed while it runs; the table of them, by the row of docs/reliability.md that each stands
for, is in `FakeOllama`. It can go down and come up again on the same port. As Ollama does, it refuses `tools` and
`think` where the model's capabilities lack them, and a `keep_alive` that is neither a number nor a duration.

A script of chats is a list of replies, used up one by one, or one callable that is given each request's body, as the
model sees it (so without what `truncate_chat_chars` cut off), and returns a reply. A reply is

* a text: the assistant says it;
* a dict: the assistant's message (content, thinking, tool_calls), of any shape, good or bad;
* (status, error text): the whole request fails with that status;
* a `Turn`, for everything else;
* a callable: given the body, it returns one of these; what it raises is said in a 500.

With the list used up (or None), it says how many messages it was shown.
"""

from __future__ import annotations

import itertools
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from typing import Any, Self

from daemon.embed.calibration import PAIRS
from tests.support.servers.fake_ollama_http import NOW, Handler, Turn, inputs, tokens, vector

__all__ = ["DIGEST", "NOW", "FakeOllama", "Turn", "call", "tokens", "vector"]

DIGEST = "ab12cd34" * 8
_CALIBRATING = tuple(itertools.chain(*PAIRS))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An assistant's message that is one tool call."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
    }


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that was killed
            super().handle_error(request, client_address)


class FakeOllama:
    """Use as a context manager; `url` is where it listens.

    `models` maps names to digests. `capabilities` and `context_lengths` say what a model can do and read, where that
    is not the default. `requests` records every call as (path, body), `count` counts them, `chats` are the bodies of
    /api/chat.
    """

    def __init__(self, models: dict[str, str] | None = None, dims: int = 64) -> None:
        self.models = {"embedder:latest": DIGEST} if models is None else models
        self.dims = dims
        self.capabilities: dict[str, list[str] | None] = {}  # None: a server too old to tell
        self.context_lengths: dict[str, int] = {}
        self.requests: list[tuple[str, Any]] = []
        self.connections: set[socket.socket] = set()
        self.loaded: set[str] = set()
        self.in_flight = 0
        self.most_in_flight = 0
        # Switches, by the row of docs/reliability.md that each stands for.
        self.nan_mark = ""  # O1: a text with this mark fails its whole batch with a 500
        self.nan_unless_suffix = ""  # O1: ... unless the text ends so, as a trivial variant does
        self.context_chars = 0  # O2: a longer text is a 400; 0: no limit
        self.truncate_chat_chars = 0  # O3: the front of a longer conversation is dropped silently
        self.honours_truncate = False  # O3: ... unless the request forbids it, as since 0.12.6: a 400 then
        self.counts_only_uncached = False  # O3: prompt_eval_count leaves out what an earlier prompt began with (0.30.0)
        self.empty_shape: Any = ...  # O4: this in place of the vectors: [], None, or "absent" for {}
        self.vector_shape: Any = ...  # O4: this in place of each single vector
        self.broken = 0  # O6: every embed and chat call answers with this status
        self.broken_path = ""  # ... only for this path, when given; any path then, /api/tags and /api/show too
        self.broken_reason = "the model runner has unexpectedly stopped"
        self.delay_s = 0.0  # O6: a cold start: every embed, show and chat call begins so late
        self.trickle_s = 0.0  # O6: a chat's reply comes byte by byte, with this pause between two
        self.trickle_head = False  # O6: ... and so do the status and the headers
        self.refuses_tools = False  # O7: 400 for a request with tools, whatever /api/show says the model can do
        self.chat_script: list[Any] | Callable[[Any], Any] | None = []  # O7, O8: see above
        self._prompts: list[str] = []
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def count(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(path for path, _ in self.requests)

    @property
    def chats(self) -> list[Any]:
        """The bodies of every /api/chat, in order."""
        return [body for path, body in self.requests if path == "/api/chat"]

    def up(self) -> Self:
        """Listen; on the same port as before, when it was up before."""
        handler = type("Handler", (Handler,), {"fake": self})
        self._server = _Server(("127.0.0.1", self._port), handler)
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
        """Every text that was sent to be embedded, in order, besides those that models are calibrated with."""
        sent = (text for path, body in self.requests if path == "/api/embed" for text in inputs(body))
        return [text for text in sent if not text.endswith(_CALIBRATING)]

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

    def can(self, model: str) -> list[str] | None:
        """The model's capabilities, as /api/show tells them."""
        default: list[str] | None = ["embedding", "completion", "tools"]
        return self.capabilities.get(model, self.capabilities.get(f"{model}:latest", default))

    def length(self, model: str) -> int:
        return self.context_lengths.get(model, self.context_lengths.get(f"{model}:latest", 131_072))

    def next_turn(self, body: Any) -> Turn | tuple[int, str]:
        """What the script says to this body."""
        with self._lock:
            script = self.chat_script
            reply: Any = script.pop(0) if isinstance(script, list) and script else script or None
        try:
            while callable(reply):
                reply = reply(body)
        except Exception as error:  # a thread of the server's: said where the test will see it
            reply = (500, f"the script failed: {type(error).__name__}: {error}")
        if reply is None:
            reply = f"{len(body['messages'])} messages"
        if isinstance(reply, str):
            reply = {"role": "assistant", "content": reply}
        return reply if isinstance(reply, Turn | tuple) else Turn(reply)

    def evaluated(self, prompt: str) -> int:
        """The tokens of a prompt that count, with `counts_only_uncached` without what an earlier one began with."""
        cached = 0
        if self.counts_only_uncached:
            for old in self._prompts:
                same = next((n for n, (a, b) in enumerate(zip(old, prompt, strict=False)) if a != b), None)
                cached = max(cached, tokens(prompt[: min(len(old), len(prompt)) if same is None else same]))
        self._prompts.append(prompt)
        return tokens(prompt) - cached
