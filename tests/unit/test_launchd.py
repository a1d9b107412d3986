"""The service on macOS: the agent that is written, and what launchctl is told. launchctl here only records it."""

from __future__ import annotations

import plistlib
import stat
from pathlib import Path
from typing import Any

import pytest

from daemon.cli import launchd
from daemon.errors import OutputRefused
from daemon.notify import Notifier
from daemon.supervisor import LABEL, log, restart, stop

LAUNCHCTL = """#!/bin/sh
# It knows the job once it was bootstrapped, and prints of it what macOS 14 prints.
printf '%s\\n' "$*" >> "$HOME/asked"
case "$1" in
bootstrap) [ -e "$HOME/fails" ] && { echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5; }; touch "$HOME/loaded" ;;
bootout) [ -e "$HOME/loaded" ] || exit 3; rm "$HOME/loaded" ;;
print)
    [ -e "$HOME/loaded" ] || { echo 'Could not find service' >&2; exit 113; }
    printf '%s = {\\n' "$2"
    printf '\\tactive count = 1\\n\\tpath = /x.plist\\n\\tstate = %s\\n\\n\\targuments = {\\n\\t\\tstate = inner\\n\\t}\\n' "${STATE:-running}"
    printf '\\tpid = 4711\\n\\tlast exit code = %s\\n}\\n' "${CODE:-(never exited)}" ;;
esac
"""
COMMAND = ["/bin/sh", "-m", "daemon.cli", "run"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "launchctl"
    program.parent.mkdir()
    program.write_text(LAUNCHCTL)
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr("os.getuid", lambda: 501)
    return tmp_path


def asked(home: Path) -> list[str]:
    lines = (home / "asked").read_text().splitlines()
    (home / "asked").unlink()
    return [line for line in lines if not line.startswith("print ")]


def plist(home: Path) -> dict[str, Any]:
    content: dict[str, Any] = plistlib.loads((home / "Library/LaunchAgents" / f"{LABEL}.plist").read_bytes())
    return content


def test_install_writes_the_agent_and_starts_it(home: Path) -> None:
    assert launchd.install(COMMAND, {"OPENCODE_DB": "mine.db"}, force=False) == 0
    written = plist(home)
    assert written["Label"] == LABEL
    assert written["ProgramArguments"] == COMMAND
    assert written["EnvironmentVariables"]["OPENCODE_DB"] == "mine.db"
    assert written["RunAtLoad"] is True
    assert written["KeepAlive"] == {"SuccessfulExit": False}
    assert written["Umask"] == 0o077
    log_file = home / "Library/Logs/reconstitute.log"
    assert written["StandardErrorPath"] == written["StandardOutPath"] == str(log_file)
    assert stat.S_IMODE(log_file.stat().st_mode) == 0o600
    path = home / "Library/LaunchAgents" / f"{LABEL}.plist"
    assert asked(home) == [f"enable gui/501/{LABEL}", f"bootstrap gui/501 {path}"]


def test_installing_the_same_agent_again_loads_nothing_anew(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launchd.install(COMMAND, {}, force=False)
    before = launchd.plist_place().stat().st_mtime_ns
    asked(home)
    assert launchd.install(COMMAND, {}, force=False) == 0
    assert asked(home) == [f"enable gui/501/{LABEL}"]
    assert launchd.plist_place().stat().st_mtime_ns == before
    assert "is up to date" in capsys.readouterr().out


def test_another_agent_is_loaded_in_place_of_the_former(home: Path) -> None:
    launchd.install(["/old/reconstitute", "run"], {}, force=False)
    asked(home)
    assert launchd.install(COMMAND, {}, force=False) == 0
    verbs = [line.split()[0] for line in asked(home)]
    assert verbs == ["bootout", "enable", "bootstrap"]


@pytest.mark.parametrize("content", [b"", b"not a plist", b"<?xml version='1.0'?><plist><dict>", plistlib.dumps([1])])
def test_what_we_did_not_write_is_kept(home: Path, content: bytes) -> None:
    launchd.plist_place().parent.mkdir(parents=True)
    launchd.plist_place().write_bytes(content)
    with pytest.raises(OutputRefused, match="--force"):
        launchd.install(COMMAND, {}, force=False)
    with pytest.raises(OutputRefused, match="--force"):
        launchd.uninstall(force=False)
    assert launchd.plist_place().read_bytes() == content
    assert launchd.install(COMMAND, {}, force=True) == 0


def test_an_edited_agent_is_kept(home: Path) -> None:
    launchd.install(COMMAND, {}, force=False)
    launchd.plist_place().write_bytes(plistlib.dumps(plist(home) | {"Nice": 0}))
    with pytest.raises(OutputRefused, match="was edited"):
        launchd.install(COMMAND, {}, force=False)
    (row, _) = launchd.checks()
    assert row.state == "attention"


def test_a_failed_start_says_where_to_look(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "fails").touch()
    assert launchd.install(COMMAND, {}, force=False) == 1
    message = capsys.readouterr().err
    assert "Input/output error" in message
    assert log("darwin") == "tail -n 20 ~/Library/Logs/reconstitute.log"


def test_status_tells_running_from_stopped_and_absent(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launchd.status() == 4
    launchd.install(COMMAND, {}, force=False)
    (home / "Library/Logs/reconstitute.log").write_text("a\nb\n")
    capsys.readouterr()
    assert launchd.status() == 0
    shown = capsys.readouterr().out
    assert "process 4711" in shown
    assert shown.endswith("  a\n  b\n")
    monkeypatch.setenv("STATE", "not running")
    monkeypatch.setenv("CODE", "78: EX_CONFIG")
    assert launchd.status() == 3
    assert "78: EX_CONFIG" in capsys.readouterr().out
    (home / "loaded").unlink()
    assert launchd.status() == 3


def test_uninstall_stops_the_service_and_removes_the_agent(home: Path) -> None:
    launchd.install(COMMAND, {}, force=False)
    asked(home)
    assert launchd.uninstall(force=False) == 0
    assert asked(home) == [f"bootout gui/501/{LABEL}"]
    assert not launchd.plist_place().exists()
    assert launchd.uninstall(force=False) == 0


def test_doctor_names_what_is_wrong_with_the_agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row.state for row in launchd.checks()] == ["ok"]
    launchd.install(COMMAND, {}, force=False)
    assert [row.state for row in launchd.checks()] == ["ok", "ok"]
    monkeypatch.setenv("STATE", "not running")
    assert [row.state for row in launchd.checks()] == ["ok", "broken"]
    launchd.install(["/nowhere/reconstitute", "run"], {}, force=False)
    (home / "loaded").unlink()
    rows = list(launchd.checks())
    assert [row.state for row in rows] == ["broken", "broken"]
    assert "not loaded" in rows[1].message


def test_without_launchctl_nothing_is_said_to_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "bin/launchctl").unlink()
    assert launchd.install(COMMAND, {}, force=False) == 1
    assert "no launchctl" in capsys.readouterr().err


def test_a_service_of_launchd_counts_its_crashes() -> None:
    assert Notifier({"XPC_SERVICE_NAME": LABEL}).is_supervised
    assert not Notifier({"XPC_SERVICE_NAME": "0"}).is_supervised  # in a terminal
    assert not Notifier({"XPC_SERVICE_NAME": LABEL}).ready()


@pytest.mark.parametrize("command", [restart, stop, log])
def test_each_system_is_told_its_own_commands(command: Any) -> None:
    assert "ctl --user" in command("linux")
    assert "systemctl" not in command("darwin")
    assert "journalctl" not in command("darwin")
