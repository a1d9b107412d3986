"""Tables of interpreters, build tools and others: what runs a program of the user's, and what only looks at one.

And the program that a command really runs: behind ``sudo``, ``timeout 5``, ``uv run``, ``npx`` and their like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an interpreter reads its arguments: options with a program text, with a value, or that only print or check.

    `language`: how a replay reads its text (model.Launch), as long as no option but `plain` ones is given; empty where
    it cannot.
    """

    text: re.Pattern[str]
    values: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    language: str = ""
    plain: re.Pattern[str] = re.compile(r"(?!)")


ASKING = words("--version --help -h")
SHELL = Dialect(
    re.compile(r"-[a-zA-Z]*c()"), words("-o +o -O +O --rcfile --init-file"), words("-n --version --help --dump-strings")
)
SH = replace(SHELL, language="sh", plain=re.compile(r"[-+][euxv]+"))
BASH = replace(SH, language="bash")
SCRIPTED = Dialect(re.compile(r"(?:-e|--eval|-p|--print|-pe)()"), words("-r --require -P --project"), ASKING)
NODE = Dialect(
    SCRIPTED.text,
    words("-r --require --import --loader --experimental-loader --env-file -C --conditions --title"),
    words("-v --version -h --help --test -c --check"),
)
DIALECTS = {
    "node": NODE, "nodejs": NODE,
    "ruby": Dialect(re.compile(r"-[lnpaw]*e()"), words("-I -r -C"), words("--version --help -h -c")),
    "perl": Dialect(re.compile(r"-[0-9a-df-hj-zA-DF-Z]*[eE]()"), words("-I"), words("--version --help -h -c")),
    "php": Dialect(re.compile(r"-r()"), words("-d -c"), words("--version --help -h -l -i -m --ini")),
    "lua": Dialect(re.compile(r"-e()"), words("-l")), "luajit": Dialect(re.compile(r"-e()"), words("-l")),
    "Rscript": Dialect(re.compile(r"-e()"), harmless=words("--version --help")),
    "julia": Dialect(re.compile(r"(?:-e|-E|--eval)()"), words("-t -p -L"), words("-v --version --help -h")),
    "osascript": Dialect(re.compile(r"-e()"), words("-l")), "tclsh": Dialect(re.compile(r"(?!)")),
    "elixir": Dialect(re.compile(r"(?:-e|--eval)()"), words("-r"), ASKING), "groovy": SCRIPTED,
    "java": Dialect(
        re.compile(r"(?!)"), words("-cp -classpath --class-path -p --module-path -jar"),
        words("-version --version --help"),
    ),
    "swift": Dialect(re.compile(r"-e()"), harmless=words("--version --help test")),
    "expect": Dialect(re.compile(r"-c()")), "fish": SHELL, "pwsh": Dialect(re.compile(r"(?i:-c|-command)()")),
    **dict.fromkeys(words("zsh ksh"), SHELL), "bash": BASH, "sh": SH, "dash": SH,
    **dict.fromkeys(words("tsx ts-node ts-node-esm esr esno swc-node babel-node coffee jiti vite-node"), SCRIPTED),
}  # fmt: skip
SHELLS = words("bash sh zsh dash ksh fish")
PYTHON_TEXT = re.compile(r"-[bBdEiIOPqsSuvx]*c(.*)", re.DOTALL)
PYTHON_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m(.*)")
PYTHON_DIALECT = Dialect(
    PYTHON_TEXT,
    words("-W -X --check-hash-based-pycs"),
    words("--version -V -VV --help -h --help-all"),
    "python",
    re.compile(r"-[uBbsEOq]+"),
)
HARMLESS_MODULES = words(
    "pytest unittest pip venv virtualenv json.tool http.server compileall py_compile mypy flake8 pylint pyright "
    "this site ensurepip pydoc platform sysconfig tabnanny dis ast tokenize bandit nose nose2 calendar "
    "vulture radon pip_audit safety inspect pipdeptree"
)
RUNNING = {
    "cargo": words("build b run r install doc rustc"), "go": words("build run install generate"),
    "dotnet": words("build run publish pack new ef watch tool format"), "docker": words("run exec"),
    "podman": words("run exec"), "docker-compose": words("run exec"), "swift": words("build run package"),
    "flask": words("db"), "alembic": words("revision init merge"), "pre-commit": words("run"),
    "prisma": words("generate migrate db init format"), "vite": words("build"), "next": words("build"),
    "nuxt": words("build generate"), "astro": words("build add"), "jupyter": words("nbconvert execute"),
    "hugo": words("new"), "mkdocs": words("build new"), "drizzle-kit": words("generate pull push migrate"),
    "uv": words("build init"), "poetry": words("build new init"), "hatch": words("build new fmt"),
    "composer": words("run run-script exec create-project install update"),
    "mix": words("run compile phx.new ecto.gen.migration"),
    "zig": words("build run"), "stack": words("build run"), "cabal": words("build run"),
    "dart": words("run fix create"),
    "flutter": words("build run create pub"), "deno": words("run task eval compile bundle install"),
}  # fmt: skip
"""Tools of which only these subcommands run what could write anything."""
RUNNING_UNLESS = {
    "rails": words("server s console c routes test t"), "rake": words("test spec"), "just": frozenset(),
    "gradle": words("test check tasks dependencies properties"),
    "gradlew": words("test check tasks dependencies properties"),
    "mvn": words("test verify dependency:tree validate"), "mvnw": words("test verify dependency:tree validate"),
    "ninja": frozenset(), "bazel": words("test query cquery info version"), "task": frozenset(), "invoke": frozenset(),
    "inv": frozenset(), "webpack": frozenset(), "rollup": frozenset(), "esbuild": frozenset(), "parcel": frozenset(),
    "tsup": frozenset(), "turbo": words("test"), "nx": words("test lint graph"), "lerna": words("ls list changed diff"),
    "ng": words("test lint version serve"), "nest": words("info start"), "protoc": frozenset(),
    "buf": words("lint breaking"),
    "sqlc": words("vet version"), "swag": frozenset(), "mockgen": frozenset(), "cookiecutter": frozenset(),
    "copier": frozenset(), "sphinx-build": frozenset(), "django-admin": words("check version"),
    "lint-staged": frozenset(),
    "gulp": frozenset(), "grunt": frozenset(), "ansible-playbook": frozenset(), "papermill": frozenset(),
    "meson": words("test"),
    "graphql-codegen": frozenset(), "openapi-generator": frozenset(), "openapi-generator-cli": frozenset(),
    "javac": words("-version"), "lefthook": frozenset(), "nodemon": frozenset(),
    "pm2": words("list ls logs status stop kill delete"),
    "tsc": words("--noEmit --showConfig --listFilesOnly"), "vue-tsc": words("--noEmit"), "svelte-kit": frozenset(),
}  # fmt: skip
"""Tools that run what could write anything, unless one of these is the subcommand or, with a dash, an option."""
TESTING = words("jest vitest mocha ava tap nyc c8 playwright cypress karma pytest jasmine wdio")
LOOKING = words(
    "serve http-server live-server depcheck madge knip svelte-check license-checker lighthouse pyright mypy flake8 "
    "pylint "
    "npm-check json-server tsd size-limit commitlint cspell htmlhint cowsay bandit vulture safety pip-audit pip "
    "pip3 kill-port wait-on "
    "envinfo attw publint jscpd semver loc cloc tokei audit-ci detect-secrets shellcheck hadolint yamllint solhint "
    "unittest"
)
SCRIPT_NAME = re.compile(r".+\.(?:sh|bash|zsh|py|pl|rb|js|mjs|cjs|ts|php|lua|command|bat|ps1)")


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_DEEPEST = 8
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "sudo": (words("-u -g -p --user --group"), 0), "doas": (words("-u"), 0),
    "env": (words("-u --unset"), 0), "timeout": (words("-s -k --signal --kill-after"), 1),
    "nice": (words("-n"), 0), "ionice": (words("-c -n -p"), 0), "stdbuf": (words("-i -o -e"), 0),
    "time": (words("-f"), 0), "exec": (words("-a"), 0), "xvfb-run": (words("-n -s -p"), 0),
    "nohup": (frozenset(), 0), "command": (frozenset(), 0), "builtin": (frozenset(), 0), "setsid": (frozenset(), 0),
    "unbuffer": (frozenset(), 0), "caffeinate": (words("-t -w"), 0),
    "taskset": (words("-c"), 1), "strace": (words("-e -p -s"), 0), "ltrace": (words("-e -p -s"), 0),
    "coproc": (frozenset(), 0),
    "dotenv": (words("-e -f -c"), 0), "cross-env": (frozenset(), 0),
}  # fmt: skip
"""Each with its options that take a value, and the number of operands before the program."""
_PLAIN = {
    name: re.compile(rf"--|{pattern}") for name, pattern in {
        "env": r"-|-i|-0|--ignore-environment|-u\w+|--unset=\w+|-[EHnk]+",
        "sudo": r"-[EHSnk]+|--user=.*|--group=.*|-u\w+",
        "timeout": r"-[fpv]+|-[sk]\w+|--(?:signal|kill-after)=.*|--preserve-status|--foreground|--verbose",
        "nice": r"-n?-?\d+|--adjustment=.*", "ionice": r"-[cn]\d+|-t",
        "stdbuf": r"-[ioe]\w+|--(?:input|output|error)=\w+",
        "time": r"-[pv]+", "command": r"-p", "setsid": r"-[fw]+|--wait|--fork", "exec": r"-[cl]+",
        "strace": r"-[fqy]+", "ltrace": r"-[fqy]+", "xvfb-run": r"-a|--auto-servernum|--server-args=.*",
        "caffeinate": r"-[dims]+", "taskset": r"-c",
    }.items()
}  # fmt: skip
"""Their other options, which do not affect the program or its folder, and write nothing."""
_LEADS_ELSEWHERE = re.compile(r"(?:-C|--directory|--dir|--cwd|--chdir|--prefix)(?:=.*)?", re.DOTALL)
_RUN_TOOL: dict[str, frozenset[str]] = {
    "npx": words("-p --package"), "bunx": words("-p --package"), "pnpx": words("-p --package"),
    "uvx": words("--from --with -p --python --index"),
}  # fmt: skip
"""They fetch a program by its name and run it."""
_UV_VALUES = words(
    "--with --with-requirements --with-editable -p --python --project --directory --group --extra --env-file --package "
    "--index --no-group --only-group"
)
_SUBCOMMANDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "uv": (words("run"), _UV_VALUES), "poetry": (words("run"), words("-C -P --directory --project")),
    "pdm": (words("run"), words("-p --project --venv")), "pipenv": (words("run"), frozenset()),
    "hatch": (words("run"), words("-e --env")), "rye": (words("run"), frozenset()),
    "conda": (words("run"), words("-n --name -p --prefix --cwd")),
    "mamba": (words("run"), words("-n --name -p --prefix --cwd")),
    "micromamba": (words("run"), words("-n --name -p --prefix --cwd")), "bundle": (words("exec"), frozenset()),
    "mise": (words("exec x"), frozenset()), "asdf": (words("exec"), frozenset()),
    "doppler": (words("run"), words("-p -c --project --config")), "op": (words("run"), words("--env-file")),
    "dotenvx": (words("run"), words("-f -e")),
}  # fmt: skip
_FETCHING: dict[str, frozenset[str]] = {
    "npm": words("exec x"), "pnpm": words("exec dlx"), "yarn": words("exec dlx"), "bun": words("x"),
    "pipx": words("run"),
}  # fmt: skip
_MODULES = words(
    "pytest pip black isort autopep8 yapf ruff autoflake pyupgrade mypy flake8 pylint pyright unittest coverage"
)
"""Modules that are known here by the name of their program."""
PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)*)?")


