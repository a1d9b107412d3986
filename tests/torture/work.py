"""Live work in every storage generation at once: what OpenCode's stores say, and which words must be found where.

What is done, and in which order, follows from the seed alone; how far the work comes until it is stopped does not.
"""

from __future__ import annotations

import base64
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from tests.e2e.talk import PROJECT, words
from tests.support.servers.fake_ollama import vector
from tests.support.stores.git_trees import Repository
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, assistant, session, text, tool, user

STEPS = {
    "ask": 30, "answer": 30, "write": 20, "print": 10, "secret": 8, "remove": 8, "todo": 8, "snapshot": 5, "long": 2,
    "large": 2,
}  # fmt: skip
"""What is done in a session, by weight."""
RECORD_MB = 1
"""limits.record_mb of the service: `large` records are larger, `long` ones smaller, but not by much."""
_LONG_BYTES, _LARGE_BYTES, _MOST_BIG = 700_000, 900_000, 3
_REWRITES = 6
_PAUSE_S = 0.6
_FILLER = "the cart keeps its lines in order because the invoice needs them"
_COMMON = (
    "What about ? and so does . The step with ends. Work in ses_tree ses_base ses_next filePath: command: cat notes"
)
DIMS = 1024
"""Numbers of a vector. Each word has one of its own in the fake embedder, or it would not be found by its meaning."""
_TODOS = """
CREATE TABLE IF NOT EXISTS todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL,
    priority text NOT NULL, position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)
"""


def question(word: str) -> str:
    """What finds the message of this word by meaning: a text like all of them, that is about the word."""
    return f"{_FILLER} " + " ".join([word] * 4)


def _place(word: str) -> int:
    values = vector(word, DIMS)
    return max(range(1, DIMS), key=lambda place: abs(values[place]))


def secret(number: int) -> str:
    """A secret that is recognised anywhere by its form."""
    return "ghp_" + (words(number).replace("zq", "Q7") * 4)[:36]


class Work(threading.Thread):
    """Sessions that go on until told to stop. `expected`: each word that must be found, with its only message."""

    def __init__(self, data_dir: Path, seed: int) -> None:
        super().__init__(name="work", daemon=True)
        self._data_dir, self.chance = data_dir, random.Random(seed)
        self._ended = threading.Event()
        self._most: int | None = None
        self._number = 0
        self._places = {_place(word) for word in f"{_FILLER} {_COMMON}".split()}
        self.big_left = _MOST_BIG
        self.expected: dict[str, str] = {}
        self.of_newest: set[str] = set()
        """Messages of OpenCode 2, which the archive holds in another form than the source."""
        self.todos: dict[str, list[str]] = {}
        """What stands on the list of each session that has one."""
        self.trees: dict[str, tuple[str, dict[str, bytes]]] = {}
        """Each message with a snapshot, with its tree and the files in it."""
        self.large: dict[str, tuple[str, str]] = {}
        """Each record that is too large to be read: by its part, its message and its text."""
        self.secrets: list[str] = []
        self.failure: BaseException | None = None

    def do(self, steps: int) -> None:
        """Do so much, and return when it is done: what is there then follows from the seed alone."""
        self._most = steps
        self.start()
        self.join()
        self.stop()

    def stop(self) -> None:
        """Let the turn in hand end; a failure of the work itself is raised here."""
        self._ended.set()
        if self.is_alive():
            self.join()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        try:
            with ExitStack() as stack:
                with_tables = stack.enter_context(closing(Database(self._data_dir / "opencode.db")))
                newest = stack.enter_context(closing(Database2(self._data_dir / "opencode-next.db")))
                with_tables.connection.executescript(_TODOS)
                tree = Repository(self._data_dir, "pid/worktree", self._data_dir.with_name("worktree"))
                lives: list[Callable[[], None]] = [
                    _Life(self, JsonStore(self._data_dir), "ses_tree", tree).step,
                    _Life(self, with_tables, "ses_base", tree).step,
                    _NewestLife(self, newest, "ses_next").step,
                ]
                while not self._ended.is_set() and self._most != 0:
                    self.chance.choice(lives)()
                    # Slower and slower: a check asks for every word, and is to be shorter than the harm.
                    pause = self.chance.uniform(0, _PAUSE_S) * (1 + self._number / 50)
                    if self._most is None:
                        self._ended.wait(pause)
                    else:
                        self._most -= 1
        except BaseException as error:
            self.failure = error

    def number(self) -> int:
        """The next number whose word is told from all others by its meaning alone, too."""
        while True:
            self._number += 1
            word = words(self._number)
            place, of_path = _place(word), _place(f"{PROJECT}/{word}.txt")
            if place not in self._places and place != of_path:
                self._places.add(place)
                return self._number


