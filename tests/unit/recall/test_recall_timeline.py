"""What happened around a message, a session or a moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRequest
from daemon.model import Operation
from daemon.recall.catalog import Catalog
from daemon.recall.query import RecallTimeline
from daemon.recall.timeline import LINE, timeline
from tests.support.stores.recorded_sessions import MINUTE, START, Recorded, call, read, recorded

SHOP = "/home/dev/shop"
SECRET = "ghp_" + "a1B2" * 9


def _write(path: str, **state: Any) -> dict[str, Any]:
    made = call("write", metadata={"filepath": path, "exists": False}, filePath=path, content="x\n")
    return made | {"state": made["state"] | state}


def _ask(house: Recorded, anchor: str = "now", *, now: int | None = None, **more: Any) -> dict[str, Any]:
    asked = RecallTimeline(anchor=anchor, **more)
    return timeline(house.archive, house.lexical, Catalog(house.archive), asked, now or house.clock + MINUTE)


def _lines(answer: dict[str, Any]) -> list[str]:
    return [("* " if one["anchor"] else "") + f"{one['type']} {one['text']}" for one in answer["entries"]]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses_a", SHOP, f"Rates {SECRET}")
        made.say("ses_a", "user", "limit the\nrates")  # msg_0001
        made.say("ses_a", "assistant", "reading", read(f"{SHOP}/a.py", "x"))
        made.say("ses_a", "assistant", _write(f"{SHOP}/a.py"), _write(f"{SHOP}/b.py"))  # msg_0003
        made.session("ses_b", "/home/dev/notes", "Notes")
        made.say("ses_b", "user", "write it down")  # msg_0004
        made.say("ses_b", "assistant", call("bash", command="mv x.md y.md", metadata={"exit": 0}))
        made.say("ses_a", "user", f"thanks {SECRET}")  # msg_0006
        made.say("ses_a", "assistant", "you are welcome")
        made.index()
        yield made


WHOLE = [
    "session Rates [REDACTED]",
    "prompt limit the rates",
    "file write a.py",
    "file write b.py",
    "session Notes",
    "prompt write it down",
    "file move x.md -> y.md",
    "prompt thanks [REDACTED]",
]


def _shortened(lines: list[str]) -> list[str]:
    return [line.split("[REDACTED")[0] + ("[REDACTED]" if "[REDACTED" in line else "") for line in lines]


def test_sessions_prompts_and_changes_come_mixed_in_order_of_time(house: Recorded):
    answer = _ask(house)
    assert answer["ok"] is True
    assert _shortened(_lines(answer)) == WHOLE
    times = [one["time"] for one in answer["entries"]]
    assert times == sorted(times)
    assert answer["anchor"] == {"type": "time", "time": house.clock + MINUTE}
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"], answer["warnings"]) == (False, False, [])


@pytest.mark.parametrize(
    ("anchor", "asked", "lines", "more"),
    [
        ("msg_0004", {"depth_before": 2, "depth_after": 1},
         ["file write b.py", "session Notes", "* prompt write it down", "file move x.md -> y.md"], (True, True)),
        ("msg_0003", {"depth_before": 1, "depth_after": 2},
         ["prompt limit the rates", "* answer ", "file write a.py", "file write b.py"], (True, True)),
        ("ses_b", {"depth_before": 1, "depth_after": 1},
         ["file write b.py", "* session Notes", "prompt write it down"], (True, True)),
        ("ses_a", {"depth_after": 0}, ["* session Rates [REDACTED]"], (False, True)),
        ("msg_0006", {"depth_before": 0}, ["* prompt thanks [REDACTED]"], (True, False)),
        ("msg_0004", {"depth_before": 1, "depth_after": 1, "kinds": ["file"]},
         ["file write b.py", "* prompt write it down", "file move x.md -> y.md"], (True, False)),
        ("now", {"kinds": ["session"]}, ["session Rates [REDACTED]", "session Notes"], (False, False)),
        ("now", {"kinds": ["prompt"], "depth_before": 1}, ["prompt thanks [REDACTED]"], (True, False)),
        ("now", {"sessionID": "ses_b"}, ["session Notes", "prompt write it down", "file move x.md -> y.md"],
         (False, False)),
        ("now", {"project": "/home/dev/notes"}, ["session Notes", "prompt write it down", "file move x.md -> y.md"],
         (False, False)),
        ("now", {"project": "/home/dev/notes", "sessionID": "ses_a"}, [], (False, False)),
        ("now", {"project": "/home/dev/note"}, [], (False, False)),
        ("now", {"project": "prj", "depth_before": 1}, ["prompt thanks [REDACTED]"], (True, False)),
        ("1 minute ago", {"depth_before": 1}, ["prompt thanks [REDACTED]"], (True, False)),
        ("2000-01-02", {"depth_after": 1}, ["session Rates [REDACTED]"], (False, True)),
        ("2099-01-01T10:00:00Z", {"depth_before": 1}, ["prompt thanks [REDACTED]"], (True, False)),
    ],
)  # fmt: skip
def test_around_the_anchor_come_as_many_as_were_asked_for(
    house: Recorded, anchor: str, asked: dict[str, Any], lines: list[str], more: tuple[bool, bool]
):
    answer = _ask(house, anchor, **asked)
    assert _shortened(_lines(answer)) == lines
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"]) == more


def test_what_is_at_the_moment_itself_comes_after_it(house: Recorded):
    session = house.archive.session("ses_b")
    assert session is not None
    for time, sides in [(session.created, ["file", "session"]), (session.created + 1, ["session", "prompt"])]:
        entries = _ask(house, str(time), depth_before=1, depth_after=1)["entries"]
        assert [one["type"] for one in entries] == sides
        assert entries[0]["time"] < time <= entries[1]["time"]


def test_an_entry_says_where_it_belongs(house: Recorded):
    session, prompt, change, *_ = _ask(house)["entries"]
    assert set(session) == {"type", "time", "sessionID", "sessionTitle", "text", "anchor"}
    assert (prompt["sessionID"], prompt["messageID"]) == ("ses_a", "msg_0001")
    assert prompt["sessionTitle"].startswith("Rates [REDACTED")
    assert (change["path"], change["operation"], change["tool"]) == (f"{SHOP}/a.py", "write", "write")
    assert change["messageID"] == "msg_0003"


def test_the_full_format_has_whole_texts_and_the_index_one_line(town: Recorded):
    town.session("ses_a", SHOP)
    town.say("ses_a", "user", "first line\n" + "word " * 100)
    town.index()
    (short,) = _ask(town, kinds=["prompt"])["entries"]
    (full,) = _ask(town, kinds=["prompt"], format="full")["entries"]
    assert len(short["text"]) == LINE
    assert "\n" not in short["text"]
    assert full["text"] == "first line\n" + "word " * 100


def test_no_secret_leaves_in_either_format(house: Recorded):
    for form in ("index", "full"):
        shown = json.dumps(_ask(house, format=form))
        assert SECRET not in shown
        assert "REDACTED" in shown


def test_a_change_stands_where_its_call_ended_not_where_its_message_began(town: Recorded):
    town.session("ses_a", "/w")
    town.session("ses_b", "/v")
    late = town.clock + 10 * MINUTE
    town.say("ses_a", "assistant", _write("/w/slow.py", time={"start": town.clock, "end": late}))
    town.say("ses_b", "assistant", _write("/v/quick.py"))
    town.say("ses_b", "user", "meanwhile")
    town.index()
    expected = ["file write quick.py", "prompt meanwhile", "file write slow.py"]
    assert _lines(_ask(town, kinds=["prompt", "file"], now=late + MINUTE)) == expected
    assert _lines(_ask(town, str(START), kinds=["prompt", "file"])) == expected
    assert _lines(_ask(town, str(late), kinds=["prompt", "file"], depth_before=1)) == expected[1:]
    assert _lines(_ask(town, str(late - 1), kinds=["file"], depth_before=0)) == expected[2:]


def test_calls_that_failed_changed_nothing(town: Recorded):
    town.session("ses_a", "/w")
    town.say("ses_a", "assistant", call("write", "error", filePath="/w/a.py", content="x"))
    town.index()
    assert _ask(town, kinds=["file"])["entries"] == []


def test_a_call_beside_a_read_in_one_message_is_not_missed(town: Recorded):
    town.session("ses_a", "/w")
    town.say("ses_a", "assistant", read("/w/a.py", "x"), _write("/w/b.py"))
    town.index()
    assert _lines(_ask(town, kinds=["file"])) == ["file write b.py"]


def test_what_is_not_indexed_yet_is_said(town: Recorded):
    town.session("ses_a", "/w")
    town.say("ses_a", "user", "fresh")
    assert "1 message is not searchable by words yet" in _ask(town)["warnings"][0]


@pytest.mark.parametrize(
    ("anchor", "asked", "named"),
    [
        ("msg_none", {}, "msg_none"),
        ("ses_none", {}, "ses_none"),
        ("the other day", {}, "the other day"),
        ("now", {"sessionID": "ses_none"}, "ses_none"),
        ("now", {"project": "no-such-project"}, "no-such-project"),
    ],
)
def test_what_is_not_known_is_named(house: Recorded, anchor: str, asked: dict[str, Any], named: str):
    with pytest.raises(BadRequest, match=named):
        _ask(house, anchor, **asked)


# -- the law -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Four sessions interleaved, many things at the same millisecond, calls of up to ten minutes."""
    with recorded(tmp_path_factory.mktemp("busy")) as made:
        for number in range(4):
            made.session(f"ses_{number}", f"/w/{number}", f"Session {number}")
        for turn in range(60):
            sid = f"ses_{turn * 7 % 4}"
            if turn % 3 == 0:
                made.say(sid, "user", f"prompt {turn}", "and more")
            elif turn % 3 == 1:
                end = made.clock + MINUTE * (turn % 11)
                made.say(sid, "assistant", _write(f"/w/{turn}.py", time={"start": made.clock, "end": end}))
            else:
                made.say(sid, "assistant", "hm", read(f"/w/{turn}.py", "x"))
            if turn % 2:
                made.clock -= MINUTE  # the next thing is at the same time
        made.index()
        yield made