@dataclass(frozen=True, slots=True)
class Program:
    """A program as named in its command, its arguments, and whether a package runner fetched it."""

    field: Field
    arguments: tuple[Field, ...]
    is_fetched: bool = False

    @property
    def name(self) -> str:
        """Its name without folder and version; empty where it is not known."""
        if not self.field.exact:
            return ""
        name = self.field.text.rpartition("/")[2]
        return name.partition("@")[0] if self.is_fetched and not name.startswith("@") else name


def unwrapped(fields: list[Field] | tuple[Field, ...]) -> Program | None:
    """The program inside wrappers such as ``sudo``; None if there is none."""
    remaining, is_fetched = list(fields), False
    for _ in range(_DEEPEST):
        if not remaining:
            return None
        name = Program(remaining[0], (), is_fetched).name
        inner = _inner(name, remaining[1:])
        if inner is None:
            return Program(remaining[0], tuple(remaining[1:]), is_fetched)
        is_fetched = is_fetched or name in _RUN_TOOL or name in _FETCHING
        remaining = inner
    return Program(Field("", exact=False), ())


def is_plainly_wrapped(fields: list[Field]) -> bool:
    """Whether nothing before the program could change its folder, its variables or its home."""
    program = unwrapped(fields)
    before = fields[: len(fields) - len(program.arguments) - 1] if program is not None else fields
    return all(
        field.exact and not field.text.startswith("-") and "=" not in field.text and field.text not in ("sudo", "doas")
        for field in before
    )


