"""Break the code in many small ways and check that a test fails each time: `make mutants` (ONLY=archive.merge,publish).

mutmut changes what stands inside functions and runs only the tests that reach the function. It cannot change constants
of modules and classes, or defaults of arguments: this program does, one constant at a time. tests/mutants.toml lists
the modules, the tests that concern each, and the mutants that may survive, with the reason.

The run fails if a mutant survives that is not listed, if a listed one is killed or does not exist any more, and if less
than the table's share of a module's mutants is killed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
TABLE = "tests/mutants.toml"
WORK = CHECKOUT / ".cache" / "mutants"
BIN = Path(sys.executable).parent
SURVIVED = {"survived", "no tests"}
TIMEOUT = 120
"""Seconds for the tests of one changed constant."""
MEMORY = "/dev/shm"


@dataclass(frozen=True, order=True)
class Mutant:
    """One change: in which function (empty for a constant of the module), and the lines before and after."""

    function: str
    line: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.function}\n    - {self.line}\n    + {self.becomes}"


@dataclass
class Result:
    """What became of one module's mutants."""

    total: int = 0
    survivors: list[Mutant] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="modules, separated by commas, without 'daemon.'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="test only what survived last time or has changed since")
    parser.add_argument("--list", action="store_true", help="print unlisted survivors as entries of the table")
    options = parser.parse_args()
    table = tomllib.loads((CHECKOUT / TABLE).read_text(encoding="utf-8"))
    only = {f"daemon.{name}" for name in options.only.split(",") if name}
    unknown = only - {module["name"] for module in table["module"]}
    if unknown:
        parser.error(f"not in {TABLE}: {', '.join(sorted(unknown))}")
    _install()
    is_good = True
    killed = total = 0
    with _temporary_files_in_memory():
        for module in table["module"]:
            if only and module["name"] not in only:
                continue
            result = _measure(module, options.jobs, again=options.again)
            is_good &= _report(module, result, table["floor"], entries=options.list)
            killed, total = killed + result.total - len(result.survivors), total + result.total
    print(f"{killed} of {total} mutants killed ({killed / total:.1%})")
    return 0 if is_good else 1


@contextlib.contextmanager
def _temporary_files_in_memory() -> Iterator[None]:
    """Give the tests that want a disk memory instead: the same tests run for every mutant, and a disk is slow."""
    if not os.access(MEMORY, os.W_OK):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=MEMORY) as place:
        os.environ["TMPDIR"] = place
        yield


def _install() -> None:
    """Install the tool, which no other command needs."""
    if importlib.util.find_spec("mutmut") is not None:
        return
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    uv = shutil.which("uv")
    pip = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    subprocess.run([*pip, "--quiet", *groups["mutants"]], check=True)


# -- measuring ---------------------------------------------------------------------------------------------------


def _measure(module: dict[str, Any], jobs: int, *, again: bool) -> Result:
    source = _source(module["name"])
    work = WORK / module["name"]
    if not again:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    for name in ("daemon", "tests"):
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(CHECKOUT / name)
    _configure(work, source, module)
    result = Result()
    _inside_functions(work, source, jobs, result)
    _constants(work, source, module, result)
    return result


def _source(name: str) -> str:
    path = name.replace(".", "/")
    return f"{path}/__init__.py" if (CHECKOUT / path).is_dir() else f"{path}.py"


def _arguments(module: dict[str, Any]) -> list[str]:
    return ["-p", "no:cacheprovider", *(f"--deselect={test}" for test in module.get("without", ()))]


def _configure(work: Path, source: str, module: dict[str, Any]) -> None:
    settings = {
        "source_paths": ["daemon"],
        "only_mutate": [source],
        "pytest_add_cli_args": _arguments(module),
        "pytest_add_cli_args_test_selection": module["tests"],
        "use_git_change_detection": False,
        "track_dependencies": False,
        "timeout_constant": 4.0,
        "timeout_multiplier": 4.0,
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
    project = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    (work / "pyproject.toml").write_text("".join((project, "\n[tool.mutmut]\n", *lines)), encoding="utf-8")


def _inside_functions(work: Path, source: str, jobs: int, result: Result) -> None:
    before = [name for name, outcome in _outcomes(work) if outcome in SURVIVED]
    _run(work, jobs)
    if before:
        _run(work, jobs, *(name for name, outcome in _outcomes(work) if name in before and outcome in SURVIVED))
    outcomes = _outcomes(work)
    if any(outcome == "not checked" for _, outcome in outcomes):
        raise SystemExit(f"mutmut did not test every mutant in {work}")
    result.total += len(outcomes)
    result.survivors += _described(work, source, [name for name, outcome in outcomes if outcome in SURVIVED])


def _run(work: Path, jobs: int, *names: str) -> None:
    shutil.rmtree(work / "mutants" / "tests", ignore_errors=True)  # mutmut would keep tests that are gone
    run = _mutmut(work, "run", "--max-children", str(jobs), *names)
    if run.returncode:
        raise SystemExit(f"mutmut failed in {work}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")


def _outcomes(work: Path) -> list[tuple[str, str]]:
    """Every mutant that mutmut knows, with what became of it."""
    rows = _mutmut(work, "results", "--all", "1").stdout.splitlines()
    return [(name, outcome) for name, _, outcome in (row.strip().rpartition(": ") for row in rows) if name]


def _mutmut(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / "mutmut", *arguments], cwd=work, capture_output=True, text=True, check=False)


