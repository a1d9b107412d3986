"""Fixtures of the end-to-end tests: daemons that never outlive their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.daemon_process import Daemon


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Where OpenCode keeps its records; not made yet."""
    return tmp_path / "opencode"


@pytest.fixture
def make_daemon(tmp_path: Path, data_dir: Path) -> Iterator[Callable[..., Daemon]]:
    """`make_daemon(...)`: a daemon over `data_dir`, not started; see Daemon for what it takes."""
    with ExitStack() as stack:
        yield lambda **more: stack.enter_context(Daemon(data_dir, tmp_path / "ours", **more))


@pytest.fixture
def daemon(make_daemon: Callable[..., Any]) -> Daemon:
    """One with nothing special about it, not started."""
    made: Daemon = make_daemon()
    return made
