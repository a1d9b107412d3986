"""Three real versions of OpenCode, one after the other over one store, while our service runs all the time.

Migrations happen under the service: JSON files, the database that 1.15.13 makes of them, the one that 1.18.33 makes of
that. What OpenCode holds after each is read here with sqlite3 and json alone, and each record must have come out of the
service exactly once.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from tests.live.fetched import NotAvailableError
from tests.live.opencode import OpenCode, install, make_project
from tests.live.recorded import Recorded, differences, read_quiet_source
from tests.live.scenario import Scenario, expected
from tests.live.scripted_model import Call, ScriptedModel
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

VERSIONS = ("1.1.65", "1.15.13", "1.18.33")


@dataclass
class Migrated:
    """What was seen: the store's messages after each version, its rows that are no messages, and our export."""

    daemon: Daemon
    stages: list[dict[str, Recorded]] = field(default_factory=list)
    events: dict[str, str] = field(default_factory=dict)
    holder: dict[str, str] = field(default_factory=dict)
    todos: list[dict[str, str]] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)
    sessions: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """Quicker than a snapshot is taken, which matters to nothing here."""
    with ScriptedModel(lead_s=0.02) as server:
        yield server


@pytest.fixture(scope="module")
def migrated(
    model: ScriptedModel, quick_embedder: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Migrated]:
    try:
        binaries = [install(version) for version in VERSIONS]
    except NotAvailableError as reason:
        pytest.skip(str(reason))
    root = tmp_path_factory.mktemp("migrated")
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    scenario = Scenario(model, seed=5)
    seen = Migrated(Daemon(root / "oc" / "data" / "opencode", root / "ours", tables=quick_embedder))
    known: dict[str, str] = {}
    try:
        seen.daemon.run()
        for version, binary in zip(VERSIONS, binaries, strict=True):
            with OpenCode(binary, root / "oc", model.url) as opencode:
                for session_id, directory in known.items():
                    opencode.adopt(session_id, directory)
                fresh = opencode.create_session(garden, f"Begun with {version}")
                for session_id in (*known, fresh):
                    _work(seen, opencode, session_id, scenario, model, garden, version)
                known[fresh] = str(garden)
                seen.stages.append(read_quiet_source(opencode.data_dir))
                seen.events |= _events(opencode.data_dir)
                assert seen.daemon.wait_until_found(seen.holder, timeout_s=240).keys() == seen.holder.keys()
        seen.status = seen.daemon.wait_until_drained()
        done = seen.daemon.ask("export", "--format", "jsonl", "--raw")
        assert done.returncode == 0, done.stderr
        seen.sessions = [json.loads(line) for line in done.stdout.splitlines()]
        assert seen.daemon.terminate()[0] == 0
        yield seen
    finally:
        seen.daemon.close()


def _work(
    seen: Migrated,
    opencode: OpenCode,
    session_id: str,
    scenario: Scenario,
    model: ScriptedModel,
    garden: Path,
    version: str,
) -> None:
    """A turn with every kind of text, which writes the todo list anew."""
    turn = scenario.turn(garden, f"{session_id[-6:]}-{version}")
    seen.todos = [
        {"content": f"Plan {version}", "status": "completed", "priority": "high"},
        {"content": f"Water after {version}", "status": "pending", "priority": "low"},
    ]
    listed = Call("todowrite", {"todos": [{"id": str(number)} | item for number, item in enumerate(seen.todos)]})
    first, second, *rest = model.scripts[turn.prompt]
    model.add(turn.prompt, [first, replace(second, calls=(*second.calls, listed)), *rest])
    opencode.prompt(session_id, turn.prompt)
    seen.holder |= expected(turn, opencode.messages(session_id))


def _events(data_dir: Path) -> dict[str, str]:
    """Id -> type of every row of ``session_message``."""
    path = data_dir / "opencode.db"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("select name from sqlite_master")}
        return dict(database.execute("select id, type from session_message")) if "session_message" in tables else {}


def test_each_record_of_every_version_comes_out_exactly_once(migrated: Migrated) -> None:
    recorded = {message_id: record for stage in migrated.stages for message_id, record in stage.items()}
    assert len(migrated.stages[0]) < len(migrated.stages[1]) < len(migrated.stages[2]) == len(recorded)
    exported = [(one["session_id"], message["id"]) for one in migrated.sessions for message in one["messages"]]
    assert {pair: n for pair, n in Counter(exported).items() if n > 1} == {}
    assert set(exported) == {(record.session, message_id) for message_id, record in recorded.items()}


def test_the_archive_holds_what_the_last_version_holds(migrated: Migrated) -> None:
    with Archive(migrated.daemon.archive_dir) as archive:
        assert differences(migrated.stages[-1], archive) == []


def test_no_message_is_empty_or_deleted(migrated: Migrated) -> None:
    said = ("content", "thoughts", "tool_calls", "parts", "error")
    messages = [message for one in migrated.sessions for message in one["messages"]]
    assert [message for message in messages if not any(message.get(name) for name in said)] == []
    assert [message for message in messages if message.get("deleted") or message.get("deleted_parts")] == []
    assert [one for one in migrated.sessions if one["deleted"]] == []


def test_switches_are_events_of_their_session(migrated: Migrated) -> None:
    assert migrated.events, "1.15.13 writes some"
    exported = {event["id"]: event["type"] for one in migrated.sessions for event in one.get("events", ())}
    assert exported == migrated.events
    with Archive(migrated.daemon.archive_dir) as archive:
        assert not migrated.events.keys() & set(archive.all_message_ids())


def test_each_session_has_its_todo_list_in_its_last_state(migrated: Migrated) -> None:
    wanted = [(item["content"], item["status"]) for item in migrated.todos]
    kept = [[(item["content"], item["status"]) for item in one["todos"]] for one in migrated.sessions]
    assert kept == [wanted] * len(VERSIONS)


def test_the_service_took_it_all_in_without_trouble(migrated: Migrated) -> None:
    assert {row["state"] for row in migrated.status["sources"]} == {"ok"}
    assert [row["quarantined"] for row in migrated.status["sources"]] == [0] * len(migrated.status["sources"])
    assert migrated.status["errors"] == []
