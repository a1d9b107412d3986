"""The unit tests: what they all do without a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from daemon.index.semantic import health
from tests.support.processes import forks


@pytest.fixture(scope="session", autouse=True)
def _forked_guard() -> Iterator[None]:
    with forks.guarding():
        yield


@pytest.fixture
def guard_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard as the daemon starts it: a Python of its own."""
    monkeypatch.setattr(health, "subprocess", subprocess)
