"""A stop at any moment ends within its time with success, and the next start has everything; systemd is told the truth
about both ends."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import Database, JsonStore

BUDGET_S = 240
MANY = 1800
FILES = 500
CANARY = "The quick brown fox jumps over the lazy dog."


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama(dims=512) as running:
        yield running


def embedding(server: FakeOllama, **more: Any) -> dict[str, Any]:
    return {"embedding": {"provider": "ollama", "model": "embedder", "url": server.url, **more}}


def big(data_dir: Path, sessions: int = 1) -> None:
    """MANY messages in one database, in so many sessions."""
    database = Database(data_dir / "opencode.db")
    database.execute("BEGIN")
    for number in range(sessions):
        talk = Talk(database, f"ses_{number:04d}")
        for _ in range(MANY // sessions):
            talk.ask(f"About {words(number)} and much else. " * 5)
    database.execute("COMMIT")
    database.close()


def stopped(daemon: Daemon) -> None:
    code, _ = daemon.terminate(BUDGET_S)
    assert code == 0, daemon.log_end()


# -- every phase ---------------------------------------------------------------------------------------------------


def test_a_stop_during_the_start_leaves_the_next_start_unharmed(daemon: Daemon, data_dir: Path) -> None:
    told = Talk(JsonStore(data_dir)).ask(f"About {words(1)}.")
    for moment in (lambda: True, (daemon.archive_dir / "daemon.lock").exists, daemon.socket.exists):
        daemon.start(fork=False)
        until(moment)
        code, _ = daemon.terminate(BUDGET_S)
        # Before Python has come to our first line, the signal's own default ends it; systemd counts that as success.
        assert code in (0, -signal.SIGTERM), daemon.log_end()
        (daemon.archive_dir / "daemon.lock").unlink(missing_ok=True)
    daemon.run()
    until(lambda: [hit["messageID"] for hit in daemon.search(words(1))] == [told])


@pytest.mark.parametrize("sessions", [1, 300])
def test_a_stop_in_the_first_scan_of_a_big_store_loses_nothing(daemon: Daemon, data_dir: Path, sessions: int) -> None:
    big(data_dir, sessions)
    daemon.run()
    until(lambda: daemon.status()["archive"]["messages"])
    stopped(daemon)

    daemon.run()
    until(lambda: daemon.status()["archive"]["messages"] == MANY)
    until(lambda: daemon.status()["outbox"]["lexical"] == 0)
    assert {hit["sessionID"] for hit in daemon.search(words(sessions - 1))} == {f"ses_{sessions - 1:04d}"}
    stopped(daemon)


def test_a_stop_while_a_client_has_everything_indexed_breaks_no_index(daemon: Daemon, data_dir: Path) -> None:
    big(data_dir, 300)
    daemon.run()
    until(lambda: daemon.status()["archive"]["messages"])
    lines: list[str] = []

    def index() -> None:
        with daemon.client() as client, client.stream("POST", "/index", json={}, timeout=240) as answer:
            lines.extend(answer.iter_lines())

    asking = threading.Thread(target=index)
    asking.start()
    until(lambda: lines)
    stopped(daemon)
    asking.join(30)

    assert "the daemon is stopping" in lines[-1]
    daemon.run()
    until(lambda: daemon.status()["archive"]["messages"] == MANY)
    stopped(daemon)
    assert "parked" not in daemon.log_path.read_text()
    assert "Traceback" not in daemon.log_path.read_text()


def test_a_stop_in_the_middle_of_embedding_loses_nothing(
    server: FakeOllama, make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    server.delay_s = 0.2
    talk = Talk(JsonStore(data_dir))
    told = {f"About {words(n)}.": talk.ask(f"About {words(n)}.") for n in range(60)}
    daemon = make_daemon(tables=embedding(server, batch=4)).run()
    until(lambda: len(server.embedded()) > 10)
    stopped(daemon)

    server.delay_s = 0
    daemon.run()
    daemon.wait_until_drained()
    counts = Counter(text for text in server.embedded() if text != CANARY)
    assert set(counts.values()) == {1}  # what was under way was waited for and kept
    with daemon.client() as client:
        for text, message_id in told.items():
            assert message_id in [hit["messageID"] for hit in daemon.search_with(client, text, "semantic", 3)]
    stopped(daemon)


def test_a_stop_during_a_run_requeues_the_request_for_the_next_start(daemon: Daemon, data_dir: Path) -> None:
    database = Database(data_dir / "opencode.db")
    database.execute("BEGIN")
    talk = Talk(database)
    for number in range(FILES):
        talk.write(f"{PROJECT}/{number % 40}/{number}.md", f"{words(number)}\n" * 20)
    database.execute("COMMIT")
    database.close()
    daemon.run()
    until(lambda: daemon.status()["archive"]["messages"] == FILES and daemon.status()["outbox"]["lexical"] == 0)
    daemon.drop_request("garden.txt", f"{PROJECT}\n")
    # Looked for on the disk: a daemon that is at work may answer only when the run is over.
    until(lambda: any(name.startswith("running/") for name in daemon.request_files()))
    stopped(daemon)
    assert daemon.request_files() == ["running/0.garden.txt"]

    daemon.run()
    (result,) = daemon.wait_for_results(1)
    assert result.parent.name == "done"
    page = daemon.output_dir / PROJECT[1:] / str((FILES - 1) % 40) / f"{FILES - 1}.md.md"
    assert words(FILES - 1) in page.read_text()


def test_a_model_that_never_answers_delays_the_end_but_does_not_prevent_it(
    server: FakeOllama, make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    told = Talk(JsonStore(data_dir)).ask(f"About {words(1)}.")
    server.delay_s = 300
    daemon = make_daemon(tables=embedding(server)).run()
    until(server.embedded)
    stopped(daemon)

    server.delay_s = 0
    daemon.run()
    daemon.wait_until_drained()
    assert daemon.search(f"About {words(1)}.", "semantic", 1)[0]["messageID"] == told


def test_a_second_signal_ends_it_at_once(
    server: FakeOllama, make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    Talk(JsonStore(data_dir)).ask("Wait for the model.")
    server.delay_s = 300
    daemon = make_daemon(tables=embedding(server)).run()
    until(server.embedded)
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in daemon.log_path.read_text())
    code, _ = daemon.terminate()
    assert code == 1
    assert "second signal" in daemon.log_path.read_text()


def test_ctrl_c_is_a_stop_like_any_other(daemon: Daemon) -> None:
    daemon.run()
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.process.wait(BUDGET_S) == 0
    assert "Traceback" not in daemon.log_path.read_text()


# -- what systemd is told --------------------------------------------------------------------------------------------


class Systemd:
    """A notification socket; `lines` are what arrived, in order, and `answered` whether the daemon did at READY."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.lines: list[str] = []
        self.answered: list[int] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(place))
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self.daemon: Daemon | None = None
        self._thread = threading.Thread(target=self._listen)

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                message = self._socket.recv(65536).decode()
            except TimeoutError:
                continue
            if "READY=1" in message and self.daemon is not None:
                with self.daemon.client() as client:
                    self.answered.append(client.get("/status").status_code)
            self.lines += message.splitlines()

    def count(self, line: str) -> int:
        return self.lines.count(line)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


