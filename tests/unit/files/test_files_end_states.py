"""The kept end states always say what the histories say, at the cost of what has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.archive import Archive
from daemon.files import FileHistory, Files, Row
from daemon.files.end_states import EndStates
from daemon.files.replay import World
from daemon.files.trees import above
from daemon.model import FileEdit, Operation
from tests.support.examples import examples
from tests.support.stores.replaying import (
    at,
    copy,
    delete,
    edit,
    event,
    keep,
    keep_tree,
    lines,
    move,
    remove,
    run,
    snapshot,
    unclear,
    write,
)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def expected(archive: Archive) -> dict[str, tuple[object, ...]]:
    """What rows have to say, by histories made anew."""
    found: dict[str, tuple[object, ...]] = {}
    for history in Files(archive).histories("/"):
        last, shown = history.latest, history.last_content
        assert last is not None
        if last.deleted and shown is None and all(r.deleted or not r.evidence for r in history.revisions):
            continue  # a path that a command took away and of which nothing else is known
        found[history.path] = said_of(history)
    return found


def said_of(history: FileHistory) -> tuple[object, ...]:
    """What a row says of this history."""
    last, shown = history.latest, history.last_content
    assert last is not None
    sha256, size = ("", None) if shown is None else (shown.sha256, shown.size)
    changed = 0 if history.last_change is None else history.last_change.time
    return last.grade.value, last.deleted, last.time, changed, last.evidence, sha256, size


def without_evidence(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """The evidence of a move names the other path, which is found where both are replayed."""
    return {path: (*said[:4], *said[5:]) for path, said in found.items()}


def alone(files: Files, paths: Iterable[str]) -> dict[str, tuple[object, ...]]:
    """The same by the history of each path alone."""
    return without_evidence({path: said_of(files.history(path)) for path in paths})


def rows(files: Files, prefix: str = "/") -> dict[str, tuple[object, ...]]:
    return {
        row.path: (row.grade, row.deleted, row.seen, row.time, row.evidence, row.sha256, row.size)
        for row in files.rows(prefix)
    }


_FILES = ["/w/a", "/w/b", "/w/d/x", "/w/d/e/y", "/w/n/x", "/o/x"]
_FOLDERS = ["/w/d", "/w/d/e", "/w/n"]
_LINK_TARGETS = ["../o", "/o", "/o/x", "d", "/w/d/e", "n/x"]
_INTO = st.sampled_from([True, None])
_CONTENTS = st.sampled_from([b"1\n", b"2\n", b"3\n"])
_LINKS = st.sampled_from(_LINK_TARGETS).map(lambda target: (0o120000, target.encode()))


def _tree(scope: str, root: str, files: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """A snapshot whose tree is not archived yet."""
    return scope, root, files


_STEP = st.one_of(
    st.builds(lambda p, c: write(0, p, c), st.sampled_from(_FILES), st.sampled_from(["1\n", "2\n"])),
    st.builds(lambda p: edit(0, p, "1", "2"), st.sampled_from(_FILES)),
    st.builds(lambda p: delete(0, p, recursive=True), st.sampled_from(_FILES + _FOLDERS)),
    st.builds(lambda p, o: move(0, p, o), st.sampled_from(_FILES), st.sampled_from(_FILES)),
    st.builds(lambda p, o, i: move(0, p, o, into=i), st.sampled_from(_FILES), st.sampled_from(_FOLDERS), _INTO),
    st.builds(lambda p, o: move(0, p, o), st.sampled_from(_FOLDERS), st.sampled_from(["/w/m", "/w/k"])),
    st.builds(lambda p, o: copy(0, p, o, recursive=True), st.sampled_from(_FOLDERS), st.sampled_from(["/w/m", "/w/k"])),
    st.builds(lambda p: unclear(0, p), st.sampled_from([*_FILES, *_FOLDERS, "/o"])),
    st.builds(lambda p: event(0, Operation.TOUCH, p), st.sampled_from(_FILES)),
    st.builds(lambda p: run(0, p), st.sampled_from(["/w", "/w/d", "/o", "/w/to"])),
    # Through a link, where one was seen.
    st.builds(
        lambda p, c: write(0, p, c), st.sampled_from(["/w/to", "/w/to/x", "/o/to/x"]), st.sampled_from(["3\n", "4\n"])
    ),
    st.builds(lambda p, o: move(0, p, o), st.sampled_from(["/w/to/x", "/w/to"]), st.sampled_from(["/w/a", "/o/y"])),
    st.builds(
        _tree,
        st.sampled_from(["/w", "/w/d", "/o", "/v"]),
        st.sampled_from(["/w", "/o"]),
        st.fixed_dictionaries(
            {}, optional={"a": _CONTENTS, "d/x": _CONTENTS, "x": _CONTENTS, "n/x": _CONTENTS, "to": _LINKS | _CONTENTS}
        ),
    ),
)
_ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.lists(st.tuples(st.integers(1, 30), _STEP), min_size=1, max_size=4)),
        st.tuples(st.just("look")),
        st.tuples(st.just("remove"), st.integers(1, 30)),
        st.tuples(st.just("alias"), st.sampled_from(_FOLDERS), st.sampled_from(["/w/m", "/w/new", "/v/new"])),
        st.tuples(st.just("unalias"), st.sampled_from(_FOLDERS)),
    ),
    max_size=8,
)


def _made(archive: Archive, told: FileEdit | tuple[str, str, dict[str, Any]]) -> FileEdit:
    if isinstance(told, FileEdit):
        return told
    scope, root, files = told
    return snapshot(0, keep_tree(archive, files), root, scope=scope)


@pytest.mark.timeout(240)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_ACTIONS)
def test_after_any_commits_the_rows_say_what_histories_say(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[Any, ...]]
) -> None:
    with Archive(tmp_path_factory.mktemp("law")) as archive:
        files = Files(archive)
        for number, (kind, *told) in enumerate(actions):
            if kind == "keep":
                keep(archive, [
                    replace(_made(archive, one), time=at(second), message_id=f"msg_{second:03d}", part_id=f"prt_{second:03d}_{number}_{n}")
                    for n, (second, one) in enumerate(told[0])
                ])  # fmt: skip
            elif kind == "remove":
                remove(archive, f"msg_{told[0]:03d}", now=at(100))
            elif kind == "alias":
                files.alias(str(told[0]), str(told[1]))
            elif kind == "unalias":
                files.remove_alias(str(told[0]))
            else:
                files.refresh()
        all_rows = expected(archive)
        assert alone(files, all_rows) == without_evidence(all_rows)
        assert rows(files) == all_rows
        assert files.refresh() == 0
        assert alone(files, all_rows) == without_evidence(all_rows)
        archive.set_note("file rows", "by other rules")
        EndStates(archive, files._world, lot_bytes=1).refresh()
        assert without_evidence(rows(files)) == without_evidence(all_rows)


class _Watching(Files):
    """Remembers what was replayed."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive)
        self.asked: list[list[str]] = []

    def _world(self, *prefixes, **named) -> World:
        self.asked.append(sorted(prefixes[0]))
        return super()._world(*prefixes, **named)


