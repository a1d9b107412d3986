"""Sessions that a test writes into a store itself, message by message, as OpenCode would."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, tool, user

PROJECT = "/home/dev/garden"


class Talk:
    """One session in a JSON tree or a database; every method answers the id of the message it wrote.

    `began` is in epoch ms; each message is a second later than the one before.
    """

    def __init__(
        self,
        store: JsonStore | Database,
        session_id: str = "ses_a",
        directory: str = PROJECT,
        title: str = "Garden",
        began: int = T0,
    ) -> None:
        self.store = store
        self._began = began
        self.session_id = session_id
        self._number = 0
        store.session(session(session_id, directory, title, time={"created": began, "updated": began}))

    def _next(self) -> tuple[str, int]:
        self._number += 1
        return f"msg_{self.session_id[4:]}{self._number:05d}", self._began + self._number * 1000

    def ask(self, words: str) -> str:
        """A person's prompt."""
        name, created = self._next()
        self.store.message(user(name, self.session_id, created), text(f"prt_{name}", name, self.session_id, words))
        return name

    def answer(self, words: str, *more: dict[str, Any]) -> str:
        """The assistant's text; `more` are further parts, without their ids."""
        name, created = self._next()
        ids = {"sessionID": self.session_id, "messageID": name}
        parts = [text(f"prt_{name}_0", name, self.session_id, words)]
        parts += [{"id": f"prt_{name}_{number}", **ids, **part} for number, part in enumerate(more, start=1)]
        self.store.message(assistant(name, self.session_id, created, created + 100), *parts)
        return name

    def call(self, name_of_tool: str, given: dict[str, Any], output: str) -> str:
        """A completed tool call."""
        name, created = self._next()
        state = {
            "status": "completed", "input": given, "output": output, "title": "", "metadata": {},
            "time": {"start": created, "end": created + 10},
        }  # fmt: skip
        part = tool(f"prt_{name}", name, self.session_id, name_of_tool, state)
        self.store.message(assistant(name, self.session_id, created, created + 100), part)
        return name

    def fail(self, name_of_tool: str, given: dict[str, Any], error: str) -> str:
        """A tool call that ended with an error."""
        name, created = self._next()
        state = {"status": "error", "input": given, "error": error, "time": {"start": created, "end": created + 10}}
        part = tool(f"prt_{name}", name, self.session_id, name_of_tool, state)
        self.store.message(assistant(name, self.session_id, created, created + 100), part)
        return name

    def write(self, path: str, content: str) -> str:
        """A completed write of a file."""
        return self.call("write", {"filePath": path, "content": content}, "Wrote file successfully.")


def words(number: int) -> str:
    """A word of letters that no other number has, and that is part of no other."""
    return "zq" + hashlib.sha256(str(number).encode()).hexdigest()[:12].translate(
        str.maketrans("0123456789", "ghijklmnop")
    )


def snapshot(directory: Path) -> dict[str, str]:
    """Every file's hash. SQLite's shared memory is left out: every reader, OpenCode too, writes its locks there."""
    return dict(_hashes(directory))


def _hashes(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.name.endswith("-shm"):
            yield str(path.relative_to(directory)), hashlib.sha256(path.read_bytes()).hexdigest()
