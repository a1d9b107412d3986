"""What is done to a running service. Each harm does something several times, as its seed says, and leaves the rest to the
check at the end; what goes wrong at once is returned as text. Damage and upkeep have modules of their own."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import socket
import time
from contextlib import suppress

from tests.e2e.talk import PROJECT
from tests.torture import faults
from tests.torture.world import World

FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
)
_SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select((), (), (), seconds) and None\n"
"""libfaketime 0.9.10 refuses clock_nanosleep, which Python sleeps with, if it leaves the monotonic clock alone."""
_RUBBISH = "ses_rubbish"
_POINT_S = 3.0
"""How long a kill point is waited for; then the process is killed wherever it is."""


def kill(world: World, chance: random.Random, rounds: int) -> list[str]:
    """SIGKILL at any moment, from the first millisecond of a start on; now and then to the process with Chroma alone."""
    world.work.start()
    for _ in range(rounds):
        when, later = chance.choice(("at once", "at once", "ready", "ready", "later")), chance.uniform(1, 4)
        delay, to_worker, asks = chance.uniform(0.005, 1.2), chance.random() < 0.2, chance.random() < 0.2
        if asks:
            world.request(f"{PROJECT}\n")
        world.daemon.start()
        if when != "at once":
            world.daemon.wait_until_ready()
        time.sleep(later if when == "later" else delay)
        if to_worker:
            for worker in world.workers():
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                world.counts["SIGKILL to the process with Chroma"] += 1
            time.sleep(delay / 2)
        if world.has_ended():
            return [f"it ended by itself: {world.daemon.log_end()[-500:]}"]
        world.daemon.kill()
        world.counts["SIGKILL"] += 1
    return []


def kill_at_points(world: World, chance: random.Random, rounds: int) -> list[str]:
    """SIGKILL when it enters a certain system call the n-th time."""
    world.work.start()
    for number in range(rounds):
        name = chance.choice(sorted(faults.POINTS))
        point, is_ready, asks = faults.POINTS[name], chance.random() < 0.5, chance.random() < 0.3
        nth = chance.randint(1, point.most)
        if asks:
            world.request(f"{PROJECT}\n")
        world.daemon.start()
        if is_ready:
            world.daemon.wait_until_ready()
        kill_at(world, point, nth, f"{number}-{name}")
        world.counts[f"SIGKILL where {name}"] += 1
    return []


def kill_at(world: World, point: faults.KillPoint, nth: int, name: str) -> None:
    """Kill the service at this point, or soon in any case."""
    log = world.root / f"strace-{name.replace(' ', '-')}"
    with faults.killing([world.pid, *world.workers()], point, nth, world.daemon.archive_dir, log):
        end = time.monotonic() + _POINT_S
        while not world.has_ended() and time.monotonic() < end:
            time.sleep(0.01)
    if not world.has_ended():
        world.counts["SIGKILL at random, because the point was not reached"] += 1
    world.daemon.kill()
    world.counts["SIGKILL"] += 1


def fail_calls(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The n-th call of a sort fails, once, several times or from then on for a moment; then everything is well again."""
    world.work.start()
    problems: list[str] = []
    calls: tuple[str, ...] = ()
    really = 0
    for number in itertools.count():
        if number >= rounds and (really or number >= 4 * rounds):  # in a short trial, no call may have come so far
            break
        calls = calls or tuple(chance.sample(sorted(faults.ERRORS), len(faults.ERRORS)))
        call, calls = calls[0], calls[1:]
        error, nth = chance.choice(faults.ERRORS[call]), chance.randint(1, 12)
        when = chance.choice((f"{nth}", f"{nth}", f"{nth}..{nth + 3}", f"{nth}+"))
        lasts, asks = chance.uniform(0.5, 2.0), chance.random() < 0.5
        if world.has_ended():
            world.daemon.run()
        if asks:
            world.request(f"{PROJECT}\n")
        log = world.root / f"strace-{number}"
        with faults.failing([world.pid, *world.workers()], call, error, when, log):
            time.sleep(lasts)
        done = faults.injected(log)
        really += done.total()
        for name, count in done.items():
            world.counts[f"{name} failed"] += count
        world.counts["moments in which calls failed"] += bool(done)
        if world.has_ended() and world.daemon.process is not None:
            code = world.daemon.process.poll()
            world.counts["ended because a call failed, and started again"] += 1
            if code is None or code < 0:
                problems.append(f"{dict(done)} ({error}) ended it with {code}: {world.daemon.log_end()[-800:]}")
    if not really:
        problems.append("no call was made to fail")
    return problems