def test_only_what_depends_on_a_change_is_made_anew(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), move(2, "/w/a", "/w/b"), write(3, "/w/c", "1\n"), write(4, "/o/x", "1\n")])
    files = _Watching(archive)
    assert [row.path for row in files.rows()] == ["/o/x", "/w/a", "/w/b", "/w/c"]
    files.asked.clear()
    assert files.refresh() == 0
    assert files.asked == []
    keep(archive, [edit(5, "/w/c", "1", "2")])
    files.refresh()
    assert files.asked == [["/w/c"]]
    keep(archive, [edit(1.5, "/w/a", "1", "2")])
    files.asked.clear()
    files.refresh()
    assert files.asked == [["/w/a", "/w/b"]]
    assert rows(files) == expected(archive)


def test_a_change_of_a_folder_reaches_what_was_moved_out_of_it(archive: Archive) -> None:
    keep(archive, [write(1, "/w/d/x", "1\n"), move(3, "/w/d", "/w/n"), move(4, "/w/n/x", "/o/x")])
    files = Files(archive)
    files.refresh()
    keep(archive, [unclear(2, "/w/d")])
    assert {row.path: row.grade for row in files.rows()}["/o/x"] == "stale"
    assert rows(files) == expected(archive)


def test_a_tree_reaches_all_that_its_folder_holds(archive: Archive) -> None:
    files = Files(archive)
    keep(archive, [write(1, "/w/a", "1\n"), write(1.5, "/w/d/x", "1\n")])
    files.refresh()
    keep(archive, [snapshot(2, keep_tree(archive, {"a": b"1\n", "d/x": b"2\n", "new": b"n"}), "/w")])
    assert {row.path: row.grade for row in files.rows("/w")} == {
        "/w/a": "verified",
        "/w/d/x": "proven",
        "/w/new": "proven",
    }


def test_very_many_changed_paths_rebuild_all_rows_at_once(archive: Archive) -> None:
    files = _Watching(archive)
    keep(archive, [write(n, f"/w/f{n}", "1\n") for n in range(1, 202)])
    assert files.refresh() == 201
    assert files.asked == [["/"]]
    assert rows(files) == expected(archive)


