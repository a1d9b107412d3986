"""What is recorded of a path is in no file and at no door once it is forgotten; the rest of its messages stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import keys
from daemon.errors import BadRequest
from tests.support.servers.plain_service import PlainService
from tests.support.stores.leveldb_files import texts
from tests.support.stores.make_opencode import T0, assistant, text, tool
from tests.support.stores.marked_path import FILE_KINDS, MarkedPath
from tests.support.stores.marked_sessions import KEPT_WORD, MARK, done, mark
from tests.unit.app.test_app_forget import opened, rows


def found(directory: Path) -> set[str]:
    """Which marks stand in the files of an archive."""
    return {kind for _, raw in texts(directory) for kind in FILE_KINDS if mark(kind).encode() in raw}


def where(directory: Path) -> set[str]:
    """In which files and keys a mark stands."""
    return {place for place, raw in texts(directory) if MARK.encode() in raw}


@pytest.fixture
def marked(tmp_path: Path) -> MarkedPath:
    return MarkedPath(tmp_path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def engine(marked: MarkedPath, archive: Path) -> Iterator[PlainService]:
    with opened(marked.data, archive) as engine:
        engine.index()
        marked.change()
        engine.index()
        yield engine


def test_a_forgotten_path_is_in_no_file(engine: PlainService, marked: MarkedPath, archive: Path) -> None:
    before = rows(engine)
    answer = engine.forget(str(marked.path), confirmed=True)
    assert (answer["forgotten"], answer["path"], answer["sessions"]) == (True, str(marked.path), [])
    assert answer["messages"] == 2
    assert answer["parts"] >= 10
    after = rows(engine)
    ours = (b"msg_f", b"ses_f", b"prt_f", b"obj:", b"spill:")
    assert {k: v for k, v in before.items() if not any(name in k for name in ours)} == {
        k: v for k, v in after.items() if not any(name in k for name in ours)
    }
    engine.close()
    assert where(archive) == set()
    with opened(marked.data, archive) as again:
        again.index()
        assert rows(again) == after
        assert KEPT_WORD in str(again.recall("recall", {"query": KEPT_WORD})["results"])
        assert again.recall("recall", {"query": "answer with", "match": "literal"})["results"]
        assert not again.files(str(marked.path))["files"]
        assert {Path(file["path"]).name for file in again.files(str(marked.folder))["files"]} == {"other.txt"}
        assert again.archive.objects.find(marked.with_file, "vault/other.txt")
        assert not [check for check in again.doctor(full=True)["checks"] if "object" in str(check.get("message"))]
    assert where(archive) == set()


def test_marks_are_in_the_archive_before(engine: PlainService, archive: Path) -> None:
    engine.close()
    assert found(archive) == set(FILE_KINDS)
