"""What is done to a running service. Each harm does something several times, as chance has it, and leaves the rest to the
check at the end; what goes wrong at once is returned as text."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.torture.world import World, pause

_LIBRARIES = ("fiu_run_preload.so", "fiu_posix_preload.so")
_PLACES = ("/usr/lib/fiu", "/usr/local/lib/fiu", "/usr/lib/x86_64-linux-gnu/fiu", "/usr/lib64/fiu")
_FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
)
_CALLS = (
    "posix/io/rw/write", "posix/io/rw/pwrite", "posix/io/rw/writev", "posix/io/rw/write/reduce", "posix/io/sync/fsync",
    "posix/io/sync/fdatasync", "posix/io/dir/rename", "posix/io/dir/unlink", "posix/io/oc/open", "posix/io/rw/read",
    "posix/io/rw/pread", "posix/mm/mmap", "posix/io/rw/ftruncate",
)  # fmt: skip
_ERRORS = {"ENOSPC": 28, "EIO": 5, "EDQUOT": 122, "EMFILE": 24, "EACCES": 13}


def kill(world: World, chance: random.Random, rounds: int) -> list[str]:
    """SIGKILL at any moment, from the first millisecond of a start on; now and then to its child alone."""
    world.work.start()
    for _ in range(rounds):
        world.daemon.start()
        if chance.random() < 0.6:
            world.daemon.wait_until_ready()
            pause(chance.uniform(0, 2))
        else:
            pause(chance.uniform(0.005, 2))
        if chance.random() < 0.2:
            for child in _children(world.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                world.counts["SIGKILL to the child"] += 1
            pause(chance.uniform(0, 1))
        if world.has_ended():
            return [f"it ended by itself: {world.daemon.log_end()[-500:]}"]
        world.daemon.kill()
        world.counts["SIGKILL"] += 1
    return []


def fail_calls(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Calls of the system fail: one sort for a moment, with a probability, then everything is well again."""
    control = world.root / "fiu"
    place = next(Path(folder) for folder in _PLACES if (Path(folder) / _LIBRARIES[0]).exists())
    world.daemon.environment["LD_PRELOAD"] = " ".join(str(place / name) for name in _LIBRARIES)
    world.daemon.environment["FIU_CTRL_FIFO"] = str(control)
    world.work.start()
    for _ in range(rounds):
        if world.has_ended():
            world.counts["ended by a failing call, and started again"] += world.daemon.process is not None
            world.daemon.run(fork=False)
        call, error = chance.choice(_CALLS), chance.choice(sorted(_ERRORS))
        name, rate = f"name={call}", chance.choice(("1", "0.3", "0.05"))
        _control(control, world.pid, f"enable_random {name},probability={rate},failinfo={_ERRORS[error]}")
        pause(chance.uniform(0.1, 1.0))
        _control(control, world.pid, f"disable {name}")
        world.counts[f"{call.removeprefix('posix/')} failed"] += 1
        pause(chance.uniform(0, 0.5))
    world.work.stop()
    if not world.has_ended():
        world.daemon.terminate()
    for name in ("LD_PRELOAD", "FIU_CTRL_FIFO"):
        del world.daemon.environment[name]
    return []


