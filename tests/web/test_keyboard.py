"""The page by keyboard alone, from a search to the end of a run: no test here moves or clicks a mouse."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from selenium.webdriver.common.keys import Keys

from tests.support.processes.daemon_process import Daemon
from tests.web.browser import Browser
from tests.web.conftest import call

_MOST_TABS = 80


def go_to(browser: Browser, selector: str) -> None:
    """Press Tab until this has the focus, which one then sees."""
    for _ in range(_MOST_TABS):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.matches(arguments[0])", selector):
            assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none", selector
            return
    raise AssertionError(f"{_MOST_TABS} times Tab does not reach {selector}")


def follow(browser: Browser, selector: str, what: str) -> None:
    """Open the link, or press the button, and wait for the heading of the next page."""
    go_to(browser, selector)
    browser.press(Keys.ENTER)
    browser.until(lambda: what in browser.text("main h1"), what)


def test_search_session_and_keys(browser: Browser) -> None:
    browser.open("/status")
    browser.press("/")  # from any page
    browser.until(lambda: browser.text("main h1") == "Search", "the search")
    browser.press("/")
    browser.press("Makefile")
    browser.until(lambda: browser.all("#results [data-key]"), "results")
    browser.press(Keys.ESCAPE)
    browser.press("j")
    browser.press("j")
    browser.press("k")
    go_to(browser, "summary")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Score" in browser.text("#results details[open]"), "why")
    browser.press("j")
    browser.press(Keys.ENTER)
    browser.until(lambda: "/session/" in browser.driver.current_url, "the session")
    browser.find("[data-number]")
    browser.press("n")
    browser.until(lambda: browser.run("return document.activeElement.matches('[data-change]')"), "a change")
    go_to(browser, "[data-number] summary")
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.parentElement.open")
    browser.press("?")
    browser.until(lambda: browser.run("return document.querySelector('#keys').open"), "the keys")
    browser.press(Keys.ESCAPE)
    browser.until(lambda: not browser.run("return document.querySelector('#keys').open"), "the end of the keys")


def changed_file(service: Daemon, folder: str) -> str:
    """A file of the folder with more states than one."""
    paths = [file["path"] for file in call(service, "files", {"path": folder})["files"]]
    return next(path for path in paths if len(call(service, "history", {"path": path})["revisions"]) > 1)


def test_folder_file_restore_run_and_forget(browser: Browser, service: Daemon, folder: str, tmp_path: Path) -> None:
    inner, _, name = changed_file(service, folder).rpartition("/")
    browser.open(f"/folder?path={quote(inner)}")
    follow(browser, "nav.tabs a[href^='/folder/files']", "Files")
    go_to(browser, f"tbody a[href$='{quote(name)}']")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.all("[data-moments] li"), "the file")
    browser.press("t")
    browser.press(Keys.HOME)
    browser.until(lambda: "at=" in browser.driver.current_url, "the first state")
    go_to(browser, "aside form button")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.text("#diff"), "the difference")
    browser.open(f"/folder?path={folder}")
    follow(browser, "nav.tabs a[href^='/folder/restore']", "Restore")
    go_to(browser, "input[name=to]")
    browser.press(str(tmp_path / "back"), Keys.ENTER)
    browser.until(lambda: "Wrote " in browser.text("main"), "that it was written")
    assert any(path.is_file() for path in (tmp_path / "back").rglob("*"))
    follow(browser, "nav.tabs a[href^='/folder/run']", "Write its pages")
    go_to(browser, "form[method=post] button")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Done:" in browser.text("main"), "the end of the run")
    follow(browser, "nav.tabs a[href^='/forget']", "Forget for good?")
    go_to(browser, "input[name=sure]")
    browser.press(Keys.SPACE)
    assert browser.find("input[name=sure]").is_selected()
    go_to(browser, "form[method=post] button")  # which is not pressed: other tests need the folder


def test_days_and_the_status(browser: Browser, service: Daemon) -> None:
    browser.open("/")
    follow(browser, "header a[href='/history']", "History")
    browser.press("t")  # selects the day that is there
    browser.press("2026-11-21", Keys.ENTER)
    browser.until(lambda: "2026-11-21" in browser.text("h2"), "the day")
    browser.press("j")
    browser.press(Keys.ENTER)
    browser.until(lambda: "/session/" in browser.driver.current_url, "the session")
    follow(browser, "header a[href='/today']", "Today")
    follow(browser, "header a[href='/status']", "Status")
    go_to(browser, "form[action='/status/pause'] button:not([name])")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Paused since" in browser.text("#live"), "the pause")
    go_to(browser, "form[action='/status/pause'] button[name=resume]")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Paused since" not in browser.text("#live"), "the end of the pause")
    assert service.status()["pause"] is None
    go_to(browser, "[hx-target='#checks']")
    browser.press(Keys.ENTER)
    browser.until(lambda: "archive" in browser.text("#checks table").lower(), "the checks")
