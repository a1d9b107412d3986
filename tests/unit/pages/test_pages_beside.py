"""A text that is too long for its page stands beside it, whole."""

from __future__ import annotations

import pytest

from daemon.reconstitute.pages.file import MAX_SHOWN_BYTES, MOST_BESIDE
from daemon.reconstitute.pages.layout import Layout
from daemon.reconstitute.recover import State
from tests.support.pages.markup import links
from tests.support.pages.page_material import SECRET, file, material, pages

LINE = b"one line of text\n"
LONG = LINE * (MAX_SHOWN_BYTES // len(LINE) + 100)


def test_a_long_text_is_cut_with_a_link_to_the_whole_of_it():
    made = pages(material([file("data.json", LONG)]))
    assert set(made) == {"README.md", "data.json.md", "data.json.txt"}
    assert made["data.json.txt"] == LONG.decode()
    assert "data.json.txt" in links(made["data.json.md"])
    assert "are shown" in made["data.json.md"]
    assert len(made["data.json.md"]) < MAX_SHOWN_BYTES + 5000


def test_it_is_redacted_and_harmless_to_print():
    made = pages(material([file("log", LONG + f"key = '{SECRET}' \x1b]0;evil\x07\u202e\r\n".encode())]))
    text = made["log.txt"]
    assert SECRET not in text
    assert "REDACTED" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\r"}


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (b"short\n", State.PROVEN),
        (LONG + b"\0", State.PROVEN),
        (LONG + b"\xff", State.PROVEN),
        (LONG, State.STALE),
        (b"x" * (MOST_BESIDE + 1), State.PROVEN),
    ],
)
def test_what_fits_is_no_text_not_proven_or_too_large_has_no_text_beside(content: bytes, state: State):
    made = pages(material([file("f", content, state)]))
    assert set(made) == {"README.md", "f.md"}
    assert not [href for href in links(made["f.md"]) if href.endswith(".txt")]


def test_a_file_of_that_name_keeps_its_page():
    made = pages(material([file("a", LONG), file("a.txt", b"small\n"), file("b", LONG), file("b.txt/inside", b"x\n")]))
    assert {"a.md", "a.txt", "a.txt.md", "b.md", "b-2.txt", "b.txt/inside.md"} <= set(made)
    assert "small" in made["a.txt.md"]
    assert "b-2.txt" in links(made["b.md"])


def test_the_limit_of_pages_counts_it():
    files = [file("a", LONG), file("b", LONG)]
    assert set(pages(material(files), 4)) == {"README.md", "a.md", "b.md", "a.txt"}
    assert "b.txt" not in pages(material(files), 4)["b.md"]
    assert set(pages(material(files), 3)) == {"README.md", "a.md", "b.md"}


def test_names_of_texts_are_distinct_where_a_file_system_folds_case():
    layout = Layout(["A", "a"], ["A", "a"])
    made = [layout.beside("A"), layout.beside("a"), layout.file("A"), layout.file("a")]
    assert len({name.casefold() for name in made}) == 4
