"""The worker over real processes: what goes over, what comes back, and how either side ends."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daemon import worker as workers
from daemon.errors import BadInput, Retry
from daemon.worker import Worker

CHECKOUT = Path(__file__).resolve().parents[2]


class Thing:
    """What the tests have in a worker."""

    def __init__(self, name: str = "thing") -> None:
        if name == "broken":
            raise BadInput("no such thing")
        if name == "slow":
            time.sleep(60)
        self.name, self.part = name, self

    def echo(self, *values: object) -> object:
        return values

    def pid(self) -> int:
        return os.getpid()

    def refuse(self) -> None:
        raise BadInput("not this one")

    def fail(self) -> None:
        raise KeyError("a bug")

    def end(self, number: int) -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    def wait_for(self, ask: Callable[[int], object]) -> object:
        return ask(7)

    def load_in_part(self) -> None:
        sys.modules["sqlite3"] = None  # type: ignore[assignment]  # what Python does with a library that it refuses
        importlib.import_module("sqlite3")

    def unpicklable(self) -> object:
        return threading.Lock()

    def say(self, text: str) -> None:
        os.write(2, f"{text}\n".encode())

    def close(self) -> None:
        Path(self.name).with_name("closed").touch() if self.name.startswith("/") else None


@pytest.fixture(autouse=True)
def _real(worker_of_its_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def until(is_so: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has waited for yet has ended as well."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_values_and_errors_of_ours_come_back_as_they_are(worker: Worker) -> None:
    thing = worker.create(Thing)
    vector, named = thing.call("part.echo", np.float32([1, 2]), {"a": frozenset({3})})
    assert (vector.dtype, vector.tolist(), named) == (np.float32, [1.0, 2.0], {"a": frozenset({3})})
    assert thing.call("pid") == worker.pid != os.getpid()
    with pytest.raises(BadInput, match=r"^not this one$"):
        thing.call("refuse")
    with pytest.raises(BadInput, match="no such thing"):
        worker.create(Thing, "broken")
    with pytest.raises(RuntimeError, match="KeyError: 'a bug'"):
        thing.call("fail")
    with pytest.raises(RuntimeError, match="pickle"):
        thing.call("unpicklable")
    assert thing.call("echo") == ()


def test_a_function_is_called_here_and_its_error_is_the_callers(worker: Worker) -> None:
    thing = worker.create(Thing)
    assert thing.call("wait_for", ask=lambda number: (number, os.getpid())) == (7, os.getpid())

    def refuse(_number: int) -> None:
        raise LookupError("ours")

    with pytest.raises(LookupError, match="ours"):
        thing.call("wait_for", ask=refuse)
    assert thing.call("echo", 1) == (1,)


def test_calls_run_side_by_side(worker: Worker) -> None:
    thing = worker.create(Thing)
    is_asked, may_end = threading.Event(), threading.Event()

    def ask(number: int) -> int:
        is_asked.set()
        may_end.wait(60)
        return number

    slow = threading.Thread(target=thing.call, args=("wait_for",), kwargs={"ask": ask})
    slow.start()
    assert is_asked.wait(60)
    assert worker.is_busy
    assert thing.call("echo", "meanwhile") == ("meanwhile",)
    may_end.set()
    slow.join()
    assert not worker.is_busy


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_crash_ends_the_call_and_the_next_object_has_a_new_process(worker: Worker, number: signal.Signals) -> None:
    thing = worker.create(Thing)
    was = worker.pid
    with pytest.raises(ChildProcessError, match=f"its process has ended .{number.name}"):
        thing.call("end", number)
    assert (thing.is_alive, worker.pid) == (False, None)
    with pytest.raises(ChildProcessError):
        thing.call("echo")
    assert worker.create(Thing).call("pid") not in (None, was)


def test_a_kill_between_two_calls_is_seen_by_the_next(worker: Worker) -> None:
    thing = worker.create(Thing)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="SIGKILL"):
        thing.call("echo")


def test_a_library_that_cannot_be_loaded_ends_the_process(worker: Worker) -> None:
    """As numpy, once the disk has failed in the middle of its import."""
    thing = worker.create(Thing)
    pid = worker.pid
    assert pid is not None
    with pytest.raises(Retry, match=r"a library cannot be loaded: .*sqlite3.*; try again"):
        thing.call("load_in_part")
    until(lambda: is_gone(pid))
    with pytest.raises(Retry, match="has ended"):
        thing.call("echo")
    assert not thing.is_alive
    assert worker.create(Thing).call("pid") != pid


def test_a_process_that_ends_itself_is_no_crash_to_the_other_calls(worker: Worker) -> None:
    thing = worker.create(Thing)
    is_asked, errors = threading.Event(), list[BaseException]()

    def ask(number: int) -> int:
        is_asked.set()
        with pytest.raises(Retry, match="cannot be loaded"):
            thing.call("load_in_part")
        until(lambda: not thing.is_alive)
        return number

    def wait() -> None:
        try:
            thing.call("wait_for", ask=ask)
        except BaseException as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(120)
    assert is_asked.is_set()
    assert [type(error) for error in errors] == [Retry]
    assert not thing.has_crashed


def test_what_takes_too_long_to_make_is_killed(worker: Worker) -> None:
    worker.create(Thing)
    pid = worker.pid
    assert pid is not None
    with pytest.raises(ChildProcessError, match=r"no answer in 0\.2 s"):
        worker.create(Thing, "slow", timeout_s=0.2)
    assert is_gone(pid)


def test_a_call_that_hangs_ends_with_its_process(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    thing, pid = worker.create(Thing), worker.pid
    assert pid is not None
    monkeypatch.setattr(workers, "_ANSWER_S", 0.2)
    with pytest.raises(ChildProcessError, match=r"no answer in 0\.2 s"):
        thing.call("end", signal.SIGSTOP)
    assert is_gone(pid)


def test_a_terminals_and_systemds_signals_do_not_end_it(worker: Worker) -> None:
    thing = worker.create(Thing)
    assert worker.pid is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(worker.pid, number)
    assert thing.call("echo", 1) == (1,)
    assert os.getpgid(worker.pid) != os.getpgid(0)


def test_its_end_closes_what_it_has(worker: Worker, tmp_path: Path) -> None:
    worker.create(Thing, str(tmp_path / "thing"))
    pid = worker.pid
    assert pid is not None
    worker.end()
    assert (is_gone(pid), (tmp_path / "closed").exists()) == (True, True)
    worker.end()


def test_what_it_prints_is_logged(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.create(Thing).call("say", "a library complains")
    worker.end()
    assert [record.message for record in caplog.records if record.name == "daemon.worker"] == [
        "worker: a library complains"
    ]


def test_a_process_that_cannot_be_started_is_tried_again_later(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Retry, match="no process can be started"):
        worker.create(Thing)


def test_a_process_that_does_not_start_is_no_crash(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the package is being upgraded: Python ends with an exit status."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Retry, match=r"does not start .exit status 1."):
        worker.create(Thing)


def test_a_process_of_another_version_is_not_used(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an upgrade beneath a running service: the new model's vectors would count as the old one's."""
    monkeypatch.setattr(workers, "__version__", "0.0.1")
    with pytest.raises(Retry, match="restart Reconstitute if it was upgraded"):
        worker.create(Thing)
    assert "started by version 0.0.1" in caplog.text


def test_a_lack_of_descriptors_does_not_end_it(worker: Worker) -> None:
    thing = worker.create(Thing)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def ask(_number: int) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(Retry, match=r"cannot be reached: .*Too many open files"):
                thing.call("echo")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    thing.call("wait_for", ask=ask)
    assert thing.call("echo", 1) == (1,)


PARENT = """
    import sys, threading, time
    from daemon.worker import Worker
    from tests.unit.test_worker import Thing

    worker = Worker()
    thing = worker.create(Thing, sys.argv[1])
    print(worker.pid, flush=True)
    if sys.argv[2] == "busy":
        threading.Thread(target=thing.call, args=("end", 0), daemon=True).start()
    time.sleep(600)
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_it_ends_when_its_parent_is_killed(tmp_path: Path, state: str) -> None:
    arguments = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path / "thing"), state]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    until(lambda: is_gone(pid))
    assert (tmp_path / "closed").exists()


def test_nothing_is_imported_from_the_current_directory(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "socket.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    assert worker.create(Thing).call("echo", 1) == (1,)
