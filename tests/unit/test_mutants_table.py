"""The table of `make mutants` names modules, tests and lines that are there."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
MODULES = tomllib.loads((CHECKOUT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["module"]
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module["name"])


def _source(module: dict[str, Any]) -> str:
    path = CHECKOUT / module["name"].replace(".", "/")
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def _functions(source: str) -> dict[str, str]:
    """The text of every function, by its name in the table."""
    functions: dict[str, str] = {}
    for node in ast.parse(source).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in inside:
            if isinstance(function, ast.FunctionDef):
                functions[owner + function.name] = ast.get_source_segment(source, function) or ""
    return functions


def _words(text: str) -> str:
    return " ".join(text.split())


@each_module
def test_every_test_of_a_module_exists(module: dict[str, Any]) -> None:
    named = [*module["tests"], *module.get("without", ())]
    missing = []
    for name in named:
        file, _, test = name.partition("::")
        path = CHECKOUT / file
        if not path.is_file() or (test and f"def {test.partition('[')[0]}(" not in path.read_text(encoding="utf-8")):
            missing.append(name)
    assert missing == []


@each_module
def test_every_survivor_has_its_line_in_its_function_and_a_reason(module: dict[str, Any]) -> None:
    source = _source(module)
    functions = {"": source, **_functions(source)}
    gone = [
        (entry.get("function", ""), entry["line"])
        for entry in module.get("survivor", ())
        if _words(entry["line"]) not in _words(functions.get(entry.get("function", ""), "")) or not entry["why"]
    ]
    assert gone == [], "run `make mutants ONLY=...` and bring tests/mutants.toml up to date"
