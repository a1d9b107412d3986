"""The documents say only what is there: tests, cases, links, commands, options, make targets, settings and keys exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from daemon.cli import COMMANDS, reconstitute

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [
    *(CHECKOUT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((CHECKOUT / "docs").glob("*.md")),
]
each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def test_every_test_named_in_the_reliability_page_exists() -> None:
    page = (CHECKOUT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 60
    files = {path.name: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py")}
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in files.get(file, "")]
    assert missing == []


def test_every_reliability_row_that_holds_names_what_shows_it() -> None:
    """A test, a recovery case, or a make target that fails when the row is not so."""
    page = (CHECKOUT / "docs" / "reliability.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if "|" in line]
    claims = [row for row in rows if len(row) == 4 and row[2].startswith(("holds", "partly"))]
    assert len(claims) > 60
    shown = re.compile(r"`test_\w+\.py::test_\w+`|`\w+\.toml::[\w-]+`|`make \w+`")
    assert [row[:2] for row in claims if not shown.search(row[3])] == []


def test_every_row_of_the_reliability_page_has_a_number_of_its_own() -> None:
    numbers = re.findall(r"(?m)^\| ([A-Z]+\d+) \|", (CHECKOUT / "docs" / "reliability.md").read_text())
    assert len(numbers) > 100
    assert [number for number, count in Counter(numbers).items() if count > 1] == []


def test_every_recovery_case_named_in_the_reliability_page_exists() -> None:
    page = (CHECKOUT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(\w+\.toml)::([\w-]+)`", page)
    assert len(named) > 10
    files = {path.name: path.read_text() for path in (CHECKOUT / "tests" / "recovery" / "cases").glob("*.toml")}
    missing = [f"{file}::{name}" for file, name in named if f'id = "{name}"' not in files.get(file, "")]
    assert missing == []


@each_document
def test_every_relative_link_of_a_document_resolves(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert broken == []


@each_document
def test_every_command_a_document_shows_is_one_of_ours(document: Path) -> None:
    shown = re.findall(r"(?m)(?:^|^\$ |`|/)reconstitute ([a-z]+)\b", document.read_text())
    assert [name for name in shown if name not in COMMANDS] == []


@each_document
def test_every_option_a_document_shows_is_one_of_its_commands(document: Path) -> None:
    unknown = [line for line in _shown(document.read_text()) if not _options(line) <= _known(line)]
    assert unknown == []


def _shown(text: str) -> Iterator[str]:
    """Each call of `reconstitute`, without its comment."""
    for line in re.findall(r"(?m)(?:^|^\$ |/)(reconstitute .+)$|`(reconstitute [^`]+)`", text):
        yield (line[0] or line[1]).partition(" #")[0]


def _options(line: str) -> set[str]:
    return {word.partition("=")[0] for word in shlex.split(line) if word.startswith("-") and len(word) > 1}


def _known(line: str) -> set[str]:
    context = click.Context(reconstitute)
    found = reconstitute.get_command(context, shlex.split(line)[1]) or reconstitute.get_command(context, ":path")
    commands = [reconstitute, found, *(found.commands.values() if isinstance(found, click.Group) else ())]
    return {"--help", *(name for one in commands if one for param in one.params for name in param.opts)}


@each_document
def test_every_make_target_a_document_shows_exists(document: Path) -> None:
    targets = re.findall(r"(?m)^(\w+):", (CHECKOUT / "Makefile").read_text())
    shown = re.findall(r"(?m)(?:^|`)make ([a-z]+)\b", document.read_text())
    assert [name for name in shown if name not in targets] == []


def test_make_help_tells_what_each_target_does() -> None:
    targets = re.findall(r"(?m)^(\w+):", (CHECKOUT / "Makefile").read_text())
    told = subprocess.run(["make", "help"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    lines = dict(re.findall(r"(?m)^(\w+) +(\S.*)$", told))
    assert [target for target in targets if target not in {*lines, "clean"}] == []


@each_document
def test_every_setting_a_document_names_exists(document: Path) -> None:
    example = (CHECKOUT / "config.example.toml").read_text()
    settings = tomllib.loads(re.sub(r"(?m)^# (?=\w+ = |\[\[)", "", example))
    named = re.findall(r"`([a-z]+)\.(\w+)`", document.read_text())
    assert [
        f"{section}.{key}"
        for section, key in named
        if section in settings and key not in {*settings[section], "db", "py"}
    ] == []


def test_every_kind_of_key_in_the_archive_is_told() -> None:
    source = (CHECKOUT / "daemon" / "archive" / "keys.py").read_text()
    kinds = set(re.findall(r'_key\("(\w+)"|b"(\w+):', source))
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    assert len(kinds) > 15
    assert sorted(kind for pair in kinds for kind in pair if kind and f"`{kind}:" not in page) == []


def test_every_module_that_the_map_names_exists() -> None:
    page = re.sub(r"(?ms)^## Keys$.*?(?=^## )", "", (CHECKOUT / "docs" / "architecture.md").read_text())
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+\.py)?|[a-z_]+\.py)`", page)
    rows = [line.partition("|")[2].partition("|")[0] for line in page.splitlines()]
    rooms = {room for row in rows for room in re.findall(r"`([a-z_]+/)`", row)}
    places = [CHECKOUT, CHECKOUT / "daemon", *(CHECKOUT / "daemon" / room for room in rooms), *_inner_rooms()]
    assert len(named) > 80
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_map_has_every_room_of_the_code() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    table = page.partition("## The rooms")[2].partition("\nThese libraries")[0]
    rooms = {path.name + "/" * path.is_dir() for path in (CHECKOUT / "daemon").iterdir()}
    assert [room for room in sorted(rooms) if room[:2] != "__" and f"`{room}`" not in table] == ["py.typed"]


def test_the_map_names_where_each_library_is_imported() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    text = page.partition("\nThese libraries")[2].partition("## The five walks")[0]
    importers: dict[str, set[str]] = {}
    for path in (CHECKOUT / "daemon").rglob("*.py"):
        for library in _libraries(ast.parse(path.read_text())):
            importers.setdefault(library.lower(), set()).add(path.relative_to(CHECKOUT / "daemon").as_posix())
    assert len(importers) > 20
    named = _places_by_library(text, set(importers))
    strays = {
        library: sorted(path for path in paths if not path.startswith(tuple(named.get(library, ()))))
        for library, paths in importers.items()
        if library not in {"msgspec", "numpy", "regex"}
    }
    assert {library: paths for library, paths in strays.items() if paths} == {}


def _places_by_library(text: str, libraries: set[str]) -> dict[str, list[str]]:
    """Each library with the places that follow its name, alone or together with others."""
    places: dict[str, list[str]] = {}
    current: list[str] = []
    was_place = False
    for place, word in re.findall(r"`([^`]+)`|([a-z0-9-]+)", text.lower()):
        if place:
            for library in current:
                places.setdefault(library, []).append(place)
        elif word.replace("-", "_") in libraries:
            current = [word.replace("-", "_")] if was_place else [*current, word.replace("-", "_")]
        else:
            continue
        was_place = bool(place)
    return places


def _libraries(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        names = {_DISTRIBUTED.get(name, name) for name in (module.partition(".")[0] for module in modules)}
        yield from names - sys.stdlib_module_names - {"daemon"}


_DISTRIBUTED = {"tree_sitter_bash": "tree_sitter", "plyvel_next": "plyvel"}


def _inner_rooms() -> Iterator[Path]:
    """A row about a room names the modules in it by their own names."""
    return (path for path in (CHECKOUT / "daemon").glob("*/*/") if path.name != "__pycache__")


def test_no_module_is_too_long_to_be_read_at_once() -> None:
    """Of one that grows past 400 lines the subject parts."""
    lengths = {path: len(path.read_text().splitlines()) for path in (CHECKOUT / "daemon").rglob("*.py")}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}


def test_every_citation_of_the_formats_page_names_a_heading() -> None:
    page = (CHECKOUT / "docs" / "opencode-formats.md").read_text()
    headings = re.findall(r"(?m)^## (.+)$", page)
    sources = [path.read_text() for room in ("daemon", "tests") for path in (CHECKOUT / room).rglob("*.py")]
    cited = [place for text in sources for place in re.findall(r"opencode-formats\.md,\s+(\w.{1,20})", text)]
    assert len(cited) > 20
    assert [place for place in cited if not place.startswith(tuple(headings))] == []


def test_the_score_stands_once_between_its_marks() -> None:
    pieces = (CHECKOUT / "README.md").read_text().split("<!-- score -->")
    assert len(pieces) == 3
    figures = re.findall(r"(?m)^  \S.*?((?: +\d+){4})$", pieces[1])
    wrong = [figure.split()[-1] for figure in figures]
    assert len(wrong) == 12
    assert set(wrong) == {"0"}
