"""Documents as a reader meets them: the commands in their fences, in order, run by one shell in a fresh home."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import JsonStore, assistant, session, text, tool, user

READERS_HOME = "/home/you"
"""What the documents call the home of whoever reads them."""


@dataclass
class Command:
    """A command of a document, and the lines that it shows below it."""

    line: str
    shown: list[str]
    code: int = -1
    out: str = ""
    err: str = ""


def commands(document: Path) -> Iterator[Command]:
    """In the document's order, out of the fences of sh and console; in a console's, output follows each command.

    Comments behind commands are not part of them.
    """
    for kind, body in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", document.read_text()):
        lines = body.splitlines()
        if kind == "sh":
            yield from (Command(re.sub(r"\s+#.*", "", line), []) for line in lines)
        elif kind == "console":
            starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
            assert starts[0] == 0, lines[0]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                yield Command(lines[start][2:], lines[start + 1 : end])
        else:
            assert not re.search(r"(?m)^\$ ", body), "commands stand in a fence of sh or console"


def own_sessions(home: Path) -> None:
    """Sessions of the reader's own, in the folders that the examples name."""
    now = int(time.time() * 1000)
    store = JsonStore(home / ".local" / "share" / "opencode")
    for number, name in enumerate(("demo", "shop")):
        folder, ids = f"{home}/projects/{name}", (f"msg_{number}a", f"ses_{number}")
        times = {"time": {"created": now, "updated": now}}
        store.session(session(ids[1], directory=folder, **times))
        words = "why postgres? a rate limit middleware with a token bucket in checkout, def check_limit(user)"
        store.message(user(*ids, created=now), text(f"prt_{number}a", *ids, f"{words}: migration; auth failure"))
        wrote = {
            "status": "completed", "input": {"filePath": f"{folder}/cart.py", "content": "cart = []\n"},
            "output": "Wrote file successfully.", "title": "", "metadata": {}, "time": {"start": now, "end": now + 1},
        }  # fmt: skip
        ids = (f"msg_{number}b", ids[1])
        said = text(f"prt_{number}b", *ids, "connect ECONNREFUSED 127.0.0.1:5432, so the cart is a list")
        store.message(assistant(*ids, now + 1, now + 9), said, tool(f"prt_{number}c", *ids, "write", wrote))


class Shell:
    """One shell for all that can be run, in the document's order.

    A command runs when a test first asks for it or a later one.
    """

    def __init__(self, root: Path, document: Path, not_run: Container[str], environment: Mapping[str, str]) -> None:
        """`environment` has the HOME, which must exist; the shell starts in the folder `checkout` beneath `root`."""
        self._root, self._home = root, environment["HOME"]
        (root / "checkout").mkdir()
        self.process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, text=True, cwd=root / "checkout", env=dict(environment)
        )
        self._left = [command for command in commands(document) if command.line not in not_run]
        self._done: dict[str, Command] = {}

    def __getitem__(self, line: str) -> Command:
        while line not in self._done:
            command = self._left.pop(0)
            self._run(command)
            self._done[command.line] = command
        return self._done[line]

    def _run(self, command: Command) -> None:
        out, err, code, ended = (self._root / name for name in ("out", "err", "code", "ended"))
        assert self.process.stdin is not None
        self.process.stdin.write(f"{{ {command.line}\n}} >{out} 2>{err}; echo $? >{code}; mv {code} {ended}\n")
        self.process.stdin.flush()
        until(ended.exists, 100, command.line)
        command.out, command.err = (file.read_text().replace(self._home, READERS_HOME) for file in (out, err))
        command.code = int(ended.read_text())
        ended.unlink()
