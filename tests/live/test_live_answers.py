"""A folder's questions are answered by a model behind a real OpenCode server, from what that OpenCode recorded.

One run per OpenCode version: a session is held, the daemon takes it in, a request is dropped, and the same server's model
answers, speaking one JSON object a turn. Only the provider is scripted; it cites what it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon.records import OWN_SESSION_TITLE
from tests.live.opencode import OpenCode, make_project
from tests.live.scripted_model import Call, ScriptedModel, Step
from tests.support.processes.daemon_process import Daemon
from tests.support.servers.evident_model import EvidentModel, Said

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

PROMPT = "Please set up the frost alarm."
ANSWER = "The alarm polls every minute instead of waiting for an event because the sensor has no interrupt line."
SCRIPT = EvidentModel(
    {
        "What is this for": [Said("It warns of frost.", "Please set up the frost alarm")],
        "What was decided": [
            Said("The sensor is polled.", "polls every minute instead of waiting", "It cannot interrupt.")
        ],
    }
)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


@dataclass
class Provider(ScriptedModel):
    """The scripted model for the session; for our questions it answers from the evidence. `asked` counts those."""

    asked: list[str] = field(default_factory=list)

    def step(self, messages: list[dict[str, Any]]) -> Step:
        whole = "\n".join(map(_text, messages))
        is_question = "answer_question" in whole
        if not is_question and "reconstitute:recall" not in whole:
            return super().step(messages)
        self.asked.append(whole)
        tools = [] if is_question else [{"function": {"name": "summarize"}}]
        message = SCRIPT({"messages": [{"content": ""}, {"content": whole}], "tools": tools})
        function = message["tool_calls"][0]["function"]
        action = {"action": "tool_call", "tool_name": function["name"], "arguments": function["arguments"]}
        return Step(text=f"```json\n{json.dumps(action)}\n```", prompt_tokens=len(whole) // 4)


@dataclass
class Seen:
    first: dict[str, Any]
    again: dict[str, Any]
    asked: int
    page: str
    titles: list[str]
    tools: set[str]
    sessions: list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    root = tmp_path_factory.mktemp("live-answers")
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    with Provider() as provider:
        alarm = str(garden / "alarm.py")
        provider.add(
            PROMPT, [Step(calls=(Call("write", {"filePath": alarm, "content": "poll()\n"}),)), Step(text=ANSWER)]
        )
        with OpenCode(binary, root / "oc", provider.url) as opencode:
            url = str(opencode._http.base_url).rstrip("/")
            tables = {"chat": {"provider": "opencode"}, "opencode": {"server_url": url}}
            with Daemon(opencode.data_dir, root / "ours", tables=tables) as daemon:
                daemon.run()
                session = opencode.create_session(garden, "Frost alarm")
                opencode.prompt(session, PROMPT)
                last = opencode.messages(session)[-1]["info"]["id"]
                daemon.wait_until_found({"interrupt line": last}, 60)
                daemon.wait_until_drained()
                results = []
                for number in (1, 2):
                    daemon.drop_request(f"{number}.txt", f"{garden}\n")
                    daemon.wait_for_results(number, 120)
                    done = daemon.requests_dir / "done" / f"{number}.txt.result.json"
                    results.append(json.loads(done.read_text())["result"]["results"][0])
                listed = httpx.get(f"{url}/session", timeout=240, trust_env=False, verify=False).json()
                found = daemon.ask("recall-sessions", "--json").stdout
                page = (daemon.output_dir / str(garden)[1:] / "README.md").read_text()
        yield Seen(
            results[0], results[1], len(provider.asked), page, [each["title"] for each in listed],
            {part for text in provider.asked for part in ("bash", "webfetch") if f'"{part}"' in text},
            json.loads(found)["sessions"],
        )  # fmt: skip


def test_the_answers_stand_on_the_page_with_their_sources(seen: Seen) -> None:
    assert seen.first["model"].startswith("scripted/scripted (OpenCode)")
    assert (seen.first["unanswered"], seen.first["warnings"]) == (0, [])
    assert seen.first["modelCalls"] == seen.asked >= 7
    for expected in ("It warns of frost.", "The sensor is polled.", "It cannot interrupt.", "Frost alarm"):
        assert expected in seen.page


def test_the_second_request_asks_nothing_and_writes_nothing(seen: Seen) -> None:
    assert (seen.again["modelCalls"], seen.again["written"]) == (0, 0)


def test_no_session_of_ours_is_left_or_archived(seen: Seen) -> None:
    assert [title for title in seen.titles if title.startswith(OWN_SESSION_TITLE)] == []
    assert [session["title"] for session in seen.sessions] == ["Frost alarm"]


def test_the_model_is_offered_no_tool_of_opencode(seen: Seen) -> None:
    assert seen.tools == set()
