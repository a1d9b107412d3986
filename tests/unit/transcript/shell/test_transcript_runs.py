"""Which commands are said to run a program that could write any file, and where its text stands."""

from __future__ import annotations

import pytest

from daemon.model import Operation
from tests.unit.transcript.shell.test_transcript_shell_effects import edits, shown

RUNS: list[tuple[str, list[str]]] = [
    ("python3 migrate.py", ["run . -> migrate.py"]),
    ("python3 -c 'import x'", ["run . 'import x'"]),
    ("python3 -uc 'import x' a", ["run . 'import x'"]),
    ("python3 -c \"print('$X')\"", ["run ."]),
    ("python -W ignore -B x.py", ["run . -> x.py", "unclear x.py"]),
    ("python -m pkg.mod", ["run ."]),
    ("python -m black src", ["unclear src"]),
    ("python <<E\nx\nE", ["run . 'x\\n'"]),
    ("python - <<E\n$X\nE", ["run ."]),
    ("cat x.py | python", ["run ."]),
    ("echo 'open(1)' | python3 -", ["run . 'open(1)\\n'"]),
    ("python < d/s.py", ["run . -> d/s.py"]),
    ("curl -s http://x/y | sh", ["run ."]),
    ("node -e 'x' && node b.js --flag", ["run . 'x'", "run . -> b.js"]),
    ("bash x.sh", ["run . -> x.sh"]),
    ("./y arg", ["run . -> y"]),
    ("z.sh", ["run . -> z.sh"]),
    ("bin/setup", ["run . -> bin/setup"]),
    ("bash -s <<'E'\nrm a\nE", ["run . 'rm a\\n'"]),
    ("bash -lc 'rm a; python q.py'", ["unclear a", "run . -> q.py"]),
    ("npm run build", ["run . -> package.json"]),
    ("npm start", ["run . -> package.json"]),
    ("npm --prefix web run build", ["run . -> web/package.json"]),
    ("yarn build", ["run . -> package.json"]),
    ("bun run x.ts", ["run . -> x.ts", "unclear x.ts"]),
    ("npx create-foo", ["run ."]),
    ("npx jest -u", ["run ."]),
    ("npx tsc", ["run ."]),
    ("tsc", ["run ."]),
    ("uv run x.py", ["run . -> x.py"]),
    ("poetry run python m.py", ["run . -> m.py"]),
    ("uv run -m foo", ["run ."]),
    ("uv run black src", ["unclear src"]),
    ("cd $X && python x.py", ["run ."]),
    ("cd d && python x.py", ["run d -> d/x.py"]),
    ("python x.py & echo x > a", ["run . -> x.py", "write a 'x\\n'", "run . -> x.py"]),
    ("python x.py &", ["run . -> x.py"]),
    ("timeout 5 python x.py", ["run . -> x.py"]),
    ("sudo -u me ./z", ["run . -> z"]),
    ("FOO=1 env A=1 python e.py", ["run . -> e.py"]),
    ("for f in *.py; do python $f; done", ["run ."]),
    ("X=$(python g.py)", ["run . -> g.py"]),
    ("if ./c; then :; fi", ["run . -> c"]),
    ("find . -name '*.py' -exec python {} \\;", ["run .", "unclear ."]),
    ("ls | xargs -n1 node", ["run .", "unclear ."]),
    ("source set.sh", ["run . -> set.sh"]),
    ("make -C sub all", ["run . -> sub/Makefile"]),
    ("just build", ["run . -> justfile"]),
    (".venv/bin/python x.py", ["run . -> x.py"]),
    ("./gradlew build", ["run ."]),
    ("go build ./...", ["run ."]),
    ("go run main.go", ["run ."]),
    ("cargo build", ["run ."]),
    ("make -sC d", ["run ."]),
    ("npm test", ["run . -> package.json"]),
    ("npm ci", ["run . -> package.json"]),
    ("ruby -e 'x'", ["run . 'x'"]),
    ("php artisan migrate", ["run . -> artisan"]),
    ("deno run -A m.ts", ["run . -> m.ts"]),
    ("tsx s.ts", ["run . -> s.ts"]),
    ("docker compose exec app python m.py", ["run .", "unclear m.py"]),
    ("$PY x.py", ["run .", "unclear x.py"]),
    ("python x.py > out.txt", ["run . -> x.py", "unclear out.txt"]),
    ("python x.py; python x.py", ["run . -> x.py", "run . -> x.py"]),
    ("mkdir d && ./gen d", ["folder d", "run . -> gen"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "expected"), RUNS)
@pytest.mark.parametrize("code", [0, 1, None])
def test_a_program_is_run_whatever_came_of_it(command: str, expected: list[str], code: int | None) -> None:
    found = [shown(edit) for edit in edits(command, code)]
    if code != 0:  # nothing else is certain then
        found = [one for one in found if one.startswith("run ")]
        expected = [one for one in expected if one.startswith("run ")]
    assert found == expected


@pytest.mark.parametrize("status", ["pending", "error"])
def test_a_call_that_never_ran_ran_nothing(status: str) -> None:
    assert edits("python x.py", status=status) == []


def test_a_call_that_was_cut_off_ran_its_program() -> None:
    assert [shown(edit) for edit in edits("python x.py", status="running")] == ["run . -> x.py"]


@pytest.mark.parametrize(
    "command",
    [
        "python --version", "python3 -V", "node -v", "perl -v", "npm -v", "python -m pytest -q", "python3 -m json.tool",
        "pytest tests/test_a.py", "npm ls", "npm run", "bun test",
        "npx tsc --noEmit", "tsc --noEmit -p .", "npx jest", "npx eslint .", "npx prettier --check .", "uv run pytest",
        "cargo test", "cargo check", "cargo clippy", "go test ./...", "go vet ./...", "mypy .", "ruff check .",
        "eslint src", "pip install -r requirements.txt", "git status", "git log --oneline", "make -n", "docker ps",
        "node --check a.js", "bash -n x.sh", "awk '{print $1}' f", "awk '$1 > 3' f", "source .venv/bin/activate",
        ". ~/.bashrc", ".venv/bin/pytest", "./gradlew test", "/usr/bin/foo", "ls | xargs cat", "python -m black --check .",
    ],
)  # fmt: skip
def test_looking_and_testing_run_nothing(command: str) -> None:
    assert edits(command) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm install", ["package-lock.json"]),
        ("npm i left-pad", ["package-lock.json", "package.json"]),
        ("yarn", ["yarn.lock"]),
        ("yarn add x", ["yarn.lock", "package.json"]),
        ("pnpm install", ["pnpm-lock.yaml"]),
        ("uv add x", ["uv.lock", "pyproject.toml"]),
        ("cargo add x", ["Cargo.lock", "Cargo.toml"]),
        ("go mod tidy", ["go.sum", "go.mod"]),
        ("npm --prefix web install", ["web/package-lock.json"]),
    ],
)
def test_package_managers_change_their_lock_files(command: str, expected: list[str]) -> None:
    found = [edit for edit in edits(command) if edit.operation is Operation.UNCLEAR]
    assert [shown(edit).partition(" -> ")[0] for edit in found] == [f"unclear {name}" for name in expected]


