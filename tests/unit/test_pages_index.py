"""The page over all targets of an output directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from found_out import AT, DAY, ROOT, SECRET, answer, file, material, pages, passage, record, statement
from markup import PAYLOADS, kinds, links, parse

from daemon.model import Page
from daemon.publish import MANIFEST, publish
from daemon.reconstitute.pages.index import Entry, from_json, index, publish_index, to_json
from daemon.reconstitute.pages.render import Renderer
from daemon.reconstitute.recover import State

SHOP = Entry("home/dev/shop", ROOT, "Sells mugs.", False, 3, {"proven": 2, "stale": 1}, AT)


def test_each_target_has_a_line_with_what_is_known_of_it():
    quoted = Entry("home/dev/blog", "/home/dev/blog", '"Please build a blog."', True, 1, {"verified": 1}, AT + DAY)
    unknown = Entry("home/dev/x", "/home/dev/x", "", False, 0, {}, 0)
    assert index([SHOP, quoted, unknown]).content.splitlines() == [
        "# Reconstituted",
        "",
        "- [/home/dev/blog](home/dev/blog/README.md): “Please build a blog.”",
        "  - 1 file: 1 verified; 1 session; newest evidence of 2026-11-22",
        "- [/home/dev/shop](home/dev/shop/README.md): Sells mugs.",
        "  - 3 files: 2 proven, 1 stale; 3 sessions; newest evidence of 2026-11-21",
        "- [/home/dev/x](home/dev/x/README.md): what it was for is not answered.",
        "  - 0 files; 0 sessions; newest evidence of unknown time",
    ]


def test_an_earlier_state_is_told_apart():
    earlier = replace(SHOP, folder="home/dev/shop@2026-11-21T120000Z", moment=AT)
    lines = index([earlier, SHOP]).content.splitlines()
    assert lines[2].startswith("- [/home/dev/shop](home/dev/shop/README.md): ")
    assert "(home/dev/shop%402026-11-21T120000Z/README.md), as it was at 2026-11-21T12:00:00Z: " in lines[4]


def test_the_order_of_the_entries_does_not_matter_and_the_last_of_a_folder_counts():
    other = replace(SHOP, folder="home/dev/blog", title="/home/dev/blog")
    assert index([SHOP, other]) == index([other, replace(SHOP, sessions=99), SHOP])


def test_without_a_target_it_says_so():
    assert "Nothing is reconstituted yet." in index([]).content


def test_an_entry_is_kept_as_json():
    assert from_json(json.loads(json.dumps(to_json(SHOP)))) == SHOP


def test_a_target_makes_its_own_entry():
    files = [file("a.py"), file("b.py", state=State.STALE)]
    found = record(answer("purpose", statement("Sells mugs."), statement("And cups.")))
    made = Renderer(material(files, found), 10).entry("home/dev/shop")
    assert made == Entry("home/dev/shop", ROOT, "Sells mugs.", False, 1, {"proven": 1, "stale": 1}, AT)
    quoted = Renderer(material(files, said=[passage("It sells mugs.")]), 10).entry("home/dev/shop")
    assert (quoted.summary, quoted.is_quoted) == ("It sells mugs.", True)
    assert Renderer(material(files), 10).entry("home/dev/shop").summary == ""


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("is_quoted", [True, False])
def test_hostile_text_in_it_is_inert(payload: str, is_quoted: bool):
    text = index([replace(SHOP, title=payload, summary=payload, is_quoted=is_quoted), SHOP]).content
    assert not kinds(text) & {"html_block", "html_inline", "image", "fence", "code_block", "hr", "em_open"}
    assert [token.type for token in parse(text)].count("heading_open") == 1
    assert links(text) == ["home/dev/shop/README.md"]


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
    assert links(text) == ["home/dev/shop/README.md"]
    assert all((tmp_path / unquote(href)).is_file() for href in links(text))


def test_the_trees_of_the_targets_are_no_part_of_it(tmp_path: Path):
    _target(tmp_path)
    before = _tree(tmp_path)
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    assert list(json.loads((tmp_path / MANIFEST).read_text())["pages"]) == ["README.md"]
    publish_index(tmp_path, [], spare_bytes=0)
    _target(tmp_path)
    _target(tmp_path, "home/dev/blog")
    publish_index(tmp_path, [SHOP, replace(SHOP, folder="home/dev/blog")], spare_bytes=0)
    after = _tree(tmp_path)
    assert {path: after[path] for path in before} == before
    assert list(json.loads(after[MANIFEST])["pages"]) == ["README.md"]


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


def test_a_readme_that_a_person_put_in_its_place_or_edited_is_kept_and_said(tmp_path: Path):
    publish_index(tmp_path, [SHOP], spare_bytes=0)
    (tmp_path / "README.md").write_text("mine now\n")
    for entries in ([SHOP], []):
        assert "edited by hand" in publish_index(tmp_path, entries, spare_bytes=0)[0]
        assert (tmp_path / "README.md").read_text() == "mine now\n"


def test_a_file_of_a_person_elsewhere_in_the_directory_is_left(tmp_path: Path):
    publish_index(tmp_path, [], spare_bytes=0)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes.md").write_text("mine\n")
    assert publish_index(tmp_path, [SHOP], spare_bytes=0) == []
    assert (tmp_path / "home" / "notes.md").read_text() == "mine\n"
