"""Which events a question needs: the same history comes out whether one path is asked for or everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive
from daemon.files import FileHistory, Files
from daemon.files.events import Loader, ordered
from daemon.model import FileEdit, Launch, Message, Operation, Part
from tests.support.examples import examples
from tests.support.stores.replaying import (
    append,
    archived_session,
    at,
    copy,
    delete,
    edit,
    event,
    grade_and_content,
    keep,
    keep_tree,
    last,
    move,
    read,
    run,
    snapshot,
    state,
    unclear,
    write,
)

GONE = ("gone", None)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def of(archive: Archive, path: str) -> tuple[str, bytes | None]:
    return grade_and_content(Files(archive).history(path).latest)


# -- the law ---------------------------------------------------------------------------------------------------------

_FILES = ["/w/a", "/w/b", "/w/d/x", "/w/d/e/y", "/w/n/x"]
_FOLDERS = ["/w", "/w/d", "/w/d/e", "/w/n"]
_ANY = st.sampled_from(_FILES + _FOLDERS[1:])
_INTO = st.sampled_from([True, None])
_SCRIPTS = [
    "mv a d/x", "set -e\ncp -r /w/d/e /w/n\nrm -r d", "echo 1 > $1", "sort a > ../b", "bash d/g.sh", "mkdir n && cp x n", "nosuch",
    "open('a', 'w')",
]  # fmt: skip
_STEP = st.one_of(
    st.builds(lambda p, c: write(0, p, c), st.sampled_from(_FILES), st.sampled_from(["1\n", "2\n"])),
    st.builds(lambda p: edit(0, p, "1", "2"), st.sampled_from(_FILES)),
    st.builds(lambda p: read(0, p, "1\n"), st.sampled_from(_FILES)),
    st.builds(lambda p, r: delete(0, p, recursive=r), _ANY, st.booleans()),
    st.builds(lambda p, o: move(0, p, o), st.sampled_from(_FILES), st.sampled_from(_FILES)),
    st.builds(lambda p, o: copy(0, p, o), st.sampled_from(_FILES), st.sampled_from(_FILES)),
    st.builds(lambda p, o, i: move(0, p, o, into=i), st.sampled_from(_FILES), st.sampled_from(_FOLDERS), _INTO),
    st.builds(lambda p, o, i: copy(0, p, o, into=i), st.sampled_from(_FILES), st.sampled_from(_FOLDERS), _INTO),
    st.builds(
        lambda p, o, i: move(0, p, o, into=i), st.sampled_from(_FOLDERS[1:]), st.sampled_from(["/w/n", "/w/m"]), _INTO
    ),
    st.builds(
        lambda p, o, i: copy(0, p, o, into=i, recursive=True),
        st.sampled_from(_FOLDERS[1:]),
        st.sampled_from(["/w/n", "/w/m"]),
        _INTO,
    ),
    st.builds(lambda p: event(0, Operation.TOUCH, p), st.sampled_from(_FILES)),
    st.builds(lambda p: event(0, Operation.FOLDER, p), st.sampled_from(_FOLDERS)),
    st.builds(lambda p: unclear(0, p), st.sampled_from(_FILES + _FOLDERS)),
    st.builds(lambda p: run(0, p), st.sampled_from(_FOLDERS)),
    st.builds(lambda p: run(0, p, "print(1)\n"), st.sampled_from(_FOLDERS)),
    st.builds(
        lambda p, t, s, o: run(0, p, None if o else t, other=o, launch=Launch(s[0], arguments=("g", "b"), status=s[1])),
        st.sampled_from(_FOLDERS),
        st.sampled_from(_SCRIPTS),
        st.sampled_from([("bash", 2), ("bash", 0), ("python", 2)]),
        st.sampled_from([None, "/w/g.sh", "/w/d/g.sh"]),
    ),
    st.builds(lambda p, c: write(0, p, c), st.sampled_from(["/w/g.sh", "/w/d/g.sh"]), st.sampled_from(_SCRIPTS)),
    st.builds(
        lambda p, c: state(0, p, c, note="after"), st.sampled_from(_FILES), st.sampled_from(["1\n", "3\n", None])
    ),
    st.builds(lambda t, s: snapshot(0, t, "/w", scope=s), st.integers(0, 3).map(str), st.sampled_from(["/w", "/w/d"])),
)
_TREES: list[dict[str, bytes | tuple[int, bytes]]] = [
    {"a": b"1\n"},
    {"a": b"2\n", "d/x": b"1\n"},
    {"d/x": b"3\n", "d/e/y": b"1\n", "n/x": b"1\n"},
    {"b": b"1\n", "d": b"a file\n"},
]


def numbered(steps: list[FileEdit]) -> list[FileEdit]:
    """The steps, a second apart."""
    return [
        replace(one, time=at(n), message_id=f"msg_{n:03d}", part_id=f"prt_{n:03d}") for n, one in enumerate(steps, 1)
    ]


def plain(history: FileHistory) -> list[tuple[object, ...]]:
    return [
        (r.time, r.grade, r.content, r.deleted, r.note, r.outside_change, r.moved_from, r.kinds, r.fragments)
        for r in history.revisions
    ]


@pytest.mark.timeout(240)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_STEP, max_size=14))
def test_a_path_has_the_same_history_whether_it_or_everything_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory, steps: list[FileEdit]
) -> None:
    with Archive(tmp_path_factory.mktemp("law")) as archive:
        trees = {str(n): keep_tree(archive, files) for n, files in enumerate(_TREES)}
        keep(archive, [replace(one, blob=trees.get(one.blob, "")) for one in numbered(steps)])
        files = Files(archive)
        everything = {history.path: plain(history) for history in files.histories("/")}
        for path in {*_FILES, *_FOLDERS, *everything}:
            assert plain(files.history(path)) == everything.get(path, []), path
        for folder in ("/w/d", "/w/n"):
            beneath = {history.path: plain(history) for history in files.histories(folder)}
            wanted = {path: one for path, one in everything.items() if path == folder or path.startswith(folder + "/")}
            assert beneath == wanted


def test_through_a_link_both_names_have_the_history_of_the_one_file(archive: Archive) -> None:
    tree = keep_tree(archive, {"l": (0o120000, b"d"), "d/x": b"1\n"})
    keep(archive, [snapshot(1, tree, "/w"), edit(2, "/w/d/x", "1", "2"), edit(3, "/w/l/x", "2", "3")])
    everything = {history.path: grade_and_content(history.latest) for history in Files(archive).histories("/w")}
    assert everything["/w/d/x"] == ("proven", b"3\n")
    assert of(archive, "/w/d/x") == ("proven", b"3\n")
    assert of(archive, "/w/l/x") == ("proven", b"3\n")


# -- where things came from ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "path", "expected"),
    [
        ([write(1, "/o/a", "1\n"), move(2, "/o/a", "/w/b")], "/w/b", ("proven", b"1\n")),
        ([write(1, "/o/a", "1\n"), move(2, "/o/a", "/p/b"), move(3, "/p/b", "/w/c")], "/w/c", ("proven", b"1\n")),
        ([write(1, "/o/d/x", "1\n"), move(2, "/o/d", "/w/n")], "/w/n/x", ("proven", b"1\n")),
        ([write(1, "/o/d/x", "1\n"), move(2, "/o", "/w/n"), edit(3, "/w/n/d/x", "1", "2")], "/w/n/d/x", ("proven", b"2\n")),
        ([write(1, "/o/d/x", "1\n"), move(2, "/o/d", "/w", into=True)], "/w/d/x", ("proven", b"1\n")),
        ([write(1, "/o/d/x", "1\n"), copy(2, "/o/d", "/w/n", recursive=True)], "/w/n/x", ("proven", b"1\n")),
        ([write(1, "/o/d/x", "1\n"), delete(2, "/o", recursive=True), move(3, "/o/d/x", "/w/x")], "/w/x", ("lost", None)),
        ([write(1, "/o/a", "1\n"), move(2, "/o/a", "/w/b"), move(3, "/w/b", "/o/a")], "/o/a", ("proven", b"1\n")),
        ([write(1, "/w/d/x", "1\n"), write(2, "/o/a", "1\n"), move(3, "/o/a", "/w/d", into=None)], "/w/d/a",
         ("proven", b"1\n")),
        ([write(1, "/w/d/x", "1\n"), unclear(2, "/w")], "/w/d/x", ("stale", b"1\n")),
    ],
)  # fmt: skip
def test_events_of_a_files_origin_and_its_folders_belong_to_it(
    archive: Archive, edits: list[FileEdit], path: str, expected: tuple[str, bytes | None]
) -> None:
    keep(archive, edits)
    assert of(archive, path) == expected


def test_moves_in_a_circle_end(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), move(2, "/w/a", "/w/b"), move(3, "/w/b", "/w/a"), move(4, "/w/a", "/w/b")])
    loader = Loader(archive)
    assert len(loader.events(["/w/b"])) == 4
    assert set(loader.prefixes_read) == {"/w/a", "/w/b"}


@pytest.mark.timeout(240)
def test_moves_that_flatten_or_wrap_a_folder_end(archive: Archive) -> None:
    """`mv d/e n; rm -r d; mv n d`: what came from d/e may not be looked for in itself for ever."""
    keep(archive, [
        write(1, "/w/d/e/x", "1\n"), move(2, "/w/d/e", "/w/n"), delete(3, "/w/d", recursive=True), move(4, "/w/n", "/w/d"),
        write(5, "/w/lib/x", "2\n"), move(6, "/w/lib", "/w/pkg/src"), move(7, "/w/pkg", "/w/lib"),
    ])  # fmt: skip
    assert of(archive, "/w/d/x") == ("proven", b"1\n")
    assert of(archive, "/w/lib/src/x") == ("proven", b"2\n")
    assert {row.path: row.deleted for row in Files(archive).rows()}["/w/lib/src/x"] is False


def test_a_question_about_a_folder_covers_what_lies_in_it(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), write(2, "/w/d/x", "1\n"), write(3, "/ww/a", "1\n")])
    loader = Loader(archive)
    assert [one.path for one in loader.events(["/w/d", "/w", "/w/a"])] == ["/w/a", "/w/d/x"]
    assert loader.prefixes_read == ("/w",)


# -- aliases ---------------------------------------------------------------------------------------------------------


def test_what_was_recorded_of_the_old_folder_belongs_to_the_new(archive: Archive) -> None:
    keep(archive, [write(1, "/old/a", "1\n"), edit(2, "/new/a", "1", "2"), write(3, "/old/d/x", "1\n")])
    files = Files(archive)
    files.alias("/old", "/new")
    assert files.aliases() == {"/old": "/new"}
    assert of(archive, "/new/a") == ("proven", b"2\n")
    assert of(archive, "/new/d/x") == ("proven", b"1\n")
    assert [history.path for history in files.histories("/new")] == ["/new/a", "/new/d/x"]
    assert files.remove_alias("/old")
    assert not files.remove_alias("/old")
    assert grade_and_content(files.history("/new/a").latest)[0] == "partial"
    assert of(archive, "/old/a") == ("proven", b"1\n")


def test_an_alias_holds_for_a_folder_within_and_for_the_far_end_of_a_move(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), move(2, "/w/a", "/p/old/b"), write(3, "/p/older/c", "1\n")])
    Files(archive).alias("/p/old", "/p/new")
    assert of(archive, "/p/new/b") == ("proven", b"1\n")
    assert [history.path for history in Files(archive).histories("/p")] == ["/p/new/b", "/p/older/c"]


# -- forks, and times ------------------------------------------------------------------------------------------------


def test_a_forks_copies_are_left_out_and_other_sessions_same_calls_are_not() -> None:
    first = edit(1, "/w/a", "1", "1+1", session_id="ses_1", message_id="m1", part_id="p1")
    fork = replace(first, session_id="ses_2", message_id="m2", part_id="p2", version="1.2.3")
    again = replace(first, part_id="p3")
    later = replace(first, session_id="ses_3", time=first.time + 1, part_id="p4")
    other = replace(first, session_id="ses_3", new="2", part_id="p5")
    assert ordered([fork, first]) == [first]
    assert ordered([again, first]) == [first, again]
    assert ordered([later, first]) == [first, later]
    assert ordered([other, first]) == [first, other]


def test_a_fork_of_a_fork_is_left_out_beside_a_call_of_the_same_time() -> None:
    first = edit(1, "/w/a", "1", "2", part_id="p1")
    beside = edit(1, "/w/a", "5", "6", part_id="p2")
    copies = [replace(one, session_id="ses_2", part_id=f"q{n}") for n, one in enumerate((first, beside))]
    assert ordered([first, beside, *copies]) == [first, beside]


def test_a_forks_copy_of_a_call_with_several_steps_is_not_done_twice() -> None:
    steps = [replace(append(2, "/w/a", line), number=n) for n, line in enumerate(("a\n", "b\n"))]
    copies = [replace(one, session_id="ses_2", message_id="msg_z", part_id="prt_z") for one in steps]
    assert grade_and_content(last("/w/a", [write(1, "/w/a", ""), *steps, *copies])) == ("proven", b"a\nb\n")


def _turn(archive: Archive) -> None:
    """A prompt at 1 with a diff, an answer whose steps ended at 5, and a write at 4."""
    keep(archive, [
        state(1, "/w/a", "0\n", message_id="msg_1", part_id="msg_1.diff", note="before the turn", number=0),
        state(1, "/w/a", "two\n", message_id="msg_1", part_id="msg_1.diff", note="after the turn", number=1),
        write(4, "/w/a", "one\n", existed=True, message_id="msg_2"),
    ])  # fmt: skip
    data: dict[str, Any] = {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": at(1)}}
    finish = {"id": "prt_9", "messageID": "msg_2", "sessionID": "ses_1", "type": "step-finish", "snapshot": "a" * 40}
    answer: dict[str, Any] = {
        "id": "msg_2", "sessionID": "ses_1", "role": "assistant", "parentID": "msg_1",
        "time": {"created": at(2), "completed": at(5)},
    }  # fmt: skip
    batch = archive.batch()
    for record, parts in (
        (data, ()),
        (answer, (Part("prt_9", "msg_2", "ses_1", "step-finish", finish, records.dumps(finish)),)),
    ):
        state_ = archive.state(str(record["id"])) or {}
        own = [one for path in ("/w/a",) for one in archive.files.edits(path) if one.message_id == record["id"]]
        message = Message(
            str(record["id"]),
            "ses_1",
            str(record["role"]),
            record["time"]["created"],
            record,
            records.dumps(record),
            parts,
            record["time"].get("completed"),
        )
        assert state_
        batch.message(message, source="s", generation=1, hash_="x", edits=own)
    archive.commit(batch)


def test_a_state_after_a_turn_is_told_when_the_turn_had_ended(archive: Archive) -> None:
    _turn(archive)
    events = Loader(archive).events(["/w/a"])
    assert [(one.operation.value, one.content) for one in events] == [
        ("state", "0\n"), ("write", "one\n"), ("state", "two\n"),
    ]  # fmt: skip
    assert events[-1].started == at(1)
    assert events[-1].time >= at(4)


def test_histories_end_at_the_moment_that_is_asked_for(archive: Archive) -> None:
    keep(archive, [write(1, "/w/a", "1\n"), write(3, "/w/a", "2\n"), write(5, "/w/b", "1\n")], archived_session())
    files = Files(archive)
    assert grade_and_content(files.history("/w/a", at(2)).latest) == ("proven", b"1\n")
    assert files.history("/w/a", at(0)).latest is None
    assert [history.path for history in files.histories("/w", at(4))] == ["/w/a"]


def test_nothing_recorded_is_an_empty_history(archive: Archive) -> None:
    assert Files(archive).history("/w/none").revisions == ()
    assert Files(archive).histories("/none") == []
