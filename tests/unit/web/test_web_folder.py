"""A folder in the browser: its page, its files, a restore with a preview, a run, and forgetting."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from daemon.app import OneShot
from daemon.control import calls
from daemon.control.file_answers import RecordedFile
from daemon.web import application
from daemon.web.entrance import Entrance
from daemon.web.site import HERE
from daemon.web.tree import level
from tests.unit.web.conftest import ADDRESS, PORT, Visit
from tests.unit.web.markup import Markup
from tests.unit.web.places import HOSTILE, SECRET, engine_at, in_one_loop, talk_in

ORIGIN = {"origin": ADDRESS}


class Garden:
    """The archive of one session, and a browser."""

    def __init__(self, root: Path, engine: OneShot, visit: Visit) -> None:
        self.root, self.engine = root, engine
        self.talk, self.folder = talk_in(root)
        self._visit = visit

    def browser(self) -> TestClient:
        return self._visit(self.engine)

    def lasting_browser(self) -> TestClient:
        """One for whom work goes on after a request; to be entered."""
        entrance = Entrance()
        app = in_one_loop(application(self.engine, entrance, PORT))
        client = TestClient(app, base_url=ADDRESS, follow_redirects=False)
        client.get("/enter", params={"key": entrance.new_link()})
        return client


@pytest.fixture
def garden(tmp_path: Path, visit: Visit) -> Iterator[Garden]:
    with engine_at(tmp_path) as engine:
        yield Garden(tmp_path, engine, visit)


def token(text: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def test_the_page_has_the_words_of_the_markdown_page_in_its_order(garden: Garden) -> None:
    garden.talk.ask("Number the rows of the beds.")
    garden.talk.write(f"{garden.folder}/beds.lua", "rows = [1]\n")
    garden.talk.answer("The rows are numbered.")
    shown = garden.browser().get("/folder", params={"path": garden.folder}).text
    markdown = garden.engine.call(calls.Page(garden.folder)).text
    garden.engine.call(calls.Reconstitute(garden.folder))
    written = garden.root / "pages" / garden.folder.strip("/") / "README.md"
    assert markdown.rstrip() in written.read_text()
    for words in ("Where it stands", "it can be brought back exactly", "Number the rows of the beds.", "beds.lua"):
        assert words in shown
    places = [shown.index(words) for words in ("Where it stands", "Left open", "What happened", "Files</h2>")]
    assert places == sorted(places)


def test_links_of_the_page_lead_to_files_and_sessions(garden: Garden) -> None:
    garden.talk.ask("Number the rows.")
    garden.talk.write(f"{garden.folder}/beds.lua", "rows = [1]\n")
    shown = garden.browser().get("/folder", params={"path": garden.folder}).text
    assert re.search(r'href="/file\?path=[^"]*beds\.lua"', shown)
    assert 'href="/session/ses_a' in shown
    assert ".md" not in "".join(re.findall(r'href="([^"#]*)"', shown))


def test_what_records_say_is_inert_in_the_page_and_in_the_files(garden: Garden) -> None:
    garden.talk.ask(f"{HOSTILE} [x](javascript:alert(1)) <details><summary>x</summary>")
    name = "<img src=x onerror=alert(1)>.txt"
    garden.talk.write(f"{garden.folder}/{name}", f"{HOSTILE}\n")
    browser = garden.browser()
    for where in ("/folder", "/folder/files", "/folder/restore"):
        shown = browser.get(where, params={"path": garden.folder}).text
        assert "alert(1)" in shown or "onerror" in shown
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "javascript:" not in "".join(re.findall(r'(?:href|src)="([^"]*)"', shown))
        assert "\u202e" not in shown


def test_a_secret_is_hidden_in_every_view(garden: Garden) -> None:
    garden.talk.ask(f"Use the token {SECRET}.")
    garden.talk.write(f"{garden.folder}/a.txt", f"token = {SECRET}\n")
    browser = garden.browser()
    for where in ("/folder", "/folder/files", "/folder/restore"):
        assert SECRET not in browser.get(where, params={"path": garden.folder}).text


def test_the_files_say_what_is_missing_and_what_comes_back(garden: Garden) -> None:
    Path(garden.folder, "src").mkdir(parents=True)
    garden.talk.write(f"{garden.folder}/src/here.txt", "x = 1\n")
    garden.talk.write(f"{garden.folder}/src/lost.txt", "y = 2\n")
    garden.talk.write(f"{garden.folder}/notes.txt", "n\n")
    Path(garden.folder, "src", "here.txt").write_text("x = 1\n")
    browser = garden.browser()
    shown = " ".join(browser.get("/folder/files", params={"path": garden.folder}).text.split())
    assert "3 files recorded" in shown
    assert "2 files are not on this disk</strong>: 2 can be brought back exactly" in shown
    assert "1 missing, 1 recoverable exactly" in shown  # in the row of src/
    inner = browser.get("/folder/files", params={"path": f"{garden.folder}/src"}).text
    assert "identical" in inner
    assert "missing" in inner
    lost = browser.get("/folder/files", params={"path": garden.folder, "lost": "1"}).text
    assert "lost.txt" in lost
    assert "here.txt" not in lost


def test_a_folder_of_many_files_comes_in_pages(garden: Garden) -> None:
    for number in range(230):
        garden.talk.write(f"{garden.folder}/f{number:03}.txt", f"{number}\n")
    browser = garden.browser()
    first = browser.get("/folder/files", params={"path": garden.folder}).text
    assert "f199.txt" in first
    assert "f200.txt" not in first
    more = browser.get(
        "/folder/files", params={"path": garden.folder, "start": "200"}, headers={"hx-request": "true"}
    ).text
    assert "f229.txt" in more
    assert "f199.txt" not in more
    assert "<html" not in more


def test_a_restore_is_previewed_and_then_written(garden: Garden) -> None:
    garden.talk.write(f"{garden.folder}/src/a.txt", f"key = '{SECRET}'\n")
    browser = garden.browser()
    preview = browser.get("/folder/restore", params={"path": garden.folder})
    target = garden.root / "back"
    assert "Would write 1 file (1 proven)" in preview.text
    assert not target.exists()
    fields = {"form_token": token(preview.text), "path": garden.folder, "to": str(target)}
    done = browser.post("/folder/restore", data=fields, headers=ORIGIN)
    assert done.status_code == 200
    assert "Wrote 1 file into" in done.text
    assert (target / "src" / "a.txt").read_text() == f"key = '{SECRET}'\n"  # exact bytes
    again = browser.post("/folder/restore", data=fields, headers=ORIGIN)
    assert again.status_code >= 400
    assert "is not empty" in again.text


@pytest.mark.parametrize("to", ["", "back", "../back"])
def test_a_restore_needs_an_absolute_new_folder(garden: Garden, to: str) -> None:
    garden.talk.write(f"{garden.folder}/a.txt", "a\n")
    browser = garden.browser()
    fields = {"form_token": token(browser.get("/folder/restore", params={"path": garden.folder}).text)}
    done = browser.post("/folder/restore", data=fields | {"path": garden.folder, "to": to}, headers=ORIGIN)
    assert done.status_code == 400
    assert not (garden.root / "back").exists()


def test_nothing_is_restored_into_the_archive(garden: Garden) -> None:
    garden.talk.write(f"{garden.folder}/a.txt", "a\n")
    browser = garden.browser()
    fields = {"form_token": token(browser.get("/folder/restore", params={"path": garden.folder}).text)}
    place = garden.root / "archive" / "new"
    done = browser.post("/folder/restore", data=fields | {"path": garden.folder, "to": str(place)}, headers=ORIGIN)
    assert done.status_code >= 400
    assert not place.exists()


@pytest.mark.parametrize("where", ["/folder/restore", "/folder/run", "/forget", "/status/pause"])
def test_a_form_without_its_token_does_nothing(garden: Garden, where: str) -> None:
    garden.talk.write(f"{garden.folder}/a.txt", "a\n")
    browser = garden.browser()
    fields = {"path": garden.folder, "to": str(garden.root / "back"), "name": garden.folder, "sure": "1", "until": ""}
    for sent in (fields, fields | {"form_token": "0" * 64}):
        assert browser.post(where, data=sent, headers=ORIGIN).status_code == 400
    assert not (garden.root / "back").exists()
    assert garden.engine.call(calls.Files(garden.folder)).known
    assert garden.engine.pausing.state() is None


def test_forgetting_is_previewed_and_needs_the_box(garden: Garden) -> None:
    garden.talk.ask(f"{HOSTILE}")
    garden.talk.write(f"{garden.folder}/a.txt", "a\n")
    browser = garden.browser()
    garden.engine.call(calls.Index())
    preview = browser.get("/forget", params={"name": "ses_a"})
    assert "Would go:" in preview.text
    assert "2 messages" in preview.text
    fields = {"form_token": token(preview.text), "name": "ses_a"}
    refused = browser.post("/forget", data=fields, headers=ORIGIN)
    assert refused.status_code == 400
    assert garden.engine.call(calls.Files(garden.folder)).known
    done = browser.post("/forget", data=fields | {"sure": "1"}, headers=ORIGIN)
    assert "Forgotten" in done.text
    assert not garden.engine.call(calls.Files(garden.folder)).known


def test_a_folder_in_which_sessions_ran_is_previewed_without_files(garden: Garden) -> None:
    """Its session's record has no revert that could show the folder."""
    garden.talk.ask("Number the rows.")
    browser = garden.browser()
    garden.engine.call(calls.Index())
    preview = browser.get("/forget", params={"name": garden.folder})
    assert preview.status_code == 200
    assert "There is nothing to forget." in preview.text
    assert "nothing is recorded of it" in preview.text