def fill_disk(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The disk is full, really, and has room again; now and then the service is killed meanwhile."""
    assert world.disk is not None
    world.work.start()
    for _ in range(rounds):
        if world.has_ended():
            world.daemon.start()
        pause(chance.uniform(0, 2))
        world.disk.fill(chance.choice((0, 0, 4096, 200_000, 5_000_000)))
        world.counts["the disk was full"] += 1
        pause(chance.uniform(0.2, 2))
        if chance.random() < 0.3:
            world.daemon.kill()
            world.counts["SIGKILL on a full disk"] += 1
            if chance.random() < 0.5:
                world.daemon.start()
                pause(chance.uniform(0.2, 2))
        world.disk.make_room()
        if world.daemon.process is not None and world.has_ended():
            code = world.daemon.process.poll()
            if code != -signal.SIGKILL:
                return [f"a full disk ended it with {code}: {world.daemon.log_end()[-500:]}"]
    return []


def damage(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Bits flip and files go in what the service keeps. An index is rebuilt; an archive is refused, or is whole."""
    world.work.start()
    pause(3)
    world.work.stop()
    world.daemon.run()
    world.daemon.wait_until_drained()
    world.daemon.terminate()
    archive, kept = world.daemon.archive_dir, world.root / "ours" / "kept-copy"
    shutil.copytree(archive, kept)
    problems: list[str] = []
    for _ in range(rounds):
        room = chance.choice(("leveldb", "index/lexical", "index/semantic"))
        file = chance.choice(sorted(path for path in (archive / room).rglob("*") if path.is_file()))
        done = _damage(file, chance)
        world.counts[f"{done} in {room}"] += 1
        problems += _survives(world, f"{done} in {file.relative_to(archive)}")
        if not world.has_ended():
            world.daemon.terminate()
        shutil.rmtree(archive)
        shutil.copytree(kept, archive)
    return problems


def _damage(file: Path, chance: random.Random) -> str:
    size = file.stat().st_size
    kind = chance.choice(("a flipped bit", "a torn end", "a hole", "a deleted file"))
    if kind == "a deleted file" or not size:
        file.unlink()
        return "a deleted file"
    if kind == "a torn end":
        os.truncate(file, chance.randrange(size))
        return kind
    content = bytearray(file.read_bytes())
    place = chance.randrange(size)
    if kind == "a flipped bit":
        content[place] ^= 1 << chance.randrange(8)
    else:
        end = min(size, place + 512)
        content[place:end] = bytes(end - place)
    file.write_bytes(content)
    return kind


def _survives(world: World, what: str) -> Iterator[str]:
    """Whether it either refuses to run and says why, or runs and finds everything."""
    log_before = world.daemon.log_path.stat().st_size
    world.daemon.start()
    assert world.daemon.process is not None
    with suppress(AssertionError):
        world.daemon.wait_until_ready()
    with suppress(Exception):
        if not world.has_ended():
            found = world.daemon.wait_until_found(world.work.holder, timeout_s=60)
            if found.keys() != world.work.holder.keys() and not world.has_ended():
                yield f"{what}: {len(world.work.holder) - len(found)} words are not found"
            return
    code = world.daemon.process.poll()
    told = world.daemon.log_path.read_bytes()[log_before:].decode(errors="replace")
    if code is None:
        yield f"{what}: it does not answer as it should: {told[-500:]}"
    elif code < 0 or "Traceback" in told or "restore-archive" not in told:
        yield f"{what}: it ended with {code} and did not say what to do: {told[-500:]}"
    else:
        world.counts["an archive was refused"] += 1


def flap_server(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The model server goes, comes, fails and is slow."""
    world.work.start()
    world.daemon.run()
    for _ in range(rounds):
        way = chance.choice(("goes", "fails", "is slow", "says nonsense"))
        world.counts[f"the model server {way}"] += 1
        if way == "goes":
            world.server.down()
        world.server.broken = 500 if way == "fails" else 0
        world.server.delay_s = 3.0 if way == "is slow" else 0.0
        world.server.empty_shape = [] if way == "says nonsense" else ...
        pause(chance.uniform(0.3, 2))
        if way == "goes":
            world.server.up()
        world.server.broken, world.server.delay_s, world.server.empty_shape = 0, 0.0, ...
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
        pause(chance.uniform(0, 0.5))
    return []


def set_clock(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The clock jumps, by hours, months and years, both ways; the monotonic one does not."""
    offset = world.root / "offset"
    offset.write_text("+0")
    world.daemon.environment |= {
        "LD_PRELOAD": next(path for path in _FAKETIME if os.path.exists(path)),
        "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    world.work.start()
    world.daemon.run(fork=False)
    for _ in range(rounds):
        offset.write_text(chance.choice(("-3h", "+1h", "+2d", "-40d", "+400d", "-2y", "+0")))
        world.counts["the clock jumped"] += 1
        pause(chance.uniform(0.2, 2))
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
    world.work.stop()
    world.daemon.terminate()
    for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"):
        del world.daemon.environment[name]
    return []


def throw_rubbish(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Files that are none, hostile names, requests and protocol messages of random bytes."""
    world.work.start()
    world.daemon.run()
    requests = world.daemon.requests_dir
    for number in range(3 * rounds):
        rubbish = chance.randbytes(chance.choice((0, 1, 30, 5000)))
        way = chance.choice(("a request", "the socket", "a fifo", "a strange name"))
        world.counts[f"rubbish: {way}"] += 1
        if way == "a request":
            (requests / f"rubbish-{number}.txt").write_bytes(rubbish)
        elif way == "a fifo":
            os.mkfifo(requests / f"fifo-{number}.txt")
        elif way == "a strange name":
            name = chance.choice(("\u202etxt.exe", "a\nb", "x" * 250, "-rf", "%s%n", "\x1b[2J")) + str(number)
            (requests / name[-255:]).write_bytes(rubbish)
        else:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(2)
                sock.connect(str(world.daemon.socket))
                sock.sendall(
                    chance.choice((b"GET ", b"POST /status HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b"")) + rubbish
                )
                sock.recv(1000)
        pause(chance.uniform(0, 0.3))
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
    return []


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def _control(prefix: Path, pid: int, command: str) -> None:
    """Tell libfiu, in this process, over its named pipes; a process that has ended meanwhile is told nothing."""
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["fiu-ctrl", "-f", str(prefix), "-c", command, str(pid)], capture_output=True, check=False, timeout=5
        )


def _has_faketime() -> str:
    return "" if any(map(os.path.exists, _FAKETIME)) else "libfaketime is not installed"


def _has_fiu() -> str:
    is_here = shutil.which("fiu-ctrl") and any((Path(place) / _LIBRARIES[0]).exists() for place in _PLACES)
    return "" if is_here else "libfiu (fiu-utils) is not installed"


def _may_mount() -> str:
    return "" if os.geteuid() == 0 else "only root can make a small disk"


@dataclass(frozen=True, slots=True)
class Harm:
    """One kind.

    `lacks`: why it cannot be done on this machine; empty where it can. `rounds`: how often it is done in one trial.
    `weight`: how many trials, beside the other kinds.
    """

    do: Callable[[World, random.Random, int], list[str]]
    lacks: Callable[[], str] = lambda: ""
    on_small_disk: bool = False
    rounds: int = 6
    weight: int = 1


HARMS = {
    "kill": Harm(kill, rounds=20, weight=4),
    "fail": Harm(fail_calls, _has_fiu, weight=2),
    "disk": Harm(fill_disk, _may_mount, on_small_disk=True, weight=2),
    "damage": Harm(damage, weight=3),
    "server": Harm(flap_server),
    "clock": Harm(set_clock, _has_faketime),
    "rubbish": Harm(throw_rubbish),
}
