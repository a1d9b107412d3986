"""A target's questions are put to a model: what is asked, when it is asked again, and what stays when it is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.chat.ollama import OllamaChat
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Json, Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.agent import trajectory
from daemon.reconstitute.agent.outcomes import OUTDATED, OutcomeStore
from tests.support.servers.evident_model import EvidentModel, Said
from tests.support.servers.fake_ollama import FakeOllama, call
from tests.support.stores.recorded_sessions import MINUTE, Recorded, recorded
from tests.support.stores.recorded_sessions import call as tool

SHOP = "/home/dev/shop"
DECIDED = "We decided on SQLite instead of files because two processes write."


def write(path: str, content: str = "x = 1\n") -> Json:
    return tool("write", output="Wrote file successfully.", filePath=path, content=content)


def asked(body: Any) -> str:
    """The question that a request is about."""
    return str(body["messages"][1]["content"]).rsplit("answer_question in the end:", 1)[-1].strip()


def under(page: str, heading: str) -> str:
    """What stands under a heading; empty without it."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@dataclass
class House:
    """An archive, a model and an output directory."""

    made: Recorded
    server: FakeOllama
    root: Path
    section: Agent = field(default_factory=lambda: Agent(summaries=0))
    now: int = 0

    def run(self, *, model: bool | str = True, why: str = "no server", at: str = "", **more: Any) -> Json:
        """`model`: its name, True for the usual one, False for none."""
        name = model if isinstance(model, str) else "chat"
        with closing(OllamaChat(self.server.url, name, timeout_s=60)) as chat:
            who = Answerer(chat if model else None, why, self.section)
            made = Reconstitution(
                self.made.archive, self.made.recall(), Files(self.made.archive), self.root, answerer=who,
                clock=lambda: self.now or self.made.clock + 60 * MINUTE,
            )  # fmt: skip
            return made.run(Target(SHOP, **more), at=at)

    def page(self, name: str = "README.md", tree: str = "home/dev/shop") -> str:
        return (self.root / tree / name).read_text()

    def questions(self) -> list[str]:
        """Of every chat since the last time, in order."""
        found = [asked(body) for body in self.server.chats]
        self.server.requests.clear()
        return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    models = {"chat:latest": "cd" * 32, "other:latest": "ef" * 32}
    with recorded(tmp_path / "state") as made, FakeOllama(models) as server:
        for name in models:
            server.capabilities[name] = ["completion", "tools"]
        server.chat_script = EvidentModel(
            {
                "What is this for": [Said("It is a small shop service.", "small shop service in Python")],
                "What was decided": [Said("SQLite holds the data.", "SQLite instead of files", "Two processes write.")],
            }
        )
        made.session("ses_a", SHOP, "Build the shop")
        made.say("ses_a", "user", "Please build a small shop service in Python.")
        made.say("ses_a", "assistant", DECIDED, write(f"{SHOP}/src/app.py"), write(f"{SHOP}/src/db.py"))
        made.say("ses_a", "assistant", "The refund route is not yet done. app.py holds the routes.")
        made.index()
        yield House(made, server, tmp_path / "out")


def test_answers_stand_on_the_page_with_reason_date_source_and_support(house: House):
    result = house.run()
    assert result["model"] == "chat (Ollama)"
    assert result["model_calls"] == len(house.server.chats) > 5
    assert (result["unanswered"], result["later_s"], result["warnings"]) == (0, 0.0, [])
    decisions = under(house.page(), "Rules and decisions")
    mark = re.search(
        r"^- 2026-11-18: SQLite holds the data\.(\[\^[\w-]+\]) Why: Two processes write\.$", decisions, re.MULTILINE
    )
    assert mark is not None
    assert "Answered by chat (Ollama), on 1 quote from 1 session." in decisions
    definition = next(line for line in house.page().splitlines() if line.startswith(f"{mark[1]}:"))
    assert "[Build the shop](sessions/2026-11-18-build-the-shop.md#msg-02): “SQLite instead of files”" in definition


