"""`reconstitute` in processes of its own whose imports are already done: each is a fork of a server that did them.

Imports take most of the processor time of a short command. A forked process has its own arguments, environment, streams,
directory and session, runs the program's `main`, and ends as any other. One thing differs from a new interpreter: an
import that is missing in one place and done in another does not show. Tests of how the program starts use interpreters.
Forks of one server share its seed of hashes, so two servers take turns: an order that hangs on the seed shows.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import itertools
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, Self

_CHECKOUT = Path(__file__).resolve().parents[3]
_BYTES = 1 << 17
_LOCK = threading.Lock()
_TURNS = itertools.count()
_HEAVY = ("chromadb", "chromadb.config")
"""What the program loads late, besides its own modules. Not onnxruntime, which starts threads when it is imported."""


class ForkedProgram:
    """One running `reconstitute` with these arguments; as subprocess.Popen, as far as the tests use that."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdout: IO[Any], stderr: IO[Any]
    ) -> None:
        request = json.dumps({"arguments": list(arguments), "environment": dict(environment)})
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._status = status
        with theirs, _LOCK:
            server = _server(next(_TURNS) % 2)
            server.send(request.encode(), [theirs.fileno(), stdout.fileno(), stderr.fileno()])
        self.returncode: int | None = None
        self.pid = int(status.recv(32))

    def poll(self) -> int | None:
        """Its exit code, negative for a signal, once it has ended."""
        if self.returncode is None:
            self._receive_end(0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Its exit code when it ends; TimeoutExpired if it does not."""
        if self.returncode is None:
            self._receive_end(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"reconstitute, pid {self.pid}", timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.wait(timeout=10)

    def _receive_end(self, timeout: float) -> None:
        self._status.settimeout(timeout)
        try:
            code = self._status.recv(32)
        except (BlockingIOError, TimeoutError):
            return
        assert code, "the server of forks has ended"
        self.returncode = int(code)
        self._status.close()


def run(arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """`reconstitute` with these arguments to its end, and what it printed; TimeoutExpired if it does not end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with ForkedProgram(arguments, environment, out, err) as program:
            code = program.wait(timeout_s)
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read().decode())
    return subprocess.CompletedProcess(["reconstitute", *arguments], code, *printed)


class _Server:
    """The process that forks, as the tests' process sees it. It ends when its socket does."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A thread of the library for matrices would not be there after a fork.
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.processes.forked_program", str(theirs.fileno())],
                cwd=_CHECKOUT,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close)

    def send(self, request: bytes, descriptors: list[int]) -> None:
        socket.send_fds(self._socket, [request], descriptors)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait(timeout=10)


@functools.cache
def _server(_number: int) -> _Server:
    return _Server()


def _serve(control: socket.socket) -> None:
    """Fork a program for every request, and send each program's pid and exit code through the request's own socket."""
    import daemon  # noqa: PLC0415 - the tests' process loads this module too, and tests the program from outside

    for module in pkgutil.walk_packages(daemon.__path__, "daemon."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _HEAVY:
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started a thread, which forks would lack"
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is control:
                    request, descriptors, _, _ = socket.recv_fds(control, _BYTES, 3)
                    if not request:
                        return
                    _fork(selector, request, descriptors)
                else:
                    selector.unregister(key.fileobj)
                    pid, status = key.data
                    _, code = os.waitpid(pid, 0)
                    with socket.socket(fileno=status) as connection:
                        _send(connection, os.waitstatus_to_exitcode(code))
                    os.close(key.fd)


def _fork(selector: selectors.BaseSelector, request: bytes, descriptors: list[int]) -> None:
    status, *streams = descriptors
    pid = os.fork()
    if pid == 0:
        try:
            _become_program(json.loads(request), streams)
        finally:
            os._exit(125)
    for stream in streams:
        os.close(stream)
    with socket.socket(fileno=os.dup(status)) as connection:
        _send(connection, pid)
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))


def _send(connection: socket.socket, number: int) -> None:
    try:
        connection.sendall(str(number).encode())
    except BrokenPipeError:
        pass  # the test is over and has killed it


def _become_program(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be a new process of the program as far as it can see, and run it."""
    from daemon.cli import main  # noqa: PLC0415

    os.setsid()
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.argv = [str(_CHECKOUT / "daemon" / "cli" / "__main__.py"), *request["arguments"]]
    main()
    raise AssertionError("the program's main has not ended the process")


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
