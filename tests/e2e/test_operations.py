"""docs/operations.md, command by command, under a real user manager of systemd in a fresh home."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import Shell, commands, own_sessions
from tests.support.processes.user_manager import user_manager

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "operations.md"
NOT_RUN = {
    "uv tool install .": "needs uv and a package registry; `make matrix` installs the wheel",
    "uv tool install --force .": "as above",
    "uv tool uninstall reconstitute": "as above",
    "loginctl enable-linger": "needs a session of the machine's own systemd",
    "journalctl --user --unit reconstitute --since today": "needs the machine's own journal",
}
NEEDS_A_PERSON = {
    "reconstitute status", "reconstitute doctor", "reconstitute doctor --full",
    "reconstitute doctor --bundle report.txt",
}  # fmt: skip
"""Commands that end with 1 where something needs attention, as where no model server runs."""
NOTHING_TO_FORGET = "reconstitute forget --before 2020-01-01 --dry-run"
"""Ends with 4 here, because all sessions are of today."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    root = tmp_path_factory.mktemp("operations")
    with user_manager(root / "manager") as manager:
        own_sessions(manager.home)
        nobody = "http://127.0.0.1:9"
        environment = manager.environment | {
            "PATH": f"{sys.prefix}/bin:{manager.environment['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "RECONSTITUTE_CHAT_URL": nobody,
            "RECONSTITUTE_EMBEDDING_URL": nobody,
        }
        shell = Shell(root, DOCUMENT, NOT_RUN, environment)
        with shell.process:
            yield shell
            shell.process.kill()


def test_what_is_not_run_stands_in_the_document() -> None:
    assert set(NOT_RUN) | NEEDS_A_PERSON <= {command.line for command in commands(DOCUMENT)}


@pytest.mark.parametrize("line", dict.fromkeys(c.line for c in commands(DOCUMENT) if c.line not in NOT_RUN))
def test_a_command_of_the_document_runs_as_written(ran: Shell, line: str) -> None:
    command = ran[line]
    codes = (4,) if line == NOTHING_TO_FORGET else (0, 1) if line in NEEDS_A_PERSON else (0,)
    assert command.code in codes, command.out + command.err
