"""Bytes of other people's making become values of valid text, and values become bytes, without a loss on the way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import records
from daemon.errors import BadRecord

_ANY_TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["\ud800", "a\udfffb", "\U0001f600", "\u2028", "\0"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_whatever_javascript_writes_becomes_valid_text(value: object) -> None:
    loaded = records.loads(json.dumps(value).encode())
    assert records.loads(records.dumps(loaded)) == loaded
    records.dumps(loaded).decode("utf-8")


def test_a_lone_surrogate_becomes_the_replacement_character_and_no_other() -> None:
    assert records.loads(b'"a\\ud800b"') == "a\ufffdb"
    assert records.loads(b'"\\ud83d\\ude00"') == "\U0001f600"


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), st.dictionaries(_ANY_TEXT, _JSON, max_size=4))
def test_fields_are_put_before_a_record_without_touching_a_byte_of_it(
    fields: dict[str, int], record: dict[str, object]
) -> None:
    data = json.dumps(record)
    raw = records.with_fields(fields, data)
    assert raw.endswith(data.encode()[1:])
    assert records.load_object(raw).keys() >= {records.clean(key) for key in record}


@pytest.mark.parametrize("raw", [b"", b"\0\0", b"[1]", b'"x"', b"{", b'{"a": 1} tail', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_object_is_a_bad_record(raw: bytes) -> None:
    with pytest.raises(BadRecord):
        records.load_object(raw)


@pytest.mark.parametrize("value", [None, True, "5", [], {}, float("nan"), float("inf"), 1e300, -1e300, 10**40])
def test_a_number_that_is_none_is_the_default(value: object) -> None:
    assert records.integer(value, 7) == 7


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_two_lists_of_bytes_share_a_digest_only_when_they_are_equal(one: list[bytes], other: list[bytes]) -> None:
    assert (records.digest(*one) == records.digest(*other)) == (one == other)
