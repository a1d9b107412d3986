"""File pages are inert in four renderers, folded parts and diffs included (T1)."""

from __future__ import annotations

import pytest

from tests.hostile.rendered_page import COUNTED, Page, faults
from tests.hostile.renderers import RENDERERS, rendered
from tests.support.pages.file_pages import hostile_pages
from tests.support.pages.markup import PAYLOADS


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [page.text for payload in PAYLOADS for page in hostile_pages(payload)]


@pytest.fixture(scope="module")
def seen(texts: list[str]) -> dict[str, list[Page]]:
    """The pages of every payload, by renderer."""
    made = rendered(texts)
    return {name: [Page(html) for html in made[name]] for name in RENDERERS}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_but_our_own_structure_is_rendered(
    seen: dict[str, list[Page]], texts: list[str], renderer: str
) -> None:
    for page, text in zip(seen[renderer], texts, strict=True):
        assert faults(page, text, renderer) == []
        assert not [href for href in page.links if "://" in href]


def test_all_renderers_see_the_same_structure(seen: dict[str, list[Page]]) -> None:
    for pages in zip(*(seen[name] for name in RENDERERS), strict=True):
        assert len({tuple(tag for tag in page.tags if tag in COUNTED) for page in pages}) == 1
