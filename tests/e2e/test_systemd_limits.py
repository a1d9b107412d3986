"""The service under a real user manager when it is killed, stopped, or short of memory or space, in each phase."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import CHECKOUT, Daemon, until
from tests.support.processes.installed_service import STOP_S, UNIT, Service, installed
from tests.support.processes.user_manager import UserManager, user_manager
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore

MESSAGES = 300
CHAT = "talker:latest"
MB = 1 << 20


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserManager]:
    with user_manager(tmp_path_factory.mktemp("manager")) as running:
        yield running


@pytest.fixture
def store(data_dir: Path) -> JsonStore:
    return JsonStore(data_dir)


@pytest.fixture
def answering() -> threading.Event:
    """Once it is set, the chat model answers."""
    return threading.Event()


@pytest.fixture
def slow_model(answering: threading.Event) -> Iterator[FakeOllama]:
    """A chat model that never answers, until it does."""
    with FakeOllama({CHAT: "0" * 64}) as server:
        server.capabilities[CHAT] = ["completion", "tools"]
        server.chat_script = lambda _body: answering.wait(300) and ""
        yield server
        answering.set()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon], slow_model: FakeOllama, tmp_path: Path) -> Daemon:
    target = {"path": PROJECT, "questions": ["What was planted?"]}
    chat = {"provider": "ollama", "model": CHAT, "url": slow_model.url}
    return make_daemon(tables={"chat": chat, "output": {"dir": tmp_path / "pages"}}, targets=[target])


@pytest.fixture
def service(manager: UserManager, daemon: Daemon) -> Iterator[Service]:
    with installed(manager, daemon) as service:
        yield service


def converse(store: JsonStore) -> dict[str, str]:
    """Many messages; some of their words, each with the message that it must be found in."""
    talk = Talk(store)
    said = {words(n): talk.ask(f"About {words(n)} and much else. " * 5) for n in range(MESSAGES)}
    return dict(list(said.items())[:: MESSAGES // 5])


def begin(service: Service, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        service.daemon.command(*command),
        cwd=CHECKOUT, env=service.manager.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


PHASES: dict[str, Callable[[dict[str, Any]], object]] = {
    "reading": lambda now: now["archive"]["messages"] > 0,
    "indexing words": lambda now: now["index"]["lexical"]["count"] > 0,
    "embedding": lambda now: now["rates"]["embedded"],
    "pages": lambda now: now["jobs"]["running"],
    "backup": lambda now: now["outbox"]["lexical"] == 0 and now["archive"]["messages"] >= MESSAGES,
    "forgetting": lambda now: now["outbox"]["lexical"] == 0 and now["archive"]["messages"] >= MESSAGES,
}


def reach(service: Service, phase: str, tmp_path: Path) -> list[subprocess.Popen[bytes]]:
    """Return when the service is in this phase; the commands that it works for."""
    if phase == "pages":
        service.daemon.drop_request("garden.txt", f"{PROJECT}\n")
    service.until_status(PHASES[phase], phase)
    commands = {"backup": ("backup", str(tmp_path / "backup")), "forgetting": ("forget", "ses_gone", "--yes")}
    begun = [begin(service, *commands[phase])] if phase in commands else []
    time.sleep(0.7 if begun else 0)
    return begun


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_it_starts_again_and_has_lost_nothing(
    service: Service, store: JsonStore, answering: threading.Event, tmp_path: Path, phase: str
) -> None:
    Talk(store, "ses_gone", "/home/dev/elsewhere").ask(f"About {words(9999)}.")
    said = converse(store)
    begun = reach(service, phase, tmp_path)
    service.kill(signal.SIGKILL)
    for process in begun:
        process.wait(240)
    service.until_status(lambda now: now["archive"]["messages"] >= MESSAGES, "everything archived")
    assert service.daemon.wait_until_found(said).keys() == said.keys()
    assert service.manager.show(UNIT, "NRestarts")["NRestarts"] == "1"
    for name, command in (("backup", ("backup", "--check", str(tmp_path / "backup"))), ("forgetting", ())):
        if name == phase and command:
            assert service.reconstitute("backup", str(tmp_path / "backup")).returncode == 0
            assert service.reconstitute(*command).returncode == 0
    if phase == "forgetting":
        answering.set()  # a run under way makes way at its next step, after the answer that it waits for
        service.reconstitute("forget", "ses_gone", "--yes")
        assert not service.daemon.search(words(9999))


@pytest.mark.parametrize("phase", ["pages", "backup", "forgetting"])
def test_it_stops_in_time_also_in_long_work(service: Service, store: JsonStore, tmp_path: Path, phase: str) -> None:
    Talk(store, "ses_gone", "/home/dev/elsewhere").ask(f"About {words(9999)}.")
    converse(store)
    begun = reach(service, phase, tmp_path)
    since = time.monotonic()
    assert service.manager.systemctl("stop", UNIT).returncode == 0
    assert time.monotonic() - since < STOP_S
    for process in begun:
        process.wait(240)
    facts = service.manager.show(UNIT, "Result", "ActiveState", "ExecMainStatus")
    assert facts == {"Result": "success", "ActiveState": "inactive", "ExecMainStatus": "0"}


def test_a_reload_in_long_work_starts_the_same_process_anew(service: Service, store: JsonStore, tmp_path: Path) -> None:
    converse(store)
    reach(service, "pages", tmp_path)
    before, pid = service.daemon.status(), service.pid
    service.daemon.configure({"limits": {"pages": 7}})
    assert service.manager.systemctl("reload", UNIT).returncode == 0
    service.until_status(lambda now: now["started"] != before["started"], "the reload")
    assert service.manager.show(UNIT, "NRestarts", "ActiveState") == {"NRestarts": "0", "ActiveState": "active"}
    assert service.pid == pid


def test_at_its_memory_limit_it_goes_on_by_words_and_loses_nothing(
    manager: UserManager, make_daemon: Callable[..., Daemon], store: JsonStore
) -> None:
    """The process with the model is the largest; the kernel ends it."""
    with installed(manager, make_daemon(tables={"embedding": {"provider": "builtin"}})) as service:
        if not manager.show(UNIT, "MemoryCurrent")["MemoryCurrent"].isdecimal():
            pytest.skip("no memory controller for a user's services on this machine")
        first = Talk(store).ask(f"About {words(1)}.")
        assert service.daemon.wait_until_found({words(1): first})
        used = int(_status_kb(service.pid, "VmRSS")) << 10
        service.change(f"MemoryHigh=infinity\nMemoryMax={used + 60 * MB}\nMemorySwapMax=0")
        second = Talk(store, "ses_0002").ask(f"About {words(2)}.")
        assert service.daemon.wait_until_found({words(2): second})
        status = service.until_status(lambda now: now["errors"], "the lack of memory")
        assert status["outbox"]["semantic"]
        assert {error["where"] for error in status["errors"]} <= {"embedding", "index", "semantic index"}
        service.change("MemoryHigh=1G\nMemoryMax=2G")
        until(lambda: service.daemon.status()["outbox"]["semantic"] == 0, what="the embedding")
        assert service.daemon.wait_until_found({words(1): first, words(2): second})


def _status_kb(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    manager: UserManager, make_daemon: Callable[..., Daemon], store: JsonStore
) -> None:
    """The archive is on a small disk that the manager's services see."""
    daemon = make_daemon(tables={"limits": {"free_mb": 4}})
    place = daemon.archive_dir
    place.mkdir(mode=0o700)
    within = ("nsenter", "--mount", f"--target={manager.process.pid if manager.process else 0}")
    subprocess.run([*within, "mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", str(place)], check=True)
    try:
        with installed(manager, daemon) as service:
            pid, first = service.pid, Talk(store).ask(f"About {words(1)}.")
            assert daemon.wait_until_found({words(1): first})
            daemon.wait_until_drained()
            fill = f"head -c 64M /dev/zero > {place}/filler; true"
            subprocess.run([*within, "sh", "-c", fill], check=True, stderr=subprocess.DEVNULL)
            second = Talk(store, "ses_0002").ask(f"About {words(2)}.")
            service.until_status(lambda now: now["disk"] and "intake" in now["disk"]["paused"], "the wait")
            until(lambda: "free space" in manager.show(UNIT, "StatusText")["StatusText"], what="what systemd is told")
            assert daemon.search(words(1))
            subprocess.run([*within, "rm", f"{place}/filler"], check=True)
            assert daemon.wait_until_found({words(2): second})
            status = service.until_status(lambda now: now["disk"] is None, "nothing waits")
            assert (service.pid, status["archive"]["messages"]) == (pid, 2)
            assert manager.show(UNIT, "NRestarts")["NRestarts"] == "0"
    finally:
        with suppress(subprocess.CalledProcessError):
            subprocess.run([*within, "umount", str(place)], check=True)
