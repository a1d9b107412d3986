"""What a command is for: install, build, run, test, lint, migrate or deploy, or only to look at something.

The tables of programs are in `groups.toml`. A command that no table has is not worth showing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import TypeAlias

from daemon.transcript.shell import known_programs
from daemon.transcript.shell.known_programs import PYTHON, Program, packages
from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

Groups: TypeAlias = dict[str, str]
"""The group of each word."""

GROUPS = ("install", "build", "run", "test", "lint", "migrate", "deploy", "other", "check")
"""In the order in which a reader needs them; ``check`` is a one-off that failed and passed later."""

_TABLES = tomllib.loads((files(__package__) / "groups.toml").read_text(encoding="utf-8"))


def _by_word(table: dict[str, str]) -> Groups:
    return {word: "" if group == "nothing" else group for group, listed in table.items() for word in listed.split()}


def _by_group(table: dict[str, str]) -> dict[str, frozenset[str]]:
    return {group: words(listed) for group, listed in table.items()}


_NAMES = _by_group(_TABLES["names"])
_GRADLE_TASKS = _by_group(_TABLES["gradle_tasks"])
_PROGRAMS = _by_group(_TABLES["programs"])
_TEST_RUNNERS = _PROGRAMS["runners"]
_SINGLE_PURPOSE = (
    ("test", _PROGRAMS["test"] | _TEST_RUNNERS),
    ("lint", _PROGRAMS["lint"]),
    ("build", _PROGRAMS["build"]),
    ("run", _PROGRAMS["run"]),
)
_TARGETED = _PROGRAMS["targeted"]
_PACKAGE_MANAGERS = _PROGRAMS["packages"]
_SUBCOMMANDS: dict[str, Groups] = {
    program: _by_word({group: listed for group, listed in table.items() if group != "of"})
    for table in _TABLES["subcommands"]
    for program in table["of"].split()
}
_DEFAULTS = _by_word(_TABLES["defaults"])
_PYTHON_MODULES = _by_word(_TABLES["python_modules"])
_MANAGE = _by_word(_TABLES["manage"])
_TEST_WORDS = {program: words(verbs) for verbs, listed in _TABLES["test_words"].items() for program in listed.split()}
"""Programs with the words that make them run tests."""

_CHECKS = re.compile(
    "pr(?:ü|ue)f|check|chk|verif|valid|kontrol|controll?|contrôl|comprob|comprov|sprawdz|tarkist|ellenőr|ellenor|proverk|"
    "провер|перевір|確認|検査|検証|点検|检查|校验|验证|확인|검사|검증|denetle|doğrula|dogrula|kiem|kiểm|فحص|تحقق"
)
"""Stems of "check" in the languages in which targets and scripts are named."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_CHECK_OPTIONS = words("--syntax-check --check --noEmit --no-emit --validate-only")
_DRY_RUNS = words("--dry-run --dryrun --what-if --simulate --just-print --recon")
"""Options that only check what would be done, or show it."""
_CHECK_OPTION_OF = {"ansible-playbook": "-C"}
_DRY_RUN_OF = {"rsync": "-n", "make": "-n", "gmake": "-n"}
_CONFIGURES = words("configure autogen autogen.sh buildconf autoreconf autoconf automake aclocal ccmake qmake phpize "
                    "premake4 premake5")  # fmt: skip
_CONFIGURES_BY = {
    "meson": words("setup configure"), "gn": words("gen"), "waf": words("configure"), "cabal": words("configure"),
    "perl": words("Makefile.PL Build.PL Configure"), "ruby": words("extconf.rb"),
}  # fmt: skip
_NOT_CONFIGURING = words("--build --install --open --workflow -E -P")
"""Of ``cmake``: without one of these it only prepares a build."""
_SYNTAX_ONLY = {**dict.fromkeys(words("sh bash zsh dash ksh"), "-n"), "node": "--check", "ruby": "-c", "perl": "-c",
                "php": "-l", "luac": "-p", "nginx": "-t"}  # fmt: skip
_INTERPRETERS = frozenset(known_programs.DIALECTS) - {"java"}
_INSTALL_WORDS = words("install i add ci sync update upgrade -S -Sy -Syu create restore get fetch lock require")
_QUERY_FLAGS = words("--version -V --help -h version help -version --list -l --tasks")
_ONE_OFF_COMMANDS = {
    "python": ("-c",), "node": ("-e", "--eval", "-p", "-pe"), "ruby": ("-e",), "perl": ("-e",), "php": ("-r",),
    "deno": ("eval",), "bun": ("-e",), "lua": ("-e",), "julia": ("-e",), "Rscript": ("-e",),
}  # fmt: skip
_SCRIPT = re.compile(r".+\.(?:sh|bash|zsh|fish|py|rb|pl|js|mjs|cjs|ts|mts|php|lua|jl|R|exs?|ps1|bat|cmd|clj|kts)")


