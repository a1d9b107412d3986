"""The system refuses to read a file or folder, really, for as long as a test needs it."""

from __future__ import annotations

import codecs
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def nobodys_folder() -> Iterator[Path]:
    """A folder of this process, which is not root's for as long: root may read everything."""
    made = Path(tempfile.mkdtemp(prefix="rc-"))
    is_root = os.geteuid() == 0
    codecs.lookup("ascii")  # loaded now, because nobody may not read where root's Python lies
    if is_root:
        os.chown(made, NOBODY, -1)
        os.seteuid(NOBODY)
    try:
        yield made
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(made)


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """While a lease on the file is held, nobody else can open it without waiting; nothing of it changes."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)
