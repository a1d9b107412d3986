"""The sessions of a tree as its session pages show them, read from the archive one message at a time.

Guarantees: everything that comes out is redacted, with what is known as a secret of any session of the tree hidden in
all of them, so that a page does not depend on what was read before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from daemon import records
from daemon.archive import Archive
from daemon.exports import Export
from daemon.exports.content import Said
from daemon.exports.sessions import opened
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.redact import fingerprint, known


class Conversations:
    """What was said in `sessions`."""

    def __init__(self, archive: Archive, sessions: Sequence[SessionFacts]) -> None:
        self._archive = archive
        self._secrets: dict[str, str] = {}
        for one in sessions:
            self._secrets |= archive.secrets.of(one.id)
        self._hidden = records.digest(fingerprint().encode(), records.dumps(sorted(self._secrets.items())))

    def digest(self, message_ids: Sequence[str]) -> str:
        """Changes whenever what `said` answers may change, but for the time at which a deletion was noticed."""
        states = [self._archive.state(one) or {} for one in message_ids]
        told = [
            [one, state.get("hash"), state.get("deleted") is not None, state.get("gone")]
            for one, state in zip(message_ids, states, strict=True)
        ]
        return records.digest(self._hidden.encode(), records.dumps(told))

    def hiding(self) -> AbstractContextManager[None]:
        """Hide the secrets of these sessions, and no others, in what is redacted meanwhile."""
        return known.only(self._secrets)

    def said(self, session_id: str, message_ids: Sequence[str]) -> Iterator[Said]:
        """These messages of a session, in this order; one that the archive does not have is passed over."""
        session = opened(self._archive, Export(session=session_id, results="full"), session_id)
        return replace(session, only=message_ids).said()
