"""backup and restore-archive as commands without a service: what they answer, and what happens beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.archive.backup.making import Making
from daemon.cli import main
from daemon.cli.settings import NOT_PROVEN, NOTHING
from daemon.errors import BadBackup, OutputRefused, Retry
from tests.unit.archive.test_archive_backup import keep_large, tree, write

Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 3)
        keep_large(archive, "msg_1", b"version 0")
    return tmp_path


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json; its exit code and what it printed."""
    monkeypatch.setenv("RECONSTITUTE_ARCHIVE_DIR", str(place / "archive"))
    monkeypatch.setenv("RECONSTITUTE_OPENCODE_DIR", str(place / "opencode"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))

    def run(*words: str) -> tuple[int, Any]:
        code = main([*words, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return run


def _replaced_before(place: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The archive gets newer versions of its large record just before they are copied."""
    copy, done = Making.copy_large, 0

    def replacing(making: Making, *arguments: Any) -> list[str]:
        nonlocal done
        if done < times:
            done += 1
            with Archive(place / "archive") as archive:
                keep_large(archive, "msg_1", f"version {done}".encode())
        return copy(making, *arguments)

    monkeypatch.setattr(Making, "copy_large", replacing)


def test_what_a_backup_and_a_restore_answer(place: Path, command: Command) -> None:
    code, answer = command("backup", str(place / "to"))
    assert (code, answer["newSegments"], answer["newLarge"], answer["removed"]) == (0, 1, 1, 0)
    assert "OpenCode has not run here yet" in answer["warnings"][0]
    assert answer["backup"]["counts"]["messages"] == 3
    code, checked = command("backup", str(place / "to"), "--check")
    assert (code, checked) == (0, {"path": str(place / "to"), "backups": [answer["backup"]], "whole": True})
    code, restored = command("restore-archive", str(place / "to"), "--to", str(place / "new"))
    assert (code, restored) == (0, {"path": str(place / "new"), "backup": answer["backup"], "warnings": []})
    assert tree(place / "new" / "large") == tree(place / "archive" / "large")


def test_a_large_record_replaced_meanwhile_is_taken_in_its_new_version(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replaced_before(place, monkeypatch, 1)
    code, answer = command("backup", str(place / "to"))
    assert (code, answer["backup"]["missing"]) == (0, [])
    assert list(tree(place / "to" / "large").values()) == [b"version 1"]


def test_a_large_record_that_changes_all_the_time_ends_a_backup(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replaced_before(place, monkeypatch, 100)
    code, answer = command("backup", str(place / "to"))
    assert (code, answer["error"]["type"]) == (Retry.exit_code, "Retry")
    assert command("backup", str(place / "to"), "--check")[0] == NOTHING


def test_a_lost_large_record_is_a_warning(place: Path, command: Command) -> None:
    [large] = (place / "archive" / "large").iterdir()
    large.unlink()
    code, answer = command("backup", str(place / "to"))
    assert (code, answer["backup"]["missing"]) == (NOT_PROVEN, [large.name])
    assert str(large) in answer["warnings"][-1]
    code, restored = command("restore-archive", str(place / "to"), "--to", str(place / "new"))
    assert (code, large.name in restored["warnings"][0]) == (NOT_PROVEN, True)


def test_a_damaged_manifest_is_named_and_nothing_is_removed(place: Path, command: Command) -> None:
    assert command("backup", str(place / "to"))[0] == 0
    [manifest] = (place / "to" / "manifests").iterdir()
    manifest.write_bytes(b"{}")
    code, checked = command("backup", str(place / "to"), "--check")
    assert (code, checked["whole"], checked["backups"][0]["made"]) == (BadBackup.exit_code, False, None)
    code, answer = command("backup", str(place / "to"), "--keep", "1")
    assert (code, answer["removed"]) == (NOT_PROVEN, 0)
    assert manifest.name in answer["warnings"][-1]
    manifest.unlink()
    assert command("backup", str(place / "to"), "--keep", "1")[0] == 0


def test_the_last_backup_is_the_newest_after_the_clock_was_set_back(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 4_000_000_000.0)
    future = command("backup", str(place / "to"))[1]["backup"]["made"]
    monkeypatch.undo()
    for name, folder in (("ARCHIVE", "archive"), ("OPENCODE", "opencode")):
        monkeypatch.setenv(f"RECONSTITUTE_{name}_DIR", str(place / folder))
    code, answer = command("backup", str(place / "to"), "--keep", "1")
    assert (code, answer["removed"], answer["backup"]["made"]) == (0, 1, future + 1)


def test_a_place_in_the_sources_or_the_archive_is_refused(place: Path, command: Command) -> None:
    for folder in (place / "archive" / "backups", place / "opencode" / "backups", place):
        code, answer = command("backup", str(folder))
        assert (code, answer["error"]["type"]) == (OutputRefused.exit_code, "OutputRefused")
    assert not (place / "opencode").exists()


def test_an_earlier_backup_can_be_chosen(place: Path, command: Command) -> None:
    first = command("backup", str(place / "to"))[1]["backup"]
    with Archive(place / "archive") as archive:
        write(archive, 10, 1)
    command("backup", str(place / "to"))
    new = ["--to", str(place / "new")]
    code, answer = command("restore-archive", str(place / "to"), *new, "--at", str(first["made"]))
    assert (code, answer["backup"]) == (0, first)
    code, answer = command("restore-archive", str(place / "to"), *new, "--at", str(first["made"] - 1))
    assert (code, "no backup of that time" in answer["error"]["message"]) == (BadBackup.exit_code, True)
