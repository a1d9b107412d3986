"""A real OpenCode with our MCP server in its configuration: what an earlier session said comes back when it asks.

One run per OpenCode version. The model is scripted; the server, the daemon and everything between them are real.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.transcript.document import RECALL_BEGIN, RECALL_END
from tests.live.opencode import OpenCode, make_project
from tests.live.scripted_model import Call, ScriptedModel, Step
from tests.support.processes.daemon_process import CHECKOUT, Daemon

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

SERVER = "reconstitute"
PLANTED = "zqmarzipan"
ANSWER = f"The frost alarm listens on port 47113; its password file is {PLANTED}.toml."
QUESTION = "Where does the frost alarm listen?"
LATER = "Remember what we found out about the frost alarm."
LOST = "frost = 47113\n"


@dataclass
class Run:
    """What was seen: the tool calls of the later session, and searches before and after it."""

    daemon: Daemon
    garden: Path
    earlier: list[dict[str, Any]] = field(default_factory=list)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)


def configure(opencode: OpenCode, daemon: Daemon) -> None:
    """One entry more in opencode.json, as docs/mcp.md says; its command is this checkout's."""
    path = opencode.root / "config" / "opencode" / "opencode.json"
    server = {
        "type": "local",
        "command": [sys.executable, "-m", "daemon.cli", "--config", str(daemon.config), "mcp"],
        "environment": {"PYTHONPATH": str(CHECKOUT), "XDG_RUNTIME_DIR": daemon.environment["XDG_RUNTIME_DIR"]},
        # Tests run beside other work; the documented line needs no such patience.
        "timeout": 60_000,
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mcp": {SERVER: server}}))


@pytest.fixture(scope="module")
def run(binary: Path, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    root = tmp_path_factory.mktemp("live-mcp")
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    lost = garden / "alarm.ini"
    model.add(
        QUESTION,
        [Step(calls=(Call("write", {"filePath": str(lost), "content": LOST}),)), Step(text=ANSWER)],
    )
    asked = {"query": "frost alarm listens", "results": "3", "session_id": ""}
    model.add(
        LATER,
        [
            Step(calls=(Call(f"{SERVER}_recall", asked),)),
            Step(calls=(Call(f"{SERVER}_recall_sessions", {"scope": "project"}),)),
            Step(calls=(Call(f"{SERVER}_read_file", {"path": "alarm.ini"}),)),
            Step(calls=(Call(f"{SERVER}_recall", {"query": "x", "match": "psychic"}),)),
            Step(text="It is as we had found out."),
        ],
    )
    with Daemon(root / "oc" / "data" / "opencode", root / "ours") as daemon:
        seen = Run(daemon, garden)
        opencode = OpenCode(binary, root / "oc", model.url)
        configure(opencode, daemon)
        daemon.run()
        with opencode:
            first = opencode.create_session(garden, "Frost alarm")
            opencode.prompt(first, QUESTION)
            seen.earlier = opencode.messages(first)
            lost.unlink()
            planted = daemon.wait_until_found({PLANTED: seen.earlier[-1]["info"]["id"]}, 60)
            assert planted, "the earlier answer was not indexed"
            second = opencode.create_session(garden, "Later")
            opencode.prompt(second, LATER)
            messages = opencode.messages(second)
        parts = [part for message in messages for part in message["parts"] if part["type"] == "tool"]
        for name, part in zip(("recall", "recall_sessions", "read_file", "refused"), parts, strict=True):
            seen.calls[name] = part
        seen.later = [message["info"]["id"] for message in messages]
        daemon.wait_until_found({"found out": seen.later[-1]}, 60)
        yield seen


def quoted(part: dict[str, Any]) -> Any:
    """The JSON between the marks of a tool's output."""
    assert part["state"]["status"] == "completed", part["state"]
    output = part["state"]["output"]
    first, answer, last = output.strip().split("\n")
    assert (first.startswith(RECALL_BEGIN), last) == (True, RECALL_END)
    return json.loads(answer)


def test_the_agent_gets_what_an_earlier_session_said(run: Run) -> None:
    assert run.calls["recall"]["tool"] == f"{SERVER}_recall"
    answer = quoted(run.calls["recall"])
    results = {result["messageID"]: result for result in answer["results"]}
    result = results[run.earlier[-1]["info"]["id"]]
    assert answer["sessions"][result["session"]]["title"] == "Frost alarm"
    assert PLANTED in result["snippet"]


def test_this_project_is_the_one_that_opencode_works_in(run: Run) -> None:
    answer = quoted(run.calls["recall_sessions"])
    assert {session["title"] for session in answer["sessions"]} == {"Frost alarm", "Later"}
    assert {session["directory"] for session in answer["sessions"]} == {str(run.garden)}


def test_a_lost_file_of_this_project_is_read_by_its_relative_path(run: Run) -> None:
    answer = quoted(run.calls["read_file"])
    # OpenCode's snapshot of the later session's first step saw that it was gone.
    held = answer["last"] if answer.get("deleted") else answer
    assert (held["content"], held["proven"], answer["path"]) == (LOST, True, str(run.garden / "alarm.ini"))
    assert not (run.garden / "alarm.ini").exists()


def test_a_refusal_comes_as_the_tools_error(run: Run) -> None:
    state = run.calls["refused"]["state"]
    assert "'psychic' is not understood; use fuzzy, hybrid" in json.dumps(state)
    assert RECALL_BEGIN not in json.dumps(state)


def test_recalls_own_output_is_never_found_again(run: Run) -> None:
    assert PLANTED in run.calls["recall"]["state"]["output"]
    found = {hit["messageID"] for mode in ("literal", "hybrid") for hit in run.daemon.search(PLANTED, mode, 50)}
    assert run.earlier[-1]["info"]["id"] in found
    literal = {hit["messageID"] for hit in run.daemon.search(PLANTED, "literal", 50)}
    assert not literal & set(run.later)
    done = run.daemon.ask("recall", PLANTED, "--match", "literal", "--results", "50", "--json")
    assert {result["messageID"] for result in json.loads(done.stdout)["results"]} == {run.earlier[-1]["info"]["id"]}