@given(
    st.integers(0, 75), st.integers(0, 50), st.integers(0, 50),
    st.sets(st.sampled_from(["session", "prompt", "file"])), st.booleans(), st.sampled_from(["", "ses_1"]),
)  # fmt: skip
def test_every_answer_is_the_same_stretch_of_one_order(
    busy: Recorded, place, before, after, kinds, is_time, session_id
):
    every = _every(busy, kinds, session_id)
    own = every[place % len(every)] if every else (START, 0, "", "", "")
    anchor = str(own[0]) if is_time or not every else own[3] or own[2]
    answer = _ask(busy, anchor, depth_before=before, depth_after=after, kinds=sorted(kinds), sessionID=session_id)
    shown = [_key(one) for one in answer["entries"]]
    if own[1] == 3 and not is_time:  # the anchor is the message that made the change
        state = busy.archive.state(own[3])
        assert state is not None
        own = (state["created"], 2, own[2], own[3], "")
    mine = [own] if not is_time and every else []
    earlier = [one for one in every if (one[0] < own[0] if is_time else one < own)]
    later = [one for one in every if (one[0] >= own[0] if is_time else one > own)]
    assert shown == earlier[len(earlier) - min(before, len(earlier)) :] + mine + later[:after]
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"]) == (len(earlier) > before, len(later) > after)
    assert [_key(one) for one in answer["entries"] if one["anchor"]] == mine


