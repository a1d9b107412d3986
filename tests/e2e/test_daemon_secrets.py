"""Planted secrets stand in the archive alone: no index, page, answer, model request or log line has one. And what our own recall
was quoted as saying is not found as if somebody had said it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.secrets.canaries import SECRETS
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore

QUOTED = "<<<reconstitute:recall\n{}\nreconstitute:recall>>>"
LINES = sorted({line for _, secret, _ in SECRETS for line in secret.split("\n") if len(line) > 8 and "KEY" not in line})
"""What must not be seen: each secret, of the longer ones each line; the frames of private keys are no secret."""


@dataclass
class Aftermath:
    """Everything the daemon let out. `answers` holds texts of the socket and of commands, `sent` those to the model."""

    daemon: Daemon
    sent: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    hits: dict[str, list[str]] = field(default_factory=dict)


MESSAGES = 10
"""Of each planted session."""
KINDS = {
    "root": "README.md",
    "changes": "CHANGES.md",
    "front": f"{PROJECT[1:]}/README.md",
    "inner folder": f"{PROJECT[1:]}/1/README.md",
    "file": f"{PROJECT[1:]}/1/settings.txt.md",
    "session": f"{PROJECT[1:]}/sessions/*.md",
}
"""Every kind of page, by where it lies in the output."""


def plant(store: JsonStore) -> None:
    """Each canary as a prompt, an answer, a tool's input, output and error, a file's content, and a session's title.

    And as what the facts of a folder are made of: a rule, an open todo, a failed command, and a folder's purpose.
    """
    for number, (_, secret, frame) in enumerate(SECRETS):
        said = frame.replace("{}", secret)
        talk = Talk(store, f"ses_{number:03d}", f"{PROJECT}/{number}", title=f"About {said}")
        talk.ask(f"Look {words(number)}:\n{said}\n")
        talk.answer(f"I see:\n{said}\n", {"type": "reasoning", "text": f"Think.\n{said}\n"})
        talk.call("bash", {"command": said, "description": "Run it"}, f"It printed\n{said}\n")
        talk.call("read", {"filePath": f"{PROJECT}/{number}/env"}, f"<file>\n00001| {said}\n</file>")
        talk.write(f"{PROJECT}/{number}/settings.txt", f"# {words(number)}\n{said}\n")
        talk.call(
            "edit",
            {"filePath": f"{PROJECT}/{number}/settings.txt", "oldString": "# ", "newString": f"# {said}\n# "},
            "Edit applied",
        )
        talk.ask(f"Never use {said} in this project, because it is old.")
        talk.call(
            "todowrite", {"todos": [{"content": f"Replace {said}", "status": "pending", "priority": "high"}]}, "[]"
        )
        talk.fail("bash", {"command": f"make test KEY='{said}'", "description": "Test"}, f"It failed with {said}")
        talk.write(f"{PROJECT}/{number}/README.md", f"# Part {number}\n\nA part that uses {said} every day.\n")

    talk.write(f"{PROJECT}/README.md", f"# Garden\n\nA garden that uses {said} every day.\n")


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    root = tmp_path_factory.mktemp("secrets")
    plant(JsonStore(root / "opencode"))
    with ExitStack() as stack:
        server = stack.enter_context(FakeOllama())
        embedding = {"provider": "ollama", "model": "embedder", "url": server.url}
        tables = {"log": {"level": "debug"}, "embedding": embedding}
        targets = [{"path": PROJECT}]
        daemon = stack.enter_context(Daemon(root / "opencode", root / "ours", tables=tables, targets=targets))
        seen = Aftermath(daemon)
        daemon.run()
        until(lambda: daemon.status()["archive"]["messages"] == MESSAGES * len(SECRETS) + 1, 60)
        daemon.drop_request("garden.toml", f'path = "{PROJECT}"\nquestions = ["What is the password?"]\n')
        (result,) = daemon.wait_for_results(1)
        seen.answers["request"] = result.read_text()
        daemon.wait_until_drained(60)
        seen.sent = server.embedded()
        ask_everything(seen)
        daemon.terminate()
        for command in (["status"], ["search", "--expand", "messages", "password"], [PROJECT]):
            done = daemon.ask(*command)
            assert done.returncode == 0, done.stderr
            seen.answers[" ".join(command)] = done.stdout + done.stderr
        yield seen


def ask_everything(seen: Aftermath) -> None:
    with seen.daemon.client() as client:
        seen.answers["/status"] = client.get("/status").text
        asked = [("literal", words(number)) for number in range(len(SECRETS))]
        asked += [(mode, query) for mode in ("hybrid", "semantic") for query in ("password", "token", "key", "Look")]
        for mode, query in asked:
            arguments = {"query": query, "match": mode, "results": 50, "expand": "messages"}
            answer = client.post("/recall/recall", json={"arguments": arguments})
            assert answer.status_code == 200, answer.text
            seen.answers[f"{mode} {query}"] = answer.text
        for line in LINES:
            found = client.post("/recall/recall", json={"arguments": {"query": line, "match": "literal"}}).json()
            seen.hits[line] = [hit["messageID"] for hit in found["results"]]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def leaks(text: str) -> list[str]:
    return [line for line in LINES if line in text]


def test_no_canary_reaches_index_pages_socket_or_log(aftermath: Aftermath) -> None:
    daemon = aftermath.daemon
    files = [path for place in (daemon.archive_dir / "index", daemon.output_dir) for path in place.rglob("*")]
    files = [path for path in [*files, daemon.log_path] if path.is_file()]
    assert len(files) > 2 * len(SECRETS)
    needles = {line: line.encode() for line in LINES}
    found = {}
    for path in files:
        data = path.read_bytes()
        shown = [line for line, needle in needles.items() if needle in data]
        if shown:
            found[str(path)] = shown
    assert found == {}


def test_every_kind_of_page_tells_of_the_canaries_without_them(aftermath: Aftermath) -> None:
    shown = {}
    for kind, pattern in KINDS.items():
        pages = [path.read_text() for path in aftermath.daemon.output_dir.glob(pattern)]
        shown[kind] = sum("REDACTED:" in page for page in pages)
        assert not [page for page in pages if leaks(page)], kind
    assert [kind for kind in KINDS if not shown[kind]] == []


def test_no_name_of_a_file_holds_a_canary(aftermath: Aftermath) -> None:
    names = [str(path) for path in aftermath.daemon.output_dir.rglob("*")]
    assert [name for name in names if leaks(name)] == []


def test_no_answer_holds_a_canary(aftermath: Aftermath) -> None:
    assert len(aftermath.answers) > len(SECRETS)
    found = {}
    for name, text in aftermath.answers.items():
        decoded = [text]
        if text.startswith("{"):
            decoded += texts(json.loads(text))  # escapes undone: what a client sees
        shown = sorted({line for piece in decoded for line in leaks(piece)})
        if shown:
            found[name] = shown
    assert found == {}


def test_the_model_is_sent_no_canary(aftermath: Aftermath) -> None:
    assert len(aftermath.sent) > 3 * len(SECRETS)
    assert [text for text in aftermath.sent if leaks(text)] == []


def test_no_canary_can_be_searched_for(aftermath: Aftermath) -> None:
    assert {line: hits for line, hits in aftermath.hits.items() if hits} == {}


def test_what_stands_around_the_canaries_was_kept_and_is_found(aftermath: Aftermath) -> None:
    for number in range(len(SECRETS)):
        hits = json.loads(aftermath.answers[f"literal {words(number)}"])["results"]
        assert {hit["sessionID"] for hit in hits} == {f"ses_{number:03d}"}
    pages = list(aftermath.daemon.output_dir.rglob("settings.txt.md"))
    assert len(pages) == len(SECRETS)
    assert sum("[REDACTED:" in page.read_text() for page in pages) == len(SECRETS)


def test_answers_of_recall_itself_are_not_search_results(daemon: Daemon, data_dir: Path) -> None:
    talk = Talk(JsonStore(data_dir))
    said = talk.ask(f"We decided for {words(1)}.")
    talk.answer("I looked it up:\n" + QUOTED.format(f"We decided for {words(1)}. {words(2)}") + f"\nSo {words(3)}.")
    talk.call("reconstitute_recall", {"query": "what was decided"}, f"We decided for {words(1)}. {words(4)}")
    talk.call("mcp__reconstitute__recall_get", {"id": said}, f"We decided for {words(1)}. {words(5)}")
    last = talk.call("bash", {"command": "cat notes"}, QUOTED.format(f"{words(1)} {words(6)}") + f" {words(7)}")
    daemon.run()
    until(lambda: [hit["messageID"] for hit in daemon.search(words(7))] == [last])
    daemon.wait_until_drained()

    assert [hit["messageID"] for hit in daemon.search(words(1))] == [said]
    assert [daemon.search(words(number)) for number in (2, 4, 5, 6)] == [[], [], [], []]
    assert len(daemon.search(words(3))) == 1
    for mode in ("hybrid", "semantic"):
        found = daemon.search(f"We decided for {words(1)}.", mode, 10)
        assert found[0]["messageID"] == said
        assert not any(words(1) in hit["snippet"] for hit in found[1:])
