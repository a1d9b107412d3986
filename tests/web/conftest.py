"""A service on a sample archive, and a browser that has come in by a link."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.conftest import unpack
from tests.support.processes.daemon_process import Daemon
from tests.web.browser import Browser, chromium, missing


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    """One Chromium for all tests of this process."""
    if reason := missing():
        pytest.skip(reason)
    # Not pytest's own: a path beneath it is too long for Chromium's sockets.
    profile = Path(tempfile.mkdtemp(prefix="rc-web-"))
    with chromium(profile) as running:
        yield running
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A service over the sample archive, which has read and indexed everything; it serves no page yet."""
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("web")
    sample = unpack("sqlite", root / "sample")
    with Daemon(sample.data_dir, root / "ours", tables={"web": {"port": 0}}) as daemon:
        daemon.run()
        daemon.wait_until_drained()
        yield daemon


@pytest.fixture(scope="module")
def address(service: Daemon, driver: Chrome) -> str:
    """Where the page is; the browser has a session."""
    return enter(service, driver)


def enter(service: Daemon, driver: Chrome) -> str:
    """Let the browser in by a new link; the address of the page."""
    asked = service.ask("web", "--print")
    assert asked.returncode == 0, asked.stderr
    link = asked.stdout.strip()
    driver.get(link)
    return link.partition("/enter")[0]


@pytest.fixture
def browser(driver: Chrome, address: str) -> Iterator[Browser]:
    """The browser at 1280 pixels. Whatever it complains about, and whatever it asks of others, fails the test."""
    page = Browser(driver, address)
    page.resize(1280)
    page.log()
    page.requests()
    yield page
    assert page.log() == []
    assert [url for url in page.requests() if not url.startswith((page.address + "/", "data:", "about:"))] == []


def call(service: Daemon, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer of a call that sends lines."""
    with service.client() as client:
        lines = client.post(f"/{name}", json=arguments).text.splitlines()
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer.get("result", answer)


@pytest.fixture(scope="module")
def folder(service: Daemon) -> str:
    """A folder of the sample in which files were written."""
    sessions = call(service, "recall/recall_sessions", {"arguments": {"limit": 50}})["sessions"]
    folders = {session["directory"] for session in sessions}
    counts = {each: len(call(service, "files", {"path": each})["files"]) for each in folders if each.startswith("/")}
    return max(sorted(counts), key=lambda each: counts[each])
