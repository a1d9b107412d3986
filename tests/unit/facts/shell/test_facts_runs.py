"""What a shell call ran, how each command of it ended, and what is the same command."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.reconstitute.facts import setbacks, shell, usage
from daemon.reconstitute.facts.session_values import CallStatus
from daemon.reconstitute.facts.shell import runs
from daemon.reconstitute.facts.values import Script
from tests.support.examples import examples
from tests.support.stores.constructed_sessions import FOLDER, ran, session, user_turn

OK, FAILED, UNKNOWN = CallStatus.OK, CallStatus.FAILED, CallStatus.UNKNOWN

ENDED = [
    ("cargo test 2>&1 | tail -8; exit ${PIPESTATUS[0]}", 101, "", {"cargo": FAILED, "tail": UNKNOWN}),
    ("cargo test 2>&1 | tail -8; exit ${PIPESTATUS[0]}", 0, "", {"cargo": OK, "tail": UNKNOWN}),
    ("cargo test | tail -8; echo ${PIPESTATUS[0]}", 0, "101", {"cargo": FAILED, "tail": UNKNOWN}),
    ("a | tail && cargo test | tail; exit ${PIPESTATUS[0]}", 1, "", {"a": UNKNOWN, "tail": UNKNOWN}),
    ("set -o pipefail; cargo test | tail -8", 101, "", {"set": UNKNOWN, "cargo": FAILED, "tail": UNKNOWN}),
    ("set -eo pipefail; cargo test | tail -8", 0, "", {"set": UNKNOWN, "cargo": OK, "tail": OK}),
    ("npm ci && cargo test 2>&1 | tee log", 0, "", {"npm": OK, "cargo": UNKNOWN, "tee": OK}),
    ("cd x && a > l 2>&1 | b && cargo test", 0, "", {"cd": OK, "a": UNKNOWN, "b": OK, "cargo": OK}),
    ("bash -lc 'cd x && cargo test'", 101, "", {"cd": UNKNOWN, "cargo": FAILED}),
    ('bash -c "$X"', 1, "", {"bash": FAILED}),
    ("cargo test; exit $?", 101, "", {"cargo": FAILED}),
    ("printf x >> a.toml && cargo build", 101, "", {"printf": UNKNOWN, "cargo": FAILED}),
    ("sed -i s/a/b/ a.py && python3 a.py", 1, "", {"sed": OK, "python3": FAILED}),
    ("sed -i s/a/b/ a.py && python3 a.py", 2, "sed: can't read a.py: No such file", {"sed": UNKNOWN}),
    ("git mv a b && make", 2, "", {"git": OK, "make": FAILED}),
    ("git mv a b && make", 128, "fatal: bad source, source=a, destination=b", {"git": UNKNOWN}),
    ("git commit -m x && git push", 1, "", {"git": UNKNOWN}),
    ("make && cp a b", 1, "", {"make": UNKNOWN}),
    ("npm run build && npm test", 1, "", {"npm": UNKNOWN}),
    ("cd x && make", 1, "/bin/bash: line 1: cd: x: No such file or directory", {"cd": UNKNOWN}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "output", "expected"), ENDED)
def test_each_command_of_a_line_ended_as_the_status_tells(
    command: str, code: int, output: str, expected: dict[str, CallStatus]
) -> None:
    found = [run for run in runs.of(ran(command, code, output)) if run.is_started]
    assert {run.program.name: run.status for run in found} == expected


SAME = [
    ("cargo test --offline", "cargo test --offline 2>&1 | tail -8; exit ${PIPESTATUS[0]}"),
    ("python3 a.py", "sed -i s/a/b/ a.py && python3 a.py"),
    ("npm test", "npm run test"),
    ("make -C web run", "cd web && make run"),
    ("pytest -x tests", "CI=1 timeout 60 uv run python -m pytest -q tests"),
    ("./gradlew test", "sh gradlew test"),
    ("npm test", "bash -lc 'npm test'"),
    ("python3 a.py", "python3 a.py > out.txt && wc -l out.txt"),
    ("npm run build && npm test", "npm run build; echo built && npm test && npm run build"),
]


@pytest.mark.parametrize(("failed", "later"), [*SAME, *((b, a) for a, b in SAME[:-1])])
def test_a_failure_is_overcome_by_the_same_command_in_any_words(failed: str, later: str) -> None:
    (found,) = setbacks.find([session(user_turn("Do it.", ran(failed, 3), ran(later)))])
    assert found.resolved is not None


OTHER = [
    ("make", "make clean"), ("cd a && make", "cd b && make"), ("npm test", "npm run test:e2e"),
    ("npm run build && npm test", "npm test"), ("python3 a.py", "cat a.py && python3 b.py"),
    ("pytest", "echo pytest"), ("app", "app --help"),
]  # fmt: skip


@pytest.mark.parametrize(("failed", "later"), OTHER)
def test_another_command_overcomes_nothing(failed: str, later: str) -> None:
    (found,) = setbacks.find([session(user_turn("Do it.", ran(failed, 3), ran(later)))])
    assert (found.outcome, found.resolved) == ("did not succeed later", None)


TARGETS = [
    ("node --test", "npm test", "npm test"),
    ("npm test", "node --test", "node --test"),
    ("cd web && node --test", "npm test", ""),
    ("python3 a.py", "make all", "make all"),
    ("make all", "python3 b.py; sleep 1; echo && python3 a.py", ""),
    ("make all", "python3 b.py && python3 a.py", "python3 b.py && python3 a.py"),
    ("make all", "python3 a.py", ""),
    ("make all", "npm test", ""),
]


@pytest.mark.parametrize(("failed", "later", "by"), TARGETS)
def test_a_target_and_what_it_runs_overcome_each_other(failed: str, later: str, by: str) -> None:
    scripts = [
        Script("test", "npm test", "node --test", f"{FOLDER}/package.json"),
        Script("all", "make all", "python3 a.py; python3 b.py", f"{FOLDER}/Makefile"),
    ]
    (found,) = setbacks.find([session(user_turn("Do it.", ran(failed, 3), ran(later)))], (), scripts)
    assert found.outcome == (f"succeeded later as `{by}`" if by else "did not succeed later")


def test_what_ran_again_without_a_known_end_is_not_said_to_have_failed() -> None:
    (found,) = setbacks.find([session(user_turn("Do it.", ran("make", 2), ran("make 2>&1 | tail -3")))])
    assert (found.outcome, setbacks.is_unsettled(found)) == (
        "was run again later; how that ended is not recorded",
        False,
    )


def test_what_ran_again_and_printed_the_same_cause_did_not_succeed() -> None:
    failed, again = (
        ran("make -C core test", 2, "core: no data"),
        ran("cd core && make test || true", 0, "core: no data"),
    )
    (found,) = setbacks.find([session(user_turn("Test it.", failed, again))])
    assert found.outcome == "did not succeed later"


LINKS = st.sampled_from(
    ["make", "npm test", "cargo build", "cd x", "sed -i s/a/b/ f", "echo hi", "python3 a.py", "git add .", "pytest -q"]
)
LINES = st.lists(st.tuples(LINKS, st.sampled_from([" && ", "; ", " | tail -1; ", " || "])), min_size=1, max_size=4).map(
    lambda pairs: "".join(a + b for a, b in pairs)[: -len(pairs[-1][1])]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(LINES, st.integers(0, 2)), min_size=1, max_size=6))
def test_how_to_run_it_and_what_failed_never_contradict_each_other(calls: list[tuple[str, int]]) -> None:
    """A command that last succeeded is nowhere said not to have succeeded later."""
    facts = session(user_turn("Do it.", *(ran(command, code) for command, code in calls)))
    good = {one.command for one in usage.find(FOLDER, [facts]) if one.last is OK and not one.folder}
    left = {
        one.text for one in setbacks.find([facts]) if setbacks.is_unsettled(one) and not one.detail.endswith("in x")
    }
    assert not good & left


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=200), st.integers(-1, 256))
def test_no_command_is_too_odd_to_be_read(command: str, code: int) -> None:
    call = ran(command, code)
    assert set(shell.passed(call)) <= set(runs.of(call))
    assert isinstance(shell.failed(call), tuple)
