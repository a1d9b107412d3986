"""Test runs, as the commands and their own words tell them."""

from __future__ import annotations

import pytest

from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.session_values import Call, CallStatus, Ending, Turn


def turn(*runs: tuple[str, int | None, str]) -> Turn:
    """A turn whose calls ran these (command, exit status, output)."""
    made = tuple(
        Call("bash", command, CallStatus.UNKNOWN, f"msg_{n}", f"prt_{n}", n, n, command, "/p", status, output)
        for n, (command, status, output) in enumerate(runs)
    )
    return Turn("msg_0", 0, 1, "Go on.", Ending.ANSWERED, ("msg_0",), made)


RUNS: list[tuple[str, int | None, str, list[tuple[str, bool, str]]]] = [
    ("pytest -q", 0, "...\n3 passed in 0.10s", [("pytest -q", True, "3 passed in 0.10s")]),
    ("pytest", 1, "== 1 failed, 2 passed in 0.12s ==", [("pytest", False, "1 failed, 2 passed in 0.12s")]),
    ("python3 -m pytest tests", 0, "", [("python3 -m pytest tests", True, "")]),
    ("python -m unittest", 1, "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
     [("python -m unittest", False, "FAILED (failures=1)")]),
    ("cd api && uv run pytest -q", 0, "2 passed in 1s", [("uv run pytest -q", True, "2 passed in 1s")]),
    ("cd api && pytest", 1, "/bin/bash: line 1: cd: api: No such file or directory", []),
    ("cd api && pytest", 2, "", [("pytest", False, "")]),
    ("npm test", 1, "Tests:       1 failed, 2 passed, 3 total", [("npm test", False, "Tests: 1 failed, 2 passed, 3 total")]),
    ("npx vitest run", 0, "\x1b[32m Tests  3 passed (3)\x1b[0m", [("npx vitest run", True, "Tests 3 passed (3)")]),
    ("cargo test", 101, "test result: ok. 1 passed; 0 failed\ntest result: FAILED. 1 passed; 2 failed",
     [("cargo test", False, "test result: FAILED. 1 passed; 2 failed")]),
    ("go test ./...", 0, "ok  \texample.org/a\t0.003s", [("go test ./...", True, "ok example.org/a 0.003s")]),
    ("mvn -q clean verify", 0, "Tests run: 3, Failures: 0, Errors: 0",
     [("mvn -q clean verify", True, "Tests run: 3, Failures: 0, Errors: 0")]),
    ("make test", 0, "done", [("make test", True, "")]),
    ("npm test", 1, "# tests 2\n# pass 1\n# fail 1\n# skipped 0", [("npm test", False, "1 of 2 failed")]),
    ("node --test", 0, "ℹ pass 2\nℹ fail 0", []),
    ("npm test | tail", 0, "ℹ pass 2\nℹ fail 0", [("npm test", True, "2 passed")]),
    ("make", 0, "done", []),
    ("pytest --collect-only", 0, "", []),
    ("cargo test --no-run", 0, "", []),
    ("npm run test:unit", 0, "", [("npm run test:unit", True, "")]),
    ("npm run build", 0, "", []),
    ("./run_tests.sh", 0, "", [("./run_tests.sh", True, "")]),
    ("python tests/test_store.py", 1, "AssertionError", [("python tests/test_store.py", False, "")]),
    ("python -c 'import test_store'", 0, "", []),
    ("test -f a.py", 0, "", []),
    ("cat tests/test_store.py", 0, "3 passed in 0.1s", []),
    # An exit status that is not the tests': their own words decide, or nothing does.
    ("pytest | tail -3", 0, "1 failed in 0.1s", [("pytest", False, "1 failed in 0.1s")]),
    ("pytest | tail -3", 0, "1 passed in 0.1s", [("pytest", True, "1 passed in 0.1s")]),
    ("pytest | tail -3", 0, "killed", []),
    ("pytest || true", 0, "1 failed in 0.1s", [("pytest", False, "1 failed in 0.1s")]),
    ("pytest; echo done", 0, "done", []),
    ("pytest", None, "", []),
    # What could not be started failed no test.
    ("bundle exec rspec", 127, "/bin/bash: line 1: bundle: command not found", []),
    ("npm test", 127, "> jest\n\nsh: 1: jest: not found", []),
    ("./run_tests.sh", 126, "bash: ./run_tests.sh: Permission denied", []),
    ("make test", 127, "1 failed in 0.1s", [("make test", False, "1 failed in 0.1s")]),
    ("if pytest; then echo '", 0, "", []),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "output", "expected"), RUNS)
def test_a_run_of_tests_is_told_by_status_and_words(
    command: str, status: int | None, output: str, expected: list[tuple[str, bool, str]]
) -> None:
    found = shell.tests("ses_1", [turn((command, status, output))])
    assert [(one.command, one.passed, one.summary) for one in found] == expected


def test_only_the_last_run_of_a_command_counts() -> None:
    found = shell.tests("ses_1", [turn(("pytest", 1, ""), ("npm test", 0, "")), turn(("pytest", 0, ""))])
    assert [(one.command, one.passed, one.citation.message_id) for one in found] == [
        ("npm test", True, "msg_1"), ("pytest", True, "msg_0"),
    ]  # fmt: skip


PLACES: list[tuple[tuple[str, ...], list[tuple[str, str, bool]]]] = [
    (("cd core && npm test", "cd web && npm test"), [("npm test", "/p/core", True), ("npm test", "/p/web", True)]),
    (("cd core; npm test", "!cd ./core/ && npm test"), [("npm test", "/p/core", False)]),
    (("(cd core && npm test) && (cd web && npm test)",), [("npm test", "/p/core", True), ("npm test", "/p/web", True)]),
    (("!cd 'my web'; npm test", "npm test"), [("npm test", "/p/my web", False), ("npm test", "/p", True)]),
]


@pytest.mark.parametrize(("commands", "expected"), PLACES)
def test_the_same_command_in_another_folder_is_another_run(
    commands: tuple[str, ...], expected: list[tuple[str, str, bool]]
) -> None:
    """A command with ``!`` before it failed."""
    runs = [(one.lstrip("!"), int(one.startswith("!")), "1 failed" if one.startswith("!") else "") for one in commands]
    found = shell.tests("ses_1", [turn(*runs)])
    assert [(one.command, one.place, one.passed) for one in found] == expected
