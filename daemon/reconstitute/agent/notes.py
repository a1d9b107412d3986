"""Notes: what models found out about any target, searchable by meaning.

A note is a statement of an answer, the description of a path, or a remark. The truth is in the archive's outcomes. The
index of notes has a row for each, named by its content, and can be lost: comparing names shows what is missing or left
over. So nothing needs to be remembered, the next run completes one that was killed, and an unchanged note is neither
embedded nor written again. A note is only shown as the archive has it now.
"""

from __future__ import annotations

import hashlib
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from daemon.archive import Archive
from daemon.display import counted
from daemon.embed import Embedder
from daemon.errors import BadInput, BadRequest, IndexBroken, ModelUnavailable, Retry
from daemon.index import NoteMatch, NoteRow, NotesIndex
from daemon.model import Json, Vector
from daemon.reconstitute.agent.context.blocks import clean
from daemon.reconstitute.agent.outcomes import Outcome, outcomes
from daemon.reconstitute.answer import Statement
from daemon.records import digest, dumps
from daemon.redact import redact

_KEY = 24
_OWNER = "notes owner"
"""The archive's note of its own name, since archives may share a Chroma server."""
_REFUSED = "notes"
"""The quarantine's name for notes that the embedder cannot take."""
_BATCH = 32
_SPARE = 20
"""More rows are asked for than notes: some may say the same, or be gone from the archive."""


