"""The scripts and targets that a project's manifests and Makefiles name, in their last certain content.

And what the project says it needs: versions of its language, and the few dependencies that it pins.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from daemon import records
from daemon.display import strip_invisible
from daemon.files.history import REVERTED
from daemon.reconstitute.facts.content import manifests
from daemon.reconstitute.facts.content.text import cut, last_text
from daemon.reconstitute.facts.shell import groups as command_groups
from daemon.reconstitute.facts.shell import read_only, spellings
from daemon.reconstitute.facts.shell.runs import names as programs_of
from daemon.reconstitute.facts.usage import commands, runnable
from daemon.reconstitute.facts.values import Need, Script
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact

_MOST_PER_FILE = 40
_DEEPEST = 2
"""Folders beneath the target in which manifests still belong to it, such as ``packages/api``."""
_MOST_RUNS = 160
_MOST_STARTS = 3
_IS_PROGRAM = re.compile(r"(?:\./|(?:vendor/|node_modules/\.)?bin/)\S")
"""A path that is written as a program's."""
_MOST_NEEDS = 12
_RULE = re.compile(
    r"^([A-Za-z0-9][\w.-]*(?:[ \t]+[A-Za-z0-9][\w.-]*)*)[ \t]*::?(?!=)[ \t]*([^\n]*)"
    r"((?:\n(?:\t[^\n]*|[ \t]*(?:#[^\n]*)?(?=\n\t)))*)",
    re.MULTILINE,
)
_FIRST = re.compile(r"^@?([^\s.#:=@$%][^\s:=]*)(?:[ \t]+[^\n:=]*)?::?(?!=)", re.MULTILINE)
"""A makefile's first target; one that begins with a dot, or is a pattern, is no goal."""
_PHONY = re.compile(r"^\.PHONY[ \t]*:[ \t]*((?:[^\n\\]|\\\n|\\.)*)", re.MULTILINE)
_RECIPE = re.compile(
    r"^@?([A-Za-z_][\w-]*)((?:[ \t]+[^:\n]*)?):(?!=)[ \t]*([^\n]*)((?:\n(?:[ \t]+[^\n]*|[ \t]*(?=\n[ \t])))*)",
    re.MULTILINE,
)
_ENTRY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*(?:\[[^\]]*\])?", re.ASCII)
"""An entry point of Python, ``package.module:function``."""
_PROCESS = re.compile(r"^([A-Za-z][\w-]*):[ \t]*(\S[^\n]*)$", re.MULTILINE)
_SESSION = re.compile(
    r"^@nox\.session\b[^\n]*\n(?:@[^\n]*\n){0,5}def[ \t]+(\w+)[ \t]*\(|^@(?:invoke\.)?task\b[^\n]*\n(?:@[^\n]*\n){0,5}"
    r"def[ \t]+(\w+)[ \t]*\(",
    re.MULTILINE,
)
_EXITS = re.compile(
    r"(?:sys\.exit|exit|quit|process\.exit|os\.exit|Deno\.exit|raise SystemExit)\s*\(?\s*(?:int\()?"
    r"(?!rc\b|ret|code|status|result|exit)([a-z_]\w*|[01] if [^()]*|[\w.]+ (?:[<>!=]+ \S+ )?\? [01] : [01])\)*;?"
)
"""The end of a script whose result is its status, other than that of a program that it ran."""
Found = Iterator[tuple[str, str, str]]
"""(name, how it is called, what it runs)."""


def find(target: str, files: Sequence[Recovered]) -> tuple[Script, ...]:
    """The scripts of the files whose last certain content names some."""
    del target  # files know where they stand beneath it
    manager = _manager(files)
    told = kinds(files)
    found: list[Script] = []
    for file in sorted(files, key=lambda one: (one.relative.count("/"), one.relative)):
        read = _READERS.get(file.relative.rpartition("/")[2].lower())
        text = _certain(file) if read is not None else None
        if read is None or text is None:
            continue
        default = _goal(text) if read is _makefile else _recipe(text) if read is _justfile else ""
        for name, invocation, runs in islice(read(text, manager), _MOST_PER_FILE):
            found.append(replace(_script(file, name, invocation, runs, told), is_default=name == default))
    return tuple(found)


