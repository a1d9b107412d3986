"""Grades: what makes content certain, and what makes it more than that."""

from __future__ import annotations

from itertools import combinations

import pytest

from daemon.files.history import ATTACHMENT, CALL, DIFF, READ, RESULT, SHELL, SNAPSHOT, Grade, certain

_FAMILIES = [{CALL}, {RESULT}, {READ, ATTACHMENT}, {SHELL}, {SNAPSHOT, DIFF}]
_KINDS = sorted(set().union(*_FAMILIES))


def test_only_the_two_best_grades_are_certain_and_their_order_is_fixed() -> None:
    assert [grade.value for grade in sorted(Grade, key=lambda grade: grade.rank)] == [
        "verified", "proven", "stale", "partial", "lost",
    ]  # fmt: skip
    assert [grade for grade in Grade if grade.is_certain] == [Grade.VERIFIED, Grade.PROVEN]


@pytest.mark.parametrize("pair", list(combinations(_KINDS, 2)))
def test_two_kinds_verify_each_other_unless_one_is_made_from_the_other(pair: tuple[str, str]) -> None:
    is_one_family = any(set(pair) <= family for family in _FAMILIES)
    assert certain(frozenset(pair)) is (Grade.PROVEN if is_one_family else Grade.VERIFIED)


@pytest.mark.parametrize("kind", _KINDS)
def test_one_kind_alone_proves(kind: str) -> None:
    assert certain(frozenset({kind})) is Grade.PROVEN
