"""Walking through the records: a message, its surroundings, a session's pages, the list of sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRequest
from daemon.index import Filters
from daemon.model import Kind, Session
from daemon.recall import browse
from daemon.recall.answer.messages import tokens
from daemon.recall.catalog import Catalog
from daemon.recall.query import Recall, RecallContext, RecallGet, RecallMessages, RecallSessions
from daemon.transcript.replay import replay
from tests.support.chat_messages import ollama_problems
from tests.support.stores.recorded_sessions import Recorded, call, recorded

SECRET = "ghp_" + "a1B2" * 9
SHOP = "/home/dev/shop"


class House(Recorded):
    """Recorded, with sessions of any kind."""

    def begin(self, sid: str, directory: str, **fields: Any) -> str:
        self.clock += 60_000
        given = {"project_id": "prj", "title": f"Title of {sid}", "created": self.clock, "updated": self.clock} | fields
        batch = self.archive.batch()
        batch.session(Session(id=sid, directory=directory, raw=b"{}", version="1.18.33", **given), "test", 2)
        self.archive.commit(batch)
        return sid

    def remove(self, sid: str) -> None:
        batch = self.archive.batch()
        batch.forget_session_source(sid, "test", self.clock)
        self.archive.commit(batch)

    def messages(self, here: str = "", **asked: Any) -> dict[str, Any]:
        catalog = Catalog(self.archive)
        return browse.messages(self.archive, self.lexical, catalog, RecallMessages(**asked), here)

    def sessions(self, here: str = "", **asked: Any) -> dict[str, Any]:
        return browse.sessions(self.archive, Catalog(self.archive), RecallSessions(**asked), here)

    def context(self, mid: str, **asked: Any) -> dict[str, Any]:
        return browse.context(self.archive, RecallContext(messageID=mid, **asked))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """msg_0001 to msg_0009: three turns of prompt, call and answer."""
    with recorded(tmp_path_factory.mktemp("house")) as made:
        told = House(made.archive, made.lexical, made.embedder, made.vectors)
        told.begin("ses_a", SHOP, title=f"Rates {SECRET}")
        for turn in range(3):
            told.say("ses_a", "user", f"question {turn}")
            told.say("ses_a", "assistant", "looking", call("bash", output=f"Port {8000 + turn}", command="ss -l"))
            told.say("ses_a", "assistant", f"answer {turn} {SECRET}")
        told.index()
        yield told


@pytest.fixture
def town(tmp_path: Path) -> Iterator[House]:
    with recorded(tmp_path) as made:
        yield House(made.archive, made.lexical, made.embedder, made.vectors)


def _ids(answer: dict[str, Any]) -> list[int]:
    return [int(one["message"]["id"][4:]) for one in answer["messages"]]


def _sessions(answer: dict[str, Any]) -> list[str]:
    return [one["id"] for one in answer["sessions"]]


# -- one message ---------------------------------------------------------------------------------------------------


def test_a_message_comes_in_full_with_the_session_it_is_of(house: House):
    answer = browse.get(house.archive, RecallGet(messageID="msg_0002"))
    assert answer["ok"] is True
    assert answer["message"]["role"] == "assistant"
    assert [part.get("output", part.get("content")) for part in answer["parts"]] == ["looking", "Port 8000"]
    assert answer["context"]["sessionID"] == "ses_a"
    assert (answer["context"]["directory"], answer["context"]["projectID"]) == (SHOP, "prj")
    assert answer["warnings"] == []


def test_a_message_that_is_not_archived_is_named(house: House):
    for ask in (lambda: browse.get(house.archive, RecallGet(messageID="msg_x")), lambda: house.context("msg_x")):
        with pytest.raises(BadRequest, match="msg_x"):
            ask()


def test_a_session_that_does_not_fit_is_answered_with_the_real_one(house: House):
    answer = browse.get(house.archive, RecallGet(messageID=" msg_0001 ", sessionID="ses_z"))
    assert answer["warnings"] == ["message msg_0001 is not in session ses_z, but in ses_a"]
    assert house.context("msg_0001", sessionID="ses_z")["warnings"] == answer["warnings"]
    assert browse.get(house.archive, RecallGet(messageID="msg_0001", sessionID=" "))["warnings"] == []


def test_a_message_that_opencode_deleted_is_there_and_marked(town: House):
    mid = town.say(town.begin("ses_a", SHOP), "user", "gone")
    town.delete(mid)
    assert browse.get(town.archive, RecallGet(messageID=mid))["message"]["deleted"] is True


def test_a_part_deleted_in_opencode_is_marked_and_can_be_filtered(town: House):
    town.begin("ses_part", SHOP)
    mid = town.say("ses_part", "user", "the axolotl", "the gecko")
    message = town.archive.message(mid)
    assert message is not None
    first, second = (part.id for part in message.parts)
    batch = town.archive.batch()
    batch.message(message, source="test", generation=2, hash_="h2", edits=(), gone=[first])
    town.archive.commit(batch)
    town.index()
    marks = {part["id"]: part.get("deleted") for part in browse.get(town.archive, RecallGet(messageID=mid))["parts"]}
    assert marks == {first: True, second: None}
    for word, is_gone in (("axolotl", True), ("gecko", False)):
        asked = Recall(query=word, match="literal", sessionID="ses_part", expand="message")
        answer = town.recall(budget_s=60.0).answer(asked, "", town.clock)
        [shown] = answer["results"]
        assert shown["deleted"] is is_gone
        [expansion] = answer["expanded"]
        assert [part.get("deleted") for part in expansion["message"]["parts"]] == [True, None]
    for deleted, parts in ((None, [first, second]), (True, [first]), (False, [second])):
        filters = Filters(session_id="ses_part", deleted=deleted, kinds=(str(Kind.PROMPT),))
        assert sorted({match.part_id for match in town.lexical.literal("the ", filters, 9)}) == parts


def test_no_call_lets_a_secret_out(house: House):
    answers = [
        browse.get(house.archive, RecallGet(messageID="msg_0003")),
        house.context("msg_0003"),
        house.context("msg_0003", format="messages"),
        house.messages(sessionID="ses_a"),
        house.messages(here=SHOP),
        house.sessions(),
    ]
    for answer in answers:
        assert SECRET not in json.dumps(answer)
        assert "REDACTED" in json.dumps(answer)


# -- around a message ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("middle", "asked", "ids", "more_before", "more_after"),
    [
        (5, {"window": 1}, [4, 5, 6], True, True),
        (5, {"window": 0}, [5], True, True),
        (1, {"window": 2}, [1, 2, 3], False, True),
        (9, {"window": 2}, [7, 8, 9], True, False),
        (5, {"window": 50}, [1, 2, 3, 4, 5, 6, 7, 8, 9], False, False),
        (5, {"before": 1, "after": 3}, [4, 5, 6, 7, 8], True, True),
        (5, {"window": 1, "before": 0}, [5, 6], True, True),
        (2, {"before": 1, "after": 0}, [1, 2], False, True),
    ],
)
@pytest.mark.parametrize("form", ["parts", "messages"])
def test_the_window_is_what_was_asked_for_and_says_what_is_beyond(
    house: House, form: str, middle: int, asked: dict[str, Any], ids: list[int], more_before: bool, more_after: bool
):
    answer = house.context(f"msg_{middle:04d}", format=form, **asked)
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"]) == (more_before, more_after)
    if form == "parts":
        assert _ids(answer) == ids
        assert [one["message"]["id"] for one in answer["messages"] if one.get("center")] == [f"msg_{middle:04d}"]
    else:
        messages = (house.archive.message(f"msg_{number:04d}") for number in ids)
        replays = [replay(message) for message in messages if message is not None]
        assert len(replays) == len(ids)
        assert [one["role"] for one in answer["messages"]] == [entry["role"] for one in replays for entry in one]


def test_messages_for_a_model_keep_to_the_budget_and_say_what_did_not_fit(house: House):
    answer = house.context("msg_0005", format="messages", window=50, budgetTokens=100)
    assert ollama_problems(answer["messages"]) == []
    assert sum(map(tokens, answer["messages"])) <= 100
    assert "looking" in [one["content"] for one in answer["messages"]]
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"]) == (True, True)
    (warning,) = answer["warnings"]
    assert "budget" in warning or "100 tokens" in warning


@pytest.mark.parametrize("said", ["x" * 4000, "木" * 4000, "many short words " * 400])
def test_a_message_longer_than_the_budget_is_cut_and_said(town: House, said: str):
    begun = town.begin("ses_a", SHOP)
    town.say(begun, "user", "before")
    mid = town.say(begun, "user", said)
    answer = town.context(mid, format="messages", budgetTokens=200)
    [entry] = answer["messages"]
    assert entry["role"] == "user"
    assert entry["content"].startswith(said[:20])
    assert entry["content"].endswith("[truncated by recall expansion]")
    assert tokens(entry) <= 200
    assert "are cut" in answer["warnings"][0]
    assert "`budgetTokens`" in answer["warnings"][0]
    assert (answer["hasMoreBefore"], answer["hasMoreAfter"]) == (True, False)


def test_a_message_of_many_calls_keeps_to_a_budget_that_fits_none(town: House):
    begun = town.begin("ses_a", SHOP)
    calls = [call("bash", output="y" * 900, command=f"echo {number}") for number in range(60)]
    mid = town.say(begun, "assistant", *calls)
    answer = town.context(mid, format="messages", budgetTokens=100)
    assert sum(map(tokens, answer["messages"])) <= 100
    assert "[truncated by recall expansion]" in json.dumps(answer["messages"])


def test_long_texts_are_cut_and_end_in_the_mark(town: House):
    mid = town.say(town.begin("ses_a", SHOP), "user", "x" * 5000)
    (shown,) = town.context(mid)["messages"][0]["parts"]
    assert shown["content"] == "x" * 4000 + "[truncated by recall expansion]"
    (whole,) = town.context(mid, maxChars=0)["messages"][0]["parts"]
    assert whole["content"] == "x" * 5000


# -- pages of a session --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "ids", "total", "has_more"),
    [
        ({"limit": 4}, [1, 2, 3, 4], 9, True),
        ({"limit": 4, "offset": 8}, [9], 9, False),
        ({"limit": 4, "offset": 5}, [6, 7, 8, 9], 9, False),
        ({"limit": 2, "reverse": True}, [9, 8], 9, True),
        ({"limit": 2, "reverse": True, "offset": 7}, [2, 1], 9, False),
        ({"role": "user"}, [1, 4, 7], 3, False),
        ({"role": "user", "reverse": True, "limit": 1, "offset": 1}, [4], 3, True),
        ({"role": "assistant", "limit": 3}, [2, 3, 5], 6, True),
        ({"query": "QUESTION"}, [1, 4, 7], 3, False),
        ({"query": "port 800"}, [2, 5, 8], 3, False),
        ({"query": "port 8001"}, [5], 1, False),
        ({"query": "ss -l", "reverse": True, "limit": 2}, [8, 5], 3, True),
        ({"query": "answer", "role": "user"}, [], 0, False),
        ({"query": "answer", "role": "assistant"}, [3, 6, 9], 3, False),
        ({"query": "Rates"}, [], 0, False),  # the title, which is no message's
        ({"query": " "}, [1, 2, 3, 4, 5, 6, 7, 8, 9], 9, False),
        ({"query": "nowhere"}, [], 0, False),
    ],
)
def test_pages_have_what_was_asked_for_in_the_order_of_the_conversation(
    house: House, asked: dict[str, Any], ids: list[int], total: int, has_more: bool
):
    answer = house.messages(sessionID="ses_a", **asked)
    assert _ids(answer) == ids
    page = {"offset": asked.get("offset", 0), "returned": len(ids), "total": total, "hasMore": has_more}
    assert answer["pagination"] == page
    assert answer["warnings"] == []


@given(st.integers(1, 4), st.booleans(), st.sampled_from(["all", "user", "assistant"]), st.sampled_from(["", "o"]))
def test_walking_through_all_pages_gives_each_message_once(house, limit, reverse, role, query):
    walked: list[int] = []
    while True:
        asked = {"limit": limit, "offset": len(walked), "reverse": reverse, "role": role, "query": query}
        page = house.messages(sessionID="ses_a", **asked)
        walked += _ids(page)
        if not page["pagination"]["hasMore"]:
            break
    assert len(walked) == page["pagination"]["total"] == len(set(walked))
    assert walked == sorted(walked, reverse=reverse)


def test_an_offset_behind_the_last_message_is_said(house: House):
    answer = house.messages(sessionID="ses_a", offset=40)
    assert answer["warnings"] == ["`offset` 40 is past the last of 9 messages"]
    assert answer["pagination"]["hasMore"] is False


def test_unindexed_messages_are_reported_if_a_query_could_miss_them(town: House):
    town.say(town.begin("ses_a", SHOP), "user", "fresh")
    assert "1 message is not searchable by words yet" in town.messages(sessionID="ses_a", query="fresh")["warnings"][0]
    assert town.messages(sessionID="ses_a")["warnings"] == []


def test_a_query_finds_every_message_of_a_long_session(town: House):
    town.begin("ses_a", SHOP)
    for _ in range(150):
        town.say("ses_a", "user", "the needle")
    town.say(town.begin("ses_b", SHOP), "user", "the needle")
    town.index()
    assert town.messages(sessionID="ses_a", query="NEEDLE", limit=50, offset=100)["pagination"]["total"] == 150


def test_the_latest_session_of_the_directory_is_the_stated_default(town: House):
    town.say(town.begin("ses_old", SHOP), "user", "old")
    town.say(town.begin("ses_new", SHOP), "user", "new")
    town.say(town.begin("ses_agent", SHOP, parent_id="ses_new"), "user", "a sub-agent's")
    town.say(town.begin("ses_else", "/home/dev/other"), "user", "elsewhere")
    town.say(town.begin("ses_gone", SHOP), "user", "deleted")
    town.remove("ses_gone")
    for here in (SHOP, f"{SHOP}/", f"{SHOP}/src/deep", "/home/dev/shop/../shop"):
        answer = town.messages(here=here)
        assert answer["context"]["sessionID"] == "ses_new"
        assert "ses_new" in answer["warnings"][0]


@pytest.mark.parametrize("here", ["", "/srv/none", "relative"])
def test_without_a_session_here_nothing_is_assumed(house: House, here: str):
    with pytest.raises(BadRequest, match="recall_sessions"):
        house.messages(here=here)


def test_a_session_that_is_not_archived_is_named(house: House):
    with pytest.raises(BadRequest, match="ses_x"):
        house.messages(sessionID="ses_x", here=SHOP)


# -- the list of sessions ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Eight sessions; the later in this list, the later updated."""
    with recorded(tmp_path_factory.mktemp("street")) as made:
        told = House(made.archive, made.lexical, made.embedder, made.vectors)
        told.begin("ses_1", SHOP, title="Add Rate limits")
        told.begin("ses_2", f"{SHOP}/api", title="API rates")
        told.begin("ses_3", "/home/dev/shopping", project_id="other", title="Lists")
        told.begin("ses_4", "/home/clone/shop", title="The same project elsewhere")
        told.begin("ses_5", "/home/dev/notes", project_id="global", archived=5)
        told.begin("ses_6", "/tmp/scratch", project_id="global")
        told.begin("ses_7", SHOP, parent_id="ses_1", title="explore")
        told.begin("ses_8", SHOP, title=f"deploy {SECRET}")
        told.say("ses_8", "user", "go")
        told.remove("ses_8")
        yield told


