"""A child process for objects whose native libraries are large, hold Python's lock for long, and may crash.

The child starts with the first object and is started again after a crash. Only its end gives the memory of such
libraries back. Every call has a connection of its own while it lasts, so calls run side by side. What goes over it is
pickled by `multiprocessing.connection`: arguments, results, and errors of `daemon.errors` as they are. An argument that
is a function stays here: the child calls it back over the same connection.

The child ends when its control socket is closed, so it never outlives its parent, however that ends. Until then it
ignores the signals that a terminal or systemd sends to all processes. It is started by exec, never as a fork of a
process with threads.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from operator import attrgetter
from typing import IO, Any, cast

from daemon import __version__
from daemon.errors import ReconstituteError, Retry
from daemon.heap import return_large_blocks

_ENDING_S = 5
"""How long an ending child may take to close its objects."""
_ANSWER_S = 900.0
"""How long a call may take, or the time between its callbacks, before the child counts as hung and is killed. The
service's loop that embeds has as long."""
_ENDS = (0, -signal.SIGALRM)
"""The exit codes of a child that has ended itself; the second one where closing its objects took too long."""
_RESULT, _ERROR, _CALLBACK = "result", "error", "callback"

_log = logging.getLogger(__name__)


class Worker:
    """Starts the child when it is needed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def create(self, factory: Callable[..., Any], *args: Any, timeout_s: float = _ANSWER_S) -> RemoteObject:
        """Call `factory`, a class or function of a module, in the child, and keep what it returns there.

        Raises:
            ChildProcessError: the child crashed meanwhile, or took longer than `timeout_s` and was killed.
            Retry: the child cannot be started, or ended without a crash.
        """
        with self._lock:
            if self._child is None or not self._child.is_alive:
                self._end()
                try:
                    self._child = _Child()
                except OSError as error:
                    raise Retry(f"no process can be started for search by meaning: {error}; try again later") from error
            child = self._child
        key = next(child.keys)
        child.call(key, factory, args, {}, timeout_s)
        return RemoteObject(child, key)

    @property
    def pid(self) -> int | None:
        """The process id of the child; None while there is none."""
        child = self._child
        return child.pid if child is not None and child.is_alive else None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        child = self._child
        return child is not None and child.is_busy

    def end(self) -> None:
        """End the child, which closes its objects first. Calls under way fail; the next object starts a new child."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


