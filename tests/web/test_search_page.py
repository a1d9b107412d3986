"""Search in a browser: results while one types, filters, links, keys, and what screen readers meet."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from tests.web.browser import WIDTHS, Browser

QUERY = "input[name=q]"
RESULT = "#results [data-key]"


def query(browser: Browser) -> dict[str, list[str]]:
    """The query of the address that the browser shows."""
    return parse_qs(urlsplit(browser.driver.current_url).query)


def test_results_follow_what_is_typed(browser: Browser) -> None:
    browser.open("/")
    assert "Latest sessions" in browser.text("#results")
    browser.type(QUERY, "test target Makefile")
    browser.find(RESULT)
    assert "Makefile" in browser.texts(f"{RESULT} mark")
    assert query(browser) == {"q": ["test target Makefile"]}
    assert browser.driver.title.startswith("test target Makefile")
    assert "all of them indexed" in browser.text("#results")


def test_the_whole_answer_takes_the_place_of_the_first_one(browser: Browser) -> None:
    browser.open("/")
    browser.requests()
    browser.type(QUERY, "test target Makefile")
    browser.until(lambda: any("whole=1" in url for url in browser.requests()), "the second question")
    browser.until(lambda: "follows" not in browser.text("#results [role=status]"), "the whole answer")
    assert query(browser) == {"q": ["test target Makefile"]}
    browser.run("document.querySelector('[data-item]').focus()")
    held = browser.run("return document.activeElement.dataset.key")
    browser.run("document.activeElement.was = true; htmx.ajax('GET', location.href + '&whole=1', '#results')")
    browser.until(lambda: browser.run("return !document.querySelector('[data-item]').was"), "the answer once more")
    browser.until(lambda: browser.run("return document.activeElement.dataset.key") == held, "the focus")


def test_a_search_is_a_link(browser: Browser) -> None:
    browser.open("/?q=file&role=assistant&kind=tool_output&sort=newest")
    browser.find(RESULT)
    facts = browser.texts(f"{RESULT} > a.meta")
    assert facts
    assert all(fact.startswith("assistant ·") and "tool output" in fact for fact in facts)
    assert browser.find("input[name=kind][value=tool_output]").is_selected()
    assert browser.find("select[name=role]").get_attribute("value") == "assistant"


def test_a_filter_changes_the_results_and_the_address(browser: Browser) -> None:
    browser.open("/?q=file")
    browser.find(RESULT)
    browser.find("input[name=kind][value=prompt]").click()
    browser.until(lambda: query(browser) == {"q": ["file"], "kind": ["prompt"]}, "the address with the filter")
    assert all("prompt" in fact for fact in browser.texts(f"{RESULT} > a.meta"))


def test_why_is_said_on_demand(browser: Browser) -> None:
    browser.open("/?q=Makefile")
    browser.find(f"{RESULT} summary").click()
    assert "Score" in browser.find(f"{RESULT} details").text


def test_more_results_come_as_one_scrolls(browser: Browser) -> None:
    browser.open("/?q=the&sort=newest")
    before = len(browser.all(RESULT))

    def grown() -> bool:
        browser.run("window.scrollTo(0, document.body.scrollHeight)")
        return len(browser.all(RESULT)) > before

    browser.until(grown, "more results")
    keys = [item.get_attribute("data-key") for item in browser.all(RESULT)]
    assert len(keys) == len(set(keys))


def test_everything_is_reached_by_keys(browser: Browser) -> None:
    browser.open("/?q=Makefile")
    browser.find(RESULT)
    browser.press("j", "j", "k")
    focused = browser.run("return document.activeElement.dataset.key")
    assert focused == browser.find(RESULT).get_attribute("data-key")
    browser.press("?")
    assert browser.find("dialog[open]").is_displayed()
    browser.press(Keys.ESCAPE)
    browser.press("/")
    assert browser.run("return document.activeElement.name") == "q"
    browser.press(Keys.ESCAPE, "j")
    link = browser.find(f"{RESULT} a").get_attribute("href")
    browser.run(
        "document.activeElement.addEventListener('click', (event) => { event.preventDefault(); window.went = event.target.closest('a').href })"
    )
    browser.press(Keys.ENTER)
    assert browser.run("return window.went") == link


def test_a_mistake_is_said_in_place(browser: Browser) -> None:
    browser.open("/?mode=regex")
    browser.type(QUERY, "([")
    assert "regular expression" in browser.find("#results .trouble").text
    assert len(browser.log()) == 1  # the browser itself notes each answer of 400


def test_an_error_of_the_whole_answer_leaves_what_words_have_found(browser: Browser) -> None:
    browser.open("/?q=Makefile")
    count = len(browser.all(RESULT))
    browser.run("htmx.ajax('GET', '/?q=([&mode=regex&whole=1', '#results')")
    browser.until(lambda: "regular expression" in browser.text("#results .trouble"), "the error")
    assert len(browser.all(RESULT)) == count
    assert len(browser.log()) == 1  # of the browser, as above


def test_nothing_moves_while_a_page_is_loaded(browser: Browser) -> None:
    """The sum of all shifts that no key or click has caused; browsers call less than 0.1 good."""
    script = """
      const done = arguments[0];
      let moved = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) moved += entry.hadRecentInput ? 0 : entry.value;
      }).observe({ type: "layout-shift", buffered: true });
      setTimeout(() => done(moved), 1000);
    """
    for width in WIDTHS:
        browser.resize(width)
        for path in ("/", "/?q=file"):
            browser.open(path)
            assert browser.driver.execute_async_script(script) < 0.01, (width, path)


def test_only_the_last_of_several_searches_is_shown(browser: Browser) -> None:
    browser.open("/")
    for words in ("Makefile", "settings", "zzunheardofzz"):
        browser.type(QUERY, words)
    browser.until(lambda: browser.driver.title.startswith("zzunheardofzz"), "the last search")
    assert query(browser) == {"q": ["zzunheardofzz"]}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious(browser: Browser, width: int, dark: bool) -> None:
    browser.resize(width, dark=dark)
    for path in ("/", "/?q=Makefile", "/?q=zzzunheardofzzz&mode=literal"):
        browser.open(path)
        assert browser.barriers() == [], path
        assert not browser.is_too_wide(), path
