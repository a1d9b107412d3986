"""What a command is for - install, build, test, run, deploy … - by its program and first words, or its target's name.

Tables of the usual programs of all ecosystems; a command that is in none is for nothing worth telling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from daemon.transcript.shell import known_programs
from daemon.transcript.shell.known_programs import packages
from daemon.transcript.shell.known_programs.wrappers import PYTHON
from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

GROUPS = ("install", "build", "run", "test", "lint", "migrate", "deploy", "other", "check")
"""In the order in which a reader needs them; ``check`` is a one-off that failed and passed later."""

_NAMES = {
    "test": words("test tests testing spec specs check verify e2e unit integration coverage cov bench benchmark"),
    "install": words("install setup bootstrap deps dependencies init provision venv requirements vendor"),
    "deploy": words("deploy deployment release publish ship upload rollout push"),
    "migrate": words("migrate migration migrations seed seeds fixtures"),
    "lint": words("lint linter format fmt style typecheck types tidy prettier eslint mypy ruff clippy"),
    "build": words("build compile bundle dist package generate gen codegen docs doc all image assets"),
    "run": words("run start dev serve server up watch preview demo local main app develop"),
}  # fmt: skip
_CHECKS = re.compile(
    "pr(?:ü|ue)f|check|chk|verif|valid|kontrol|controll?|contrôl|comprob|comprov|sprawdz|tarkist|ellenőr|ellenor|proverk|"
    "провер|перевір|確認|検査|検証|点検|检查|校验|验证|확인|검사|검증|denetle|doğrula|dogrula|kiem|kiểm|فحص|تحقق"
)
"""Stems of "check" in the languages in which targets and scripts are named."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_CHECKS_ONLY = words("--syntax-check --check --noEmit --no-emit --validate-only")
_DRY_RUNS = words("--dry-run --dryrun --what-if --simulate --just-print --recon")
"""Options with which nothing is done but to check it, or to show what would be done."""
_CHECKS_BY = {"ansible-playbook": "-C"}
_DRY_BY = {"rsync": "-n", "make": "-n", "gmake": "-n"}
_CONFIGURES = words("configure autogen autogen.sh buildconf autoreconf autoconf automake aclocal ccmake qmake phpize "
                    "premake4 premake5")  # fmt: skip
_CONFIGURES_BY = {
    "meson": words("setup configure"), "gn": words("gen"), "waf": words("configure"), "cabal": words("configure"),
    "perl": words("Makefile.PL Build.PL Configure"), "ruby": words("extconf.rb"),
}  # fmt: skip
_NOT_CONFIGURING = words("--build --install --open --workflow -E -P")
"""Of ``cmake``: without one of these it only gets a build ready."""
_SYNTAX_ONLY = {**dict.fromkeys(words("sh bash zsh dash ksh"), "-n"), "node": "--check", "ruby": "-c", "perl": "-c",
                "php": "-l", "luac": "-p", "nginx": "-t"}  # fmt: skip
