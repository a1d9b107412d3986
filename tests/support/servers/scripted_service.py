"""A stand-in for the engine: answers as its script says, in the shapes of control.calls.

Its contract: `calls` records each call as its name and the request's values; `answers` has an answer for each call, by
name, as JSON data; `failure` is raised by the next calls while it is set; the long calls report three steps of progress
and wait for `gate` before they end, so that a test can look at a call under way.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from daemon.control.answers import from_json, to_json
from daemon.control.calls import BY_NAME, CALLS, FileContent, silent
from daemon.control.server import Server

RESULT = {
    "sessionID": "ses_1",
    "sessionTitle": "Limit the rate of requests",
    "directory": "/home/ada/shop",
    "projectID": "p",
    "messageID": "msg_1",
    "role": "assistant",
    "time": 1_780_000_000_000,
    "partID": "prt_1",
    "kind": "tool_output",
    "toolName": "read",
    "snippet": "def rate_limit(per_minute: int) -> None:\n    bucket = Bucket(per_minute)",
    "score": 0.9,
    "matchMode": "hybrid",
    "matchedTerms": ["bucket"],
}

STATUS = {
    "version": "0.1.0",
    "pid": 4711,
    "running": True,
    "started": 1_780_000_000_000,
    "archive": {
        "dir": "/home/ada/.local/share/reconstitute",
        "sessions": 3,
        "messages": 41,
        "parts": 120,
        "bytes": 5_300_000,
    },
    "sources": [
        {
            "name": "opencode.db",
            "kind": "sqlite",
            "state": "ok",
            "seen": 41,
            "kept": 40,
            "skipped": 1,
            "unknown": {"sticker": 12},
            "quarantined": 1,
            "lastScan": 1_780_000_100_000,
        }
    ],
    "outbox": {"lexical": 0, "semantic": 7},
    "index": {
        "lexical": {"state": "ok", "count": 120},
        "semantic": {"state": "rebuilding", "count": 80, "embedder": "all-MiniLM-L6-v2 (built in)"},
    },
    "targets": [
        {
            "path": "/home/ada/shop",
            "refresh": "continuous",
            "schedule": "",
            "lastRun": 1_780_000_000_000,
            "state": "ok",
        }
    ],
    "jobs": {"running": 1, "queued": 2},
    "errors": [{"time": 1_780_000_050_000, "where": "embed", "message": "127.0.0.1:11434: no answer; start Ollama"}],
}

FILE = {
    "path": "/home/ada/shop/cart.py",
    "grade": "proven",
    "evidence": ["completed write"],
    "sha256": "ab" * 32,
    "size": 1234,
    "deleted": False,
    "disk": "missing",
    "lastChange": {"time": 1_780_000_000_000, "sessionID": "ses_1", "messageID": "msg_1", "tool": "write"},
    "note": "",
    "folder": False,
}

REVISION = {
    "time": 1_780_000_000_000,
    "sessionID": "ses_1",
    "sessionTitle": "Limit the rate of requests",
    "messageID": "msg_1",
    "tool": "write",
    "operation": "write",
    "grade": "proven",
    "evidence": ["completed write"],
    "note": "",
    "outsideChange": False,
    "deleted": False,
    "size": 1234,
    "sha256": "ab" * 32,
    "movedFrom": None,
}

CONTENT = {
    "path": "/home/ada/shop/cart.py",
    "at": None,
    "known": True,
    "grade": "proven",
    "proven": True,
    "deleted": False,
    "partial": False,
    "sha256": "ab" * 32,
    "size": 6,
    "redacted": False,
    "last": None,
    "warnings": [],
    "time": 1_780_000_000_000,
    "sessionID": "ses_1",
    "messageID": "msg_1",
    "tool": "write",
    "evidence": ["completed write"],
    "note": "",
    "contentBase64": base64.b64encode(b"x = 1\n").decode(),
}


def content_of(relative: str, data: bytes = b"x = 1\n", grade: str = "proven", **more: Any) -> FileContent:
    """A file as `restore` hands it out."""
    return FileContent(f"/home/ada/shop/{relative}", relative, grade, hashlib.sha256(data).hexdigest(), data, **more)


COST = {"asked": 7, "kept": 2, "calls": 21, "tokens": 84_000, "mostCalls": 280, "mostTokens": 2_800_000}

ANSWERS: dict[str, Any] = {
    "status": STATUS,
    "recall": {"ok": True, "results": [], "warnings": []},
    "export": {"sessions": 1, "messages": 0, "warnings": []},
    "index": {"changed": 3, "removed": 1, "embedded": 5, "waiting": 0, "quarantined": 0},
    "reconstitute": lambda request: {
        "target": request.path,
        "output": request.output or "/home/ada/reconstituted" + request.path,
        "pages": 4,
        "written": 3,
        "unchanged": 1,
        "kept": 0,
        "files": {"proven": 2, "unproven": 1},
        "warnings": [],
    },
    "estimate": lambda request: {
        "target": request.path,
        "model": "wise:4b",
        "who": "",
        "questions": COST,
        "files": dict.fromkeys(COST, 0),
        "sessions": dict.fromkeys(COST, 0),
        "later": 3,
        **{name: COST[name] for name in list(COST)[2:]},
        "warnings": [],
    },
    "trajectories": {"trajectories": []},
    "files": {"path": "/", "known": True, "files": [FILE], "hints": [], "warnings": []},
    "history": {
        "path": "/home/ada/shop/cart.py",
        "grade": "proven",
        "deleted": False,
        "revisions": [REVISION],
        "warnings": [],
    },
    "content": CONTENT,
    "restore": {"path": "/home/ada/shop", "files": 1, "deleted": 0, "skipped": [], "warnings": []},
    "alias": {"aliases": [], "warnings": []},
    "web": {"url": "http://127.0.0.1:11436/enter?key=k", "address": "http://127.0.0.1:11436", "seconds": 60},
}


LONG = {"export", "index", "reconstitute", "estimate", "restore"}
"""Calls that report progress."""


class ScriptedService:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: BaseException | None = None
        self.answers = copy.deepcopy(ANSWERS)
        self.parts: dict[str, list[Any]] = {"export": ["{}\n"], "restore": [content_of("cart.py")]}
        self.phase = "scan"
        self.gate = threading.Event()
        self.gate.set()
        self.under_way = threading.Semaphore(0)

    def answer(self, name: str) -> Any:
        """The answer to a call as a client gets it: with every field."""
        return to_json(from_json(self.answers[name], BY_NAME[name].answer))

    def call(self, request: Any, *, progress: Any = silent, on_part: Any = silent) -> Any:
        call = CALLS[type(request)]
        self.calls.append((call.name, *msgspec.structs.astuple(request)))
        self.under_way.release()
        if self.failure is not None:
            raise self.failure
        self.work(request, progress, on_part)
        scripted = self.answers[call.name]
        return from_json(scripted(request) if callable(scripted) else scripted, call.answer)

    def work(self, request: Any, progress: Any, on_part: Any) -> None:
        """What goes on before the answer."""
        call = CALLS[type(request)]
        for part in self.parts.get(call.name, ()):
            on_part(part)
        if call.name in LONG:
            for done in range(3):
                progress({"phase": self.phase, "done": done + 1, "total": 3})
        if call.name in {*LONG, "recall"}:
            self.gate.wait(240)


@contextmanager
def serving(service: Any, socket_path: Path, **options: Any) -> Iterator[Server]:
    """A real server on a real socket, in a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(service, socket_path, **options)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(240)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(240)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(240)
        loop.close()
