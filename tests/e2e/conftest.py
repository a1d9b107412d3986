"""Fixtures of the end-to-end tests: daemons that never outlive their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.daemon_process import Daemon
from tests.support.servers.fake_ollama import FakeOllama


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Where OpenCode keeps its records; not made yet."""
    return tmp_path / "opencode"


@pytest.fixture(scope="module")
def quick_embedder() -> Iterator[dict[str, dict[str, Any]]]:
    """Tables for a Daemon whose vectors are of no account: the built-in model takes most of its processor time."""
    with FakeOllama() as server:
        yield {"embedding": {"provider": "ollama", "model": "embedder", "url": server.url}}


@pytest.fixture
def make_daemon(
    tmp_path: Path, data_dir: Path, quick_embedder: dict[str, dict[str, Any]]
) -> Iterator[Callable[..., Daemon]]:
    """`make_daemon(...)`: a daemon over `data_dir` with the quick embedder, not started; see Daemon for what it takes."""
    with ExitStack() as stack:

        def make(*, tables: Mapping[str, Mapping[str, Any]] | None = None, **more: Any) -> Daemon:
            return stack.enter_context(
                Daemon(data_dir, tmp_path / "ours", tables=quick_embedder | dict(tables or {}), **more)
            )

        yield make


@pytest.fixture
def daemon(make_daemon: Callable[..., Any]) -> Daemon:
    """One with nothing special about it, not started."""
    made: Daemon = make_daemon()
    return made