def test_a_change_during_a_refresh_is_seen_by_the_next(archive: Archive) -> None:
    class Interrupted(Files):
        def _world(self, *prefixes, **named) -> World:
            made = super()._world(*prefixes, **named)
            keep(archive, pending)
            pending.clear()
            return made

    keep(archive, [write(1, "/w/a", "1\n")])
    pending: list[FileEdit] = [edit(2, "/w/a", "1", "2"), write(3, "/w/b", "b\n")]
    files = Interrupted(archive)
    files.refresh()
    assert set(archive.files.outdated()) == {"/w/a", "/w/b"}
    assert rows(files) == expected(archive)
    assert archive.files.outdated() == {}


def test_a_refresh_that_began_earlier_puts_no_old_row_over_a_new_one(archive: Archive) -> None:
    class Slow(Files):
        def _world(self, *prefixes, **named) -> World:
            made = super()._world(*prefixes, **named)
            if threading.current_thread() is first:
                has_read.set()
                assert may_go_on.wait(30)
            return made

    keep(archive, [write(1, "/w/a", "1\n")])
    files = Slow(archive)
    has_read, may_go_on = threading.Event(), threading.Event()
    first, second = (threading.Thread(target=files.refresh) for _ in range(2))
    first.start()
    assert has_read.wait(30)
    keep(archive, [edit(2, "/w/a", "1", "2")])
    second.start()
    second.join(0.3)  # it would be done by now, if it did not wait
    may_go_on.set()
    first.join(30)
    second.join(30)
    assert archive.files.outdated() == {}
    assert rows(files) == expected(archive)


def test_a_link_with_two_leading_slashes_is_followed(archive: Archive) -> None:
    """Such a path stays as it is by POSIX, and no folder above it is the root."""
    link = keep_tree(archive, {"to": (0o120000, b"//u/inner")})
    keep(archive, [snapshot(1, link, "/w"), write(2, "/w/to/x", "1\n")])
    files = Files(archive)
    assert rows(files) == expected(archive)
    keep(archive, [edit(3, "/w/to", "1", "2")])
    assert rows(files) == expected(archive)
    assert list(above("//u/x")) == ["//u"]


def test_a_file_that_is_also_written_through_a_link_has_its_newest_content(archive: Archive) -> None:
    link = keep_tree(archive, {"to": (0o120000, b"/o")})
    keep(archive, [write(1, "/o/x", "1\n"), snapshot(2, link, "/w"), write(3, "/w/to/x", "2\n")])
    files = Files(archive)
    for _ in range(2):  # before the links are stored, and with them
        shown = files.history("/o/x").last_content
        assert shown is not None
        assert shown.content == b"2\n"
        files.refresh()
    keep(archive, [edit(4, "/o/x", "1", "3")])
    assert {row.path: row.grade for row in files.rows()} == {"/o/x": "stale"}, "its old text was overwritten before"
    assert rows(files) == expected(archive)
    remove(archive, f"msg_{2000:09d}", now=at(9))
    keep(archive, [edit(5, "/o/x", "3", "4")])
    assert rows(files) == expected(archive)


@pytest.mark.parametrize(
    "seen",
    [
        [{"to": (0o120000, b"to/x")}],
        [{"to": (0o120000, b".")}],
        [{"to": (0o120000, b"b")}, {"b": (0o120000, b"to/x")}],
        [{"to": (0o120000, b"to/x")}, {"to": (0o120000, b"to/y")}],
    ],
)
def test_links_that_lead_beneath_themselves_are_not_followed_for_ever(
    archive: Archive, seen: list[dict[str, Any]]
) -> None:
    keep(archive, [snapshot(1 + n, keep_tree(archive, files), "/w") for n, files in enumerate(seen)])
    files = Files(archive)
    files.refresh()
    keep(archive, [write(5, "/w/to/p", "1\n")])
    assert rows(files) == expected(archive)
    keep(archive, [edit(6, "/w/to/p", "1", "2"), edit(7, "/w/to/x/p", "1", "2")])
    assert alone(files, expected(archive)) == without_evidence(expected(archive))
    assert rows(files) == expected(archive)


def test_a_name_that_became_a_link_has_the_row_of_its_target(archive: Archive) -> None:
    link = keep_tree(archive, {"to": (0o120000, b"/o/f")})
    keep(archive, [write(1, "/w/to", "1\n"), snapshot(2, link, "/w")])
    files = Files(archive)
    files.refresh()
    keep(archive, [write(3, "/o/f", "2\n")])
    assert {row.path for row in files.rows()} == {"/o/f", "/w/to"}
    assert rows(files) == expected(archive)
    assert alone(files, expected(archive)) == without_evidence(expected(archive))


