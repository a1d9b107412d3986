"""The session view over a real archive, as a browser asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from daemon import config
from daemon.app import OneShot
from daemon.control.calls import Service
from daemon.web.views import session as view
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import T0, JsonStore, session, text, user
from tests.unit.web.markup import Markup

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
ROOT = "/home/dev/garden"
HTMX = {"hx-request": "true"}


class House:
    def __init__(self, store: JsonStore, browser: TestClient) -> None:
        self.store, self.browser = store, browser
        self.talk = Talk(store)
        self.address = f"/session/{self.talk.session_id}"

    def page(self, address: str = "", headers: dict[str, str] | None = None, **query: Any) -> Markup:
        answer = self.browser.get(self.address + address, params=query, headers=headers)
        assert answer.status_code == 200, answer.text
        return Markup(answer.text)


@pytest.fixture
def house(tmp_path: Path, visit: Callable[[Service], TestClient]) -> Iterator[House]:
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "a")}}
    store = JsonStore(tmp_path / "oc")
    with OneShot(msgspec.convert(tables, config.Config)) as engine:
        yield House(store, visit(engine))


def numbers(page: Markup) -> list[int]:
    return [int(number) for number in page.attributes("data-number")]


# -- the conversation ----------------------------------------------------------------------------------------------------


def test_a_conversation_is_read_in_order(house: House) -> None:
    house.talk.ask("Number the rows.")
    house.talk.answer("They are numbered.", {"type": "reasoning", "text": "One after the other."})
    house.talk.call("bash", {"command": "ls", "description": "list"}, "beds.lua")
    page = house.page()
    shown = [
        "Number the rows.",
        "They are numbered.",
        "One after the other.",
        "bash ls (completed, 1 line)",
        "beds.lua",
    ]
    places = [page.text.index(words) for words in shown]
    assert places == sorted(places)
    assert numbers(page) == [0, 1, 2]
    assert "Garden" in page.text


def test_tool_calls_are_folded_and_their_changes_are_not(house: House) -> None:
    house.talk.call("edit", {"filePath": f"{ROOT}/a.lua", "oldString": "one", "newString": "two"}, "ok")
    answer = house.browser.get(house.address).text
    before, _, after = answer.partition("</details>")
    assert '<details class="tool">' in before
    assert '<span class="del">-one' in after
    assert '<span class="add">+two' in after
    (link,) = Markup(answer).links("/file")
    assert link == f"/file?path=%2Fhome%2Fdev%2Fgarden%2Fa.lua&at={T0 + 1010}"


def test_what_a_revert_took_back_says_so(house: House) -> None:
    house.talk.ask("Keep this.")
    first = house.talk.ask("Take this back.")
    record = session(house.talk.session_id, ROOT, "Garden") | {"revert": {"messageID": first, "snapshot": "ab" * 20}}
    house.store.session(record | {"time": {"created": T0, "updated": T0 + 9000}})
    assert house.page().text.count("taken back by a revert") == 1


def test_a_sub_agent_can_be_opened_in_its_place(house: House) -> None:
    house.store.session(session("ses_child", ROOT, "Count the rows") | {"parentID": house.talk.session_id})
    house.store.message(user("msg_c1", "ses_child", T0 + 5), text("prt_c1", "msg_c1", "ses_child", "Count them all."))
    house.talk.ask("How many?")
    house.talk.answer(
        "Let me see.",
        {
            "type": "tool",
            "tool": "task",
            "callID": "c",
            "state": {
                "status": "completed",
                "input": {"description": "count", "prompt": "Count them all."},
                "output": "3",
                "metadata": {"sessionId": "ses_child"},
                "time": {"start": T0, "end": T0},
            },
        },
    )
    page = house.page()
    assert "Sub-agent: Count the rows, 1 message" in page.text
    (address,) = [each for each in page.attributes("hx-get") if "ses_child" in each]
    inline = Markup(house.browser.get(address, headers=HTMX).text)
    assert "Count them all." in inline.text
    assert inline.links("/session/ses_child?message=msg_c1")
    assert f"/session/{house.talk.session_id}" in house.browser.get("/session/ses_child").text


# -- windows -------------------------------------------------------------------------------------------------------------


def test_a_long_session_comes_in_windows(house: House) -> None:
    written = [house.talk.ask(f"Question {number}?") for number in range(130)]
    page = house.page()
    assert numbers(page) == list(range(view.WINDOW))
    waiting = [address for address in page.attributes("hx-get") if "/messages?start=" in address]
    assert len(waiting) == 3
    rest = [number for each in waiting for number in numbers(Markup(house.browser.get(each, headers=HTMX).text))]
    assert rest == list(range(view.WINDOW, 130))
    target = house.page(message=written[100])
    assert numbers(target) == list(range(80, 120))
    (place,) = [attributes for _, attributes in target.elements if "autofocus" in attributes]
    assert place["data-number"] == "100"


def test_a_window_is_no_page_of_its_own(house: House) -> None:
    house.talk.ask("Hello?")
    answer = house.browser.get(f"{house.address}/messages?start=40")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{house.address}?start=40")


def test_the_next_change_leads_to_its_message(house: House) -> None:
    for number in range(60):
        house.talk.ask(f"Question {number}?")
    changing = house.talk.write(f"{ROOT}/a.lua", "two\n")
    house.talk.ask("And now?")
    answer = house.browser.get(house.address, params={"change_after": -1})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{house.address}?message={changing}")
    page = house.page(message=changing)
    assert page.attributes("data-change") == [""]
    assert "No later message changes a file." in house.page(change_after=60).text


def test_a_cut_message_can_be_read_whole(house: House) -> None:
    house.talk.ask("begin " + "x" * 30_000 + " end")
    page = house.page()
    assert "more characters" in page.text
    assert " end" not in page.text
    (address,) = [each for each in page.attributes("hx-get") if "/message/" in each]
    for headers in ({}, HTMX):
        assert "x end" in Markup(house.browser.get(address, headers=headers).text).text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/session/ses_none", 400), ("?message=msg_none", 400), ("?start=x", 400), ("?start=-1", 400),
        ("?change_after=-2", 400), ("/message/99", 400), ("/message/x", 404), ("/export?format=xml", 400),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_on_a_page(house: House, address: str, status: int) -> None:
    house.talk.ask("Hello?")
    whole = address if address.startswith("/session") else house.address + address
    assert house.browser.get(whole).status_code == status


# -- copies --------------------------------------------------------------------------------------------------------------


def test_a_session_is_copied_as_markdown_and_as_messages(house: House) -> None:
    house.talk.ask(f"My token is {SECRET}; number the rows.")
    house.talk.call("bash", {"command": "ls", "description": "list"}, "beds.lua")
    markdown = house.browser.get(f"{house.address}/export")
    assert markdown.headers["content-type"] == "text/plain; charset=utf-8"
    assert markdown.text.startswith("# Garden\n")
    entries = json.loads(house.browser.get(f"{house.address}/export?format=messages").text)
    assert [entry["role"] for entry in entries] == ["user", "assistant", "tool"]
    assert entries[2]["content"] == "beds.lua"
    assert SECRET not in markdown.text + json.dumps(entries)


# -- hostile records -----------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "</pre></details></article><script src=//evil.example/x.js></script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '<a href="javascript:alert(1)">here</a>',
    "[here](javascript:alert(1)) https://evil.example/",
    "{{ 7 * 7 }}{% for x in y %}",
    "<!-- --><style>*{display:none}</style><base href=//evil.example>",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link",
    "\u202eright to left\u2066 and \u200bhidden\U000e0041",
    "<div hx-get='https://evil.example' hx-trigger=load>",
    "\ud800 alone",
    "&lt;script&gt;&#x3c;script>",
]


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_records_are_only_text(house: House, words: str) -> None:
    house.store.session(session(house.talk.session_id, f"/home/{words}", words))
    house.talk.ask(words)
    house.talk.answer(words, {"type": "reasoning", "text": words}, {"type": words, "filename": words, "url": words})
    house.talk.call(words, {words: words}, words)
    house.talk.call("edit", {"filePath": f"{ROOT}/{words}", "oldString": words, "newString": "safe"}, words)
    house.talk.fail("bash", {"command": words}, words)
    answer = house.browser.get(house.address)
    assert answer.status_code == 200
    page = Markup(answer.text)
    assert page.dangers() == []
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not any(character in answer.text for character in "\x1b\x07\u202e\u2066\u200b\U000e0041")
    plain = words.encode("utf-8", "replace").decode()
    if plain.isprintable() and plain == words:
        assert page.text.count(words) >= 5
    for form in ("markdown", "messages"):
        copied = house.browser.get(f"{house.address}/export?format={form}")
        assert copied.headers["content-type"].startswith("text/plain")
        assert copied.headers["x-content-type-options"] == "nosniff"


def test_huge_lines_do_not_make_a_huge_page(house: House) -> None:
    house.talk.ask("y" * 3_000_000)
    house.talk.call("bash", {"command": "cat"}, "z" * 3_000_000)
    house.talk.call("edit", {"filePath": f"{ROOT}/a", "oldString": "v" * 900_000, "newString": "w" * 900_000}, "ok")
    answer = house.browser.get(house.address)
    assert answer.status_code == 200
    assert len(answer.text) < 400_000


def test_secrets_are_hidden(house: House) -> None:
    house.talk.ask(f"My token is {SECRET}.")
    house.talk.call("bash", {"command": f"echo {SECRET}"}, SECRET)
    page = house.browser.get(house.address).text
    assert SECRET not in page
    assert "[REDACTED:" in page