def test_a_second_run_asks_nothing_searches_nothing_and_writes_nothing(house: House):
    first = house.run()
    house.server.requests.clear()

    class NoSearch:
        def search(self, query: str, mode: str = "hybrid", *more: Any, **others: Any) -> Any:
            assert mode == "literal", "the mentions of a path are looked up by its words, no query is embedded"
            return recall.search(query, mode, *more, **others)

    recall = house.made.recall()
    with closing(OllamaChat(house.server.url, "chat")) as chat:
        again = Reconstitution(
            house.made.archive, NoSearch(), Files(house.made.archive), house.root, answerer=Answerer(chat, "", house.section),
            clock=lambda: house.made.clock + 90 * MINUTE,
        ).run(Target(SHOP))  # fmt: skip
    assert house.server.chats == []
    assert (again["model_calls"], again["written"], again["unchanged"]) == (0, 0, first["pages"])


def test_inner_folders_are_described_first_and_inform_the_outer_ones(house: House):
    house.run()
    texts = [str(body["messages"][1]["content"]) for body in house.server.chats]
    assert "What is the folder src for?" in texts[0]
    assert "found out about its parts" not in texts[0]
    assert all("- src: It was said: " in text for text in texts[1:])
    assert "- It was said: " in house.page("src/README.md").split("Both of its files")[0]


def test_what_is_new_elsewhere_asks_nothing_and_what_is_new_here_does(house: House):
    house.run()
    house.questions()
    house.made.session("ses_z", "/home/dev/other", "Elsewhere")
    house.made.say("ses_z", "user", "Another project altogether, with nothing to do with the first.")
    house.made.index()
    assert house.run()["model_calls"] == 0
    house.made.say("ses_a", "assistant", "We decided on Postgres instead of SQLite since the disk was too slow.")
    house.made.index()
    assert house.run()["model_calls"] > 0
    assert any("What was decided" in question for question in house.questions())


def test_a_message_that_was_read_and_has_changed_is_reason_to_ask_again(house: House):
    house.section = Agent(folders=0, summaries=0)
    reading = EvidentModel()

    def script(body: Any) -> Any:
        if len(body["messages"]) == 2 and "What was decided" in asked(body):
            return call("read_message", message_id="msg_far")
        return reading(body)

    house.made.session("ses_y", "/home/dev", "Far")
    house.made.put("ses_y", "msg_far", "user", ())
    house.made.index()
    house.server.chat_script = script
    house.run()
    house.questions()
    assert house.run()["model_calls"] == 0
    house.made.clock += MINUTE
    house.made.put("ses_y", "msg_far", "user", (), agent="plan")
    house.run()
    assert [question[:16] for question in house.questions()] == ["What was decided"], (
        "its first reply is known, to the same messages"
    )


def test_another_model_is_asked_anew_and_the_first_one_then_too(house: House):
    first = house.run()["model_calls"]
    assert house.run(model="other")["model_calls"] == first
    assert "Answered by other (Ollama)" in house.page()
    assert house.run()["model_calls"] == 0, "what it said to the same messages is known"
    assert "Answered by chat (Ollama)" in house.page()


def test_without_a_model_the_facts_stand(house: House):
    result = house.run(model=False)
    assert (result["model"], result["model_calls"], result["unanswered"], result["later_s"]) == ("", 0, 0, 0.0)
    assert "The refund route is not yet done." in under(house.page(), "Left open")


def test_answers_outlive_the_model_and_say_when_newer_evidence_came(house: House):
    house.run()
    pages = house.page()
    house.server.down()
    for absent in (False, True):
        result = house.run(model=absent)
        assert result["written"] == 0
        assert house.page() == pages
    house.made.say("ses_a", "assistant", "We decided on Postgres instead of SQLite since the disk was too slow.")
    house.made.index()
    result = house.run()
    assert "SQLite holds the data." in house.page()
    assert OUTDATED in house.page()
    assert result["unanswered"] > 0
    assert result["later_s"] > 0
    assert any(house.server.url in warning for warning in result["warnings"])
    house.server.up()
    assert house.run()["unanswered"] == 0
    assert OUTDATED not in house.page()


