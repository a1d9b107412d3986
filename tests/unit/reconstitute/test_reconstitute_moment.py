"""What an earlier state is called."""

from __future__ import annotations

from daemon.reconstitute.output import tree_suffix


def test_an_earlier_state_is_called_by_its_moment_in_utc():
    assert tree_suffix(None) == ""
    assert tree_suffix(1_790_899_199_999) == tree_suffix(1_790_899_199_000) == "@2026-10-01T235959Z"
    assert tree_suffix(1_790_899_199_123) == "@2026-10-01T235959.123Z"
