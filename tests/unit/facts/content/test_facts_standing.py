"""Where a folder stands: counts, what came after what is known, and the command that brings it back."""

from __future__ import annotations

import pytest

from daemon.files import Disk, Grade
from daemon.files.history import LOST_FOLDER, REVERTED
from daemon.model import FileEdit, Operation
from daemon.moments import written
from daemon.reconstitute import facts
from daemon.reconstitute.facts.session_values import CallStatus
from daemon.reconstitute.recover import State
from tests.unit.facts.folder_facts import START, TARGET, call, file, revision, session, turn


def _doubt(part="prt_make dist", note="shell: make dist", **fields):
    given = {"grade": Grade.STALE, "operation": Operation.UNCLEAR, "time": START + 5000, "message_id": "msg_2"}
    return revision(None, **(given | {"part_id": part, "note": note, "tool": "bash"} | fields))


def _stale(name, *doubts):
    return file(name, None, revision("x"), *doubts, state=State.STALE)


def _find(files=(), sessions=(), programs=(), moment=None, target=TARGET):
    return facts.standing_of(target, sessions, files, programs, moment)


def test_files_are_counted_by_state_and_known_as_of_the_newest_certain_one():
    gone = file(
        "c", None, revision("x", time=START + 7), revision(None, time=START + 9, deleted=True), state=State.DELETED
    )
    snapshot = file("b", None, revision("y", time=START + 3, operation=Operation.SNAPSHOT))
    found = _find([file("a"), snapshot, gone, file("d", state=State.LOST)])
    assert found.counts == {"proven": 2, "deleted": 1, "lost": 1}
    assert found.known_at == START + 9


def test_the_last_activity_is_the_last_of_all_sessions():
    found = _find(
        sessions=[session(turn("a", ended=START + 9), id_="ses_a"), session(turn("b", ended=START + 3), id_="ses_b")]
    )
    assert (found.last_activity, found.last_session) == (START + 9, "ses_a")


def test_eleven_files_that_one_command_may_have_changed_are_one_line():
    stopped = session(turn("pack it", call("make dist", None, started=START, ended=START + 3000)))
    (told,) = _find([_stale(f"f{n}", _doubt()) for n in range(11)], [stopped]).aftermath
    assert (told.text, told.command) == ("a command of unknown effect, stopped after 3 s", "make dist")
    assert len(told.paths) == 11
    assert (told.citation.session_id, told.citation.message_id) == ("ses_1", "msg_2")


@pytest.mark.parametrize(
    ("status", "exit_", "expected"),
    [
        (CallStatus.FAILED, 2, "a command of unknown effect, failed with exit status 2"),
        (CallStatus.OK, 0, "a command of unknown effect"),
        (CallStatus.UNKNOWN, None, "a command of unknown effect"),
    ],
)
def test_the_end_of_the_command_is_said_where_it_is_known(status, exit_, expected):
    ran = session(turn("pack it", call("make dist", exit_, status=status)))
    assert [one.text for one in _find([_stale("a", _doubt())], [ran]).aftermath] == [expected]


def test_each_cause_is_a_line_of_its_own_newest_first():
    files = [
        _stale("a", _doubt("p1", "shell: one", time=START + 1), _doubt("p2", "shell: two", time=START + 2)),
        _stale("b", _doubt("p2", "shell: two", time=START + 2)),
    ]
    assert [(one.command, len(one.paths)) for one in _find(files).aftermath] == [("two", 2), ("one", 1)]


def test_a_revert_of_unknown_time_is_a_cause_without_a_command():
    (told,) = _find([_stale("a", _doubt("", REVERTED)), _stale("b", _doubt("", REVERTED))]).aftermath
    assert (told.text, told.command, len(told.paths)) == ("a revert whose time is not known", "", 2)


def test_what_came_before_the_last_certain_state_is_not_told():
    assert _find([file("a", None, _doubt(time=START - 9), revision("x"))]).aftermath == ()


def test_a_file_that_never_was_known_has_no_aftermath():
    assert _find([file("a", None, _doubt(), state=State.LOST)]).aftermath == ()


@pytest.mark.parametrize(("time", "count"), [(START + 50, 1), (START - 50, 0)])
def test_a_program_counts_unless_something_later_is_known(time, count):
    ran = FileEdit(TARGET, time, "ses_1", "msg_9", "prt_9", "bash", Operation.RUN, note="shell: ./gen")
    told = _find([file("a")], programs=[ran]).aftermath
    assert [(one.text, one.command) for one in told] == [
        ("a program that may have written files that no record lists", "./gen")
    ] * count


def test_what_is_missing_or_differs_can_be_brought_back():
    found = _find([file("a"), file("b", disk=Disk.DIFFERS), file("c", disk=Disk.IDENTICAL)], moment=START)
    assert (found.missing, found.differing) == ((f"{TARGET}/a",), (f"{TARGET}/b",))
    assert found.restore == f"reconstitute restore {TARGET} --to DIR --at {written(START)}"


MAYBE = revision("x", grade=Grade.STALE, operation=Operation.UNCLEAR)


def test_absent_files_are_counted_whole_and_likely_contents_separately():
    files = [
        file("exact"),
        _stale("likely", MAYBE),
        _stale("doubtful", _doubt()),
        file("there", disk=Disk.PRESENT, state=State.STALE),
        file("lost", None, state=State.LOST),
        file("deleted", state=State.DELETED),
        file("folder", None, revision(None, grade=Grade.LOST, note=LOST_FOLDER), state=State.LOST),
        file("link", "exact", revision("exact", mode=0o120000)),
    ]
    found = _find(files)
    assert [path.removeprefix(f"{TARGET}/") for path in found.absent] == ["exact", "likely", "doubtful", "lost", "link"]
    assert (found.missing, found.likely) == ((f"{TARGET}/exact",), (f"{TARGET}/likely",))


def test_a_folder_of_likely_contents_names_the_command():
    assert _find([_stale("a", MAYBE)]).restore == f"reconstitute restore {TARGET} --to DIR"


@pytest.mark.parametrize(
    "files", [[], [file("a", disk=Disk.IDENTICAL)], [_stale("a", _doubt())], [file("a", state=State.DELETED)]]
)
def test_no_command_is_named_where_it_would_bring_nothing_back(files):
    assert _find(files).restore == ""


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/home/dev/my shop", "reconstitute restore '/home/dev/my shop' --to DIR"),
        ("/home/dev/a;rm -rf b", "reconstitute restore '/home/dev/a;rm -rf b' --to DIR"),
        ("/home/dev/a\nb", ""),
        ("/home/dev/a\u202eb", ""),
        ("/home/dev/ghp_" + "a1B2" * 9, ""),
    ],
)
def test_the_command_is_quoted_or_left_out(target, expected):
    assert _find([file("a")], target=target).restore == expected
