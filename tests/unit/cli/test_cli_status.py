"""The status as a person reads it: what waits for a model, and nothing secret."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.app.engine import Engine
from daemon.cli.subcommands import status
from daemon.control.answers import Status, from_json
from tests.e2e.talk import Talk
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore

TARGET = {"path": "/home/dev/garden", "state": "done", "refresh": "continuous", "warnings": ["one file is unproven"]}


@pytest.mark.parametrize(
    ("unanswered", "rows"),
    [(0, []), (1, ["  1 question waits for the model"]), (8, ["  8 questions wait for the model"])],
)
def test_questions_that_wait_for_the_model_are_counted_by_target(unanswered: int, rows: list[str]) -> None:
    found = list(status._targets(from_json({"targets": [TARGET | {"unanswered": unanswered}]}, Status)))
    assert found == ["/home/dev/garden: done, continuous", *rows, "  one file is unproven"]


@pytest.mark.parametrize(("notes", "said"), [(None, ""), (0, ""), (1, ", 1 note"), (12, ", 12 notes")])
def test_the_indexes_line_counts_the_notes_of_models(notes: int | None, said: str) -> None:
    index = {"semantic": {"state": "ok", "count": 3, "notes": notes}}
    assert list(status._indexes(Status(index=index))) == [f"meaning: ok, 3 entries{said}"]


def test_what_the_model_cannot_read_stands_in_a_line_of_its_own() -> None:
    [state, unread] = status._indexes(Status(index={"semantic": {"state": "not built yet", "unread": 6}}))
    assert state == "meaning: not built yet"
    assert unread.startswith("  the model cannot read 6 messages, found by words only;")


def test_a_password_in_the_address_of_the_model_is_not_shown(tmp_path: Path) -> None:
    tables = {
        "opencode": {"data_dir": str(tmp_path / "opencode")},
        "archive": {"dir": str(tmp_path / "archive")},
        "output": {"dir": str(tmp_path / "out")},
        "chat": {"provider": "ollama", "url": "http://me:hunter2secret@127.0.0.1:9", "model": "m"},
    }
    with PlainService(Engine(msgspec.convert(tables, config.Config))) as engine:
        assert engine.status()["answers"] == ""
        with engine.answerer():
            pass
        answers = engine.status()["answers"]
    assert "chat.provider is ollama" in answers
    assert "hunter2secret" not in answers


def test_a_target_s_last_result_says_how_many_questions_wait(tmp_path: Path) -> None:
    tables = {
        "opencode": {"data_dir": str(tmp_path / "opencode")},
        "archive": {"dir": str(tmp_path / "archive")},
        "targets": [{"path": "/home/dev/a"}, {"path": "/home/dev/b"}],
    }
    with PlainService(Engine(msgspec.convert(tables, config.Config))) as engine:
        engine.archive.target_put("/home/dev/a", "last", {"state": "done", "result": {"unanswered": 8}})
        rows = engine.status()["targets"]
    assert {row["path"]: row["unanswered"] for row in rows} == {"/home/dev/a": 8, "/home/dev/b": 0}


def test_records_kept_as_files_are_named_with_their_place(tmp_path: Path) -> None:
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(Engine(msgspec.convert(tables, config.Config))) as engine:
        sha256 = engine.archive.large_files.keep([b"{}" * (1 << 19)], 1 << 20)
        batch = engine.archive.batch()
        kept = {"sha256": sha256, "bytes": 1 << 20, "place": "opencode.db: part prt_1", "origin": [2, 5, "db"]}
        batch.put_large("msg_1", "prt_1", kept)
        engine.archive.commit(batch)
        rows = list(status._archive(from_json(engine.status(), Status)))
    assert rows[-2] == "1 record over limits.record_mb, 1.0 MB, kept whole as files, not searched:"
    assert rows[-1] == f"  message msg_1, part prt_1: {tmp_path / 'archive' / 'large' / sha256}"


def test_without_a_service_the_status_claims_no_process_of_its_own(tmp_path: Path) -> None:
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        answer = engine.status()
    assert (answer["running"], answer["pid"], answer["started"]) == (False, None, None)


def test_a_status_after_an_index_says_that_meaning_is_indexed(tmp_path: Path) -> None:
    talk = Talk(JsonStore(tmp_path / "opencode"))
    talk.ask("Number the rows of the beds.")
    tables = {"opencode": {"data_dir": str(tmp_path / "opencode")}, "archive": {"dir": str(tmp_path / "archive")}}
    settings = msgspec.convert(tables, config.Config)
    states = []
    for has_indexed in (False, True):
        if has_indexed:
            with PlainService(OneShot(settings)) as engine:
                engine.index(wait=True)
        with PlainService(OneShot(settings)) as engine:
            states.append(engine.status()["index"]["semantic"]["state"])
    assert states == ["not built yet", "built; opened when it is needed"]