class _Life:
    """One session of a JSON tree or a database."""

    def __init__(self, work: Work, store: JsonStore | Database, session_id: str, tree: Repository) -> None:
        self._work, self._store, self._id, self._tree = work, store, session_id, tree
        self._living: list[tuple[str, str]] = []
        store.session(session(session_id, PROJECT, f"Work in {session_id}"))

    def step(self) -> None:
        kind = self._work.chance.choices(tuple(STEPS), tuple(STEPS.values()))[0]
        if kind == "remove":
            self._remove()
            return
        number = self._work.number()
        message_id, created = f"msg_{self._id[4:]}{number:06d}", T0 + 1000 * number
        word = words(number)
        if kind == "todo":
            self._plan(number, created)
            return
        if kind in ("long", "large"):
            self._print_much(kind, message_id, created, word)
            return
        if kind == "ask":
            self._store.message(
                user(message_id, self._id, created),
                text(f"prt_{message_id}", message_id, self._id, f"What about {word} ? {_FILLER}"),
            )
        elif kind == "answer":
            self._stream(message_id, created, word)
        elif kind == "snapshot":
            self._step(message_id, created, word)
        else:
            self._call(kind, message_id, created, word)
        self._work.expected[word] = message_id
        self._living.append((word, message_id))

    def _plan(self, number: int, created: int) -> None:
        """The todo list of the session is another one."""
        items = [f"Plan {words(number)} {place}" for place in range(self._work.chance.randrange(4))]
        rows = [
            {"content": item, "status": "pending", "priority": "high", "position": place}
            for place, item in enumerate(items)
        ]
        if isinstance(self._store, JsonStore):
            self._store.raw(f"todo/{self._id}.json", json.dumps(rows))
        else:
            self._store.execute("BEGIN")
            self._store.execute("DELETE FROM todo WHERE session_id = ?", self._id)
            for row in rows:
                values = (self._id, *row.values(), created, created)
                self._store.execute("INSERT INTO todo VALUES (?,?,?,?,?,?,?)", *values)
            self._store.execute("COMMIT")
            self._store.session(session(self._id, PROJECT, f"Work in {self._id}"))
        self._work.todos[self._id] = items

    def _print_much(self, kind: str, message_id: str, created: int, word: str) -> None:
        """A record that is nearly too large, or too large to be read."""
        if not self._work.big_left:
            return
        self._work.big_left -= 1
        size = _LARGE_BYTES if kind == "large" else _LONG_BYTES
        content = f"{word} {_FILLER} " + base64.b64encode(self._work.chance.randbytes(size)).decode()
        part = text(f"prt_{message_id}", message_id, self._id, content)
        self._store.message(user(message_id, self._id, created), part)
        if kind == "large":
            self._work.large[part["id"]] = message_id, content
        else:
            self._work.expected[word] = message_id

    def _step(self, message_id: str, created: int, word: str) -> None:
        """A step that ends with files in the work tree, as a snapshot has them."""
        files = {f"notes/{place}.md": f"{word} {place}\n".encode() for place in range(3)} | {f"{word}.txt": b"x\n"}
        tree = self._tree.write(files)
        paths = (path for path in self._tree.worktree.rglob("*") if path.is_file())
        contents = {str(path.relative_to(self._tree.worktree)): path.read_bytes() for path in paths}
        self._work.trees[message_id] = tree, contents
        ids = {"sessionID": self._id, "messageID": message_id}
        where = {"cwd": str(self._tree.worktree), "root": str(self._tree.worktree)}
        self._store.message(
            assistant(message_id, self._id, created, created + 100, path=where),
            text(f"prt_{message_id}", message_id, self._id, f"{_FILLER} {word} and the step ends."),
            {"id": f"prt_{message_id}_end", **ids, "type": "step-finish", "snapshot": tree},
        )

    def _stream(self, message_id: str, created: int, word: str) -> None:
        """An answer that grows, and only in the end has the word."""
        self._store.message(assistant(message_id, self._id, created, None))
        part_id = f"prt_{message_id}"
        for rewrite in range(self._work.chance.randrange(_REWRITES)):
            self._store.part(text(part_id, message_id, self._id, " ".join([_FILLER] * (rewrite + 1))))
            time.sleep(0.002)
        self._store.part(text(part_id, message_id, self._id, f"{_FILLER} and so does {word} ."))
        self._store.message(assistant(message_id, self._id, created, created + 500))

    def _call(self, kind: str, message_id: str, created: int, word: str) -> None:
        output = {"write": "Wrote file successfully.", "print": f"{_FILLER} {word}\n" * 8}.get(kind, "")
        if kind == "secret":
            self._work.secrets.append(secret(int(message_id[-6:])))
            output = f"GITHUB_TOKEN={self._work.secrets[-1]}\n{_FILLER} {word}"
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
        self._work.trees.pop(message_id, None)


class _NewestLife:
    """One session of OpenCode 2."""

    def __init__(self, work: Work, store: Database2, session_id: str) -> None:
        self._work, self._store, self._id = work, store, session_id
        store.session(session_id, directory=PROJECT)

    def step(self) -> None:
        number = self._work.number()
        word, message_id = words(number), f"msg_{self._id[4:]}{number:06d}"
        data: dict[str, Any] = {"text": f"What about {word} ? {_FILLER}"}
        self._store.message(message_id, self._id, "user", number, data)
        self._work.expected[word] = message_id
        self._work.of_newest.add(message_id)
