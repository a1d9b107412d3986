"""Scripts and targets that manifests name, and what a project says it needs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files import Grade
from daemon.model import Operation
from daemon.reconstitute.facts import usage
from daemon.reconstitute.facts.usage import scripts
from daemon.reconstitute.recover import State
from tests.support.examples import examples
from tests.unit.facts.folder_facts import TARGET, call, file, revision, session, turn

MAKEFILE = """CC := gcc
.PHONY: all test \\
  clean
all: build
build/app.o: app.c
\t$(CC) -c app.c
test: all  ## runs the tests
\t@pytest -q
\tmypy .
clean:
\trm -rf build
%.o: %.c
\tcc $<
"""
TASKFILE = "version: '3'\ntasks:\n  build:\n    cmds:\n      - go build ./...\n  lint:\n    desc: x\n    cmd: golangci-lint run\n"
COMPOSE = "services:\n  web:\n    build: .\n    command: flask run\n  db:\n    image: postgres:16\nvolumes:\n  data:\n"
TOML = """[project.scripts]
shop = "shop.cli:main"
[tool.poe.tasks]
check = "pytest"
_hidden = "x"
"""
TABLE = [
    ("package.json", '{"scripts": {"build": "tsc", "test": "vitest", "x": 1}}', [("npm run build", "tsc", "build"), ("npm test", "vitest", "test")]),
    ("package.json", '{"scripts": {"ci": "eslint ."}}', [("npm run ci", "eslint .", "lint")]),
    ("Makefile", MAKEFILE, [("make all", "make build", "build"), ("make test", "pytest -q; mypy .", "test"), ("make clean", "rm -rf build", "other")]),
    ("Makefile", "run:\n\tpython app.py\n", [("make run", "python app.py", "run")]),
    ("justfile", "set dotenv-load\n\n# Start it\nserve port='80':\n    uvicorn x:app\n\n_private:\n    x\n", [("just serve", "uvicorn x:app", "run")]),
    ("Taskfile.yml", TASKFILE, [("task build", "go build ./...", "build"), ("task lint", "golangci-lint run", "lint")]),
    ("pyproject.toml", TOML, [("shop", "shop.cli:main", "run"), ("poe check", "pytest", "test")]),
    ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    shop = shop:main\n", [("shop", "shop:main", "run")]),
    ("composer.json", '{"scripts": {"test": ["@lint", "phpunit"], "post-install-cmd": "x"}}', [("composer run test", "@lint && phpunit", "test")]),
    ("Cargo.toml", '[[bin]]\nname = "worker"\npath = "src/w.rs"\n', [("cargo run --bin worker", "src/w.rs", "run")]),
    ("deno.json", '{"tasks": {"dev": "deno run -A x.ts", "t": {"command": "deno test"}}}', [("deno task dev", "deno run -A x.ts", "run"), ("deno task t", "deno test", "test")]),
    ("Procfile", "web: gunicorn app:app\nworker: celery -A x worker\n", [("", "gunicorn app:app", "run"), ("", "celery -A x worker", "run")]),
    ("tox.ini", "[testenv:lint]\ncommands =\n    ruff check\n    mypy\n", [("tox -e lint", "ruff check; mypy", "lint")]),
    ("noxfile.py", "import nox\n\n@nox.session(python=['3.12'])\ndef tests(session):\n    pass\n", [("nox -s tests", "", "test")]),
    ("docker-compose.yml", COMPOSE, [("docker compose up web", "flask run", "run"), ("docker compose up db", "image postgres:16", "other")]),
    ("web/package.json", '{"scripts": {"dev": "vite"}}', [("cd web && npm run dev", "vite", "run")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), TABLE)
def test_a_file_names_its_scripts(name, content, expected):
    found = scripts.find([file(name, content)])
    assert [(one.invocation, one.runs, one.group) for one in found] == expected
    assert {one.path for one in found} == {f"{TARGET}/{name}"}


def test_the_lock_file_tells_the_package_manager():
    files = [file("package.json", '{"scripts": {"build": "tsc"}}'), file("pnpm-lock.yaml")]
    assert [one.invocation for one in scripts.find(files)] == ["pnpm run build"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"scripts": []}',
        '{"scripts": {"a": null}}',
        "[" * 50_000,
        "",
        b"\xff\xfe",
        b"\0{}",
        '{"scripts": {"": ""}}',
    ],
)
def test_a_broken_manifest_names_nothing(content):
    assert scripts.find([file("package.json", content)]) == ()


def test_a_content_that_another_one_followed_is_not_used():
    older, newer = revision("run:\n\tx\n"), revision("go:\n\ty\n", grade=Grade.STALE, operation=Operation.UNCLEAR)
    assert scripts.find([file("Makefile", None, older, newer, state=State.STALE, uncertain=newer)]) == ()
    assert scripts.find([file("Makefile", "run:\n\tx\n", state=State.DELETED)]) == ()


NEEDS = [
    ("requirements.txt", "# web\nflask==3.0.0\nrequests>=2 ; python_version > '3'\n-r dev.txt\nattrs\n", ["flask==3.0.0", "requests>=2"]),
    ("pyproject.toml", '[project]\nrequires-python = ">=3.11"\ndependencies = ["httpx>=0.28", "rich"]\n', ["Python >=3.11", "httpx>=0.28", "rich"]),
    ("package.json", '{"engines": {"node": ">=20", "npm": 3}}', ["Node >=20"]),
    ("go.mod", "module x\n\ngo 1.22\n", ["Go 1.22"]),
    ("Cargo.toml", '[package]\nrust-version = "1.75"\n', ["Rust 1.75"]),
    ("composer.json", '{"require": {"php": "^8.2"}}', ["PHP ^8.2"]),
    (".python-version", "3.12.1\n", ["Python 3.12.1"]),
    (".nvmrc", "lts/*\n", []),
    ("sub/requirements.txt", "flask==3.0.0\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), NEEDS)
def test_a_project_says_what_it_needs(name, content, expected):
    assert [one.text for one in scripts.needs([file(name, content)])] == expected


def test_a_secret_in_a_script_is_hidden():
    token = "ghp_" + "a1B2" * 9
    (found,) = scripts.find([file("Makefile", f"deploy:\n\tTOKEN={token} ./go\n")])
    assert token not in found.runs


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from([name for name, *_ in (*TABLE, *NEEDS)]),
    st.binary(max_size=300)
    | st.text(max_size=300)
    | st.lists(
        st.sampled_from(["a", ":", "\n", "\t", " ", "#", "-", "tasks:", "services:", "=", "[", "]", "{", '"']),
        max_size=60,
    ).map("".join),
)
def test_any_content_gives_bounded_lines_and_no_error(name, content):
    for one in scripts.find([file(name, content)]):
        assert len(one.name) <= 80
        assert len(one.runs) <= 160
        assert "\n" not in one.name + one.runs + one.invocation
    assert all(0 < len(one.text) <= 80 for one in scripts.needs([file(name, content)]))


@pytest.mark.parametrize(
    "name", ["Makefile", "justfile", "Taskfile.yml", "docker-compose.yml", "noxfile.py", "package.json"]
)
@pytest.mark.parametrize("piece", ["a ", "a: ", "\n\t", "\n  a:\n", " \n", "@task\n", "tasks:\n  a:\n    - x\n", "//"])
def test_a_hostile_manifest_costs_little_time(name, piece):
    begun = time.process_time()
    scripts.find([file(name, piece * (120_000 // len(piece)))])
    assert time.process_time() - begun < 30


@pytest.mark.parametrize(
    ("name", "text", "default"),
    [
        ("Makefile", ".PHONY: run test\nrun:\n\t./a\ntest:\n\t./t\n", "run"),
        ("Makefile", ".PHONY: run all\nout.o: a.c\n\tcc a.c\nrun:\n\t./a\n", ""),
        ("Makefile", "X := 1\n.DEFAULT_GOAL := test\nrun:\n\t./a\ntest:\n\t./t\n", "test"),
        ("Makefile", "include common.mk\nrun:\n\t./a\n", ""),
        ("justfile", "x := '1'\nrun port='80':\n    ./a\ntest:\n    ./t\n", "run"),
        ("package.json", '{"scripts": {"start": "node a.js"}}', ""),
    ],
)
def test_what_is_run_without_a_name_is_marked(name, text, default):
    assert [one.name for one in scripts.find([file(name, text)]) if one.is_default] == [default] * bool(default)


KINDS = [
    ("go.sh", "#!/bin/sh\nnpm ci\nnpm test\n", "test"),
    ("go.sh", "set -e\nrsync -a dist/ web:/srv\n", ""),
    ("go.sh", "docker compose up -d\n", "run"),
    ("tools/pruef-nicht.sh", "exit 0\n", ""),
    ("tools/tabs.sh", "#!/bin/sh\n# Sucht.\nset -e\nif grep -rn x --include='*.yml' .; then echo 'ja'; exit 2; fi\necho ok\n", "test"),
    ("tools/tabs.sh", "if grep -q x a; then rm -rf b; exit 2; fi\n", ""),
    ("bin/x", "#!/bin/sh\ncargo test\n", "test"),
    ("LICENSE", "cargo test\n", ""),
    ("tel.py", "bad = 0\nfor p in x:\n    bad += 1\nsys.exit(bad)\n", "test"),
    ("tel.py", "sys.exit(1 if bad else 0)\n", "test"),
    ("tel.mjs", "process.exit(bad ? 1 : 0);\n", "test"),
    ("tel.py", "rc = subprocess.call(['x'])\nsys.exit(rc)\n", ""),
    ("tel.py", "sys.exit(main())\n", ""),
    ("tel.py", "print(1)\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "group"), KINDS)
def test_a_script_is_for_what_its_recipe_does(path, text, group):
    assert scripts.groups_by_content([file(path, text)]) == ({path: group} if group else {})


@pytest.mark.parametrize(
    ("makefile", "command", "group"),
    [
        ("zkus:\n\tsh tools/tabs.sh\n", "make zkus", "test"),
        ("zkus:\n\tcargo test\n", "make zkus", "test"),
        ("zkus:\n\tcargo test\n", "make -s zkus", "test"),
        ("sestav:\n\tcargo build\n", "make sestav", "build"),
        ("zkus:\n\ttrue\n", "make zkus", "other"),
        ("zkus:\n\tcargo test\n", "sh tools/tabs.sh", "test"),
    ],
)
def test_a_target_in_any_language_is_for_what_it_runs(makefile, command, group):
    files = [file("Makefile", makefile), file("tools/tabs.sh", "if grep -q x a; then exit 2; fi\n")]
    named = scripts.find(files)
    (found,) = usage.find(TARGET, [session(turn("Do it.", call(command)))], named, scripts.groups_by_content(files))
    assert found.group == group
