"""One sentence about each file and session, made once for what it holds; and what a run costs, told before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.chat.ollama import OllamaChat
from daemon.chat.tokens import of_chat
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Json, Target
from daemon.reconstitute import Answerer, Reconstitution, answer
from daemon.reconstitute.agent import AllQuestions
from daemon.reconstitute.answer import Record
from tests.support.servers.evident_model import EvidentModel, Said
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.servers.fake_ollama import call as called
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, recorded

SHOP = "/home/dev/shop"
_WRITE = {"output": "Wrote file successfully."}


@dataclass
class House:
    """An archive and a model; `records` are those of each run, the last one last."""

    made: Recorded
    server: FakeOllama
    root: Path
    records: list[Record] = field(default_factory=list)

    def run(self, *, model: str = "chat", **section: Any) -> Json:
        with closing(OllamaChat(self.server.url, model, timeout_s=60)) as chat:
            return self._over(chat, section).run(Target(SHOP))

    def estimate(self, **section: Any) -> Json:
        with closing(OllamaChat(self.server.url, "chat", timeout_s=60)) as chat:
            return self._over(chat, section).estimate(Target(SHOP))

    def _over(self, chat: OllamaChat, section: dict[str, Any]) -> Reconstitution:
        return Reconstitution(
            self.made.archive, self.made.recall(), Files(self.made.archive), self.root,
            answerer=Answerer(chat, "no server", Agent(**({"folders": 0} | section))), clock=lambda: self.made.clock + 60 * MINUTE,
        )  # fmt: skip

    def summaries(self) -> list[Any]:
        """The requests for a sentence since the last time."""
        found = [body for body in self.server.chats if "What came of this" in _said(body) or "file for?" in _said(body)]
        self.server.requests.clear()
        return found


def _said(body: Any) -> str:
    return str(body["messages"][1]["content"])


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    models = {"chat:latest": "cd" * 32, "other:latest": "ef" * 32}
    with recorded(tmp_path / "state") as made, FakeOllama(models) as server:
        for name in models:
            server.capabilities[name] = ["completion", "tools"]
        server.chat_script = EvidentModel(
            {"What was decided": [Said("SQLite holds it.", "SQLite instead of files"), Said("Nobody.", "not said")]}
        )
        for number in range(3):
            made.session(f"ses_{number}", SHOP, f"Part {number}")
            made.say(f"ses_{number}", "user", f"Please write part number {number} of the shop.")
            made.say(
                f"ses_{number}", "assistant", f"Part {number} is written, with SQLite instead of files.",
                call("write", filePath=f"{SHOP}/part{number}.py", content=f'"""Part {number} of a shop."""\n', **_WRITE),
            )  # fmt: skip
        made.index()
        house = House(made, server, tmp_path / "out")
        ask = AllQuestions.ask

        def kept(self: AllQuestions, case: Any) -> Any:
            asked = ask(self, case)
            house.records.append(asked.record)
            return asked

        monkeypatch.setattr(AllQuestions, "ask", kept)
        yield house


def test_each_file_and_session_gets_a_sentence_with_a_quote_that_holds(house: House) -> None:
    house.run()
    record = house.records[-1]
    assert set(record.summaries) == {"ses_0", "ses_1", "ses_2"}
    assert set(record.descriptions) == {f"{SHOP}/part{number}.py" for number in range(3)}
    source = record.descriptions[f"{SHOP}/part1.py"].sources[0]
    assert (source.quote, source.path, source.session_id) == ('"""Part 1 of a shop."""', f"{SHOP}/part1.py", "ses_1")
    assert record.summaries["ses_2"].sources[0].quote == "Please write part number 2 of the shop."


def test_a_file_is_described_again_only_when_its_content_changed(house: House) -> None:
    house.run()
    assert len(house.summaries()) == 6
    assert house.run()["model_calls"] == 0
    house.run(model="other")
    assert house.summaries() == [], "another model is no reason"
    changed = call("write", filePath=f"{SHOP}/part1.py", content="PART = 1 + 0\n", **_WRITE)
    house.made.say("ses_1", "assistant", "Part 1 is now a number.", changed)
    house.made.index()
    house.server.down()
    house.run()
    assert answer.OUTDATED in house.records[-1].summaries["ses_1"].reason
    assert answer.OUTDATED not in house.records[-1].summaries["ses_0"].reason
    house.server.up()
    house.run()
    assert len(house.summaries()) == 2
    assert answer.OUTDATED not in house.records[-1].summaries["ses_1"].reason


def test_so_many_are_described_in_a_run_newest_first(house: House) -> None:
    result = house.run(summaries=2)
    assert set(house.records[-1].summaries) | set(house.records[-1].descriptions) == {"ses_2", f"{SHOP}/part2.py"}
    assert any("left to be described in a later run: 4" in warning for warning in result["warnings"])
    house.run(summaries=0)
    assert len(house.summaries()) == 2
    house.run(summaries=4)
    assert len(house.records[-1].summaries) == 3


@pytest.mark.parametrize(
    "said",
    [
        {"text": "It sells fish.", "quote": "we sell only fish here"},
        {"text": "", "quote": "Part 1 of a shop."},
        {"text": "x" * 400, "quote": "Part 1 of a shop."},
        {"text": ["a"], "quote": 3},
        {},
    ],
)
def test_a_sentence_without_a_valid_quote_is_dropped_for_good(house: House, said: Json) -> None:
    evident = house.server.chat_script
    assert callable(evident)
    house.server.chat_script = lambda body: (
        called("summarize", **said) if "session?" in _said(body) or "file for?" in _said(body) else evident(body)
    )
    house.run()
    assert (house.records[-1].summaries, house.records[-1].descriptions) == ({}, {})
    assert len(house.summaries()) == 12  # each is asked for once more
    assert house.run()["model_calls"] == 0


def test_an_estimate_is_near_what_a_run_takes_and_asks_nothing(house: House) -> None:
    """Within a factor of four of the usual figures, below what the limits allow, and exact about what is asked."""
    told = house.estimate()
    assert house.server.chats == []
    assert [told[kind]["asked"] for kind in ("questions", "files", "sessions")] == [7, 3, 3]
    assert house.run()["model_calls"] == len(house.server.chats)
    calls = len(house.server.chats)
    tokens = sum(of_chat(body["messages"], body.get("tools", ())).most for body in house.server.chats)
    assert calls <= told["calls"] * 2 <= 8 * calls
    assert tokens / 4 <= told["tokens"] <= 4 * tokens
    assert (calls, tokens) < (told["most_calls"], told["most_tokens"])
    again = house.estimate()
    assert (again["calls"], again["tokens"], again["most_calls"]) == (0, 0, 0)
    assert [again[kind]["kept"] for kind in ("questions", "files", "sessions")] == [7, 3, 3]


def test_an_estimate_counts_what_waits_for_later_runs(house: House) -> None:
    told = house.estimate(summaries=2)
    assert (told["files"]["asked"] + told["sessions"]["asked"], told["later"]) == (2, 4)


def test_a_large_run_says_first_what_it_takes(house: House) -> None:
    for number in range(3, 40):
        house.made.session(f"ses_{number}", SHOP, f"Part {number}")
        house.made.say(f"ses_{number}", "user", f"Please write part number {number} of the shop.")
    events: list[Json] = []
    with closing(OllamaChat(house.server.url, "chat", timeout_s=60)) as chat:
        house._over(chat, {}).run(Target(SHOP), events.append)
    notes = [event["note"] for event in events if "note" in event]
    assert len(notes) == 1
    assert "about 61 times" in notes[0]
    house.run()
    assert len([event for event in events if "note" in event]) == 1
