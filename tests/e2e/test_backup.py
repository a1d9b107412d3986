"""Backups of a service that goes on, and a service on the archive that was made of one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from daemon.archive import Archive
from daemon.archive.backup.folder import BackupFolder
from daemon.errors import ArchiveLocked, BadBackup, DiskFull, OutputRefused
from tests.e2e.talk import PROJECT, Talk, words
from tests.e2e.test_daemon_stop import Systemd
from tests.support.processes.daemon_process import Daemon, until
from tests.support.processes.small_disk import SmallDisk, with_small_disks
from tests.support.stores.make_opencode import Database
from tests.unit.archive.test_archive_backup import damage_in, tree
from tests.unit.archive.test_archive_migrations import unpacked

FILE = f"{PROJECT}/beds.lua"


def speak_until_ended(daemon: Daemon, talk: Talk, asked: list[str], *command: str) -> None:
    """Messages arrive all the time while this command runs, which ends well."""
    process = subprocess.Popen(daemon.command(*command), env=daemon.environment, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        asked.append(talk.ask(f"And the {words(len(asked))}."))
        time.sleep(0.01)
    assert process.returncode == 0


def cursor(archive: Archive, session_id: str) -> set[str]:
    """The messages of a session that count as read."""
    sources = {key.decode().split(":")[1] for key, _ in archive.stored_rows() if key.startswith(b"cur:")}
    marks = [archive.marks(source.replace("%3A", ":"), session_id) for source in sources]
    return {unit for units in marks for unit in units if unit.startswith("msg_")}


def test_a_backup_under_load_is_one_moment_and_serves_again(
    make_daemon: Callable[..., Daemon], data_dir: Path, tmp_path: Path
) -> None:
    daemon, to = make_daemon(tables={"watch": {"quiet_seconds": 0}}), str(tmp_path / "to")
    database = Database(data_dir / "opencode.db")
    talk = Talk(database)
    asked = [talk.ask(f"The first {words(0)}."), talk.write(FILE, "rows = [1]\n")]
    daemon.run()
    daemon.wait_until_drained()
    before = daemon.ask("history", FILE, "--json").stdout
    for number in range(3):
        speak_until_ended(daemon, talk, asked, "backup", to)
        speak_until_ended(daemon, talk, asked, "restore-archive", to, "--to", str(tmp_path / f"copy{number}"))
    daemon.wait_until_drained()
    sizes = []
    for number in range(3):
        with Archive(tmp_path / f"copy{number}") as archive:
            ids = archive.message_ids("ses_a")
            assert ids == asked[: len(ids)]
            *complete, _newest = [len(message.parts) for message in archive.messages("ses_a")]
            assert complete == [1] * (len(ids) - 1)  # OpenCode writes a message before its part: the newest may lack it
            assert cursor(archive, "ses_a") == set(ids)
            sizes.append(len(ids))
    assert sizes == sorted(sizes)

    # A service whose archive is moved away still has its place.
    daemon.archive_dir.rename(tmp_path / "moved")
    refused = daemon.ask("restore-archive", to)
    assert refused.returncode == ArchiveLocked.exit_code
    (tmp_path / "moved").rename(daemon.archive_dir)
    assert daemon.ask("restore-archive", to).returncode == ArchiveLocked.exit_code

    assert daemon.terminate()[0] == 0
    assert daemon.ask("restore-archive", to).returncode == OutputRefused.exit_code
    daemon.archive_dir.rename(tmp_path / "moved")
    done = daemon.ask("restore-archive", to, "--json")
    assert json.loads(done.stdout)["backup"]["counts"]["messages"] >= sizes[-1]
    daemon.run()
    asked.append(talk.ask(f"At last the {words(len(asked))}."))
    daemon.wait_until_found({words(len(asked) - 1): asked[-1], words(0): asked[0]})
    daemon.wait_until_drained()
    assert daemon.status()["archive"]["messages"] == len(asked)
    assert daemon.ask("history", FILE, "--json").stdout == before
    assert daemon.ask("show", FILE).stdout == "rows = [1]\n"
    database.close()


def test_a_command_without_a_service_backs_up_and_checks(daemon: Daemon, data_dir: Path, tmp_path: Path) -> None:
    to = tmp_path / "to"
    database = Database(data_dir / "opencode.db")
    talk = Talk(database)
    for number in range(3):
        talk.ask(f"The {words(number)}.")
        assert daemon.ask("backup", str(to), "--keep", "2").returncode == 0
    database.close()
    checked = daemon.ask("backup", str(to), "--check", "--json")
    backups = json.loads(checked.stdout)["backups"]
    assert (checked.returncode, [entry["counts"]["messages"] for entry in backups]) == (0, [2, 3])
    assert daemon.ask("restore-archive", str(to), "--at", "2020-01-01").returncode == BadBackup.exit_code
    for segment in (to / "segments").iterdir():
        segment.write_bytes(segment.read_bytes()[:-9])
    damaged = daemon.ask("backup", str(to), "--check")
    assert (damaged.returncode, damaged.stdout.count("damaged")) == (BadBackup.exit_code, 2)
    assert all(str(segment) in damaged.stderr for segment in (to / "segments").iterdir())
    refused = daemon.ask("restore-archive", str(to), "--to", str(tmp_path / "new"))
    assert (refused.returncode, (tmp_path / "new").exists()) == (BadBackup.exit_code, False)
    mended = daemon.ask("backup", str(to))
    assert (mended.returncode, "an older backup" in mended.stderr) == (3, True)
    assert daemon.ask("backup", str(to), "--keep", "1").returncode == 0
    assert damage_in(to) == []


@with_small_disks
def test_a_backup_without_room_leaves_the_folder_as_it_was(
    request: object, tmp_path: Path, daemon: Daemon, data_dir: Path
) -> None:
    small, elsewhere = SmallDisk(tmp_path / "small", 64), tmp_path / "elsewhere"
    try:
        database = Database(data_dir / "opencode.db")
        talk = Talk(database)
        talk.ask("The first.")
        assert daemon.ask("backup", str(small.path / "to")).returncode == 0
        before = tree(small.path / "to")
        for _ in range(400):  # more than the largest segment, so there are at least two
            talk.ask(os.urandom(50_000).hex())
        database.close()
        assert daemon.ask("backup", str(elsewhere)).returncode == 0
        with BackupFolder.to_read(elsewhere) as folder:
            new = [f"segments/{segment.sha256}.zst" for segment in folder.manifest(folder.newest()).segments]
        first, second, *_ = [len(tree(elsewhere)[name]) for name in new if name not in before]
        small.fill(leave=first + second // 2)
        full = daemon.ask("backup", str(small.path / "to"))
        assert (full.returncode, "the earlier backups there are whole" in full.stderr) == (DiskFull.exit_code, True)
        assert tree(small.path / "to") == before
        assert small.free() > first
    finally:
        small.close()


def test_a_service_migrates_an_archive_of_0_1_and_says_so(make_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = make_daemon()
    unpacked("0.1", daemon.archive_dir)
    place = daemon.runtime_dir / "notify"
    daemon.environment |= {"NOTIFY_SOCKET": str(place)}
    with Systemd(place) as systemd:
        systemd.daemon = daemon
        daemon.run()
        until(lambda: systemd.count("READY=1"))
        before_ready = systemd.lines[: systemd.lines.index("READY=1")]
        assert "STATUS=migrating the archive" in before_ready
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in before_ready)
        status = daemon.status()["archive"]
        assert (status["messages"], status["backupBeforeMigration"]) == (
            43,
            str(daemon.archive_dir / "before-schema-2"),
        )
        until(lambda: daemon.search("calibration"), 60, "a message found by its words")
        assert "before-schema-2: from before" in " ".join(daemon.ask("status").stdout.split())
        assert daemon.terminate()[0] == 0
    daemon.archive_dir.rename(tmp_path / "aside")
    done = daemon.ask("restore-archive", str(tmp_path / "aside" / "before-schema-2"), "--json")
    assert (done.returncode, json.loads(done.stdout)["backup"]["schema"]) == (0, 1)
