"""The rows about the service that need no archive: its unit, what systemd says, its process, how it follows."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.subcommands import service as unit
from daemon.cli.subcommands import service_checks
from daemon.config import Config, Watch
from daemon.doctor import machine, sources
from daemon.doctor.rows import Subject

SYSTEMCTL = """#!/bin/sh
case "$*" in *is-enabled*) echo {enabled}; exit;; esac
printf '%s\\n' {facts}
"""
STATES = [
    (
        "ActiveState=failed Result=exit-code NRestarts=5",
        "broken",
        "failed (exit-code), restarts 5",
        "journalctl --user",
    ),
    ("ActiveState=inactive", "broken", "does not run (inactive)", "systemctl --user start reconstitute.service"),
    ("ActiveState=active disabled", "attention", "does not start at login", "systemctl --user enable"),
    ("ActiveState=active", "ok", "stops when you log out", "loginctl enable-linger"),
    ("ActiveState=active Linger", "ok", "goes on when you log out", ""),
    ("ActiveState=active NeedDaemonReload=yes", "attention", "has changed", "daemon-reload"),
]


def installed(text: str) -> None:
    unit.unit_place().parent.mkdir(parents=True)
    unit.unit_place().write_text(text)


@pytest.mark.parametrize(("facts", "state", "said", "fix"), STATES)
def test_what_systemd_says_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: str, state: str, said: str, fix: str
) -> None:
    for name, printed in {"systemctl": facts, "loginctl": "yes" if "Linger" in facts else "no"}.items():
        (tmp_path / name).write_text(
            SYSTEMCTL.format(facts=printed, enabled="disabled" if "disabled" in facts else "enabled")
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    installed(unit.unit_text(["/bin/sh", "run"]))
    first, row, *_ = service_checks.installed()
    assert first.state == "ok"
    assert row.state == state
    assert said in row.message
    assert fix in row.fix


def test_without_a_user_manager_enabled_and_running_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    installed(unit.unit_text(["/bin/sh", "run"], {"OPENCODE_DB": "mine.db"}))
    assert [row.state for row in service_checks.installed()] == ["ok", "not checked"]


def test_a_unit_of_another_version_is_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = unit.unit_template()
    with monkeypatch.context() as before:
        before.setattr(unit, "unit_template", lambda: shipped.replace("WatchdogSec=120", "WatchdogSec=60"))
        installed(unit.unit_text(["/bin/sh", "run"]))
    row = next(iter(service_checks.installed()))
    assert (row.state, row.fix) == ("attention", "reconstitute service install")
    assert "another version" in row.message


@pytest.mark.parametrize(
    ("limits", "state", "said"),
    [
        ("ulimit -S -c 1; umask 077", "attention", "may leave a core dump"),
        ("ulimit -c 0; umask 022", "attention", "makes files that others can read"),
        ("ulimit -c 0; umask 077", "ok", "files for this user alone, no core dumps"),
    ],
)
def test_a_process_without_the_hardening_is_named(limits: str, state: str, said: str) -> None:
    with subprocess.Popen(["/bin/sh", "-c", f"{limits}; echo ready; exec sleep 60"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        [row] = machine.process(process.pid)
        process.kill()
    assert row.state == state
    assert "systemctl" not in row.fix  # it is not the unit's process
    assert said in row.message


@pytest.mark.parametrize(
    ("watch", "enabled", "state", "said"),
    [
        (None, True, "ok", "no service runs"),
        ("following file events", True, "ok", "following"),
        ("following file events", False, "ok", "off (watch.enabled)"),
        ("/d: 90 folders: changes are found by scanning only; raise it with: sysctl x=1", True, "attention", "/d: 90"),
    ],
)
def test_how_the_sources_are_followed(watch: str | None, *, enabled: bool, state: str, said: str) -> None:
    parts: dict[str, Any] = dict.fromkeys(("archive", "upkeep", "sources", "exclusion"))
    config = Config(watch=Watch(enabled=enabled))
    [row] = sources.watch(Subject(config, **parts, unread={}, watch=watch, targets=[], newest=None, now=0))
    assert row.state == state
    assert row.message.startswith(said)
