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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from daemon import cli
from daemon.index.semantic import health
from tests.support.patience import search_patiently

_COMMANDS = Path(cli.__file__).parent / "subcommands"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "pytest",
        "chromadb.api.rust",
        "daemon.app.daemon",
        "daemon.embed.ollama",
        "daemon.control.client",
        *(f"daemon.cli.subcommands.{file.stem}" for file in _COMMANDS.glob("[a-z]*.py")),
        __name__,
    ]
)
_OF_THIS = multiprocessing.get_context("fork")
_CHOOSE_ENCODINGS = ("PYTHON", "LC_", "LANG")


def command(
    *words: str, cwd: Path, environment: Mapping[str, str], timeout_s: float = 240
) -> subprocess.CompletedProcess[bytes]:
    """`reconstitute` with these words, to its end."""
    return _ended(_command, words, str(cwd), dict(environment), timeout_s=timeout_s)


def exit_code(work: Callable[..., None], *arguments: Any, timeout_s: float, context: BaseContext = _FORKS) -> int:
    """How a fork that does this work ends: 0, or a signal's number, negative."""
    process = context.Process(target=work, args=arguments)  # type: ignore[attr-defined]
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
def guarding() -> Iterator[None]:
    """Have `health.healthy` prove indexes in forks meanwhile."""
    with _guarding(_proved):
        yield


@contextmanager
def _guarding(prove: Callable[[Sequence[str], str, float], subprocess.CompletedProcess[bytes]]) -> Iterator[None]:
    def run(command: Sequence[str], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
        arguments = command[command.index(health.__name__) + 1 :]
        done = prove(arguments, options["input"], timeout)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    forked = SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)
    with mock.patch.object(health, "subprocess", forked):
        yield


def _proved(
    arguments: Sequence[str], given: str, timeout_s: float, *, context: BaseContext = _FORKS
) -> subprocess.CompletedProcess[bytes]:
    return _ended(_guard, arguments, given, timeout_s=timeout_s, context=context)


@contextmanager
def _guarding_with_threads() -> Iterator[None]:
    """The same for a process that will have threads: one that has none, made before them, forks in its place."""
    ours, theirs = multiprocessing.Pipe()
    if os.fork() == 0:
        try:
            ours.close()
            os.setpgid(0, 0)  # it ends after the service, and is none of what that leaves behind
            while True:
                theirs.send(_outcome(*theirs.recv()))
        except (EOFError, BrokenPipeError):
            pass
        finally:
            os._exit(0)
    theirs.close()

    def prove(arguments: Sequence[str], given: str, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        ours.send((arguments, given, timeout_s))
        done = ours.recv()
        if isinstance(done, subprocess.TimeoutExpired):
            raise done
        return done

    with _guarding(prove):
        yield


def _outcome(*given: Any) -> subprocess.CompletedProcess[bytes] | subprocess.TimeoutExpired:
    try:
        return _proved(*given, context=_OF_THIS)
    except subprocess.TimeoutExpired as late:
        return late


def _ended(
    work: Callable[..., None], words: Sequence[str], *arguments: Any, timeout_s: float, context: BaseContext = _FORKS
) -> subprocess.CompletedProcess[bytes]:
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as errors:
        code = exit_code(work, out.name, errors.name, words, *arguments, timeout_s=timeout_s, context=context)
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
    with _guarding_with_threads():
        cli.main()


def _service(*given: Any) -> None:
    os.setsid()
    _command(*given)


def _guard(out: str, errors: str, arguments: Sequence[str], given: str) -> None:
    _streams(out, errors)
    sys.stdin = io.StringIO(given)
    sys.exit(health._main(arguments))
