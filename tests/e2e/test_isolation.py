"""What the service may not do, tried by a process with the properties of its unit under a real user manager."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.subcommands import isolation, service
from daemon.supervisor import UNIT
from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import CHECKOUT, until
from tests.support.processes.user_manager import ANOTHER, UserManager, user_manager
from tests.support.stores.make_opencode import JsonStore

FORBIDDEN = CHECKOUT / "tests" / "support" / "processes" / "forbidden.py"
PROTECTED = (".ssh", ".gnupg", ".local/bin", ".config/systemd", ".config/autostart")
WRITABLE = ("", ".config", ".local/share", "reconstituted")
BY_THE_UNIT = (
    "SystemCallArchitectures", "LockPersonality", "MemoryDenyWriteExecute", "RestrictRealtime", "RestrictSUIDSGID",
    "RestrictNamespaces", "RestrictAddressFamilies", "@resources", "@privileged", "@mount", "ProtectHostname",
)  # fmt: skip
READ_ONLY = (
    "ProtectSystem",
    "ProtectSystem, /etc",
    "ProtectControlGroups",
    *(f"ReadOnlyPaths, {name}" for name in PROTECTED),
)
LEFT_ALONE = (*(f"home, {name}" for name in WRITABLE), "/tmp", "@chown")
_NOT_OF_ONE_SHOT = (
    "Type=",
    "NotifyAccess=",
    "Restart",
    "WatchdogSec=",
    "ExecReload=",
    "RuntimeDirectory",
    "ExecStopPost=",
)


@pytest.fixture(scope="module", params=["", ANOTHER], ids=["ours", "another"])
def manager(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[UserManager]:
    with user_manager(tmp_path_factory.mktemp("manager"), request.param) as running:
        for name in (*PROTECTED, *WRITABLE):
            (running.home / name).mkdir(parents=True, exist_ok=True)
        running.own(running.home)
        yield running


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserManager]:
    """The manager of a user without privileges, with the service installed over some sessions of its own."""
    with user_manager(tmp_path_factory.mktemp("manager"), ANOTHER) as running:
        Talk(JsonStore(running.home / ".local/share/opencode")).ask(f"About {words(1)}.")
        (running.home / ".ssh").mkdir()
        running.own(running.home)
        running.systemctl("set-environment", f"PYTHONPATH={CHECKOUT}")
        done = reconstitute(running, "service", "install")
        assert done.returncode == 0, done.stdout + done.stderr
        yield running


def reconstitute(manager: UserManager, *words: str) -> subprocess.CompletedProcess[str]:
    return manager.run(
        sys.executable, "-m", "daemon.cli", *words, PYTHONPATH=str(CHECKOUT), PYTHONDONTWRITEBYTECODE="1"
    )


def tried(manager: UserManager, *drop_ins: str) -> dict[str, Any]:
    """What came of forbidden.py in a unit like ours with these drop-ins."""
    scratch, units = manager.home / "scratch", manager.home / ".config/systemd/user"
    scratch.mkdir(exist_ok=True)
    (scratch / "outcome.json").unlink(missing_ok=True)
    manager.own(scratch)
    text = service.unit_text([sys.executable, str(FORBIDDEN), str(scratch)])
    for number, each in enumerate((text, *drop_ins)):
        place = units / ("forbidden.service" if not number else f"forbidden.service.d/{number}.conf")
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [line for line in each.splitlines() if not line.startswith(_NOT_OF_ONE_SHOT)]
        place.write_text("\n".join(lines).replace("[Service]", "[Service]\nType=oneshot"))
    manager.own(units)
    manager.systemctl("daemon-reload")
    assert manager.systemctl("start", "forbidden.service").returncode == 0, manager.systemctl(
        "status", "forbidden"
    ).stdout
    outcome: dict[str, Any] = json.loads((scratch / "outcome.json").read_text())
    for place in units.glob("forbidden.service.d/*.conf"):
        place.unlink()
    return outcome


def test_each_line_of_the_unit_refuses_what_it_names(manager: UserManager) -> None:
    outcome = tried(manager)
    left = {name: outcome["outcomes"][name] for name in BY_THE_UNIT if outcome["outcomes"][name] == "allowed"}
    assert left == {}
    assert {name: outcome["outcomes"][name] for name in LEFT_ALONE} == dict.fromkeys(LEFT_ALONE, "allowed")
    facts = outcome["facts"]
    assert (facts["no new privileges"], facts["core"], facts["mode"]) == (1, 0, "0o600")


def test_what_the_unit_refuses_would_work_without_it(manager: UserManager) -> None:
    """Else the tests above prove nothing. A user without privileges may do less."""
    scratch = manager.home / "scratch"
    scratch.mkdir(exist_ok=True)
    manager.own(scratch)
    done = manager.run(sys.executable, str(FORBIDDEN), str(scratch))
    assert done.returncode == 0, done.stderr
    outcome = json.loads((scratch / "outcome.json").read_text())["outcomes"]
    allowed = {name for name in (*BY_THE_UNIT, *READ_ONLY) if outcome[name] == "allowed"}
    privileged = {"@privileged", "@mount", "ProtectHostname", *READ_ONLY[:3]}
    wanted = {*BY_THE_UNIT, *READ_ONLY} - {"RestrictRealtime"} - (privileged if manager.user else set())
    assert wanted <= allowed


def test_each_line_of_the_drop_in_refuses_what_it_names(manager: UserManager) -> None:
    outcome = tried(manager, isolation.shipped())
    outcomes, facts = outcome["outcomes"], outcome["facts"]
    assert {name: outcomes[name] for name in READ_ONLY} == dict.fromkeys(READ_ONLY, "EROFS")
    assert [name for name in BY_THE_UNIT if outcomes[name] == "allowed"] == []
    assert {name: outcomes[name] for name in LEFT_ALONE} == dict.fromkeys(LEFT_ALONE, "allowed")
    assert outcomes["PrivateDevices"] == "ENOENT"
    assert outcomes["ProtectKernelModules"] != "allowed"
    assert facts["capabilities"] == 0
    assert facts["user namespace"] != os.readlink("/proc/self/ns/user")


def test_the_service_is_installed_isolated_and_doctor_says_so(isolated: UserManager) -> None:
    rows = {row["what"]: row for row in json.loads(reconstitute(isolated, "doctor", "--json").stdout)["checks"]}
    assert rows["hardening"]["message"].endswith("isolated by namespaces of its own")
    assert (rows["unit"]["state"], rows["systemd"]["state"]) == ("ok", "ok")
    assert "up to date" in reconstitute(isolated, "service", "install").stdout


def test_an_isolated_service_archives_finds_and_writes_pages(isolated: UserManager) -> None:
    until(lambda: words(1) in reconstitute(isolated, "recall", words(1)).stdout, what="the message")
    for place in (isolated.home / "elsewhere", Path(isolated.environment["XDG_RUNTIME_DIR"]) / "pages"):
        done = reconstitute(isolated, "/home/dev/garden", "--output", str(place))
        assert done.returncode == 0, done.stdout + done.stderr
        assert list(place.rglob("*.md"))
    refused = reconstitute(isolated, "/home/dev/garden", "--output", str(isolated.home / ".ssh" / "pages"))
    assert refused.returncode == 73
    assert "Read-only file system" in refused.stderr


def test_systemds_figure_is_the_one_in_the_documents(isolated: UserManager) -> None:
    said = isolated.run("systemd-analyze", "--user", "--no-pager", "security", UNIT).stdout
    figure = said.rpartition("Overall exposure level for reconstitute.service: ")[2].split()[0]
    assert f"**{figure}**" in (CHECKOUT / "docs" / "operations.md").read_text()


def test_a_drop_in_that_stops_working_takes_itself_out(isolated: UserManager) -> None:
    """As after an upgrade that forbids namespaces: systemd fails to set one up."""
    place = isolated.home / ".config/systemd/user" / f"{UNIT}.d" / isolation.NAME
    (place.parent / "zz.conf").write_text("[Service]\nRestartSec=0.1\nBindPaths=/nowhere/at/all\n")
    assert isolated.systemctl("daemon-reload").returncode == 0
    assert isolated.systemctl("restart", "--no-block", UNIT).returncode == 0
    until(lambda: not place.exists(), what="the drop-in's end")
    (place.parent / "zz.conf").unlink()
    isolated.systemctl("daemon-reload")
    until(lambda: isolated.show(UNIT, "ActiveState")["ActiveState"] == "active", what="the start without it")
    rows = {row["what"]: row for row in json.loads(reconstitute(isolated, "doctor", "--json").stdout)["checks"]}
    assert rows["hardening"]["message"].endswith("not isolated further: the service did not start with it")
    assert reconstitute(isolated, "service", "install").returncode == 0
    assert place.exists()


def test_uninstalling_takes_the_drop_in_along(isolated: UserManager) -> None:
    assert reconstitute(isolated, "service", "uninstall").returncode == 0
    assert not (isolated.home / ".config/systemd/user" / f"{UNIT}.d").exists()
