"""The call that reads a session: pages, what its calls changed, sub-agents, reverts, and that nothing comes out whole
that is secret or too long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.errors import BadRequest
from tests.e2e.talk import Talk
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text, tool, user

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
ROOT = "/home/dev/garden"


class House:
    def __init__(self, store: JsonStore, engine: PlainService) -> None:
        self.store, self.engine = store, engine
        self.talk = Talk(store)

    def read(self, **more: Any) -> dict[str, Any]:
        return self.engine.conversation(self.talk.session_id, **more)

    def parts(self, **more: Any) -> list[dict[str, Any]]:
        return [part for message in self.read(**more)["messages"] for part in message["parts"]]

    def call(self, name: str, given: dict[str, Any], output: str = "ok", **metadata: Any) -> dict[str, Any]:
        """A completed call with this metadata; the answer is the part as it is read."""
        number = len(self.engine.archive.message_ids(self.talk.session_id)) + 1000
        message_id, created = f"msg_a{number:05d}", T0 + number * 1000
        state = {
            "status": "completed", "input": given, "output": output, "title": "", "metadata": metadata,
            "time": {"start": created, "end": created + 10},
        }  # fmt: skip
        part = tool(f"prt_{message_id}", message_id, self.talk.session_id, name, state)
        self.store.message(assistant(message_id, self.talk.session_id, created, created + 100), part)
        return self.parts(message_id=message_id, count=1)[0]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "a")}}
    store = JsonStore(tmp_path / "oc")
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        yield House(store, engine)


# -- pages ---------------------------------------------------------------------------------------------------------------


def test_pages_of_a_session_follow_each_other_without_a_gap(house: House) -> None:
    written = [house.talk.ask(f"Question {number}?") for number in range(23)]
    pages = [house.read(start=start, count=10) for start in (0, 10, 20, 30)]
    assert [message["id"] for page in pages for message in page["messages"]] == written
    assert [message["number"] for page in pages for message in page["messages"]] == list(range(23))
    assert {page["total"] for page in pages} == {23}


def test_a_message_is_found_on_its_page(house: House) -> None:
    written = [house.talk.ask(f"Question {number}?") for number in range(23)]
    page = house.read(message_id=written[17], count=10)
    assert (page["start"], page["target"]) == (10, 17)
    assert written[17] in [message["id"] for message in page["messages"]]


@pytest.mark.parametrize(
    "given",
    [
        {"session_id": "ses_none"},
        {"message_id": "msg_none"},
        {"count": 0},
        {"count": 501},
        {"start": -1},
        {"most_chars": 1},
    ],
    ids=str,
)
def test_what_is_not_there_is_a_mistake_of_the_caller(house: House, given: dict[str, Any]) -> None:
    house.talk.ask("Hello?")
    with pytest.raises(BadRequest):
        house.engine.conversation(**({"session_id": house.talk.session_id} | given))


def test_an_empty_session_has_no_messages(house: House) -> None:
    assert (house.read()["total"], house.read()["messages"]) == (0, [])


# -- parts ---------------------------------------------------------------------------------------------------------------


def test_texts_and_reasoning_are_told_apart(house: House) -> None:
    house.talk.ask("Why?")
    house.talk.answer("Because.", {"type": "reasoning", "text": "Let me think."})
    assert [(part["type"], part["text"]) for part in house.parts()] == [
        ("text", "Why?"), ("text", "Because."), ("reasoning", "Let me think."),
    ]  # fmt: skip


def test_long_texts_are_cut_and_say_by_how_much(house: House) -> None:
    house.talk.ask("x" * 1000)
    (part,) = house.parts(most_chars=300)
    assert (len(part["text"]), part["cut"]) == (300, 700)
    (whole,) = house.parts()
    assert (len(whole["text"]), whole["cut"]) == (1000, 0)


def test_an_attached_picture_is_not_sent_along(house: House) -> None:
    house.talk.answer("See.", {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "A" * 9000})
    part = house.parts()[1]
    assert part["type"] == "file"
    assert "[9000 characters]" in part["text"]
    assert len(part["text"]) < 300


# -- changes -------------------------------------------------------------------------------------------------------------


def test_a_write_shows_its_whole_content_as_added(house: House) -> None:
    part = house.call("write", {"filePath": f"{ROOT}/a.lua", "content": "one\ntwo\n"})
    assert part["changes"] == [{"path": f"{ROOT}/a.lua", "operation": "write", "diff": "@@ -0,0 +1,2 @@\n+one\n+two\n"}]


def test_an_edit_without_a_recorded_diff_shows_its_texts(house: House) -> None:
    part = house.call("edit", {"filePath": f"{ROOT}/a.lua", "oldString": "a\nb", "newString": "a\nc"})
    assert part["changes"] == [{"path": f"{ROOT}/a.lua", "operation": "edit", "diff": " a\n-b\n+c\n"}]


def test_the_recorded_diff_comes_first(house: House) -> None:
    patch = f"Index: {ROOT}/a.lua\n====\n--- {ROOT}/a.lua\n+++ {ROOT}/a.lua\n@@ -7,1 +7,1 @@\n-b\n+c\n"
    given = {"filePath": f"{ROOT}/a.lua", "oldString": "b", "newString": "c"}
    part = house.call("edit", given, diff=patch)
    assert [change["diff"] for change in part["changes"]] == ["@@ -7,1 +7,1 @@\n-b\n+c\n"]


def test_several_edits_of_one_call_are_shown_one_after_the_other(house: House) -> None:
    edits = [{"oldString": "a", "newString": "b"}, {"oldString": "c", "newString": "d"}, {"oldString": 1}, None]
    part = house.call("multiedit", {"filePath": f"{ROOT}/a.lua", "edits": edits})
    assert [change["diff"] for change in part["changes"]] == ["-a\n+b\n-c\n+d\n"]


def test_a_patch_without_recorded_diffs_shows_its_text(house: House) -> None:
    patch = f"*** Begin Patch\n*** Update File: {ROOT}/a.lua\n@@\n-b\n+c\n*** End Patch"
    part = house.call("apply_patch", {"patchText": patch})
    assert [(change["path"], change["diff"]) for change in part["changes"]] == [("", patch), (f"{ROOT}/a.lua", "")]


@pytest.mark.parametrize(
    "given", [{}, {"filePath": 1, "content": ["x"]}, {"filePath": f"{ROOT}/a", "edits": "x"}], ids=str
)
@pytest.mark.parametrize("name", ["write", "edit", "multiedit", "apply_patch", "bash", "task", "other"])
def test_arguments_of_any_shape_can_be_read(house: House, name: str, given: dict[str, Any]) -> None:
    part = house.call(name, given, files="x", diff=1, filediff=[], sessionId=3)
    assert (part["type"], part["tool"]) == ("tool", name)


def test_each_file_of_a_patch_is_a_change(house: House) -> None:
    files = [
        {"filePath": f"{ROOT}/{name}", "relativePath": name, "type": "update", "patch": "@@ -1 +1 @@\n-b\n+c\n"}
        for name in ("a.lua", "b.lua")
    ]
    part = house.call("apply_patch", {"patchText": "*** Begin Patch\n*** End Patch"}, files=files)
    assert [(change["path"], change["diff"]) for change in part["changes"]] == [
        (f"{ROOT}/{name}", "@@ -1 +1 @@\n-b\n+c\n") for name in ("a.lua", "b.lua")
    ]


def test_a_shell_command_names_what_it_removed(house: House) -> None:
    part = house.call("bash", {"command": f"rm {ROOT}/a.lua", "description": "remove"}, "", exit=0)
    assert [(change["path"], change["operation"], change["diff"]) for change in part["changes"]] == [
        (f"{ROOT}/a.lua", "delete", "")
    ]


def test_the_next_change_is_found_behind_messages_without_one(house: House) -> None:
    for number in range(12):
        house.talk.ask(f"Question {number}?")
    house.talk.call("read", {"filePath": f"{ROOT}/a.lua"}, "<file>\n00001| one\n</file>")
    changing = house.talk.write(f"{ROOT}/a.lua", "two\n")
    house.talk.ask("And now?")
    page = house.read(change_after=-1, count=5)
    assert (page["start"], page["target"]) == (10, 13)
    changed = [message["id"] for message in page["messages"] if message["changed"]]
    assert changed == [changing]
    assert house.read(change_after=13)["target"] is None


def test_messages_without_a_record_of_their_session_can_be_read(house: House) -> None:
    house.store.message(user("msg_o1", "ses_orphan", T0), text("prt_o1", "msg_o1", "ses_orphan", "Still here."))
    answer = house.engine.conversation("ses_orphan")
    assert [message["parts"][0]["text"] for message in answer["messages"]] == ["Still here."]
    assert answer["title"] == ""


# -- sub-agents, reverts -------------------------------------------------------------------------------------------------


def test_a_task_leads_to_the_session_of_its_sub_agent(house: House) -> None:
    house.store.session(session("ses_child", ROOT, "Count the rows") | {"parentID": house.talk.session_id})
    house.store.message(
        user("msg_c1", "ses_child", T0 + 5), text("prt_c1", "msg_c1", "ses_child", "Count them.")
    )  # fmt: skip
    part = house.call("task", {"description": "count", "prompt": "Count them."}, "3", sessionId="ses_child")
    child = {"sessionID": "ses_child", "title": "Count the rows", "messages": 1}
    assert part["child"] == child
    assert house.read()["children"] == [child]
    assert house.engine.conversation("ses_child")["parent"]["sessionID"] == house.talk.session_id


def test_messages_behind_a_pending_revert_are_marked(house: House) -> None:
    house.talk.ask("Keep this.")
    first = house.talk.ask("Take this back.")
    house.talk.write(f"{ROOT}/a.lua", "two\n")
    assert [message["reverted"] for message in house.read()["messages"]] == ["", "", ""]
    record = session(house.talk.session_id, ROOT, "Garden") | {"revert": {"messageID": first, "snapshot": "ab" * 20}}
    record["time"] = {"created": T0, "updated": T0 + 9000}
    house.store.session(record)
    assert [message["reverted"] for message in house.read()["messages"]] == ["", "whole", "whole"]


# -- secrets -------------------------------------------------------------------------------------------------------------


def test_secrets_are_hidden_in_every_field(house: House) -> None:
    house.talk.ask(f"My token is {SECRET}.")
    house.call("bash", {"command": f"curl -H 'Authorization: token {SECRET}'", "description": SECRET}, f"said {SECRET}")
    house.call("write", {"filePath": f"{ROOT}/.env", "content": f"TOKEN={SECRET}\n"})
    house.call("edit", {"filePath": f"{ROOT}/.env", "oldString": f"TOKEN={SECRET}", "newString": "TOKEN=none"})
    answer = json.dumps(house.read())
    assert SECRET not in answer
    assert answer.count("[REDACTED:") >= 6


def test_a_secret_at_the_cut_is_not_given_in_half(house: House) -> None:
    house.talk.ask("x" * 80 + " " + SECRET)
    (part,) = house.parts(most_chars=100)
    assert SECRET[:8] not in part["text"]
