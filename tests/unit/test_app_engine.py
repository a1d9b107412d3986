"""The engine keeps itself in order: what a search finds broken is mended without waiting for the next message."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from tests.make_opencode import JsonStore, session, text, user
from tests.unit.test_ingest_upkeep import Hashed


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    made = JsonStore(tmp_path / "oc")
    for number in range(30):
        made.session(session(f"ses_{number:02}"))
        message = user(f"msg_{number:02}", f"ses_{number:02}")
        made.message(
            message,
            text(f"prt_{number:02}", f"msg_{number:02}", f"ses_{number:02}", f"apples number {number} token{number}x"),
        )
    return made


@pytest.fixture
def engine(store: JsonStore, tmp_path: Path) -> Iterator[Engine]:
    tables = {"opencode": {"data_dir": str(store.storage.parent)}, "archive": {"dir": str(tmp_path / "a")}}
    model = Hashed()
    with Engine(msgspec.convert(tables, config.Config), embedder=lambda: (model, "a test")) as opened:
        opened.index(lambda _: None)
        yield opened


def semantic_hits(engine: Engine) -> int:
    return len(engine.search("apples", mode="semantic", limit=50)["hits"])


def test_a_semantic_index_that_a_search_finds_broken_is_rebuilt_with_nothing_new_to_embed(engine: Engine) -> None:
    assert semantic_hits(engine) == 30
    index = engine.upkeep.semantic
    assert index is not None
    index.close()
