"""Killed at any step, a backup leaves the earlier one whole, and a restore of the archive leaves its place as it was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from daemon.archive import Archive
from daemon.archive.store import Store
from tests.support.processes import forks
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import Database, session, text, user
from tests.unit.archive.test_archive_backup import back_up, damage_in, restored, tree, write

pytestmark = [pytest.mark.crash, pytest.mark.on_disk]

STEPS = ("fsync", "rename", "unlink", "mkdir", "listdir")
"""System calls before which the process is killed."""


def _killing(kill_at: int, work: Callable[..., object], *arguments: object) -> None:
    left = kill_at

    def stopping(call: Callable[..., object]) -> Callable[..., object]:
        def step(*values: Any, **named: Any) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*values, **named)

        return step

    with ExitStack() as patches:
        for owner, name in (*((os, name) for name in STEPS), (Store, "write_stored")):
            patches.enter_context(mock.patch.object(owner, name, stopping(getattr(owner, name))))
        work(*arguments)


def killed(kill_at: int, work: Callable[..., object], *arguments: object) -> bool:
    """Whether the work, done in a child, was killed before its step number `kill_at`."""
    code = forks.exit_code(_killing, kill_at, work, *arguments, timeout_s=120)
    assert code in {0, -signal.SIGKILL}
    return code != 0


def _back_up(place: Path, made: int) -> None:
    with Archive(place / "archive") as archive:
        back_up(archive, place / "to", made, keep=1)


def _manifests(place: Path) -> list[str]:
    return [name for name in tree(place / "to" / "manifests") if name.endswith(".json")]


def test_a_killed_backup_leaves_the_earlier_one_whole(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 20)
        back_up(archive, tmp_path / "to")
    states = set()
    for kill_at in range(400):
        with Archive(tmp_path / "archive") as archive:
            write(archive, 100 + kill_at, 1)
        before = _manifests(tmp_path)
        died = killed(kill_at, _back_up, tmp_path, 1_800_000_000_000 + kill_at)
        after = _manifests(tmp_path)
        assert damage_in(tmp_path / "to") == []
        states.add((before == after, set(before) <= set(after)))
        if not died:
            break
    assert not died
    assert kill_at > 12
    assert states == {(True, True), (False, True), (False, False)}
    assert len(_manifests(tmp_path)) == len(tree(tmp_path / "to" / "segments")) == 1


def test_a_killed_restore_leaves_its_place_as_it_was(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 20)
        back_up(archive, tmp_path / "to")
        rows = list(archive.stored_rows())
    for kill_at in range(400):
        died = killed(kill_at, restored, tmp_path / "to", tmp_path / "new")
        if (tmp_path / "new").exists():
            break
        assert died
        assert damage_in(tmp_path / "to") == []
        assert len([path for path in tmp_path.iterdir() if "restoring" in path.name]) <= 1
    assert kill_at > 12
    with Archive(tmp_path / "new") as new:
        assert list(new.stored_rows()) == rows


def test_commands_killed_at_random_moments_harm_nothing(tmp_path: Path) -> None:
    """Real processes, beside a service that works on."""
    database = Database(tmp_path / "oc" / "opencode.db")
    database.session(session("ses_1"))
    for number in range(100):
        name = f"msg_{number:05}"
        words = random.Random(number).randbytes(1_000).hex()
        database.message(user(name, "ses_1", 1_790_000_000_000 + number), text(f"prt_{name}", name, "ses_1", words))
    with Daemon(tmp_path / "oc", tmp_path / "ours") as daemon:
        daemon.run()
        daemon.wait_until_drained()
        begun = time.monotonic()
        assert subprocess.call(daemon.command("backup", str(tmp_path / "to")), env=daemon.environment) == 0
        seconds = time.monotonic() - begun
        for number in range(4):
            name = f"msg_9{number:04}"
            message = user(name, "ses_1", 1_790_000_900_000 + number)
            database.message(message, text(f"prt_{name}", name, "ses_1", f"word{number}"))
            chance = random.Random(number)
            _kill_within(daemon, seconds * chance.uniform(0.4, 1), "backup", str(tmp_path / "to"), "--keep", "1")
            assert damage_in(tmp_path / "to") == []
            assert len(_manifests(tmp_path)) >= 1
            new = tmp_path / "new"
            command = ["restore-archive", str(tmp_path / "to"), "--to", str(new)]
            _kill_within(daemon, seconds * chance.uniform(0.4, 1), *command)
            if new.exists():
                with Archive(new) as archive:
                    assert archive.figures()["messages"] >= 100
                new.rename(tmp_path / f"whole{number}")
        assert daemon.ask("backup", str(tmp_path / "to"), "--keep", "1").returncode == 0
        assert damage_in(tmp_path / "to") == []
        assert len(_manifests(tmp_path)) == 1
    database.close()


def _kill_within(daemon: Daemon, seconds: float, *words: str) -> None:
    process = subprocess.Popen(daemon.command(*words), env=daemon.environment, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