def test_ready_is_said_when_the_socket_answers_and_stopping_at_the_end(
    make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    Talk(JsonStore(data_dir)).ask(f"About {words(1)}.")
    daemon = make_daemon()
    place = daemon.runtime_dir / "notify"
    daemon.environment |= {"NOTIFY_SOCKET": str(place), "WATCHDOG_USEC": "900000"}
    with Systemd(place) as systemd:
        systemd.daemon = daemon
        begun = time.monotonic()
        daemon.start()
        until(lambda: systemd.count("WATCHDOG=1") >= 3)
        assert time.monotonic() - begun < 15
        stopped(daemon)
        until(lambda: systemd.count("STOPPING=1"))
    heard = [line for line in systemd.lines if not line.startswith("STATUS=")]
    assert systemd.answered == [200]
    assert heard[0] == "READY=1"
    assert heard[-1] == "STOPPING=1"
    assert set(heard[1:-1]) == {"WATCHDOG=1"}
    assert any(line.startswith("STATUS=archive open, ") for line in systemd.lines)


def test_without_a_watchdog_no_ping_is_sent(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    place = daemon.runtime_dir / "notify"
    daemon.environment |= {"NOTIFY_SOCKET": str(place)}
    with Systemd(place) as systemd:
        daemon.run()
        until(lambda: any(line.startswith("STATUS=following") for line in systemd.lines))
        stopped(daemon)
        until(lambda: systemd.count("STOPPING=1"))
    assert systemd.count("WATCHDOG=1") == 0
