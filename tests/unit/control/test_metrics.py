"""The status in Prometheus' text format: names, labels, and no sample where a figure is not known."""

from __future__ import annotations

import time

import msgspec

from daemon.control import metrics
from daemon.control.answers import Check, DiskStatus, Status
from tests.support.stores.make_opencode import T0

METRICS = """\
# HELP reconstitute_info The version.
# TYPE reconstitute_info gauge
reconstitute_info{version="1.2"} 1
# HELP reconstitute_records What is archived.
# TYPE reconstitute_records gauge
reconstitute_records{kind="messages"} 41
# HELP reconstitute_large_records Records that are kept as files.
# TYPE reconstitute_large_records gauge
reconstitute_large_records 0
# HELP reconstitute_newest_message_time_seconds The newest archived message.
# TYPE reconstitute_newest_message_time_seconds gauge
reconstitute_newest_message_time_seconds 1795230000.0
# HELP reconstitute_lag_seconds How far the archive is behind a source.
# TYPE reconstitute_lag_seconds gauge
reconstitute_lag_seconds{source="db:/home/\\"a\\"\\\\b\\n.db"} 3.5
# HELP reconstitute_waiting_messages Messages that are not indexed yet.
# TYPE reconstitute_waiting_messages gauge
reconstitute_waiting_messages{index="meaning"} 7
# HELP reconstitute_index_entries Entries of each index; of meaning only while it is open.
# TYPE reconstitute_index_entries gauge
reconstitute_index_entries{index="words"} 80
"""


def test_the_metrics_are_the_figures_of_the_status() -> None:
    answer = msgspec.convert(
        {
            "version": "1.2",
            "newest": T0,
            "archive": {"messages": 41},
            "sources": [{"name": 'db:/home/"a"\\b\n.db', "lagSeconds": 3.5}, {"name": "json:/x"}],
            "outbox": {"semantic": 7},
            "index": {"lexical": {"count": 80}, "semantic": {"count": None}},
        },
        Status,
    )
    answer.troubles = [Check("a", "attention"), Check("b", "broken"), Check("c", "attention")]
    answer.disk = DiskStatus(since=int(time.time()))
    lines = metrics.text(answer)
    assert lines.startswith(METRICS)
    assert 'reconstitute_troubles{state="attention"} 2\nreconstitute_troubles{state="broken"} 1\n' in lines
    assert "reconstitute_disk_full 1\n" in lines
