"""The sample as a reader sees it: the pages under examples/ are what the product makes of it today."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

from daemon.publish import MANIFEST
from tests.support.pages.markup import links, parse, words
from tools import examples

CHECKOUT = Path(__file__).resolve().parents[2]
COMMITTED = CHECKOUT / "examples" / "pages"
OURS = re.compile(r"(?:</?details>|<summary>[^<]*</summary>|<!-- /?notes[^<>]*-->|\s)+")
"""The HTML that pages may have."""


def files(root: Path) -> dict[str, bytes]:
    """What stands under `root`, without the manifests: they hold digests of all our code."""
    found = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != MANIFEST]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    work = tmp_path_factory.mktemp("examples")
    return work / "pages", examples.write(work / "pages", work)


def test_the_pages_under_examples_are_those_that_are_made_today(made: tuple[Path, list[dict]]) -> None:
    assert files(made[0]) == files(COMMITTED), "run make examples and look at what has changed"


def test_a_second_run_asks_the_model_nothing_and_writes_nothing(made: tuple[Path, list[dict]]) -> None:
    results = made[1]
    first, again = results[: len(results) // 2], results[len(results) // 2 :]
    assert len(first) == 3
    assert all(result["model_calls"] > 5 and result["unanswered"] == 0 for result in first)
    assert [(result["model_calls"], result["written"]) for result in again] == [(0, 0)] * 3
    assert [result["warnings"] for result in again] == [[]] * 3


def pages() -> list[Path]:
    return sorted(path.relative_to(COMMITTED) for path in COMMITTED.rglob("*.md"))


@pytest.mark.parametrize("name", pages(), ids=str)
def test_every_page_is_plain_markdown_whose_links_resolve(name: Path) -> None:
    page = COMMITTED / name
    text = page.read_text()
    tokens = parse(text)
    assert "image" not in {token.type for token in tokens}
    assert all(OURS.fullmatch(token.content) for token in tokens if token.type.startswith("html"))
    for href in links(text):
        assert "://" not in href
        assert (page.parent / unquote(href.partition("#")[0])).exists(), href


def test_what_was_scripted_is_found_with_its_sources() -> None:
    folders = COMMITTED / "home/dev/code"
    for place, expected in (
        ("todo-api/README.md", r"keeps todo lists in memory.*\(by scripted-example \(Ollama\)\)\[\^[\w-]+\]\n"),
        ("todo-api/README.md", r"By the model: POST now refuses a todo without a title; .*\[\^[\w-]+\]\n"),
        ("todo-api/README.md", r"\| The HTTP routes: list, add and delete todos\.\[\^[\w-]+\] \|"),
        ("todo-api/app.py.md", r"> The HTTP routes: list, add and delete todos\. \(by the model\)\[\^[\w-]+\]\n"),
        ("todo-api/README.md", r"Why: A check of the store failed without it\."),
        (
            "csv-cli/README.md",
            r"~~echo out.*~~ Struck out by the model: It was run to see a command fail\.\[\^[\w-]+\]\n",
        ),
        (
            "csv-cli/sessions/2026-11-21-killed-in-the-middle.md",
            r"> A poem was begun; .*\[\^[\w-]+\] \(by the model\)\n",
        ),
        ("../../../CHANGES.md", r"A section on travel was proposed and not written\.\[\^[\w-]+\] "),
        ("../../../README.md", r"/home/dev/code/csv-cli"),
    ):
        assert re.search(expected, (folders / place).read_text()), (place, expected)


def test_no_scripted_statement_was_dropped() -> None:
    said = tomllib.loads((CHECKOUT / "examples" / "answers.toml").read_text())["targets"]
    for target in said:
        page = words((COMMITTED / target["path"].lstrip("/") / "README.md").read_text())
        for one in (*(one for answer in target["answers"] for one in answer["statements"]), *target["sentences"]):
            start = words(one["text"])[:40]
            assert start in page or any(
                start in words(other.read_text()) for other in (COMMITTED / target["path"].lstrip("/")).rglob("*.md")
            ), one["text"]