_TASK_WORDS = {
    "build": words("assemble build bundle compile package jar war archive dist"),
    "test": words("test tests check verify"),
    "deploy": words("install publish upload deploy distribute release"),
    "lint": words("lint detekt ktlint spotless format"),
    "run": words("run boot start"),
}
"""What a task of Gradle is for: by its first word that tells, as in ``assembleDebug``; of tests by any word."""
_INTERPRETERS = frozenset(known_programs.DIALECTS) - {"java"}
_TESTS = words(
    "pytest unittest tox nox nose2 jest vitest mocha ava tap karma jasmine cypress playwright wdio phpunit pest rspec "
    "prove minitest cucumber behave ctest bats busted gotestsum nextest testthat ward trial stestr pytest-3 behat "
    "codecept lein-test kaocha googletest shunit2 hurl newman k6"
)
_LINTS = words(
    "ruff black isort flake8 pylint mypy pyright eslint prettier biome tsc-lint stylelint rubocop standardrb "
    "golangci-lint gofmt goimports staticcheck shellcheck shfmt hadolint yamllint markdownlint ktlint "
    "detekt swiftlint swiftformat clang-format clang-tidy cppcheck php-cs-fixer phpcs phpstan psalm credo rustfmt "
    "pre-commit bandit ansible-lint tflint sqlfluff hlint ormolu fourmolu vale xo standard oxlint djlint lint-imports "
    "commitlint dprint vulture"
)
_BUILDS = words(
    "tsc webpack rollup esbuild parcel tsup swc babel cmake ninja meson gcc g++ cc c++ clang clang++ rustc javac "
    "kotlinc scalac ghc sphinx-build pyinstaller nuitka protoc pdflatex xelatex lualatex latexmk tectonic pandoc typst "
    "kaniko bazel buck2 pants sass mkdocs hugo jekyll eleventy packer nix-build asciidoctor "
    "wasm-pack dune elm gleam mdbook quarto marp"
)
_RUNS = words(
    "uvicorn gunicorn hypercorn daphne waitress-serve streamlit gradio nodemon pm2 http-server serve live-server "
    "json-server foreman honcho overmind puma unicorn rackup celery air caddy redis-server jupyter-lab "
    "tsx ts-node supervisord rq dramatiq flower concurrently ts-node-dev wrangler-dev browser-sync open love godot"
)
_INSTALLS = words("apt apt-get apk dnf yum pacman brew port zypper choco winget scoop snap conda mamba micromamba")
_INSTALL_WORDS = words("install i add ci sync update upgrade -S -Sy -Syu create restore get fetch lock require")
_SUB: dict[str, dict[str, str]] = {}
"""By program, and the word behind it."""


def _table(program: str, **groups: str) -> None:
    for name in program.split():
        _SUB[name] = {word: group for group, listed in groups.items() for word in listed.split()}


_table("pip pip3 pipx", install="install sync")
_table("uv", install="sync add venv pip lock tool", build="build", deploy="publish")
_table("poetry pdm rye hatch pipenv", install="install add sync update lock", build="build", deploy="publish",
       test="test", lint="fmt check", run="start")  # fmt: skip
_table("npm pnpm yarn bun", install="install i add ci update up upgrade link", deploy="publish deploy")
_table("cargo", build="build b rustc doc", run="run r", test="test t nextest bench", lint="clippy fmt check c",
       install="install add fetch update", deploy="publish")  # fmt: skip
_table("go", build="build generate", run="run", test="test", lint="vet fmt", install="get install mod")
_table("docker podman nerdctl", build="build buildx", run="run start", deploy="push")
_table("docker-compose podman-compose", build="build", run="up start run restart", deploy="push")
_table("dotnet", build="build pack", run="run watch", test="test", install="restore add tool", deploy="publish nuget",
       lint="format", migrate="ef")  # fmt: skip
_table("mvn mvnw", build="compile package install", test="test verify", install="dependency:resolve", deploy="deploy",
       run="spring-boot:run exec:java jetty:run quarkus:dev")  # fmt: skip
_table("gradle gradlew", build="shadowJar bootJar installDist classes", lint="ktlintCheck")
_table("adb", deploy="install")
_table("fastlane", deploy="supply deliver release beta pilot", test="test scan", build="gym build")
_table("xcodebuild", build="build archive", test="test")
_table("sbt mill lein boot scala-cli clojure clj bb", build="compile assembly package uberjar jar",
       test="test testOnly", run="run", deploy="publish deploy", install="deps")  # fmt: skip
_table("swift", build="build", run="run", test="test", install="package")
_table("zig", build="build build-exe", run="run", test="test", lint="fmt")
_table("stack cabal dune", build="build", run="run exec", test="test", install="install update setup", lint="fmt")
_table("flutter dart", build="build compile", run="run", test="test", install="pub", lint="analyze format")
_table("mix rebar3 gleam", build="compile release build escript.build", run="run phx.server", test="test eunit ct",
       install="deps.get deps deps.compile setup", lint="format credo dialyzer", migrate="ecto.migrate ecto.setup "
       "ecto.create ecto.reset")  # fmt: skip
_table("bundle gem", install="install add update", deploy="push", build="build")
_table("composer", install="install require update", lint="validate")
_table("rails", run="server s", test="test t", migrate="db:migrate db:seed db:setup db:create db:prepare")
_table("artisan", run="serve queue:work", test="test", migrate="migrate db:seed migrate:fresh")
_table("deno", run="run serve", test="test bench", lint="lint fmt check", build="compile bundle", install="install add",
       deploy="deploy publish")  # fmt: skip
