"""What happens to a whole archive now and then, under kill: sessions are forgotten, it is backed up, it is migrated."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from daemon.archive import SCHEMA, Archive
from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.restoring import restore
from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import until
from tests.support.stores.leveldb_files import texts
from tests.support.stores.make_opencode import Database
from tests.torture import faults
from tests.torture.check import Check
from tests.torture.harms import kill_at
from tests.torture.world import World
from tests.unit.archive import test_archive_migrations as released
from tests.unit.archive.test_archive_backup import damage_in, quiet

_GONE = 1_000_000
"""The words of what is forgotten begin here, so that no other record has them."""
_POINTS = (
    "any file is synced",
    "any file is renamed",
    "any file is removed",
    "any file is written",
    "any folder is made",
)
_NOTHING_TO_FORGET = 4


def forget(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Sessions are forgotten, and the service is killed meanwhile; in the end no byte of them is left."""
    with closing(Database(world.data_dir / "opencode-forgotten.db")) as store:
        for number in range(rounds):
            talk = Talk(store, session_id=f"ses_gone{number}")
            for _ in range(3):
                talk.ask(f"Feed the {words(_GONE + number)}.")
            talk.write(f"/home/dev/{words(_GONE + number)}.txt", f"{words(_GONE + number)}\n")
    world.work.start()
    problems: list[str] = []
    for number in range(rounds):
        delay = chance.uniform(0, 0.8)
        word = words(_GONE + number)
        world.daemon.run()
        if number == 0:
            until(lambda: all(world.daemon.search(words(_GONE + each)) for each in range(rounds)), 60, "every session")
        with _command(world, "forget", f"ses_gone{number}", "--yes", "--json") as done:
            time.sleep(delay)
            world.daemon.kill()
        world.counts["SIGKILL"] += 1
        world.counts["SIGKILL in the middle of a forget"] += 1
        if done and done[0].returncode == 0 and json.loads(done[0].stdout)["forgotten"]:
            world.counts["forgotten before the SIGKILL"] += 1
            world.daemon.run()
            if world.daemon.search(word):
                problems.append(f"{word} was forgotten and is found")
            world.daemon.kill()
            world.counts["SIGKILL"] += 1
    world.daemon.run()
    for number in range(rounds):
        again = world.daemon.ask("forget", f"ses_gone{number}", "--yes", "--json")
        if again.returncode not in (0, _NOTHING_TO_FORGET):
            problems.append(f"ses_gone{number} cannot be forgotten: {again.stderr}")
    world.work.stop()
    problems += world.finish()
    marks = [words(_GONE + number).encode() for number in range(rounds)]
    for where, raw in texts(world.daemon.archive_dir):
        problems += [f"{mark.decode()} was forgotten and is in {where}" for mark in marks if mark in raw]
    return problems


def back_up(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The archive is backed up, and the service or the backup is killed meanwhile; what is made is whole."""
    to = world.root / "backups"
    world.work.start()
    for _ in range(rounds):
        kills_service, delay = chance.random() < 0.5, chance.uniform(0, 1.5)
        world.daemon.run()
        process = subprocess.Popen(
            world.daemon.command("backup", str(to)), env=world.daemon.environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(0.8 + delay)
        if kills_service:
            world.daemon.kill()
            world.counts["SIGKILL of the service in the middle of a backup"] += 1
        else:
            process.kill()
            world.counts["SIGKILL of a backup"] += 1
        world.counts["SIGKILL"] += 1
        process.wait(timeout=60)
        if not kills_service:
            world.daemon.terminate()
    world.work.stop()
    world.daemon.run()
    world.daemon.ask("index", "--wait")
    problems: list[str] = []
    for arguments in (("backup", str(to), "--json"), ("backup", str(to), "--check")):
        done = world.daemon.ask(*arguments)
        if done.returncode:
            problems.append(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-500:]}")
    world.daemon.terminate()
    restored = world.root / "ours" / "kept-restored"
    done = world.daemon.ask("restore-archive", str(to), "--to", str(restored))
    if done.returncode:
        return [*problems, f"restore-archive ended with {done.returncode}: {done.stderr[-500:]}"]
    with Archive(restored) as archive:
        problems += [f"in the restored archive: {problem}" for problem in Check(world).archive(archive)]
    return problems


def migrate(world: World, chance: random.Random, rounds: int) -> list[str]:
    """An archive of each older version is brought up to date, and the service is killed meanwhile."""
    version = chance.choice(sorted(released.RELEASED))
    original = released.unpacked(version, world.root / "ours" / "kept-original")
    reference = world.root / "ours" / "kept-reference"
    shutil.copytree(original, reference)
    with Archive(reference) as archive:
        expected = released.texts(archive)
        world.others = frozenset(name for name in archive.all_message_ids() if not archive.is_deleted(name))
    world.work.start()
    problems: list[str] = []
    for number in range(rounds):
        name, from_start = chance.choice(_POINTS), chance.random() < 0.7
        nth = chance.randint(1, faults.POINTS[name].most)
        if from_start or not number:
            shutil.rmtree(world.daemon.archive_dir, ignore_errors=True)
            shutil.copytree(original, world.daemon.archive_dir)
        world.daemon.start()
        kill_at(world, faults.POINTS[name], nth, f"{number}-{name}")
        world.counts[f"SIGKILL in the middle of a migration, where {name}"] += 1
    world.daemon.run()
    problems += world.finish()
    with Archive(world.daemon.archive_dir) as archive:
        kept = released.texts(archive)
    for message_id, parts in expected.items():
        if kept.get(message_id) != parts:
            problems.append(f"{message_id} of the older version is another one after its migration")
    problems += list(_way_back(world, original))
    return problems


def _way_back(world: World, original: Path) -> Iterator[str]:
    folder = world.daemon.archive_dir / f"before-schema-{SCHEMA}"
    yield from (f"the backup before the migration: {damage}" for damage in damage_in(folder))
    back = world.root / "ours" / "kept-back"
    with BackupFolder.to_read(folder) as backups:
        restore(backups, backups.newest(), back, SCHEMA, quiet)
    before, after = released.rows(original), released.rows(back)
    if {key: value for key, value in before.items() if not key.startswith(b"meta:")} != {
        key: value for key, value in after.items() if not key.startswith(b"meta:")
    }:
        yield "the backup before the migration has not what was there"


class _command:  # noqa: N801 - used as a function is
    """A command that runs while the body does, and to its end after it; gives a list that then has its result."""

    def __init__(self, world: World, *words_of_it: str) -> None:
        self._done: list[subprocess.CompletedProcess[str]] = []
        self._thread = threading.Thread(
            target=lambda: self._done.append(world.daemon.ask(*words_of_it, timeout_s=120)), daemon=True
        )

    def __enter__(self) -> list[subprocess.CompletedProcess[str]]:
        self._thread.start()
        return self._done

    def __exit__(self, *error: object) -> None:
        self._thread.join()
