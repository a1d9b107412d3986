"""Units of a session's messages: remembered ones are those that would be made anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.opencode.shared import Stamps, Units

_STAMPS = st.lists(st.tuples(st.sampled_from(["", "prt_1", "prt_2"]), st.sampled_from([1, 2, None, "x"])), max_size=3)
_LISTING = st.tuples(
    st.sampled_from("abcde"),
    st.dictionaries(st.sampled_from(["msg_1", "msg_2"]), _STAMPS),
    st.dictionaries(st.sampled_from(["msg_1", "msg_2"]), st.integers(0, 2)),
)


@given(st.lists(_LISTING, max_size=8))
def test_a_remembered_unit_is_the_one_that_is_made_anew(listings):
    units = Units()
    for listing in listings:
        assert units.of(*listing) == Units().of(*listing)


def test_a_unit_depends_on_ids_stamps_and_removals_not_on_the_order_of_rows():
    of = Units().of
    rows: Stamps = [("", 1), ("prt_1", 2), ("prt_2", 3)]
    (unit,) = of("s", {"m": rows}, {}).values()
    assert of("s", {"m": rows[::-1]}, {})["m"] == unit
    assert unit.changed == 3
    others: list[Stamps] = [rows[:2], [*rows[:2], ("prt_2", 4)], [*rows[:2], ("prt_3", 3)]]
    for other in others:
        assert of("s", {"m": other}, {})["m"].stamp != unit.stamp
    assert of("s", {"m": rows}, {"m": 9})["m"].changed == 9
