"""Status, folders and days in a browser: what one sees, at three widths, with screen readers, and what one can do."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from selenium.webdriver import Chrome

from tests.conftest import unpack
from tests.support.processes.daemon_process import Daemon
from tests.web.browser import WIDTHS, Browser
from tests.web.conftest import call, enter

DAY = "2026-11-21"


def pages(folder: str) -> list[str]:
    at = f"?path={quote(folder)}"
    return [
        "/status", "/status/doctor", "/trajectories", "/today", f"/history?day={DAY}",
        f"/folder{at}", f"/folder/files{at}", f"/folder/restore{at}", f"/folder/run{at}", f"/forget?name={quote(folder)}",
    ]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_too_wide_or_has_barriers(browser: Browser, folder: str, width: int) -> None:
    for dark in (False, True):
        browser.resize(width, dark=dark)
        for page in pages(folder):
            browser.open(page)
            browser.find("h1")
            assert not browser.is_too_wide(), page
            assert browser.barriers() == [], page
            if images := os.environ.get("PAGE_IMAGES"):
                name = page.partition("?")[0].strip("/").replace("/", "-")
                browser.photograph(Path(images) / f"{name}-{width}{'-dark' if dark else ''}.png")


def test_the_status_goes_on_by_itself(browser: Browser) -> None:
    browser.open("/status")
    browser.run("document.querySelector('#live').replaceChildren()")
    browser.until(lambda: "Archive" in browser.text("#live"), "the status anew")


def test_a_service_that_is_gone_is_said(driver: Chrome, tmp_path: Path) -> None:
    """It comes back at the same address, where the browser has no session any more."""
    sample = unpack("sqlite", tmp_path / "sample")
    with Daemon(sample.data_dir, tmp_path / "ours", tables={"web": {"port": 0}}) as other:
        other.run()
        browser = Browser(driver, enter(other, driver))
        browser.open("/status")
        other.terminate()
        browser.until(
            lambda: "The service does not answer; this is as of " in browser.text("[role=alert]"), "the alert"
        )
        assert "running as process" in browser.text("#live")
        other.configure({"web": {"port": urlsplit(browser.address).port}})
        other.run()
        other.ask("web", "--print")
        browser.until(lambda: "has no session here" in browser.text("#live"), "the answer of the new service")
        assert browser.all("[role=alert]") == []
        driver.get("about:blank")  # it would go on asking


def test_the_checks_come_into_the_page(browser: Browser) -> None:
    browser.open("/status")
    browser.find("[hx-target='#checks']").click()
    assert "archive" in browser.find("#checks table").text.lower()
    assert browser.driver.current_url.endswith("/status")


def test_one_pauses_and_resumes(browser: Browser, service: Daemon) -> None:
    browser.open("/status")
    browser.find("form[action='/status/pause'] button:not([name])").click()
    browser.until(lambda: "Paused since" in browser.text("#live"), "the pause")
    assert service.status()["pause"]["until"] is None
    browser.find("form[action='/status/pause'] button[name=resume]").click()
    browser.until(lambda: "Paused since" not in browser.text("#live"), "the end of the pause")
    assert service.status()["pause"] is None


def test_a_day_leads_to_its_sessions_and_files(browser: Browser) -> None:
    browser.open("/history")
    browser.find(f".calendar a[href*='day={DAY}']").click()
    assert DAY in browser.find("h2").text
    browser.find(".items h3 a[href^='/session/']")
    browser.press("j")
    assert browser.run("return document.activeElement.matches('[data-item]')")


def test_what_is_open_comes_into_today(browser: Browser) -> None:
    browser.open("/today")
    browser.until(lambda: "From " in browser.text("main"), "the open points")


def test_a_folder_is_restored_with_a_preview(browser: Browser, folder: str, tmp_path: Path) -> None:
    browser.open(f"/folder/files?path={quote(folder)}")
    assert "recorded" in browser.text("main")
    browser.find("nav.tabs a[href^='/folder/restore']").click()
    assert "Would write" in browser.text("main")
    target = tmp_path / "back"
    browser.type("input[name=to]", str(target))
    browser.find("form[method=post] button").click()
    browser.until(lambda: "Wrote " in browser.text("main"), "that it was written")
    assert any(path.is_file() for path in target.rglob("*"))


def test_a_run_is_asked_for(browser: Browser, folder: str) -> None:
    browser.open(f"/folder/run?path={quote(folder)}")
    browser.find("form[method=post] button").click()
    browser.until(lambda: "Done:" in browser.text("main"), "the end of the run")


def test_forgetting_is_only_previewed(browser: Browser, folder: str, service: Daemon) -> None:
    browser.open(f"/forget?name={quote(folder)}")
    assert "Would go" in browser.text("main")
    browser.find("form[method=post] button").click()  # the box is not ticked: the browser does not send it
    assert "/forget?name=" in browser.driver.current_url
    assert call(service, "files", {"path": folder})["known"]
