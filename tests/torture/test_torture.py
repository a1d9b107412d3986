"""One short trial of each harm of `make torture`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.trial import HARMS, trial

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

ROUNDS = 2


@pytest.mark.parametrize("kind", HARMS)
def test_a_harm_loses_nothing_and_makes_nothing_wrong(kind: str, tmp_path: Path) -> None:
    lacks = HARMS[kind].lacks()
    if lacks:
        pytest.skip(lacks)
    done, problems = trial(kind, 1, tmp_path / kind, ROUNDS)
    assert problems == []
    assert done.total() >= ROUNDS