@pytest.mark.parametrize(
    ("here", "asked", "numbers"),
    [
        ("", {}, [8, 7, 6, 5, 4, 3, 2, 1]),
        ("", {"search": "RATE"}, [2, 1]),
        ("", {"search": " "}, [8, 7, 6, 5, 4, 3, 2, 1]),
        ("", {"search": "ghp_"}, []),
        ("", {"directory": SHOP}, [8, 7, 2, 1]),
        ("", {"directory": f"{SHOP}/"}, [8, 7, 2, 1]),
        ("", {"directory": SHOP, "within": "exact"}, [8, 7, 1]),
        ("", {"directory": SHOP, "within": "project"}, [8, 7, 4, 2, 1]),
        ("", {"directory": f"{SHOP}/api/src", "within": "project"}, [8, 7, 4, 2, 1]),
        ("", {"directory": "/tmp/scratch", "within": "project"}, [6]),
        ("", {"directory": "/tmp/scratch/deep", "within": "project"}, []),
        ("/tmp/scratch/deep", {"scope": "project"}, [6]),
        ("", {"scope": "project", "directory": SHOP}, [8, 7, 2, 1]),
        (SHOP, {"directory": "api"}, [2]),
        ("", {"projectID": "other"}, [3]),
        ("", {"projectID": "none"}, []),
        (SHOP, {"scope": "project"}, [8, 7, 4, 2, 1]),
        ("/home/clone/shop", {"scope": "project", "search": "rate"}, [2, 1]),
        ("/tmp/scratch", {"scope": "project"}, [6]),
        ("", {"scope": "project", "directory": "/home/dev/shopping"}, [3]),
        ("", {"archived": "only"}, [5]),
        ("", {"archived": "exclude"}, [8, 7, 6, 4, 3, 2, 1]),
        ("", {"deleted": "only"}, [8]),
        ("", {"deleted": "exclude", "limit": 2}, [7, 6]),
        ("", {"children": False, "limit": 3}, [8, 6, 5]),
        ("", {"limit": 3, "offset": 6}, [2, 1]),
        ("", {"offset": 20}, []),
    ],
)
def test_the_list_has_the_sessions_that_fit_the_latest_first(
    street: House, here: str, asked: dict[str, Any], numbers: list[int]
):
    answer = street.sessions(here, **asked)
    assert _sessions(answer) == [f"ses_{number}" for number in numbers]
    assert answer["returned"] == len(numbers)
    assert answer["scope"] == asked.get("scope", "global")
    assert answer["hasMore"] == (asked.get("offset", 0) + asked.get("limit", 20) < answer["total"])


