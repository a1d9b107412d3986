"""The documents say only what is there: every test they name exists, every relative link resolves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from daemon.cli.commands import COMMANDS

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *sorted((CHECKOUT / "docs").glob("*.md"))]


def test_every_test_named_in_the_reliability_page_exists() -> None:
    page = (CHECKOUT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 60
    files = {path.name: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py")}
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in files.get(file, "")]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_of_a_document_resolves(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_a_document_shows_is_one_of_ours(document: Path) -> None:
    shown = re.findall(r"(?m)(?:^|`)reconstitute ([a-z]+)\b", document.read_text())
    assert [name for name in shown if name not in COMMANDS] == []
