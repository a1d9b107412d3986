"""Folders of the replayed past: what lies in them, and which names are links."""

from __future__ import annotations

import pytest

from daemon.files.replay.tracks import Folders


def _folders(*paths: str) -> Folders:
    found = Folders()
    for path in paths:
        found.add(path)
    return found


def test_names_beneath_a_folder_come_in_order_without_its_siblings() -> None:
    found = _folders("/w/b/2", "/w/b/1", "/w/bb/3", "/w/b", "/w/a")
    assert list(found.files("/w/b")) == ["/w/b/1", "/w/b/2"]
    assert list(found.files("/w")) == ["/w/a", "/w/b", "/w/b/1", "/w/b/2", "/w/bb", "/w/bb/3"]
    assert list(found.files("/"))[:2] == ["/w", "/w/a"]
    assert list(found.files("/w/b/1")) == []


def test_what_was_made_is_gone_with_the_folder_above_it() -> None:
    found = _folders()
    for name in ("/w/a", "/w/a/b", "/w/ab"):
        found.make(name)
    found.unmake("/w/a")
    assert [found.is_made(name) for name in ("/w/a", "/w/a/b", "/w/ab")] == [False, False, True]


@pytest.mark.parametrize(
    ("links", "path", "real"),
    [
        ({}, "/w/a", "/w/a"),
        ({"/w/l": b"d"}, "/w/l/x", "/w/d/x"),
        ({"/w/l": b"d"}, "/w/l", "/w/d"),
        ({"/w/l": b"d"}, "/w/lx", "/w/lx"),
        ({"/w/l": b"../o/d"}, "/w/l/x", "/o/d/x"),
        ({"/w/l": b"/abs"}, "/w/l/x", "/abs/x"),
        ({"/w/l": b"m", "/w/m": b"d"}, "/w/l/x", "/w/d/x"),
        ({"/w/d/l": b"e", "/w/m": b"d"}, "/w/m/l/x", "/w/d/e/x"),
        ({"/w/l": b""}, "/w/l/x", "/w/l/x"),
        ({"/w/l": b"a\0b"}, "/w/l/x", "/w/l/x"),
    ],
)
def test_links_on_the_way_are_followed(links: dict[str, bytes], path: str, real: str) -> None:
    found = _folders()
    for name, target in links.items():
        found.link(name, target, 1)
    assert found.real(path) == real


@pytest.mark.parametrize("links", [{"/w/l": b"l"}, {"/w/l": b"m", "/w/m": b"l"}, {"/w/l": b"l/l"}])
def test_links_in_a_circle_end(links: dict[str, bytes]) -> None:
    found = _folders()
    for name, target in links.items():
        found.link(name, target, 1)
    assert found.real("/w/l/x").startswith("/w/")


def test_a_link_that_was_taken_away_leads_nowhere() -> None:
    found = _folders()
    found.link("/w/l", b"d", 1)
    found.unmake("/w/l")
    assert found.real("/w/l/x") == "/w/l/x"


def test_since_when_links_on_the_way_are_known_is_told() -> None:
    found = _folders()
    found.link("/w/l", b"d", 5)
    found.link("/w/l", b"d", 9)  # the same again is nothing new
    assert [found.linked_since(path) for path in ("/w/l", "/w/l/x", "/w/lx", "/w/d")] == [5, 5, 0, 0]
    found.link("/w/l", b"e", 12)
    assert found.linked_since("/w/l/x") == 12
