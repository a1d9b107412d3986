"""The file view over a real archive, as a browser asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from daemon import config
from daemon.app import OneShot
from daemon.app.calls import lines
from daemon.control.calls import Service
from daemon.web.views import file as view
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import T0, JsonStore
from tests.unit.web.markup import Markup
from tests.unit.web.test_web_session import HOSTILE, HTMX, ROOT, SECRET

FILE = f"{ROOT}/beds.lua"


class Desk:
    def __init__(self, browser: TestClient, talk: Talk) -> None:
        self.browser, self.talk = browser, talk

    def ask(self, address: str = "", path: str = FILE, part: bool = False, **query: Any) -> Any:
        return self.browser.get(f"/file{address}", params={"path": path} | query, headers=HTMX if part else None)

    def page(self, address: str = "", **query: Any) -> Markup:
        answer = self.ask(address, **query)
        assert answer.status_code == 200, answer.text
        return Markup(answer.text)


@pytest.fixture
def desk(tmp_path: Path, visit: Callable[[Service], TestClient]) -> Iterator[Desk]:
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "a")}}
    with OneShot(msgspec.convert(tables, config.Config)) as engine:
        yield Desk(visit(engine), Talk(JsonStore(tmp_path / "oc")))


# -- moments -------------------------------------------------------------------------------------------------------------


def test_each_state_is_listed_once_and_shows_its_content(desk: Desk) -> None:
    for word in ("one", "two", "three"):
        desk.talk.write(FILE, f"{word}\n")
    page = desk.page()
    states = [href for href in page.links("/file?") if "at=" in href]
    assert len(states) == 3
    assert [Markup(desk.browser.get(state, headers=HTMX).text).text.count("one") for state in states] == [1, 0, 0]
    (slider,) = [attributes for tag, attributes in page.elements if attributes.get("type") == "range"]
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "2")


def test_a_moment_is_an_address(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    desk.talk.write(FILE, "two\n")
    page = desk.page(at=T0 + 1500)
    assert ("one" in page.text, "two" in page.text) == (True, False)
    (slider,) = [attributes for tag, attributes in page.elements if attributes.get("type") == "range"]
    assert slider["value"] == "0"
    assert "nothing was recorded by then" in desk.page(at=T0 - 5000).text


def test_grade_and_evidence_stand_beside_the_content(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    desk.talk.call("edit", {"filePath": FILE, "oldString": "one", "newString": "two"}, "ok")
    text = desk.page().text
    assert ("proven" in text, "edit of a proven text" in text) == (True, True)
    assert desk.page().links(f"/session/{desk.talk.session_id}?message=")


def test_each_line_leads_to_its_prompt(desk: Desk) -> None:
    desk.talk.ask("Number the rows.")
    first = desk.talk.write(FILE, "one\ntwo\nthree\n")
    desk.talk.ask("Change the second.")
    second = desk.talk.call("edit", {"filePath": FILE, "oldString": "two", "newString": "2"}, "ok")
    page = desk.page()
    titles = [title for title in page.attributes("title") if title]
    assert titles == ["Number the rows.", "Change the second.", "Number the rows."]
    session_id = desk.talk.session_id
    assert page.links(f"/session/{session_id}?message={first}") != page.links(f"/session/{session_id}?message={second}")


def test_a_deleted_file_leads_to_its_last_content(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    desk.talk.call("apply_patch", {"patchText": f"*** Begin Patch\n*** Delete File: {FILE}\n*** End Patch"}, "Done")
    page = desk.page()
    assert "its last known content is that of" in page.text
    assert "one" in desk.page(at=T0 + 1010).text
    assert not page.links("/file/download")


# -- windows -------------------------------------------------------------------------------------------------------------


def test_a_long_file_has_a_place_for_every_line_and_fetches_those_that_are_seen(desk: Desk) -> None:
    total = 100_000
    desk.talk.write(FILE, "".join(f"line {number}\n" for number in range(total)))
    answer = desk.ask()
    assert len(answer.text) < 500_000
    page = Markup(answer.text)
    waiting = [address for address in page.attributes("hx-get") if "/file/lines" in address]
    assert len(waiting) == total // view.WINDOW - 1
    last = desk.browser.get(waiting[-1], headers=HTMX).text
    assert '<ol start="99001">' in last
    assert "line 99999" in last
    assert last.count("<li>") == view.WINDOW
    places = answer.text.split("<pre>")[1:]
    assert [place.partition("</pre>")[0].count("\n") - 1 for place in places] == [view.WINDOW] * len(waiting)


@pytest.mark.parametrize("at", ["", "2099-01-01"])
def test_later_windows_and_downloads_are_of_the_state_shown(desk: Desk, at: str) -> None:
    desk.talk.write(FILE, "first\n" * (view.WINDOW + 1))
    page = desk.page(at=at)
    desk.talk.write(FILE, "second\n" * (view.WINDOW + 1))
    assert "second" in desk.page(at=at).text
    (window,) = [address for address in page.attributes("hx-get") if "/file/lines" in address]
    for address in (window, *page.links("/file/download")):
        text = desk.browser.get(address, headers=HTMX).text
        assert ("first" in text, "second" in text) == (True, False)


def test_windows_are_no_pages_of_their_own(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    assert desk.ask("/lines", start=0).status_code == 303
    assert desk.ask("/lines", part=True, start="x").status_code == 400


# -- diffs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [True, False])
def test_any_two_states_are_compared(desk: Desk, part: bool) -> None:
    for word in ("one", "two", "three"):
        desk.talk.write(FILE, f"same\n{word}\n")
    answer = desk.ask("/diff", part=part, old=T0 + 1500, new=T0 + 3500)
    assert '<span class="del">-one\n' in answer.text
    assert '<span class="add">+three\n' in answer.text
    assert ("<html" in answer.text) is not part


def test_equal_states_say_so(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    assert "no change" in desk.page("/diff", old=T0 + 1500, new=T0 + 1500).text


# -- downloads -----------------------------------------------------------------------------------------------------------


def test_exact_bytes_come_only_on_purpose(desk: Desk) -> None:
    content = f"token = '{SECRET}'\r\n\x1b[0m"
    desk.talk.write(FILE, content)
    page = desk.page()
    assert "Download exact bytes, secrets included" in page.text
    hidden, exact = [desk.browser.get(link) for link in page.links("/file/download")]
    assert SECRET not in hidden.text
    assert exact.content == content.encode()
    for answer in (hidden, exact):
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith('attachment; filename="beds.lua"')
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("kind", ["latin-1", "nul", "long"])
def test_a_file_that_is_not_shown_may_hold_secrets(desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Its lines are not searched for secrets: nobody knows yet whether it has some."""
    content = f"token = '{SECRET}'\n"
    if kind == "latin-1":
        monkeypatch.setattr(lines, "data_of", lambda _: content.encode() + b"\xfc\n")
    elif kind == "nul":
        content += "\0"
    else:
        monkeypatch.setattr(lines, "_LARGEST", 8)
    desk.talk.write(FILE, content)
    page = desk.page()
    assert "Download exact bytes, any secrets included" in page.text
    hidden, exact = [desk.browser.get(link) for link in page.links("/file/download")]
    assert SECRET not in hidden.text
    assert exact.content == content.encode()


