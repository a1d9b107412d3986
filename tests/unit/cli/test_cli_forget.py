"""`forget` shows what would go, and does nothing unless somebody said yes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from daemon.cli.settings import Settings
from daemon.cli.subcommands import forget as command
from daemon.control import answers, calls
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import ScriptedService, serving

GONE = {"id": "ses_1", "title": "A \x1b[31mred\x1b[0m title", "directory": "/p", "updated": 1, "messages": 3}
ANSWER = {
    "sessions": [GONE],
    "messages": 3,
    "files": 2,
    "objects": 1,
    "pages": ["/out/p"],
    "notes": ["OpenCode has it"],
}


def scripted(request: calls.Forget) -> dict[str, Any]:
    return ANSWER | {"forgotten": request.confirmed}


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    service = ScriptedService()
    service.answers["forget"] = scripted
    (tmp_path / "run").mkdir(mode=0o700)
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path)


def confirmed(cli: Cli) -> list[bool]:
    return [call[-1] for call in cli.service.calls]


def test_a_dry_run_shows_what_would_go(cli: Cli) -> None:
    done = cli("forget", "ses_1", "--dry-run")
    assert done.returncode == 0
    assert "Would go: 1 session, 3 messages, 2 recorded files, 1 stored object\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert json.loads(cli("forget", "ses_1", "--dry-run", "--json").stdout)["forgotten"] is False
    assert confirmed(cli) == [False, False]


def test_without_a_terminal_it_refuses(cli: Cli) -> None:
    for words in (("ses_1",), ("ses_1", "--json")):
        done = cli("forget", *words)
        assert done.returncode == 64
        assert "nothing was forgotten; give --yes" in done.stderr
    assert confirmed(cli) == [False, False]


def test_yes_does_not_ask(cli: Cli) -> None:
    done = cli("forget", "--before", "2026-01-01", "--yes")
    assert done.returncode == 0
    assert "Forgotten: 1 session, 3 messages" in done.stdout
    assert cli.service.calls == [("forget", "", "2026-01-01", "", True)]


def test_a_path_is_named_from_where_the_command_runs(cli: Cli) -> None:
    cli.service.answers["forget"] = {"path": "/p/a.txt", "messages": 2, "parts": 3, "files": 1}
    home = str(cli.home)
    for name, absolute in (("./a.txt", f"{home}/a.txt"), ("/p/a.txt/", "/p/a.txt"), ("p/a", f"{home}/p/a")):
        done = cli("forget", name, "--dry-run")
        assert "Would go: 3 parts of 2 messages, 1 recorded file\n" in done.stdout
        assert cli.service.calls[-1] == ("forget", absolute, "", "", False)


def test_nothing_to_forget_ends_with_4(cli: Cli) -> None:
    cli.service.answers["forget"] = {"notes": ["ses_1: was forgotten before"]}
    for option in ("--yes", "--dry-run"):
        done = cli("forget", "ses_1", option)
        assert (done.returncode, done.stdout) == (4, "  ses_1: was forgotten before\n")


@pytest.mark.parametrize("words", [(), ("ses_1", "--before", "2026"), ("ses_1", "--yes", "--dry-run")])
def test_one_thing_is_named(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("forget", *words).returncode == 64
    assert not cli.service.calls


@pytest.mark.parametrize(("typed", "asked"), [("y\n", [False, True]), ("n\n", [False]), ("\n", [False])])
def test_on_a_terminal_it_asks(typed: str, asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []

    def answer(_settings: Settings, request: calls.Forget) -> answers.Forget:
        called.append(request.confirmed)
        return answers.Forget(forgotten=request.confirmed, messages=3)

    monkeypatch.setattr(command, "_called", answer)
    monkeypatch.setattr(command, "_is_answerable", lambda: True)
    done = CliRunner().invoke(command.forget, ["ses_1"], obj=Settings(), input=typed, standalone_mode=False)
    assert done.return_value == (0 if asked[-1] else 1)
    assert called == asked
