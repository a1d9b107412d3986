"""The scripts and targets that a project's files name, and what the project needs: versions and pinned dependencies.

Only the last certain content of a file counts.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from daemon import records
from daemon.display import strip_invisible
from daemon.files.history import REVERTED
from daemon.reconstitute.facts import usage
from daemon.reconstitute.facts.content import cut, last_text, manifests
from daemon.reconstitute.facts.shell import failures, groups, spellings
from daemon.reconstitute.facts.shell.runs import names as programs_of
from daemon.reconstitute.facts.usage import ScriptGroups
from daemon.reconstitute.facts.values import Need, Script
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact

_MOST_PER_FILE = 40
_DEEPEST = 2
"""So deep beneath the target a manifest still belongs to it, such as ``packages/api``."""
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
"""A makefile's first target. One that begins with a dot, or is a pattern, is no goal."""
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
"""The last line of a script that exits with a status of its own, not with that of a program that it ran."""
Named: TypeAlias = Iterator[tuple[str, str, str]]
"""(name, how it is called, what it runs)."""


def find(files: Sequence[Recovered]) -> tuple[Script, ...]:
    """The scripts that the files name."""
    manager = _manager(files)
    script_groups = groups_by_content(files)
    scripts: list[Script] = []
    for file in sorted(files, key=lambda candidate: (candidate.relative.count("/"), candidate.relative)):
        reader = _READERS.get(file.relative.rpartition("/")[2].lower())
        text = _certain(file) if reader is not None else None
        if reader is None or text is None:
            continue
        default = _goal(text) if reader is _makefile else _recipe(text) if reader is _justfile else ""
        for name, invocation, runs in islice(reader(text, manager), _MOST_PER_FILE):
            scripts.append(replace(_script(file, name, invocation, runs, script_groups), is_default=name == default))
    return tuple(scripts)


def groups_by_content(files: Sequence[Recovered]) -> dict[str, str]:
    """What the scripts are for whose names do not say it, by their paths beneath the target, from their contents.

    A shell script is for what its only important command is for. A shell script that only looks and exits, and any
    script that exits with a status of its own, is a check.
    """
    script_groups: dict[str, str] = {}
    for file in files:
        name = posixpath.basename(file.relative)
        is_shell = name.endswith((".sh", ".bash")) or "." not in name
        if not (is_shell or groups.is_script(name)) or groups.by_name(name.partition(".")[0]):
            continue
        text = _certain(file)
        is_own = text is not None and (name.partition(".")[2] != "" or text.startswith("#!"))
        group = _kind(text, is_shell=is_shell) if text is not None and is_own else ""
        if group:
            script_groups[file.relative] = group
    return script_groups


def _kind(text: str, *, is_shell: bool) -> str:
    if not is_shell:
        last = text.rstrip().rpartition("\n")[2].strip()
        return "test" if _EXITS.fullmatch(last) else ""
    purposes = set(usage.groups_of(text)) - {"install", "lint", "other"}
    if len(purposes) == 1:
        return purposes.pop()
    names = programs_of(text)
    return "test" if "exit" in names and not purposes and all(map(failures.is_look, names - {"exit", "set"})) else ""


def starts(
    target: str, files: Sequence[Recovered], readmes: Sequence[Recovered], spellings_: Sequence[spellings.Spelling] = ()
) -> tuple[Script, ...]:
    """The commands with which a README or a convention of the language starts the project, without `spellings_`."""
    existing = {file.relative: file for file in files if file.state is not State.DELETED}
    moved = usage.moved_paths(target, files)
    by_spelling: dict[spellings.Spelling, Script] = {}
    for file in readmes:
        text = last_text(file)
        for command in spellings.in_code(text.text) if text is not None else ():
            spelled = spellings.of(command)
            path = usage.script_of(command, "")
            is_script = (
                "/" not in spelled[1] or path in existing or _IS_PROGRAM.match(command) if spelled[1:] else False
            )
            if is_script and path not in moved and list(usage.groups_of(command)) == ["run"]:
                line = _line(command, 160)
                by_spelling.setdefault(spelled, Script(line, line, "", file.path, "run"))
    conventions = (("Cargo.toml", "src/main.rs", "cargo run"), ("go.mod", "main.go", "go run ."))
    for manifest, main, command in conventions:
        if manifest in existing and main in existing:
            by_spelling.setdefault(
                spellings.of(command), Script(command, command, main, existing[manifest].path, "run")
            )
    return tuple(islice((script for spelled, script in by_spelling.items() if spelled not in spellings_), _MOST_STARTS))


def _recipe(text: str) -> str:
    """The recipe that ``just`` runs by default: the first."""
    first = _RECIPE.search(text)
    return first[1] if first else ""