@pytest.mark.parametrize("template", sorted(path.name for path in (HERE / "templates").glob("*.html")))
def test_a_value_of_a_form_is_sent_back_as_it_is(template: str) -> None:
    """Only `| e` keeps an expression from showing invisible characters by name."""
    text = (HERE / "templates" / template).read_text()
    values = re.findall(r'\bvalue="([^"]*\{\{.*?\}\}[^"]*)"', text)
    assert [value for value in values if not re.fullmatch(r"\{\{[^{}]* \| e \}\}", value)] == []


@pytest.mark.parametrize("where", ["/folder", "/folder/restore", "/folder/run", "/forget"])
def test_forms_keep_a_path_with_invisible_characters(tmp_path: Path, visit: Visit, where: str) -> None:
    with engine_at(tmp_path) as engine:
        talk, folder = talk_in(tmp_path, "gar\u200bden \"&'")
        talk.write(f"{folder}/a.txt", "a\n")
        shown = visit(engine).get(where, params={"path": folder, "name": folder, "to": folder})
    assert shown.status_code == 200
    sent = {e["name"]: e["value"] for _, e in Markup(shown.text).elements if e.get("name") in ("path", "name", "to")}
    assert set(sent.values()) == {folder}
    assert len(sent) == (2 if where == "/folder/restore" else 1)


