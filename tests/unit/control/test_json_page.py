"""docs/json.md has an example of every answer, with exactly the names that the real calls give.

`python -m tests.unit.control.test_json_page` makes the examples anew.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.control import web_answers
from daemon.control.answers import json_name
from daemon.control.calls import BY_NAME
from daemon.errors import BadRequest, described
from daemon.recall.query import CALLS as RECALL_CALLS
from daemon.reconstitute.agent.trajectory import Trajectory
from tests.e2e.talk import PROJECT, Talk
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore

PAGE = Path(__file__).parents[3] / "docs" / "json.md"
FILE = f"{PROJECT}/beds.lua"
OTHERS = {"unknown", "input", "arguments", "metadata"}
"""Keys beneath which stand names of others: OpenCode's types, a tool's arguments."""


def examples(root: Path) -> dict[str, Any]:
    """An answer of each call, by its name, from a small archive; and an error."""
    talk = Talk(JsonStore(root / "oc"))
    talk.ask("Number the rows of the beds.")
    message = talk.write(FILE, "rows = [1]\n")
    talk.call("edit", {"filePath": FILE, "oldString": "[1]", "newString": "[1, 2]"}, "ok")
    talk.answer("The rows are numbered.")
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "pages")},
        "chat": {"provider": "none"},
        "targets": [{"path": PROJECT}],
    }
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        asked = {"id": "purpose", "ask": "What is it for?"}
        Trajectory(engine.archive, PROJECT, asked, "qwen3:8b", lambda: 1_790_000_000_000).save(
            [{"role": "user", "content": "What is it for?"}], steps=1, tokens=900, seconds=1.5
        )
        engine.open_page = lambda: web_answers.Web("http://127.0.0.1:11436/enter?key=k", "http://127.0.0.1:11436", 60)
        made = {
            "recall": engine.recall("recall", {"query": "number rows", "results": 1}),
            "recall_get": engine.recall("recall_get", {"messageID": message}),
            "recall_context": engine.recall("recall_context", {"messageID": message, "window": 0}),
            "recall_messages": engine.recall("recall_messages", {"sessionID": talk.session_id, "limit": 1}),
            "recall_sessions": engine.recall("recall_sessions", {}),
            "recall_timeline": engine.recall("recall_timeline", {"anchor": message, "depth_after": 1}),
            "recall_files": engine.recall("recall_files", {"path": FILE}),
            "files": engine.files(PROJECT),
            "history": engine.history(FILE, diff=True, lines=True),
            "content": engine.content(FILE),
            "lines": engine.lines(FILE),
            "diff": engine.diff(FILE),
            "restore": engine.restore(PROJECT),
            "alias": engine.alias("/home/dev/old-garden", PROJECT),
            "conversation": engine.conversation(talk.session_id, start=2, count=1),
            "export": engine.export({"format": "jsonl"}),
            "index": engine.index(),
            "forget": engine.forget(talk.session_id),
            "backup": engine.backup(),
            "reconstitute": engine.reconstitute(PROJECT, questions=["Why are the rows numbered?"]),
            "estimate": engine.estimate(PROJECT),
            "page": engine.page(PROJECT) | {"text": "# garden\n\n> Number the rows of the beds. (first prompt)…"},
            "activity": engine.activity("2026-11-21", "2026-11-21", limit=9),
            "unfinished": engine.unfinished("2026-01-01"),
            "trajectories": engine.trajectories(started=1_790_000_000_000),
            "models": engine.models(),
            "web": engine.web(),
            "status": engine.status(),
            "doctor": engine.doctor(),
            "pause": engine.pause(),
        }
    error = BadRequest("'/x': not an absolute path; write it from the root")
    return made | {"error": {"error": described(error, str(error))}}


def written() -> dict[str, Any]:
    """The examples on the page, by the heading that they stand below."""
    return {
        heading: json.loads(block)
        for heading, block in re.findall(r"(?ms)^### `(\w+)`.*?^```json\n(.*?)^```", PAGE.read_text())
    }


def names(value: Any, place: str = "") -> Iterator[str]:
    """Every name in a JSON value with where it stands; of a list those of all its entries."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{place}/{key}"
            yield from () if key in OTHERS else names(item, f"{place}/{key}")
    elif isinstance(value, list):
        for item in value:
            yield from names(item, f"{place}[]")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return examples(tmp_path_factory.mktemp("json"))


def test_the_page_has_an_example_of_every_answer() -> None:
    assert set(written()) == ({*BY_NAME, *RECALL_CALLS} | {"error"})


@pytest.mark.parametrize("call", sorted({*BY_NAME, *RECALL_CALLS, "error"}))
def test_an_example_has_exactly_the_names_of_the_real_answer(answers: dict[str, Any], call: str) -> None:
    assert set(names(written()[call])) == set(names(answers[call]))


def test_every_name_is_in_camel_case(answers: dict[str, Any]) -> None:
    wrong = {name for name in names(answers) if "messages[]" not in name and "_" in name.rpartition("/")[2]}
    assert wrong == {f"/{name}" for name in RECALL_CALLS if "_" in name}


def test_names_become_those_that_agents_know() -> None:
    fields = ("session_id", "last_change", "content_base64", "sha256")
    assert [json_name(field) for field in fields] == ["sessionID", "lastChange", "contentBase64", "sha256"]


def renew() -> None:
    """Put today's answers into the page's blocks."""
    with tempfile.TemporaryDirectory() as root:
        made = examples(Path(root))
        text = json.dumps(made, ensure_ascii=False).replace(root, "/home/dev/data")
    made = json.loads(text)

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}```json\n{json.dumps(made[found[2]], indent=2, ensure_ascii=False)}\n```"

    PAGE.write_text(re.sub(r"(?ms)(^### `(\w+)`[^\n]*\n(?:(?!^#|^```).)*?)^```json\n.*?^```", block, PAGE.read_text()))


if __name__ == "__main__":
    renew()
