"""The service serves its page: on demand, or always; and a port that cannot be had ends nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.processes.daemon_process import Daemon, until
from tests.support.processes.ports import free_port


def status_of_page(port: int) -> int:
    """What the page answers to a browser without a session; 0 while nothing listens there."""
    try:
        with httpx.Client(trust_env=False, verify=False) as browser:
            return browser.get(f"http://127.0.0.1:{port}/").status_code
    except httpx.ConnectError:
        return 0


def starts(daemon: Daemon) -> int:
    """How often it has become ready, reloads included."""
    return daemon.log_path.read_text().count("] ready [daemon]")


def test_it_is_served_from_the_first_question_on(make_daemon: Callable[..., Daemon]) -> None:
    port = free_port()
    daemon = make_daemon(tables={"web": {"port": port}}).run()
    assert status_of_page(port) == 0
    first, second = (json.loads(daemon.ask("web", "--json").stdout) for _ in range(2))
    assert status_of_page(port) == 401
    assert first["address"] == second["address"] == f"http://127.0.0.1:{port}"
    assert first["url"] != second["url"]
    with httpx.Client(trust_env=False, verify=False) as browser:
        for link, code in ((first["url"], 200), (first["url"], 403), (second["url"], 200)):
            assert browser.get(link).status_code == code
        assert browser.get(f"http://127.0.0.1:{port}/?q=anything").status_code == 200
    assert daemon.terminate()[0] == 0
    assert status_of_page(port) == 0


def test_it_is_served_always_if_that_is_set(make_daemon: Callable[..., Daemon]) -> None:
    """A reload moves it, or ends it."""
    port, next_port = free_port(), free_port()
    daemon = make_daemon(tables={"web": {"port": port, "enabled": True}}).run()
    assert status_of_page(port) == 401
    daemon.configure({"web": {"port": next_port}})
    daemon.hang_up()
    until(lambda: status_of_page(next_port) == 401, what="the page at its new port")
    assert status_of_page(port) == 0
    daemon.configure({"web": {"enabled": False}})
    daemon.hang_up()
    until(lambda: starts(daemon) == 3, what="the second reload")
    assert status_of_page(next_port) == 0


@pytest.mark.parametrize("has_port", [False, True], ids=["any port", "one port"])
def test_after_a_reload_browsers_that_were_let_in_go_on(make_daemon: Callable[..., Daemon], has_port: bool) -> None:
    """Its port is never free meanwhile, so that nobody else can listen there."""
    daemon = make_daemon(tables={"web": {"port": free_port() if has_port else 0}}).run()
    link = json.loads(daemon.ask("web", "--json").stdout)
    place = urlsplit(link["address"])
    with httpx.Client(trust_env=False, verify=False, timeout=60) as browser:
        assert browser.get(link["url"]).status_code == 200
        daemon.configure({"log": {"level": "debug"}})
        daemon.hang_up()
        while starts(daemon) < 2:
            socket.create_connection((place.hostname or "", place.port or 0)).close()
            time.sleep(0.05)
        assert browser.get(link["address"] + "/").status_code == 200
    assert status_of_page(place.port or 0) == 401


def test_without_its_port_the_service_runs_and_says_so(make_daemon: Callable[..., Daemon]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        daemon = make_daemon(tables={"web": {"port": other.getsockname()[1], "enabled": True}}).run()
        [error] = [error for error in daemon.status()["errors"] if error["where"] == "web"]
        assert "web.port" in error["message"]
        asked = daemon.ask("web", "--print")
        assert (asked.returncode, asked.stdout) == (75, "")
    assert daemon.ask("web", "--print").returncode == 0
