"""System calls that fail, or at which a process is killed: the n-th of a sort, by strace, which also says which it was.

strace works on the system calls themselves, so it reaches LevelDB, tantivy, Chroma and SQLite as well as Python, and its
log names each call that it made fail. `n` is counted in each thread.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ATTACH_S = 20.0
_INJECTED = re.compile(r"^(?:\d+ +)?(?:<\.\.\. )?(\w+)(?: resumed>|\().*\(INJECTED\)$")

SYNC, WRITE, RENAME = "fsync,fdatasync,msync", "write,pwrite64,writev,pwritev", "rename,renameat,renameat2"
REMOVE, OPEN, READ, CUT = "unlink,unlinkat", "openat", "pread64", "ftruncate,fallocate"
FOLDER = "mkdir,mkdirat,rmdir"
ERRORS = {
    SYNC: ("EIO", "ENOSPC", "EDQUOT"), WRITE: ("EIO", "ENOSPC", "EDQUOT"), RENAME: ("EIO", "ENOSPC", "EACCES"),
    REMOVE: ("EIO", "EACCES"), OPEN: ("EMFILE", "EIO", "EACCES", "ENOSPC"), READ: ("EIO",), CUT: ("EIO", "ENOSPC"),
    FOLDER: ("EIO", "ENOSPC", "EACCES"),
}  # fmt: skip
"""The sorts of calls, each with errors that a disk or the system's limits give it."""


@dataclass(frozen=True)
class KillPoint:
    """The process is killed when it enters one of these calls; with paths in the archive, only a call on one of them."""

    calls: str
    paths: tuple[str, ...] = ()
    most: int = 6
    """The highest n."""


POINTS = {
    "the archive writes its log": KillPoint("write", ("leveldb/*.log",)),
    "the archive syncs its log": KillPoint("fsync,fdatasync", ("leveldb/*.log",)),
    "the archive has a new manifest": KillPoint(RENAME, ("leveldb/CURRENT",), 1),
    "the lexical index commits": KillPoint(RENAME, ("index/lexical/meta.json", "index/lexical/.managed.json"), 3),
    "Chroma commits": KillPoint("pwrite64,fdatasync,fsync", ("index/semantic/chroma.sqlite3*",)),
    "a large record is kept": KillPoint("fsync,fdatasync," + RENAME, ("large", "large/*"), 2),
    "crashes are counted": KillPoint(RENAME, ("crashes.json",), 1),
    "any file is synced": KillPoint(SYNC, most=20),
    "any file is renamed": KillPoint(RENAME, most=8),
    "any file is removed": KillPoint(REMOVE, most=8),
    "any file is written": KillPoint(WRITE, most=60),
    "any file is cut": KillPoint(CUT, most=2),
    "any folder is made": KillPoint(FOLDER, most=4),
}


def lacks() -> str:
    """Why no call can be made to fail here; empty where it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    tried = subprocess.run(
        ["strace", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.decode().strip()}"


@contextmanager
def failing(pids: Sequence[int], calls: str, error: str, when: str, log: Path) -> Iterator[None]:
    """Meanwhile these calls of the processes and their new children fail; `when` is strace's: `3`, `3+`, `1..5`."""
    with _tracing(pids, calls, f"error={error}:when={when}", (), log):
        yield


@contextmanager
def killing(pids: Sequence[int], point: KillPoint, number: int, archive: Path, log: Path) -> Iterator[None]:
    """Meanwhile each of the processes is killed at this point, at the n-th call of a thread."""
    paths = [str(path) for name in point.paths for path in sorted(archive.glob(name)) or [archive / name]]
    with _tracing(pids, point.calls, f"signal=KILL:when={number}", paths, log):
        yield


def injected(log: Path) -> Counter[str]:
    """How often each call was really made to fail, as strace says."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return Counter(match[1] for line in lines if (match := _INJECTED.match(line)))


@contextmanager
def _tracing(pids: Sequence[int], calls: str, inject: str, paths: Sequence[str], log: Path) -> Iterator[None]:
    words = ["strace", "-f", "-qq", "-y", "-o", str(log), "-e", f"trace={calls}", "-e", f"inject={calls}:{inject}"]
    words += [word for path in paths for word in ("-P", path)] + [word for pid in pids for word in ("-p", str(pid))]
    tracer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + _ATTACH_S
        while not all(map(_is_traced, pids)) and tracer.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        yield
    finally:
        tracer.send_signal(signal.SIGINT)  # it lets go of the processes, which go on
        try:
            tracer.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            tracer.kill()
            tracer.communicate()


def _is_traced(pid: int) -> bool:
    try:
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has ended, and nothing is left to wait for
