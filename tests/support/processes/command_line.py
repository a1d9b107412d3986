"""The command line as people and scripts meet it: a process of its own, asking a scripted service over a real socket."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.support.processes import forks


@dataclass
class Cli:
    """Runs `reconstitute` in a process of its own: a fork, or a new Python where `environment` is about Python."""

    service: Any
    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done = self.bytes_of(*words, **environment)
        texts = (printed.decode(errors="replace").replace("\r\n", "\n") for printed in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, *texts)

    def bytes_of(self, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """The same, with what it printed as it is."""
        env = self.env(**environment)
        if not forks.chooses_encodings(environment):
            return forks.command(*words, cwd=self.home, environment=env)
        command = [sys.executable, "-m", "daemon.cli", *words]
        return subprocess.run(command, capture_output=True, check=False, cwd=self.home, env=env, timeout=240)

    def env(self, **more: str) -> dict[str, str]:
        source = str(Path(__file__).parents[3])
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.home / "run"), "PYTHONPATH": source, "COLUMNS": "80"} | more

    def on_terminal(self, *words: str, **environment: str) -> str:
        """What a person sees: stdout and stderr on a terminal."""
        mine, theirs = pty.openpty()
        env = {k: v for k, v in self.env(TERM="xterm", **environment).items() if v != "-"}
        process = forks.on_terminal(os.ttyname(theirs), *words, cwd=self.home, environment=env)
        seen = b""
        # The terminal stays open here, so that it has no end before the process has opened it.
        while mine in wait([mine, process.sentinel], 240) or process.is_alive():
            seen += os.read(mine, 65536)
        code = process.exitcode
        process.close()
        os.close(theirs)
        os.close(mine)
        assert code == 0, seen
        return seen.decode()
