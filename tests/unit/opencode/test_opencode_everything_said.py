"""All that a row of OpenCode 2 or a call of any version says is found by search and stands in every export."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.app.engine import Engine
from daemon.config import Config
from daemon.exports import Export, Format
from daemon.exports.formats import export
from daemon.opencode.connection import Connection
from daemon.opencode.database_v2 import Database2 as Source2
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import Database, Database2, assistant, session, tool

WORD = "quincunx"
PATCH = f"--- a/bed.md\n+++ b/bed.md\n@@ -1,1 +1,1 @@\n-# Bed\n+# The {WORD} bed\n"


def row(type_: str, data: dict[str, Any]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        store = Database2(path)
        store.session("ses_1")
        store.message("msg_1", "ses_1", type_, 1, data)
        store.close()

    return make


def call_2(name: str, state: dict[str, Any]) -> Callable[[Path], None]:
    made = {"type": "tool", "id": "call_1", "name": name, "state": state, "time": {"created": 1}}
    return row("assistant", {"agent": "build", "content": [made], "finish": "stop", "time": {"completed": 2}})


def call_1(name: str, state: dict[str, Any]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        store = Database(path)
        store.session(session("ses_1"))
        store.message(assistant("msg_1", "ses_1"), tool("prt_1", "msg_1", "ses_1", name, state))
        store.close()

    return make


FILES = {"files": [{"file": "/home/dev/p/bed.md", "patch": PATCH, "status": "modified"}]}
PRINTED = {"output": f"one\n{WORD}\nthree"}
CASES: dict[str, Callable[[Path], None]] = {
    "description of a synthetic text": row("synthetic", {"text": "The plan was updated.", "description": WORD}),
    "name of a skill": row("skill", {"skill": "pruning", "name": WORD, "text": "Cut in winter."}),
    "id of a skill": row("skill", {"skill": WORD, "name": "Pruning", "text": "Cut in winter."}),
    "printed before it failed": call_2(
        "bash", {"status": "error", "input": {"command": "make"}, "error": "stopped", "metadata": PRINTED}
    ),
    "content of a call that failed": call_2(
        "bash",
        {"status": "error", "input": {"command": "make"}, "error": {"message": "stopped"},
         "content": [{"type": "text", "text": WORD}]},
    ),
    "printed by a call that runs": call_2(
        "bash", {"status": "running", "input": {"command": "make"}, "metadata": PRINTED}
    ),
    "patch of an edit": call_2("rewrite", {"status": "completed", "input": {"path": "bed.md"}, "content": [], "metadata": FILES}),
    "patch in older rows": call_2(
        "rewrite", {"status": "completed", "input": {"path": "bed.md"}, "content": [], "structured": FILES}
    ),
    "1.x: printed before it failed": call_1(
        "bash", {"status": "error", "input": {"command": "make"}, "error": "Tool execution aborted", "metadata": PRINTED}
    ),
    "1.x: printed by a call that was killed": call_1(
        "bash", {"status": "running", "input": {"command": "make"}, "metadata": PRINTED, "time": {"start": 1}}
    ),
    "1.x: patch of a tool that is told no text": call_1(
        "rewrite", {"status": "completed", "input": {"filePath": "bed.md"}, "output": "Done.",
                    "metadata": {"filediff": {"file": "/home/dev/p/bed.md", "patch": PATCH}}, "time": {"start": 1, "end": 2}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_anywhere_is_found_and_exported(tmp_path: Path, case: str) -> None:
    CASES[case](tmp_path / "opencode" / "opencode.db")
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True, patient=False)
        hits = engine.recall("recall", {"query": WORD, "match": "literal"})["results"]
        assert [hit["messageID"] for hit in hits] == ["msg_1"]
        formats: tuple[Format, ...] = ("jsonl", "markdown") if "patch" in case else ("jsonl", "markdown", "messages")
        for format_ in formats:
            pieces: list[str] = []
            export(engine.archive, Export(format=format_, results="full"), pieces.append, lambda _: None)
            assert WORD in "".join(pieces), format_


def test_a_patch_that_repeats_the_input_is_not_indexed_twice(tmp_path: Path) -> None:
    given = {"filePath": "bed.md", "oldString": "# Bed", "newString": f"# The {WORD} bed"}
    metadata = {"filediff": {"file": "/home/dev/p/bed.md", "patch": PATCH}}
    state = {
        "status": "completed",
        "input": given,
        "output": "Done.",
        "metadata": metadata,
        "time": {"start": 1, "end": 2},
    }
    call_1("edit", state)(tmp_path / "opencode" / "opencode.db")
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, Config))) as engine:
        engine.scan(everything=True, patient=False)
        (hit,) = engine.recall("recall", {"query": WORD, "match": "literal"})["results"]
    assert hit["kind"] == "tool_input"
    assert json.dumps(hit["snippet"]).count(WORD) == 1


def test_a_row_archived_by_an_older_version_is_read_again(tmp_path: Path) -> None:
    """What is drawn from a row has grown, so its stamp is another one than 0.1 would have kept."""
    store = Database2(tmp_path / "opencode.db")
    store.session("ses_1")
    store.message("msg_1", "ses_1", "skill", 1, {"skill": "a", "name": "b", "text": "c"})
    source = Source2(Connection(tmp_path / "opencode.db"))
    listed = store.connection.execute("SELECT seq, time_updated, length(data) FROM session_message").fetchone()
    of_0_1 = hashlib.sha256("\0".join(map(str, listed)).encode()).hexdigest()[:24]
    assert source.messages("ses_1")["msg_1"].stamp != of_0_1
    source.close()
    store.close()
