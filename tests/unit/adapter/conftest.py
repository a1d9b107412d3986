"""The adapter in front of a scripted OpenCode server, and a plain client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon.adapter import Adapter
from tests.support.servers.adapter_opencode import Client, ScriptedOpenCode, adapter


@pytest.fixture
def opencode() -> Iterator[ScriptedOpenCode]:
    with ScriptedOpenCode() as server:
        yield server


@pytest.fixture
def served(opencode: ScriptedOpenCode) -> Iterator[Adapter]:
    with adapter(opencode.url) as running:
        yield running


@pytest.fixture
def client(served: Adapter) -> Iterator[Client]:
    with Client(served.url) as plain:
        yield plain
