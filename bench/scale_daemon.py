"""The real daemon over a folder of invented data: started, waited for, asked over its socket, stopped.

A place keeps everything beneath one folder: `opencode/` (made by scale_data), `archive/`, `reconstitute.toml`, a home
of its own. The daemon runs from a checkout, this one or another, so two versions can be measured on the same archive.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

_RESTING_S, _RESTING_MS = 3, 20
CHECKOUT = Path(__file__).resolve().parents[1]


def end_cleanly() -> None:
    """Let SIGTERM unwind the stack, so that no daemon is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Place:
    """Where one daemon's files are; `checkout` is the code that runs."""

    def __init__(self, root: Path, checkout: Path = CHECKOUT) -> None:
        self.root, self.checkout = root.resolve(), checkout.resolve()
        self.opencode, self.archive = self.root / "opencode", self.root / "archive"
        self.config = self.root / "reconstitute.toml"

    def prepare(self) -> None:
        (self.root / "home").mkdir(parents=True, exist_ok=True)
        tables: dict[str, dict[str, Any]] = {
            "opencode": {"data_dir": self.opencode},
            "archive": {"dir": self.archive},
            "output": {"dir": self.root / "output"},
            "embedding": {"provider": "builtin"},
            "chat": {"provider": "none"},
        }
        lines = []
        for name, table in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(str(value))}" for key, value in table.items())]
        self.config.write_text("\n".join(lines) + "\n")

    def sizes(self) -> dict[str, float]:
        """MB on the disk of the archive's parts."""
        if not self.archive.is_dir():
            return {}
        parts = {entry.name: _bytes(entry) / 1e6 for entry in self.archive.iterdir()}
        return {name: round(size, 1) for name, size in sorted(parts.items()) if size > 0.1}


def _bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


class Daemon:
    """`reconstitute run` as a process; a context manager that stops it.

    `embedding`: real, or what scale_fill makes of it.
    """

    def __init__(self, place: Place, *, embedding: str = "real", nice: int = 0) -> None:
        self.place = place
        self.runtime = Path(tempfile.mkdtemp(prefix="rcb-"))
        self.socket = self.runtime / "reconstitute" / "control.sock"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place.root / "home"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": str(place.checkout),
            "SCALE_EMBEDDING": embedding,
            "LANG": "C.UTF-8",
        }
        self._program = [str(CHECKOUT / "bench" / "scale_fill.py")] if embedding != "real" else ["-m", "daemon.cli"]
        self._nice = nice
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, *self._program, "--config", str(self.place.config), *arguments]

    def __enter__(self) -> Self:
        self.place.prepare()
        with (self.place.root / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["nice", "-n", str(self._nice), *self.command("run")], cwd=self.place.checkout, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        return self

    def __exit__(self, *error: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self.runtime, ignore_errors=True)

    def status(self) -> dict[str, Any]:
        wire = Wire(self.socket)
        try:
            code, answer = wire.ask("GET", "/status")
        finally:
            wire.close()
        if code != 200:
            raise RuntimeError(f"status: {code} {answer}")
        return dict(answer)

    def wait(self, ready: Callable[[dict[str, Any]], bool], timeout_s: float, every_s: float = 0.5) -> float:
        """Seconds until the status is as wanted; RuntimeError, with the log's end, when it ended or never was."""
        begun = time.monotonic()
        while time.monotonic() - begun < timeout_s:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(f"the daemon ended with {self.process.returncode}: {self.log_end()}")
            try:
                if ready(self.status()):
                    return time.monotonic() - begun
            except OSError:
                pass  # not listening yet, or too busy to answer in time
            time.sleep(every_s)
        raise RuntimeError(f"not ready after {timeout_s:.0f} s: {self.log_end()}")

    def log_end(self) -> str:
        return (self.place.root / "daemon.log").read_text(errors="replace")[-2000:]

    def processor_ms(self) -> float:
        """Milliseconds of processor time it has had, threads that have ended included."""
        assert self.process is not None
        # Linux gives every process a clock of its own, whose number is made from the process's.
        return time.clock_gettime_ns((~self.process.pid << 3) | 2) / 1e6

    def settle(self, timeout_s: float = 300) -> None:
        """Wait until it rests: after its start it looks through the whole record once, for seconds."""
        resting, deadline = 0, time.monotonic() + timeout_s
        while resting < _RESTING_S and time.monotonic() < deadline:
            had = self.processor_ms()
            time.sleep(1)
            resting = resting + 1 if self.processor_ms() - had < _RESTING_MS else 0

    def memory(self) -> dict[str, float]:
        """Resident MB now, the most it was, and without the pages of files that are mapped."""
        assert self.process is not None
        fields = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            if ":" in line
        )
        names = {"now": "VmRSS", "most": "VmHWM", "own": "RssAnon"}
        return {name: round(int(fields[key].split()[0]) / 1024) for name, key in names.items()}


class Wire(http.client.HTTPConnection):
    """The control socket by the standard library's HTTP client, so that little of a time is the client's.

    A connection is kept as long as the server keeps it.
    """

    def __init__(self, path: Path, timeout_s: float = 120) -> None:
        super().__init__("reconstitute", timeout=timeout_s)
        self._path = str(path)

    def connect(self) -> None:
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(self.timeout)
        try:
            wire.connect(self._path)
        except OSError:
            wire.close()
            raise
        self.sock = wire

    def ask(self, method: str, where: str, body: Any = None) -> tuple[int, Any]:
        """Status code and the answer's JSON."""
        try:
            self.request(method, where, None if body is None else json.dumps(body).encode())
            response = self.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
