"""`reconstitute web`: the link in the browser where there is a desktop, else on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.errors import Retry
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import ANSWERS, ScriptedService, serving

LINK = ANSWERS["web"]["url"]
NO_DESKTOP = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": "", "SSH_TTY": ""}
DESKTOP = NO_DESKTOP | {"DISPLAY": ":0"}


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened; exit "${{XDG_ENDS:-0}}"\n')
    program.chmod(0o755)
    (tmp_path / "run").mkdir(mode=0o700)
    service = ScriptedService()
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path, {"PATH": f"{program.parent}:/usr/bin:/bin"})


def opened(cli: Cli) -> str:
    """What the browser was given."""
    place = cli.home / "opened"
    return place.read_text().strip() if place.exists() else ""


def test_a_desktop_opens_the_page(cli: Cli) -> None:
    done = cli("web", **cli.environment | DESKTOP)
    assert (done.returncode, done.stdout, done.stderr, opened(cli)) == (0, "", "", LINK)
    assert cli.service.calls == [("web",)]


@pytest.mark.parametrize("more", [NO_DESKTOP, DESKTOP | {"SSH_TTY": "/dev/pts/0"}, DESKTOP | {"PATH": "/usr/bin:/bin"}])
def test_without_a_browser_the_link_is_printed(cli: Cli, more: dict[str, str]) -> None:
    done = cli("web", **cli.environment | more)
    assert (done.returncode, done.stdout, opened(cli)) == (0, f"{LINK}\n", "")
    assert "works once, within 60 s" in done.stderr


def test_a_browser_that_does_not_start_leaves_the_link(cli: Cli) -> None:
    assert cli("web", **cli.environment | DESKTOP | {"XDG_ENDS": "3"}).stdout == f"{LINK}\n"


def test_print_and_json_open_nothing(cli: Cli) -> None:
    assert cli("web", "--print", **cli.environment | DESKTOP).stdout == f"{LINK}\n"
    assert json.loads(cli("web", "--json", **cli.environment | DESKTOP).stdout) == ANSWERS["web"]
    assert opened(cli) == ""


def test_a_port_that_cannot_be_had_is_said(cli: Cli) -> None:
    cli.service.failure = Retry("web.port: 127.0.0.1:11436 cannot be listened on: in use; choose another")
    done = cli("web", "--print", **cli.environment)
    assert (done.returncode, done.stdout) == (75, "")
    assert "web.port" in done.stderr


def test_without_a_service_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = Cli(None, tmp_path)("web")
    assert done.returncode == 69
    assert "reconstitute service install" in done.stderr
    assert not (tmp_path / ".local").exists()
