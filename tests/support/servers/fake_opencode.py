"""An OpenCode server for the failures that a real one does not show on demand; tests/live proves the rest with real ones.

It speaks the routes that our client uses, over real HTTP on loopback: sessions, prompts that are answered in a thread of
their own, the stream of events in either generation's form. Each failure is an attribute, and may be set at any time.
"""

from __future__ import annotations

import base64
import itertools
import json
import queue
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
MODELS = {"large": 200_000, "small": 8_000}


@dataclass
class FakeOpenCode:
    """The server; use it as a context manager.

    `pieces` is the answer's text as it streams; `generation` the form of its events. `fail` maps "METHOD /path" (ids as
    ``*``) to the status it is answered with, `hang` to the seconds it waits first, `garbage` to the body it gives.
    """

    pieces: list[str] = field(default_factory=lambda: ["Good ", "day."])
    generation: str = "1.18"
    version: str = "1.18.33"
    default_model: str | None = "acme/large"
    agents: list[str] = field(default_factory=lambda: ["build", "reconstitute-model"])
    password: str = ""
    tokens: Json = field(default_factory=lambda: {"input": 90, "output": 7, "reasoning": 3, "cache": {"read": 10}})
    error: Json | None = None  # recorded in the answer, and told as an event
    error_recorded: bool = True
    late_record_s: float = 0.0  # idle is told so long before the answer is recorded
    finish: str = "stop"
    more_parts: list[Json] = field(default_factory=list)
    retries: list[Json] = field(default_factory=list)  # told before anything else; the last one stands
    think_s: float = 0.0  # busy without a word for so long
    tell: bool = True  # events of the turn; without them only asking helps
    hang_up_after: int | None = None  # events of a stream, then its connection closes
    fail: dict[str, int] = field(default_factory=dict)
    hang: dict[str, float] = field(default_factory=dict)
    garbage: dict[str, bytes] = field(default_factory=dict)
    sessions: dict[str, Json] = field(default_factory=dict)
    messages: dict[str, list[Json]] = field(default_factory=dict)
    status: dict[str, Json] = field(default_factory=dict)
    prompts: list[Json] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    listeners: list[queue.Queue[Json]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._serial = itertools.count(1)
        self._turns: list[threading.Thread] = []
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        for turn in self._turns:
            turn.join()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_session(self, title: str, updated: int) -> str:
        """One that is there already."""
        id_ = f"ses_{next(self._serial)}"
        self.sessions[id_] = {"id": id_, "title": title, "time": {"created": updated, "updated": updated}}
        self.messages[id_] = []
        return id_

    def begin(self, session: str, body: Json) -> None:
        self.prompts.append(body)
        turn = threading.Thread(target=self._play, args=(session, body))
        self._turns.append(turn)
        turn.start()

    def _play(self, session: str, body: Json) -> None:
        number = next(self._serial)
        prompt = {"id": f"msg_{number}", "sessionID": session, "role": "user"}
        self.messages[session].append({"info": prompt, "parts": [{"id": f"prt_{number}", **body["parts"][0]}]})
        self.tell_of("message.updated", sessionID=session, info=prompt)
        self.tell_of(
            "message.part.updated", part={"id": "p", "sessionID": session, "messageID": f"msg_{number}", "type": "text"}
        )
        self._set(session, {"type": "busy"})
        for retry in self.retries:
            self._set(session, retry)
            if self.closing.wait(0.05):
                return
        if self.retries:
            self.closing.wait()
            return
        self.closing.wait(self.think_s)
        answer = {"id": f"msg_{number}a", "sessionID": session, "role": "assistant", "parentID": f"msg_{number}"}
        self.tell_of("message.updated", sessionID=session, info=answer)
        self._stream(session, answer["id"])
        end: dict[str, Any] = {"time": {"created": 1, "completed": 2}, "finish": self.finish, "tokens": self.tokens}
        if self.error is not None:
            end = {"time": {"created": 1}} | ({"error": self.error} if self.error_recorded else {})
            self.tell_of("session.error", sessionID=session, error=self.error)
        part = {"id": f"prt_{number}a", "type": "text", "text": "".join(self.pieces)}
        record = {"info": answer | end, "parts": [*self.more_parts, *([part] if self.pieces else [])]}
        if self.late_record_s:
            self.messages[session].append({"info": answer | {"time": {"created": 1}}, "parts": []})
            self._set(session, None)
            time.sleep(self.late_record_s)
            self.messages[session].pop()
        self.messages[session].append(record)
        self._set(session, None)

    def _stream(self, session: str, answer: str) -> None:
        said = ""
        ids = {"sessionID": session, "messageID": answer}
        for kind, part, pieces in (("reasoning", "prt_r", ["hm"]), ("text", "prt_t", self.pieces)):
            said = ""
            if self.generation == "1.18":
                self.tell_of("message.part.updated", part={"id": part, "type": kind, "text": "", **ids}, **ids)
            for piece in pieces:
                said += piece
                whole = {"id": part, "type": kind, "text": said, **ids}
                if self.generation == "1.18":
                    self.tell_of("message.part.delta", partID=part, field="text", delta=piece, **ids)
                else:
                    self.tell_of("message.part.updated", part=whole, delta=piece)
            self.tell_of("message.part.updated", part={"id": part, "type": kind, "text": said, **ids}, **ids)

    def _set(self, session: str, state: Json | None) -> None:
        if state is None:
            self.status.pop(session, None)
        else:
            self.status[session] = state
        self.tell_of("session.status", sessionID=session, status=state or {"type": "idle"})
        if state is None:
            self.tell_of("session.idle", sessionID=session)

    def tell_of(self, type_: str, **properties: Any) -> None:
        if self.tell:
            for listener in list(self.listeners):
                listener.put({"type": type_, "properties": properties})

    def providers(self) -> Json:
        models = {
            name: {
                "name": name.title(),
                "limit": {"context": size, "output": 100},
                "capabilities": {"toolcall": True, "input": {"text": True, "image": name == "large"}},
            }
            for name, size in MODELS.items()
        }
        return {"providers": [{"id": "acme", "models": models}], "default": {"acme": "small"}}


class _Server(ThreadingHTTPServer):
    fake: FakeOpenCode
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Be quiet."""

    def do_GET(self) -> None:
        fake = self.server.fake
        url = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        names = url.path.strip("/").split("/")
        session = names[1] if names[0] == "session" and len(names) > 1 and names[1] != "status" else ""
        route = f"{self.command} {url.path.replace(session, '*') if session else url.path}"
        fake.requests.append(route)
        fake.queries.append({name: values[0] for name, values in parse_qs(url.query).items()})
        if fake.password and self.headers.get("authorization") != _basic("opencode", fake.password):
            return self._json({"error": "who are you?"}, 401)
        if fake.closing.wait(fake.hang.get(route, 0)):
            return None
        if route in fake.garbage:
            return self._send(fake.garbage[route], 200)
        if route in fake.fail:
            return self._json({"name": "UnknownError", "data": {"message": "scripted failure"}}, fake.fail[route])
        if session and session not in fake.sessions:
            return self._json({"name": "NotFoundError", "data": {"message": "no such session"}}, 404)
        return self._answer(route, session, body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _answer(self, route: str, session: str, body: Json) -> None:
        fake = self.server.fake
        match route:
            case "GET /global/health":
                self._json({"healthy": True, "version": fake.version})
            case "GET /config/providers":
                self._json(fake.providers())
            case "GET /config":
                self._json({"model": fake.default_model} if fake.default_model else {})
            case "GET /agent":
                self._json([{"name": name} for name in fake.agents])
            case "GET /experimental/tool/ids":
                self._json(["bash", "write"])
            case "GET /session":
                self._json(list(fake.sessions.values()))
            case "POST /session":
                id_ = fake.add_session(body["title"], int(time.time() * 1000))
                self._json(fake.sessions[id_] | body)
            case "GET /session/status":
                self._json(fake.status)
            case "GET /session/*":
                self._json(fake.sessions[session])
            case "DELETE /session/*":
                record = fake.sessions.pop(session)
                fake.tell_of("session.deleted", info=record)
                self._json(True)
            case "GET /session/*/message":
                self._json(fake.messages[session])
            case "POST /session/*/prompt_async":
                fake.begin(session, body)
                self._send(b"", 204)
            case "POST /session/*/abort":
                self._json(True)
            case "GET /event":
                self._listen()
            case _:
                self._json({"error": f"no route {route}"}, 404)

    def _listen(self) -> None:
        fake = self.server.fake
        events: queue.Queue[Json] = queue.Queue()
        fake.listeners.append(events)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        count = 0
        try:
            event: Json | None = {"type": "server.connected", "properties": {}}
            while not fake.closing.is_set():
                if event is not None:
                    self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                    self.wfile.flush()
                    count += 1
                    if count == fake.hang_up_after:
                        return
                try:
                    event = events.get(timeout=0.05)
                except queue.Empty:
                    event = None
        except OSError:
            pass  # the client has heard enough
        finally:
            fake.listeners.remove(events)

    def _json(self, value: Any, code: int = 200) -> None:
        self._send(json.dumps(value).encode(), code)

    def _send(self, body: bytes, code: int) -> None:
        try:
            self.send_response(code)
            self.send_header("content-type", "application/json")
            if code != 204:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # the client did not wait


def _basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()