class RemoteObject:
    """An object in the child; it is gone when that child has ended."""

    def __init__(self, child: _Child, key: int) -> None:
        self._child, self._key = child, key

    @property
    def is_alive(self) -> bool:
        """Whether its process still runs."""
        return self._child.is_alive

    @property
    def has_crashed(self) -> bool:
        """Whether a signal has ended its process, but for the alarm of its own end."""
        return self._child.has_crashed

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the object, or with dots a method of an attribute.

        Raises:
            ChildProcessError: the child has crashed, or crashed meanwhile, or hung and was killed.
            Retry: it has ended otherwise, or cannot be reached.
        """
        return self._child.call(self._key, method, args, kwargs, _ANSWER_S)


class _Child:
    """A running child, as its parent sees it."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            try:
                self._process, stderr = start(theirs.fileno())
            except OSError:
                self._control.close()
                raise
        self.keys = itertools.count()
        self._lock = threading.Lock()
        self._free: list[Connection] = []
        self._running = 0
        self._logger = threading.Thread(target=_log_lines, args=(stderr,), name="worker log", daemon=True)
        self._logger.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def has_crashed(self) -> bool:
        return (code := self._process.poll() or 0) < 0 and code not in _ENDS

    @property
    def is_busy(self) -> bool:
        return self._running > 0

    def call(
        self,
        key: int,
        target: str | Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        timeout_s: float,
    ) -> Any:
        """See RemoteObject.call and Worker.create; a timeout is for each message."""
        callbacks = {name: value for name, value in kwargs.items() if callable(value)}
        plain = {name: value for name, value in kwargs.items() if name not in callbacks}
        failure: BaseException | None = None
        with self._connection() as connection:
            connection.send((key, target, tuple(args), plain, tuple(callbacks)))
            while True:
                if not connection.poll(timeout_s):
                    self._process.kill()
                    self.end()
                    raise ChildProcessError(f"its process gave no answer in {timeout_s:g} s")
                kind, value = connection.recv()
                if kind != _CALLBACK:
                    break
                result = None
                try:
                    result = callbacks[value[0]](*value[1], **value[2])
                except BaseException as error:  # noqa: BLE001 - it is raised below, as what the caller knows
                    failure = error
                connection.send((failure is None, result))
        if failure is not None:
            raise failure
        if kind == _ERROR:
            raise value
        return value

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection for one call. It is used again, unless the call was cut short."""
        connection = None
        try:
            with self._lock:
                self._running += 1
                connection = self._free.pop() if self._free else self._connect()
            yield connection
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, (EOFError, OSError)) and not isinstance(error, ChildProcessError):
                code = self.end()  # nothing else closes a connection
                if code > 0:
                    message = f"the process for search by meaning does not start (exit status {code})"
                    raise Retry(f"{message}; see the log, and restart Reconstitute if it was upgraded") from error
                if code in _ENDS:
                    raise Retry("the process for search by meaning has ended; try again") from error
                raise ChildProcessError(f"its process has ended ({signal.Signals(-code).name})") from error
            raise
        else:
            with self._lock:
                self._free.append(connection)
        finally:
            with self._lock:
                self._running -= 1

    def _connect(self) -> Connection:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:  # it says nothing about the child
            message = f"the process for search by meaning cannot be reached: {error}; try again later"
            raise Retry(message) from error
        with ours, theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            return Connection(ours.detach())

    def end(self) -> int:
        """End it, if it has not ended; its exit code."""
        with self._lock:
            self._control.close()
        try:
            code = self._process.wait(_ENDING_S + 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        with self._lock:
            while self._free:
                self._free.pop().close()
        self._logger.join(_ENDING_S)
        return code


def start(control: int) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a child with this control socket; the answer is its process and its stderr."""
    process = subprocess.Popen(
        # -P: nothing is imported from the current directory
        [sys.executable, "-P", "-m", __name__, str(control), __version__],
        pass_fds=[control],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    return process, cast("IO[bytes]", process.stderr)


def _log_lines(stderr: IO[bytes]) -> None:
    """What the child prints, such as a crash in a library, goes into our log, which redacts it."""
    with stderr:
        for line in stderr:
            if text := line.decode("utf-8", "replace").strip():
                _log.warning("worker: %s", text)


# -- in the child ------------------------------------------------------------------------------------------------------


def main(control: int) -> None:
    """Serve until the other end of `control` is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump could contain transcripts
    return_large_blocks()  # a loaded model takes 50 MB less
    objects: dict[int, Any] = {}
    ending = threading.Event()
    with socket.socket(fileno=control) as parent:
        while True:
            _, received, _, _ = socket.recv_fds(parent, 1, 1)
            if not received:
                break
            arguments = (Connection(received[0]), objects, parent, ending)
            threading.Thread(target=_serve, args=arguments, daemon=True).start()
    signal.alarm(_ENDING_S)  # the kernel ends the process then, also while a library holds Python's lock
    for made in list(objects.values()):
        made.close()
    os._exit(0)


def _serve(connection: Connection, objects: dict[int, Any], parent: socket.socket, ending: threading.Event) -> None:
    with contextlib.suppress(EOFError, OSError), connection:
        while True:
            request = connection.recv_bytes()
            try:
                outcome = _outcome(request, connection, objects)
            except ImportError as error:
                # What was loaded in part, as on a failing disk, stays so in this process: it ends, and the next object
                # has a new one.
                ending.set()
                message = f"a library cannot be loaded: {error}; try again, and restart Reconstitute if it was upgraded"
                try:
                    connection.send_bytes(ForkingPickler.dumps((_ERROR, Retry(message))))
                finally:
                    parent.shutdown(socket.SHUT_RD)
                return
            if ending.is_set():
                return  # its object may be closed already: the caller tries again, as after the end
            connection.send_bytes(outcome)


def _outcome(request: bytes, connection: Connection, objects: dict[int, Any]) -> Any:
    """Do what is requested; the answer is the pickled reply.

    Raises:
        ImportError: a library could not be imported.
    """
    try:
        key, target, args, kwargs, callbacks = ForkingPickler.loads(request)
        kwargs |= {name: partial(_call_back, connection, name) for name in callbacks}
        if callable(target):
            objects[key] = target(*args, **kwargs)
            return ForkingPickler.dumps((_RESULT, None))
        return ForkingPickler.dumps((_RESULT, attrgetter(target)(objects[key])(*args, **kwargs)))
    except ReconstituteError as error:
        return ForkingPickler.dumps((_ERROR, error))
    except ImportError:
        raise
    except BaseException as error:  # noqa: BLE001 - a library in Rust panics with a BaseException
        return ForkingPickler.dumps((_ERROR, RuntimeError(f"{type(error).__name__}: {error}")))


def _call_back(connection: Connection, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the caller's.

    Raises:
        Retry: it failed; the caller raises its own error.
    """
    connection.send((_CALLBACK, (name, args, kwargs)))
    is_done, result = connection.recv()
    if not is_done:
        raise Retry(f"{name} failed")
    return result


if __name__ == "__main__":
    if sys.argv[2] != __version__:  # its parent takes the vectors of this model for those of its own
        sys.exit(f"this is version {__version__}, started by version {sys.argv[2]}; restart Reconstitute")
    main(int(sys.argv[1]))
