"""The sample as a reader sees it: the pages under examples/ are what the product makes of it today."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "tools"), str(CHECKOUT / "tests" / "unit")]

from markup import links, parse  # noqa: E402

import examples  # noqa: E402 - tools/examples.py, found by the line above

COMMITTED = CHECKOUT / "examples" / "pages"


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    work = tmp_path_factory.mktemp("examples")
    return work / "pages", examples.write(work / "pages", work)


def test_the_pages_under_examples_are_those_that_are_made_today(made: tuple[Path, list[dict]]) -> None:
    assert files(made[0]) == files(COMMITTED), "run make examples and look at what has changed"


def test_the_model_answered_and_a_second_run_asks_it_nothing_and_writes_nothing(made: tuple[Path, list[dict]]) -> None:
    results = made[1]
    first, again = results[: len(results) // 2], results[len(results) // 2 :]
    assert len(first) == 3
    assert all(result["model_calls"] > 5 and result["unanswered"] == 0 for result in first)
    assert [(result["model_calls"], result["written"]) for result in again] == [(0, 0)] * 3
    assert all(result["warnings"] == [] for result in again)


def pages() -> list[Path]:
    return sorted(path.relative_to(COMMITTED) for path in COMMITTED.rglob("*.md"))


@pytest.mark.parametrize("name", pages(), ids=str)
def test_every_page_is_plain_markdown_whose_links_resolve(name: Path) -> None:
    page = COMMITTED / name
    text = page.read_text()
    kinds = {token.type for token in parse(text)}
    assert not kinds & {"html_block", "html_inline", "image"}
    for href in links(text):
        assert "://" not in href
        assert (page.parent / unquote(href.partition("#")[0])).exists(), href


def test_what_was_scripted_is_found_with_its_sources() -> None:
    top = (COMMITTED / "home/dev/code/todo-api/README.md").read_text()
    for expected in (
        "keeps its items in memory",
        "A check failed because the method was missing.",
        "```mermaid",
        "## Dead ends",
    ):
        assert expected in top
    assert "/home/dev/code/csv-cli" in (COMMITTED / "README.md").read_text()