def _goal(text: str) -> str:
    """The target that ``make`` runs by default: the first, or the one that the makefile sets."""
    if re.search(r"^[ \t]*[s-]?include\b", text, re.MULTILINE):
        return ""  # the first target may be in another file
    goal = re.search(r"^\.DEFAULT_GOAL[ \t]*[:?]?=[ \t]*(\S+)", text, re.MULTILINE)
    first = _FIRST.search(text.replace("\\\n", " "))
    return goal[1] if goal else first[1] if first else ""


def needs(files: Sequence[Recovered]) -> tuple[Need, ...]:
    """What the project's own files require: versions first, then pinned dependencies."""
    requirements: list[Need] = []
    for file in sorted(files, key=lambda file: file.relative):
        text = _certain(file) if manifests.names_requirements(file.relative) else None
        if text is not None:
            lines = [
                _line(requirement, 80)
                for requirement in islice(manifests.requirements(file.relative, text), _MOST_NEEDS)
            ]
            requirements += [Need(line, file.path) for line in dict.fromkeys(lines) if line]
    return tuple(requirements)


def _certain(file: Recovered) -> str | None:
    """Its last certain content, whole; None if another content followed it or a revert may have taken it back."""
    is_followed = file.uncertain is not None and not file.uncertain.mark_unknown
    if file.relative.count("/") > _DEEPEST or is_followed:
        return None
    if file.state is State.STALE and any(revision.note == REVERTED for revision in file.revisions[-5:]):
        return None
    read = last_text(file)
    return read.text if read is not None and read.is_whole else None


def _script(file: Recovered, name: str, invocation: str, runs: str, script_groups: ScriptGroups) -> Script:
    folder = posixpath.dirname(file.relative)
    is_entry = _ENTRY.fullmatch(runs) is not None
    group = groups.by_name(name) or ("run" if is_entry else next(usage.groups_of(runs, folder, script_groups), "other"))
    command = f"cd {shlex.quote(folder)} && {invocation}" if folder and invocation else invocation
    return Script(_line(name, 80), _line(command, 160), _line(runs, _MOST_RUNS), file.path, group)


def _line(text: str, limit: int) -> str:
    return cut(" ".join(redact(strip_invisible(text[:4000])).split()), limit)


def _manager(files: Sequence[Recovered]) -> str:
    """The package manager whose lock file exists."""
    names = {file.relative for file in files if file.state is not State.DELETED}
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    return next((manager for lock, manager in locks.items() if lock in names), "npm")


def _package(text: str, manager: str) -> Named:
    for name, runs in records.table(manifests.json_object(text).get("scripts")).items():
        if not isinstance(runs, str) or not runs.strip() or name.startswith("//"):
            continue
        short = name in ("start", "test") and manager in ("npm", "yarn", "pnpm")
        yield name, f"{manager} {'' if short else 'run '}{shlex.quote(name)}", runs


def _composer(text: str, _: str) -> Named:
    for name, runs in records.table(manifests.json_object(text).get("scripts")).items():
        commands = runs if isinstance(runs, list) else [runs]
        lines = [line for line in commands if isinstance(line, str)]
        if lines and not re.match(r"(?:pre|post)-", name):
            yield name, f"composer run {shlex.quote(name)}", " && ".join(lines)


def _deno(text: str, _: str) -> Named:
    for name, task in records.table(manifests.json_object(text).get("tasks")).items():
        runs = task if isinstance(task, str) else records.text(records.table(task).get("command"))
        if runs:
            yield name, f"deno task {shlex.quote(name)}", runs


def _pyproject(text: str, _: str) -> Named:
    document = manifests.toml(text)
    tools = records.table(document.get("tool"))
    poetry = records.table(tools.get("poetry"))
    for table in (records.table(document.get("project")).get("scripts"), poetry.get("scripts")):
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


def _setup_cfg(text: str, _: str) -> Named:
    entry_points = manifests.ini(text).get("options.entry_points", "console_scripts", fallback="") or ""
    for line in entry_points.split("\n"):
        name, sign, runs = line.partition("=")
        if sign and name.strip():
            yield name.strip(), name.strip(), runs.strip()


def _cargo(text: str, _: str) -> Named:
    document = manifests.toml(text)
    binaries = document.get("bin")
    for binary in binaries if isinstance(binaries, list) else []:
        name = records.text(records.table(binary).get("name"))
        if name:
            yield name, f"cargo run --bin {shlex.quote(name)}", records.text(records.table(binary).get("path"))