def kinds(files: Sequence[Recovered]) -> dict[str, str]:
    """What the scripts are for whose names do not tell, by their paths beneath the target, as their contents show it.

    A shell script is for what its only command of weight is for. One that only looks and exits by what it found, or
    any script that ends with a status of its own making, is a check.
    """
    found: dict[str, str] = {}
    for file in files:
        name = posixpath.basename(file.relative)
        is_shell = name.endswith((".sh", ".bash")) or "." not in name
        if not (is_shell or command_groups.is_script(name)) or command_groups.by_name(name.partition(".")[0]):
            continue
        text = _certain(file)
        is_own = text is not None and (name.partition(".")[2] != "" or text.startswith("#!"))
        group = _kind(text, is_shell=is_shell) if text is not None and is_own else ""
        if group:
            found[file.relative] = group
    return found


def _kind(text: str, *, is_shell: bool) -> str:
    if not is_shell:
        last = text.rstrip().rpartition("\n")[2].strip()
        return "test" if _EXITS.fullmatch(last) else ""
    groups = set(commands.groups_of(text)) - {"install", "lint", "other"}
    if len(groups) == 1:
        return groups.pop()
    names = programs_of(text)
    return "test" if "exit" in names and not groups and all(map(read_only.is_look, names - {"exit", "set"})) else ""


def starts(
    target: str, files: Sequence[Recovered], readmes: Sequence[Recovered], known: Sequence[spellings.Spelling] = ()
) -> tuple[Script, ...]:
    """The commands with which a README, or a language's convention, says to start the project, but `known` ones."""
    there = {file.relative: file for file in files if file.state is not State.DELETED}
    gone = runnable.places(target, files)
    found: dict[spellings.Spelling, Script] = {}
    for file in readmes:
        text = last_text(file)
        for said in spellings.in_code(text.text) if text is not None else ():
            spelled = spellings.of(said)
            path = runnable.script_of(said, "")
            is_script = "/" not in spelled[1] or path in there or _IS_PROGRAM.match(said) if spelled[1:] else False
            if is_script and path not in gone and list(commands.groups_of(said)) == ["run"]:
                line = _line(said, 160)
                found.setdefault(spelled, Script(line, line, "", file.path, "run"))
    conventions = (("Cargo.toml", "src/main.rs", "cargo run"), ("go.mod", "main.go", "go run ."))
    for manifest, main, command in conventions:
        if manifest in there and main in there:
            found.setdefault(spellings.of(command), Script(command, command, main, there[manifest].path, "run"))
    return tuple(islice((one for spelled, one in found.items() if spelled not in known), _MOST_STARTS))


def _recipe(text: str) -> str:
    """The recipe that ``just`` runs if it is told none: the first."""
    first = _RECIPE.search(text)
    return first[1] if first else ""


def _goal(text: str) -> str:
    """The target that ``make`` runs if it is told none: the first, or what the makefile says."""
    if re.search(r"^[ \t]*[s-]?include\b", text, re.MULTILINE):
        return ""  # the first target may be in another file
    goal = re.search(r"^\.DEFAULT_GOAL[ \t]*[:?]?=[ \t]*(\S+)", text, re.MULTILINE)
    first = _FIRST.search(text.replace("\\\n", " "))
    return goal[1] if goal else first[1] if first else ""