def test_what_is_not_there_cannot_be_downloaded(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    assert desk.ask("/download", path=f"{ROOT}/none").status_code == 404
    assert desk.ask("/download", at=T0 - 5000).status_code == 404


def test_the_name_of_a_download_cannot_end_its_header() -> None:
    header = view._attachment('a"; filename=b\r\nset-cookie: x=1;\u202eüser\ud800.lua')
    assert header.isascii()
    assert "\r" not in header
    assert "\n" not in header
    assert header.count('"') == 2


# -- mistakes and hostile records ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "status"),
    [({"path": ""}, 400), ({"path": "relative"}, 400), ({"path": "/none"}, 404), ({"at": "never"}, 400)],
    ids=str,
)
def test_a_wrong_address_is_said_on_a_page(desk: Desk, query: dict[str, str], status: int) -> None:
    desk.talk.write(FILE, "one\n")
    answer = desk.ask(**query)
    assert (answer.status_code, Markup(answer.text).dangers()) == (status, [])


@pytest.mark.parametrize("words", [words for words in HOSTILE if "\ud800" not in words])
def test_hostile_content_is_only_text(desk: Desk, words: str) -> None:
    path = f"{ROOT}/{words.replace('/', '')}"
    desk.talk.ask(words)
    desk.talk.write(path, f"{words}\nsame\n{words}")
    desk.talk.write(path, f"changed {words}\nsame\n")
    for address in ("", "/diff"):
        answer = desk.ask(address, path=path)
        assert answer.status_code == 200, answer.text
        page = Markup(answer.text)
        assert page.dangers() == []
        assert [tag for tag, _ in page.elements].count("script") == 2
        if words.isprintable():
            assert words in page.text
        else:
            assert not any(character in page.text for character in "\x1b\x07\u202e\u2066\u200b\U000e0041")


def test_a_huge_line_is_cut(desk: Desk) -> None:
    desk.talk.write(FILE, "x" * 3_000_000 + "\n")
    answer = desk.ask()
    assert len(answer.text) < 60_000
    assert "more characters]" in answer.text
