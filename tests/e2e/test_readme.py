"""README's commands, run as they are written, in a fresh home; and what README shows of their output is what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import JsonStore, assistant, session, text, tool, user

CHECKOUT = Path(__file__).resolve().parents[2]
NOT_RUN = {
    "make run": "sets up another .venv by downloads; what it runs is `reconstitute run --once` (test_daemon_commands.py)",
    "make test": "is what runs this test",
    "make help": "needs the checkout; test_docs.py runs it",
    "make laws": "looks for counterexamples for minutes; the properties run in every suite",
    "make matrix": "installs a wheel for minutes; .ci/run runs it",
    "make score": "is run by the recovery tests, case by case, for minutes",
    "uv tool install .": "needs uv and a package registry; `make matrix` installs the wheel",
    "reconstitute service install": "writes to the user's own service manager; test_service_unit.py runs it with a stand-in",
    "ollama pull qwen3-vl:8b-instruct": "needs Ollama, and gigabytes",
}
NOTHING_THERE = {"reconstitute trajectory --last": "no model has answered yet"}
"""Commands that end with 4 in a fresh home."""

READERS_HOME = "/home/you"
"""What README calls the home of whoever reads it."""


@dataclass
class Command:
    """A command of README, and the lines that README shows below it."""

    line: str
    shown: list[str]
    code: int = -1
    out: str = ""
    err: str = ""


def commands() -> Iterator[Command]:
    """In README's order, out of the fences of sh and console; in a console's, output follows each command.

    Comments behind commands are not part of them.
    """
    for kind, body in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", (CHECKOUT / "README.md").read_text()):
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


def _own_sessions(home: Path) -> None:
    """Sessions of the reader's own, in the folders that README's examples name."""
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
    """One shell for all that can be run, in README's order. A command runs when a test first asks for it or a later one."""

    def __init__(self, root: Path) -> None:
        self._root, self._home, folder = root, root / "home", root / "checkout"
        self._home.mkdir()
        folder.mkdir()
        (folder / "examples").symlink_to(CHECKOUT / "examples")
        (folder / ".venv").symlink_to(sys.prefix)
        _own_sessions(self._home)
        nobody = "http://127.0.0.1:9"  # where no model server runs, whatever this machine has
        environment = {
            "HOME": str(self._home), "PATH": os.defpath, "TZ": "UTC", "LANG": "C.UTF-8",
            "RECONSTITUTE_CHAT_URL": nobody, "RECONSTITUTE_EMBEDDING_URL": nobody,
        }  # fmt: skip
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, text=True, cwd=folder, env=environment)
        self._left = [command for command in commands() if command.line not in NOT_RUN]
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
        command.out, command.err = (file.read_text().replace(str(self._home), READERS_HOME) for file in (out, err))
        command.code = int(ended.read_text())
        ended.unlink()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("readme"))
    with shell.process:
        yield shell
        shell.process.kill()


def test_what_is_not_run_stands_in_readme() -> None:
    """A reason for a command that is gone would hide the next one of its name."""
    lines = {command.line for command in commands()}
    assert {*NOT_RUN, *NOTHING_THERE} <= lines


@pytest.mark.parametrize("line", [command.line for command in commands() if command.line not in NOT_RUN])
def test_a_command_of_readme_runs_as_written(ran: Shell, line: str) -> None:
    command = ran[line]
    expected = (3, 0) if command.line.startswith("reconstitute restore") else (0,)
    assert command.code in ((4,) if line in NOTHING_THERE else expected), command.err


@pytest.mark.parametrize("line", [command.line for command in commands() if command.shown])
def test_what_readme_shows_is_what_is_printed(ran: Shell, line: str) -> None:
    """A line "…" stands for any lines; all others are printed in this order, notes on stderr."""
    command = ran[line]
    for is_note, printed in ((True, command.err), (False, command.out)):
        left = iter(printed.splitlines())
        for shown in command.shown:
            if shown.strip() != "…" and shown.startswith("reconstitute: ") == is_note:
                assert any(one == shown for one in left), f"not printed, or not in this order: {shown}\n{printed}"