def needs(target: str, files: Sequence[Recovered]) -> tuple[Need, ...]:
    """What the project's own files say must be there: versions first, pinned dependencies after them."""
    del target
    found: list[Need] = []
    for file in sorted(files, key=lambda one: one.relative):
        read = _NEEDS.get(file.relative.lower())
        text = _certain(file) if read is not None else None
        if read is not None and text is not None:
            told = [_line(one, 80) for one in islice(read(text), _MOST_NEEDS)]
            found += [Need(one, file.path) for one in dict.fromkeys(told) if one]
    return tuple(found)


def _certain(file: Recovered) -> str | None:
    """Its last certain content, whole; None where another one followed, or may have been taken back."""
    is_followed = file.guess is not None and not file.guess.mark_unknown
    if file.relative.count("/") > _DEEPEST or is_followed:
        return None
    if file.state is State.STALE and any(one.note == REVERTED for one in file.revisions[-5:]):
        return None
    read = last_text(file)
    return read.text if read is not None and read.is_whole else None


def _script(file: Recovered, name: str, invocation: str, runs: str, told: Mapping[str, str]) -> Script:
    folder = posixpath.dirname(file.relative)
    is_entry = _ENTRY.fullmatch(runs) is not None
    group = command_groups.by_name(name) or (
        "run" if is_entry else next(commands.groups_of(runs, folder, told), "other")
    )
    called = f"cd {shlex.quote(folder)} && {invocation}" if folder and invocation else invocation
    return Script(_line(name, 80), _line(called, 160), _line(runs, _MOST_RUNS), file.path, group)


def _line(text: str, most: int) -> str:
    return cut(" ".join(redact(strip_invisible(text[:4000])).split()), most)


def _manager(files: Sequence[Recovered]) -> str:
    """The package manager whose lock file stands there."""
    names = {file.relative for file in files if file.state is not State.DELETED}
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    return next((manager for lock, manager in locks.items() if lock in names), "npm")


def _package(text: str, manager: str) -> Found:
    for name, runs in records.table(manifests.json_object(text).get("scripts")).items():
        if not isinstance(runs, str) or not runs.strip() or name.startswith("//"):
            continue
        short = name in ("start", "test") and manager in ("npm", "yarn", "pnpm")
        yield name, f"{manager} {'' if short else 'run '}{shlex.quote(name)}", runs


def _composer(text: str, _: str) -> Found:
    for name, runs in records.table(manifests.json_object(text).get("scripts")).items():
        several = runs if isinstance(runs, list) else [runs]
        lines = [one for one in several if isinstance(one, str)]
        if lines and not re.match(r"(?:pre|post)-", name):
            yield name, f"composer run {shlex.quote(name)}", " && ".join(lines)


def _deno(text: str, _: str) -> Found:
    for name, task in records.table(manifests.json_object(text).get("tasks")).items():
        runs = task if isinstance(task, str) else records.text(records.table(task).get("command"))
        if runs:
            yield name, f"deno task {shlex.quote(name)}", runs


def _pyproject(text: str, _: str) -> Found:
    found = manifests.toml(text)
    tools = records.table(found.get("tool"))
    poetry = records.table(tools.get("poetry"))
    for table in (records.table(found.get("project")).get("scripts"), poetry.get("scripts")):
        for name, runs in records.table(table).items():
            if isinstance(runs, str):
                yield name, name, runs
    tasks = {
        "poe": records.table(tools.get("poe")).get("tasks"),
        "pdm run": records.table(tools.get("pdm")).get("scripts"),
        "task": records.table(tools.get("taskipy")).get("tasks"),
        "rye run": records.table(tools.get("rye")).get("scripts"),
        "pixi run": records.table(tools.get("pixi")).get("tasks"),
    }
    for program, table in tasks.items():
        for name, task in records.table(table).items():
            inner = records.table(task)
            runs = task if isinstance(task, str) else inner.get("cmd") or inner.get("shell") or ""
            if not name.startswith("_") and isinstance(runs, str):
                yield name, f"{program} {shlex.quote(name)}", runs


