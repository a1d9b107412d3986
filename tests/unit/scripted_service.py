"""A stand-in for the engine: answers as its script says, in the shapes of control.protocol.Service.

Its contract: `calls` records what was asked; `failure` is raised by the next calls while it is set; the long calls report
three steps of progress and wait for `gate` before they end, so that a test can look at a call under way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.control.protocol import Progress
from daemon.control.server import Server
from daemon.errors import BadRequest

HIT = {
    "message_id": "msg_1",
    "session_id": "ses_1",
    "title": "Limit the rate of requests",
    "role": "assistant",
    "created": 1_780_000_000_000,
    "kind": "tool_output",
    "score": 0.9,
    "mode": "hybrid",
    "snippet": "def rate_limit(per_minute: int) -> None:\n    bucket = Bucket(per_minute)",
    "part_id": "prt_1",
    "tool": "read",
    "directory": "/home/ada/shop",
    "project_id": "p",
    "terms": ["bucket"],
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
            "last_scan": 1_780_000_100_000,
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
            "last_run": 1_780_000_000_000,
            "state": "ok",
        }
    ],
    "jobs": {"running": 1, "queued": 2},
    "errors": [{"time": 1_780_000_050_000, "where": "embed", "message": "127.0.0.1:11434: no answer; start Ollama"}],
}


class ScriptedService:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: BaseException | None = None
        self.hits: list[dict[str, Any]] = [HIT]
        self.status_answer: dict[str, Any] = dict(STATUS)
        self.phase = "scan"
        self.gate = threading.Event()
        self.gate.set()
        self.under_way = threading.Semaphore(0)

    def status(self) -> dict[str, Any]:
        self._called("status")
        return self.status_answer

    def search(self, query: str, *, mode: str = "hybrid", limit: int = 10, context: bool = False) -> dict[str, Any]:
        self._called("search", query, mode, limit, context)
        if mode not in ("hybrid", "literal", "semantic"):
            raise BadRequest(f"mode {mode!r}: unknown; use hybrid, literal or semantic")
        answer: dict[str, Any] = {
            "query": query,
            "mode": mode,
            "hits": self.hits[:limit],
            "coverage": {},
            "warnings": [],
        }
        if context:
            answer["messages"] = [{"role": "user", "content": "why is it slow?"}]
        return answer

    def index(self, progress: Progress) -> dict[str, Any]:
        self._called("index")
        self._work(progress)
        return {"changed": 3, "removed": 1, "embedded": 5, "waiting": 0, "quarantined": 0}

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> dict[str, Any]:
        self._called("reconstitute", path, questions, at, output)
        self._work(progress)
        return {
            "target": path,
            "output": output or "/home/ada/reconstituted" + path,
            "pages": 4,
            "written": 3,
            "unchanged": 1,
            "kept": [],
            "files": {"proven": 2, "unproven": 1},
            "warnings": [],
        }

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        self.under_way.release()
        if self.failure is not None:
            raise self.failure

    def _work(self, progress: Progress) -> None:
        for done in range(3):
            progress({"phase": self.phase, "done": done + 1, "total": 3})
        self.gate.wait(20)


@contextmanager
def serving(service: Any, socket_path: Path, **options: Any) -> Iterator[Server]:
    """A real server on a real socket, in a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(service, socket_path, **options)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
