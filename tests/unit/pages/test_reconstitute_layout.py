"""Where each recorded file and folder has its page."""

from __future__ import annotations

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from daemon.filesystem import components
from daemon.publish import names as published_names
from daemon.reconstitute.pages.layout import Layout, ancestors, between

HOSTILE = [
    "README", "README.md", "readme", "a", "a.md/b", "A", "Src/x", "src/x", ".git/config", ".GIT/config", "x/.git",
    "n" * 300, "n" * 299 + "x", "tab\there", "new\nline", "back\\slash", "caf\u00e9", "cafe\u0301", "\u202etxt", " ", "-",
    ".reconstitute.json/x", "deep/" * 40 + "file",
]  # fmt: skip


def _all_pages(layout: Layout, files: list[str]) -> list[str]:
    return [layout.folder(folder) for folder in layout.folders] + [layout.file(path) for path in files]


def _check(files: list[str]) -> None:
    pages = _all_pages(Layout(files), files)
    assert len({page.casefold() for page in pages}) == len(pages)
    assert all(components(page) for page in pages)
    assert published_names(sorted(pages)) == sorted(pages), "publish would rename a page that others link to"
    assert pages == _all_pages(Layout(reversed(files)), files)


def test_every_hostile_name_gets_its_own_page_with_a_publishable_name():
    _check(HOSTILE)


def test_a_recovered_readme_does_not_take_the_folders_page():
    layout = Layout(["README.md", "README"])
    assert layout.folder("") == "README.md"
    assert layout.file("README.md") == "README.md.md"
    assert layout.file("README") != "README.md"


def test_plain_names_keep_their_places():
    layout = Layout(["src/app.py", "Makefile"])
    assert layout.file("src/app.py") == "src/app.py.md"
    assert layout.file("Makefile") == "Makefile.md"
    assert layout.folder("src") == "src/README.md"


names = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=12)
plain = names.filter(lambda name: name not in {".", ".."})


@given(st.lists(st.lists(plain, min_size=1, max_size=4).map("/".join), unique=True, max_size=12))
def test_no_two_pages_meet_whatever_the_names(files: list[str]):
    _check(files)


@given(st.lists(plain, min_size=1, max_size=4), st.lists(plain, min_size=1, max_size=4))
def test_a_relative_link_leads_back_to_the_page(one: list[str], two: list[str]):
    page, other = "/".join(one), "/".join(two)
    assert posixpath.normpath(posixpath.join(posixpath.dirname(page), between(page, other))) == posixpath.normpath(
        other
    )


def test_ancestors_are_named_from_the_outside_in():
    assert ancestors("a/b/c.py") == ["a", "a/b"]
    assert ancestors("c.py") == []


def test_folder_pages_keep_their_name_beside_folders_called_like_them():
    layout = Layout(["README.md/inner.txt", "README.md/more/deep.txt", "sub/README/x"])
    assert [layout.folder(folder) for folder in ("", "README.md", "sub")] == [
        "README.md", "README-2.md/README.md", "sub/README.md",
    ]  # fmt: skip
    assert layout.file("README.md/more/deep.txt") == "README-2.md/more/deep.txt.md"