def test_a_run_that_was_cut_short_goes_on_with_what_is_left(house: House):
    house.run()
    whole = len(house.questions())
    evident = EvidentModel()
    left = [3]

    def dies(body: Any) -> Any:
        left[0] -= 1
        return evident(body) if left[0] >= 0 else (503, "shutting down")

    house.made.say(
        "ses_a", "user", "Please build the small shop again, decided otherwise; how is it installed and run?"
    )
    house.made.index()
    house.server.chat_script = dies
    assert house.run()["unanswered"] > 0
    house.server.requests.clear()
    house.server.chat_script = evident
    assert house.run()["unanswered"] == 0
    assert len(house.questions()) <= whole - 3


def test_newly_recorded_paths_are_described_in_the_next_round(house: House):
    house.made.say("ses_a", "user", "Add docs/plan.md and docs/later.md some day, and docs/never.md.")
    house.made.index()
    evident = EvidentModel()
    chain = {"What is this for": "docs/plan.md", "What is docs/plan.md": "docs/later.md",
             "What is docs/later.md": "docs/never.md", "What is docs/never.md": ""}  # fmt: skip

    def script(body: Any) -> Any:
        new = next((path for piece, path in chain.items() if piece in asked(body)), "")
        if new and len(body["messages"]) == 2:
            return call("record_path", path=new, message_id="msg_0004")
        return evident(body)

    house.server.chat_script = script
    house.run()
    order = [question.split("?")[0] for question in house.questions() if question.startswith("What is docs")]
    assert list(dict.fromkeys(order)) == ["What is docs/plan.md", "What is docs/later.md", "What is docs/never.md"]
    for path in ("docs/plan.md", "docs/later.md", "docs/never.md"):
        assert path in house.page()


def test_rounds_end(house: House):
    house.section = Agent(rounds=2, folders=0, summaries=0)
    evident = EvidentModel()
    numbers = iter(range(1000))

    words = " ".join(f"src/new{number}.py" for number in range(100))
    house.made.say("ses_a", "user", f"Please build a small shop service: {words}")
    house.made.index()
    house.server.chat_script = lambda body: (
        call("record_path", path=f"src/new{next(numbers)}.py", message_id="msg_0004")
        if len(body["messages"]) == 2
        else evident(body)
    )
    house.run()
    about = [question for question in house.questions() if question.startswith("What is src/new")]
    assert 0 < len(about) < 60


def test_an_invalid_citation_is_returned_once_then_dropped_and_counted(house: House):
    house.section = Agent(folders=0, summaries=0)
    draft = [
        {"text": "It runs on Mars.", "message_ids": ["msg_9999"]},
        {"text": "Somebody said so.", "message_ids": ["msg_0001"], "quote": "words that nobody ever wrote here"},
        {"text": "It is a shop.", "message_ids": ["msg_0001"], "quote": "small shop service in Python"},
    ]
    house.server.chat_script = lambda _body: call("answer_question", statements=draft)
    house.run()
    assert "It is a shop." in house.page()
    assert "Mars" not in house.page()
    assert "Somebody said so" not in house.page()
    assert "2 statements" in house.page()
    purpose = [body for body in house.server.chats if "What is this for" in asked(body)]
    assert len(purpose) == 2
    assert "msg_9999" in purpose[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("section", "script", "note"),
    [
        (Agent(steps=2, summaries=0), lambda _body: call("list_files", folder=""), "agent.steps"),
        (Agent(repeats=2, summaries=0), lambda _body: call("list_files", folder=""), "agent.repeats"),
        (Agent(summaries=0), lambda _body: "I would rather talk.", "could not be used"),
        (Agent(summaries=0), lambda _body: call("finish", reason="It was not recorded."), "It was not recorded"),
    ],
)
def test_an_unanswered_question_says_why_and_is_not_asked_again(
    house: House, section: Agent, script: Callable[[Any], Any], note: str
):
    house.section = section
    house.server.chat_script = script
    house.run()
    assert note in house.page()
    assert "The refund route is not yet done." in under(house.page(), "Left open"), "the facts stand all the same"
    assert house.run()["model_calls"] == 0
    house.section = Agent(steps=3, repeats=3, summaries=0)
    assert (house.run()["model_calls"] > 0) == note.startswith("agent."), "with other limits it may end otherwise"


