"""Our daemon as a process of its own, asked over its control socket by a plain HTTP client.

Nothing of the daemon's code runs in the tests' process here, so a wrong protocol shows. The runtime directory is a short
path of its own: a socket's path may have 107 bytes. Waiting is polling with a deadline, `until` for whatever it is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from tests.support.processes import forks

T = TypeVar("T")
CHECKOUT = Path(__file__).resolve().parents[3]


def until(ask: Callable[[], T], timeout_s: float = 240, what: str = "") -> T:
    """What `ask` answers as soon as that is true; AssertionError with the last answer when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or 'it'} did not come true within {timeout_s} s; the last answer: {answer!r}")
        time.sleep(0.05)


SETTLED = frozenset({"ready", "built; opened when it is needed", "opened when it is needed"})
"""States of a semantic index that needs no work."""


class Daemon:
    """`reconstitute run` over one data directory; it may be killed and started again over the same archive.

    `tables` are added to the configuration, table by table and key by key; `targets` become its [[targets]].
    Its processes are forks of one that has done the imports (see forks), unless a start says otherwise.
    """

    def __init__(
        self,
        opencode_data: Path,
        root: Path,
        *,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        targets: Sequence[Mapping[str, Any]] = (),
        environment: Mapping[str, str] | None = None,
        make_data_dir: bool = True,
    ) -> None:
        self.archive_dir, self.output_dir = root / "archive", root / "output"
        self.requests_dir = self.archive_dir / "requests"
        self.log_path = root / "daemon.log"
        self.runtime_dir = Path(tempfile.mkdtemp(prefix="rc-"))
        self.socket = self.runtime_dir / "reconstitute" / "control.sock"
        self.config = root / "reconstitute.toml"
        (root / "home").mkdir(parents=True)
        self._tables: dict[str, dict[str, Any]] = {
            "opencode": {"data_dir": opencode_data},
            "archive": {"dir": self.archive_dir},
            "output": {"dir": self.output_dir},
            "embedding": {"provider": "builtin"},
            "chat": {"provider": "none"},
        }
        self.configure(tables or {}, targets)
        if make_data_dir:
            # The watched directory comes before OpenCode's first record, as on a machine where both are new.
            opencode_data.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_RUNTIME_DIR": str(self.runtime_dir),
            "LANG": "C.UTF-8",
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | forks.Service | None = None
        self._groups: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def configure(self, tables: Mapping[str, Mapping[str, Any]], targets: Sequence[Mapping[str, Any]] = ()) -> None:
        """Write the configuration: what it was, with `tables` over it, and these targets."""
        for name, table in tables.items():
            self._tables.setdefault(name, {}).update(table)
        lines = []
        for header, table in [
            *((f"[{name}]", t) for name, t in self._tables.items()),
            *(("[[targets]]", t) for t in targets),
        ]:
            lines += [header, *(f"{key} = {_toml(value)}" for key, value in table.items())]
        self.config.write_text("\n".join(lines) + "\n")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "daemon.cli", *self._words(*arguments)]

    def _words(self, *arguments: str) -> list[str]:
        return ["--config", str(self.config), *arguments]

    def ask(self, *arguments: str, timeout_s: float = 240, cwd: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
        """Another `reconstitute` process with the same configuration, to its end."""
        done = forks.command(*self._words(*arguments), cwd=cwd, environment=self.environment, timeout_s=timeout_s)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *, fork: bool = True) -> None:
        """Start it, by a fork or in a new interpreter, and return at once."""
        self._forget_ended()
        if fork:
            words = self._words("run")
            self.process = forks.Service(*words, cwd=CHECKOUT, environment=self.environment, log=self.log_path)
        else:
            with self.log_path.open("ab") as log:
                self.process = subprocess.Popen(
                    self.command("run"),
                    cwd=CHECKOUT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        self._groups.append(self.process.pid)

    def run(self, *, fork: bool = True) -> Self:
        """Start it, by a fork or in a new interpreter, and return when it answers."""
        self.start(fork=fork)
        self.wait_until_ready()
        return self

    def wait_until_ready(self, timeout_s: float = 240) -> None:
        """Return when it answers; AssertionError, with its log's end, when it ended or does not."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            assert self.process is not None
            code = self.process.poll()
            assert code is None, f"the daemon ended with {code}:\n{self.log_end()}"
            if self._listens():
                self.status()
                return
            time.sleep(0.02)
        raise AssertionError(f"the daemon did not answer within {timeout_s} s:\n{self.log_end()}")

    def _listens(self) -> bool:
        # Asked with a bare socket: httpx leaves one open for every connection that is refused.
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(str(self.socket)) == 0

    def log_end(self) -> str:
        return self.log_path.read_text(errors="replace")[-4000:] if self.log_path.exists() else ""

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        # Reading the system's certificates would take 19 ms each time, and `until` asks often.
        transport = httpx.HTTPTransport(uds=str(self.socket), verify=False)
        with httpx.Client(transport=transport, base_url="http://local", timeout=240) as client:
            yield client

    def status(self) -> dict[str, Any]:
        with self.client() as client:
            answer = client.get("/status")
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()
        return status

    def until_status(self, wanted: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        """The status as soon as it is as wanted; while the daemon changes over, nobody may answer."""

        def asked() -> dict[str, Any] | None:
            # With a bare socket: httpx leaves one open for every connection that is refused.
            try:
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(str(self.socket))
                    sock.sendall(b"GET /status HTTP/1.1\r\nHost: local\r\n\r\n")
                    answer = b"".join(iter(partial(sock.recv, 1 << 16), b""))
            except OSError:
                return None
            head, _, body = answer.partition(b"\r\n\r\n")
            status = json.loads(body) if head.startswith(b"HTTP/1.1 200") else None
            return status if status and wanted(status) else None

        status = until(asked, 60, what)
        assert status is not None
        return status

    def search(self, query: str, mode: str = "literal", limit: int = 5) -> list[dict[str, Any]]:
        with self.client() as client:
            return self.search_with(client, query, mode, limit)

    @staticmethod
    def search_with(client: httpx.Client, query: str, mode: str = "literal", limit: int = 5) -> list[dict[str, Any]]:
        """For callers that search often: one connection for many questions."""
        arguments = {"query": query, "match": mode, "results": limit}
        answer = client.post("/recall/recall", json={"arguments": arguments})
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def wait_until_found(self, wanted: dict[str, str], timeout_s: float = 240) -> dict[str, float]:
        """Token -> seconds until a search for it found its message; tokens not found in time are left out."""
        begun = time.monotonic()
        found: dict[str, float] = {}
        with self.client() as client:
            while len(found) < len(wanted):
                is_over = time.monotonic() - begun > timeout_s
                for token in sorted(wanted.keys() - found.keys(), key=wanted.__getitem__):
                    if any(hit["messageID"] == wanted[token] for hit in self.search_with(client, token)):
                        found[token] = time.monotonic() - begun
                    elif not is_over:
                        break  # later messages are hardly found before it; asking for each would keep the daemon busy
                if is_over:
                    break
                time.sleep(0.05)
        return found

    def wait_until_drained(self, timeout_s: float = 240) -> dict[str, Any]:
        """The status once the semantic index is built and nothing waits in the outbox."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            status = self.status()
            if waiting(status) == 0 and status["index"]["semantic"]["state"] in SETTLED:
                return status
            time.sleep(0.1)
        raise AssertionError(f"the outbox was not empty after {timeout_s} s: {status}")

    def drop_request(self, name: str, text: str) -> None:
        """Put a request file where a person would, written in place; the daemon may be running or not."""
        self.requests_dir.mkdir(parents=True, exist_ok=True)
        (self.requests_dir / name).write_text(text)

    def wait_for_results(self, number: int, timeout_s: float = 240) -> list[Path]:
        """The results beside the requests that ended, done or failed: `number` of them, fewer when the time is over.

        A request follows its result, and is awaited too.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            results = sorted(self.requests_dir.glob("*/*.result.json"))
            followed = [path for path in results if path.with_name(path.name.removesuffix(".result.json")).exists()]
            if len(followed) >= number or time.monotonic() > deadline:
                return results
            time.sleep(0.1)

    def request_files(self) -> list[str]:
        """Every file of the request queue, by its path in there."""
        return sorted(str(p.relative_to(self.requests_dir)) for p in self.requests_dir.rglob("*") if p.is_file())

    def hang_up(self) -> None:
        """SIGHUP, which has it read its configuration again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def terminate(self, timeout_s: float = 240) -> tuple[int, float]:
        """SIGTERM, as systemd sends it: (exit code, seconds it took)."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=timeout_s)
        seconds = time.monotonic() - begun
        self._forget_ended()
        return code, seconds

    def kill(self) -> None:
        """SIGKILL to the daemon alone; what it may have started is left to notice by itself."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=240)
        self._forget_ended()

    def _forget_ended(self) -> None:
        """Keep the groups with a living process; the system gives the number of an empty one to somebody else's."""
        living = {group for _, group in _living()}
        self._groups = [group for group in self._groups if group in living]

    def survivors(self) -> list[int]:
        """Living processes that any start of the daemon has left behind."""
        return [pid for pid, group in _living() if group in self._groups]

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process is not None:
            self.process.kill()  # a fork has its group only once it runs
            self.process.wait(timeout=240)
        shutil.rmtree(self.runtime_dir, ignore_errors=True)


def _toml(value: Any) -> str:
    """A value of the configuration as TOML; JSON's form of texts, numbers, booleans and lists of them will do."""
    return json.dumps(value, default=str)


def waiting(status: dict[str, Any]) -> int:
    """How many messages wait in the outbox, over all its stages."""
    return sum(status["outbox"].values())


def _living() -> Iterator[tuple[int, int]]:
    """(pid, process group) of every process that is not a zombie."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z":
            yield int(stat.parent.name), int(fields[2])
