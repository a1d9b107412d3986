"""What can be said of each recorded file at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_sessions import Recorded, call, recorded

from daemon.files import Files
from daemon.files.history import Revision
from daemon.model import Operation
from daemon.reconstitute.disk import Disk
from daemon.reconstitute.recover import State, evidence, recover


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Recorded, str]]:
    root = str(tmp_path / "shop")
    with recorded(tmp_path / "state") as made:
        made.session("ses_1", root)
        yield made, root


def _write(path: str, content: str) -> dict:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


def _found(made: Recorded, root: str, until: int | None = None) -> dict:
    files = Files(made.archive)
    return {file.relative: file for file in recover(files, files.paths(root), root, until)}


def test_a_completed_write_is_proven_and_compared_with_the_disk(house):
    made, root = house
    made.say(
        "ses_1",
        "assistant",
        _write(f"{root}/same.py", "x\n"),
        _write(f"{root}/other.py", "x\n"),
        _write(f"{root}/gone.py", "x\n"),
    )
    Path(root).mkdir()
    Path(root, "same.py").write_text("x\n")
    Path(root, "other.py").write_text("y\n")
    found = _found(made, root)
    assert {name: (file.state, file.disk) for name, file in found.items()} == {
        "same.py": (State.PROVEN, Disk.IDENTICAL),
        "other.py": (State.PROVEN, Disk.DIFFERS),
        "gone.py": (State.PROVEN, Disk.MISSING),
    }
    assert found["gone.py"].shown is not None
    assert found["gone.py"].shown.content == b"x\n"


def test_an_earlier_moment_shows_the_file_as_it_was_and_nothing_that_came_later(house):
    made, root = house
    paths = [f"{root}/a.py", f"{root}/later.py"]
    made.say("ses_1", "assistant", _write(paths[0], "one\n") | {"state": _at(_write(paths[0], "one\n"), 1000)})
    made.say("ses_1", "assistant", _write(paths[0], "two\n") | {"state": _at(_write(paths[0], "two\n"), 2000)})
    made.say("ses_1", "assistant", _write(paths[1], "new\n") | {"state": _at(_write(paths[1], "new\n"), 3000)})
    then = _found(made, root, 1500)
    assert set(then) == {"a.py"}
    assert then["a.py"].shown.content == b"one\n"
    assert _found(made, root)["a.py"].shown.content == b"two\n"


def _at(part: dict, time: int) -> dict:
    return part["state"] | {"time": {"start": time, "end": time}}


def test_an_edit_of_an_unknown_text_is_not_proven_and_says_why(house):
    made, root = house
    made.say("ses_1", "assistant", call("edit", filePath=f"{root}/a.py", oldString="x", newString="y"))
    file = _found(made, root)["a.py"]
    assert (file.state, file.shown) == (State.UNPROVEN, None)
    assert file.reason


def test_what_is_not_proven_since_leaves_the_earlier_state_marked_as_such(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/a.py", "one\n"))
    made.say("ses_1", "assistant", call("bash", command=f"sed -i s/one/two/ {root}/a.py", metadata={"exit": 0}))
    file = _found(made, root)["a.py"]
    assert file.state is State.EARLIER
    assert file.shown.content == b"one\n"
    assert "sed" in file.reason


def test_the_target_may_be_the_file_itself(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/a.py", "x\n"))
    assert set(_found(made, f"{root}/a.py")) == {"a.py"}


def test_evidence_is_told_with_what_was_noted_and_seen_to_have_changed():
    one = Revision(
        1,
        b"",
        True,
        ("write",),
        "s",
        "m",
        "p",
        "write",
        Operation.WRITE,
        note="formatted",
        outside_change=True,
    )
    assert evidence(one) == "write; formatted; changed outside OpenCode before this"
