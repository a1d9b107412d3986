"""What pages of others can do to the page, tried by a real browser that has a session: nothing.

The other pages are served on another port of this machine, which browsers count as the same site: the hardest case.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.support.processes.daemon_process import Daemon
from tests.web.browser import Browser
from tests.web.conftest import enter

ATTACK = """<!doctype html><meta charset="utf-8"><title>Other</title>
<iframe id="frame" src="{address}/?q=file"></iframe>
<img id="image" src="{address}/static/icon.svg">
<script id="script" src="{address}/static/page.js"></script>
<form id="form" method="post" action="{address}/?q=file"><input name="a" value="b"></form>
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def other(tmp_path: Path, address: str) -> Iterator[str]:
    """The address of a server that has the page of an attacker."""
    (tmp_path / "index.html").write_text(ATTACK.format(address=address))
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def attacker(driver: Chrome, address: str, other: str) -> Iterator[Browser]:
    """The browser on the attacker's page. What it complains about is what was refused."""
    page = Browser(driver, address)
    page.open(f"{other}/index.html")
    yield page
    page.log()
    page.requests()


def test_the_browser_has_a_session(browser: Browser) -> None:
    browser.open("/")
    assert "Latest sessions" in browser.text()


def test_it_cannot_frame_the_page(attacker: Browser) -> None:
    complaints = "\n".join(attacker.log())
    assert "frame-ancestors" in complaints or "X-Frame-Options" in complaints or "403" in complaints
    attacker.driver.switch_to.frame(attacker.find("#frame"))
    shown = attacker.driver.find_element("css selector", "body").text
    attacker.driver.switch_to.default_content()
    assert "file" not in shown.lower() or "refused" in shown.lower()
    assert attacker.run("return document.getElementById('frame').contentDocument") is None


def test_it_can_load_no_part(attacker: Browser) -> None:
    assert attacker.run("return document.getElementById('image').naturalWidth") == 0


@pytest.mark.parametrize("options", ["{}", "{credentials: 'include'}", "{mode: 'no-cors', credentials: 'include'}"])
def test_it_can_read_nothing(attacker: Browser, options: str) -> None:
    script = (
        f"const done = arguments[1]; fetch(arguments[0] + '/?q=file', {options})"
        ".then((answer) => answer.text()).then(done, () => done(''))"
    )
    assert attacker.driver.execute_async_script(script, attacker.address) == ""


def test_its_forms_are_refused(attacker: Browser) -> None:
    attacker.run("document.getElementById('form').submit()")
    attacker.until(lambda: attacker.driver.current_url.startswith(attacker.address), "the answer to the form")
    assert "Refused" in attacker.text("body")
    assert "file" not in attacker.text("body")


def test_a_link_to_a_search_is_refused_from_there(attacker: Browser) -> None:
    """The user may open it himself: by its address, or from the page."""
    attacker.run("location.assign(arguments[0])", f"{attacker.address}/?q=file")
    attacker.until(lambda: attacker.driver.current_url.startswith(attacker.address), "the page")
    assert "Refused" in attacker.text("body")


def test_a_name_that_resolves_here_gets_nothing(driver: Chrome, address: str) -> None:
    page = Browser(driver, address)
    page.open(address.replace("127.0.0.1", "rebound.localhost") + "/")
    assert "This is not an address of the page" in page.text("body")
    page.log()
    page.requests()


def test_a_link_works_once_in_a_browser(service: Daemon, driver: Chrome, address: str) -> None:
    page = Browser(driver, address)
    page.open("/")
    driver.delete_all_cookies()  # those of the page that is open
    page.open("/")
    assert "reconstitute web" in page.text("body")
    link = service.ask("web", "--print").stdout.strip()
    page.open(link)
    page.until(lambda: "Latest sessions" in page.text(), "the search page")
    assert "key=" not in driver.current_url
    assert driver.get_cookies()[0] | {"value": "", "expiry": 0} == {
        "name": f"reconstitute-{address.rpartition(':')[2]}",
        "value": "",
        "domain": "127.0.0.1",
        "path": "/",
        "httpOnly": True,
        "secure": False,
        "sameSite": "Strict",
        "expiry": 0,
    }
    assert page.run("return document.cookie") == ""
    page.open(link)
    assert "does not work any more" in page.text("body")
    assert enter(service, driver) == address
    page.log()
    page.requests()
