"""Commits, as git or the commands tell them, and what became of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.reconstitute.facts.session import commits
from daemon.reconstitute.facts.session_values import Turn
from tests.unit.facts.shell.test_facts_outcomes import turn


def _of(turns: list[Turn]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return commits.of({"s": turns})["s"]


COMMITS: list[tuple[str, int, str, list[str]]] = [
    ("git add -A && git commit -m 'Add the store'", 0, "[main (root-commit) 1a2b3c4] Add the store\n 1 file changed",
     ["Add the store"]),
    ("git commit -qm 'Add the store'", 0, "", ["Add the store"]),
    ("git -C api commit --message='Add it\n\nBecause.'", 0, "", ["Add it"]),
    ('git commit -m "$(cat <<\'E\'\nAdd it\nE\n)"', 0, "[main 1a2b3c4] Add it", ["Add it"]),
    ("git commit -m one; git push", 1, "[main 1a2b3c4] one\nrejected", ["one"]),
    ("git commit -m one", 1, "nothing to commit", []),
    ("git commit -m one || true", 0, "nothing to commit", []),
    ("git commit --dry-run -m one", 0, "", []),
    ("git log --grep commit", 0, "[main 1a2b3c4] old", []),
    ("echo git commit -m one", 0, "", []),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "output", "expected"), COMMITS)
def test_a_commit_is_told_by_git_or_by_its_command(command: str, status: int, output: str, expected: list[str]) -> None:
    assert list(_of([turn((command, status, output))])[0]) == expected


def test_an_amended_commit_has_its_last_subject() -> None:
    runs = turn(("git commit -m one", 0, ""), ("git commit --amend -m two", 0, "[main 1a2b3c4] two"))
    assert _of([runs]) == (("two",), ())


ONE, TWO = ("git commit -qm one", 0, ""), ("git commit -m two", 0, "[main 1a2b3c4] two")
UNDONE: list[tuple[list[tuple[str, int | None, str]], list[str], list[str]]] = [
    ([ONE, ("git reset -q --soft HEAD~1", 0, "")], [], ["one"]),
    ([ONE, TWO, ("git reset HEAD^", 0, "")], ["one"], ["two"]),
    ([ONE, TWO, ("git reset --hard @~2", 0, "HEAD is now at 0000000 x")], [], ["one", "two"]),
    ([ONE, TWO, ("git reset --hard HEAD^^", 0, "")], [], ["one", "two"]),
    ([TWO, ONE, ("git reset --keep 1a2b3c4d", 0, "")], ["two"], ["one"]),
    ([TWO, ("git revert --no-edit HEAD", 0, '[main 2b3c4d5] Revert "two"')], [], ["two"]),
    ([TWO, ONE, ("git revert --no-edit 1a2b3c4", 0, "")], ["one"], ["two"]),
    ([TWO, ("git revert --no-edit HEAD", 0, ""), ("git reset --hard HEAD~1", 0, "")], ["two"], []),
    ([ONE, ("git reset --soft HEAD~1", 0, ""), TWO], ["two"], ["one"]),
    # These undo no commit.
    ([ONE, ("git reset --soft HEAD~1", 1, "fatal")], ["one"], []),
    ([ONE, ("git reset HEAD a.py", 0, "")], ["one"], []),
    ([ONE, ("git reset --hard", 0, "")], ["one"], []),
    ([ONE, ("git reset --hard HEAD", 0, "")], ["one"], []),
    ([ONE, ("git -C other reset --hard HEAD~1", 0, "")], ["one"], []),
    ([ONE, ("git log HEAD~1", 0, "")], ["one"], []),
    ([ONE, ("git checkout -- reset.py", 0, ""), ("git reset HEAD~1", 0, "")], [], ["one"]),
    # Which commits these take away is not known.
    ([ONE, ("git checkout main", 0, ""), ("git reset --hard HEAD~1", 0, "")], ["one"], []),
    ([ONE, ("git reset --hard HEAD~3", 0, "")], ["one"], []),
    ([ONE, ("git reset --hard origin/main", 0, "")], ["one"], []),
    ([ONE, ("git reset --soft HEAD~1; git status", 0, "")], [], []),
]


@pytest.mark.parametrize(("runs", "standing", "undone"), UNDONE)
def test_a_commit_that_git_undid_again_is_told_apart(
    runs: list[tuple[str, int | None, str]], standing: list[str], undone: list[str]
) -> None:
    assert _of([turn(one) for one in runs]) == (tuple(standing), tuple(undone))


PRINTED = ("git commit -m two", 0, "[main 1a2b3c4] two")


@pytest.mark.parametrize(
    ("later", "standing", "undone"),
    [
        (("git revert --no-edit 1a2b3c4", 0, '[main 5a6b7c8] Revert "two"'), ["one"], ["two"]),
        (("git revert --no-edit HEAD", 0, '[main 5a6b7c8] Revert "two"'), ["one"], ["two"]),
        (("git reset --hard HEAD~1", 0, "HEAD is now at 9a9b9c9 one"), ["one"], ["two"]),
        (("git reset --hard 9a9b9c9", 0, ""), ["one"], ["two"]),
        # Somebody may have committed in between: then whose commit it was is not known.
        (("git revert --no-edit HEAD", 0, '[main 5a6b7c8] Revert "three"'), ["one"], []),
        (("git reset --soft HEAD~1", 0, ""), ["one"], []),
        (("git reset --hard HEAD~1", 0, "HEAD is now at 7a7b7c7 other"), ["one"], []),
        (("git reset --hard 9a9b9c9", 1, "fatal"), ["one", "two"], []),
        (("git reset HEAD a.py", 0, ""), ["one", "two"], []),
    ],
)
def test_a_later_session_undoes_a_commit_that_git_names(
    later: tuple[str, int | None, str], standing: list[str], undone: list[str]
) -> None:
    first = turn(("git commit -m one", 0, "[main 9a9b9c9] one"), PRINTED)
    again = turn(later)
    again = replace(again, calls=tuple(replace(one, started=one.started + 10_000) for one in again.calls))
    found = commits.of({"first": [first], "later": [again]})
    assert found == {"first": (tuple(standing), tuple(undone)), "later": ((), ())}
