"""The guard of the semantic index in forks of one process that has imported Chroma.

`health.healthy` starts a Python of its own each time, most of whose work is to import Chroma. A fork runs the same code
in a process of its own, which may crash or be killed. What starts the real one: tests that take `guard_of_its_own`
(tests/unit/conftest.py), and every daemon that is a process.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from daemon.index.semantic import health

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["chromadb.api.rust", __name__])


@contextmanager
def forking() -> Iterator[None]:
    """Have `health` do its work in forks meanwhile."""
    forked = SimpleNamespace(run=_run, TimeoutExpired=subprocess.TimeoutExpired)
    with mock.patch.object(health, "subprocess", forked):
        yield


def _run(command: Sequence[str], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` for the one command that `health` runs."""
    arguments = command[command.index(health.__name__) + 1 :]
    descriptor, errors = tempfile.mkstemp()
    os.close(descriptor)
    try:
        process = _FORKS.Process(target=_work, args=(arguments, options["input"], errors))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(command), timeout)
        return subprocess.CompletedProcess(command, process.exitcode, "", Path(errors).read_text("utf-8"))
    finally:
        os.unlink(errors)


def _work(arguments: Sequence[str], given: str, errors: str) -> None:
    descriptor = os.open(errors, os.O_WRONLY)
    os.dup2(descriptor, sys.stderr.fileno())
    os.close(descriptor)
    sys.stdin = io.StringIO(given)
    sys.exit(health._main(arguments))