# -- what a command is for ---------------------------------------------------------------------------------------


def by_name(name: str) -> str:
    """What a script or target of this name is for; empty if the name does not say."""
    pieces = {piece.lower() for piece in _WORD.findall(name)}
    group_ = next((group for group, listed in _NAMES.items() if pieces & listed), "")
    return group_ or ("test" if _CHECKS.search(name.casefold()) else "")


def group_of(name: str, args: Sequence[str]) -> str:
    """What a command is for; empty if it is not worth showing. One that only checks is no deployment."""
    if _SYNTAX_ONLY.get(name, " ") in args[:1]:
        return "lint"
    if is_configuring(name, args):
        return "other"
    return _rehearsed(_group_of(name, args), name, args)


def is_configuring(name: str, args: Sequence[str]) -> bool:
    """Whether a command only prepares a build."""
    if args and all(word in _QUERY_FLAGS for word in args):
        return False
    if name == "cmake":
        return bool(args) and _NOT_CONFIGURING.isdisjoint(args)
    operands = [word for word in args if not word.startswith("-")]
    return name in _CONFIGURES or bool(_CONFIGURES_BY.get(name, frozenset()) & set(operands[:1]))


def is_dry_run(name: str, args: Sequence[str]) -> bool:
    """Whether a command only shows what it would do."""
    return any(word.partition("=")[0] in _DRY_RUNS for word in args) or _DRY_RUN_OF.get(name) in args


def _rehearsed(group: str, name: str, args: Sequence[str]) -> str:
    """The group of a command that may be a dry run, which neither does what the command is for nor tests it."""
    is_dry = is_dry_run(name, args)
    is_check = any(word.partition("=")[0] in _CHECK_OPTIONS for word in args) or _CHECK_OPTION_OF.get(name) in args
    if not (is_dry or is_check) or group in ("", "test", "lint", "check"):
        return group
    return {"build": "lint", "install": ""}.get(group, "other" if is_dry else "test")


def _group_of(name: str, args: Sequence[str]) -> str:
    if args and all(word in _QUERY_FLAGS for word in args):
        return ""
    base = name.removesuffix(".exe")
    if base == "java":
        paths = ("-cp", "-classpath", "--class-path", "-p", "--module-path")
        main = next((word for before, word in zip(("", *args), args, strict=False)
                     if not word.startswith("-") and before not in paths), "")  # fmt: skip
        return (by_name(main) or "run") if main else ""
    if PYTHON.fullmatch(base) or base in _INTERPRETERS or base == "deno":
        group = _interpreted("python" if PYTHON.fullmatch(base) else base, list(args))
        if group is not None:
            return group
    if base in packages.SCRIPTED:
        return _package(base, args)
    if base == "composer" and args[:1] and args[0] not in _SUBCOMMANDS["composer"]:
        return by_name(args[-1])
    operands = [word for word in args if not word.startswith("-") and "=" not in word]
    return _by_table(base, list(args), operands)


def _by_table(name: str, args: list[str], operands: list[str]) -> str:
    if name in ("docker", "podman", "nerdctl") and operands[:1] == ["compose"]:
        return _compose(args, operands[1:])
    if name in ("docker-compose", "podman-compose"):
        return _compose(args, operands)
    if name in _TARGETED:
        return next((group for word in operands if (group := by_name(word))), "other" if operands else _default(name))
    if name in _SUBCOMMANDS:
        return _by_subcommand(name, args, operands)
    if name in _PACKAGE_MANAGERS:
        return "install" if _INSTALL_WORDS & set(args) else ""
    return next((group for group, listed in _SINGLE_PURPOSE if name in listed), "") or _default(name)


def _default(name: str) -> str:
    return _DEFAULTS.get(name, "")


def _by_subcommand(name: str, args: list[str], operands: list[str]) -> str:
    table = _SUBCOMMANDS[name]
    subcommand_group = next((table[word] for word in [*operands[:3], *args[:3]] if word in table), None)
    if subcommand_group is not None:
        return subcommand_group
    if name in ("gradle", "gradlew"):
        return next((group for word in operands if (group := _of_gradle_task(word))), "other" if operands else "")
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    if name in _PROGRAMS["build"]:
        return "build"
    return by_name(operands[0]) if operands and ":" in operands[0] else ""


def _compose(args: list[str], operands: list[str]) -> str:
    """The group of a ``docker compose`` command; of one run inside a service, that command's."""
    inner = args[args.index(operands[1]) + 1 :] if operands[:1] in (["exec"], ["run"]) and operands[1:] else []
    return group_of(inner[0], inner[1:]) if inner else _by_subcommand("docker-compose", args, operands)


