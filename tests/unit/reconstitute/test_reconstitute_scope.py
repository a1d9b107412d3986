"""Which sessions, messages and paths have to do with a target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.errors import IndexBroken
from daemon.files import Files
from daemon.files.trees import is_beneath
from daemon.reconstitute.scope import Scope, collect
from daemon.records import dumps
from tests.support.stores.recorded_sessions import FailingLexical, Recorded, call, read, recorded

SHOP = "/home/dev/shop"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def _scope(made: Recorded, target: str = SHOP, until: int | None = None) -> Scope:
    made.index()
    return collect(made.archive, made.recall(), target, Files(made.archive).histories(target, until), until)


def _said(scope: Scope) -> list[str]:
    """Every prompt and every text of the agent, in order."""
    turns = [turn for one in scope.sessions for turn in one.turns]
    return [text for turn in turns for text in (turn.prompt, *(reply.text for reply in turn.replies)) if text]


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/a", "/", True)],
)
def test_beneath_is_a_matter_of_whole_names(path: str, folder: str, expected: bool):
    assert is_beneath(path, folder) is expected


MENTIONS = {
    f"Look at {SHOP} again.": True,
    f"Look at `{SHOP}/src/x.py` again.": True,
    f"first\n{SHOP}\nlast line": True,
    f"Look at {SHOP}ping instead.": False,
    f"Look at {SHOP}-old instead.": False,
    f"Look at {SHOP}.git instead.": False,
    f"Look at /mnt{SHOP} instead.": False,
    f"file://{SHOP}/x is meant": True,
}


@pytest.mark.parametrize(("text", "expected"), MENTIONS.items())
def test_a_mention_is_the_whole_path_and_no_longer_name(house: Recorded, text: str, expected: bool):
    house.session("ses_x", "/elsewhere")
    house.say("ses_x", "user", text)
    assert bool(_scope(house).sessions) is expected


RELATIVE = {
    "Put it in shop/ please.": True,
    "Put it in ./shop/main.py please.": True,
    "Put it in old/shop/ please.": False,
    "We shop for food today.": False,
}


@pytest.mark.parametrize(("text", "expected"), RELATIVE.items())
def test_a_session_above_may_name_the_target_by_its_relative_path(house: Recorded, text: str, expected: bool):
    house.session("ses_x", "/home/dev")
    house.say("ses_x", "user", text)
    house.session("ses_y", "/home/other")
    house.say("ses_y", "user", text)
    assert [one.session.id for one in _scope(house).sessions] == (["ses_x"] if expected else [])


def test_a_session_in_the_folder_counts_whole_and_others_by_the_turn(house: Recorded):
    house.session("ses_in", f"{SHOP}/docs")
    house.say("ses_in", "user", "Anything said in here counts.")
    house.session("ses_out", "/elsewhere")
    house.say("ses_out", "user", "This has nothing to do with it.")
    house.say("ses_out", "assistant", "Nothing at all to do.")
    house.say("ses_out", "user", "Now change the colour please.")
    house.say("ses_out", "assistant", "I change it now.", call("write", filePath=f"{SHOP}/a.css", content="a"))
    house.say("ses_out", "assistant", "The colour is green now.")
    assert _said(_scope(house)) == [
        "Anything said in here counts.", "Now change the colour please.", "I change it now.", "The colour is green now.",
    ]  # fmt: skip


def test_the_fingerprint_changes_with_the_evidence_and_only_with_it(house: Recorded):
    house.session("ses_in", SHOP)
    mid = house.say("ses_in", "user", "Build a shop for me.")
    first = _scope(house).fingerprint
    assert _scope(house).fingerprint == first
    house.session("ses_out", "/elsewhere")
    house.say("ses_out", "user", "Something else entirely.")
    assert _scope(house).fingerprint == first
    house.delete(mid)
    deleted = _scope(house).fingerprint
    house.say("ses_in", "user", "And one more thing.")
    assert len({first, deleted, _scope(house).fingerprint}) == 3


def test_the_fingerprint_changes_with_what_no_message_tells(house: Recorded):
    house.session("ses_in", SHOP)
    first = house.say("ses_in", "user", "Build a shop.")
    seen = [_scope(house).fingerprint]
    batch = house.archive.batch()
    house.archive.beside.put_todos(batch, "ses_in", "test", [{"content": "Build it", "status": "pending"}], house.clock)
    house.archive.commit(batch)
    seen.append(_scope(house).fingerprint)
    house.session("ses_in", SHOP, title="The shop")
    seen.append(_scope(house).fingerprint)
    house.session("ses_in", SHOP, title="The shop", raw=dumps({"revert": {"messageID": first, "snapshot": "ab" * 20}}))
    seen.append(_scope(house).fingerprint)
    assert len(set(seen)) == len(seen)


def test_a_turn_of_a_session_elsewhere_is_taken_whole(house: Recorded):
    house.session("ses_out", "/elsewhere")
    house.say("ses_out", "user", "Change the colour please.")
    house.say("ses_out", "assistant", call("task", description="Change it"))
    house.say("ses_out", "user", {"type": "text", "text": "Summarize the task tool output above.", "synthetic": True})
    house.say("ses_out", "assistant", "Done.", call("write", filePath=f"{SHOP}/a.css", content="a"))
    (told,) = _scope(house).sessions
    assert [(turn.prompt, len(turn.message_ids)) for turn in told.turns] == [("Change the colour please.", 4)]
    assert [(one.path, one.kind, one.added) for one in told.changes] == [(f"{SHOP}/a.css", "added", 1)]
    assert not told.is_whole


def test_reading_is_bounded_and_what_was_left_unread_is_said(house: Recorded):
    for number in range(3):
        house.session(f"ses_{number}", SHOP)
        house.say(f"ses_{number}", "user", f"The wish number {number} of many.")
        house.say(f"ses_{number}", "user", f"The second wish number {number}.")
    found = collect(house.archive, house.recall(), SHOP, [], None, limit=3)
    assert len(_said(found)) == 3
    assert [one.session.id for one in found.sessions] == ["ses_0", "ses_1", "ses_2"]
    assert "number 2" in " ".join(_said(found))
    assert any("not read: 3 messages of older sessions" in warning for warning in found.warnings)


def test_without_the_lexical_index_the_rest_is_found_and_the_gap_is_said(house: Recorded):
    house.session("ses_in", SHOP)
    house.say("ses_in", "user", "Build a shop for me.")
    house.index()
    found = collect(house.archive, house.recall(lexical=FailingLexical(IndexBroken("torn"))), SHOP, [], None)
    assert _said(found) == ["Build a shop for me."]
    assert any("were not looked for" in warning for warning in found.warnings)


def test_changes_and_reads_of_a_path_touch_it_and_snapshots_do_not(house: Recorded):
    """Snapshots show a state; they are not work on a path."""
    house.session("ses_in", SHOP)
    path = f"{SHOP}/a.py"
    written = house.say("ses_in", "assistant", call("write", filePath=path, content="x\n"))
    seen = house.say("ses_in", "assistant", read(path, "x"))
    house.snapshot("ses_in", SHOP, {"a.py": b"x\n", "LICENSE": b"free\n"})
    found = _scope(house)
    assert found.touched == {path: frozenset({written, seen})}


def test_a_folder_move_touches_its_files_only_up_to_that_moment(house: Recorded):
    house.session("ses_out", "/elsewhere")
    house.say("ses_out", "assistant", call("write", filePath="/elsewhere/old/a.py", content="x\n"))
    before = house.clock
    moved = house.say("ses_out", "assistant", call("bash", command=f"mv /elsewhere/old {SHOP}", metadata={"exit": 0}))
    assert _scope(house).touched[f"{SHOP}/a.py"] == frozenset({moved})
    assert [one.session.id for one in _scope(house).sessions] == ["ses_out"]
    assert _scope(house, until=before).touched == {}


def test_a_command_about_a_folder_touches_none_of_its_files(house: Recorded):
    """A command about a single file of it does touch that file."""
    house.session("ses_in", SHOP)
    path = f"{SHOP}/src/a.py"
    written = house.say("ses_in", "assistant", call("write", filePath=path, content="x\n"))
    house.say("ses_in", "assistant", call("bash", command=f"black {SHOP}/src", metadata={"exit": 0}))
    assert _scope(house).touched[path] == frozenset({written})
    doubtful = house.say("ses_in", "assistant", call("bash", command=f"sed -i s/x/y/ {path}", metadata={"exit": 0}))
    assert _scope(house).touched[path] == frozenset({written, doubtful})


@pytest.mark.parametrize(
    ("old", "now"), [("/home/old/shop", SHOP), ("/home/old", "/home/dev"), ("/srv/src", f"{SHOP}/src")]
)
def test_what_was_recorded_under_a_former_name_belongs_to_the_target(house: Recorded, old: str, now: str):
    where = old if is_beneath(now, SHOP) else old + SHOP[len(now) :]
    house.session("ses_old", where)
    written = house.say(
        "ses_old", "assistant", "It was here then.", call("write", filePath=f"{where}/a.py", content="x\n")
    )
    seen = house.say("ses_old", "assistant", read(f"{where}/a.py", "x"))
    house.say("ses_old", "user", "And something else was said here.")
    assert _scope(house).sessions == ()
    Files(house.archive).alias(old, now)
    found = _scope(house)
    path = now + f"{where}/a.py"[len(old) :]
    assert found.touched == {path: frozenset({written, seen})}
    assert _said(found) == ["It was here then.", "And something else was said here."]


def test_files_changed_elsewhere_are_relative_to_the_folder(house: Recorded):
    made = [call("write", filePath=path, content="a") for path in (f"{SHOP}/a.css", "/home/dev/api/main.go", "/etc/x")]
    house.session("ses_in", SHOP)
    house.say("ses_in", "user", "Change both.")
    house.say("ses_in", "assistant", "Done.", *made)
    house.session("ses_out", "/home/dev/api")
    house.say("ses_out", "user", "Change both again.")
    house.say("ses_out", "assistant", "Done.", *made)
    told = {one.id: one.outside for one in _scope(house).sessions}
    assert told == {"ses_in": ("/etc/x", "../api/main.go"), "ses_out": ()}
    assert [one.outside for one in _scope(house, f"{SHOP}/a.css").sessions] == [(), ()]
