"""What was taken back, failed, refused or stopped, and what overcame it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts import setbacks
from daemon.reconstitute.facts.session_values import Call, CallStatus, Ending, SessionFacts, TakenBack
from daemon.reconstitute.facts.shell import failures, runs
from daemon.reconstitute.facts.values import Setback, SetbackKind
from tests.support.stores.constructed_sessions import FOLDER, edited, ran, session, used, user_turn

FAILED, REFUSED, STOPPED = CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED


def only(*sessions: SessionFacts) -> Setback:
    (found,) = setbacks.find(sessions)
    return found


def test_a_command_that_failed_often_is_one_entry() -> None:
    found = only(session(user_turn("Test it.", *(ran("make test", 2, "a\nBoom.\n") for _ in range(5)))))
    assert (found.kind, found.text) == (SetbackKind.COMMAND_FAILED, "make test")
    assert found.detail == "5 times; exit 2; Boom."
    assert (found.outcome, found.resolved) == ("did not succeed later", None)


@pytest.mark.parametrize(
    ("failed", "later", "outcome"),
    [
        ("make test", "make test", "succeeded later"),
        ("pytest -x tests", "pytest -q tests", "succeeded later as `pytest -q tests`"),
        ("CI=1 make", "make", "succeeded later"),
        ("gcc -o a a.c && ./a", "gcc -o a a.c && ./a", "succeeded later"),
        ("gcc -o a a.c && ./a", "gcc -o a a.c && ./a && ls", "succeeded later as `gcc -o a a.c && ./a && ls`"),
        ("gcc -o a a.c && ./a", "gcc -g -o a a.c && ./a", "succeeded later as `gcc -g -o a a.c && ./a`"),
        ("cd api && npm test", "cd web && npm test", "did not succeed later"),
        ("pytest tests/a.py", "pytest tests/a.py tests/b.py", "succeeded later as `pytest tests/a.py tests/b.py`"),
        ("python3 -c 'import a; a.run(1)'", "python3 -c 'import a; print(a.run(1))'", "succeeded later as `python3 -c 'import a; print(a.run(1))'`"),
        ("python3 -c 'from s import S; S().remove(1)'", "python3 -c 'from s import S; S().delete(1)'", "succeeded later as `python3 -c 'from s import S; S().delete(1)'`"),
        ("python3 -c 'import a; a.run(1)'", "python3 -c 'print(2 ** 10)'", "did not succeed later"),
        ("pytest tests/a.py", "pytest tests/b.py", "did not succeed later"),
        ("make", "make clean", "did not succeed later"),
        ("app serve", "app serve --help", "did not succeed later"),
    ],
)  # fmt: skip
def test_a_later_success_overcomes_a_command(failed: str, later: str, outcome: str) -> None:
    found = only(session(user_turn("Do it.", ran(failed, 1), edited("a.py"), ran(later))))
    assert found.outcome == outcome
    assert (found.resolved is not None) == outcome.startswith("succeeded")


def test_a_success_before_or_elsewhere_or_taken_back_overcomes_nothing() -> None:
    before = session(user_turn("Do it.", ran("make"), ran("make", 2)))
    elsewhere = session(user_turn("Do it.", ran("make", 2), ran("make", folder="/other")))
    undone = session(user_turn("Do it.", ran("make", 2)), user_turn("Again.", ran("make"), taken_back=True))
    for facts in (before, elsewhere, undone):
        assert only(facts).resolved is None


def test_a_later_session_overcomes_a_command() -> None:
    found = only(session(user_turn("Do it.", ran("make", 2))), session(user_turn("Again.", ran("make")), at=60))
    assert found.resolved is not None
    assert found.resolved.time > found.time


def test_each_failure_is_overcome_by_the_next_success() -> None:
    calls = [ran("npm test", 1, "Error: rounding"), ran("npm test"), ran("npm test", 1, "Error: no document")]
    last, first = setbacks.find([session(user_turn("Test it.", *calls))])
    assert (last.detail, last.outcome) == ("exit 1; Error: no document", "did not succeed later")
    assert (first.detail, first.outcome) == ("exit 1; Error: rounding", "succeeded later")


def test_what_a_chain_failed_at_is_named_alone_with_its_folder() -> None:
    found = only(session(user_turn("Do it.", ran("cd api && printf x >> Cargo.toml && cargo build --offline", 101))))
    assert (found.text, found.detail) == ("cargo build --offline", "exit 101; in api")


def test_a_line_that_only_passes_a_failure_on_is_named_whole() -> None:
    for command in ("echo out; echo err >&2; exit 3", "make; false"):
        assert only(session(user_turn("Do it.", ran(command, 3)))).text == command


def test_a_missing_program_is_reported_even_for_a_version_check() -> None:
    found = only(session(user_turn("Try it.", ran("luanti --version", 127, "bash: line 1: luanti: command not found"))))
    assert found.detail == "exit 127; could not run: `luanti` is not installed"


def test_a_look_counts_where_a_sub_agent_had_no_other() -> None:
    failed, passed = used("grep", '"x"', FAILED, "Unable to connect"), used("grep", '"y"')
    found = only(session(user_turn("Look.", failed), parent="ses_0"))
    assert (found.text, found.detail) == ('grep "x"', "Unable to connect; by the sub-agent “A session”")
    assert setbacks.find([session(user_turn("Look.", failed, passed), parent="ses_0")]) == ()


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ("The user has specified a rule which prevents you from using this specific tool call. []", "by a permission rule"),
        ("Error: The user rejected permission to use this specific tool call.", "by the user"),
        ("The user rejected permission to use this specific tool call with the following feedback: not\nthere", "by the user: not there"),
    ],
)  # fmt: skip
def test_a_refusal_says_by_whom_in_few_words(error: str, detail: str) -> None:
    refused = replace(ran("git push", status=REFUSED), error=error, exit=None)
    assert only(session(user_turn("Push.", refused))).detail == detail


def test_failed_edits_of_a_file_before_one_that_worked_are_one() -> None:
    calls = [
        edited("a.py", FAILED, "oldString not found"),
        edited("a.py", FAILED, "found twice"),
        edited("a.py", tool="write"),
    ]
    found = only(session(user_turn("Change it.", *calls)))
    assert (found.kind, found.paths) == (SetbackKind.EDIT_FAILED, (f"{FOLDER}/a.py",))
    assert (found.detail, found.outcome) == (
        "2 times, the last one: found twice",
        "a later write of the file succeeded",
    )


def test_edits_of_other_files_overcome_nothing() -> None:
    found = only(session(user_turn("Change it.", edited("a.py", FAILED), edited("b.py"))))
    assert (found.outcome, found.resolved) == ("no later edit of the file succeeded", None)


@pytest.mark.parametrize(
    "call",
    [
        ran("grep -rn foo src", 1),
        ran("cat nothere.txt", 1),
        ran("test -f a.txt", 1),
        ran("diff a b", 1),
        ran("ls nothere && cat nothere", 2),
        ran("make 2>&1 | grep error", 1),
        ran("git diff --exit-code", 1),
        ran("command -v node", 1),
        ran("node --version", 1),
        ran("timeout 5 python3 app.py", 124),
        used("read", "nothere.txt", FAILED),
        used("grep", '"["', FAILED),
        used("invalid", "nosuchtool", FAILED),
    ],
)
def test_a_look_that_found_nothing_is_no_setback(call: Call) -> None:
    assert setbacks.find([session(user_turn("Look.", call))]) == ()


@pytest.mark.parametrize(
    "command",
    [
        "make | tee log",
        "pytest && grep ok log",
        "find . -delete",
        "git commit -m x",
        "echo 'unclosed",
        "cat > a <<E\nE\nfalse",
    ],
)
def test_what_is_more_than_a_look_is_a_setback(command: str) -> None:
    assert only(session(user_turn("Do it.", ran(command, 1)))).kind is SetbackKind.COMMAND_FAILED


def test_what_was_refused_and_allowed_later_says_so() -> None:
    refused = used("webfetch", "example.org", REFUSED, "The user rejected permission")
    assert only(session(user_turn("Fetch.", refused))).kind is SetbackKind.REFUSED
    allowed = only(session(user_turn("Fetch.", refused, used("webfetch", "example.org"))))
    assert (allowed.outcome, allowed.resolved is not None) == ("was allowed later", True)


def test_a_dismissed_question_is_told() -> None:
    assert (
        only(session(user_turn("Plan.", used("question", "Which database?", REFUSED)))).text
        == "question Which database?"
    )


def test_a_stopped_answer_names_the_command_it_was_in() -> None:
    found = only(session(user_turn("Build it.", ran("make dist", status=STOPPED), ending=Ending.STOPPED)))
    assert (found.kind, found.text, found.detail) == (SetbackKind.STOPPED, "Build it.", "during make dist")


def test_a_command_out_of_time_is_told_by_itself() -> None:
    found = only(session(user_turn("Build it.", ran("make dist", status=STOPPED), edited("a.py"))))
    assert (found.kind, found.text) == (SetbackKind.STOPPED, "make dist")


def test_an_answer_that_failed_has_the_providers_error() -> None:
    failed = user_turn("Go on.", ending=Ending.FAILED, reply="", error="APIError: overloaded")
    found = only(session(failed, failed))
    assert (found.kind, found.detail) == (SetbackKind.FAILED, "2 times; APIError: overloaded")
    again = only(session(failed), session(user_turn("Go  on."), at=60))
    assert again.outcome == "asked again and answered"
    assert again.resolved is not None


def test_an_answer_that_was_followed_by_another_prompt_says_which() -> None:
    found = only(session(user_turn("Do this.", ending=Ending.STOPPED), user_turn("Do that.")))
    assert (found.outcome, found.resolved) == ("followed by “Do that.”", None)


def test_a_revert_tells_what_it_took_back_and_whether_it_was_undone() -> None:
    turn = user_turn("Turn it off.", edited("a.py"), taken_back=True)
    revert = TakenBack(
        2_000_000, turn.prompt_id, prompts=("Turn it off.", "And that."), paths=(f"{FOLDER}/a.py",), pending=True
    )
    found = only(session(turn, reverts=[revert]))
    assert (found.kind, found.text, found.detail) == (SetbackKind.REVERTED, "Turn it off.", "and 1 more prompt")
    assert (found.outcome, found.paths) == ("pending: OpenCode can still undo it", (f"{FOLDER}/a.py",))
    undone = only(session(turn, reverts=[replace(revert, undone=2_000_500, pending=False)]))
    assert undone.outcome == "undone again"
    assert undone.resolved is not None
    twice = only(session(turn, reverts=[replace(revert, undone=2_000_500), replace(revert, time=2_001_000)]))
    assert twice.detail == "and 1 more prompt; 2 times"


def test_what_was_never_overcome_comes_first_then_the_newest() -> None:
    facts = session(
        user_turn("One.", ran("make", 2)),
        user_turn("Two.", ran("npm test", 1), ran("npm test")),
        user_turn("Three.", ran("cargo build", 101)),
    )
    assert [one.text for one in setbacks.find([facts])] == ["cargo build", "make", "npm test"]


def test_copied_turns_of_a_fork_fail_once() -> None:
    turn = user_turn("One.", ran("make", 2))
    assert only(session(turn), replace(session(turn, at=50), copied=1)).detail == "exit 2"


CALLS = st.one_of(
    st.builds(
        ran, st.sampled_from(["make", "make test", "grep a b", "pytest -q", "x 'y", "a | b", ""]), st.integers(0, 3)
    ),
    st.builds(edited, st.sampled_from(["a.py", "b.py", "", "/"]), st.sampled_from(list(CallStatus))),
    st.builds(used, st.sampled_from(["read", "task", "mcp_x"]), st.text(max_size=5), st.sampled_from(list(CallStatus))),
)
TURNS = st.builds(
    lambda prompt, calls, ending, back: user_turn(prompt, *calls, ending=ending, taken_back=back),
    st.sampled_from(["Do it.", "Go on.", ""]), st.lists(CALLS, max_size=4), st.sampled_from(list(Ending)), st.booleans(),
)  # fmt: skip


@given(st.lists(st.lists(TURNS, max_size=4), max_size=3))
def test_what_resolves_a_setback_is_later(drawn: list[list[object]]) -> None:
    facts = [session(*turns, at=100 * place) for place, turns in enumerate(drawn)]
    found = setbacks.find(facts)
    assert found == setbacks.find(facts)
    assert len(found) <= setbacks.MOST
    for one in found:
        assert one.resolved is None or one.resolved.time >= one.time


def test_there_are_at_most_so_many() -> None:
    facts = session(user_turn("Do it.", *(ran(f"make part{number}", 2) for number in range(setbacks.MOST + 5))))
    assert len(setbacks.find([facts])) == setbacks.MOST


@given(st.text(max_size=200), st.integers(-1, 256))
def test_no_command_is_too_odd_to_be_judged(command: str, status: int) -> None:
    assert failures.only_looks(command, status) in {True, False}
    assert isinstance(runs.of(ran(command, status)), tuple)
