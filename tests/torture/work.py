"""Live work in every storage generation at once: what OpenCode's stores say, and which words must be found where."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.talk import PROJECT, words
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, assistant, session, text, tool, user

_REWRITES = 6
_PAUSE_S = 0.03
_FILLER = "the cart keeps its lines in order because the invoice needs them"


def secret(number: int) -> str:
    """A secret that is recognised anywhere by its form."""
    return "ghp_" + (words(number).replace("zq", "Q7") * 4)[:36]


class Work(threading.Thread):
    """Sessions that go on until told to stop. `expected`: each word that must be found, with its only message."""

    def __init__(self, data_dir: Path, seed: int) -> None:
        super().__init__(name="work", daemon=True)
        self._data_dir, self._chance = data_dir, random.Random(seed)
        self._ended = threading.Event()
        self._number = 0
        self.expected: dict[str, str] = {}
        self.of_newest: set[str] = set()
        """Messages of OpenCode 2, which the archive holds in another form than the source."""
        self.secrets: list[str] = []
        self.failure: BaseException | None = None

    def stop(self) -> None:
        """Let the turn in hand end; a failure of the work itself is raised here."""
        self._ended.set()
        if self.is_alive():
            self.join()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        try:
            with_tables = Database(self._data_dir / "opencode.db")
            newest = Database2(self._data_dir / "opencode-next.db")
            lives: list[Callable[[], None]] = [
                _Life(self, JsonStore(self._data_dir), "ses_tree").step,
                _Life(self, with_tables, "ses_base").step,
                _NewestLife(self, newest, "ses_next").step,
            ]
            while not self._ended.is_set():
                self._chance.choice(lives)()
                self._ended.wait(self._chance.uniform(0, _PAUSE_S))
            with_tables.close()
            newest.close()
        except BaseException as error:
            self.failure = error

    def number(self) -> int:
        self._number += 1
        return self._number

    @property
    def chance(self) -> random.Random:
        return self._chance


class _Life:
    """One session of a JSON tree or a database."""

    def __init__(self, work: Work, store: JsonStore | Database, session_id: str) -> None:
        self._work, self._store, self._id = work, store, session_id
        self._living: list[tuple[str, str]] = []
        store.session(session(session_id, PROJECT, f"Work in {session_id}"))

    def step(self) -> None:
        chance = self._work.chance
        kind = chance.choices(("ask", "answer", "write", "print", "secret", "remove"), (4, 4, 3, 2, 1, 1))[0]
        if kind == "remove":
            self._remove()
            return
        number = self._work.number()
        message_id, created = f"msg_{self._id[4:]}{number:06d}", T0 + 1000 * number
        word = words(number)
        if kind == "ask":
            self._store.message(
                user(message_id, self._id, created),
                text(f"prt_{message_id}", message_id, self._id, f"What about {word}? {_FILLER}"),
            )
        elif kind == "answer":
            self._stream(message_id, created, word)
        else:
            self._call(kind, message_id, created, word)
        self._work.expected[word] = message_id
        self._living.append((word, message_id))

    def _stream(self, message_id: str, created: int, word: str) -> None:
        """An answer that grows, and only in the end has the word."""
        self._store.message(assistant(message_id, self._id, created, None))
        part_id = f"prt_{message_id}"
        for rewrite in range(self._work.chance.randrange(_REWRITES)):
            self._store.part(text(part_id, message_id, self._id, " ".join([_FILLER] * (rewrite + 1))))
            time.sleep(0.002)
        self._store.part(text(part_id, message_id, self._id, f"{_FILLER}, and so does {word}."))
        self._store.message(assistant(message_id, self._id, created, created + 500))

    def _call(self, kind: str, message_id: str, created: int, word: str) -> None:
        output = {"write": "Wrote file successfully.", "print": f"{_FILLER} {word}\n" * 400}.get(kind, "")
        if kind == "secret":
            self._work.secrets.append(secret(int(message_id[-6:])))
            output = f"GITHUB_TOKEN={self._work.secrets[-1]}\n{word}"
        given = {"filePath": f"{PROJECT}/{word}.txt", "content": f"{_FILLER}\n{word}\n"}
        state = {
            "status": "completed", "input": given if kind == "write" else {"command": "cat notes"}, "output": output,
            "title": "", "metadata": {}, "time": {"start": created, "end": created + 10},
        }  # fmt: skip
        name = "write" if kind == "write" else "bash"
        part = tool(f"prt_{message_id}", message_id, self._id, name, state)
        self._store.message(assistant(message_id, self._id, created, created + 100), part)

    def _remove(self) -> None:
        """A message goes, as OpenCode removes it."""
        if not self._living:
            return
        word, message_id = self._living.pop(self._work.chance.randrange(len(self._living)))
        if isinstance(self._store, Database):
            self._store.remove_message(self._id, message_id)
        else:
            self._store.drop_message(self._id, message_id)
        del self._work.expected[word]


class _NewestLife:
    """One session of OpenCode 2."""

    def __init__(self, work: Work, store: Database2, session_id: str) -> None:
        self._work, self._store, self._id = work, store, session_id
        store.session(session_id, directory=PROJECT)

    def step(self) -> None:
        number = self._work.number()
        word, message_id = words(number), f"msg_{self._id[4:]}{number:06d}"
        data: dict[str, Any] = {"text": f"What about {word}? {_FILLER}"}
        self._store.message(message_id, self._id, "user", number, data)
        self._work.expected[word] = message_id
        self._work.of_newest.add(message_id)
