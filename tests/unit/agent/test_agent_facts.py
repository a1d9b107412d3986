"""A model is shown the facts and all prompts first, may go through sessions and calls, and may strike out an entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daemon.chat.ollama import OllamaChat
from daemon.chat.tokens import of_text
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.agent.context.facts import facts_block, keys, prompts_block
from daemon.reconstitute.agent.context.ledger import Ledger, VerifiedNotes
from daemon.reconstitute.agent.tools import Evidence, Holdings, Toolbox
from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.facts.values import (
    Aftermath,
    Command,
    Facts,
    Need,
    OpenKind,
    OpenPoint,
    Purpose,
    Rule,
    Script,
    Setback,
    SetbackKind,
    Standing,
    key,
)
from daemon.reconstitute.scope import Scope, collect
from tests.support.servers.evident_model import EvidentModel
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, recorded

SHOP = "/home/dev/shop"
DECIDED = "We take SQLite instead of files, because two processes write."
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses_a", SHOP, "Build the shop")
        made.say("ses_a", "user", "Bau mir einen kleinen Laden.\nMit einem Warenkorb.")  # 1
        made.say(
            "ses_a", "assistant", DECIDED, call("write", output="ok", filePath=f"{SHOP}/app.py", content="x = 1\n")
        )
        made.session("ses_b", SHOP, "Test it")
        made.say("ses_b", "user", f"Run the tests. The token is {TOKEN}.")  # 3
        made.say(
            "ses_b", "assistant",
            call("bash", output="1 failed\nAssertionError: no cart", metadata={"exit": 1}, command="pytest -q"),
            call("bash", output="2 passed", metadata={"exit": 0}, command="make check"),
            "The test fails.",
        )  # fmt: skip
        made.index()
        yield made


def _scope(house: Recorded) -> Scope:
    return collect(house.archive, house.recall(), SHOP, Files(house.archive).histories(SHOP, None), None)


def _box(house: Recorded, **more: Any) -> Toolbox:
    files = Files(house.archive)
    return Toolbox(
        Evidence(Holdings(house.archive, house.recall(), files), _scope(house), files.histories(SHOP, None), SHOP),
        **more,
    )


def _cited(message_id: str, quote: str = "", path: str = "") -> Citation:
    return Citation("ses_a", message_id, 1_795_000_000_000, quote, path)


RULE = Rule("We take SQLite instead of files", "agent", "decision", 1, _cited("msg_0002", "We take SQLite instead of files"),
            reason="two processes write")  # fmt: skip
FACTS = Facts(
    purpose=(Purpose("A small shop.", "README.md", _cited("msg_0002", "x = 1", f"{SHOP}/app.py")),),
    standing=Standing(
        1_795_000_000_000, "ses_b", 1_795_000_000_000, {"proven": 1}, (Aftermath("a command of unknown effect", "make dist", 1, _cited("msg_0004")),)
    ),
    commands=(Command("test", "pytest -q", "", 2, None, _cited("msg_0004", "AssertionError: no cart"), 1, "no cart"),),
    scripts=(Script("run", "make run", "python3 app.py", f"{SHOP}/Makefile"),),
    setbacks=(Setback(SetbackKind.COMMAND_FAILED, "pytest -q", 1, _cited("msg_0004", "never printed by it")),),
    open=(OpenPoint(OpenKind.FAILING, "The cart test fails", 1, _cited("msg_0004", "The test fails.")),),
    rules=(RULE,),
    needs=(Need("flask==3.0.0", f"{SHOP}/requirements.txt"),),
    file_purposes={f"{SHOP}/app.py": Purpose("Draws the cart.", "docstring")},
)  # fmt: skip


def test_facts_are_shown_with_their_keys_and_the_messages_they_stand_on(house: Recorded) -> None:
    text, entries = facts_block(FACTS, VerifiedNotes(house.archive, Ledger()), 5000)
    assert set(entries) == keys(FACTS)
    for entry in (
        *FACTS.purpose,
        *FACTS.commands,
        *FACTS.scripts,
        *FACTS.setbacks,
        *FACTS.open,
        *FACTS.rules,
        *FACTS.file_purposes.values(),
    ):
        assert f"[{key(entry)}] " in text
    for expected in ("A small shop.", "pytest -q", "make run", "two processes write", "message msg_0002",
                     "after that: a command of unknown effect; make dist", "flask==3.0.0", "app.py: Draws the cart."):  # fmt: skip
        assert expected in text


def test_a_quote_holds_only_in_text_that_the_facts_really_showed(house: Recorded) -> None:
    shown = Ledger()
    facts_block(FACTS, VerifiedNotes(house.archive, shown), 5000)
    assert shown.find("We take SQLite instead of files", "msg_0002")[0]
    assert shown.find("AssertionError: no cart", "msg_0004")[0]
    assert not shown.find("because two processes write", "msg_0002")[0], "it stands in the message, and was not shown"
    assert not shown.find("never printed by it", "msg_0004")[0], "it was shown, and does not stand in the message"
    assert not shown.find("1 failed AssertionError", "msg_0004")[0]


@pytest.mark.parametrize("most", [60, 150, 400, 1200, 5000])
def test_facts_and_prompts_keep_within_their_room(house: Recorded, most: int) -> None:
    many = Facts(rules=tuple(
        Rule(f"Rule {number} says a lot. " + "word " * 90, "user", "rule", number, _cited("msg_0002")) for number in range(90)
    ), open=FACTS.open)  # fmt: skip
    text, entries = facts_block(many, VerifiedNotes(house.archive, Ledger()), most)
    assert of_text(text).most <= most
    assert len(re.findall(r"^- \[", text, re.MULTILINE)) == len(entries)
    if entries:
        left_out = int(re.search(r"\(and (\d+) more\)", text)[1])
        assert left_out == 90 - sum("Rule" in entry for entry in entries.values())
    sessions = _scope(house).sessions
    turn = sessions[0].turns[0]
    long = [type(sessions[0])(sessions[0].session, "T", tuple(
        type(turn)(f"msg_{number:04d}", number, number, f"prompt {number}: " + "word " * 80, turn.ending, ()) for number in range(200)
    ), ())]  # fmt: skip
    text = prompts_block(long, VerifiedNotes(house.archive, Ledger()), most)
    assert of_text(text).most <= most
    found = [int(number) for number in re.findall(r"prompt (\d+):", text)]
    if found:
        assert found[-1] == 199
        first = next((place for place, number in enumerate(found) if number != place), len(found))
        assert found == [*range(first), *range(200 - len(found) + first, 200)], "oldest and newest, in order"
        assert f"{200 - len(found)} prompts left out" in text


@pytest.mark.parametrize("most", [150, 400, 1200, 5000])
def test_what_files_say_of_themselves_takes_no_room_from_other_facts(house: Recorded, most: int) -> None:
    own = {f"{SHOP}/f{number:03}.py": Purpose(f"Part {number}. " + "word " * 90, "docstring") for number in range(300)}
    without, _ = facts_block(replace(FACTS, file_purposes={}), VerifiedNotes(house.archive, Ledger()), most)
    text, entries = facts_block(replace(FACTS, file_purposes=own), VerifiedNotes(house.archive, Ledger()), most)
    assert of_text(text).most <= most
    assert set(without.splitlines()[1:-1]) <= set(text.splitlines())
    listed = sum("Part" in entry for entry in entries.values())
    assert f"(and {300 - listed} more)" in text if listed else "Part" not in text
    assert listed or most < 1200


def test_every_prompt_is_shown_in_order_and_can_be_quoted(house: Recorded) -> None:
    shown = Ledger()
    text = prompts_block(_scope(house).sessions, VerifiedNotes(house.archive, shown), 2000)
    assert (
        text.index('session ses_a "Build the shop"') < text.index("message msg_0001") < text.index("message msg_0003")
    )
    assert TOKEN not in text
    assert shown.find("Bau mir einen kleinen Laden. Mit einem Warenkorb.", "msg_0001")[0]
    assert "msg_0002" not in shown


def test_sessions_are_listed_and_read_from_their_start(house: Recorded) -> None:
    box = _box(house)
    listed = box.call("list_sessions", {})
    assert listed.index("ses_b") < listed.index("ses_a")
    assert "1 prompt" in listed
    text = box.call("read_session", {"session_id": "ses_a"})
    assert text.index("msg_0001") < text.index("msg_0002")
    assert "Messages 1 to 2 of 2" in text
    assert box.ledger.find(DECIDED, "msg_0002")[0]
    assert "did you mean ses_a" in box.call("read_session", {"session_id": "ses_aa"})
    assert "msg_0001" not in box.call("read_session", {"session_id": "ses_a", "offset": 1})
    small = _box(house, result_bytes=700)
    assert "call read_session with offset 1" in small.call("read_session", {"session_id": "ses_a"})


def test_failed_calls_and_commands_are_listed_with_their_messages(house: Recorded) -> None:
    box = _box(house)
    failed = box.call("list_calls", {})
    assert "pytest -q" in failed
    assert "make check" not in failed
    assert "exit 1" in failed
    both = box.call("list_calls", {"only": "commands"})
    assert "pytest -q" in both
    assert "make check" in both
    assert "app.py" not in both
    assert box.ledger.find("make check", "msg_0004")[0]
    assert "app.py" in box.call("list_calls", {"only": "all"})


STRIKE = {"key": key(RULE), "reason": "Postgres took its place.", "message_ids": ["msg_0002"], "quote": DECIDED}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"key": "0123456789abcdef"}, "no such entry"),
        ({"key": ["x"]}, "no such entry"),
        ({"quote": "We never said anything like it"}, "does not stand"),
        ({"quote": ""}, "no quote"),
        ({"message_ids": ["msg_0003"], "quote": "Run the tests."}, "was not shown"),
        ({"reason": ""}, "has no text"),
    ],
)
def test_a_strike_needs_an_entry_that_was_shown_and_a_quote_that_holds(house: Recorded, change: Any, why: str) -> None:
    box = _box(house, entries={key(RULE): "it"})
    box.call("read_message", {"message_id": "msg_0002"})
    assert why in box.call("strike_out", STRIKE | change)
    assert box.struck == {}


def test_an_entry_is_struck_out_with_the_reason_and_what_it_stands_on(house: Recorded) -> None:
    box = _box(house, entries={key(RULE): "it"})
    box.call("read_message", {"message_id": "msg_0002"})
    assert "Struck out" in box.call("strike_out", STRIKE | {"key": f"[{STRIKE['key']}]"})
    made = box.struck[key(RULE)]
    assert (made.text, made.sources[0].message_id) == ("Postgres took its place.", "msg_0002")
    assert box.is_done is None


def test_a_strike_is_kept_with_the_answers_and_dropped_with_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts are given here, as a part of its own works them out: what counts is what becomes of a strike."""
    facts = FACTS
    monkeypatch.setattr("daemon.reconstitute.gather", lambda *_: facts)
    models = {"chat:latest": "cd" * 32}
    with recorded(tmp_path / "state") as made, FakeOllama(models) as server:
        server.capabilities["chat:latest"] = ["completion", "tools"]
        made.session("ses_a", SHOP, "Build the shop")
        made.say("ses_a", "user", "Build a shop for me, please.")
        made.say("ses_a", "assistant", DECIDED)
        made.index()
        evident = EvidentModel()

        def strikes(body: Any) -> Any:
            is_first = "What was decided" in body["messages"][1]["content"] and len(body["messages"]) == 2
            return _called("strike_out", STRIKE | {"quote": "SQLite instead of files"}) if is_first else evident(body)

        def run() -> dict[str, Any]:
            with closing(OllamaChat(server.url, "chat", timeout_s=60)) as chat:
                asked: list[Any] = []
                one = Reconstitution(
                    made.archive, made.recall(), Files(made.archive), tmp_path / "out",
                    answerer=Answerer(chat, "", Agent(folders=0, summaries=0)), clock=lambda: made.clock + 60 * MINUTE,
                )  # fmt: skip
                original = one._ask_model
                one._ask_model = lambda *given: asked.append(original(*given)) or asked[-1]  # type: ignore[method-assign]
                one.run(Target(SHOP))
                return dict(asked[0].record.struck)

        server.chat_script = strikes
        first = run()
        assert list(first) == [key(RULE)]
        server.requests.clear()
        assert run() == first
        assert server.chats == []
        facts = Facts(open=FACTS.open)
        assert run() == {}


def _called(tool: str, arguments: dict[str, Any]) -> Any:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": tool, "arguments": arguments}}]}
