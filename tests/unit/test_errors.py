"""The error tree: what catches an error and goes on may catch it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import daemon
from daemon import errors
from daemon.errors import Retry, Skip, Stop

ROOT = Path(daemon.__file__).parent
NAMED = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
ENDS = {
    "adapter/delivery.py": "a request to the adapter ends with it",
    "adapter/routes.py": "a request to the adapter ends with it",
    "app/__init__.py": "a reload ends; opening the archive with the former configuration raises what still holds",
    "app/daemon.py": "the service ends, or a reload does",
    "app/loops.py": "the service ends",
    "cli/__init__.py": "the command ends",
    "cli/subcommands/doctor.py": "it becomes a row of the report, with which the command ends",
    "cli/subcommands/service_checks.py": "it becomes a row of the report, with which the command ends",
    "cli/subcommands/config.py": "it is listed among the mistakes, with which the command ends",
    "doctor/rows.py": "it becomes a row of the report; the other checks look at other things",
    "mcp/__init__.py": "the call ends",
    "web/runs.py": "a run that a browser asked for ends with it, and its page says so",
    "worker.py": "a call of a child process ends with it, which the parent raises again",
}
"""Where a Stop arrives: what it ends."""


def handlers(path: Path) -> list[ast.ExceptHandler]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ExceptHandler)]


def caught(handler: ast.ExceptHandler) -> list[type]:
    names = [node.id for node in ast.walk(handler.type or ast.Tuple([])) if isinstance(node, ast.Name)]
    return [NAMED[name] for name in names if name in NAMED]


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise)


def test_no_handler_catches_a_stop_and_goes_on():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        for handler in handlers(path):
            is_stop = any(issubclass(kind, Stop) or issubclass(Stop, kind) for kind in caught(handler))
            if is_stop and not raises_again(handler) and path.relative_to(ROOT).as_posix() not in ENDS:
                wrong.append(f"{path.relative_to(ROOT)}:{handler.lineno}")
    assert not wrong, f"these catch a Stop: catch Retry and Skip instead, or end: {wrong}"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_each_error_says_retry_skip_or_stop(name):
    kind = NAMED[name]
    if kind is errors.ReconstituteError:
        return
    assert sum(issubclass(kind, what) for what in (Retry, Skip, Stop)) == 1
    assert f" {name} " in (errors.__doc__ or "")


@pytest.mark.parametrize("place", sorted(ENDS))
def test_every_place_named_as_an_end_still_catches_a_stop(place):
    kinds = {kind for handler in handlers(ROOT / place) for kind in caught(handler)}
    assert any(issubclass(kind, Stop) or issubclass(Stop, kind) for kind in kinds)