def run(browser: TestClient, path: str, end: str) -> str:
    """The page of a run that was asked for, once it shows `end`."""
    page = browser.get("/folder/run", params={"path": path})
    assert "None was asked for" in page.text
    sent = browser.post("/folder/run", data={"form_token": token(page.text), "path": path}, headers=ORIGIN)
    assert sent.status_code == 303
    last = time.monotonic() + 120
    while end not in (text := browser.get(sent.headers["location"]).text) and time.monotonic() < last:
        assert "Running: " in text
        time.sleep(0.1)
    return text


def test_a_run_is_asked_for_and_its_page_says_when_it_is_done(garden: Garden) -> None:
    garden.talk.ask("Number the rows.")
    garden.talk.write(f"{garden.folder}/beds.lua", "rows = [1]\n")
    with garden.lasting_browser() as browser:
        assert "1 file proven" in run(browser, garden.folder, "Done:")
    assert (garden.root / "pages" / garden.folder.strip("/") / "README.md").is_file()


def test_a_run_that_fails_says_why(garden: Garden) -> None:
    with garden.lasting_browser() as browser:
        assert "/nowhere" in run(browser, "/nowhere", 'role="alert"')


@pytest.mark.parametrize("where", ["/folder", "/folder/files", "/folder/restore", "/folder/run"])
@pytest.mark.parametrize("path", ["", "relative", "/a\0b"])
def test_a_path_that_is_none_is_refused(garden: Garden, where: str, path: str) -> None:
    assert garden.browser().get(where, params={"path": path}).status_code == 400


def test_a_folder_without_records_says_so(garden: Garden) -> None:
    answer = garden.browser().get("/folder", params={"path": "/nowhere"})
    assert answer.status_code == 404
    assert "/nowhere" in answer.text


def test_a_level_counts_what_is_beneath_each_folder() -> None:
    files = [
        RecordedFile("/p/a/x", "proven", disk="missing"),
        RecordedFile("/p/a/b/y", "stale", sha256="0" * 64, disk="missing"),
        RecordedFile("/p/a/z", "lost", disk="missing"),
        RecordedFile("/p/c", "proven", disk="identical"),
        RecordedFile("/p/d", "proven", deleted=True, disk="absent"),
    ]
    tree = level("/p", files)
    assert [(entry.name, entry.files, entry.missing, entry.exact, entry.stale) for entry in tree.entries] == [
        ("a", 3, 3, 1, 1),
        ("c", 1, 0, 0, 0),
        ("d", 0, 0, 0, 0),
    ]
    assert (tree.total.files, tree.total.deleted, tree.total.missing, tree.total.exact) == (4, 1, 3, 1)


def test_the_root_is_a_folder_too() -> None:
    [entry] = level("/", [RecordedFile("/home/a", "proven", disk="missing")]).entries
    assert (entry.name, entry.path, entry.missing) == ("home", "/home", 1)
