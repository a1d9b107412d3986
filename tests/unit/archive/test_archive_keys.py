"""No record can reach into another one's keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.archive import keys

_IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(_IDS)
def test_escaping_is_reversible_and_leaves_no_separator(text: str) -> None:
    assert keys.unescape(keys.escape(text)) == text
    assert ":" not in keys.escape(text)
    assert "\0" not in keys.escape(text)


@given(_IDS, _IDS, _IDS, _IDS)
def test_two_parts_share_a_key_only_when_they_are_the_same(m1: str, p1: str, m2: str, p2: str) -> None:
    assert (keys.part(m1, p1) == keys.part(m2, p2)) == ((m1, p1) == (m2, p2))


@given(st.integers(0, 2**41), st.integers(0, 2**41))
def test_the_outbox_gives_newer_messages_first(one: int, other: int) -> None:
    first, second = keys.outbox("semantic", one, "m"), keys.outbox("semantic", other, "m")
    assert (first < second) == (one > other)


@given(st.integers(0, 2**41), st.integers(0, 2**41))
def test_file_edits_sort_by_time(one: int, other: int) -> None:
    assert (keys.file_edit("/p", one, "x", 0) < keys.file_edit("/p", other, "x", 0)) == (one < other)


def test_a_path_that_continues_another_has_keys_of_its_own() -> None:
    assert not keys.file_edit("/a/b", 1, "p", 0).startswith(keys.file_prefix("/a"))
