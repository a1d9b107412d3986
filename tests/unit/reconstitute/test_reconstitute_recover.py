"""What can be said of each recorded file at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.files import Disk, FileHistory, Files, Grade, Revision
from daemon.files.content import Content, Fragments, Run
from daemon.model import Operation
from daemon.reconstitute.recover import MEANING, State, evidence, recover, shell_word
from tests.support.stores.recorded_sessions import Recorded, call, read, recorded


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Recorded, str]]:
    root = str(tmp_path / "shop")
    with recorded(tmp_path / "state") as made:
        made.session("ses_1", root)
        yield made, root


def _write(path: str, content: str) -> dict:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


def _found(made: Recorded, root: str, until: int | None = None) -> dict:
    histories = Files(made.archive).histories(root, until)
    return {file.relative: file for file in recover(histories, root)}


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
    assert found["gone.py"].certain is not None
    assert found["gone.py"].certain.content == b"x\n"


def test_an_earlier_moment_shows_the_file_without_later_changes(house):
    made, root = house
    paths = [f"{root}/a.py", f"{root}/later.py"]
    made.say("ses_1", "assistant", _write(paths[0], "one\n") | {"state": _at(_write(paths[0], "one\n"), 1000)})
    made.say("ses_1", "assistant", _write(paths[0], "two\n") | {"state": _at(_write(paths[0], "two\n"), 2000)})
    made.say("ses_1", "assistant", _write(paths[1], "new\n") | {"state": _at(_write(paths[1], "new\n"), 3000)})
    then = _found(made, root, 1500)
    assert set(then) == {"a.py"}
    assert then["a.py"].certain.content == b"one\n"
    assert _found(made, root)["a.py"].certain.content == b"two\n"


def _at(part: dict, time: int) -> dict:
    return part["state"] | {"time": {"start": time, "end": time}}


def test_an_edit_of_an_unknown_text_is_not_proven_and_says_why(house):
    made, root = house
    made.say("ses_1", "assistant", call("edit", filePath=f"{root}/a.py", oldString="x", newString="y"))
    file = _found(made, root)["a.py"]
    assert (file.state, file.certain) == (State.PARTIAL, None)
    assert file.reason == "of its content only this is known: 1 line whose place is not known"
    assert file.uncertain is not None
    assert file.uncertain.fragments is not None
    assert "y" in file.uncertain.fragments.marked()


def test_what_is_not_proven_since_leaves_the_earlier_state_marked_as_such(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/a.py", "one\n"))
    made.say("ses_1", "assistant", call("bash", command=f"sed -i s/one/two/ {root}/a.py", metadata={"exit": 0}))
    file = _found(made, root)["a.py"]
    assert file.state is State.STALE
    assert file.certain.content == b"one\n"
    assert "a shell command may have changed it: sed -i" in file.reason
    assert file.uncertain is None


@pytest.mark.parametrize(
    ("commands", "is_there", "states"),
    [
        (["./make-it maybe.bin"], False, []),
        (["./make-it maybe.bin"], True, [State.LOST]),
        (["./make-it maybe.bin", "rm -f maybe.bin"], False, []),
        (["rm -f maybe.bin"], True, []),
    ],
)
def test_a_file_never_proven_to_exist_is_listed_only_if_it_is_on_disk(house, commands, is_there, states):
    made, root = house
    for command in commands:
        made.say("ses_1", "assistant", call("bash", command=f"cd {root} && {command}", metadata={"exit": 0}))
    if is_there:
        Path(root).mkdir(parents=True, exist_ok=True)
        (Path(root) / "maybe.bin").write_bytes(b"x")
    assert [file.state for file in _found(made, root).values()] == states


def test_the_target_may_be_the_file_itself(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/a.py", "x\n"))
    assert set(_found(made, f"{root}/a.py")) == {"a.py"}


def _revision(content: bytes | None, grade: Grade = Grade.PROVEN, **more) -> Revision:
    whole = None if content is None else Content(content)
    fields = {"session_id": "s", "message_id": "m", "part_id": "p", "tool": "write", "operation": Operation.WRITE}
    return Revision(1, grade, whole, **(fields | more))


def test_evidence_is_told_with_what_was_noted_and_seen_to_have_changed():
    one = _revision(b"", evidence=("write",), note="formatted", outside_change=True)
    assert evidence(one) == "write; formatted; changed outside OpenCode before this"


@pytest.mark.parametrize(
    ("operation", "said"),
    [(Operation.WRITE, "shell command: make"), (Operation.UNCLEAR, "a shell command may have changed it: make")],
)
def test_what_a_shell_command_did_is_told_from_what_it_may_have_done(operation: Operation, said: str):
    assert evidence(_revision(b"x", operation=operation, tool="bash", note="shell: make")) == said


KNOWN = {
    "lines 1 to 2": Fragments((Run(1, ("a", "b")),)),
    "line 4, lines 7 to 8": Fragments((Run(4, ("a",)), Run(7, ("b", "c")))),
    "line 4, 2 lines whose place is not known": Fragments((Run(4, ("a",)), Run(None, ("b", "c")))),
    "9 lines": Fragments(tuple(Run(first, ("a",)) for first in range(1, 18, 2))),
}


@pytest.mark.parametrize(("said", "fragments"), KNOWN.items())
def test_of_a_partial_file_it_is_said_which_lines_are_known(said: str, fragments: Fragments):
    one = _revision(None, Grade.PARTIAL, fragments=fragments, note="whatever")
    assert evidence(one) == f"of its content only this is known: {said}"


def test_a_file_of_which_all_lines_are_known_is_not_said_to_lack_any():
    one = _revision(None, Grade.PARTIAL, fragments=Fragments((Run(1, ("a", "b")),), is_all=True))
    assert evidence(one) == "all its lines are known, but not their line ends and whether a newline ends the file"


def test_two_kinds_of_evidence_make_a_file_verified(house):
    made, root = house
    made.snapshot("ses_1", root, {"a.py": b"x\n"}, _write(f"{root}/a.py", "x\n"))
    assert _found(made, root)["a.py"].state is State.VERIFIED


def test_a_deleted_file_keeps_its_content_without_reading_the_disk(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/a.py", "x\n"))
    made.say("ses_1", "assistant", call("bash", command=f"rm {root}/a.py", metadata={"exit": 0}))
    file = _found(made, root)["a.py"]
    assert (file.state, file.disk, file.reason) == (State.DELETED, Disk.MISSING, "")
    assert (file.certain.content, file.uncertain) == (b"x\n", None)
    assert file.last_existing is file.revisions[0]
    Path(root).mkdir()
    Path(root, "a.py").write_text("x\n")
    assert _found(made, root)["a.py"].disk is Disk.PRESENT


def test_of_a_deleted_file_also_what_was_never_proven_is_kept(house):
    made, root = house
    made.say("ses_1", "assistant", call("edit", filePath=f"{root}/a.py", oldString="x", newString="y = 1"))
    made.say("ses_1", "assistant", call("bash", command=f"rm {root}/a.py", metadata={"exit": 0}))
    file = _found(made, root)["a.py"]
    assert (file.state, file.certain) == (State.DELETED, None)
    assert "y = 1" in file.uncertain.fragments.marked()


def test_what_was_only_taken_away_is_no_file_of_the_target(house):
    made, root = house
    made.say("ses_1", "assistant", call("bash", command=f"rm -f {root}/tmp.txt", metadata={"exit": 0}))
    assert _found(made, root) == {}


def test_a_folder_that_a_command_named_is_no_file(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/src/a.py", "x\n"))
    made.say("ses_1", "assistant", call("bash", command=f"black {root}/src", metadata={"exit": 0}))
    assert set(_found(made, root)) == {"src/a.py"}


def test_a_moved_file_knows_where_it_was(house):
    made, root = house
    made.say("ses_1", "assistant", _write(f"{root}/old.py", "x\n"))
    made.say("ses_1", "assistant", call("bash", command=f"mv {root}/old.py {root}/new.py", metadata={"exit": 0}))
    found = _found(made, root)
    assert found["new.py"].state is State.PROVEN
    assert found["new.py"].last.moved_from == f"{root}/old.py"
    assert found["old.py"].state is State.DELETED


def test_a_file_known_only_from_snapshots_counts_once_a_session_reads_it(house):
    made, root = house
    made.snapshot("ses_1", root, {"LICENSE": b"free\n"})
    made.say("ses_1", "assistant", call("bash", command="make", metadata={"exit": 0}))
    file = _found(made, root)["LICENSE"]
    assert file.certain.content == b"free\n"
    assert not file.was_touched
    made.say("ses_1", "assistant", read(f"{root}/LICENSE", "free"))
    assert _found(made, root)["LICENSE"].was_touched


def test_every_state_has_its_meaning_in_words():
    assert set(MEANING) == set(State)
    assert len(set(MEANING.values())) == len(State)


def test_archived_content_is_loaded_only_for_files_on_the_disk(tmp_path: Path):
    taken: list[str] = []

    def load(blob: str) -> bytes:
        taken.append(blob)
        return b"x\n"

    (tmp_path / "there.py").write_bytes(b"x\n")
    histories = [
        FileHistory(str(tmp_path / name), (replace(_revision(b""), whole=Content(None, id_=name, load=load)),))
        for name in ("gone.py", "there.py")
    ]
    found = {file.relative: file.disk for file in recover(histories, str(tmp_path))}
    assert found == {"gone.py": Disk.MISSING, "there.py": Disk.IDENTICAL}
    assert taken == ["there.py"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/proj/a b.txt", "'/proj/a b.txt'"),
        ("/proj/it's.txt", "'/proj/it'\"'\"'s.txt'"),
        ("/proj/tool --passphrase 'my dog has fleas'.txt", ""),
        ("/proj/ALTER USER bob IDENTIFIED BY 'bluehorse'.sql", ""),
        ("/proj/a\nb", ""),
    ],
)
def test_a_path_is_only_given_to_a_shell_where_it_can_be_shown(path: str, expected: str):
    assert shell_word(path) == expected