_table(
    "next nuxt nuxi astro vite vue-cli-service react-scripts remix gatsby svelte-kit ng expo quasar parcel webpack",
    build="build export generate",
    run="dev start serve preview s",
    test="test",
    lint="lint check",
    deploy="deploy",
)
_table("hugo jekyll eleventy mkdocs mdbook zola quarto", build="build render", run="server serve s preview",
       deploy="gh-deploy deploy publish", test="test")  # fmt: skip
_table("jupyter", run="lab notebook", build="nbconvert")
_table("flask", run="run", migrate="db")
_table("alembic", migrate="upgrade downgrade stamp")
_table("prisma drizzle-kit knex sequelize typeorm dbmate goose atlas sqlx diesel flyway liquibase sqitch",
       migrate="migrate migrate:latest migration migration:run db db:migrate up down push deploy update apply seed",
       build="generate")  # fmt: skip
_table("terraform tofu pulumi cdk", install="init", deploy="apply up deploy destroy", lint="validate fmt", test="plan "
       "preview diff synth")  # fmt: skip
_table("kubectl helm kustomize skaffold tilt", deploy="apply rollout upgrade install create run", build="build",
       run="dev port-forward up", lint="lint")  # fmt: skip
_table("fly flyctl vercel netlify wrangler firebase serverless sls heroku railway render amplify eb surge sam "
       "kamal cap dokku", deploy="deploy up publish push release --prod create", run="dev serve start emulators:start "
       "local", build="build")  # fmt: skip
_table("gh", deploy="release")
_table("twine", deploy="upload", lint="check")
_table("playwright cypress", install="install", test="test run open")
_table("meson", install="install", build="compile", test="test")
_table("ninja", test="test", install="install")
_table("bazel buck2 pants", build="build", test="test", run="run")
_table("systemctl service", run="start restart enable reload")
_table("dbt", run="run build", test="test", install="deps", migrate="seed")
_table("dvc snakemake nextflow", run="repro run exp")
_table("platformio pio arduino-cli idf.py west", build="build compile run", deploy="upload flash", test="test")
_table("forge hardhat truffle anchor", build="build compile", test="test", deploy="deploy", run="node", lint="fmt")
_table("R Rscript", build="CMD")
_table("nix", build="build", run="run", test="flake", install="develop")
_DEFAULTS = {
    "ansible-playbook": "deploy", "dbt": "", "snakemake": "run", "jupyter": "run", "hugo": "build",
    "vite": "run", "webpack": "build", "parcel": "run", "vercel": "deploy", "vue-tsc": "lint", "svelte-check": "lint",
    "mvn": "", "gradle": "", "bundle": "install", "gh-pages": "deploy", "capistrano": "deploy", "cap": "deploy",
    "playwright": "", "cypress": "", "rake": "build", "make": "build", "gmake": "build", "just": "other", "forge": "",
    "electron": "run", "electron-builder": "build", "zola": "", "mkdocs": "", "mdbook": "", "quarto": "", "jekyll": "",
    "meson": "", "bazel": "", "buck2": "", "pants": "", "dune": "", "gleam": "", "surge": "deploy", "pnpm": "",
    "eleventy": "build", "lerna": "", "turbo": "", "nx": "", "ninja": "build", "tox": "test", "nox": "test",
}  # fmt: skip
"""Of a program with a table, what it does without a word of that table."""
_TARGETED = words("make gmake just task go-task invoke inv rake nx turbo lerna gulp grunt ant doit mage earthly waf "
                  "scons nox tox hatch")  # fmt: skip
_PYTHON_MODULES = {
    "pytest": "test", "unittest": "test", "nose2": "test", "doctest": "test", "tox": "test", "venv": "install",
    "virtualenv": "install", "pip": "install", "ensurepip": "install", "build": "build", "compileall": "lint",
    "py_compile": "lint", "mypy": "lint", "twine": "deploy", "json.tool": "", "pdb": "", "timeit": "", "this": "",
    "site": "", "pydoc": "", "dis": "", "ast": "", "tokenize": "", "calendar": "", "sysconfig": "", "platform": "",
}  # fmt: skip
_MANAGE = {"runserver": "run", "migrate": "migrate", "makemigrations": "migrate", "test": "test", "check": "lint",
           "collectstatic": "build", "loaddata": "migrate", "install": "install", "develop": "install",
           "build": "build", "sdist": "build", "bdist_wheel": "build", "build_ext": "build"}  # fmt: skip
