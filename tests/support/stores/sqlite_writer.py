"""A real SQLite writer in a process of its own, as OpenCode is: it holds its database open between two messages.

``python -m tests.support.stores.sqlite_writer PATH`` obeys lines: ``say WORD`` adds a message that says the word, ``backup PATH`` copies
the whole database by SQLite's own backup, ``checkpoint MODE`` and ``close`` do what they say. Each is answered by a line.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.support.stores.make_opencode import T0, Database, session, text, user

CHECKOUT = Path(__file__).resolve().parents[3]
SESSION = "ses_writer"
_PATIENCE_S = 90


class Writer:
    """The process, from the test's side. Use it as a context manager, or end it with `close` or `kill`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stores.sqlite_writer", str(path)],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer == "done", answer

    def say(self, word: str) -> str:
        """A prompt that says `word`; the id of its message."""
        self._tell(f"say {word}")
        return f"msg_{word}"

    def backup(self, path: Path) -> None:
        self._tell(f"backup {path}")

    def checkpoint(self, mode: str) -> None:
        self._tell(f"checkpoint {mode}")

    def close(self) -> None:
        """End as OpenCode does when it is told to: the last connection to a database removes its WAL."""
        self._tell("close")
        self._process.wait(timeout=60)
        self._release()

    def kill(self) -> None:
        """SIGKILL: the WAL and its shared memory stay as they are."""
        self._process.kill()
        self._process.wait(timeout=60)
        self._release()

    def _release(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def _say(database: Database, word: str) -> None:
    """One message; where the files were broken under us, again with new ones, as a person starts OpenCode again."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _insert(database, word)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)
        database.connection.close()
        database.connection = sqlite3.connect(database.path, isolation_level=None)


def _insert(database: Database, word: str) -> None:
    database.session(session(SESSION))
    message = user(f"msg_{word}", SESSION, T0 + int(time.monotonic() * 1000))
    database.message(message, text(f"prt_{word}", message["id"], SESSION, f"It says {word}."))


def _opened(path: Path) -> Database:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return Database(path)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _main(path: Path) -> None:
    database = _opened(path)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        try:
            match verb:
                case "say":
                    _say(database, rest)
                case "backup":
                    target = sqlite3.connect(rest)
                    database.connection.backup(target)
                    target.close()
                case "checkpoint":
                    database.execute(f"PRAGMA wal_checkpoint({rest})")
                case "close":
                    database.close()
        except sqlite3.Error as error:
            print(error, flush=True)
        else:
            print("done", flush=True)
        if verb == "close":
            return


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