def test_the_time_for_a_target_ends_its_questions(house: House):
    house.section = Agent(target_minutes=0.0001, folders=0, summaries=0)
    house.server.delay_s = 0.05
    result = house.run()
    assert result["unanswered"] > 0
    assert len(house.server.chats) < 5
    house.section = Agent(folders=0, summaries=0)
    house.server.delay_s = 0
    assert house.run()["unanswered"] == 0


def test_a_continuous_target_waits_until_its_sessions_are_quiet(house: House):
    house.now = house.made.clock + MINUTE
    assert house.run(refresh="once")["model_calls"] > 0
    house.made.say("ses_a", "assistant", "We decided on Postgres instead of SQLite since the disk was too slow.")
    batch = house.made.archive.batch()
    session = house.made.archive.session("ses_a")
    assert session is not None
    batch.session(type(session)(**{name: getattr(session, name) for name in session.__slots__} | {"updated": house.made.clock}), "test", 2)  # fmt: skip
    house.made.archive.commit(batch)
    house.made.index()
    house.now = house.made.clock + MINUTE
    result = house.run(refresh="continuous")
    assert result["model_calls"] == 0
    assert 60 < result["later_s"] < 180
    assert OUTDATED in house.page()
    house.now = house.made.clock + 4 * MINUTE
    assert house.run(refresh="continuous")["model_calls"] > 0


def test_an_earlier_moment_has_answers_of_its_own(house: House):
    before = house.made.clock
    house.made.say("ses_a", "assistant", "We decided on Postgres instead of SQLite since the disk was too slow.")
    house.made.index()
    house.run()
    house.questions()
    result = house.run(at=str(before))
    assert result["model_calls"] > 0
    assert "Postgres" not in Path(result["output"], "README.md").read_text()
    assert house.run()["model_calls"] == 0
    assert house.run(at=str(before))["model_calls"] == 0


def test_trajectories_of_a_target_are_kept_within_bounds(house: House):
    house.section = Agent(trajectories=3, summaries=0)
    house.run()
    kept = trajectory.read(house.made.archive, SHOP)
    assert len(kept) == 3
    assert all(each["state"] == "the question was answered" for each in kept)


def test_a_server_error_on_one_question_does_not_stop_the_others(house: House):
    evident = EvidentModel()
    house.server.chat_script = lambda body: (500, "boom") if "What was decided" in asked(body) else evident(body)
    result = house.run()
    assert result["unanswered"] == 1
    assert any("1 question left for later" in warning for warning in result["warnings"])
    assert "Answered by" in under(house.page(), "Left open")
    assert "Answered by" not in under(house.page(), "Rules and decisions")
    assert result["answered"] == result["questions"] - 1
    house.server.chat_script = evident
    assert house.run()["unanswered"] == 0


def test_the_reason_is_told_when_nothing_could_be_asked_at_all(house: House):
    house.server.down()
    result = house.run()
    assert result["answered"] == 0
    assert result["unanswered"] > 5
    assert any(house.server.url in warning for warning in result["warnings"])
    assert house.server.count["/api/chat"] == 0


