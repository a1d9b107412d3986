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


def _padded(record: dict[str, object], size: int) -> str:
    return json.dumps({name: value for name, value in record.items() if name not in _KEYS} | {"padding": "x" * size})


_KEYS = ("id", "sessionID", "messageID")
_ODD = st.sampled_from([None, 7, 1.5, b"{}", "", "{", "[]", "null", '{"type": 3}', '{"role": "user"}', b"\xff\xfe"])
_VALUES = st.one_of(st.sampled_from(_SIZES), st.tuples(_ODD))
_MESSAGES = st.lists(
    st.tuples(st.booleans(), st.one_of(st.none(), _VALUES), st.lists(_VALUES, max_size=4)), min_size=1, max_size=12
)


def _store(path: Path, messages: list[tuple[bool, object, list[object]]]) -> list[str]:
    database = Database(path)
    database.session(session("ses_1"))
    ids = []
    for number, (is_user, own, parts) in enumerate(messages):
        message_id = f"msg_{number}"
        ids.append(message_id)
        record = (user if is_user else assistant)(message_id, "ses_1")
        part_ids = [f"prt_{number}_{place}" for place in range(len(parts))]
        database.message(record, *(text(part_id, message_id, "ses_1", "words") for part_id in part_ids))
        for table, id_, made, value in (
            ("message", message_id, record, own),
            *(
                ("part", part_id, text(part_id, message_id, "ses_1", "words"), value)
                for part_id, value in zip(part_ids, parts, strict=True)
            ),
        ):
            data = value[0] if isinstance(value, tuple) else _padded(made, value) if isinstance(value, int) else None
            if value is None:
                database.execute("DELETE FROM message WHERE id = ?", id_)
            else:
                database.execute(f"UPDATE OR IGNORE {table} SET data = ? WHERE id = ?", data, id_)
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
