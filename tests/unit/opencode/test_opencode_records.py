"""What stands beside the messages: diffs of sessions, projects, names of spill files, and the steps of OpenCode 2."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import BadRecord, SourceBusy
from daemon.model import Message
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.discover import Sources
from daemon.opencode.json_files import session_diffs
from daemon.opencode.json_tree import JsonTree
from tests.conftest import Sample
from tests.support.stores.make_opencode import Database, JsonStore, session
from tests.support.stores.make_opencode_v2 import Row2, Session2, make_v2
from tests.support.stores.make_opencode_v2 import assistant as assistant2
from tests.support.stores.make_opencode_v2 import text as text2


def read_all(source: Source) -> dict[str, Message]:
    found = {}
    for session_id in source.sessions():
        for message_id in source.messages(session_id):
            message = source.read_message(session_id, message_id).message
            if message is not None:
                found[message_id] = message
    return found


# -- session diffs -------------------------------------------------------------------------------------------------


def test_each_sample_tells_its_session_diffs_as_they_were_written(any_sample: Sample) -> None:
    entries = 0
    for path in (any_sample.data_dir / "storage" / "session_diff").glob("*.json"):
        found, changed = session_diffs(any_sample.data_dir, path.stem)
        assert found == json.loads(path.read_text())
        assert changed == path.stat().st_mtime_ns // 1_000_000
        entries += len(found)
    assert entries == {"json": 28, "migrated": 28, "sqlite": 3}[any_sample.name]


def test_a_session_without_a_diff_and_a_directory_without_any_tell_none(tmp_path: Path) -> None:
    assert session_diffs(tmp_path, "ses_1") == ([], 0)
    JsonStore(tmp_path).raw("session_diff/ses_2.json", "[]")
    assert session_diffs(tmp_path, "ses_1") == ([], 0)
    assert session_diffs(tmp_path, "ses_2")[0] == []


def test_a_torn_young_diff_is_being_written_and_one_at_rest_is_bad(tmp_path: Path) -> None:
    path = JsonStore(tmp_path).raw("session_diff/ses_1.json", '[{"file": "a"}, {"fi')
    with pytest.raises(SourceBusy):
        session_diffs(tmp_path, "ses_1")
    os.utime(path, (1, 1))
    with pytest.raises(BadRecord, match="not JSON"):
        session_diffs(tmp_path, "ses_1")


@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "huge", "object"])
def test_a_diff_that_is_no_array_in_a_file_of_its_own_is_refused(tmp_path: Path, kind: str) -> None:
    path = JsonStore(tmp_path).raw("session_diff/ses_1.json", "[]")
    path.unlink()
    if kind == "link":
        (tmp_path / "private.json").write_text("[]")
        path.symlink_to(tmp_path / "private.json")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(3 << 20)
    else:
        path.write_text("{}")
        os.utime(path, (1, 1))
    with pytest.raises(BadRecord):
        session_diffs(tmp_path, "ses_1", record_mb=2)


def test_an_id_that_climbs_reads_no_file_elsewhere(tmp_path: Path) -> None:
    JsonStore(tmp_path).raw("private.json", '[{"file": "secret"}]')
    with pytest.raises(BadRecord):
        session_diffs(tmp_path, "../private")


def test_entries_of_a_diff_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    JsonStore(tmp_path).raw("session_diff/ses_1.json", '[5, {"file": "a"}, null]')
    assert session_diffs(tmp_path, "ses_1")[0] == [{"file": "a"}]


# -- projects ------------------------------------------------------------------------------------------------------


def test_each_sample_tells_its_projects_from_every_source(any_sample: Sample) -> None:
    sources = Sources(any_sample.data_dir, 64)
    told = {source.kind: source.projects() for source in sources.refresh() if source.projects()}
    sources.close()
    assert len(told) == {"json": 1, "migrated": 2, "sqlite": 1}[any_sample.name]
    for projects in told.values():
        assert sorted(Path(project["worktree"]).name for project in projects) == ["", "csv-cli", "todo-api"]
        assert all(project["sandboxes"] == [] and project["time"]["created"] for project in projects)
        assert all(json.loads(project["raw"])["id"] == project["id"] for project in projects)


def test_a_project_lists_its_other_work_trees_whoever_tells_of_them(tmp_path: Path) -> None:
    record = {"id": "p", "worktree": "/w", "vcs": "git", "name": "N", "sandboxes": ["/w2"], "time": {"created": 1}}
    store = JsonStore(tmp_path)
    store.raw("project/p.json", json.dumps(record))
    database = Database(tmp_path / "opencode.db")
    database.execute("CREATE TABLE project (id text, worktree text, name text, sandboxes text, time_created integer)")
    database.execute("""INSERT INTO project VALUES ('p', '/w', NULL, '["/w2"]', 1), ('q', '/q', NULL, 'odd', 2)""")
    database.execute("CREATE TABLE project_directory (project_id text, directory text)")
    database.execute("INSERT INTO project_directory VALUES ('p', '/w3'), ('p', '/w')")
    (of_tree,) = JsonTree(store.storage).projects()
    source = DatabaseSource(Connection(database.path))
    of_rows = source.projects()
    source.close()
    database.close()
    known = {"id": "p", "worktree": "/w", "sandboxes": ["/w2"]}
    assert of_tree == known | {"vcs": "git", "name": "N", "directories": [], "time": {"created": 1}, "raw": json.dumps(record)}  # fmt: skip
    assert {name: of_rows[0][name] for name in known} == known
    assert of_rows[0]["directories"] == ["/w", "/w3"]
    assert of_rows[1]["sandboxes"] == []
    assert "odd" in of_rows[1]["raw"]


def test_a_project_record_that_cannot_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    os.utime(store.raw("project/bad.json", "{"), (1, 1))
    store.raw("project/good.json", json.dumps({"id": "good", "worktree": "/w"}))
    bad, good = JsonTree(store.storage).projects()
    assert (bad["id"], bad["worktree"], good["worktree"]) == ("bad", "", "/w")
    assert "not JSON" in bad["problem"]
    assert "problem" not in good


def test_a_store_without_projects_tells_none(tmp_path: Path) -> None:
    assert JsonTree(JsonStore(tmp_path).storage).projects() == []
    database = Database(tmp_path / "opencode.db")
    source = DatabaseSource(Connection(database.path))
    assert source.projects() == []
    source.close()
    database.close()


# -- spill files ---------------------------------------------------------------------------------------------------


def test_the_file_name_of_a_long_output_survives_in_every_source(any_sample: Sample) -> None:
    spilled = {path.name for path in (any_sample.data_dir / "tool-output").iterdir()}
    sources = Sources(any_sample.data_dir, 64)
    told = 0
    for source in sources.refresh():
        messages = read_all(source)
        states = [part.data.get("state") or {} for message in messages.values() for part in message.parts]
        paths = [path for state in states if (path := state.get("metadata", {}).get("outputPath"))]
        assert {Path(path).name for path in paths} == (spilled if messages else set())
        told += len(paths)
    sources.close()
    assert told == {"json": 1, "migrated": 2, "sqlite": 1}[any_sample.name]


# -- OpenCode 2 ----------------------------------------------------------------------------------------------------


def read_row(tmp_path: Path, row: Row2) -> Message:
    make_v2(tmp_path / "opencode.db", [Session2("ses_1", [row])])
    sources = Sources(tmp_path, 64)
    (source,) = [source for source in sources.refresh() if source.generation == 3]
    message = source.read_message("ses_1", row.id).message
    sources.close()
    assert message is not None
    return message


def test_step_snapshots_enclose_its_content_and_have_their_times(tmp_path: Path) -> None:
    snapshot = {"start": "a" * 40, "end": "b" * 40, "files": ["/p/one.txt", {"file": "two.txt"}, 5]}
    row = assistant2("msg_1", [text2("one"), text2("two")], snapshot=snapshot)
    message = read_row(tmp_path, row)
    assert [part.type for part in message.parts] == ["step-start", "text", "text", "step-finish", "patch"]
    start, *_, finish, patch = (part.data for part in message.parts)
    assert (start["snapshot"], finish["snapshot"], patch["hash"]) == ("a" * 40, "b" * 40, "a" * 40)
    assert patch["files"] == ["/p/one.txt", "two.txt"]
    assert start["time"]["start"] == message.created
    assert finish["time"]["end"] == patch["time"]["end"] == message.completed
    assert [part.id for part in message.parts] == sorted(part.id for part in message.parts)


def test_what_a_step_gains_while_it_runs_gives_no_other_part_a_new_id(tmp_path: Path) -> None:
    growing: list[dict[str, Any]] = [
        {"time": {}, "finish": None, "snapshot": {"start": "a" * 40}},
        {"snapshot": {"start": "a" * 40, "end": "b" * 40}},
        {"snapshot": {"start": "a" * 40, "end": "b" * 40, "files": ["/p/one.txt"]}},
    ]
    known: dict[str, str] = {}
    for number, more in enumerate(growing):
        message = read_row(tmp_path / str(number), assistant2("msg_1", [text2("one"), text2("two")], **more))
        ids = {part.id: part.type for part in message.parts}
        assert known.items() <= ids.items()
        known = ids
    assert list(known) == ["msg_1.0000", "msg_1.0001", "msg_1.0002", "msg_1.0003", "msg_1.patch"]


def test_a_step_without_snapshots_has_the_parts_it_always_had(tmp_path: Path) -> None:
    message = read_row(tmp_path, assistant2("msg_1", [text2("one")], snapshot={"files": ["/p/one.txt"]}))
    assert [(part.id, part.type) for part in message.parts] == [("msg_1.0000", "text"), ("msg_1.0001", "step-finish")]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("completed", "completed"), ("exited", "completed"), ("running", "running"), ("killed", "error"), ("timeout", "error")],
)  # fmt: skip
def test_a_shell_command_of_the_user_is_a_bash_call_counted_when_ended(
    tmp_path: Path, status: str, expected: str
) -> None:
    data = {"shellID": "s", "command": "touch a", "status": status, "exit": 0, "output": "said"}
    (part,) = read_row(tmp_path, Row2("msg_1", "shell", data)).parts
    assert (part.data["tool"], part.data["state"]["status"]) == ("bash", expected)
    assert part.data["state"]["input"] == {"command": "touch a"}
    assert (part.data["state"]["metadata"]["exit"], part.data["state"]["output"]) == (0, "said")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"uri": "file:///p/a.txt", "mime": "text/plain", "name": "a.txt"}, "file:///p/a.txt"),
        ({"url": "file:///p/a.txt", "mime": "text/plain", "filename": "a.txt"}, "file:///p/a.txt"),
        ({"source": {"type": "file", "uri": "file:///p/a.txt"}, "mime": "text/plain", "name": "a.txt"}, "file:///p/a.txt"),
        ({"data": "eA==", "mime": "text/plain", "name": "a.txt"}, "data:text/plain;base64,eA=="),
    ],
)  # fmt: skip
def test_a_file_that_the_user_attached_is_a_file_part(tmp_path: Path, given: dict[str, Any], url: str) -> None:
    message = read_row(tmp_path, Row2("msg_1", "user", {"text": "look", "files": [given]}))
    assert [part.type for part in message.parts] == ["text", "file"]
    data = message.parts[1].data
    assert (data["url"], data["mime"], data["filename"]) == (url, "text/plain", "a.txt")


def test_a_revert_of_opencode_2_is_told_by_its_own_table_only(tmp_path: Path) -> None:
    path = make_v2(tmp_path / "opencode.db", [Session2("ses_1", [Row2("msg_1", "user", {"text": "hi"})])])
    database = Database(path)
    database.event("ses_1", "session.updated.1", {"info": session("ses_1", revert={"messageID": "msg_0"})})
    sources = Sources(tmp_path, 64)
    told = {source.generation: [mark.message_id for mark in source.reverts("ses_1")] for source in sources.refresh()}
    sources.close()
    database.close()
    assert told == {2: ["msg_0"], 3: []}
