"""Archives of version 0.1 hold events of OpenCode 1.15 and 2 as empty answers; here they become what they are."""

from __future__ import annotations

from daemon import records
from daemon.archive import Archive, Batch
from daemon.model import Message
from daemon.opencode.database_v2 import TYPE, is_session_event, session_event

_NOTE = "events are no messages"
_AT_ONCE = 200


def set_apart(archive: Archive) -> int:
    """Keep each such message as an event of its session, once for each archive; answers how many there were.

    A session that has nothing else and no record of its own was made up for them, and goes with them.
    """
    if archive.note(_NOTE):
        return 0
    batch, number = archive.batch(), 0
    for message_id in list(archive.all_message_ids()):
        state = archive.state(message_id)
        message = archive.message(message_id) if state is not None and not state["parts"] else None
        if message is None or not is_session_event(message_id, records.text(message.data.get(TYPE))):
            continue
        _move(archive, batch, message)
        number += 1
        if number % _AT_ONCE == 0:
            archive.commit(batch)
            batch = archive.batch()
    archive.commit(batch)
    archive.set_note(_NOTE, "1")
    return number


def _move(archive: Archive, batch: Batch, message: Message) -> None:
    data = message.data
    verbatim = records.dumps(data.get("v2", {}))
    raw = session_event(message.session_id, message.id, records.text(data.get(TYPE)), data.get("time"), verbatim)
    archive.beside.put_event(batch, message.session_id, message.id, raw)
    batch.drop_message(message.id)
    session = archive.session(message.session_id)
    if session is not None and session.raw == b"{}" and not batch.message_ids(message.session_id):
        batch.drop_session(message.session_id)
