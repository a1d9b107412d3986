"""The daemon asks a chat model about a folder: killed in the middle, without its server, and shown afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk
from tests.support.processes.daemon_process import Daemon, until
from tests.support.servers.evident_model import EvidentModel, Said
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore

DECIDED = "We decided on drip lines instead of sprinklers because the leaves must stay dry."
SCRIPT = EvidentModel(
    {
        "What is this for": [Said("It plans a garden.", "a plan for the garden")],
        "What was decided": [Said("Drip lines water the beds.", "drip lines instead of sprinklers", "Dry leaves.")],
    }
)


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama({"chat:latest": "cd" * 32}) as server:
        server.capabilities["chat:latest"] = ["completion", "tools"]
        server.chat_script = SCRIPT
        yield server


@pytest.fixture
def talk(data_dir: Path) -> Talk:
    return Talk(JsonStore(data_dir))


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon], server: FakeOllama, talk: Talk) -> Daemon:
    talk.ask("Please make a plan for the garden.")
    talk.answer(DECIDED)
    talk.write(f"{PROJECT}/plan.md", "beds\n")
    return make_daemon(tables={"chat": {"provider": "ollama", "model": "chat", "url": server.url}})


def result(daemon: Daemon, number: int) -> dict[str, Any]:
    daemon.wait_for_results(number)
    newest = max((daemon.requests_dir / "done").glob("*.result.json"), key=lambda path: path.stat().st_mtime_ns)
    found: dict[str, Any] = json.loads(newest.read_text())["result"]["results"][0]
    return found


def page(daemon: Daemon) -> str:
    return (daemon.output_dir / PROJECT[1:] / "README.md").read_text()


def test_repeating_a_request_costs_no_model_call(daemon: Daemon, server: FakeOllama):
    daemon.run()
    daemon.drop_request("one.txt", f"{PROJECT}\n")
    first = result(daemon, 1)
    assert first["model"] == "chat (Ollama)"
    assert first["modelCalls"] == len(server.chats)
    assert "Drip lines water the beds." in page(daemon)
    daemon.drop_request("two.txt", f"{PROJECT}\n")
    again = result(daemon, 2)
    assert (again["modelCalls"], again["written"]) == (0, 0)
    status = json.loads(daemon.ask("status", "--json").stdout)
    assert "chat (Ollama)" in status["answers"]
    assert daemon.terminate()[0] == 0


def test_a_question_of_its_own_is_asked(daemon: Daemon, server: FakeOllama):
    server.chat_script = EvidentModel({"Why dry leaves?": [Said("For the leaves.", "the leaves must stay dry")]})
    daemon.run()
    daemon.drop_request("one.toml", f'path = "{PROJECT}"\nquestions = ["Why dry leaves?"]\n')
    result(daemon, 1)
    assert "For the leaves." in page(daemon).split("Why dry leaves")[1]


def test_killed_in_the_middle_it_goes_on_with_the_replies_that_it_had(daemon: Daemon, server: FakeOllama):
    reached, asked = threading.Event(), []

    def script(body: Any) -> Any:
        asked.append(json.dumps(body["messages"]))
        if len(asked) == 4 and not reached.is_set():
            reached.set()
            threading.Event().wait(3)
        return SCRIPT(body)

    server.chat_script = script
    daemon.run()
    daemon.drop_request("one.txt", f"{PROJECT}\n")
    assert reached.wait(30)
    daemon.kill()
    running = len(asked)
    daemon.run()
    found = result(daemon, 1)
    assert found["unanswered"] == 0
    assert "Drip lines water the beds." in page(daemon)
    assert asked[running] == asked[running - 1], "only what had no reply is asked again"
    assert len(set(asked)) == len(asked) - 1


def test_an_unavailable_model_server_is_asked_again_when_it_is_back(daemon: Daemon, server: FakeOllama, talk: Talk):
    daemon.run()
    daemon.drop_request("one.txt", f"{PROJECT}\n")
    result(daemon, 1)
    before = page(daemon)
    server.down()
    daemon.drop_request("two.txt", f"{PROJECT}\n")
    assert result(daemon, 2)["written"] == 0
    assert page(daemon) == before
    talk.answer("We decided on rain barrels instead of the tap.")
    until(lambda: "rain barrels" in daemon.ask("search", "barrels").stdout, what="the new message is indexed")
    daemon.drop_request("three.txt", f"{PROJECT}\n")
    third = result(daemon, 3)
    assert third["unanswered"] > 0
    assert "Drip lines water the beds." in page(daemon)
    server.up()
    daemon.drop_request("four.txt", f"{PROJECT}\n")
    assert result(daemon, 4)["unanswered"] == 0


def test_trajectories_are_listed_and_shown(daemon: Daemon, server: FakeOllama):
    daemon.run()
    assert daemon.ask("trajectory").returncode == 4
    daemon.drop_request("one.txt", f"{PROJECT}\n")
    result(daemon, 1)
    listed = json.loads(daemon.ask("trajectory", PROJECT, "--json").stdout)["trajectories"]
    questions = [body for body in server.chats if "answer_question" in json.dumps(body["tools"])]
    assert 0 < len(questions) < len(server.chats), "files and sessions are described without steps of their own"
    assert sum(each["steps"] for each in listed) == len(questions)
    assert {each["state"] for each in listed} == {"the question was answered"}
    assert all("messages" not in each for each in listed)
    shown = daemon.ask("trajectory", "--started", str(listed[0]["started"])).stdout
    for expected in ("[0] system", "[1] user", "answer_question", "Accepted"):
        assert expected in shown
    assert daemon.ask("trajectory", "--last").returncode == 0
    wrong = daemon.ask("trajectory", "--started", "17")
    assert wrong.returncode == 4
    assert "no trajectory began then" in wrong.stderr
