"""The command that gets a file back, as its page names it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.cli.subcommands.restore import restore
from daemon.files import Disk, Files, Grade, Revision
from daemon.files.content import Content
from daemon.model import Operation
from daemon.moments import written
from daemon.reconstitute.pages.file import restore_command
from daemon.reconstitute.recover import Recovered, State, recover
from tests.support.stores.recorded_sessions import Recorded, call, recorded

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
    wanted = flags.format(shown=written(file.certain.time) if file.certain else "")
    assert line == f"reconstitute restore {PATH} --to DIR {wanted}".strip()
    given = restore.make_context("restore", shlex.split(line)[2:]).params
    assert (given["path"], given["to"]) == (PATH, "DIR")


def test_the_command_for_an_earlier_moment_names_it():
    file = _of(b"x\n")
    assert restore_command(file, file.certain, 1_795_000_000_000).endswith("--to DIR --at 2026-11-18T11:06:40Z")


@pytest.mark.parametrize("time", [-1, 1, 10**15, 10**17])
def test_an_impossible_time_of_a_record_is_in_no_command(time: int):
    known = Revision(time, Grade.PROVEN, Content(b"x\n"), "s", "msg_1", "p", "write", Operation.WRITE)
    doubt = Revision(time + 1, Grade.STALE, Content(b"x\n"), "s", "msg_2", "p", "bash", Operation.RUN)
    file = Recovered(PATH, "a.py", State.STALE, Disk.MISSING, (known, doubt), known, doubt)
    assert restore_command(file, known, None) == ""


def test_the_command_quotes_a_path_with_spaces(house: Recorded):
    path = f"{ROOT}/my shop's plan.md"
    house.say("ses_1", "assistant", _write("x\n", path))
    file = _found(house, path)
    assert shlex.split(restore_command(file, file.certain, None))[2] == path


@pytest.mark.parametrize("name", [f"{SECRET}.py", "two\nlines.py", "bell\a.py", "two  spaces.py", "\udce9.py"])
def test_a_path_that_a_page_cannot_show_as_it_is_has_no_command(name: str):
    one = _of(b"x\n")
    file = Recovered(f"{ROOT}/{name}", name, one.state, one.disk, one.revisions, one.certain)
    assert restore_command(file, file.certain, None) == ""


def test_where_nothing_is_known_there_is_no_command():
    lost = Revision(1, Grade.LOST, None, "s", "m", "p", "edit", Operation.EDIT)
    file = Recovered(PATH, "a.py", State.LOST, Disk.MISSING, (lost,), None)
    assert restore_command(file, file.last_existing, None) == ""
    assert restore_command(file, None, None) == ""