def test_a_description_that_newer_evidence_may_have_overtaken_says_so(house: House):
    house.section = Agent(folders=0, summaries=0)
    evident = EvidentModel()

    def script(body: Any) -> Any:
        if "What is this for" in asked(body) and len(body["messages"]) == 2:
            said = {
                "text": "Holds the rows in SQLite.",
                "message_ids": ["msg_0001"],
                "quote": "small shop service in Python",
            }
            return call("describe_path", path="src/db.py", **said)
        return evident(body)

    house.server.chat_script = script
    house.run()
    assert "Holds the rows in SQLite." in house.page("src/db.py.md")
    house.made.say("ses_a", "assistant", "SQLite is out; db.py talks to Postgres now, it was decided.")
    house.made.index()
    house.server.down()
    house.run()
    assert "There is newer evidence than this." in house.page("src/db.py.md")


def test_statements_without_a_quote_of_an_older_version_are_dropped(house: House):
    """Version 0.1 also kept statements that only named a message; without a model nothing else would replace them."""
    house.run()
    kept = OutcomeStore(house.made.archive, SHOP, "")
    for name in house.made.archive.target_names(SHOP, "question:"):
        outcome = house.made.archive.target_get(SHOP, name)
        for said in outcome["answer"]["statements"]:
            for source in said["sources"]:
                source.pop("path")
            said["sources"].append(said["sources"][0] | {"message_id": "msg_0001", "quote": ""})
        unquoted = {"message_id": "msg_0001", "session_id": "", "title": "", "created": 1, "quote": ""}
        statement = {"text": "Only said to be so.", "reason": "", "sources": [unquoted], "paths": []}
        outcome["answer"]["statements"].append(statement)
        outcome |= {"notes": [statement], "descriptions": {f"{SHOP}/src/db.py": statement}}
        outcome["recorded"] = {f"{SHOP}/new.py": "a model's own words"}
        outcome["answer"]["confidence"] = "high"
        del outcome["struck"]
        house.made.archive.target_put(SHOP, name, outcome)
    decisions = kept.get("decisions")
    assert decisions is not None
    assert all(source.quote for said in decisions.answer.statements for source in said.sources)
    assert (decisions.answer.dropped, decisions.notes, decisions.descriptions, decisions.struck) == (1, (), {}, {})
    house.server.down()
    house.run()
    assert "SQLite holds the data." in house.page()
    assert not any(words in house.page() for words in ("Only said to be so", "a model's own words"))


def test_tables_of_numbers_do_not_keep_a_question_from_being_asked(house: House):
    table = "\n".join(",".join(str(number * step % 9973) for step in range(1, 30)) for number in range(60))
    for _ in range(6):
        house.made.say(
            "ses_a", "assistant", f"What was decided and measured, and how it is installed and run:\n{table}"
        )
    house.made.index()
    result = house.run()
    assert result["model_calls"] > 5
    assert "did not fit" not in house.page()


def test_a_session_dated_in_the_future_does_not_put_questions_off_for_ever(house: House):
    house.made.clock += 400 * 86_400_000
    house.made.session("ses_f", SHOP, "From the future")
    house.made.say("ses_f", "user", "Please build a small shop service, later.")
    house.made.index()
    house.now = house.made.clock - 300 * 86_400_000
    assert house.run(refresh="continuous")["model_calls"] > 0


def test_an_index_that_is_gone_or_fuller_by_now_is_no_reason_to_ask_again(house: House):
    house.run()
    house.questions()
    for _ in range(2):
        with closing(OllamaChat(house.server.url, "chat")) as chat:
            again = Reconstitution(
                house.made.archive, house.made.recall(semantic=None), Files(house.made.archive), house.root,
                answerer=Answerer(chat, "", house.section), clock=lambda: house.made.clock + 40 * 24 * 60 * MINUTE,
            ).run(Target(SHOP))  # fmt: skip
        assert again["model_calls"] == 0
        assert again["written"] == 0


def test_a_question_at_great_length_is_asked_and_searched_by_its_beginning(house: House):
    house.section = Agent(folders=0, summaries=0)
    result = house.run(questions=("Why " + "so very " * 1000 + "long?",))
    assert result["questions"] == 8
