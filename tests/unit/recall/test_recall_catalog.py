"""What is kept of sessions in memory is what the archive holds, whenever it is read and whatever becomes of a write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt, DiskFull
from daemon.model import Session
from daemon.recall.catalog import Catalog

SECRET = {"blue-tulip-94": "password"}


class Watched(Store):
    """A reader comes before and after each write; a write fails before or after it reached the log."""

    reader: Callable[[], object] = staticmethod(lambda: None)
    fails = ""

    def write(self, changes: Mapping[bytes, bytes | None], fresh: Collection[bytes] = ()) -> None:
        self.reader()
        if self.fails != "unwritten":
            super().write(changes, fresh)
        self.reader()
        if self.fails:
            self.has_failed = True
            raise DiskFull("No space left on device")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setattr("daemon.archive.Store", Watched)
    with Archive(tmp_path / "archive") as opened:
        yield opened


def begin(archive: Archive, title: str, session_id: str = "ses_1") -> None:
    batch = archive.batch()
    batch.session(Session(session_id, "prj", "/work", title, 1, 1, b"{}", version="1.18.33"), "test", 2)
    archive.commit(batch)


def set_aside(archive: Archive, reason: str) -> None:
    batch = archive.batch()
    batch.quarantine("test", "message msg_1", {"reason": reason, "time": 1})
    archive.commit(batch)


def add_secret(archive: Archive) -> None:
    archive.secrets.add("ses_1", SECRET)


def titles(catalog: Catalog) -> list[str]:
    return [row.title for row in catalog.rows().values()]


def reasons(catalog: Catalog) -> list[str]:
    return [reason for _, reason in catalog.quarantine.summary().samples]


KINDS: list[tuple[Callable[[Archive], None], Callable[[Archive, Catalog], object], object]] = [
    (lambda archive: begin(archive, "new"), lambda _, catalog: titles(catalog), ["new"]),
    (lambda archive: set_aside(archive, "torn"), lambda _, catalog: reasons(catalog), ["torn"]),
    (add_secret, lambda archive, _: archive.secrets.of("ses_1"), SECRET),
]
WHAT = ["session", "could not be read", "secret"]


@pytest.mark.parametrize(("write", "read", "expected"), KINDS, ids=WHAT)
def test_who_reads_in_the_midst_of_a_write_has_it_afterwards(archive: Archive, write, read, expected):
    catalog = Catalog(archive)
    read(archive, catalog)
    archive._store.reader = lambda: read(archive, catalog)  # type: ignore[attr-defined]
    write(archive)
    assert read(archive, catalog) == expected


@pytest.mark.parametrize("fails", ["unwritten", "written"])
@pytest.mark.parametrize(("write", "read", "expected"), KINDS, ids=WHAT)
def test_of_a_write_that_failed_nothing_is_told_until_it_is_there(archive: Archive, write, read, expected, fails: str):
    catalog = Catalog(archive)
    before = read(archive, catalog)
    archive._store.fails = fails  # type: ignore[attr-defined]
    told = archive.sessions_touched(), archive.quarantine_changes
    for _ in range(2):
        with pytest.raises(DiskFull):
            write(archive)
    assert (archive.sessions_touched(), archive.quarantine_changes) == told
    assert fails == "written" or read(archive, catalog) == before
    archive._store.fails = ""  # type: ignore[attr-defined]
    archive.mend()
    assert read(archive, catalog) == (before if fails == "unwritten" else expected)
    write(archive)
    assert read(archive, catalog) == expected


def test_a_secret_that_was_read_while_it_was_written_is_not_kept_as_it_was(archive: Archive):
    """The reader has the old record in its hands when the new one is written."""
    stored = archive._store.get

    def read_late(key: bytes) -> bytes | None:
        before = stored(key)
        archive._store.get = stored  # type: ignore[method-assign]
        add_secret(archive)
        return before

    archive._store.get = read_late  # type: ignore[method-assign]
    assert archive.secrets.of("ses_1") == {}
    assert archive.secrets.of("ses_1") == SECRET


def test_forgotten_secrets_are_not_kept_by_who_read_them_meanwhile(archive: Archive):
    add_secret(archive)
    archive.secrets.reread()
    archive._store.reader = lambda: archive.secrets.of("ses_1")  # type: ignore[attr-defined]
    archive.secrets.forget()
    assert archive.secrets.of("ses_1") == {}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_reading_that_failed_leaves_no_session_out(archive: Archive, monkeypatch: pytest.MonkeyPatch, is_first: bool):
    begin(archive, "there")
    catalog = Catalog(archive)
    if not is_first:
        catalog.rows()
        begin(archive, "also", "ses_2")

    def refuse(session_id: str) -> None:
        raise ArchiveCorrupt(f"{session_id}: the disk does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(archive, "session", refuse)
        with pytest.raises(ArchiveCorrupt):
            catalog.rows()
    assert titles(catalog) == (["there"] if is_first else ["there", "also"])


def test_a_session_that_was_dropped_is_listed_no_more(archive: Archive):
    begin(archive, "one of our own")
    catalog = Catalog(archive)
    assert titles(catalog) == ["one of our own"]
    batch = archive.batch()
    batch.drop_session("ses_1")
    archive.commit(batch)
    assert titles(catalog) == []
