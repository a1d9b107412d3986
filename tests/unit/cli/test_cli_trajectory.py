"""``reconstitute trajectory``: what is listed and shown, and what is said where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daemon.app.calls.runs import RunCalls
from daemon.archive import Archive
from daemon.cli.settings import NOTHING
from daemon.cli.subcommands.path import trajectory as command
from daemon.model import OllamaMessage
from daemon.reconstitute.agent.trajectory import Trajectory

SHOP, TILL, EMPTY = "/home/dev/shop", "/home/dev/till", "/home/dev/empty"
BEGAN = 1_790_000_000_000
SECRET = "ghp_" + "a1B2" * 9
SAID: list[OllamaMessage] = [
    {"role": "system", "content": "You look things up."},
    {"role": "user", "content": f"What is it for? {SECRET}"},
]
KEYS = {"target", "question", "model", "started", "ended", "resumed", "state", "steps", "tokens", "seconds"}

Asked = Callable[..., Result]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as made:
        yield made


@pytest.fixture
def asked(archive: Archive) -> Asked:
    calls: Any = SimpleNamespace()
    calls.archive = archive

    class Service:
        @staticmethod
        def ask(request: Any) -> Any:
            return RunCalls.trajectories(calls, request)

    def ask(*arguments: str) -> Result:
        done = CliRunner().invoke(command, list(arguments), obj=Service, standalone_mode=False)
        assert done.exception is None, done.exception
        return done

    return ask


def put(archive: Archive, target: str, started: int) -> Trajectory:
    made = Trajectory(archive, target, {"id": "purpose", "ask": "What is it for?"}, "m", lambda: started)
    made.save(SAID, steps=2, tokens=100, seconds=1.5)
    return made


def test_a_list_has_no_messages_and_one_of_them_has_all_without_secrets(archive: Archive, asked: Asked):
    put(archive, SHOP, BEGAN).end("the question was answered")
    put(archive, TILL, BEGAN + 5).end("the question was answered")
    listed = json.loads(asked("--json").stdout)["trajectories"]
    assert [each["target"] for each in listed] == [SHOP, TILL]
    assert all(set(each) == KEYS for each in listed)
    (one,) = json.loads(asked("--started", str(BEGAN), "--json").stdout)["trajectories"]
    assert set(one) == KEYS | {"messages"}
    assert [message["role"] for message in one["messages"]] == ["system", "user"]
    shown = asked("--last").stdout
    assert "[1] user" in shown
    assert TILL in shown
    assert SECRET not in shown + json.dumps(one)


def test_a_question_that_waits_says_why(archive: Archive, asked: Asked):
    put(archive, SHOP, BEGAN).wait("http://127.0.0.1:11434: nothing answers")
    assert "waiting: http://127.0.0.1:11434: nothing answers" in asked(SHOP).stdout


def test_where_nothing_was_asked_it_is_said_where_something_was(archive: Archive, asked: Asked):
    none = asked(EMPTY)
    assert (none.return_value, none.stdout) == (NOTHING, "")
    assert "no model has been asked yet" in none.stderr
    put(archive, SHOP, BEGAN)
    none = asked(EMPTY)
    assert (none.return_value, none.stdout) == (NOTHING, "")
    assert f"no model has been asked about {EMPTY}; there are trajectories of {SHOP}" in none.stderr


@pytest.mark.parametrize(("more", "stdout"), [((), ""), (("--json",), '{\n  "trajectories": []\n}\n')])
def test_a_trajectory_that_is_not_there_ends_with_4_and_says_so(
    archive: Archive, asked: Asked, more: tuple[str, ...], stdout: str
):
    put(archive, SHOP, BEGAN)
    wrong = asked("--started", "17", *more)
    assert (wrong.return_value, wrong.stdout) == (NOTHING, stdout)
    assert "17: no trajectory began then" in wrong.stderr
