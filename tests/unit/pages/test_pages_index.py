"""The page over all targets of an output directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from daemon.model import Page
from daemon.publish import MANIFEST, publish
from daemon.reconstitute.answer import OUTDATED
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.changes import Logged, Summary, page
from daemon.reconstitute.pages.index import Entry, from_json, index, publish_index, to_json
from tests.support.pages.markup import PAYLOADS, kinds, links, parse
from tests.support.pages.page_material import (
    AT,
    DAY,
    ROOT,
    SECRET,
    answer,
    file,
    material,
    numbered,
    pages,
    record,
    statement,
)
from tests.support.pages.rich_facts import facts, rich

LOGGED = Logged(AT, "Build", "sessions/a.md", "Build a cart.", 0, "cart.py")
SHOP = Entry("home/dev/shop", ROOT, "Sells mugs.", False, 3, {"proven": 2, "stale": 1}, AT)


def test_each_target_has_its_purpose_and_what_is_known_of_it():
    quoted = Entry("home/dev/blog", "/home/dev/blog", '"Please build a blog."', True, 1, {"verified": 1}, AT + DAY)
    unknown = Entry("home/dev/x", "/home/dev/x", "", False, 0, {}, 0)
    told = replace(
        SHOP,
        known="All 3 files are known exactly",
        open=2,
        edited=("README.md", "src/a.py.md"),
        retired=("sessions/2026-11-18-inner.md",),
    )
    assert index([told, quoted, unknown]).content.splitlines() == [
        "# Reconstituted",
        "",
        "- [/home/dev/blog](home/dev/blog/README.md): “Please build a blog.”",
        "  - 1 session, last activity 2026-11-22 12:00. 1 file: 1 verified.",
        "- [/home/dev/shop](home/dev/shop/README.md): Sells mugs.",
        "  - 3 sessions, last activity 2026-11-21 12:00. All 3 files are known exactly. 2 points left open.",
        (
            "  - Edited by hand, and kept as you left it with the current page beside it: "
            "[README.md](home/dev/shop/README.md), [src/a.py.md](home/dev/shop/src/a.py.md)"
        ),
        (
            "  - No pages of it any more, and kept for what you wrote in them: "
            "[sessions/2026-11-18-inner.md](home/dev/shop/sessions/2026-11-18-inner.md)"
        ),
        "- [/home/dev/x](home/dev/x/README.md): nothing recorded says what it is for.",
        "  - 0 sessions, last activity unknown time. 0 files.",
        "",
        "What happened each day: [CHANGES.md](CHANGES.md). Times in UTC.",
    ]


def test_an_earlier_state_is_told_apart():
    earlier = replace(SHOP, folder="home/dev/shop@2026-11-21T120000Z", moment=AT)
    lines = index([earlier, SHOP]).content.splitlines()
    assert lines[2].startswith("- [/home/dev/shop](home/dev/shop/README.md): ")
    assert "(home/dev/shop%402026-11-21T120000Z/README.md), as it was at 2026-11-21 12:00: " in lines[4]


def test_entry_order_is_irrelevant_and_the_last_entry_of_a_folder_counts():
    other = replace(SHOP, folder="home/dev/blog", title="/home/dev/blog")
    assert index([SHOP, other]) == index([other, replace(SHOP, sessions=99), SHOP])


def test_without_a_target_it_says_so():
    assert "Nothing is reconstituted yet." in index([]).content


def test_an_entry_is_kept_as_json():
    full = replace(SHOP, known="All 3 files are known exactly", open=1, edited=("README.md",), log=(LOGGED,))
    summed = replace(full, log=(replace(LOGGED, summary=Summary("Built.", AT, "", "Done.")),))
    for entry in (SHOP, full, summed):
        assert from_json(json.loads(json.dumps(to_json(entry)))) == entry


def test_an_entry_of_version_0_1_still_loads():
    kept = {
        "folder": "home/dev/shop", "title": ROOT, "summary": "Sells mugs.", "is_quoted": False, "sessions": 3,
        "files": {"proven": 2, "stale": 1}, "newest": AT, "moment": None,
    }  # fmt: skip
    assert from_json(kept) == SHOP
    assert from_json({key: kept[key] for key in kept if key != "moment"}) == SHOP


def test_a_target_makes_its_own_entry():
    made = Renderer(rich(), 10).entry("home/dev/shop")
    assert made.summary == "Ein kleiner Laden für Becher, ohne Datenbank."
    assert (made.is_quoted, made.sessions, made.files, made.newest, made.known, made.open) == (
        False, 6, {"proven": 7}, AT + 2 * DAY + 2 * 60_000, "All 7 files are known exactly", 3
    )  # fmt: skip
    assert [(one.title, one.asked, one.more, one.came) for one in made.log] == [
        ("Warenkorb bauen", "Bitte baue einen Warenkorb für den Laden, zuerst mit einem Plan.", 1,
         "cart.py, test_cart.py; tests passed; 1 commit"),
        ("Switch the port", "Turn DEBUG off and add a SECRET.", 0, ""),
        ("Switch the port", "Rather set PORT to 8000.", 0, "settings.py; in part taken back"),
        ("Switch the port (fork #1)", "Keep DEBUG on here.", 0, "stopped"),
        ("Deploy", "Deploy it to the staging server.", 0, "old.py (deleted), name.py (moved); tests failed; failed"),
        ("What is left to do?", "What is left to do?", 0, "still open"),
    ]  # fmt: skip


def test_what_a_model_says_a_target_is_for_comes_first():
    found = record(answer("purpose", statement("Sells mugs."), statement("And cups.")))
    made = Renderer(rich(found=found), 10).entry("home/dev/shop")
    assert (made.summary, made.is_quoted) == ("Sells mugs.", False)


def test_a_purpose_that_is_only_the_first_prompt_is_quoted():
    prompted = replace(facts(), purpose=(Purpose("Build me a shop.", "first prompt"),))
    made = Renderer(rich(prompted), 10).entry("home/dev/shop")
    assert (made.summary, made.is_quoted) == ("Build me a shop.", True)


# -- what happened each day ------------------------------------------------------------------------------------------


def test_each_day_names_the_sessions_of_every_folder_newest_first():
    later = replace(LOGGED, time=AT + DAY, title="Mend it", href="", more=2, came="")
    assert page(
        [("home/dev/blog", "/home/dev/blog", [later]), ("home/dev/shop", ROOT, [LOGGED])]
    ).content.splitlines() == [
        "# What happened",
        "",
        "Newest first; times in UTC.",
        "",
        "## 2026-11-22",
        "",
        "**[/home/dev/blog](home/dev/blog/README.md)**",
        "",
        "- 12:00 Mend it: “Build a cart.” and 2 more prompts",
        "",
        "## 2026-11-21",
        "",
        "**[/home/dev/shop](home/dev/shop/README.md)**",
        "",
        "- 12:00 [Build](home/dev/shop/sessions/a.md): “Build a cart.” → cart.py",
    ]


@pytest.mark.parametrize(
    ("targets", "directory", "told_under"),
    [
        (["/p", "/p/sub", "/p/a.py"], "/p/sub/x", ["/p/sub"]),
        (["/p", "/p/sub", "/p/a.py"], "/p", ["/p"]),
        (["/p", "/p/sub"], "/elsewhere", ["/p"]),
        (["/p", "/p2"], "/p2", ["/p", "/p2"]),
        (["/p", "/p2"], "/elsewhere", ["/p", "/p2"]),
    ],
    ids=["innermost", "only the outer holds it", "none holds it", "another beside it", "none of two holds it"],
)
def test_a_session_is_told_once_where_targets_lie_in_one_another(
    targets: list[str], directory: str, told_under: list[str]
):
    """What it did to targets beside each other differs, and is told under each."""
    one = replace(LOGGED, session="ses_1", directory=directory)
    text = page([(target[1:], target, [one]) for target in targets]).content
    assert [target for target in targets if f"({target[1:]}/sessions/a.md)" in text] == told_under
    assert text.count("[Build]") == len(told_under)


def test_what_was_logged_without_a_session_is_told_under_each_target():
    assert page([("p", "/p", [LOGGED]), ("p/sub", "/p/sub", [LOGGED])]).content.count("[Build]") == 2


def test_what_a_model_says_of_a_session_stands_in_place_of_its_prompts():
    said = Summary("A cart was built.", AT, "sessions/a.md#msg-02", "Done.")
    lines = numbered(page([("home/dev/shop", ROOT, [replace(LOGGED, summary=said)])]).text).splitlines()
    assert lines[2] == "Newest first; times in UTC. A sentence with a footnote is a model's."
    assert lines[-3:] == [
        "- 12:00 [Build](home/dev/shop/sessions/a.md): A cart was built.[^1] → cart.py",
        "",
        "[^1]: 2026-11-21 12:00, [Build](home/dev/shop/sessions/a.md#msg-02): “Done.”",
    ]


def test_a_summary_that_newer_evidence_overtook_is_left_out_of_the_days():
    current = statement("A cart was built.")
    said = {"ses_1": current, "ses_3": replace(current, reason=OUTDATED)}
    made = Renderer(rich(found=record(summaries=said)), 10).entry("home/dev/shop")
    assert [one.summary.text if one.summary else "" for one in made.log] == ["A cart was built.", "", "", "", "", ""]


def test_older_months_are_folded_and_very_old_sessions_counted():
    logs = [replace(LOGGED, time=AT - number * DAY) for number in range(1002)]
    text = page([("home/dev/shop", ROOT, logs)]).content
    assert text.index("## 2026-11-01") < text.index("<details><summary>2026-10</summary>\n\n## 2026-10-31")
    assert text.endswith("Not listed: 2 older sessions.\n")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_in_what_happened_is_inert(payload: str):
    one = replace(LOGGED, title=payload, asked=payload, came=payload)
    two = replace(one, summary=Summary(payload, AT, "sessions/a.md", payload))
    text = page([("home/dev/shop", payload, [one, two])]).content
    assert not kinds(text) & {"html_block", "html_inline", "image", "fence", "code_block", "hr", "em_open"}
    assert [token.type for token in parse(text)].count("heading_open") == 2


def test_no_session_says_so():
    assert "Nothing is recorded yet." in page([]).content


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("is_quoted", [True, False])
def test_hostile_text_in_it_is_inert(payload: str, is_quoted: bool):
    text = index([replace(SHOP, title=payload, summary=payload, is_quoted=is_quoted), SHOP]).content
    assert not kinds(text) & {"html_block", "html_inline", "image", "fence", "code_block", "hr", "em_open"}
    assert [token.type for token in parse(text)].count("heading_open") == 1
    assert links(text) == ["home/dev/shop/README.md", "CHANGES.md"]


def test_no_secret_reaches_it():
    assert SECRET not in index([replace(SHOP, title=f"/home/{SECRET}", summary=f"key {SECRET}")]).content


# -- published -------------------------------------------------------------------------------------------------------


def _tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def _target(root: Path, name: str = "home/dev/shop") -> None:
    made = [Page(path, text) for path, text in pages(material([file("a.py"), file("src/b.py")])).items()]
    publish(root, name, made, spare_bytes=0)


def test_its_links_lead_to_the_trees(tmp_path: Path):
    _target(tmp_path)
    assert publish_index(tmp_path, [SHOP], spare_bytes=0) == []
    text = (tmp_path / "README.md").read_text()
    assert links(text) == ["home/dev/shop/README.md", "CHANGES.md"]
    assert all((tmp_path / unquote(href)).is_file() for href in links(text))


def test_the_trees_of_the_targets_are_no_part_of_it(tmp_path: Path):
    _target(tmp_path)
    before = _tree(tmp_path)
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    assert list(json.loads((tmp_path / MANIFEST).read_text())["pages"]) == ["CHANGES.md", "README.md"]
    publish_index(tmp_path, [], spare_bytes=0)
    _target(tmp_path)
    _target(tmp_path, "home/dev/blog")
    publish_index(tmp_path, [SHOP, replace(SHOP, folder="home/dev/blog")], spare_bytes=0)
    after = _tree(tmp_path)
    assert {path: after[path] for path in before} == before
    assert list(json.loads(after[MANIFEST])["pages"]) == ["CHANGES.md", "README.md"]


def test_a_target_may_become_published_again_beneath_it(tmp_path: Path):
    publish_index(tmp_path, [], spare_bytes=0)
    _target(tmp_path)
    published = publish(tmp_path, "home/dev/shop", [Page("README.md", "new\n")], spare_bytes=0)
    assert "a.py.md" in published.removed
    assert (tmp_path / "README.md").exists()


def test_the_same_entries_write_nothing_again(tmp_path: Path):
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert publish_index(tmp_path, [SHOP], spare_bytes=0) == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_readme_of_a_person_is_never_touched(tmp_path: Path):
    (tmp_path / "README.md").write_text("mine\n")
    _target(tmp_path)
    assert "not ours" in publish_index(tmp_path, [SHOP], spare_bytes=0)[0]
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert not (tmp_path / MANIFEST).exists()


def test_a_readme_edited_or_replaced_by_a_person_is_kept_and_reported(tmp_path: Path):
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    (tmp_path / "README.md").write_text("mine now\n")
    for entries in ([SHOP], []):
        assert "edited by hand" in publish_index(tmp_path, entries, spare_bytes=0)[0]
        assert (tmp_path / "README.md").read_text() == "mine now\n"


@pytest.mark.parametrize(("edited", "shown"), [("CHANGES.md", "README.md"), ("README.md", "README.current.md")])
def test_the_root_page_names_an_edited_page_beside_it(tmp_path: Path, edited: str, shown: str):
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    before = (tmp_path / edited).read_text()
    (tmp_path / edited).write_text("mine now\n")
    said = f"Edited by hand, and kept as you left it with the current page beside it: [{edited}]({edited})\n"
    for _ in range(2):
        publish_index(tmp_path, [SHOP], spare_bytes=0)
        assert said in (tmp_path / shown).read_text()
        assert (tmp_path / edited).read_text() == "mine now\n"
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == written
    (tmp_path / edited).write_text(before)
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    assert "Edited by hand" not in (tmp_path / "README.md").read_text()
    assert not (tmp_path / f"{edited.removesuffix('.md')}.current.md").exists()


def test_a_file_of_a_person_elsewhere_in_the_directory_is_left(tmp_path: Path):
    publish_index(tmp_path, [], spare_bytes=0)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes.md").write_text("mine\n")
    assert publish_index(tmp_path, [SHOP], spare_bytes=0) == []
    assert (tmp_path / "home" / "notes.md").read_text() == "mine\n"
