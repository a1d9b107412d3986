"""Fixtures of the live tests: every test that uses `binary` runs once for each generation of OpenCode's storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.fetched import NotAvailableError
from tests.live.opencode import install
from tests.live.scripted_model import ScriptedModel
from tests.support.servers.fake_ollama import FakeOllama

JSON_TREE, SQLITE = "1.1.65", "1.18.33"
"""The last version that writes JSON files, and one that writes SQLite."""


@pytest.fixture(scope="session", params=[JSON_TREE, SQLITE])
def binary(request: pytest.FixtureRequest) -> Path:
    """The real OpenCode; skips only where npm or its registry is missing."""
    try:
        return install(request.param)
    except NotAvailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(scope="module")
def quick_embedder() -> Iterator[dict[str, dict[str, Any]]]:
    """Tables for a Daemon whose vectors are of no account here: the built-in model takes most of its processor time."""
    with FakeOllama() as server:
        yield {"embedding": {"provider": "ollama", "model": "embedder", "url": server.url}}
