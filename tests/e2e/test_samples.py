"""Over three archives that real OpenCode versions wrote: all of it is kept, found again, replayed without loss, and what
is called proven is what the files really were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.model import Message
from daemon.transcript.replay import replay
from tests.conftest import Sample
from tests.support.chat_messages import ollama_problems
from tests.support.servers.plain_service import PlainService

WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{4,24}")


def engine_over(sample: Sample, root: Path, **more: Any) -> PlainService:
    tables = {
        "opencode": {"data_dir": str(sample.data_dir)},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "out")},
        "embedding": {"provider": "builtin"},
    }
    return PlainService(Engine(msgspec.convert(tables | more, config.Config)))


@pytest.fixture
def engine(any_sample: Sample, tmp_path: Path) -> Iterator[PlainService]:
    with engine_over(any_sample, tmp_path) as opened:
        opened.scan(everything=True, patient=False)
        yield opened


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def said(message: Message) -> Iterator[tuple[str, str]]:
    """(kind, text) of everything a person may look for, straight from the raw parts."""
    for part in message.parts:
        data = part.data
        state = data.get("state") if isinstance(data.get("state"), dict) else {}
        if part.type == "text":
            if not data.get("synthetic"):
                yield ("prompt" if message.role == "user" else "answer"), data["text"]
        elif part.type == "reasoning":
            yield "reasoning", data["text"]
        elif part.type == "tool":
            given = state.get("input") or {}
            if isinstance(given, dict) and isinstance(given.get("command"), str):
                yield "command", given["command"]
            for text in strings(given):
                yield "tool_input", text
            yield "tool_output", str(state.get("output") or state.get("error") or "")


def test_a_token_of_every_part_of_every_kind_finds_its_message(engine: PlainService) -> None:
    recall = engine.searching()
    asked: dict[str, int] = {}
    for message_id in engine.archive.all_message_ids():
        message = engine.archive.message(message_id)
        assert message is not None
        for kind, text in said(message):
            words = WORD.findall(text[:20_000])
            if not words:
                continue
            token = max(words, key=len)
            found = {hit.message_id for hit in recall.search(token, "literal", 200).hits}
            assert message_id in found, (kind, token)
            asked[kind] = asked.get(kind, 0) + 1
    for session in engine.archive.sessions():
        words = WORD.findall(session.title)
        first = engine.archive.message_ids(session.id)[:1]
        if words and first:
            found = {hit.session_id for hit in recall.search(max(words, key=len), "literal", 200).hits}
            assert session.id in found
            asked["title"] = asked.get("title", 0) + 1
    assert set(asked) == {"prompt", "answer", "reasoning", "tool_input", "command", "tool_output", "title"}
    assert sum(asked.values()) > 200


def test_the_replay_of_every_message_is_valid_and_complete(engine: PlainService) -> None:
    for message_id in engine.archive.all_message_ids():
        message = engine.archive.message(message_id)
        assert message is not None
        entries = replay(message)
        assert ollama_problems(entries) == []
        whole = "\0".join(strings(entries))
        for _, text in said(message):
            for line in text.splitlines():
                assert line in whole


def test_every_revision_called_proven_is_byte_for_byte_what_the_file_was(
    engine: PlainService, any_sample: Sample
) -> None:
    timeline: dict[str, list[tuple[float, str | None]]] = {}
    for entry in any_sample.timeline():
        timeline.setdefault(entry["path"], []).append((entry["time"] * 1000, entry["sha256"]))
    compared = 0
    for path in engine.recorded.paths("/"):
        history = engine.recorded.history(path)
        for time, sha256 in timeline.get(path, []):
            state = history.at(int(time) + 1)
            if state is None or not state.proven:
                continue
            if sha256 is None:
                assert state.deleted, (path, state)
            else:
                assert state.content == any_sample.blob(sha256), (path, state)
            compared += 1
    assert compared >= 40


def test_a_file_called_proven_and_current_has_its_final_content(engine: PlainService, any_sample: Sample) -> None:
    truth = any_sample.truth
    exact = 0
    for path in engine.recorded.paths("/"):
        history = engine.recorded.history(path)
        if history.stale or history.latest is None:
            continue
        if history.latest.deleted:
            assert path not in truth["files"], path
        elif path in truth["files"]:
            assert history.latest.content == (any_sample.root / "truth" / "files" / path.lstrip("/")).read_bytes(), path
            exact += 1
        else:
            pytest.fail(f"{path} is called current, but was not there at the end")
    assert exact >= 10


def stamps(root: Path) -> dict[Path, tuple[int, int]]:
    """Every file and folder, with its inode and modification time: what is written anew has others."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in root.rglob("*")}


def test_each_project_becomes_a_tree_whose_second_run_writes_nothing(engine: PlainService) -> None:
    folders = sorted({session.directory for session in engine.archive.sessions() if session.directory})
    outer = [folder for folder in folders if not any(folder.startswith(other + "/") for other in folders)]
    assert len(outer) >= 2
    for folder in outer:
        first = engine.reconstitute(folder, progress=lambda _: None)
        assert first["written"] == first["pages"] > 1
        assert (Path(first["output"]) / "README.md").is_file()
        before = stamps(engine.config.output_dir)
        second = engine.reconstitute(folder, progress=lambda _: None)
        assert (second["written"], second["unchanged"]) == (0, first["pages"])
        assert stamps(engine.config.output_dir) == before
