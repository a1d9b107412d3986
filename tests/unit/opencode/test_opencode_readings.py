"""Messages that are read together come out as when each is read alone."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.shared import PIECE
from tests.support.examples import examples
from tests.support.stores.make_opencode import Database, assistant, session, text, user

_LIMIT_MB = 2
_SIZES = [0, 9, PIECE - 200, PIECE, (_LIMIT_MB << 20) - 200, (_LIMIT_MB << 20) + 1]


_KEYS = ("id", "sessionID", "messageID")  # columns, not part of `data`
_ODD = st.sampled_from([None, 7, 1.5, b"{}", "", "{", "[]", "null", '{"type": 3}', '{"role": "user"}', b"\xff\xfe"])
_VALUES = st.one_of(st.sampled_from(_SIZES), st.tuples(_ODD))
"""A row's `data`: the record made so large, or something else in its place."""
_MESSAGES = st.lists(
    st.tuples(st.booleans(), st.one_of(st.none(), _VALUES), st.lists(_VALUES, max_size=4)), min_size=1, max_size=12
)
"""Whether it is a user's, its own row (None: removed), its parts."""


def _data(record: dict[str, object], value: object) -> object:
    if isinstance(value, tuple):
        return value[0]
    padded = record | {"padding": "x" * int(str(value))}
    return json.dumps({name: field for name, field in padded.items() if name not in _KEYS})


def _store(path: Path, messages: list[tuple[bool, object, list[object]]]) -> list[str]:
    """Write the messages; their ids."""
    database = Database(path)
    database.session(session("ses_1"))
    ids = []
    for number, (is_user, own, values) in enumerate(messages):
        record = (user if is_user else assistant)(f"msg_{number}", "ses_1")
        parts = [text(f"prt_{number}_{place}", record["id"], "ses_1", "words") for place in range(len(values))]
        database.message(record, *parts)
        for part, value in zip(parts, values, strict=True):
            database.execute("UPDATE OR IGNORE part SET data = ? WHERE id = ?", _data(part, value), part["id"])
        if own is None:
            database.execute("DELETE FROM message WHERE id = ?", record["id"])
        else:
            database.execute("UPDATE OR IGNORE message SET data = ? WHERE id = ?", _data(record, own), record["id"])
        ids.append(record["id"])
    database.close()
    return ids


@given(messages=_MESSAGES)
@settings(max_examples=examples(40), deadline=None)
def test_messages_read_together_are_the_same_as_alone(messages: list[tuple[bool, object, list[object]]]) -> None:
    """Records of all sizes, of the wrong kind, without a message: the same message, the same problems."""
    with TemporaryDirectory() as folder:
        ids = _store(Path(folder) / "opencode.db", messages)
        source = DatabaseSource(Connection(Path(folder) / "opencode.db"), _LIMIT_MB)
        together = {message_id: read() for message_id, read in source.readings("ses_1", ids)}
        assert list(together) == ids
        for message_id in ids:
            assert together[message_id] == source.read_message("ses_1", message_id)
        source.close()