def fill_disk(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The disk is full, really, and has room again; now and then the service is killed meanwhile."""
    assert world.disk is not None
    world.work.start()
    for _ in range(rounds):
        before, leave, lasts = (
            chance.uniform(0, 2),
            chance.choice((0, 0, 4096, 200_000, 5_000_000)),
            chance.uniform(0.2, 2),
        )
        is_killed, starts, again = chance.random() < 0.3, chance.random() < 0.5, chance.uniform(0.2, 2)
        if world.has_ended():
            world.daemon.start()
        time.sleep(before)
        world.disk.fill(leave)
        world.counts["the disk was full"] += 1
        time.sleep(lasts)
        if is_killed:
            world.daemon.kill()
            world.counts["SIGKILL"] += 1
            world.counts["SIGKILL on a full disk"] += 1
            if starts:
                world.daemon.start()
                time.sleep(again)
        world.disk.make_room()
        if world.daemon.process is not None and world.has_ended():
            code = world.daemon.process.poll()
            if code != -signal.SIGKILL:
                return [f"a full disk ended it with {code}: {world.daemon.log_end()[-500:]}"]
    return []


def flap_server(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The model server goes, comes, fails and is slow."""
    world.work.start()
    world.daemon.run()
    for _ in range(rounds):
        way = chance.choice(("goes", "fails", "is slow", "says nonsense"))
        lasts, pause = chance.uniform(0.3, 2), chance.uniform(0, 0.5)
        world.counts[f"the model server {way}"] += 1
        if way == "goes":
            world.server.down()
        world.server.broken = 500 if way == "fails" else 0
        world.server.delay_s = 3.0 if way == "is slow" else 0.0
        world.server.empty_shape = [] if way == "says nonsense" else ...
        time.sleep(lasts)
        if way == "goes":
            world.server.up()
        world.server.broken, world.server.delay_s, world.server.empty_shape = 0, 0.0, ...
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
        time.sleep(pause)
    return []


def set_clock(world: World, chance: random.Random, rounds: int) -> list[str]:
    """The clock jumps, by hours, months and years, both ways; the monotonic one does not."""
    offset = world.root / "offset"
    offset.write_text("+0")
    customized = world.root / "python"
    customized.mkdir()
    (customized / "sitecustomize.py").write_text(_SLEEP)
    faked = {
        "PYTHONPATH": str(customized),
        "LD_PRELOAD": next(path for path in FAKETIME if os.path.exists(path)),
        "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    world.daemon.environment |= faked
    world.work.start()
    world.daemon.run(fork=False)
    for _ in range(rounds):
        offset.write_text(chance.choice(("-3h", "+1h", "+2d", "-40d", "+400d", "-2y", "+0")))
        world.counts["the clock jumped"] += 1
        time.sleep(chance.uniform(0.2, 2))
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
    offset.write_text("+0")
    for name in faked:
        del world.daemon.environment[name]
    return []


def throw_rubbish(world: World, chance: random.Random, rounds: int) -> list[str]:
    """Files that are none, hostile names, requests and protocol messages of random bytes."""
    world.work.start()
    world.daemon.run()
    for number in range(3 * rounds):
        rubbish = chance.randbytes(chance.choice((0, 1, 30, 5000)))
        way = chance.choice(("a request", "the socket", "a fifo", "a strange name", "a record", "a strange record"))
        name = chance.choice(("\u202etxt.exe", "a\nb", "x" * 240, "-rf", "%s%n", "\x1b[2J")) + str(number)
        world.counts[f"rubbish: {way}"] += 1
        _throw(world, chance, way, name, rubbish, number)
        time.sleep(chance.uniform(0, 0.3))
        if world.has_ended():
            return [f"it ended: {world.daemon.log_end()[-500:]}"]
    shutil.rmtree(world.data_dir / "storage" / "message" / _RUBBISH, ignore_errors=True)
    return []


def _throw(world: World, chance: random.Random, way: str, name: str, rubbish: bytes, number: int) -> None:
    requests, storage = world.daemon.requests_dir, world.data_dir / "storage"
    if way == "a request":
        (requests / f"rubbish-{number}.txt").write_bytes(rubbish)
    elif way == "a fifo":
        os.mkfifo(requests / f"fifo-{number}.txt")
    elif way == "a strange name":
        (requests / name).write_bytes(rubbish)
    elif way == "a record":
        session = storage / "message" / _RUBBISH
        session.mkdir(parents=True, exist_ok=True)
        (session / f"msg_rubbish{number}.json").write_bytes(rubbish)
    elif way == "a strange record":
        session = storage / "session" / "pid"
        session.mkdir(parents=True, exist_ok=True)
        (session / f"{name}.json").write_bytes(rubbish)
    else:
        start = chance.choice((b"GET ", b"POST /status HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b""))
        with suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(2)
            sock.connect(str(world.daemon.socket))
            sock.sendall(start + rubbish)
            sock.recv(1000)
