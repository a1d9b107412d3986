"""Files that kept what a taken-back turn did to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon import records
from daemon.files import Files
from daemon.model import Message
from daemon.reconstitute.facts.session import read_session
from daemon.reconstitute.facts.session.reverts import kept_words, with_kept
from daemon.reconstitute.facts.session_values import Call, CallStatus, Turn
from tests.support.stores.recorded_sessions import Recorded, call, recorded
from tests.unit.facts.folder_facts import turn

SHOP = "/home/dev/shop"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        made.session("ses_a", SHOP)
        made.say("ses_a", "user", "Make two lists.")
        yield made


def snapshot(house: Recorded, one: str, two: str, *calls: dict) -> str:
    return house.snapshot("ses_a", SHOP, {"a": one.encode(), "b": two.encode()}, *calls)


def edit(name: str, old: str, new: str) -> dict:
    return call("edit", filePath=f"{SHOP}/{name}", oldString=old, newString=new)


def taken_back(house: Recorded) -> Turn:
    session = house.archive.session("ses_a")
    assert session is not None
    messages: list[Message] = list(house.archive.messages("ses_a"))
    made = read_session(house.archive, session, messages, (), is_whole=True, until=None)
    (found,) = [one for one in with_kept(made, Files(house.archive).histories(SHOP)).turns if one.taken_back]
    return found


@pytest.mark.parametrize(
    ("after", "kept", "said"),
    [
        (("1\n", "1\n"), (), ""),
        (("2\n", "1\n"), ("a",), "a kept its change"),
        (("2\n", "2\n"), ("a", "b"), "its files were left as they were"),
        (("3\n", "1\n"), (), ""),
        (None, (), ""),
    ],
    ids=["all is back", "one is not", "none is", "something else was made of it", "nothing is known of it"],
)
def test_a_state_after_the_revert_tells_what_was_kept(
    house: Recorded, after: tuple[str, str] | None, kept: tuple[str, ...], said: str
) -> None:
    """As 1.1 leaves it: the messages are gone, and what the revert did to the files shows in the next snapshot."""
    snapshot(house, "1\n", "1\n")
    gone = [house.say("ses_a", "user", "Change both.")]
    gone.append(snapshot(house, "2\n", "1\n", edit("a", "1", "2")))
    gone.append(snapshot(house, "2\n", "2\n", edit("b", "1", "2")))
    for message in gone:
        house.delete(message)
    house.say("ses_a", "user", "Leave the rest.")
    if after is not None:
        snapshot(house, *after)
    found = taken_back(house)
    assert found.kept == tuple(f"{SHOP}/{name}" for name in kept)
    assert kept_words([found]) == said


@pytest.mark.parametrize(("part", "in_part"), [("", False), ("prt_0003_1", True)])
def test_without_snapshots_a_revert_leaves_the_files(house: Recorded, part: str, *, in_part: bool) -> None:
    written = call("write", filePath=f"{SHOP}/a", content="1\n", metadata={"exists": False})
    ids = [house.say("ses_a", "user", "Write it."), house.say("ses_a", "assistant", written, "Done.")]
    mark = {"messageID": ids[1] if part else ids[0]} | ({"partID": part} if part else {})
    house.session("ses_a", SHOP, raw=records.dumps({"revert": mark}))
    found = taken_back(house)
    assert (found.in_part, found.kept) == (in_part, (f"{SHOP}/a",))


def _turn(number: int, *, kept: tuple[str, ...], changed: tuple[str, ...], **more: str) -> Turn:
    made = Call(
        "edit", "edit", CallStatus.OK, f"msg_{number}", f"prt_{number}", number, number, changed=changed, **more
    )
    return turn("Do it.", made, time=number, taken_back=True, kept=kept)


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([], ""),
        ([_turn(1, kept=("/s/a",), changed=("/s/a",))], "its files were left as they were"),
        ([_turn(1, kept=("/s/a",), changed=("/s/a",), command="./paint")], "a kept its change"),
        ([_turn(1, kept=("/s/a",), changed=("/s/a", "/s/b"))], "a kept its change"),
        ([_turn(1, kept=("/s/a",), changed=("/s/a",)), _turn(2, kept=(), changed=("/s/a",))], ""),
        ([_turn(1, kept=(), changed=("/s/a",)), _turn(2, kept=("/s/a",), changed=("/s/a",))],
         "its files were left as they were"),
        ([_turn(1, kept=tuple("abcde"), changed=tuple("abcdef"))], "a, b, c and 2 more kept their changes"),
        ([replace(_turn(1, kept=("/s/a",), changed=("/s/a",)), taken_back=False)], ""),
    ],
)  # fmt: skip
def test_what_was_kept_is_said_in_words(turns: list[Turn], said: str) -> None:
    assert kept_words(turns) == said