def _setup_cfg(text: str, _: str) -> Found:
    said = manifests.ini(text).get("options.entry_points", "console_scripts", fallback="") or ""
    for line in said.split("\n"):
        name, sign, runs = line.partition("=")
        if sign and name.strip():
            yield name.strip(), name.strip(), runs.strip()


def _cargo(text: str, _: str) -> Found:
    found = manifests.toml(text)
    binaries = found.get("bin")
    for one in binaries if isinstance(binaries, list) else []:
        name = records.text(records.table(one).get("name"))
        if name:
            yield name, f"cargo run --bin {shlex.quote(name)}", records.text(records.table(one).get("path"))


def _makefile(text: str, _: str) -> Found:
    joined = text.replace("\\\n", " ")
    phony = {one for found in _PHONY.finditer(joined) for one in found[1].split()}
    seen: set[str] = set()
    for found in _RULE.finditer(joined):
        lines = [line.strip().lstrip("@-+") for line in found[3].split("\n") if line.startswith("\t") and line.strip()]
        for name in found[1].split():
            if name in seen or not (name in phony or (not phony and "." not in name)):
                continue
            if not lines and not found[2].partition("#")[0].strip():
                continue
            seen.add(name)
            yield name, f"make {name}", "; ".join(lines) or f"make {found[2].partition('#')[0].strip()}"


def _justfile(text: str, _: str) -> Found:
    for found in _RECIPE.finditer(text):
        lines = [line.strip().lstrip("@-") for line in found[4].split("\n") if line.strip()]
        if (lines or found[3].strip()) and not found[1].startswith("_") and found[1] not in ("set", "alias", "export"):
            yield found[1], f"just {found[1]}", "; ".join(lines) or f"just {found[3].strip()}"


def _taskfile(text: str, _: str) -> Found:
    """The names beneath ``tasks:`` and their first plain command lines."""
    inside = re.search(r"^tasks:[ \t]*\n((?:[ \t]+[^\n]*\n?|[ \t]*\n)*)", text, re.MULTILINE)
    if inside is None:
        return
    first = re.search(r"^([ \t]+)\S", inside[1], re.MULTILINE)
    indent = first[1] if first else "  "
    for found in re.finditer(rf"^{indent}([A-Za-z][\w:-]*):[ \t]*([^\n]*)((?:\n{indent}[ \t]+[^\n]*|\n[ \t]*(?=\n))*)",
                             inside[1], re.MULTILINE):  # fmt: skip
        lines = re.findall(r"^[ \t]+-[ \t]+([^\s{&*:][^\n]*)$", found[3], re.MULTILINE)
        lines += re.findall(r"^[ \t]+cmd:[ \t]*(\S[^\n]*)$", found[3], re.MULTILINE)
        yield found[1], f"task {found[1]}", "; ".join(lines) or found[2].strip("'\"")


def _procfile(text: str, _: str) -> Found:
    for found in _PROCESS.finditer(text):
        yield found[1], "", found[2]


def _tox(text: str, _: str) -> Found:
    parser = manifests.ini(text)
    for section in parser.sections():
        if section.startswith("testenv:"):
            lines = (parser.get(section, "commands", fallback="") or "").split("\n")
            name = section.removeprefix("testenv:")
            yield name, f"tox -e {shlex.quote(name)}", "; ".join(line.strip() for line in lines if line.strip())


def _noxfile(text: str, _: str) -> Found:
    for found in _SESSION.finditer(text):
        name = found[1] or found[2]
        if found[1]:
            yield name, f"nox -s {name}", ""
        else:
            yield name, f"invoke {name.replace('_', '-')}", ""


