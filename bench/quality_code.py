"""How often a sentence leads to the function it describes, among thousands: installed packages' docstrings.

    python bench/quality_code.py [--functions 6000] [--questions 1000] [--seed 7] [--keep DIR]

The first sentence of a docstring is the question, the function's source without docstring and comments the text. Each
function is a session of one message, without a title. The packages are those below, in the versions of
requirements.lock; their tests and vendored copies are left out, functions of equal text too, and sentences that stand
in several functions are not asked. The figures of the questions with even and with odd numbers, counted from 0, stand
beside those of all: both were looked at when the constants of recall.ranking.fuse were chosen. Built-in model,
no network.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench import quality_house as quality
from daemon.embed.builtin import Builtin

PACKAGES = (
    *("numpy", "click", "jinja2", "hypothesis", "rich", "pydantic", "_pytest", "requests", "urllib3", "starlette"),
    *("httpx", "aiohttp", "attr", "cryptography", "dulwich", "fsspec", "huggingface_hub", "typer", "onnxruntime"),
    *("opentelemetry", "jsonschema", "pygments", "uvicorn", "websockets", "dateutil", "chromadb", "mcp", "tqdm"),
    *("tomlkit", "yaml", "setuptools", "structlog", "tenacity", "anyio", "httpcore", "markdown_it", "mypy"),
    *("packaging", "sortedcontainers", "referencing", "pip", "grpc", "oauthlib"),
)
_LEFT_OUT = frozenset({"tests", "test", "testing", "_vendor", "vendored"})
_LEAST_LINES = 4
_WORDS = range(4, 41)
_DAY = 1_795_000_000_000
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)")


@dataclass(frozen=True)
class Function:
    """A documented function: what it is said to do, and its source without that."""

    sentence: str
    source: str


def functions(package: str) -> Iterator[Function]:
    """The documented functions and methods of an installed package, in order of its files."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package}: not installed; pip install -r requirements.lock")
    for root in map(Path, spec.submodule_search_locations):
        for file in sorted(root.rglob("*.py")):
            if _LEFT_OUT.isdisjoint(file.relative_to(root).parts):
                with suppress(SyntaxError, UnicodeDecodeError):  # templates and samples of other Python versions
                    yield from _documented(ast.parse(file.read_text(encoding="utf-8")))


def _documented(module: ast.Module) -> Iterator[Function]:
    places: list[ast.Module | ast.ClassDef] = [module]
    places += [node for node in module.body if isinstance(node, ast.ClassDef)]
    for place in places:
        for node in place.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
                continue
            words = ast.get_docstring(node)
            node.body = node.body[1:] if words else node.body
            if not words or not node.body:
                continue
            source = ast.unparse(node)
            if source.count("\n") + 1 >= _LEAST_LINES:
                yield Function(_first_sentence(words), source)


def _first_sentence(words: str) -> str:
    paragraph = " ".join(re.split(r"\n\s*\n", words.strip())[0].split())
    found = _SENTENCE.match(paragraph)
    return found[1] if found else paragraph


def chosen(most: int, asked: int, seed: int) -> tuple[list[quality.Talk], list[quality.Question]]:
    """Functions as sessions, and the questions about some of them; the same for the same packages and seed."""
    every = [one for package in PACKAGES for one in functions(package)]
    sources, sentences = (
        Counter(one.source for one in every),
        Counter(one.sentence.lower() for one in every),
    )
    pool = [one for one in every if sources[one.source] == 1]
    random.Random(seed).shuffle(pool)
    pool = pool[:most]
    if len(pool) < most:
        raise SystemExit(f"only {len(pool)} functions of {most} are installed; ask for fewer with --functions")
    talks = [quality.Talk(f"ses_{number:05d}", "", _DAY, (one.source,)) for number, one in enumerate(pool)]
    questions = [
        quality.Question(one.sentence, frozenset({talk.id}))
        for one, talk in zip(pool, talks, strict=True)
        if sentences[one.sentence.lower()] == 1 and len(one.sentence.split()) in _WORDS
    ]
    return talks, questions[:asked]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Function retrieval by docstrings")
    parser.add_argument("--functions", type=int, default=6000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="leave the archive here, and use what an earlier run left")
    options = parser.parse_args(arguments)
    talks, questions = chosen(options.functions, options.questions, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        with quality.house(place, talks, Builtin()) as made:
            quality.head(f"{len(talks)} functions, {len(questions)} questions", ("even", "odd"))
            for name, answers in made.ways().items():
                if name != "lexical windows":  # each session is one message: its window is the message
                    found = quality.places(answers, questions)
                    quality.show(name, (found[::2], found[1::2]))


if __name__ == "__main__":
    main(sys.argv[1:])
