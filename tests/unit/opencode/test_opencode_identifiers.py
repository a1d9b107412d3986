"""What an id tells of its time, near a known one."""

from __future__ import annotations

import pytest

from daemon import records
from daemon.opencode.shared import orphan_record
from daemon.records import time_of, time_until

NOW = 1_795_230_500_000
WRAP = 1_786_706_395_000  # 2026-08-14 11:19:55 UTC, when the 36 bits of milliseconds last began anew


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("msg_1fc13507f001gL2TNTlx7a0gIk", 1795230486655),
        ("prt_1fc13507f001gL2TNTlx7a0gIk", 1795230486655),
        ("ses_e03ecaf84ffekQwyLxDza74dC8", 1795230486651),
        ("msg_short", None),
        ("msg_zzzzzzzzzzzzgL2TNTlx7a0gIk", None),
        ("", None),
    ],
)
def test_the_time_in_an_id_is_read(identifier: str, expected: int | None) -> None:
    assert time_of(identifier, NOW) == expected


def test_ids_from_before_the_wrap_are_older_although_they_sort_after() -> None:
    before, after = "msg_ffffffff0001aaaaaaaaaaaaaa", "msg_000000010001aaaaaaaaaaaaaa"
    assert before > after
    times = time_of(before, NOW), time_of(after, NOW)
    assert times[0] is not None
    assert times[1] is not None
    assert times[0] < times[1]
    assert abs(times[0] - WRAP) < 300_000


DAY = 86_400_000


@pytest.mark.parametrize("days", [-0.5, 0, 1, 300, 400, 790])
def test_what_was_made_until_now_is_dated_no_later(days: float) -> None:
    """Half of the span before now is nearer to a time that is still to come."""
    assert time_until("msg_1fc13507f001gL2TNTlx7a0gIk", 1795230486655 + round(days * DAY)) == 1795230486655
    assert time_until("msg_short", NOW) is None


@pytest.mark.parametrize("name", ["time", "state"])
def test_a_message_without_a_record_is_of_the_time_of_its_parts(name: str) -> None:
    message_id, ten_years = "msg_1fc13507f001gL2TNTlx7a0gIk", 3650 * DAY
    times = {"start": 1795230486900}
    part = {"id": "prt_1", "type": "tool"} | ({"time": times} if name == "time" else {"state": {"time": times}})
    found = records.part(records.dumps(part), message_id, "ses_1")
    record = records.load_object(orphan_record("ses_1", message_id, [found], NOW + ten_years))
    assert record["time"]["created"] == 1795230486655