def test_a_command_that_cannot_be_read_may_have_run_anything() -> None:
    assert [shown(edit) for edit in edits("python x.py 'unclosed")][-1:] == ["run ."]


def test_very_many_programs_are_one() -> None:
    assert [shown(edit) for edit in edits("python x.py\n" * 1000)] == ["run ."]


def test_no_secret_becomes_the_name_of_a_script() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert [edit.other for edit in edits(f"python {secret}.py")] == [None]


LAUNCHES: list[tuple[str, tuple[object, ...] | None]] = [
    ("sh gen.sh a 'b c'", ("sh", "", ("gen.sh", "a", "b c"), 2, False)),
    ("bash -eu gen.sh $X", ("bash", "", ("gen.sh", None), 2, True)),
    ("cd d && ./gen.sh", ("#!", "d", ("./gen.sh",), 2, False)),
    ("sh gen.sh; true", ("sh", "", ("gen.sh",), 1, False)),
    ("sh gen.sh || true", ("sh", "", ("gen.sh",), 1, False)),
    ("sh gen.sh | cat", ("sh", "", ("gen.sh",), 0, False)),
    ("timeout 5 sh gen.sh", ("sh", "", ("gen.sh",), 2, False)),
    ("timeout 5 sh gen.sh; true", ("sh", "", ("gen.sh",), 0, False)),
    (". ./gen.sh", ("source", "", (None,), 2, False)),
    ("python3 -u gen.py x", ("python", "", ("gen.py", "x"), 2, False)),
    ("uv run gen.py", ("python", "", ("gen.py",), 2, False)),
    ("make -C d all", ("make", "", ("make", "-C", "d", "all"), 2, False)),
    ("npm run lint", ("package", "", ("npm", "run", "lint"), 2, False)),
    ("BASH_ENV=x sh gen.sh", None), ("sudo sh gen.sh", None), ("env -C d sh gen.sh", None), ("zsh gen.sh", None),
    ("bash -l gen.sh", None), ("bash -O extglob gen.sh", None), ("python3 -i gen.py", None), ("node gen.js", None),
    ("CDPATH=/; sh gen.sh", None), ("eval x; sh gen.sh", None),
]  # fmt: skip


@pytest.mark.parametrize(("command", "expected"), LAUNCHES)
def test_a_run_says_how_its_text_is_to_be_read(command: str, expected: tuple[object, ...] | None) -> None:
    found = next(edit for edit in edits(command) if edit.operation is Operation.RUN).launch
    told = (
        (found.language, found.folder, found.arguments, found.status, found.strict)
        if found and found.language
        else None
    )
    assert told == expected


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("sh gen.sh; true", "", True), ("sh gen.sh 2>/dev/null; true", "", False), ("sh gen.sh; true", "rm: x\n", False),
        ("./gen; true", "./gen: 1: cannot create a/b: Directory nonexistent\n", False),
        ("./gen; true", "./gen: line 1: a/b: No such file or directory\n", False), ("sh gen.sh > log", "done: 5\n", True),
    ],
)  # fmt: skip
def test_a_run_says_whether_its_errors_would_have_been_seen(command: str, output: str, expected: bool) -> None:
    launch = next(edit for edit in edits(command, output=output) if edit.operation is Operation.RUN).launch
    assert launch is not None
    assert launch.shows_errors is expected
