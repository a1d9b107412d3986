"""Bits flip and files go in what the service keeps. An index is rebuilt; an archive is refused, or is whole."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from daemon.archive import Archive
from daemon.errors import ArchiveCorrupt
from tests.torture import indexes
from tests.torture.check import Check
from tests.torture.world import World

_STEPS = 35
_FOUND_S = 60.0
LEVELDB, LEXICAL, SEMANTIC = "leveldb", "index/lexical", "index/semantic"
_PLACES = ((LEVELDB,), (LEXICAL, SEMANTIC), (LEXICAL, SEMANTIC), (LEVELDB,), (LEXICAL, SEMANTIC))
"""What is damaged at a time. Both indexes at once, because each is checked for itself."""


def damage(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Damage files of a finished archive, one start after each; every time it is whole again before."""
    world.work.do(_STEPS)
    world.daemon.run()
    world.daemon.ask("index", "--wait")
    world.daemon.wait_until_drained()
    world.daemon.terminate()
    archive, kept = world.daemon.archive_dir, world.root / "ours" / "kept-copy"
    shutil.copytree(archive, kept)
    problems: list[str] = []
    for number in range(rounds):
        what = []
        for place in _PLACES[number % len(_PLACES)]:
            file = _file(archive / place, chance)
            done = _damage(file, chance)
            world.counts[f"damage of {place}: {done}"] += 1
            what.append(f"{done} in {file.relative_to(archive)}")
        is_archive = _PLACES[number % len(_PLACES)] == (LEVELDB,)
        problems += [f"{', '.join(what)}: {problem}" for problem in _survives(world, is_archive=is_archive)]
        if not world.has_ended():
            world.daemon.terminate()
        shutil.rmtree(archive)
        shutil.copytree(kept, archive)
    return problems


def _file(place: Path, chance: random.Random) -> Path:
    """Any file, each as likely. Their names are of chance, so the seed chooses by sort and size."""
    files = [path for path in place.rglob("*") if path.is_file()]
    return chance.choice(sorted(files, key=lambda path: (path.suffix, path.stat().st_size, path.name)))


def _damage(file: Path, chance: random.Random) -> str:
    size = file.stat().st_size
    kind = chance.choice(("a flipped bit", "a flipped bit", "a torn end", "a hole", "a deleted file"))
    place, bit = chance.random(), chance.randrange(8)
    if kind == "a deleted file" or not size:
        file.unlink()
        return "a deleted file"
    start = int(place * size)
    if kind == "a torn end":
        os.truncate(file, start)
        return kind
    content = bytearray(file.read_bytes())
    if kind == "a flipped bit":
        content[start] ^= 1 << bit
    else:
        end = min(size, start + 512)
        content[start:end] = bytes(end - start)
    file.write_bytes(content)
    return kind


def _survives(world: World, *, is_archive: bool) -> Iterator[str]:
    """Whether it either refuses to run and says why, or runs and has everything."""
    log_before = world.daemon.log_path.stat().st_size
    world.daemon.start()
    problems: list[str] = []
    try:
        world.daemon.wait_until_ready()
        problems = list(Check(world).search(_FOUND_S, by_meaning=not is_archive))
        code = None if world.has_ended() else world.daemon.terminate()[0]
    except (AssertionError, httpx.HTTPError) as error:
        problems = [f"it does not answer as it should: {error}"]
        code = None
        if _ends(world):
            assert world.daemon.process is not None
            code = world.daemon.process.poll()
    log = world.daemon.log_path.read_bytes()[log_before:].decode(errors="replace")
    if code == 0:
        yield from problems
        yield from _whole(world, is_archive=is_archive)
    elif code is None:
        yield from problems
    elif not is_archive or code < 0 or "Traceback" in log or "restore-archive" not in log:
        yield f"it ended with {code} and did not say what to do: {log[-800:]}"
    else:
        world.counts["an archive was refused"] += 1


def _ends(world: World) -> bool:
    end = time.monotonic() + 10
    while not world.has_ended() and time.monotonic() < end:
        time.sleep(0.05)
    return world.has_ended()


def _whole(world: World, *, is_archive: bool) -> Iterator[str]:
    """Whether archive and indexes hold what they must; a record that is damaged must be found to be."""
    try:
        with Archive(world.daemon.archive_dir) as archive:
            if is_archive and archive.verify(lambda _: None).wrong:
                world.counts["damage was found by reading everything"] += 1
                return
            yield from Check(world).archive(archive)
            yield from indexes.differences(archive, world.daemon.archive_dir / "index", world.server.url)
    except ArchiveCorrupt:
        world.counts["damage was found by reading"] += 1