def _of_gradle_task(task: str) -> str:
    """What a task such as ``:app:assembleDebug`` is for; empty if its name does not say."""
    pieces = [piece.lower() for piece in _WORD.findall(task.rpartition(":")[2])]
    first = next((group for piece in pieces[:1] for group, listed in _GRADLE_TASKS.items() if piece in listed), "")
    return first or ("test" if _GRADLE_TASKS["test"] & set(pieces) else "")


def _package(name: str, args: Sequence[str]) -> str:
    """What npm and its like run: by the script's name, else by the subcommand."""
    script = packages.script_of(name, [Field(word) for word in args])
    if script is not None and script[0] and script[0] not in packages.HOOKED:
        if name == "bun" and _SCRIPT.fullmatch(script[0]):
            return by_name(script[0]) or "run"
        return by_name(script[0]) or ("deploy" if script[0] == "publish" else "other")
    operands = [word for word in args if not word.startswith("-")]
    return _SUBCOMMANDS[name].get(operands[0], "") if operands else ("install" if name == "yarn" else "")


def _interpreted(name: str, args: list[str]) -> str | None:
    """What an interpreter runs; None if the table of its subcommands decides."""
    if one_off(name, args):
        return "check"
    if name == "python" and args[:1] == ["-m"]:
        module = args[1] if len(args) > 1 else ""
        if module in _PYTHON_MODULES:
            return _PYTHON_MODULES[module]
        return group_of(module, args[2:]) or "run"
    if name == "node" and "--test" in args:
        return "test"
    dialect = known_programs.PYTHON_DIALECT if name == "python" else known_programs.DIALECTS.get(name)
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if dialect is not None and args[at] in dialect.values else 1
    if at >= len(args) or name == "deno" or (name in _SUBCOMMANDS and not _SCRIPT.fullmatch(args[at])):
        return None if name == "deno" or name in _SUBCOMMANDS else ""
    return script(args[at], args[at + 1 :])


def one_off(name: str, args: Sequence[str]) -> bool:
    """Whether the command holds the program text itself (``python -c …``)."""
    options = _ONE_OFF_COMMANDS.get("python" if PYTHON.fullmatch(name) else name, ())
    return any(word in options for word in args[:3])


def script(path: str, args: Sequence[str]) -> str:
    """What a script of the project is for, by its name; empty if it is only asked for its version or help."""
    if args and all(word in _QUERY_FLAGS for word in args):
        return ""
    name = path.rstrip("/").rpartition("/")[2]
    if is_configuring(name, args) or is_configuring(name.partition(".")[0], args):
        return "other"
    if name in ("manage.py", "setup.py", "artisan", "console"):
        subcommands = _MANAGE if name.endswith(".py") else _SUBCOMMANDS["artisan"]
        return next((subcommands[word] for word in args if word in subcommands), "")
    if name in _SUBCOMMANDS:  # sh gradlew build; a task of the project's own need not start it
        return group_of(name, args) or ("other" if args else "run")
    return _rehearsed(by_name(name.partition(".")[0]) or "run", name, args)


def is_script(name: str) -> bool:
    """Whether a file of this name is a script."""
    return _SCRIPT.fullmatch(name) is not None


# -- whether it runs tests ---------------------------------------------------------------------------------------

_LISTS_TESTS = words("--version --help --collect-only --co --list --listTests --list-tests --no-run --dry-run -list")
"""With these no test is run."""
_OF_MANY_GOALS = words("mvn mvnw gradle gradlew")
_SCRIPT_RUNNERS = words("python python3 node deno bun ruby php perl bash sh")
_TEST_FILE = re.compile(r"(?:.*/)?(?:tests?[_-][\w.-]+|[\w-]+[._-](?:tests?|spec)(?:\.\w+)+|(?:run[_-]?)?tests?\.\w+)")


def is_test(program: Program) -> bool:
    """Whether a program runs tests, whose output counts what passed; narrower than the group ``test``."""
    args = arguments(program)
    if _LISTS_TESTS & set(args):
        return False
    if program.name in _TEST_RUNNERS:
        return True
    operands = [word for word in args if not word.startswith("-")]
    if program.name in _TEST_WORDS:
        goals = operands[1:] if operands[:1] == ["run"] else operands
        goals = goals if program.name in _OF_MANY_GOALS else goals[:1]
        return any(goal.partition(":")[0] in _TEST_WORDS[program.name] for goal in goals)
    path = operands[0] if program.name in _SCRIPT_RUNNERS and operands else program.field.text
    return _TEST_FILE.fullmatch(path) is not None and "-c" not in args


def is_runner(name: str) -> bool:
    """Whether a program only runs what it is given: an interpreter, or a runner of tasks."""
    return name in _SCRIPT_RUNNERS or name in _TEST_WORDS


def arguments(program: Program) -> list[str]:
    """The words given to a program."""
    return [field.text for field in program.arguments]
