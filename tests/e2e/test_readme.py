"""README's commands, run as they are written, in a fresh home; and what README shows of their output is what they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import Shell, commands, own_sessions

CHECKOUT = Path(__file__).resolve().parents[2]
README = CHECKOUT / "README.md"
NOT_RUN = {
    "make run": "sets up another .venv by downloads; what it runs is `reconstitute run --once` (test_daemon_commands.py)",
    "make test": "is what runs this test",
    "make help": "needs the checkout; test_docs.py runs it",
    "make laws": "looks for counterexamples for minutes; the properties run in every suite",
    "make matrix": "installs a wheel for minutes; .ci/run runs it",
    "make score": "is run by the recovery tests, case by case, for minutes",
    "uv tool install .": "needs uv and a package registry; `make matrix` installs the wheel",
    "reconstitute service install": "writes to the user's own service manager; test_service_unit.py runs it with a stand-in",
    "reconstitute web": "needs the service, and a browser; tests/web opens the page",
    "ollama pull qwen3-vl:8b-instruct": "needs Ollama, and gigabytes",
}
NOTHING_THERE = {"reconstitute trajectory --last": "no model has answered yet"}
"""Commands that end with 4 in a fresh home."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    root = tmp_path_factory.mktemp("readme")
    home = root / "home"
    home.mkdir()
    own_sessions(home)
    nobody = "http://127.0.0.1:9"  # where no model server runs, whatever this machine has
    environment = {
        "HOME": str(home), "PATH": os.defpath, "TZ": "UTC", "LANG": "C.UTF-8",
        "RECONSTITUTE_CHAT_URL": nobody, "RECONSTITUTE_EMBEDDING_URL": nobody,
    }  # fmt: skip
    shell = Shell(root, README, NOT_RUN, environment)
    (root / "checkout" / "examples").symlink_to(CHECKOUT / "examples")
    (root / "checkout" / ".venv").symlink_to(sys.prefix)
    with shell.process:
        yield shell
        shell.process.kill()


def test_what_is_not_run_stands_in_readme() -> None:
    """A reason for a command that is gone would hide the next one of its name."""
    lines = {command.line for command in commands(README)}
    assert {*NOT_RUN, *NOTHING_THERE} <= lines


@pytest.mark.parametrize("line", [command.line for command in commands(README) if command.line not in NOT_RUN])
def test_a_command_of_readme_runs_as_written(ran: Shell, line: str) -> None:
    command = ran[line]
    expected = (3, 0) if command.line.startswith("reconstitute restore") else (0,)
    assert command.code in ((4,) if line in NOTHING_THERE else expected), command.err


@pytest.mark.parametrize("line", [command.line for command in commands(README) if command.shown])
def test_what_readme_shows_is_what_is_printed(ran: Shell, line: str) -> None:
    """A line "…" stands for any lines; all others are printed in this order, notes on stderr."""
    command = ran[line]
    for is_note, printed in ((True, command.err), (False, command.out)):
        left = iter(printed.splitlines())
        for shown in command.shown:
            if shown.strip() != "…" and shown.startswith("reconstitute: ") == is_note:
                assert any(one == shown for one in left), f"not printed, or not in this order: {shown}\n{printed}"