@dataclass(frozen=True, slots=True)
class Note:
    """One note. `kind` is ``statement``, ``description`` or ``note``; `text` is redacted.

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
    notes: dict[str, Note] = {}
    for outcome in outcomes(archive, target):
        for note in _notes_in(target, outcome):
            notes.setdefault(note.key, note)
    return notes


def _notes_in(target: str, outcome: Outcome) -> Iterator[Note]:
    relative = outcome.question_id.partition(":")[2]
    about = (posixpath.join(target, relative),) if relative else ()
    statements: list[tuple[str, Statement]] = [("statement", entry) for entry in outcome.answer.statements]
    statements += [("description", outcome.descriptions[path]) for path in sorted(outcome.descriptions)]
    statements += [("note", entry) for entry in outcome.notes]
    for kind, statement in statements:
        text = clean(f"{statement.text} {statement.reason}").strip()
        if text:
            sources = tuple(dict.fromkeys(source.message_id for source in statement.sources))
            yield Note(target, outcome.question_id, kind, statement.paths or about, text, statement.when, sources)


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


Step = Callable[[Json], None]


class Notes:
    """The notes of one archive. `index` gives the notes' index in use, or None while there is none.

    `on_failure` is told that the semantic index, of which it is a part, was found broken, so that its owner mends it.
    """

    def __init__(
        self,
        archive: Archive,
        index: Callable[[], NotesIndex | None],
        embedder: Embedder,
        *,
        on_failure: Callable[[str, Exception], None] = lambda _index, _error: None,
    ) -> None:
        self._archive, self._index, self._embedder, self._on_failure = archive, index, embedder, on_failure

    # -- into the index ------------------------------------------------------------------------------------------

    def fill(self, step: Step) -> list[str]:
        """Fill a newly opened index with the notes of all targets. Returns warnings where that failed.

        Raises only what `step`, which is told of the progress, raises to break off; what was done until then stays.
        """
        index = self._index()
        return [] if index is None or index.is_whole else self._tried(lambda: self._fill(index, step))

    def keep(self, target: str, step: Step) -> list[str]:
        """Make the index hold the current notes of `target`, and no others of it. Otherwise as `fill`."""
        index = self._index()
        if index is None:
            waiting = len(notes_of(self._archive, target))
            return [_later(f"{counted(waiting, 'note')}: the index by meaning is not ready")] if waiting else []
        if not index.is_whole:
            return self._tried(lambda: self._fill(index, step))
        return self._tried(lambda: self._sync(index, [target], target, step))

    def _tried(self, work: Callable[[], None]) -> list[str]:
        try:
            work()
        except Retry as error:
            self._failed(error)
            return [_later(f"what was found out: {redact(str(error))}")]
        return []

    def _failed(self, error: Exception) -> None:
        if isinstance(error, IndexBroken):
            self._on_failure("semantic", error)

    def _fill(self, index: NotesIndex, step: Step) -> None:
        self._sync(index, self._archive.targets(), "", step)
        index.is_whole = True

    def _sync(self, index: NotesIndex, targets: Iterable[str], only_target: str, step: Step) -> None:
        """Compare names. The index is read first: what another run adds meanwhile is then not taken for left over."""
        owner = self._archive.note(_OWNER)
        have = index.ids(owner, key(only_target) if only_target else "") if owner else set()
        notes = [note for target in targets for note in notes_of(self._archive, target).values()]
        owner = owner or (self._new_owner() if notes else "")
        notes_by_name = {f"{owner}-{note.key}": note for note in notes}
        refused = self._refused(notes, is_all=not only_target)
        new = [(name, note) for name, note in notes_by_name.items() if name not in have and note.key not in refused]
        for start in range(0, len(new), _BATCH):
            step({"phase": "notes", "done": start, "total": len(new)})
            group = new[start : start + _BATCH]
            vectors = self._vectors([note for _, note in group])
            index.upsert([row_of(note, name, owner, vectors[note.key]) for name, note in group if note.key in vectors])
        index.remove(sorted(have - notes_by_name.keys()))

    def _refused(self, notes: Sequence[Note], *, is_all: bool) -> set[str]:
        """Those that this embedder could not take; where `notes` are all there are, others are forgotten."""
        refusals = self._archive.quarantined(_REFUSED)
        obsolete = refusals.keys() - {note.key for note in notes} if is_all else set()
        if obsolete:
            batch = self._archive.batch()
            for note_key in obsolete:
                batch.release(_REFUSED, note_key)
            self._archive.commit(batch)
        return {note_key for note_key, entry in refusals.items() if entry["model"] == self._embedder.fingerprint}

    def _vectors(self, notes: Sequence[Note]) -> dict[str, Vector]:
        """Vectors by note, of the archive or else of the embedder; a text that has none is remembered as such."""
        model = self._embedder.fingerprint
        vectors: dict[str, Vector] = {}
        uncached: list[Note] = []
        for note in notes:
            stored = self._archive.vector(model, note.vector_key)
            if stored is None:
                uncached.append(note)
            else:
                vectors[note.key] = stored
        if not uncached:
            return vectors
        texts = list(dict.fromkeys(note.text for note in uncached))
        vectors_by_text = dict(zip(texts, self._embedder.embed(texts), strict=True))
        batch = self._archive.batch()
        for note in uncached:
            vector = vectors_by_text[note.text]
            if isinstance(vector, BadInput):
                entry = {"reason": str(vector), "size": len(note.text), "model": model}
                batch.quarantine(_REFUSED, note.key, entry)
            else:
                batch.release(_REFUSED, note.key)  # another model may have refused it
                vectors[note.key] = vector
        self._archive.commit(batch)
        self._archive.put_vectors(model, [(n.vector_key, vectors[n.key]) for n in uncached if n.key in vectors])
        return vectors

    def _new_owner(self) -> str:
        owner = secrets.token_hex(8)
        self._archive.set_note(_OWNER, owner)
        return owner

    # -- out of it -----------------------------------------------------------------------------------------------

    def search(self, query: str, limit: int, *, target: str, question_id: str, moment: int | None) -> list[Note]:
        """The nearest notes, best first, each text once a target; none of that very question, none newer than `moment`.

        Raises:
            BadRequest: nothing can be searched for this.
            IndexBroken, Retry: the index, or the model that embeds, does not answer.
        """
        if not query.strip():
            raise BadRequest("the query is empty; say what you look for")
        index = self._index()
        if index is None or not index.is_whole:
            raise ModelUnavailable("the index of notes is not open: `reconstitute status` says why; try again later")
        owner = self._archive.note(_OWNER)
        if not owner:
            return []
        try:
            vector = self._embedder.embed_query(query)
            if isinstance(vector, BadInput):
                raise BadRequest(f"{vector}; use other words") from vector
            matches = index.query(vector, owner, limit + _SPARE, besides=key(target, question_id), until=moment)
        except IndexBroken as error:
            self._failed(error)
            raise
        targets = {key(path): path for path in self._archive.targets()} if matches else {}
        notes_by_target = {
            entry: notes_of(self._archive, targets[entry]) for entry in {m.target for m in matches} & targets.keys()
        }
        scored = []
        for match in matches:
            note = notes_by_target.get(match.target, {}).get(match.id.rpartition("-")[2])
            if note is not None:
                scored.append((self._score(vector, note, match), note))
        scored.sort(key=lambda entry: (-entry[0], -entry[1].created, entry[1].key))
        once: dict[tuple[str, str], Note] = {}
        for _, note in scored:
            once.setdefault((note.target, note.text), note)
        return list(once.values())[:limit]

    def _score(self, vector: Vector, note: Note, match: NoteMatch) -> float:
        """By the vector that the archive keeps: equal texts are equally near, which those in the index are not."""
        stored = self._archive.vector(self._embedder.fingerprint, note.vector_key)
        return match.score if stored is None else float(np.dot(vector, stored))


def _later(notes: str) -> str:
    return f"not found by search_notes yet: {notes}; the next run makes it good"
