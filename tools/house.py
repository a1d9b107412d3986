"""What `make house` prints: the size of the code by room, and how many modules each walk of the data passes.

A module counts for a walk when at least one of its functions runs while the command of that walk does. The commands run
in this process, over the sample that comes with the checkout, without a model.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import os
import pkgutil
import sys
import tarfile
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import click

import daemon
from daemon.cli import main as reconstitute

CHECKOUT = Path(__file__).resolve().parent.parent
SOURCE = CHECKOUT / "daemon"
SAMPLE = CHECKOUT / "examples" / "opencode-sample.tar.gz"
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Debian 12's Python is 3.11.2, and the filter came with 3.11.4; the archive is our own either way."""

FULL_ROOM = 12
"""Modules; a room with more is listed."""


def main() -> int:
    """Print both tables; the exit code."""
    rooms()
    walks()
    return 0


def rooms() -> None:
    """Modules, lines, public names, uses of Any, the longest modules, and rooms with more than a dozen modules."""
    paths = sorted(SOURCE.rglob("*.py"))
    lengths = {path: len(path.read_text().splitlines()) for path in paths}
    trees = [ast.parse(path.read_text()) for path in paths]
    by_room = Counter(str(path.parent.relative_to(CHECKOUT)) for path in paths)
    click.echo(f"modules        {len(paths)}")
    click.echo(f"lines          {sum(lengths.values())}")
    click.echo(f"longest        {max(lengths.values())} lines")
    click.echo(f"rooms          {len(by_room)}, the fullest has {max(by_room.values())} modules")
    click.echo(f"public names   {sum(map(public_names, trees))}")
    click.echo(f"Any            {sum(map(uses_of_any, trees))}")
    for room, count in sorted(by_room.items(), key=lambda item: (-item[1], item[0])):
        click.echo(f"  {count:4} {room}" + (" *" if count > FULL_ROOM else ""))


def public_names(tree: ast.Module) -> int:
    """How many names at the top level a module offers: functions, classes and constants without an underscore."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return sum(not name.startswith("_") for name in names)


def uses_of_any(tree: ast.Module) -> int:
    """How often `Any` is written, imports left out."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def walks() -> None:
    """Run the command of each walk, and count the modules that took part."""
    for module in pkgutil.walk_packages(daemon.__path__, "daemon."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # so that no function that runs at import is counted
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(base, **SAFELY)
        for name in [name for name in os.environ if name.startswith(("RECONSTITUTE_", "OPENCODE", "XDG_", "OLLAMA_"))]:
            del os.environ[name]
        (base / "requests").mkdir()
        (base / "requests" / "demo.txt").write_text(f"{FOLDER}\n")
        os.environ |= {
            "HOME": place,
            "RECONSTITUTE_OPENCODE_DIR": str(base / "opencode"),
            "RECONSTITUTE_ARCHIVE_DIR": str(base / "archive"),
            "RECONSTITUTE_OUTPUT_DIR": str(base / "pages"),
            "RECONSTITUTE_REQUESTS_DIR": str(base / "requests"),
        }
        for walk, words in COMMANDS.items():
            modules = taking_part(words)
            click.echo(f"{len(modules):4} modules  {walk}: reconstitute {' '.join(words)}")
            if "--list" in sys.argv:
                click.echo("".join(f"       {module}\n" for module in sorted(modules)))


FOLDER = "/home/dev/code/todo-api"
COMMANDS = {
    "a record into the archive and the indexes": ["index"],
    "a question to its answer": ["recall", "flask"],
    "records to the content of a file": ["show", f"{FOLDER}/app.py"],
    "a folder to its pages": [FOLDER],
    "a request file to its result": ["run", "--once"],
}


def taking_part(words: list[str]) -> set[str]:
    """The modules of ours that run a function while the command does."""
    modules: set[str] = set()
    source = str(SOURCE)

    def note(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        """A class body runs without CO_OPTIMIZED, so it is no function."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(source) and code.co_flags & inspect.CO_OPTIMIZED:
            modules.add(code.co_filename.removeprefix(str(CHECKOUT) + "/"))
        return None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            code = reconstitute(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code:
        raise SystemExit(f"reconstitute {' '.join(words)} ended with {code}")
    return modules


if __name__ == "__main__":
    sys.exit(main())