def _inner(name: str, arguments: list[Field]) -> list[Field] | None:  # noqa: PLR0911 - a table of kinds
    """The command line inside this one; None if there is none."""
    if name in _WRAPPERS:
        values, operands = _WRAPPERS[name]
        if name == "command" and arguments and arguments[0].text in ("-v", "-V", "-pv", "-pV"):
            return [Field("type"), *arguments[1:]]
        inner_line = _behind(arguments, values, operands)
        plain = _PLAIN.get(name, re.compile("--"))
        before = (
            field for field in arguments[: len(arguments) - len(inner_line)] if field.text[:1] == "-" or not field.exact
        )
        is_plain = all(field.exact and (field.text in values or plain.fullmatch(field.text)) for field in before)
        return (inner_line or None) if is_plain else [Field("", exact=False)]
    if name in _RUN_TOOL:
        return _behind(arguments, _RUN_TOOL[name], 0) or None
    if PYTHON.fullmatch(name) and [field.text for field in arguments[:1]] == ["-m"] and len(arguments) > 1:
        return arguments[1:] if arguments[1].exact and arguments[1].text in _MODULES else None
    known = _SUBCOMMANDS.get(name) or (
        (_FETCHING[name], words("-p --package --filter -C")) if name in _FETCHING else None
    )
    if known is None:
        return None
    inner_line = _behind(arguments, known[1], 0)
    if not inner_line or not inner_line[0].exact or inner_line[0].text not in known[0]:
        return None
    inner = _of_uv(inner_line[1:]) if name == "uv" else _behind(inner_line[1:], known[1], 0) or None
    ahead = arguments[: len(arguments) - len(inner or inner_line)]
    return [Field("", exact=False)] if any(_LEADS_ELSEWHERE.fullmatch(field.text) for field in ahead) else inner


def _of_uv(arguments: list[Field]) -> list[Field] | None:
    """``uv run`` runs Python's files, modules and standard input by itself."""
    command = _behind(arguments, _UV_VALUES, 0, stops=words("-m --module - -s --script"))
    if not command:
        return None
    first = command[0].text
    if first in ("-m", "--module"):
        return [Field("python"), Field("-m"), *command[1:]]
    if first in ("-s", "--script"):
        return [Field("python"), *command[1:]]
    return [Field("python"), *command] if first == "-" or first.endswith((".py", ".pyw")) else command


def _behind(
    arguments: list[Field], values: frozenset[str], operands: int, stops: frozenset[str] = frozenset()
) -> list[Field]:
    """What follows the options, assignments and so many operands."""
    at = 0
    while at < len(arguments):
        text = arguments[at].text
        if text in stops:
            break
        if text == "--":
            at += 1
            break
        if text.startswith("-"):
            at += 2 if text in values else 1
        elif _ASSIGNMENT.fullmatch(text):
            at += 1
        elif operands:
            operands -= 1
            at += 1
        else:
            break
    return arguments[at:]
