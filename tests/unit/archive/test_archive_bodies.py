"""Large values are written ahead in pieces: commits stay small, and a reader sees the old value or the new one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.archive.store import Store
from daemon.archive.store.bodies import Body
from daemon.model import LARGE, Parts
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database
from daemon.opencode.json_tree import JsonTree
from daemon.transcript.replay import replay
from tests.support.stores import make_opencode
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import JsonStore, assistant, session, text

MB = 1 << 20
KEY = b"obj:x"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def put(archive: Archive, *values: bytes) -> None:
    for value in values:
        batch = archive.batch()
        batch.put(KEY, value)
        archive.commit(batch)


def bodies(archive: Archive) -> int:
    return sum(1 for prefix in (b"body:", b"ahead:") for _ in archive._store.keys(prefix))


def large(letter: str, mb: float = 2.5) -> bytes:
    return letter.encode() * int(mb * MB)


def test_a_large_value_is_read_as_it_was_written(archive: Archive) -> None:
    for size in (MB, MB + 1, 2 * MB, 5 * MB + 3):
        put(archive, b"x" * size)
        assert archive._store.get(KEY) == b"x" * size
        assert dict(archive._store.scan(KEY)) == {KEY: b"x" * size}


def test_a_batch_reads_its_own_large_values(archive: Archive) -> None:
    batch = archive.batch()
    assert batch.put(KEY, large("a"))
    assert batch.get(KEY) == large("a")
    assert not batch.put(KEY, large("a"))
    assert archive._store.get(KEY) is None
    archive.commit(batch)
    assert not archive.batch().put(KEY, large("a"))


@pytest.mark.parametrize("after", [b"small", None, large("b", 7)])
def test_pieces_go_with_the_value_that_had_them(archive: Archive, after: bytes | None) -> None:
    put(archive, large("a"))
    batch = archive.batch()
    batch.delete(KEY) if after is None else batch.put(KEY, after)
    archive.commit(batch)
    assert archive._store.get(KEY) == after
    assert bodies(archive) == (7 if after is not None and len(after) > MB else 0)


def test_a_value_put_twice_in_a_batch_leaves_one_body(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        batch = archive.batch()
        batch.put(KEY, large("a", 6))
        batch.put(KEY, large("b"))
        archive.commit(batch)
        assert archive._store.get(KEY) == large("b")
    with Archive(tmp_path / "archive") as archive:
        assert archive._store.get(KEY) == large("b")
        assert bodies(archive) == 3


def test_a_commit_that_never_came_leaves_nothing(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        put(archive, large("a"))
        batch = archive.batch()
        batch.put(KEY, large("b", 9))
        assert bodies(archive) > 3
    with Archive(tmp_path / "archive") as archive:
        assert archive._store.get(KEY) == large("a")
        assert bodies(archive) == 3


def test_a_value_whose_pieces_are_gone_is_an_error(archive: Archive) -> None:
    put(archive, large("a"))
    body = Body.parse(archive._store.stored(KEY))
    assert body is not None
    archive._store.write({body.pieces()[1]: None})
    with pytest.raises(Exception, match="pieces of the value"):
        archive._store.get(KEY)


def _fill(store: Any, parts: int, size: int) -> None:
    said = [text(f"prt_{n:04}", "msg_1", "ses_1", f"part {n} " + chr(97 + n % 26) * size) for n in range(parts)]
    store.session(session("ses_1"))
    store.message(assistant("msg_1", "ses_1"), *said)


def sources(tmp_path: Path, parts: int, size: int) -> Iterator[Any]:
    tree = JsonStore(tmp_path / "tree")
    _fill(tree, parts, size)
    yield JsonTree(tree.storage)
    base = make_opencode.Database(tmp_path / "opencode.db")
    _fill(base, parts, size)
    yield Database(Connection(tmp_path / "opencode.db"))


@pytest.mark.parametrize(("parts", "size"), [(3, 5 * MB), (40, MB // 2), (1200, 12_000)])
def test_no_write_is_large_however_large_a_message_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int, size: int
) -> None:
    """Each write of LevelDB is one entry of its log, which a start has to replay."""
    sizes: list[int] = []
    write = Store.write

    def measured(self: Store, changes: Mapping[bytes, bytes | None], fresh: Collection[bytes] = ()) -> None:
        sizes.append(sum(len(key) + len(value or b"") for key, value in changes.items()))
        write(self, changes, fresh)

    monkeypatch.setattr(Store, "write", measured)
    for number, source in enumerate(sources(tmp_path, parts, size)):
        with Archive(tmp_path / f"archive{number}") as archive:
            intake_of(archive, quiet_s=0, free_mb=0).scan(source, patient=False)
            message = archive.message("msg_1")
            assert message is not None
            assert isinstance(message.parts, Parts)
            assert [part.data["text"] for part in message.parts] == [
                f"part {n} " + chr(97 + n % 26) * size for n in range(parts)
            ]
            assert [json.loads(part.raw)["id"] for part in message.parts] == list(message.parts.ids)
            assert len(replay(message)) == parts
        assert max(sizes) < LARGE + 2 * MB, max(sizes)


def test_a_large_message_read_again_changes_nothing(tmp_path: Path) -> None:
    for number, source in enumerate(sources(tmp_path, 3, 4 * MB)):
        with Archive(tmp_path / f"archive{number}") as archive:
            intake = intake_of(archive, quiet_s=0, free_mb=0)
            assert intake.scan(source, patient=False).changed == 2
            archive.done(archive.outbox("lexical", 9))
            assert intake.scan(source, patient=False).changed == 0
            assert archive.waiting("lexical") == 0


def test_what_a_large_message_loses_at_its_source_stays(tmp_path: Path) -> None:
    tree = JsonStore(tmp_path / "tree")
    _fill(tree, 4, 3 * MB)
    with Archive(tmp_path / "archive") as archive:
        intake = intake_of(archive, quiet_s=0, free_mb=0)
        intake.scan(JsonTree(tree.storage), patient=False)
        (tree.storage / "part/msg_1/prt_0001.json").unlink()
        tree.part(text("prt_0002", "msg_1", "ses_1", ""))
        tree.part(text("prt_0004", "msg_1", "ses_1", "new"))
        intake.scan(JsonTree(tree.storage), patient=False)
        message = archive.message("msg_1")
        assert message is not None
        assert [(part.id, len(part.data["text"])) for part in message.parts] == [
            *((f"prt_{n:04}", 3 * MB + len(f"part {n} ")) for n in range(4)),
            ("prt_0004", 3),
        ]
        assert archive.gone("msg_1") == {"prt_0001"}
