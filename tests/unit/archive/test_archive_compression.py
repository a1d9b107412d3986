"""Values are compressed one by one: each comes back as it was put, from archives of any age, or is called damaged."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from daemon import records
from daemon.archive import SCHEMA, Archive
from daemon.archive.store import Store, plyvel  # type: ignore[attr-defined]
from daemon.archive.store.bodies import PIECE, Body
from daemon.archive.store.compression import Compression, DamagedError
from daemon.errors import ArchiveCorrupt

PREFIXES = [b"msg:", b"part:", b"file:", b"obj:", b"body:z1:", b"body:1:", b"vec:", b"out:lexical:", b"cur:"]


def record(number: int) -> bytes:
    """One like the others, with a name of its own."""
    return records.dumps(
        {
            "id": f"prt_{number:020x}",
            "type": "tool",
            "state": {"status": "completed", "output": f"line {number} of it\n" * 3},
        }
    )


def trained() -> Compression:
    compression = Compression({})
    learned = compression.learn((b"part:%d" % n, record(n)) for n in range(20_000))
    assert learned is not None
    compression.use(*learned)
    return compression


TRAINED = trained()


@given(
    prefix=st.sampled_from(PREFIXES),
    value=st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda raw: b"\0z" + raw),
        st.builds(lambda n, raw: record(n) + raw, st.integers(0, 99), st.binary(max_size=9)),
        st.builds(lambda n, raw: TRAINED.pack(b"part:", record(n)) + raw, st.integers(0, 99), st.binary(max_size=9)),
    ),
)
def test_every_value_comes_back_as_it_was_put(prefix: bytes, value: bytes) -> None:
    for compression in (TRAINED, Compression({})):
        assert compression.unpack(prefix + b"x", compression.pack(prefix + b"x", value)) == value


def test_records_that_are_alike_shrink_to_a_small_part() -> None:
    for compression, most in ((Compression({}), 0.75), (TRAINED, 0.3)):
        packed = [len(compression.pack(b"part:x", record(n))) for n in range(100)]
        assert sum(packed) < most * sum(len(record(n)) for n in range(100))


def test_a_value_that_does_not_decompress_is_damage() -> None:
    packed = TRAINED.pack(b"part:x", record(1))
    for damaged in (packed[:-3], packed[:6], b"\0z", b"\0z\x09" + packed[3:], packed[:6] + b"not a frame"):
        with pytest.raises(DamagedError):
            TRAINED.unpack(b"part:x", damaged)
    with pytest.raises(DamagedError, match=r"dictionary \d+, which is gone"):
        Compression({}).unpack(b"part:x", packed)


def test_values_of_which_nothing_can_be_learned_go_without_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise zstandard.ZstdError("cannot train dict: Src size is incorrect")

    monkeypatch.setattr(zstandard, "train_dictionary", fail)
    compression = Compression({})
    assert compression.learn([(b"part:x", b"y" * (8 << 10))] * 300) is None
    assert compression.unpack(b"part:x", compression.pack(b"part:x", record(1))) == record(1)


# -- in an archive ---------------------------------------------------------------------------------------------------


def fill(directory: Path, numbers: range) -> None:
    with Archive(directory) as archive:
        batch = archive.batch()
        for number in numbers:
            batch.put(b"part:msg:%d" % number, record(number))
        archive.commit(batch)


def stored(directory: Path) -> dict[bytes, bytes]:
    """What LevelDB holds."""
    database = plyvel.DB(str(directory / "leveldb"))
    rows = dict(database)
    database.close()
    (directory / "leveldb.made").unlink(missing_ok=True)  # an archive that was only looked at has other files now
    return rows


def change(directory: Path, **changes: bytes | None) -> None:
    database = plyvel.DB(str(directory / "leveldb"), create_if_missing=True)
    for key, value in changes.items():
        database.delete(key.encode()) if value is None else database.put(key.encode(), value)
    database.close()
    (directory / "leveldb.made").unlink(missing_ok=True)


def copies(directory: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The dictionaries in LevelDB and in files, by number."""
    in_leveldb = {k.decode().removeprefix("dict:"): v for k, v in stored(directory).items() if k.startswith(b"dict:")}
    in_files = {file.name.partition("-")[0]: file.read_bytes() for file in (directory / "dictionaries").iterdir()}
    return in_leveldb, in_files


