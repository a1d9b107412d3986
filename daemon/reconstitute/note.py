"""One thing that a model found out about a target: as a value, and out of the outcomes that the archive keeps."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.index import NoteRow
from daemon.model import Vector
from daemon.reconstitute.agent.context.blocks import clean
from daemon.reconstitute.agent.outcomes import Outcome, outcomes
from daemon.reconstitute.answer import Statement
from daemon.records import digest, dumps
from daemon.redact import redact

_KEY = 24


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was found out. `kind` is ``statement``, ``description`` or ``note``; `text` is redacted.

    `target` and `paths` are absolute, as recorded; `created` is the time of the newest source, epoch ms; `sources` are
    message ids.
    """

    target: str
    question_id: str
    kind: str
    paths: tuple[str, ...]
    text: str
    created: int
    sources: tuple[str, ...]

    @property
    def vector_key(self) -> str:
        """That of its text alone, as those of the messages' chunks: equal texts share a vector."""
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    @property
    def key(self) -> str:
        """Names the content."""
        fields = [self.target, self.question_id, self.kind, self.paths, self.text, self.created, self.sources]
        return digest(dumps(fields))[:32]


def notes_of(archive: Archive, target: str) -> dict[str, Note]:
    """All notes of a target by key, in a stable order."""
    found: dict[str, Note] = {}
    for outcome in outcomes(archive, target):
        for note in _notes_in(target, outcome):
            found.setdefault(note.key, note)
    return found


def _notes_in(target: str, outcome: Outcome) -> Iterator[Note]:
    relative = outcome.question_id.partition(":")[2]
    about = (posixpath.join(target, relative),) if relative else ()
    given: list[tuple[str, Statement]] = [("statement", each) for each in outcome.answer.statements]
    given += [("description", outcome.descriptions[path]) for path in sorted(outcome.descriptions)]
    given += [("note", each) for each in outcome.notes]
    for kind, said in given:
        text = clean(f"{said.text} {said.reason}").strip()
        if text:
            sources = tuple(dict.fromkeys(source.message_id for source in said.sources))
            yield Note(target, outcome.question_id, kind, said.paths or about, text, said.when, sources)


def row_of(note: Note, name: str, owner: str, vector: Vector) -> NoteRow:
    """As the index takes it; what names may hold secrets or no valid text stands in it only as a key."""
    facts = {
        "kind": note.kind,
        "about": redact(note.target),
        "paths": redact(" ".join(note.paths)),
        "asked": redact(note.question_id),
        "messages": " ".join(note.sources),
    }
    target, question = key(note.target), key(note.target, note.question_id)
    return NoteRow(name, owner, target, question, note.created, note.text, vector, facts)


def key(*names: str) -> str:
    """Of a target, or of a question (by target and id)."""
    return digest(dumps(list(names)))[:_KEY]
