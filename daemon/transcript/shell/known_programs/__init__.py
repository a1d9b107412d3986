"""Tables of interpreters, build tools and others: what runs a program of the user's, and what only looks at one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from daemon.transcript.shell.names import words


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an interpreter reads its arguments: what brings a text, what takes a value, what only asks or checks.

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