def test_what_was_reached_through_a_forgotten_link_has_no_row_any_more(archive: Archive) -> None:
    link = keep_tree(archive, {"to": (0o120000, b"/o")})
    keep(archive, [snapshot(1, link, "/w"), write(2, "/w/to/x", "1\n")])
    keep(archive, [write(3, "/w/a", "1\n", session_id="ses_2"), write(4, "/o/y", "1\n", session_id="ses_2")])
    files = Files(archive)
    assert set(rows(files)) == {"/o/x", "/o/y", "/w/a"}
    batch = archive.batch()
    removal = archive.removal(batch)
    removal.session("ses_1")
    removal.finish()
    archive.commit(batch)
    archive.objects.forget_cached()
    assert rows(files) == expected(archive)
    assert set(rows(files)) == {"/o/y", "/w/a"}
    assert archive.files.links() == {}


def test_a_file_made_where_a_folder_was_moved_to_may_have_been_there(archive: Archive) -> None:
    tree = keep_tree(archive, {"d/a": b"1\n"})
    touch = event(4, Operation.TOUCH, "/w/m/new")
    keep(archive, [snapshot(1, tree, "/w"), run(2, "/w/d"), move(3, "/w/d", "/w/m"), touch])
    assert {row.path: row.grade for row in Files(archive).rows()}["/w/m/new"] == "stale"


def test_a_tree_of_another_folder_than_its_own_concerns_that_folder(archive: Archive) -> None:
    """As when a session was started in a link to the work tree."""
    keep(archive, [write(1, "/real/a", "1\n"), write(1, "/real/b", "1\n")])
    files = Files(archive)
    files.refresh()
    keep(archive, [snapshot(2, keep_tree(archive, {"a": b"2\n", "b": b"1\n"}), "/real", scope="/home/link")])
    shown = files.history("/real/a").last_content
    assert shown is not None
    assert shown.content == b"2\n"
    assert rows(files) == expected(archive)
    keep(archive, [edit(3, "/real/b", "1", "3")])
    assert {row.path: row.grade for row in files.rows()} == {"/real/a": "proven", "/real/b": "proven"}


def test_a_doubt_of_another_folder_does_not_touch_what_is_made_empty(archive: Archive) -> None:
    tree = keep_tree(archive, {"a": b"1\n"})
    keep(archive, [snapshot(1, tree, "/w"), unclear(2, "/o"), event(3, Operation.TOUCH, "/w/new")])
    assert Files(archive).history("/w/new").latest == Files(archive).histories("/w/new")[0].latest
    assert {row.path: row.grade for row in Files(archive).rows("/w")}["/w/new"] == "proven"
    keep(archive, [unclear(2, "/w")])
    assert {row.path: row.grade for row in Files(archive).rows("/w")}["/w/new"] == "stale"


def test_rows_outlive_the_process_and_are_asked_for_by_folder(archive: Archive, tmp_path: Path) -> None:
    keep(
        archive,
        [write(1, "/w/d/x", "1\n"), write(2, "/w/d", "?\n"), write(3, "/w/dd/z", "1\n"), write(4, "/w/d/e/y", "")],
    )
    assert [row.path for row in Files(archive).rows("/w/d")] == ["/w/d", "/w/d/e/y", "/w/d/x"]
    assert Files(archive).paths("/w/dd") == ["/w/dd/z"]
    archive.close()
    with Archive(tmp_path / "archive") as opened:
        assert opened.files.outdated() == {}
        assert [row.path for row in Files(opened).rows("/")] == ["/w/d", "/w/d/e/y", "/w/d/x", "/w/dd/z"]


def test_a_row_of_a_deleted_file_names_its_last_content(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), delete(2, "/w/a"), lines(1, "/w/p", 2, "b"), delete(2, "/w/none")])
    gone, part = Files(archive).rows()
    assert isinstance(gone, Row)
    assert (gone.path, gone.deleted, gone.grade, gone.last_grade, gone.size) == ("/w/a", True, "proven", "proven", 2)
    assert (part.path, part.grade, part.sha256, part.size, part.last_grade) == ("/w/p", "partial", "", None, "")


def test_a_row_says_why_it_is_not_certain(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), unclear(2, "/w/a")])
    [row] = Files(archive).rows()
    assert (row.grade, row.note, row.seen) == ("stale", "it may have changed", at(2))
    assert (row.time, row.tool) == (at(1), "write"), "that it may have changed is no change"


def test_a_name_that_turns_out_to_be_a_folder_has_no_row_any_more(archive: Archive) -> None:
    files = Files(archive)
    keep(archive, [move(2, "/w/n", "/w/m")])
    assert "/w/m" in rows(files)
    keep(archive, [write(1, "/w/n/x", "1\n")])
    assert rows(files) == expected(archive)
    assert set(rows(files)) == {"/w/n/x", "/w/m/x"}