def _compose(text: str, _: str) -> Found:
    inside = re.search(r"^services:[ \t]*\n((?:[ \t]+[^\n]*\n?|[ \t]*\n)*)", text, re.MULTILINE)
    if inside is None:
        return
    first = re.search(r"^([ \t]+)[A-Za-z]", inside[1], re.MULTILINE)
    indent = first[1] if first else "  "
    for found in re.finditer(rf"^{indent}([A-Za-z][\w.-]*):[ \t]*\n((?:{indent}[ \t]+[^\n]*\n?|[ \t]*\n)*)", inside[1],
                             re.MULTILINE):  # fmt: skip
        image = re.search(r"^[ \t]+image:[ \t]*(\S+)", found[2], re.MULTILINE)
        command = re.search(r"^[ \t]+command:[ \t]*([^\[\s>|][^\n]*)", found[2], re.MULTILINE)
        runs = command[1] if command else f"image {image[1]}" if image else ""
        yield found[1], f"docker compose up {found[1]}", runs


Read = Callable[[str, str], Found]
_READERS: dict[str, Read] = {
    "package.json": _package, "composer.json": _composer, "deno.json": _deno, "deno.jsonc": _deno,
    "pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "cargo.toml": _cargo, "makefile": _makefile,
    "gnumakefile": _makefile, "justfile": _justfile, ".justfile": _justfile, "taskfile.yml": _taskfile,
    "taskfile.yaml": _taskfile, "procfile": _procfile, "tox.ini": _tox, "noxfile.py": _noxfile, "tasks.py": _noxfile,
    "docker-compose.yml": _compose, "docker-compose.yaml": _compose, "compose.yml": _compose, "compose.yaml": _compose,
}  # fmt: skip


# -- what it needs -------------------------------------------------------------------------------------------------

_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*(?:\[[\w, .-]*\])?\s*(?:==|~=|>=|<=|===|<|>|!=)[^\s;#]+)", re.MULTILINE)


def _requirements(text: str) -> Iterator[str]:
    for found in _PINNED.finditer(text):
        yield found[1].replace(" ", "")


def _of_pyproject(text: str) -> Iterator[str]:
    found = manifests.toml(text)
    project = records.table(found.get("project"))
    poetry = records.table(records.table(records.table(found.get("tool")).get("poetry")).get("dependencies"))
    version = project.get("requires-python") or poetry.get("python")
    if isinstance(version, str):
        yield f"Python {version}"
    given = project.get("dependencies")
    for one in given if isinstance(given, list) else []:
        if isinstance(one, str):
            yield one.partition(";")[0].strip()


def _of_package(text: str) -> Iterator[str]:
    for name, version in records.table(manifests.json_object(text).get("engines")).items():
        if isinstance(version, str):
            yield f"{'Node' if name == 'node' else name} {version}"


def _of_cargo(text: str) -> Iterator[str]:
    version = records.table(manifests.toml(text).get("package")).get("rust-version")
    if isinstance(version, str):
        yield f"Rust {version}"


def _of_go(text: str) -> Iterator[str]:
    yield from (f"Go {found[1]}" for found in re.finditer(r"^go[ \t]+([\d.]+)", text, re.MULTILINE))


def _of_composer(text: str) -> Iterator[str]:
    version = records.table(manifests.json_object(text).get("require")).get("php")
    if isinstance(version, str):
        yield f"PHP {version}"


def _of_file(language: str) -> Callable[[str], Iterator[str]]:
    def read(text: str) -> Iterator[str]:
        first = text.strip().split("\n")[0].strip()
        if re.fullmatch(r"[\w./-]{1,40}", first) and any(one.isdigit() for one in first):
            yield f"{language} {first}"

    return read


_NEEDS: dict[str, Callable[[str], Iterator[str]]] = {
    "requirements.txt": _requirements, "pyproject.toml": _of_pyproject, "package.json": _of_package,
    "cargo.toml": _of_cargo, "go.mod": _of_go, "composer.json": _of_composer, ".python-version": _of_file("Python"),
    ".nvmrc": _of_file("Node"), ".node-version": _of_file("Node"), ".ruby-version": _of_file("Ruby"),
}  # fmt: skip
