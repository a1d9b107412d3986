"""The command line as people and scripts meet it: a process of its own, asking a scripted service over a real socket."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.processes import forked_program


@dataclass
class Cli:
    """Runs `reconstitute` in a process of its own."""

    service: Any
    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        if not any(name.startswith("PYTHON") for name in environment):  # those are read at an interpreter's start
            return forked_program.run(words, self.env(**environment), 60, cwd=self.home, errors="replace")
        return subprocess.run(
            [sys.executable, "-m", "daemon.cli", *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=self.home,
            env=self.env(**environment),
            timeout=60,
        )

    def env(self, **more: str) -> dict[str, str]:
        source = str(Path(__file__).parents[3])
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.home / "run"), "PYTHONPATH": source, "COLUMNS": "80"} | more

    def on_terminal(self, *words: str, **environment: str) -> str:
        """What a person sees: stdout and stderr on a terminal."""
        mine, theirs = pty.openpty()
        env = {k: v for k, v in self.env(TERM="xterm", **environment).items() if v != "-"}
        with subprocess.Popen(
            [sys.executable, "-m", "daemon.cli", *words], stdout=theirs, stderr=theirs, cwd=self.home, env=env
        ) as process:
            os.close(theirs)
            seen = b""
            while True:
                try:
                    piece = os.read(mine, 65536)
                except OSError:
                    break
                if not piece:
                    break
                seen += piece
        os.close(mine)
        assert process.returncode == 0, seen
        return seen.decode()
