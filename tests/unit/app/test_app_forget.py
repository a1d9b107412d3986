"""What is forgotten is in no file and at no door, and stays away; everything else is as it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.archive import keys
from daemon.errors import BadRequest
from tests.support.servers.plain_service import PlainService
from tests.support.stores.leveldb_files import texts
from tests.support.stores.marked_sessions import KEPT_WORD, KINDS, MARK, Marked, mark
from tests.unit.ingest.test_ingest_upkeep import Hashed

VOLATILE = (
    b"meta:",
    b"cur:",
    b"out:",
    b"dirty:",
    b"forgot:",
    b"cache:",
    b"exp:",
    b"dict:",
    b"quar:",
    b"view:",
    b"body:",
    b"ahead:",
    b"vec:",
    b"unread:",
    b"want:",
    b"!",
    b"~",
)
"""Begins keys that scans of the same records may write otherwise."""


def opened(marked: Marked, archive: Path) -> PlainService:
    tables = {"opencode": {"data_dir": str(marked.data)}, "archive": {"dir": str(archive)}}
    model = Hashed()
    return PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (model, "a test")))


def rows(engine: Any, besides: tuple[bytes, ...] = VOLATILE) -> dict[bytes, bytes]:
    """What the archive holds, with the content of large values."""
    store = engine.archive._store
    names = [key for key in store.keys(b"") if not key.startswith(besides)]
    return {key: store.get(key) for key in names}


def found(directory: Path) -> set[str]:
    """Where a mark stands in the files of an archive."""
    return {f"{where}: {kind}" for where, raw in texts(directory) for kind in KINDS if mark(kind).encode() in raw}


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    return Marked(tmp_path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def engine(marked: Marked, archive: Path) -> Iterator[PlainService]:
    with opened(marked, archive) as engine:
        engine.index(wait=True)
        marked.change()
        engine.index(wait=True)
        yield engine


def test_marks_are_in_the_archive_before(engine: PlainService, archive: Path) -> None:
    engine.close()
    assert {where.rpartition(" ")[2] for where in found(archive)} == set(KINDS)


def test_a_forgotten_session_is_in_no_file(engine: PlainService, marked: Marked, archive: Path) -> None:
    before = rows(engine)
    answer = engine.forget("ses_gone", confirmed=True)
    assert answer["forgotten"]
    assert {entry["id"] for entry in answer["sessions"]} == {"ses_gone", "ses_agent"}
    after = rows(engine)
    assert {key: before[key] for key in after} == after
    assert not [key for key in after if b"gone" in key or b"agent" in key]
    assert not [key for key in before.keys() - after.keys() if b"_k" in key]
    engine.index(wait=True)
    for _ in range(2):
        assert rows(engine) == after
        engine.close()
        assert found(archive) == set()
        engine = opened(marked, archive)
        engine.index(wait=True)
    engine.close()
