"""Sessions and files in a browser: long ones scroll at once, changes and moments are a key away, records stay inert."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from daemon import config
from daemon.app import OneShot
from daemon.control import calls
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import T0, Database, session, text, user
from tests.unit.web.test_web_session import HOSTILE
from tests.web.browser import WIDTHS, Browser, missing
from tests.web.in_process import serving

ROOT = "/home/dev/garden"
LONG, FILE, HUGE = "ses_long", f"{ROOT}/beds.lua", f"{ROOT}/rows.txt"
MESSAGES, LINES = 5000, 100_000


def _write(root: Path) -> None:
    store = Database(root / "opencode.db")
    long = Talk(store, LONG, ROOT, "Five thousand messages")
    for number in range(MESSAGES):
        if number % 1000 == 500:
            long.call("edit", {"filePath": FILE, "oldString": "one", "newString": "two"}, "ok")
        elif number % 2:
            long.answer(f"Answer {number}. " + "It is numbered. " * (number % 7 * 10))
        else:
            long.ask(f"Question {number}?")
    short = Talk(store, "ses_short", ROOT, "Beds")
    short.ask("Number the rows of the beds.")
    for rows in ("[1]", "[1, 2]", "[1, 2, 3]"):
        short.write(FILE, f"-- beds\nrows = {rows}\n")
    short.ask("Write many rows.")
    short.write(HUGE, "".join(f"row {number}\n" for number in range(LINES)))
    store.session(session("ses_child", ROOT, "Count the rows") | {"parentID": "ses_short"})
    store.message(user("msg_c1", "ses_child", T0 + 5), text("prt_c1", "msg_c1", "ses_child", "Count them all."))
    state = {
        "status": "completed", "input": {"description": "count"}, "output": "3", "metadata": {"sessionId": "ses_child"},
        "time": {"start": T0, "end": T0},
    }  # fmt: skip
    short.answer("Let me see.", {"type": "tool", "tool": "task", "callID": "c", "state": state})
    hostile = Talk(store, "ses_hostile", ROOT, HOSTILE[0])
    for words in HOSTILE:
        hostile.ask(words)
        hostile.answer(words, {"type": "reasoning", "text": words}, {"type": words, "url": words})
        hostile.call("bash", {"command": words}, words)
        hostile.write(f"{ROOT}/hostile", f"{words}\n{words}\n")
    store.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, driver: Chrome) -> Iterator[str]:
    """Takes the place of that of the sample archive."""
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("reading")
    _write(root / "oc")
    tables = {"opencode": {"data_dir": str(root / "oc")}, "archive": {"dir": str(root / "a")}}
    with OneShot(msgspec.convert(tables, config.Config)) as engine:
        engine.call(calls.Conversation(LONG))
        with serving(engine) as page:
            driver.get(page.link())
            yield page.address


def numbers(browser: Browser) -> list[int]:
    return [
        int(number)
        for number in browser.run(
            "return [...document.querySelectorAll('[data-number]')].map((each) => each.dataset.number)"
        )
    ]


def in_sight(browser: Browser) -> list[int]:
    """The numbers of the messages that can be seen now."""
    script = """return [...document.querySelectorAll('[data-number]')].filter((each) => {
      const box = each.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight;
    }).map((each) => each.dataset.number)"""
    return [int(number) for number in browser.run(script)]


def scroll(browser: Browser, part: float) -> None:
    browser.run("scrollTo({top: document.documentElement.scrollHeight * arguments[0], behavior: 'instant'})", part)


def held(browser: Browser) -> str:
    """The number of the message that has the focus."""
    return str(browser.run("return document.activeElement.dataset.number"))


def _holds(browser: Browser, number: str) -> bool:
    # Not by :focus, which also says whether the window is in front of others.
    return held(browser) == number


def _is_copied(browser: Browser, beginning: str) -> bool:
    """Whether the clipboard holds a text that begins so."""
    read = "navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))"
    return str(browser.driver.execute_async_script(read)).startswith(beginning)


# -- sessions ------------------------------------------------------------------------------------------------------------


def test_a_session_of_5000_messages_scrolls_to_any_place(browser: Browser) -> None:
    browser.open(f"/session/{LONG}")
    browser.find("[data-number='0']")
    assert len(numbers(browser)) == 40
    scroll(browser, 0.5)
    middle = browser.until(lambda: [each for each in in_sight(browser) if each > 40], "messages in the middle")
    assert 1500 < middle[0] < 3500
    # The end moves while the last window is fetched.
    browser.until(lambda: scroll(browser, 1) or MESSAGES - 1 in in_sight(browser), "the last message")
    assert len(numbers(browser)) < 400


def test_a_message_in_the_address_is_in_sight(browser: Browser) -> None:
    browser.open(f"/session/{LONG}?message=msg_long04321")
    browser.until(lambda: 4320 in in_sight(browser), "the message")
    assert held(browser) == "4320"


def test_n_goes_from_change_to_change(browser: Browser) -> None:
    browser.open(f"/session/{LONG}")
    browser.find("[data-number='0']")
    for expected in ("500", "1500", "2500"):
        browser.press("n")
        browser.until(partial(_holds, browser, expected), f"message {expected}")
        assert "+two" in browser.text(f"[data-number='{expected}'] .diff")


def test_j_and_k_move_between_messages_and_enter_opens(browser: Browser) -> None:
    browser.open("/session/ses_short")
    browser.find("[data-number='0']")
    browser.press("j")
    browser.press("j")
    assert held(browser) == "1"
    browser.press("k")
    browser.press(Keys.ENTER)
    browser.until(lambda: "message=" in browser.driver.current_url, "the message's own address")


def test_a_sub_agent_opens_in_its_place(browser: Browser) -> None:
    browser.open("/session/ses_short")
    browser.find("details.child > summary")
    browser.run("document.querySelector('details.child > summary').focus()")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Count them all." in browser.text("details.child"), "the sub-agent's prompt")


def test_a_session_is_copied(browser: Browser) -> None:
    origin = {"origin": browser.address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", origin)
    browser.open("/session/ses_short")
    for form, beginning in (("markdown", "# Beds"), ("messages", "[\n")):
        browser.find(f"a[data-copy][href*={form}]").click()
        browser.until(partial(_is_copied, browser, beginning), form)
    assert browser.text("[data-copied]") == "Copied"


# -- files ---------------------------------------------------------------------------------------------------------------


def slide(browser: Browser, key: str) -> None:
    browser.press("t")
    browser.press(key)


def test_the_slider_shows_the_file_at_each_moment(browser: Browser) -> None:
    browser.open(f"/file?path={FILE}")
    browser.until(lambda: "[1, 2, 3]" in browser.text("#state"), "the last state")
    count = len(browser.all("[data-moments] li"))
    slide(browser, Keys.HOME)
    browser.until(lambda: "rows = [1]" in browser.text("#state"), "the first state")
    assert "at=" in browser.driver.current_url
    slide(browser, Keys.ARROW_RIGHT)
    browser.until(lambda: "rows = [1, 2]" in browser.text("#state"), "the second state")
    assert browser.find("[data-moment]").get_attribute("max") == str(count - 1)
    assert browser.find("[data-moments] [aria-current]").text in browser.text("[data-moment-text]")


def test_two_states_are_compared(browser: Browser) -> None:
    browser.open(f"/file?path={FILE}")
    browser.run("document.querySelector('select[name=old]').selectedIndex = 0")
    browser.find("aside form button").click()
    browser.until(lambda: "-rows = [1]" in browser.text("#diff"), "the difference")
    colours = browser.run(
        "return ['add', 'del'].map((kind) => getComputedStyle(document.querySelector(`#diff .${kind}`)).backgroundColor)"
    )
    assert len(set(colours)) == 2


def test_a_file_of_100000_lines_scrolls_to_any_place(browser: Browser) -> None:
    browser.open(f"/file?path={HUGE}")
    browser.find(".lines ol")
    height = browser.run("return document.documentElement.scrollHeight")
    browser.run("document.querySelector('.lines').lastElementChild.scrollIntoView({block: 'end', behavior: 'instant'})")
    browser.until(lambda: f"row {LINES - 1}" in browser.text(".lines"), "the last line")
    assert abs(browser.run("return document.documentElement.scrollHeight") - height) <= 2
    assert len(browser.all(".lines ol")) <= 4
    assert "Write many rows." in browser.text(".lines")


# -- for everyone, and against everyone ----------------------------------------------------------------------------------

PAGES = ["/session/ses_short", f"/file?path={FILE}", f"/session/{LONG}?message=msg_long02501"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES, ids=["session", "file", "long"])
def test_pages_fit_and_axe_finds_nothing_serious(browser: Browser, page: str, width: int, dark: bool) -> None:
    browser.resize(width, dark=dark)
    browser.open(page)
    browser.find("main h1")
    assert not browser.is_too_wide()
    assert browser.barriers() == []


@pytest.mark.parametrize("page", ["/session/ses_hostile", f"/file?path={ROOT}/hostile"])
def test_hostile_records_run_and_load_nothing(browser: Browser, page: str) -> None:
    """The browser's log and its requests are looked at when the test is over."""
    browser.open(page)
    browser.find("main h1")
    browser.run("for (const fold of document.querySelectorAll('main details')) fold.open = true")
    assert "<script>alert(1)</script>" in browser.text("main")
    assert browser.run("return document.querySelectorAll('main :is(script, style, img, base, iframe)').length") == 0
    assert browser.run("return location.href").startswith(browser.address)


def shifts(browser: Browser) -> Any:
    observe = """const done = arguments[0]; new PerformanceObserver((list) => {}).observe({type: 'layout-shift', buffered: true});
      let sum = 0; new PerformanceObserver((list) => { for (const each of list.getEntries()) sum += each.value; })
        .observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(sum), 500)"""
    return browser.driver.execute_async_script(observe)


@pytest.mark.parametrize("page", PAGES, ids=["session", "file", "long"])
def test_nothing_moves_while_a_page_loads(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.find("main h1")
    assert shifts(browser) < 0.02
