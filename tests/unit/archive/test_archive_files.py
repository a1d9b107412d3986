"""File edits by path, kept end states and aliases: what was put comes back, in order, and only what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.model import FileEdit, Launch, Operation
from tests.support.stores.replaying import archived_session, at, copy, edit, event, keep, move, remove, state, write


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def _read(archive: Archive) -> None:
    """All that is outdated has been made."""
    marks = archive.files.outdated()
    archive.commit_views([], {}, marks)


def test_edits_come_back_as_they_were_put_in_time_order(archive: Archive) -> None:
    edits = [
        write(3, "/w/a", "three\ud7ff\U0001f600"),
        edit(1, "/w/a", "x", "y", hunks=(("@@", ("a",), ("b",), True),), started=at(0), until=at(9), version=""),
        state(2, "/w/a", None, blob="ab" * 20, note="n"),
        event(
            2.5,
            Operation.RUN,
            "/w/a",
            into=None,
            recursive=True,
            other="/o",
            number=7,
            launch=Launch("sh", "d", ("x", None), 2, home="/h"),
        ),
    ]
    keep(archive, edits)
    assert archive.files.edits("/w/a") == sorted(edits, key=lambda one: one.time)


def test_a_path_is_not_mixed_up_with_one_that_begins_alike(archive: Archive) -> None:
    for path in ("/w/a", "/w/a/b", "/w/ab", "/w/a b", "/w/a\nb", "/w/ä", "/w/a:b", "/w/a%00b", "/w"):
        keep(archive, [write(1, path, path, message_id=f"m {path}", part_id=f"p {path}")])
        assert [one.path for one in archive.files.edits(path)] == [path]
    assert sorted(one.path for one in archive.files.beneath("/w/a")) == ["/w/a/b"]
    assert sorted(archive.files.paths("/w/a")) == ["/w/a", "/w/a/b"]
    assert "/w/ab" in list(archive.files.paths("/w"))
    assert list(archive.files.paths("/w/ä")) == ["/w/ä"]
    assert len(list(archive.files.paths("/"))) == 9


def test_a_name_with_a_nul_byte_keeps_it(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a\0b", "x")])
    assert [one.path for one in archive.files.edits("/w/a\0b")] == ["/w/a\0b"]
    assert archive.files.edits("/w/a") == []
    assert list(archive.files.paths("/w")) == ["/w/a\0b"]


def test_a_move_or_copy_stands_at_both_ends_and_is_outdated_there(archive: Archive) -> None:
    keep(archive, [move(1, "/w/a", "/o/b"), copy(2, "/w/c", "/o/d"), move(3, "/w/e", "/w/e")])
    for path in ("/w/a", "/o/b", "/w/c", "/o/d", "/w/e"):
        assert len(archive.files.edits(path)) == 1, path
    assert set(archive.files.outdated()) == {"/w/a", "/o/b", "/w/c", "/o/d", "/w/e"}


def test_what_a_message_no_longer_says_is_gone_and_the_path_outdated(archive: Archive) -> None:
    first = [write(1, "/w/a", "1", message_id="m"), write(1.5, "/w/b", "1", message_id="m")]
    keep(archive, first)
    _read(archive)
    keep(archive, [replace(first[0], content="2")])
    assert [one.content for one in archive.files.edits("/w/a")] == ["2"]
    assert archive.files.edits("/w/b") == []
    assert set(archive.files.outdated()) == {"/w/a", "/w/b"}


def test_the_same_said_again_outdates_nothing(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1")])
    _read(archive)
    keep(archive, [write(1, "/w/a", "1")])
    assert archive.files.outdated() == {}


def test_a_removed_message_and_a_new_revert_outdate_what_they_touched(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1", message_id="m"), write(1, "/w/b", "1", message_id="n")])
    _read(archive)
    remove(archive, "m", now=at(9))
    assert set(archive.files.outdated()) == {"/w/a"}
    _read(archive)
    remove(archive, "m", now=at(10))
    assert archive.files.outdated() == {}
    for record in ({"revert": {"messageID": "n"}}, {}):
        batch = archive.batch()
        batch.session(archived_session(record=record), "s", 1)
        archive.commit(batch)
        assert set(archive.files.outdated()) == {"/w/a", "/w/b"}
        _read(archive)
    batch = archive.batch()
    assert batch.session_extra("ses_1", {"reverts": {"j": []}}, [])
    archive.commit(batch)
    assert set(archive.files.outdated()) == {"/w/a", "/w/b"}


def test_a_sessions_own_edits_are_replaced_with_it(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1")])
    for path in ("/w/x", "/w/y"):
        batch = archive.batch()
        assert batch.session_extra("ses_1", {"diffs": [path]}, [state(2, path, "s", message_id="")])
        archive.commit(batch)
        _read(archive)
    assert archive.files.edits("/w/x") == []
    assert len(archive.files.edits("/w/y")) == 1
    batch = archive.batch()
    assert not batch.session_extra("ses_1", {"diffs": ["/w/y"]}, [])
    archive.commit(batch)
    assert archive.files.session_extra("ses_1")["diffs"] == ["/w/y"]
    assert archive.files.session_extra("none") == {}


def test_a_mark_that_was_renewed_while_it_was_looked_at_stays(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1"), write(1, "/w/b", "1")])
    marks = archive.files.outdated()
    keep(archive, [write(2, "/w/a", "2")])
    archive.commit_views(["/w"], {"/w/a": b"row"}, marks)
    assert set(archive.files.outdated()) == {"/w/a"}


def test_views_are_replaced_beneath_their_prefixes_only(archive: Archive) -> None:
    archive.commit_views(["/"], {path: path.encode() for path in ("/w/a", "/w/a/b", "/w/ab", "/o/x")}, {})
    assert list(archive.files.views("/w/a")) == [b"/w/a", b"/w/a/b"]
    assert list(archive.files.views("/w/a/")) == [b"/w/a", b"/w/a/b"]
    archive.commit_views(["/w/a"], {"/w/a/c": b"new"}, {})
    assert list(archive.files.views("/")) == [b"/o/x", b"new", b"/w/ab"]
    archive.commit_views(["/"], {}, {})
    assert list(archive.files.views("/")) == []


def test_an_alias_outdates_everything_since_evidence_names_folders(archive: Archive) -> None:
    batch = archive.batch()
    archive.files.set_alias(batch, "/old", "/new ü")
    archive.commit(batch)
    assert archive.files.aliases() == {"/old": "/new ü"}
    assert set(archive.files.outdated()) == {"/"}
    _read(archive)
    batch = archive.batch()
    archive.files.set_alias(batch, "/old", None)
    archive.commit(batch)
    assert archive.files.aliases() == {}
    assert set(archive.files.outdated()) == {"/"}


def test_edits_of_before_the_epoch_and_with_equal_times_keep_apart(archive: Archive) -> None:
    edits: list[FileEdit] = [replace(write(1, "/w/a", str(n)), part_id="p", number=n) for n in range(3)]
    early = replace(write(1, "/w/a", "early"), time=-5, part_id="q")
    keep(archive, [*edits, early])
    assert [one.content for one in archive.files.edits("/w/a")] == ["early", "0", "1", "2"]