def _key(entry: dict[str, Any]) -> tuple[int, int, str, str, str]:
    rank = ["session", "prompt", "answer", "file"].index(entry["type"])
    return (entry["time"], rank, entry["sessionID"], entry.get("messageID", ""), entry.get("path", ""))


def _every(house: Recorded, kinds: set[str], session_id: str = "") -> list[tuple[int, int, str, str, str]]:
    """(time, rank of the type, session, message, path) of all entries, from the archive's own lists."""
    archive = house.archive
    found: list[tuple[int, int, str, str, str]] = []
    for session in archive.sessions():
        found.append((session.created, 0, session.id, "", ""))
        users = [m for m in archive.messages(session.id) if m.role == "user"]
        found += [(m.created, 1, session.id, m.id, "") for m in users]
    for path in archive.paths():
        changes = [edit for edit in archive.files.edits(path) if edit.operation is Operation.WRITE]
        found += [(edit.time, 3, edit.session_id, edit.message_id, path) for edit in changes]
    ranks = {rank for name, rank in (("session", 0), ("prompt", 1), ("file", 3)) if name in kinds or not kinds}
    return sorted(one for one in found if one[1] in ranks and session_id in ("", one[2]))


def test_calls_without_a_change_are_read_only_so_far_and_that_is_said(town: Recorded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("daemon.recall.timeline.MOST_CALLS", 64)
    town.session("ses_a", "/w")
    town.say("ses_a", "user", "the first")
    town.say("ses_a", "assistant", _write("/w/a.py"))
    for number in range(4):
        town.say("ses_a", "assistant", *(read(f"/w/{place}.py", "x") for place in range(30)))
        town.clock += 60 * MINUTE
        town.say("ses_a", "user", f"again {number}")
    town.index()
    near = _ask(town, depth_before=2)
    assert (_lines(near), near["warnings"]) == (["prompt again 2", "prompt again 3"], [])
    far = _ask(town, kinds=["file"])
    assert (far["entries"], far["hasMoreBefore"]) == ([], True)
    assert "calls were read" in far["warnings"][0]


def test_a_prompt_with_a_sub_agent_task_is_shown_and_a_model_task_is_not(town: Recorded):
    task = {"type": "subtask", "agent": "explore", "description": "Find the cart", "prompt": "Look for\ncart.py"}
    town.session("ses_a", "/w")
    mid = town.say("ses_a", "user", task)
    town.say("ses_a", "assistant", call("task", description="models own", prompt="go"))
    town.say("ses_a", "user", {"type": "file", "filename": "a.png", "url": "data:image/png;base64,AAAA"})
    town.index()
    assert _lines(_ask(town, kinds=["prompt"])) == ["prompt Find the cart Look for cart.py", "prompt a.png"]
    assert _lines(_ask(town, mid, depth_before=0, depth_after=0)) == ["* prompt Find the cart Look for cart.py"]
    (shown,) = _ask(town, mid, depth_before=0, depth_after=0, format="full")["entries"]
    assert shown["text"] == "Find the cart\nLook for\ncart.py"


def test_a_directory_in_which_nothing_was_recorded_is_said(house: Recorded):
    answer = _ask(house, project="/nowhere")
    assert answer["entries"] == []
    assert "no recorded session is of /nowhere" in answer["warnings"][0]
    assert _ask(house, project=SHOP)["warnings"] == []