_ASKING = words("--version -V --help -h version help -version --list -l --tasks")
_ONE_OFF = {
    "python": ("-c",), "node": ("-e", "--eval", "-p", "-pe"), "ruby": ("-e",), "perl": ("-e",), "php": ("-r",),
    "deno": ("eval",), "bun": ("-e",), "lua": ("-e",), "julia": ("-e",), "Rscript": ("-e",),
}  # fmt: skip
_SCRIPT = re.compile(r".+\.(?:sh|bash|zsh|fish|py|rb|pl|js|mjs|cjs|ts|mts|php|lua|jl|R|exs?|ps1|bat|cmd|clj|kts)")


def by_name(name: str) -> str:
    """What a script or target of this name is for; empty where the name does not tell."""
    found = {word.lower() for word in _WORD.findall(name)}
    known = next((group for group, listed in _NAMES.items() if found & listed), "")
    return known or ("test" if _CHECKS.search(name.casefold()) else "")


def group_of(name: str, given: Sequence[str]) -> str:
    """What a command is for; empty where it is not worth telling. One that only checks is no deployment."""
    if _SYNTAX_ONLY.get(name, " ") in given[:1]:
        return "lint"
    if is_configuring(name, given):
        return "other"
    return _rehearsed(_group_of(name, given), name, given)


def is_configuring(name: str, given: Sequence[str]) -> bool:
    """Whether a command only gets a build ready, and builds nothing."""
    if all(one in _ASKING for one in given) and given:
        return False
    if name == "cmake":
        return len(given) > 0 and _NOT_CONFIGURING.isdisjoint(given)
    plain = [one for one in given if not one.startswith("-")]
    return name in _CONFIGURES or bool(_CONFIGURES_BY.get(name, frozenset()) & set(plain[:1]))


def is_dry_run(name: str, given: Sequence[str]) -> bool:
    """Whether a command only shows what it would do."""
    return any(one.partition("=")[0] in _DRY_RUNS for one in given) or _DRY_BY.get(name) in given


def _rehearsed(group: str, name: str, given: Sequence[str]) -> str:
    """A dry run neither does what its command is for, nor tests it."""
    is_dry = is_dry_run(name, given)
    is_check = any(one.partition("=")[0] in _CHECKS_ONLY for one in given) or _CHECKS_BY.get(name) in given
    if not (is_dry or is_check) or group in ("", "test", "lint", "check"):
        return group
    return {"build": "lint", "install": ""}.get(group, "other" if is_dry else "test")


def _group_of(name: str, given: Sequence[str]) -> str:
    if len(given) > 0 and all(one in _ASKING for one in given):
        return ""
    low = name.removesuffix(".exe")
    if low == "java":
        paths = ("-cp", "-classpath", "--class-path", "-p", "--module-path")
        main = next((one for before, one in zip(("", *given), given, strict=False)
                     if not one.startswith("-") and before not in paths), "")  # fmt: skip
        return (by_name(main) or "run") if main else ""
    if PYTHON.fullmatch(low) or low in _INTERPRETERS or low == "deno":
        group = _interpreted("python" if PYTHON.fullmatch(low) else low, list(given))
        if group is not None:
            return group
    if low in packages.SCRIPTED:
        return _package(low, given)
    if low == "composer" and given[:1] and given[0] not in _SUB["composer"]:
        return by_name(given[-1])
    plain = [one for one in given if not one.startswith("-") and "=" not in one]
    return _by_table(low, list(given), plain)


def _by_table(name: str, given: list[str], plain: list[str]) -> str:  # noqa: PLR0911 - a table of kinds
    if name in ("docker", "podman", "nerdctl") and plain[:1] == ["compose"]:
        return _compose(given, plain[1:])
    if name in ("docker-compose", "podman-compose"):
        return _compose(given, plain)
    if name in _TARGETED:
        return next((group for one in plain if (group := by_name(one))), "other" if plain else _DEFAULTS.get(name, ""))
    if name in _SUB:
        return _by_word(name, given, plain)
    for group, listed in (("test", _TESTS), ("lint", _LINTS), ("build", _BUILDS), ("run", _RUNS)):
        if name in listed:
            return group
    if name in _INSTALLS:
        return "install" if _INSTALL_WORDS & set(given) else ""
    return _DEFAULTS.get(name, "")


