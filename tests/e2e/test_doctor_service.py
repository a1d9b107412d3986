"""`doctor` beside a running service: it asks it, and says from outside what can be seen when it hangs."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon.cli import main
from daemon.control import client
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import one_written_file


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    root = tmp_path_factory.mktemp("doctor")
    one_written_file(root / "opencode", "served", "heron")
    with Daemon(root / "opencode", root / "ours", tables={"embedding": {"what": "none"}}) as service:
        service.run()
        yield service


def rows(service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: str) -> tuple[int, dict[str, Any]]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(service.runtime_dir))
    code = main(["--config", str(service.config), "doctor", "--json", *words])
    answer = json.loads(capsys.readouterr().out)
    return code, {row["what"].split(" /")[0].split(" db")[0].split(" json")[0]: row for row in answer["checks"]}


def test_a_healthy_service_answers_for_its_archive(
    service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    code, found = rows(service, monkeypatch, capsys, "--full")
    assert code == 0, found
    assert found["watch"]["message"] == "following file events"
    assert found["socket"]["state"] == "ok"
    assert "files for this user alone, no core dumps" in found["hardening"]["message"]
    assert "archived up to its newest message" in found["source"]["message"]
    assert found["records"]["message"].startswith("all ")


def test_the_metrics_are_served_as_text(service: Daemon) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(service.socket))) as caller:
        answer = caller.get("http://reconstitute/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'reconstitute_records{kind="messages"} 1\n' in answer.text
    assert 'reconstitute_troubles{state="broken"} 0\n' in answer.text
    assert re.search(r'^reconstitute_lag_seconds\{source="json:.*"\} 0.0$', answer.text, flags=re.MULTILINE)


def test_the_service_names_its_configuration_file(service: Daemon) -> None:
    assert json.loads(service.ask("status", "--json").stdout)["configFile"] == str(service.config)


def test_a_socket_that_is_open_to_others_is_named(
    service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    service.socket.chmod(0o666)
    try:
        code, found = rows(service, monkeypatch, capsys)
    finally:
        service.socket.chmod(0o600)
    assert (code, found["socket"]["state"]) == (1, "attention")
    assert found["socket"]["fix"] == f"chmod go= {service.socket}"


def test_the_socket_is_checked_where_the_service_has_it(
    service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    """Cron knows no runtime directory, or another one."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(["--config", str(service.config), "doctor", "--json"]) == 0
    [row] = [row for row in json.loads(capsys.readouterr().out)["checks"] if row["what"] == "socket"]
    assert (row["state"], str(service.socket) in row["message"]) == ("ok", True)


def test_a_service_with_other_settings_is_named_and_asked_all_the_same(
    service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECONSTITUTE_OUTPUT_DIR", str(tmp_path / "elsewhere"))
    code, found = rows(service, monkeypatch, capsys)
    assert (code, found["service"]["state"]) == (1, "attention")
    assert "output.dir" in found["service"]["message"]
    assert found["records"]["state"] == "ok"


def test_a_service_of_another_version_is_named(service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("daemon.cli.subcommands.service_checks.__version__", "9.9.9")
    _, found = rows(service, monkeypatch, capsys)
    assert found["service"]["state"] == "attention"
    assert found["service"]["fix"].startswith("kill ")  # it runs in the foreground


def test_a_service_that_hangs_is_named_and_the_rest_is_checked(
    service: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(client, "_Connection", _impatient(client._Connection))
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGSTOP)
    try:
        code, found = rows(service, monkeypatch, capsys)
    finally:
        os.kill(service.process.pid, signal.SIGCONT)
    assert code == 2
    assert found["service"]["state"] == "broken"
    assert "does not answer in time" in found["service"]["message"]
    assert found["archive"]["state"] == "not checked"
    assert found["free space"]["state"] == "ok"


def _impatient(connection: Any) -> Any:
    """The same connection, which waits for one second alone."""

    class Impatient(connection):  # type: ignore[misc]
        def __init__(self, path: Path, _seconds: float, config: Any) -> None:
            super().__init__(path, 1.0, config)

    return Impatient
