"""Processes of ours that are forks of one that has imported everything, in place of a new Python for each.

Most of what a short command takes is imports. A fork is a process of its own as well: it has its own descriptors,
environment and directory, runs the same `main`, and may crash or be killed. What a new Python alone shows is tested
with one: that each command imports what it needs and no more, and the encodings that variables choose. Forks share the
seed of hashes, which differs between workers and runs.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, NoReturn
from unittest import mock

from daemon import cli, worker
from tests.support.patience import search_patiently

_COMMANDS = Path(cli.__file__).parent / "subcommands"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "pytest",
        "chromadb.api.rust",
        "daemon.app.daemon",
        "daemon.index.semantic.process",
        "daemon.embed.ollama",
        "daemon.control.client",
        *(f"daemon.cli.subcommands.{file.stem}" for file in _COMMANDS.glob("[a-z]*.py")),
        __name__,
    ]
)
_CHOOSE_ENCODINGS = ("PYTHON", "LC_", "LANG")


def command(
    *words: str, cwd: Path, environment: Mapping[str, str], timeout_s: float = 240
) -> subprocess.CompletedProcess[bytes]:
    """`reconstitute` with these words, to its end."""
    return _ended(_command, words, str(cwd), dict(environment), timeout_s=timeout_s)


def exit_code(work: Callable[..., None], *arguments: Any, timeout_s: float) -> int:
    """How a fork that does this work ends: 0, or a signal's number, negative."""
    process = _FORKS.Process(target=work, args=arguments)
    process.start()
    process.join(timeout_s)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    if code is None:
        raise subprocess.TimeoutExpired(work.__name__, timeout_s)
    return code


class Service:
    """`reconstitute` with these words, running in a session of its own; as subprocess.Popen, where that is used."""

    def __init__(self, *words: str, cwd: Path, environment: Mapping[str, str], log: Path) -> None:
        """What it prints is appended to `log`."""
        log.touch()
        given = (str(log), str(log), words, str(cwd), dict(environment))
        self._process = _FORKS.Process(target=_service, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal, once it has ended."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Its exit code when it ends; TimeoutExpired if it does not."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("reconstitute", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """To it alone, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended, and its exit code is still on its way
                os.kill(self.pid, number)

    def kill(self) -> None:
        """At once."""
        self.send_signal(signal.SIGKILL)


def on_terminal(terminal: str, *words: str, cwd: Path, environment: Mapping[str, str]) -> BaseProcess:
    """`reconstitute` with these words, begun, whose stdout and stderr are this terminal."""
    process = _FORKS.Process(target=_command, args=(terminal, terminal, words, str(cwd), dict(environment)))
    process.start()
    return process


def chooses_encodings(environment: Mapping[str, str]) -> bool:
    """Whether Python has to start with these variables for them to count."""
    return any(name.startswith(_CHOOSE_ENCODINGS) for name in environment)


@contextmanager
def starting_workers() -> Iterator[None]:
    """Have `worker.start` make forks meanwhile."""
    with mock.patch.object(worker, "start", _started_here):
        yield


class _Fork:
    """A forked worker; as subprocess.Popen, where that is used."""

    def __init__(self, pid: int, poll: Callable[[], int | None]) -> None:
        self.pid, self.poll = pid, poll

    def wait(self, timeout: float = 60) -> int:
        """Its exit code when it ends; TimeoutExpired if it does not."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("worker", timeout)
            time.sleep(0.005)
        return code

    def kill(self) -> None:
        """At once, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _started_here(control: int) -> tuple[_Fork, IO[bytes]]:
    read, write = os.pipe()
    process = _FORKS.Process(target=_work_with, args=(DupFd(control), DupFd(write)))
    process.start()
    os.close(write)
    assert process.pid is not None
    return _Fork(process.pid, lambda: process.exitcode), open(read, "rb")


@contextmanager
def _starting_workers_with_threads() -> Iterator[None]:
    """The same for a process that will have threads: one that has none, made before them, forks in its place."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        os.setpgid(0, 0)  # it ends after the service, and is none of what that leaves behind
        _fork_workers(theirs)
    theirs.close()
    asking = threading.Lock()

    def start(control: int) -> tuple[_Fork, IO[bytes]]:
        read, write = os.pipe()
        with asking:
            socket.send_fds(ours, [bytes(_NUMBER)], [control, write])
            pid = int.from_bytes(ours.recv(_NUMBER), signed=True)
        os.close(write)

        def poll() -> int | None:
            with asking:
                ours.sendall(pid.to_bytes(_NUMBER))
                code = int.from_bytes(ours.recv(_NUMBER), signed=True)
            return None if code == _RUNS else code

        return _Fork(pid, poll), open(read, "rb")

    with mock.patch.object(worker, "start", start):
        yield


_NUMBER, _RUNS = 4, -1000


def _fork_workers(asked: socket.socket) -> NoReturn:
    """Fork a worker for each two descriptors that are sent; say for each process id how it has ended."""
    ended: dict[int, int] = {}
    while True:
        number, received, _, _ = socket.recv_fds(asked, _NUMBER, 2)
        if not number:
            os._exit(0)
        if received:
            answer = os.fork()
            if answer == 0:
                asked.close()
                _work(*received)
            for descriptor in received:
                os.close(descriptor)
        else:
            pid = int.from_bytes(number)
            if pid not in ended:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    ended[pid] = os.waitstatus_to_exitcode(status)
            answer = ended.get(pid, _RUNS)
        asked.sendall(answer.to_bytes(_NUMBER, signed=True))


def _work_with(control: Any, stderr: Any) -> None:
    _work(control.detach(), stderr.detach())


def _work(control: int, stderr: int) -> NoReturn:
    os.setsid()
    os.dup2(stderr, 2)
    os.close(stderr)
    try:
        worker.main(control)
    finally:
        os._exit(1)


def _ended(
    work: Callable[..., None], words: Sequence[str], *arguments: Any, timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as errors:
        code = exit_code(work, out.name, errors.name, words, *arguments, timeout_s=timeout_s)
        return subprocess.CompletedProcess(list(words), code, out.read(), errors.read())


def _streams(out: str, errors: str) -> None:
    """Let stdout and stderr be these files, as if Python had started with them."""
    for name, place in (("stdout", out), ("stderr", errors)):
        before = getattr(sys, name)
        number = before.fileno()
        descriptor = os.open(place, os.O_RDWR | os.O_APPEND | os.O_NOCTTY)
        os.dup2(descriptor, number)
        os.close(descriptor)
        raw = io.FileIO(number, "wb", closefd=False)
        line_buffering = name == "stderr" or os.isatty(number)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), before.encoding, before.errors, line_buffering=line_buffering)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _command(out: str, errors: str, words: Sequence[str], cwd: str, environment: Mapping[str, str]) -> None:
    _streams(out, errors)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    search_patiently()
    sys.argv = [str(Path(cli.__file__).with_name("__main__.py")), *words]
    with _starting_workers_with_threads():
        cli.main()


def _service(*given: Any) -> None:
    os.setsid()
    _command(*given)