def test_the_dictionary_is_trained_once_and_kept_twice(tmp_path: Path) -> None:
    fill(tmp_path, range(20_000))
    first, again = copies(tmp_path)
    assert len(first) == 1
    assert first == again
    fill(tmp_path, range(20_000, 40_000))
    assert copies(tmp_path) == (first, first)
    packed = [value for key, value in stored(tmp_path).items() if key.startswith(b"part:")]
    assert sum(map(len, packed)) < 0.35 * 40_000 * len(record(0))
    with Archive(tmp_path) as archive:
        assert [archive._store.get(b"part:msg:%d" % n) for n in (0, 39_999)] == [record(0), record(39_999)]


@pytest.mark.parametrize("lost", ["in LevelDB", "file", "file damaged"])
def test_one_copy_of_the_dictionary_is_enough_and_the_other_is_made_again(tmp_path: Path, lost: str) -> None:
    fill(tmp_path, range(20_000))
    both = copies(tmp_path)
    (file,) = (tmp_path / "dictionaries").iterdir()
    if lost == "in LevelDB":
        change(tmp_path, **{f"dict:{number}": None for number in both[0]})
    elif lost == "file":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    with Archive(tmp_path) as archive:
        assert archive._store.get(b"part:msg:7") == record(7)
    assert copies(tmp_path) == both


def test_without_its_dictionary_a_value_is_called_damaged(tmp_path: Path) -> None:
    fill(tmp_path, range(20_000))
    in_leveldb, _ = copies(tmp_path)
    change(tmp_path, **{f"dict:{number}": None for number in in_leveldb})
    for file in (tmp_path / "dictionaries").iterdir():
        file.unlink()
    with Archive(tmp_path) as archive, pytest.raises(ArchiveCorrupt, match=r"dictionary \d+, which is gone"):
        archive._store.get(b"part:msg:7")


def test_a_new_archive_in_the_place_of_one_uses_the_dictionary_that_is_left(tmp_path: Path) -> None:
    fill(tmp_path, range(20_000))
    both = copies(tmp_path)
    shutil.rmtree(tmp_path / "leveldb")
    fill(tmp_path, range(5))
    assert copies(tmp_path) == both
    with Archive(tmp_path) as archive:
        assert archive._store.get(b"part:msg:4") == record(4)


def test_a_damaged_value_is_called_so_by_every_way_to_read_it(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    change(tmp_path, **{"part:msg:1": b"\0z\0\0\0\0no frame"})
    with Archive(tmp_path) as archive:
        for read in (archive._store.get, lambda key: dict(archive._store.scan(key)), archive.batch().get):
            with pytest.raises(ArchiveCorrupt, match="cannot be decompressed"):
                read(b"part:msg:1")


def test_an_archive_of_schema_1_is_read_on_and_loses_its_replays(tmp_path: Path) -> None:
    """Its values stand as they are, the pieces of a large one too, even one that looks like what is compressed now."""
    large = b"b" + bytes(PIECE - 1) + TRAINED.pack(b"part:x", record(5))
    old = Body.of(large)._replace(name="0123456789abcdef")
    rows = {b"meta:schema": b"1", b"obj:big": old.reference(), **dict(old.cut(large))}
    for number in range(12_000):
        rows |= {b"msg:msg_%d:raw" % number: record(number), b"msg:msg_%d:ollama" % number: b"[]"}
    change(tmp_path, **{key.decode(): value for key, value in rows.items()})
    with Archive(tmp_path) as archive:
        assert archive._store.get(b"obj:big") == large
        assert archive._store.get(b"msg:msg_11999:raw") == record(11_999)
        assert sum(1 for _ in archive._store.keys(b"msg:")) == 12_000
        assert archive._store.get(b"meta:schema") == b"%d" % SCHEMA


def test_threads_read_and_write_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    wrong: list[int] = []

    def work(first: int) -> None:
        for number in range(first, first + 1500):
            store.write({b"part:%d" % number: record(number)})
            if store.get(b"part:%d" % number) != record(number):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(10_000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert wrong == []