def test_a_session_says_what_it_is(street: House):
    gone, child, *_, archived, _, _, _, _ = street.sessions()["sessions"]
    assert (gone["deleted"], gone["archived"], gone["messages"]) == (True, False, 1)
    assert gone["title"].startswith("deploy [REDACTED")
    assert child["parentID"] == "ses_1"
    assert "parentID" not in gone
    assert archived["archived"] is True
    assert set(archived["time"]) == {"created", "updated"}


def test_a_session_that_was_renamed_is_found_by_its_new_name(town: House):
    town.begin("ses_a", SHOP, title="before")
    catalog = Catalog(town.archive)
    asked = RecallSessions(search="after")
    assert browse.sessions(town.archive, catalog, asked, "")["total"] == 0
    town.begin("ses_a", SHOP, title="after")
    assert browse.sessions(town.archive, catalog, asked, "")["total"] == 1


@pytest.mark.parametrize("asked", [{"scope": "project"}, {"directory": "relative/path"}])
def test_a_question_about_no_place_is_refused(street: House, asked: dict[str, Any]):
    with pytest.raises(BadRequest, match="directory"):
        street.sessions("", **asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"offset": 8}, "`offset` 8 is past the last of 8 sessions"),
        ({"projectID": "none"}, "project 'none' is not in the archive"),
        ({"directory": "/nowhere"}, "no recorded session is of /nowhere"),
        ({"directory": "/nowhere", "scope": "project"}, "no recorded session is of /nowhere"),
        ({"offset": 7}, ""),
        ({"directory": SHOP, "projectID": "prj"}, ""),
        ({"search": "xyzzy"}, ""),
    ],
)
def test_what_is_asked_for_and_nowhere_is_said(street: House, asked: dict[str, Any], said: str):
    warnings = street.sessions(**asked)["warnings"]
    assert (said in warnings[0] and len(warnings) == 1) if said else warnings == []


def test_a_message_made_up_for_parts_that_lost_theirs_says_so(town: House):
    town.session("ses_o", SHOP)
    made = town.put("ses_o", "msg_o", "user", (), orphan=True)
    told = town.put("ses_o", "msg_p", "user", ())
    shown = [browse.get(town.archive, RecallGet(messageID=one))["message"] for one in (made, told)]
    assert [one.get("orphan") for one in shown] == [True, None]
    assert [one["message"].get("orphan") for one in town.messages(sessionID="ses_o")["messages"]] == [True, None]
