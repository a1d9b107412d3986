"""What a file's page says beside its content: who wrote which lines, and the command that gets it back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_sessions import Recorded, call, recorded

from daemon.cli.restore import command as restore
from daemon.files import Files, Grade, Revision
from daemon.files.content import Content
from daemon.files.disk import Disk
from daemon.model import Operation
from daemon.reconstitute.pages import file_page
from daemon.reconstitute.pages.file_page import MOST_SPANS, restore_command, writers
from daemon.reconstitute.recover import Recovered, State, recover

ROOT = "/home/dev/shop"
PATH = f"{ROOT}/a.py"
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path / "state") as made:
        made.session("ses_1", ROOT)
        yield made


def _write(content: str, path: str = PATH) -> dict:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


def _edit(old: str, new: str) -> dict:
    return call("edit", output="Edit applied successfully.", filePath=PATH, oldString=old, newString=new)


def _found(made: Recorded, path: str = PATH) -> Recovered:
    return next(recover(Files(made.archive).histories(path), ROOT))


def _of(*contents: bytes, **more) -> Recovered:
    revisions = tuple(
        Revision(time, Grade.PROVEN, Content(content), "s", f"msg_{time}", "p", "write", Operation.WRITE)
        for time, content in enumerate(contents, start=1)
    )
    return Recovered(PATH, "a.py", State.PROVEN, Disk.MISSING, revisions, revisions[-1], **more)


# -- who wrote which lines -------------------------------------------------------------------------------------------


def test_each_range_of_lines_has_the_message_that_last_wrote_it(house: Recorded):
    first = house.say("ses_1", "assistant", _write("one\ntwo\nthree\nfour\n"))
    second = house.say("ses_1", "assistant", _edit("two\nthree", "2\n3"))
    spans = writers(_found(house)).spans
    assert [(span.lines, span.message_id, span.how, span.begins) for span in spans] == [
        ("1", first, "write", "one"),
        ("2-3", second, "edit", "2"),
        ("4", first, "write", "four"),
    ]
    assert spans[1].session_id == "ses_1"
    assert spans[1].time == house.clock


def test_a_range_begins_with_its_first_line_that_is_not_blank(house: Recorded):
    house.say("ses_1", "assistant", _write("one\ntwo\nthree\n"))
    house.say("ses_1", "assistant", _edit("one\ntwo", "one\n\n \nnew\ntwo"))
    house.say("ses_1", "assistant", _edit("two\nthree", "two\n\nthree"))
    assert [(span.lines, span.begins) for span in writers(_found(house)).spans] == [
        ("1", "one"), ("2-4", "new"), ("5", "two"), ("6", "(blank)"), ("7", "three"),
    ]  # fmt: skip


def test_a_file_that_one_message_wrote_has_no_such_table(house: Recorded):
    house.say("ses_1", "assistant", _write("one\ntwo\n"))
    assert writers(_found(house)).spans == ()
    house.say("ses_1", "assistant", _write("all new\n"))
    assert writers(_found(house)).spans == ()


def test_lines_that_no_call_wrote_are_said_to_be_seen(house: Recorded):
    house.snapshot("ses_1", ROOT, {"a.py": b"one\ntwo\n"})
    house.say("ses_1", "assistant", _edit("two", "2"))
    assert [span.how for span in writers(_found(house)).spans] == ["first seen in a snapshot", "edit"]


def test_the_lines_are_those_of_the_content_that_the_page_shows_not_of_a_guess(house: Recorded):
    house.say("ses_1", "assistant", _write("one\ntwo\n"))
    house.say("ses_1", "assistant", _edit("two", "2"))
    house.say("ses_1", "assistant", call("bash", command=f"sed -i s/one/1/ {PATH}", metadata={"exit": 0}))
    house.say("ses_1", "assistant", _edit("2", "zwei"))
    file = _found(house)
    assert file.state is State.STALE
    assert [span.begins for span in writers(file).spans] == ["one", "2"]


def test_a_table_of_many_ranges_is_bounded_and_says_so():
    lines = [f"line {number}" for number in range(300)]
    before = "\n".join(lines) + "\n"
    after = "\n".join(f"new {n}" if n % 2 else text for n, text in enumerate(lines)) + "\n"
    found = writers(_of(before.encode(), after.encode()))
    assert (len(found.spans), found.more) == (MOST_SPANS, 300 - MOST_SPANS)
    assert not found.is_too_long


def test_a_history_too_long_to_be_worked_out_is_not():
    found = writers(_of(*[b"x" * 100_000 + b"%d\n" % number for number in range(3000)]))
    assert (found.spans, found.is_too_long) == ((), True)


@pytest.mark.parametrize(
    "text",
    [
        f"key = '{SECRET}'\nother\n",
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "MIIEow" * 10
        + "\n"
        + "AQABAo" * 10
        + "\n-----END RSA PRIVATE KEY-----\n",
    ],
)
def test_no_piece_of_a_secret_stands_in_the_table(text: str):
    changed = text.replace("other", "another").replace("AQABAo" * 10, "BBBBBo" * 10)
    spans = writers(_of(text.encode(), changed.encode())).spans
    assert spans
    said = " ".join(span.begins for span in spans)
    assert SECRET not in said
    assert "MIIEow" not in said
    assert "BBBBBo" not in said


@pytest.mark.parametrize("content", [b"\xff\xfe\0", b""])
def test_what_is_no_text_or_empty_has_no_lines(content: bytes):
    assert writers(_of(b"one\n", content)).spans == ()


# -- the way back ----------------------------------------------------------------------------------------------------

COMMANDS = {
    "present": ([_write("x\n")], ""),
    "deleted": ([_write("x\n"), call("bash", command=f"rm {PATH}", metadata={"exit": 0})], "--deleted"),
    "stale then deleted": (
        [
            _write("x\n"),
            call("bash", command=f"sed -i s/x/y/ {PATH}", metadata={"exit": 0}),
            call("bash", command=f"rm {PATH}", metadata={"exit": 0}),
        ],
        "--at {shown}",
    ),
    "partial": ([_edit("x", "y")], "--grade partial"),
    "stale": ([_write("x\n"), call("bash", command=f"sed -i s/x/y/ {PATH}", metadata={"exit": 0})], "--at {shown}"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_command_named_is_one_that_exists_and_names_what_is_shown(house: Recorded, case: str):
    parts, flags = COMMANDS[case]
    for part in parts:
        house.say("ses_1", "assistant", part)
    file = _found(house)
    line = restore_command(file, file.best, None)
    wanted = flags.format(shown=file.shown.time if file.shown else "")
    assert line == f"reconstitute restore {PATH} --to DIR {wanted}".strip()
    given = restore.make_context("restore", shlex.split(line)[2:]).params
    assert (given["path"], given["to"]) == (PATH, "DIR")


def test_the_command_for_an_earlier_moment_names_it():
    file = _of(b"x\n")
    assert restore_command(file, file.shown, 1_795_000_000_000).endswith("--to DIR --at 1795000000000")


def test_the_command_quotes_a_path_with_spaces(house: Recorded):
    path = f"{ROOT}/my shop's plan.md"
    house.say("ses_1", "assistant", _write("x\n", path))
    file = _found(house, path)
    assert shlex.split(restore_command(file, file.shown, None))[2] == path


@pytest.mark.parametrize("name", [f"{SECRET}.py", "two\nlines.py", "bell\a.py", "two  spaces.py", "\udce9.py"])
def test_a_path_that_a_page_cannot_show_as_it_is_has_no_command(name: str):
    one = _of(b"x\n")
    file = Recovered(f"{ROOT}/{name}", name, one.state, one.disk, one.revisions, one.shown)
    assert restore_command(file, file.shown, None) == ""


def test_where_nothing_is_known_there_is_no_command():
    lost = Revision(1, Grade.LOST, None, "s", "m", "p", "edit", Operation.EDIT)
    file = Recovered(PATH, "a.py", State.LOST, Disk.MISSING, (lost,), None)
    assert restore_command(file, file.held, None) == ""
    assert restore_command(file, None, None) == ""


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "disk", "said"),
    [
        (State.PROVEN, Disk.IDENTICAL, "identical to the content below"),
        (State.STALE, Disk.DIFFERS, "differs from the content below"),
        (State.PROVEN, Disk.MISSING, "missing"),
        (State.DELETED, Disk.MISSING, "nothing stands at its path"),
        (State.DELETED, Disk.PRESENT, "something stands at its path again"),
        (State.DELETED, Disk.UNREADABLE, "unreadable"),
        (State.LOST, Disk.PRESENT, "something stands at its path, and there is nothing proven to compare it with"),
    ],
)
def test_how_the_disk_compares_is_said_in_words(state: State, disk: Disk, said: str):
    one = _of(b"x\n")
    assert file_page.on_disk(Recovered(PATH, "a.py", state, disk, one.revisions, one.shown)) == said


@pytest.mark.parametrize("operation", Operation)
def test_every_change_has_a_word_that_is_no_name_of_the_code(operation: Operation):
    one = Revision(1, Grade.PROVEN, None, "s", "m", "p", "tool", operation)
    assert "_" not in file_page.change(one)
