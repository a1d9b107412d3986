"""File pages are inert in four renderers, folded parts and diffs included (T1)."""

from __future__ import annotations

import pytest

from tests.hostile.renderers import rendered
from tests.hostile.test_renderers import COUNTED, RENDERERS, STRUCTURE, Page
from tests.unit.file_pages import hostile_pages
from tests.unit.markup import PAYLOADS


@pytest.fixture(scope="module")
def seen() -> dict[str, list[Page]]:
    """The pages of every payload, by renderer."""
    made = rendered([page.text for payload in PAYLOADS for page in hostile_pages(payload)])
    return {name: [Page(html) for html in made[name]] for name in RENDERERS}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_but_our_own_structure_is_rendered(seen: dict[str, list[Page]], renderer: str) -> None:
    for page in seen[renderer]:
        assert set(page.tags) <= STRUCTURE
        assert page.attributes <= {"href", "class", "align", "style", "start", "lang"}
        assert not [href for href in page.links if "://" in href]


def test_all_renderers_see_the_same_structure(seen: dict[str, list[Page]]) -> None:
    for pages in zip(*(seen[name] for name in RENDERERS), strict=True):
        assert len({tuple(tag for tag in page.tags if tag in COUNTED) for page in pages}) == 1