def _by_word(name: str, given: list[str], plain: list[str]) -> str:
    """By the words of the program's own table."""
    table = _SUB[name]
    found = next((table[one] for one in [*plain[:3], *given[:3]] if one in table), None)
    if found is not None:
        return found
    if name in ("gradle", "gradlew"):
        return next((group for one in plain if (group := _of_task(one))), "other" if plain else "")
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    if name in _BUILDS:
        return "build"
    return by_name(plain[0]) if plain and ":" in plain[0] else ""


def _compose(given: list[str], plain: list[str]) -> str:
    """What is run inside of a service is for what it is for everywhere."""
    inner = given[given.index(plain[1]) + 1 :] if plain[:1] in (["exec"], ["run"]) and plain[1:] else []
    return group_of(inner[0], inner[1:]) if inner else _by_word("docker-compose", given, plain)


def _of_task(task: str) -> str:
    """What a task such as ``:app:assembleDebug`` is for; empty where its name does not tell."""
    found = [word.lower() for word in _WORD.findall(task.rpartition(":")[2])]
    first = next((group for word in found[:1] for group, listed in _TASK_WORDS.items() if word in listed), "")
    return first or ("test" if _TASK_WORDS["test"] & set(found) else "")


def _package(name: str, given: Sequence[str]) -> str:
    """What npm and its like run: what the script is called, else what the word stands for."""
    script = packages.script_of(name, [Field(one) for one in given])
    if script is not None and script[0] and script[0] not in packages.HOOKED:
        if name == "bun" and _SCRIPT.fullmatch(script[0]):
            return by_name(script[0]) or "run"
        return by_name(script[0]) or ("deploy" if script[0] == "publish" else "other")
    plain = [one for one in given if not one.startswith("-")]
    return _SUB[name].get(plain[0], "") if plain else ("install" if name == "yarn" else "")


def _interpreted(name: str, given: list[str]) -> str | None:
    """What an interpreter runs; None where its own table tells it."""
    if one_off(name, given):
        return "check"
    if name == "python" and given[:1] == ["-m"]:
        module = given[1] if len(given) > 1 else ""
        if module in _PYTHON_MODULES:
            return _PYTHON_MODULES[module]
        return group_of(module, given[2:]) or "run"
    if name == "node" and "--test" in given:
        return "test"
    dialect = known_programs.PYTHON_DIALECT if name == "python" else known_programs.DIALECTS.get(name)
    at = 0
    while at < len(given) and given[at].startswith("-"):
        at += 2 if dialect is not None and given[at] in dialect.values else 1
    if at >= len(given) or name == "deno" or (name in _SUB and not _SCRIPT.fullmatch(given[at])):
        return None if name == "deno" or name in _SUB else ""
    return script(given[at], given[at + 1 :])


def one_off(name: str, given: Sequence[str]) -> bool:
    """Whether a text that stands in the command itself is run."""
    options = _ONE_OFF.get("python" if PYTHON.fullmatch(name) else name, ())
    return any(one in options for one in given[:3])


def script(path: str, given: Sequence[str]) -> str:
    """What a script of the project's own is for, by its name; empty where it is only asked about itself."""
    if given and all(one in _ASKING for one in given):
        return ""
    name = path.rstrip("/").rpartition("/")[2]
    if is_configuring(name, given) or is_configuring(name.partition(".")[0], given):
        return "other"
    if name in ("manage.py", "setup.py", "artisan", "console"):
        known = _MANAGE if name.endswith(".py") else _SUB["artisan"]
        return next((known[one] for one in given if one in known), "")
    if name in _SUB:  # sh gradlew build; a task of the project's own need not start it
        return group_of(name, given) or ("other" if given else "run")
    return _rehearsed(by_name(name.partition(".")[0]) or "run", name, given)


def is_script(name: str) -> bool:
    """Whether a file of this name is a script."""
    return _SCRIPT.fullmatch(name) is not None
