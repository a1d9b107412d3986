"""The service under a real user manager of systemd: it starts, is watched over, is reloaded, crashes, and stops."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import Daemon
from tests.support.processes.installed_service import STOP_S, UNIT, Service, installed
from tests.support.processes.user_manager import UserManager, user_manager
from tests.support.stores.make_opencode import JsonStore

WATCHDOG_S = 10


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserManager]:
    with user_manager(tmp_path_factory.mktemp("manager")) as running:
        yield running


@pytest.fixture
def store(data_dir: Path) -> JsonStore:
    return JsonStore(data_dir)


@pytest.fixture
def service(manager: UserManager, daemon: Daemon) -> Iterator[Service]:
    with installed(manager, daemon) as service:
        yield service


def test_it_is_ready_when_it_answers_and_systemctl_says_so(service: Service, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    assert service.daemon.wait_until_found({words(1): message})
    shown = service.reconstitute("service", "status")
    assert shown.returncode == 0
    assert "active (running)" in shown.stdout
    assert "following OpenCode" in shown.stdout
    assert service.reconstitute("status").returncode == 0


def test_doctor_finds_unit_process_and_restrictions_in_order(service: Service, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    assert service.daemon.wait_until_found({words(1): message})
    done = service.reconstitute("doctor", "--json")
    rows = {row["what"]: row for row in json.loads(done.stdout)["checks"]}
    assert {row["state"] for row in rows.values()} <= {"ok", "not checked"}, rows
    assert (
        "starts at every login" in rows["systemd"]["message"] or "starts with the machine" in rows["systemd"]["message"]
    )
    assert "no new privileges, system calls filtered" in rows["hardening"]["message"]
    assert done.returncode == 0
    service.manager.systemctl("disable", UNIT)
    rows = {row["what"]: row for row in json.loads(service.reconstitute("doctor", "--json").stdout)["checks"]}
    assert (rows["systemd"]["state"], rows["systemd"]["fix"]) == ("attention", f"systemctl --user enable {UNIT}")


def test_what_it_writes_is_for_its_user_alone(service: Service, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    assert service.daemon.wait_until_found({words(1): message})
    everything = [service.daemon.archive_dir, *service.daemon.archive_dir.rglob("*"), service.daemon.socket]
    open_to_others = [str(path) for path in everything if path.lstat().st_mode & 0o077]
    assert open_to_others == []


def test_systemctl_reload_takes_over_a_changed_configuration(service: Service, tmp_path: Path) -> None:
    service.daemon.wait_until_drained()  # what waits for a model is not waited for
    pid = service.pid
    service.daemon.configure({"output": {"dir": tmp_path / "other"}}, targets=[{"path": "/home/dev/shop"}])
    assert service.manager.systemctl("reload", UNIT).returncode == 0
    status = service.until_status(lambda now: now["targets"], "the reload")
    assert (status["pid"], service.pid, service.state) == (pid, pid, "active")


def test_one_that_hangs_is_ended_and_started_again(service: Service, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    assert service.daemon.wait_until_found({words(1): message})
    service.change(f"WatchdogSec={WATCHDOG_S}")
    begun = time.monotonic()
    service.kill(signal.SIGSTOP)
    assert time.monotonic() - begun > 1  # not at once: by the watchdog
    assert service.daemon.wait_until_found({words(1): message})


def test_after_five_crashes_it_serves_searches_until_it_is_started_anew(service: Service, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    assert service.daemon.wait_until_found({words(1): message})
    for _ in range(5):
        service.kill(signal.SIGKILL)
    later = Talk(store, "ses_0002").ask(f"About {words(2)}.")
    status = service.until_status(lambda now: now["errors"], "safe mode")
    assert [error["where"] for error in status["errors"]] == ["safe mode"]
    assert service.daemon.search(words(1))
    assert not service.daemon.search(words(2))
    assert "safe mode after several crashes" in service.reconstitute("service", "status").stdout
    assert service.manager.systemctl("restart", UNIT).returncode == 0
    assert service.daemon.wait_until_found({words(2): later})
    assert service.daemon.status()["errors"] == []


@pytest.mark.parametrize("moment", ["at rest", "reading", "embedding"])
def test_it_stops_in_time_and_is_not_started_again(service: Service, store: JsonStore, moment: str) -> None:
    if moment != "at rest":
        talk = Talk(store)
        for number in range(400):
            talk.ask(f"About {words(number)} and much else. " * 5)
    wanted = {
        "at rest": lambda now: now["archive"]["messages"] == 0,
        "reading": lambda now: now["archive"]["messages"] > 0,
        "embedding": lambda now: now["outbox"]["semantic"] > 0,
    }[moment]
    service.until_status(wanted, moment)
    begun = time.monotonic()
    assert service.manager.systemctl("stop", UNIT).returncode == 0
    assert time.monotonic() - begun < STOP_S
    facts = service.manager.show(UNIT, "Result", "ActiveState", "ExecMainStatus")
    assert facts == {"Result": "success", "ActiveState": "inactive", "ExecMainStatus": "0"}
    assert service.reconstitute("service", "status").returncode == 3


def test_a_wrong_configuration_fails_once_and_is_not_tried_again(service: Service) -> None:
    service.manager.systemctl("stop", UNIT)
    text = service.daemon.config.read_text()
    service.daemon.config.write_text(text + "\n[log]\nlevel = 'loud'\n")
    assert service.manager.systemctl("start", UNIT).returncode != 0
    facts = service.manager.show(UNIT, "ActiveState", "ExecMainStatus", "NRestarts")
    assert facts == {"ActiveState": "failed", "ExecMainStatus": "78", "NRestarts": "0"}
    service.daemon.config.write_text(text)
