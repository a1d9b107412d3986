"""One session as the formats get it: its facts, clean, and its messages one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.exports import Export
from daemon.exports.content import Clean, Said, said
from daemon.exports.form import iso
from daemon.model import Json, Message, OllamaMessage, Session, parts_where
from daemon.redact import redact_value
from daemon.transcript.replay import clean_replay, replay


@dataclass(slots=True)
class Opened:
    """A session while it is exported. `count` and `missing` grow as its messages are taken.

    `session` is clean. At most one message is held in memory at a time. `deleted`: epoch ms when its source was seen to
    have it no more. `has_record` is false where there was never a readable record of it, only messages. `only` are the
    messages to be taken, all where it is None.
    """

    archive: Archive
    asked: Export
    session: Session
    deleted: int | None
    has_record: bool
    count: int = 0
    missing: list[str] = field(default_factory=list)
    only: Sequence[str] | None = None

    def said(self) -> Iterator[Said]:
        """Its messages in conversation order, taken apart."""
        for message, deleted, gone in self._messages():
            yield said(message, results=self.asked.shows, clean=self._clean, deleted=deleted, gone=gone)

    def events(self) -> list[Json]:
        """What happened in it besides messages, such as a change of the model: ``{id, type, timestamp, data}``."""
        return [
            self._clean(
                {
                    "id": event["id"],
                    "type": event["type"],
                    "timestamp": iso(records.integer(records.table(event["time"]).get("created"))),
                    "data": event["data"],
                }
            )
            for event in self.archive.beside.events(self.session.id)
        ]

    def todos(self) -> list[Json]:
        """Its todo list in its last state, as recorded."""
        items: list[Json] = self._clean(self.archive.beside.todos(self.session.id))
        return items

    def replayed(self) -> Iterator[list[OllamaMessage]]:
        """Each message as entries of Ollama's ``messages[]``."""
        for message, _, _ in self._messages():
            entries = replay(message)  # not the archived one, which an older version may have made
            yield entries if self.asked.raw else clean_replay(message, entries)

    def _messages(self) -> Iterator[tuple[Message, int | None, tuple[str, ...]]]:
        """(message, when its source dropped it, the parts that its source dropped)."""
        for message_id in self.archive.message_ids(self.session.id) if self.only is None else self.only:
            state, message = self.archive.state(message_id), self.archive.message(message_id)
            if state is None or message is None:
                self.missing.append(message_id)
                continue
            if state["deleted"] is not None and not self.asked.deleted:
                continue
            gone = tuple(state["gone"])
            if gone and not self.asked.deleted:
                parts = parts_where(message.parts, lambda part, gone=gone: part.id not in gone)  # type: ignore[misc]
                message, gone = replace(message, parts=parts), ()
            self.count += 1
            yield message, state["deleted"], gone

    @property
    def _clean(self) -> Clean:
        return _as_it_is if self.asked.raw else redact_value


def opened(archive: Archive, asked: Export, session_id: str) -> Opened:
    """The session of that id; what its own record would say is made up from its messages where there is none."""
    session, state = archive.session(session_id), archive.session_state(session_id)
    known = session if session is not None else _made_up(archive, session_id)
    clean = _as_it_is if asked.raw else redact_value
    shown = replace(
        known,
        project_id=clean(known.project_id),
        directory=clean(known.directory),
        title=clean(known.title),
        version=clean(known.version),
    )
    return Opened(archive, asked, shown, state["deleted"] if state else None, has_record=session is not None)


def _made_up(archive: Archive, session_id: str) -> Session:
    ids = archive.message_ids(session_id)
    times = [state["created"] for one in (*ids[:1], *ids[-1:]) if (state := archive.state(one)) is not None] or [0]
    paths = (records.table(message.data.get("path")).get("cwd") for message in archive.messages(session_id))
    directory = next((path for path in paths if isinstance(path, str) and path), "")
    return Session(session_id, "", directory, "", times[0], times[-1], b"{}")


def _as_it_is(value: Any) -> Any:
    return value
