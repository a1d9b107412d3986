"""A stand-in for the engine: answers as its script says, in the shapes of control.calls.Service.

Its contract: `calls` records what was asked; `failure` is raised by the next calls while it is set; the long calls report
three steps of progress and wait for `gate` before they end, so that a test can look at a call under way.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.control.calls import FileContent, Progress, Take, TakeText, silent
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

FILE = {
    "path": "/home/ada/shop/cart.py",
    "grade": "proven",
    "evidence": ["completed write"],
    "sha256": "ab" * 32,
    "size": 1234,
    "deleted": False,
    "disk": "missing",
    "last_change": {"time": 1_780_000_000_000, "session_id": "ses_1", "message_id": "msg_1", "tool": "write"},
    "note": "",
}

REVISION = {
    "time": 1_780_000_000_000,
    "session_id": "ses_1",
    "session_title": "Limit the rate of requests",
    "message_id": "msg_1",
    "tool": "write",
    "operation": "write",
    "grade": "proven",
    "evidence": ["completed write"],
    "note": "",
    "outside_change": False,
    "deleted": False,
    "size": 1234,
    "sha256": "ab" * 32,
    "moved_from": None,
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
    "session_id": "ses_1",
    "message_id": "msg_1",
    "tool": "write",
    "evidence": ["completed write"],
    "note": "",
    "content_base64": base64.b64encode(b"x = 1\n").decode(),
}


def content_of(relative: str, data: bytes = b"x = 1\n", grade: str = "proven", **more: Any) -> FileContent:
    """A file as `restore` hands it out."""
    return FileContent(f"/home/ada/shop/{relative}", relative, grade, hashlib.sha256(data).hexdigest(), data, **more)


class ScriptedService:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failure: BaseException | None = None
        self.status_answer: dict[str, Any] = dict(STATUS)
        self.files_answer: dict[str, Any] = {"path": "/", "files": [FILE], "hints": [], "warnings": []}
        self.history_answer: dict[str, Any] = {
            "path": "/home/ada/shop/cart.py",
            "grade": "proven",
            "deleted": False,
            "revisions": [REVISION],
            "warnings": [],
        }
        self.content_answer: dict[str, Any] = dict(CONTENT)
        self.contents: list[FileContent] = [content_of("cart.py")]
        self.skipped: list[dict[str, str]] = []
        self.aliases: list[dict[str, str]] = []
        self.recall_answer: dict[str, Any] = {"ok": True, "results": [], "warnings": []}
        self.pieces: list[str] = ["{}\n"]
        self.phase = "scan"
        self.gate = threading.Event()
        self.gate.set()
        self.under_way = threading.Semaphore(0)

    def status(self) -> dict[str, Any]:
        self._called("status")
        return self.status_answer

    def recall(self, call: str, arguments: dict[str, Any], *, here: str = "") -> dict[str, Any]:
        self._called("recall", call, arguments, here)
        self.gate.wait(20)
        return self.recall_answer

    def export(self, arguments: dict[str, Any], *, take: TakeText, progress: Progress = silent) -> dict[str, Any]:
        self._called("export", arguments)
        for piece in self.pieces:
            take(piece)
        self._work(progress)
        return {"sessions": len(self.pieces), "messages": 0, "warnings": []}

    def index(self, progress: Progress) -> dict[str, Any]:
        self._called("index")
        self._work(progress)
        return {"changed": 3, "removed": 1, "embedded": 5, "waiting": 0, "quarantined": 0}

    def estimate(
        self, path: str, *, questions: list[str] | None = None, at: str = "", progress: Progress = silent
    ) -> dict[str, Any]:
        self._called("estimate", path, questions, at)
        self._work(progress)
        cost = {"asked": 7, "kept": 2, "calls": 21, "tokens": 84_000, "most_calls": 280, "most_tokens": 2_800_000}
        none = dict.fromkeys(cost, 0)
        return {"target": path, "model": "wise:4b", "who": "", "questions": cost, "files": none, "sessions": none,
                "later": 3, **{name: cost[name] for name in list(cost)[2:]}, "warnings": []}  # fmt: skip

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

    def files(
        self, path: str = "/", *, at: str = "", lost: bool = False, progress: Progress = silent
    ) -> dict[str, Any]:
        self._called("files", path, at, lost)
        return self.files_answer

    def history(
        self, path: str, *, diff: bool = False, lines: bool = False, progress: Progress = silent
    ) -> dict[str, Any]:
        self._called("history", path, diff, lines)
        return self.history_answer

    def content(self, path: str, *, at: str = "", raw: bool = False, progress: Progress = silent) -> dict[str, Any]:
        self._called("content", path, at, raw)
        return self.content_answer

    def restore(
        self,
        path: str,
        *,
        at: str = "",
        deleted: bool = False,
        grade: str = "proven",
        take: Take,
        progress: Progress = silent,
    ) -> dict[str, Any]:
        self._called("restore", path, at, deleted, grade)
        for content in self.contents:
            take(content)
        self._work(progress)
        only_deleted = sum(entry["reason"].startswith("deleted") for entry in self.skipped)
        return {
            "path": path,
            "files": len(self.contents),
            "deleted": only_deleted,
            "skipped": self.skipped,
            "warnings": [],
        }

    def alias(self, old: str = "", new: str = "", *, remove: bool = False) -> dict[str, Any]:
        self._called("alias", old, new, remove)
        return {"aliases": self.aliases}

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