def _makefile(text: str, _: str) -> Named:
    joined = text.replace("\\\n", " ")
    phony = {goal for rule in _PHONY.finditer(joined) for goal in rule[1].split()}
    seen: set[str] = set()
    for rule in _RULE.finditer(joined):
        lines = [line.strip().lstrip("@-+") for line in rule[3].split("\n") if line.startswith("\t") and line.strip()]
        for name in rule[1].split():
            if name in seen or not (name in phony or (not phony and "." not in name)):
                continue
            if not lines and not rule[2].partition("#")[0].strip():
                continue
            seen.add(name)
            yield name, f"make {name}", "; ".join(lines) or f"make {rule[2].partition('#')[0].strip()}"


def _justfile(text: str, _: str) -> Named:
    for recipe in _RECIPE.finditer(text):
        lines = [line.strip().lstrip("@-") for line in recipe[4].split("\n") if line.strip()]
        if (
            (lines or recipe[3].strip())
            and not recipe[1].startswith("_")
            and recipe[1] not in ("set", "alias", "export")
        ):
            yield recipe[1], f"just {recipe[1]}", "; ".join(lines) or f"just {recipe[3].strip()}"


def _taskfile(text: str, _: str) -> Named:
    """The names beneath ``tasks:`` and their first plain command lines."""
    inside, indent = _yaml_table(text, "tasks")
    entry = rf"^{indent}([A-Za-z][\w:-]*):[ \t]*([^\n]*)((?:\n{indent}[ \t]+[^\n]*|\n[ \t]*(?=\n))*)"
    for task in re.finditer(entry, inside, re.MULTILINE):
        lines = re.findall(r"^[ \t]+-[ \t]+([^\s{&*:][^\n]*)$", task[3], re.MULTILINE)
        lines += re.findall(r"^[ \t]+cmd:[ \t]*(\S[^\n]*)$", task[3], re.MULTILINE)
        yield task[1], f"task {task[1]}", "; ".join(lines) or task[2].strip("'\"")


def _yaml_table(text: str, key: str) -> tuple[str, str]:
    """What is beneath a top-level key of a YAML document, and how its entries are indented; empty if there is none."""
    inside = re.search(rf"^{key}:[ \t]*\n((?:[ \t]+[^\n]*\n?|[ \t]*\n)*)", text, re.MULTILINE)
    first = re.search(r"^([ \t]+)[A-Za-z]", inside[1], re.MULTILINE) if inside else None
    return (inside[1] if inside else ""), (first[1] if first else "  ")


def _procfile(text: str, _: str) -> Named:
    for process in _PROCESS.finditer(text):
        yield process[1], "", process[2]


def _tox(text: str, _: str) -> Named:
    parser = manifests.ini(text)
    for section in parser.sections():
        if section.startswith("testenv:"):
            lines = (parser.get(section, "commands", fallback="") or "").split("\n")
            name = section.removeprefix("testenv:")
            yield name, f"tox -e {shlex.quote(name)}", "; ".join(line.strip() for line in lines if line.strip())


def _noxfile(text: str, _: str) -> Named:
    for task in _SESSION.finditer(text):
        name = task[1] or task[2]
        if task[1]:
            yield name, f"nox -s {name}", ""
        else:
            yield name, f"invoke {name.replace('_', '-')}", ""


def _compose(text: str, _: str) -> Named:
    inside, indent = _yaml_table(text, "services")
    entry = rf"^{indent}([A-Za-z][\w.-]*):[ \t]*\n((?:{indent}[ \t]+[^\n]*\n?|[ \t]*\n)*)"
    for service in re.finditer(entry, inside, re.MULTILINE):
        image = re.search(r"^[ \t]+image:[ \t]*(\S+)", service[2], re.MULTILINE)
        command = re.search(r"^[ \t]+command:[ \t]*([^\[\s>|][^\n]*)", service[2], re.MULTILINE)
        runs = command[1] if command else f"image {image[1]}" if image else ""
        yield service[1], f"docker compose up {service[1]}", runs


Read = Callable[[str, str], Named]
_READERS: dict[str, Read] = {
    "package.json": _package, "composer.json": _composer, "deno.json": _deno, "deno.jsonc": _deno,
    "pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "cargo.toml": _cargo, "makefile": _makefile,
    "gnumakefile": _makefile, "justfile": _justfile, ".justfile": _justfile, "taskfile.yml": _taskfile,
    "taskfile.yaml": _taskfile, "procfile": _procfile, "tox.ini": _tox, "noxfile.py": _noxfile, "tasks.py": _noxfile,
    "docker-compose.yml": _compose, "docker-compose.yaml": _compose, "compose.yml": _compose, "compose.yaml": _compose,
}  # fmt: skip
