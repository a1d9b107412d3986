"""The unit tests: what they all do without a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from daemon import worker as workers
from daemon.embed import builtin
from daemon.worker import Worker
from tests.support.processes import forks

LONGEST_NAME = 200
_START = workers.start


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value gives a test its beginning and its length as a name; whole it made names of up to 8 MB."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_NAME:
        return f"{val[:50]!r} and {len(val) - 50} more"
    return None


@pytest.fixture(scope="session", autouse=True)
def _forked_workers() -> Iterator[None]:
    with forks.starting_workers():
        yield


@pytest.fixture(scope="session", autouse=True)
def _model_loaded_once() -> Iterator[None]:
    """The built-in model stays in memory from test to test, where its files and what is known of them are the same."""
    load, loaded = builtin.Builtin._load, dict[object, dict[str, object]]()

    def once(self: builtin.Builtin) -> None:
        if self._model_dir is not None:
            load(self)
            return
        key = (self.spec, builtin.WEIGHTS_SHA256, builtin.TOKENIZER_SHA256)
        if key not in loaded:
            load(self)
            loaded[key] = {name: vars(self)[name] for name in ("_inputs", "_output", "_tokenizer", "_session")}
        vars(self).update(loaded[key])

    with mock.patch.object(builtin.Builtin, "_load", once):
        yield


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker for this test."""
    made = Worker()
    yield made
    made.end()


@pytest.fixture
def worker_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers as the daemon starts them: a Python of its own."""
    monkeypatch.setattr(workers, "start", _START)