def _described(work: Path, source: str, names: list[str]) -> list[Mutant]:
    """Mutants by the lines of their diffs, which, unlike mutmut's numbers, outlive other changes of the function.

    `mutmut show` does the same for one mutant a process.
    """
    program = f"""
import json, sys
from mutmut.mutation.diff_apply import get_diff_for_mutant
print(json.dumps([get_diff_for_mutant(name, path={source!r}) for name in json.load(sys.stdin)]))
"""
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=work, input=json.dumps(names), capture_output=True, text=True, check=True)
    return [_described_by(name, diff) for name, diff in zip(names, json.loads(run.stdout), strict=True)]


def _described_by(name: str, diff: str) -> Mutant:
    function = name.rpartition("__mutmut_")[0].rpartition(".")[2]
    function = function[2:].replace("ǁ", ".") if "ǁ" in function else function.removeprefix("x_")
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    before, after = ([line[1:].strip() for line in lines if line[0] == sign] for sign in "-+")
    return Mutant(function, " ".join(before), " ".join(after))


def _constants(work: Path, source: str, module: dict[str, Any], result: Result) -> None:
    """Change each constant in a copy of the code, and run the tests there."""
    killed_file, copy = work / "constants.json", work / "constants"
    killed = set(json.loads(killed_file.read_bytes())) if killed_file.exists() else set()
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("daemon", "tests"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for mutant, text in _changed_constants((CHECKOUT / source).read_text(encoding="utf-8")):
        result.total += 1
        if str(mutant) in killed:
            continue
        (copy / source).write_text(text, encoding="utf-8")
        if _passes(copy, module):
            result.survivors.append(mutant)
        else:
            killed.add(str(mutant))
    killed_file.write_text(json.dumps(sorted(killed), indent=1))


def _passes(copy: Path, module: dict[str, Any]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", *_arguments(module), *module["tests"]]
    try:
        return subprocess.run(command, cwd=copy, capture_output=True, check=False, timeout=TIMEOUT).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _changed_constants(text: str) -> Iterator[tuple[Mutant, str]]:
    lines = [line.encode() for line in text.splitlines()]
    for node in _module_constants(ast.parse(text).body):
        if node.end_lineno != node.lineno:
            continue
        line = lines[node.lineno - 1]
        changed = line[: node.col_offset] + _changed(node.value).encode() + line[node.end_col_offset :]
        whole = [*lines[: node.lineno - 1], changed, *lines[node.lineno :]]
        yield Mutant("", line.decode().strip(), changed.decode().strip()), b"\n".join([*whole, b""]).decode()


def _module_constants(body: list[ast.stmt]) -> Iterator[ast.Constant]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
            case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
                roots: list[ast.expr] = [value]
            case ast.FunctionDef(args=arguments):
                roots = [*arguments.defaults, *(default for default in arguments.kw_defaults if default)]
            case ast.ClassDef(body=inner):
                yield from _module_constants(inner)
                continue
            case _:
                continue
        for root in roots:
            nodes = list(ast.walk(root))
            in_strings = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in nodes:
                if isinstance(node, ast.Constant) and id(node) not in in_strings and node.value not in (None, ...):
                    yield node


def _changed(value: object) -> str:
    match value:
        case bool():
            return repr(not value)
        case int() | float():
            return repr(value + 1)
        case str():
            return repr(f"XX{value}XX")
    return repr(b"XX" + bytes(value))  # type: ignore[call-overload]


# -- reporting ---------------------------------------------------------------------------------------------------


def _report(module: dict[str, Any], result: Result, floor: int, *, entries: bool) -> bool:
    listed = {
        Mutant(entry.get("function", ""), entry["line"], after): entry["why"]
        for entry in module.get("survivor", ())
        for after in entry["becomes"]
    }
    survivors = set(result.survivors)
    killed = result.total - len(result.survivors)
    share = 100 * killed / result.total if result.total else 100
    new, old = sorted(survivors - listed.keys()), sorted(listed.keys() - survivors)
    counts = f"{result.total} mutants, {killed} killed ({share:.1f} %), {len(result.survivors)} survived"
    print(f"{module['name']}: {counts}")
    for mutant in new:
        print(_entry(mutant) if entries else f"  not listed: {mutant}")
    for mutant in old:
        print(f"  listed, but it does not survive: {mutant}")
    if share < floor:
        print(f"  fewer than {floor} % killed")
    sys.stdout.flush()
    return not new and not old and share >= floor and all(listed.values())


def _entry(mutant: Mutant) -> str:
    def quoted(text: str) -> str:
        return f"'{text}'" if "'" not in text else json.dumps(text, ensure_ascii=False)

    name = f'function = "{mutant.function}"\n' if mutant.function else ""
    rows = f"line = {quoted(mutant.line)}\nbecomes = [{quoted(mutant.becomes)}]"
    return f'\n[[module.survivor]]\n{name}{rows}\nwhy = ""'


if __name__ == "__main__":
    sys.exit(main())
