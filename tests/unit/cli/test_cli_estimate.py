"""``reconstitute PATH --estimate``: what a run would ask, by kind, through the service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import ScriptedService, serving


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    service = ScriptedService()
    (tmp_path / "run").mkdir(mode=0o700)
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path)


def test_an_estimate_names_each_kind_and_writes_nothing(cli: Cli) -> None:
    done = cli("/home/ada/shop", "--estimate", "--question", "Why?")
    assert done.returncode == 0, done.stderr
    assert cli.service.calls == [("estimate", "/home/ada/shop", ["Why?"], "")]
    assert done.stdout.splitlines() == [
        "questions: 7 to ask, 2 kept: about 21 calls, 84k tokens",
        "files: 0 to ask, 0 kept: about 0 calls, 0 tokens",
        "sessions: 0 to ask, 0 kept: about 0 calls, 0 tokens",
        "files and sessions left for later runs: 3 (agent.summaries)",
        "wise:4b would usually get about 21 calls, 84k tokens; the limits allow 280 calls, 2800k tokens",
    ]


def test_an_estimate_in_json_has_every_figure(cli: Cli) -> None:
    told = json.loads(cli("/home/ada/shop", "--estimate", "--json").stdout)
    assert (told["questions"]["asked"], told["later"], told["mostCalls"]) == (7, 3, 280)
