"""How many examples the property tests try: a share of them in every run, several times as many in `make laws`."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100
"""Hypothesis's own number, for which the numbers in the tests are meant."""


def examples(number: int) -> int:
    """The number that the profile in use makes of `number`; never fewer than ten."""
    return max(min(number, 10), number * settings().max_examples // _USUAL)
