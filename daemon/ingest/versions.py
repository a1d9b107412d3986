"""Combines readings of a message, also from several sources: the newest version of each of its records.

A source's current reading is newer than its former one. Between sources the newer generation of OpenCode's storage
wins, because OpenCode migrates from one to the next; between two of one generation, the one that changed last. We store
where each record came from, so the order in which the sources are read makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from daemon.archive import merged, superseded
from daemon.model import Json, Message, Session, part_ids
from daemon.opencode import DATABASE_2
from daemon.records import OWN_MARK, OWN_SESSION_TITLE, load_object, table

_HEAD = ""
"""The message's own record, among the ids of its parts."""


class Origin(NamedTuple):
    """Where and when a record was written: the source's generation, the record's last change (epoch ms), the source."""

    generation: int
    changed: int
    source: str

    def follows(self, stored: Origin) -> bool:
        """Whether this reading is newer than the one `stored`."""
        return self.source == stored.source or self > stored


@dataclass(frozen=True, slots=True)
class Combined:
    """`message` is the message to store; the other fields belong to it (archive.Batch.message).

    `generation` and `hash_` are of the newest reading, even if a fuller version of an older one stays.
    """

    message: Message
    versions: list[tuple[str | None, bytes]]
    gone: list[str]
    generation: int
    hash_: str
    origins: Json


def combine(stored: Message | None, state: Json | None, read: Message, origin: Origin, hash_: str) -> Combined:
    """Combine `read`, which came from `origin` and has this hash, with the `stored` message and its state."""
    if stored is None or state is None:
        return Combined(read, [], [], origin.generation, hash_, _origins(origin, {}))
    known: Json = state.get("origins") or {}
    newest = Origin(*known.get("newest", (state["generation"], 0, "")))
    by_record = {name: Origin(*value) for name, value in known.get("others", {}).items()}
    is_newest = origin.follows(newest)

    def is_newer(part_id: str) -> bool:
        return origin.follows(by_record.get(part_id, newest))

    versions: list[tuple[str | None, bytes]]
    gone: Iterable[str] = state["gone"]
    if _is_renumbered(by_record.get(_HEAD, newest)) != _is_renumbered(origin):
        older, newer = (stored, read) if is_newest else (read, stored)
        whole, versions = superseded(older, newer)
        names = {_HEAD, *part_ids(whole.parts)}
        from_read = names if whole is read else set()
    elif is_newest:
        whole, versions, gone, from_stored = merged(stored, read, is_newer)
        names = {_HEAD, *part_ids(whole.parts)}
        from_read = names - from_stored
    else:  # an older copy only adds what the newer one lacks, such as parts that OpenCode's import did not copy
        whole, versions, lacking, from_copy = merged(read, stored, lambda part_id: not is_newer(part_id))
        names = {_HEAD, *part_ids(whole.parts)}
        from_read = set(from_copy)
        gone = {*gone, *lacking}
    top = origin if is_newest else newest
    came = {name: origin if name in from_read else by_record.get(name, newest) for name in names}
    return Combined(
        whole,
        versions,
        sorted(name for name in gone if name in names),
        top.generation,
        hash_ if is_newest else state["hash"],
        _origins(top, {name: where for name, where in came.items() if where != top}),
    )


def _origins(newest: Origin, by_record: dict[str, Origin]) -> Json:
    return {"newest": list(newest)} | ({"others": {n: list(o) for n, o in by_record.items()}} if by_record else {})


def _is_renumbered(origin: Origin) -> bool:
    """Whether this generation has no part records, so that ids of parts are made from places."""
    return origin.generation == DATABASE_2


def is_own(session: Session | None, messages: Iterable[Message]) -> bool:
    """Whether a session is ours. `session` is its record, or None; `messages` are only read without a record.

    The current title counts: a session that the user renamed, to continue it, is the user's.
    """
    if session is not None and session.raw != b"{}":
        return session.title.startswith(OWN_SESSION_TITLE)
    return any(is_own_message(message) for message in messages)


def is_own_message(message: Message) -> bool:
    """Whether a message belongs to such a session: our prompt, or the answer to it."""
    data = message.data
    if OWN_MARK in (data.get("agent"), data.get("mode")) or OWN_MARK in table(data.get("tools")):
        return True
    return any(OWN_MARK in table(part.data.get("metadata")) for part in message.parts)


def has_changed(before: Session, session: Session) -> bool:
    """Whether pages that name the session must be rendered again, even without a new message."""
    if (before.title, before.directory, before.archived) != (session.title, session.directory, session.archived):
        return True
    was, now = (load_object(record.raw).get("revert") for record in (before, session))
    return bool(was != now)
