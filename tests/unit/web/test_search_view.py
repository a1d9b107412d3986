"""The search page over a small archive: what it shows, where it leads, and that no record or query is markup."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from daemon import config
from daemon.app import OneShot
from daemon.control import calls
from daemon.errors import ArchiveCorrupt, BadRequest, NotRecorded, Retry
from daemon.recall.query import MOST_OFFSET
from daemon.web.site import marked
from daemon.web.views.search import PAGE, Search, _more, read
from tests.e2e.talk import Talk
from tests.hostile.payloads import payloads
from tests.support.pages.html_page import Page, parsed
from tests.support.stores.make_opencode import JsonStore
from tests.unit.web.conftest import Scripted, Visit

PART = {"hx-request": "true"}
MARKUP: list[str] = tomllib.loads((Path(__file__).parents[2] / "hostile" / "markup.toml").read_text())["payload"]
SECRET = "ghp_" + "a1B2" * 9
LONG = 70


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneShot]:
    """Sessions about gardens, a long one, and one whose every text is hostile."""
    root = tmp_path_factory.mktemp("search-view")
    store = JsonStore(root / "oc")
    garden = Talk(store, "ses_garden", "/home/dev/garden", "Beds and <b>rows</b>")
    garden.ask("Number the rows of the beds, please.")
    garden.call("bash", {"command": "ls beds"}, "rows of beds")
    garden.answer(f"The rows are numbered; the token is {SECRET}.")
    long = Talk(store, "ses_long", "/home/dev/long", "A long talk")
    for number in range(LONG):
        long.ask(f"Say kingfisher, for the time {number}.")
    for number, text in enumerate([*MARKUP, *(p.text[:2000] for p in payloads(root))]):
        hostile = Talk(store, f"ses_h{number}", f"/home/dev/{text.replace('/', '∕')[:80]}", text[:200])
        hostile.ask(f"heron {text}")
        hostile.call("bash", {"command": f"heron {text}"}, f"heron {text}")
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "embedding": {"what": "none"},
        "chat": {"provider": "none"},
    }
    with OneShot(msgspec.convert(tables, config.Config)) as opened:
        opened.call(calls.Index())
        yield opened


@pytest.fixture
def client(visit: Visit, engine: OneShot) -> TestClient:
    return visit(engine)


def page(client: TestClient, query: dict[str, Any], *, part: bool = False) -> Page:
    answer = client.get("/", params=query, headers=PART if part else {})
    assert answer.status_code == 200, answer.text
    return parsed(answer.text)


def keys(found: Page) -> list[str]:
    return found.with_attribute("data-key")


# -- what it shows ---------------------------------------------------------------------------------------------------


def test_results_are_grouped_by_session_with_marked_words(client: TestClient) -> None:
    answer = client.get("/", params={"q": "rows beds"})
    found = parsed(answer.text)
    assert "/session/ses_garden" in found.with_attribute("href")
    assert "/session/ses_garden?message=msg_garden00001" in found.with_attribute("href")
    assert "/folder?path=%2Fhome%2Fdev%2Fgarden" in found.with_attribute("href")
    assert answer.text.count('<a href="/session/ses_garden">') == 1
    assert "<mark>rows</mark>" in answer.text
    assert "&lt;b&gt;<mark>rows</mark>&lt;/b&gt;" in answer.text  # the title
    assert "messages, all of them indexed" in found.text
    assert "Score" in found.text


def test_secrets_are_hidden(client: TestClient) -> None:
    found = page(client, {"q": "numbered token"})
    assert "numbered" in found.text
    assert SECRET not in found.text
    assert SECRET not in client.get("/", params={"q": SECRET}).text.partition("<section")[2]


def test_without_a_query_it_shows_the_latest_sessions(client: TestClient) -> None:
    for part in (False, True):
        found = page(client, {}, part=part)
        assert "Latest sessions" in found.text
        assert len(found.with_attribute("data-item")) == 20


def test_a_part_has_the_results_alone(client: TestClient) -> None:
    answer = client.get("/", params={"q": "rows", "mode": "hybrid", "role": "", "kind": "prompt"}, headers=PART)
    assert "<form" not in answer.text
    assert keys(parsed(answer.text)) == ["msg_garden00001"]
    assert answer.headers["hx-replace-url"] == "/?q=rows&kind=prompt"
    assert "<title>rows" in answer.text


def test_results_follow_page_by_page(client: TestClient) -> None:
    """Each part of the list leads to the next one, and together they are all results, each once."""
    address, found = "/?q=kingfisher&sort=newest&whole=1", list[str]()
    while address:
        part = parsed(client.get(address, headers=PART).text)
        found += keys(part)
        following = part.with_attribute("hx-get")
        assert len(keys(part)) == (PAGE if following else LONG % PAGE)
        address = following[0] if following else ""
    assert found == [f"msg_long{number:05d}" for number in range(LONG, 0, -1)]


def test_the_first_answer_is_by_words_and_asks_for_the_whole_one(
    visit: Visit, engine: OneShot, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[str] = []
    call = engine.call

    def noting(request: calls.Recall, **more: Any) -> Any:
        modes.append(request.arguments.get("match", ""))
        return call(request, **more)

    monkeypatch.setattr(engine, "call", noting)
    client = visit(engine)
    first = page(client, {"q": "kingfisher", "sort": "newest"}, part=True)
    assert first.with_attribute("hx-get") == ["/?q=kingfisher&sort=newest&whole=1"]
    whole = parsed(client.get("/?q=kingfisher&sort=newest&whole=1", headers=PART).text)
    assert keys(whole) == keys(first)
    assert whole.with_attribute("hx-get") == ["/?q=kingfisher&sort=newest&offset=30"]
    chosen = page(client, {"q": "kingfisher", "mode": "literal"}, part=True)
    assert "whole=1" not in str(chosen.with_attribute("hx-get"))
    assert modes == ["smart", "", "literal"]


def test_results_end_where_recall_skips_no_more() -> None:
    """Recall would answer a larger offset with the same results, again and again."""
    full = {"truncated": True, "results": [{}] * PAGE}
    last = MOST_OFFSET - PAGE
    assert f"offset={MOST_OFFSET}" in _more(Search("rows", offset=last), full)
    for offset in (last + 1, MOST_OFFSET, MOST_OFFSET + 50):
        assert _more(Search("rows", offset=offset), full) == ""


def test_filters_are_those_of_the_search(client: TestClient) -> None:
    everything = set(keys(page(client, {"q": "rows"})))
    assert everything == {"msg_garden00001", "msg_garden00002", "msg_garden00003"}
    for filters, wanted in (
        ({"role": "user"}, {"msg_garden00001"}),
        ({"kind": ["tool_output", "prompt"]}, {"msg_garden00001", "msg_garden00002"}),
        ({"directory": "/home/dev/elsewhere"}, set()),
        ({"project": "pid"}, everything),
        ({"since": "2026-11-22"}, set()),
        ({"until": "2026-11-20"}, set()),
        ({"mode": "literal"}, everything),
    ):
        assert (filters, set(keys(page(client, {"q": "rows"} | filters)))) == (filters, wanted)


def test_the_form_shows_the_search(client: TestClient) -> None:
    query = {"q": "a \"b\" 'c'", "mode": "fuzzy", "role": "user", "since": "7d", "project": "px", "kind": ["title"]}
    found = page(client, query)
    values = {e.attributes["name"]: e.attributes["value"] for e in found.named("input") if "name" in e.attributes}
    assert values["q"] == "a \"b\" 'c'"
    assert values["since"] == "7d"
    chosen = {e.attributes["value"] for e in found.named("option") if "selected" in e.attributes}
    assert {"fuzzy", "user", "px"} <= chosen
    checked = [e.attributes["value"] for e in found.named("input") if "checked" in e.attributes]
    assert checked == ["title"]


def test_suggestions_are_links_to_searches(client: TestClient) -> None:
    found = page(client, {"q": "rows", "role": "user", "kind": "tool_output"})
    assert "What may help" in found.text
    assert any("q=rows" in href and "kind=" not in href for href in found.with_attribute("href"))


def test_words_that_nobody_said(client: TestClient) -> None:
    assert "Nothing found" in page(client, {"q": "zzyzx", "mode": "literal"}).text


# -- addresses -------------------------------------------------------------------------------------------------------


def test_an_address_and_its_search_are_the_same() -> None:
    search = Search("rate limit", "fuzzy", "p1", "/w/a b", "7d", "now", "user", "newest", ("prompt", "title"), 30)
    assert read(QueryParams(urlsplit(search.url).query)) == search
    assert Search().url == "/"
    assert search.arguments()["query"] == "rate limit"


@pytest.mark.parametrize("offset", ["-1", "x", "", "1e9", "³", "9" * 5000])
def test_an_offset_is_a_number_or_none(client: TestClient, offset: str) -> None:
    assert client.get("/", params={"q": "rows", "offset": offset}).status_code == 200


# -- hostile ---------------------------------------------------------------------------------------------------------

QUERIES = [
    *MARKUP,
    '"><script>alert(1)</script>',
    "' autofocus onfocus=alert(1) x='",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[31m\u202e",
    "[" * 500,
    "a" * 20_000,
    "(a+)+$",
    "%ff%fe",
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_is_text(client: TestClient, query: str) -> None:
    answer = client.get("/", params={"q": query}, headers=PART)
    assert answer.status_code in (200, 400), answer.text
    assert parsed(answer.text).harms() == []
    assert answer.headers.get("hx-replace-url", "/").startswith("/")


@pytest.mark.parametrize("name", ["mode", "project", "directory", "since", "until", "role", "kind", "sort", "offset"])
@pytest.mark.parametrize("value", ['"><script>alert(1)</script>', "' autofocus onfocus=alert(1) x='", "\x00\u202e"])
def test_a_filter_is_text(client: TestClient, name: str, value: str) -> None:
    for query in ({}, {"q": "rows"}):
        answer = client.get("/", params=query | {name: value})
        assert answer.status_code in (200, 400), answer.text
        assert parsed(answer.text).harms() == []


def test_records_are_text(client: TestClient) -> None:
    """Title, folder, prompt and tool output of each session are a hostile text."""
    seen, address = 0, "/?q=heron&sort=newest"
    while address:
        answer = client.get(address, headers=PART)
        found = parsed(answer.text)
        assert found.harms() == []
        assert not re.search("[\x00-\x08\x1b\u202a-\u202e]", answer.text)
        seen += len(keys(found))
        following = found.with_attribute("hx-get")
        address = following[0] if following else ""
    assert seen > len(MARKUP)
    assert parsed(client.get("/").text).harms() == []


def test_marks_do_not_open_markup() -> None:
    assert marked("<script>x</script>", ["<script>", "("]) == "<mark>&lt;script&gt;</mark>x&lt;/script&gt;"
    assert marked("a\u202eb", ["\u202e"]) == "a<mark>⟨U+202E⟩</mark>b"


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (BadRequest("<b>query</b>: no; use another"), 400, "<b>query</b>: no"),
        (NotRecorded("/w: nothing is recorded"), 404, "/w: nothing"),
        (Retry("the archive is busy; try again"), 503, "try again"),
        (ArchiveCorrupt(f"broken; {SECRET}"), 500, "broken"),
        (ValueError("a quoted message"), 500, "internal error (ValueError)"),
    ],
)
def test_errors_are_pages(visit: Visit, error: Exception, status: int, said: str) -> None:
    for headers in ({}, PART):
        answer = visit(Scripted(error)).get("/", params={"q": "x"}, headers=headers)
        found = parsed(answer.text)
        assert (answer.status_code, said in found.text, found.harms()) == (status, True, [])
        assert ("<nav" in answer.text) == (not headers)
        assert SECRET not in answer.text
        assert "quoted message" not in answer.text


def test_an_error_of_the_whole_answer_takes_the_place_of_nothing(visit: Visit) -> None:
    client = visit(Scripted(*[Retry("the model is gone; try again")] * 2))
    for query, place in (({"q": "x", "whole": "1"}, "afterbegin"), ({"q": "x"}, None)):
        answer = client.get("/", params=query, headers=PART)
        assert (answer.status_code, answer.headers.get("hx-reswap")) == (503, place)
        assert "the model is gone" in answer.text


def test_an_unknown_page_is_said(client: TestClient) -> None:
    answer = client.get("/<script>")
    assert (answer.status_code, parsed(answer.text).harms()) == (404, [])


def test_links_of_results_are_ours(client: TestClient) -> None:
    for href in page(client, {"q": "heron"}).with_attribute("href"):
        assert urlsplit(href).netloc == ""
        assert parse_qs(urlsplit(href).query) is not None
