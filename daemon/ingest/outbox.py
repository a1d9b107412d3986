"""Moves messages from the outbox into the indexes: the lexical one at once, the semantic one as fast as it embeds.

An entry leaves the outbox only after its index has it, and not if its message changed meanwhile. Vectors are stored in
the archive under the hash of their text, so that a chunk is embedded once, and a lost index is rebuilt without the
model. A text that the embedder refuses is quarantined with the reason. A text that the model cannot read gets no
vector, because vectors of unknown tokens are similar to the wrong texts. If the model server is down, the outbox does
not change.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from daemon.archive import TOOLS, Archive
from daemon.embed import LEGIBLE_VERSION, Embedder, calibration, reads
from daemon.embed.builtin import Builtin
from daemon.embed.calibration import Calibration
from daemon.errors import BadInput
from daemon.index import PROSE, Entry, LexicalIndex, SemanticIndex, VectorRow
from daemon.model import Chunk, Document, Json, Kind, Message, Section, Session, Vector, parts_where
from daemon.redact import known, redact
from daemon.transcript.chunks import BEFORE, CHUNKER_VERSION, chunks, spoken_text, window
from daemon.transcript.document import document, sections

_MOST_TEXT = 16 << 20
"""About how many characters of messages are indexed at once."""

_SAMPLE = 50
"""Messages of which the check of a semantic index looks up a chunk."""

EMBEDDER = "embedder"
"""The source name of texts without a vector in the quarantine."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The result of one step; `messages` 0 means the outbox of this stage is empty."""

    messages: int = 0
    chunks: int = 0
    embedded: int = 0
    refused: int = 0
    unread: int = 0
    """Messages with text that the model cannot read at all."""
    stage: str = ""
    """The stage of the outbox from which they came."""


def entry_of(archive: Archive, message_id: str, indexed_kb: int) -> Entry | None:
    """The index entry of a message; the first message of a session has its title."""
    return Entries(archive, indexed_kb).of(message_id)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Data that the entries of one session share, redacted with the secrets known in it."""

    secrets: Mapping[str, str]
    session: Session | None
    title: str
    order: list[str]
    places: dict[str, int]
    documents: dict[str, tuple[Message, Document]] = field(default_factory=dict)
    """Waiting messages of which only the spoken text was needed so far."""
    spoken: dict[str, str] = field(default_factory=dict)


class Entries:
    """Index entries of messages at one moment; data that several of them need is computed once.

    With `windows` false they have no window, which only the lexical index needs. `ids` are the messages that will be
    requested, so that a neighbour's window reuses their documents.
    """

    def __init__(
        self, archive: Archive, indexed_kb: int, *, windows: bool = True, ids: Collection[str] = frozenset()
    ) -> None:
        self._archive = archive
        self._indexed_kb = indexed_kb
        self._windows = windows
        self._ids = ids
        self._conversations: dict[str, _Conversation] = {}

    def of(self, message_id: str) -> Entry | None:
        """The entry of one message; None if the archive does not have it.

        Secrets recognised in it are hidden in the entry, and from now on in the whole session.
        """
        state = self._archive.state(message_id)
        if state is None:
            return None
        while True:
            secrets = self._archive.secrets.of(state["session"])
            with known.only(secrets), known.noting() as noted:
                entry = self._of(message_id, state, secrets)
            if noted.keys() <= secrets.keys():
                return entry
            self._archive.secrets.add(state["session"], noted)

    def _of(self, message_id: str, state: Json, secrets: Mapping[str, str]) -> Entry | None:
        conversation = self._conversation(state["session"], secrets)
        message_and_text = conversation.documents.pop(message_id, None) or self._document(message_id, conversation)
        if message_and_text is None:
            return None
        message, text = message_and_text
        session, title = conversation.session, conversation.title
        index = conversation.places.get(message_id, 0)
        window_text = self._window(message, text, conversation) if self._windows else ""
        if index == 0 and title:
            named = (Section("title", Kind.TITLE, title), *text.sections)
            text = type(text)(text.message_id, text.session_id, named, text.paths)
        return Entry(
            document=text,
            role=message.role,
            created=message.created,
            message_index=index,
            session_title=title,
            project_id=session.project_id if session is not None else "",
            directory=session.directory if session is not None else "",
            window=window_text,
            deleted=state["deleted"] is not None,
            gone=frozenset(state.get("gone", ())),
        )

    def _conversation(self, session_id: str, secrets: Mapping[str, str]) -> _Conversation:
        conversation = self._conversations.get(session_id)
        if conversation is None or conversation.secrets is not secrets:  # otherwise cached text may show a secret
            session = self._archive.session(session_id)
            order = self._archive.message_ids(session_id)
            places = {message_id: place for place, message_id in enumerate(order)}
            title = redact(session.title) if session is not None else ""
            conversation = _Conversation(secrets, session, title, order, places)
            self._conversations[session_id] = conversation
        return conversation

    def _document(self, message_id: str, conversation: _Conversation) -> tuple[Message, Document] | None:
        message = self._archive.message(message_id)
        if message is None:
            return None
        return message, document(message, conversation.session, self._indexed_kb)

    def _window(self, message: Message, text: Document, conversation: _Conversation) -> str:
        place = conversation.places.get(message.id, 0)
        before = [
            self._spoken(neighbour_id, conversation)
            for neighbour_id in conversation.order[max(0, place - BEFORE) : place]
        ]
        if message.id not in conversation.spoken:
            conversation.spoken[message.id] = spoken_text(text.sections)
        return window([*before, conversation.spoken[message.id]], conversation.title, message.created)

    def _spoken(self, message_id: str, conversation: _Conversation) -> str:
        """The spoken text of a neighbour."""
        if message_id not in conversation.spoken:
            conversation.spoken[message_id] = self._neighbour_text(message_id, conversation)
        return conversation.spoken[message_id]

    def _neighbour_text(self, message_id: str, conversation: _Conversation) -> str:
        if message_id in self._ids:
            message_and_text = self._document(message_id, conversation)
            if message_and_text is not None:
                conversation.documents[message_id] = message_and_text
                return spoken_text(message_and_text[1].sections)
            return ""
        message = self._archive.message(message_id)
        if message is None:
            return ""
        # Drop its tool calls first, because redacting them takes time.
        parts = parts_where(message.parts, lambda part: part.type != "tool" or part.data.get("tool") == "task")
        return spoken_text(sections(replace(message, parts=parts), self._indexed_kb))


class LexicalDrain:
    """Feeds the lexical index."""

    stage = "lexical"

    def __init__(self, archive: Archive, index: LexicalIndex, indexed_kb: int) -> None:
        self._archive = archive
        self._index = index
        self._indexed_kb = indexed_kb

    def step(self, limit: int = 200, stop: Callable[[], bool] = lambda: False) -> Drained:
        """Index up to `limit` messages, newest first; fewer if they are large, or if `stop` returns true after one.

        Raises:
            IndexBroken: the index must be rebuilt; the outbox is as it was.
        """
        waiting = self._archive.outbox(self.stage, limit)
        entries = Entries(self._archive, self._indexed_kb, ids={message_id for message_id, _, _ in waiting})
        indexed: list[Entry] = []
        gone: list[str] = []
        size = 0
        for message_id, _, _ in waiting:
            entry = entries.of(message_id)
            if entry is None:
                gone.append(message_id)
            else:
                indexed.append(entry)
                size += sum(len(section.text) for section in entry.document.sections)
            if size > _MOST_TEXT or stop():
                break
        done = len(indexed) + len(gone)
        self._index.replace(indexed)
        if gone:
            self._index.remove(gone)
        self._archive.done(waiting[:done])
        return Drained(messages=done)


class SemanticDrain:
    """Feeds the semantic index: spoken text first, newest first; tool calls when nothing else waits.

    Tool calls whose vectors are archived do not wait, so an index is rebuilt in one pass.
    """

    def __init__(
        self,
        archive: Archive,
        index: SemanticIndex,
        embedder: Embedder,
        *,
        indexed_kb: int,
        embedded_kb: int,
        batch: int,
        embed_scope: str = "all",
    ) -> None:
        """`embed_scope`: embedding.what of the configuration."""
        self._archive = archive
        self._index = index
        self._embedder = embedder
        self._indexed_kb = indexed_kb
        self._embedded_kb = embedded_kb
        self._batch = batch
        self._embed_scope = embed_scope

    def step(self, limit: int = 16, stop: Callable[[], bool] = lambda: False) -> Drained:
        """Embed and index up to `limit` messages, newest first.

        `stop` is called between batches; vectors so far are stored, and the messages stay in the outbox.

        Raises:
            ModelUnavailable: the model server is down; the outbox is as it was.
            IndexBroken: the index must be rebuilt; the vectors are in the archive, the outbox is as it was.
        """
        stage = "semantic" if self._archive.waiting("semantic") or self._embed_scope != "all" else TOOLS
        waiting = self._archive.outbox(stage, limit)
        pairs: list[tuple[Chunk, Entry]] = []
        unread: dict[str, bool] = {}
        later: list[str] = []
        entries = Entries(self._archive, self._indexed_kb, windows=False)
        for message_id, _, _ in waiting:
            entry = entries.of(message_id)
            spoken, tools = (
                chunks_of(entry.document, self._embedded_kb, self._embed_scope) if entry is not None else ([], [])
            )
            now = tools if stage == TOOLS else [chunk for chunk in tools if self._is_embedded(chunk)]
            if len(now) < len(tools):
                later.append(message_id)
            legible = [chunk for chunk in (*spoken, *now) if reads(self._embedder, chunk.text)]
            unread[message_id] = bool(spoken or tools) and not legible and len(now) == len(tools)
            pairs += [(chunk, entry) for chunk in legible if entry is not None]
        result = self._vectors([chunk for chunk, _ in pairs], stop)
        if result is None:
            return Drained()
        vectors, embedded, refused = result
        rows = [
            VectorRow(chunk, vectors[chunk_digest(chunk)], entry)
            for chunk, entry in pairs
            if chunk_digest(chunk) in vectors
        ]  # fmt: skip
        self._index.upsert(rows)
        chunk_ids: dict[str, set[str]] = {message_id: set() for message_id in unread}
        for row in rows:
            chunk_ids[row.chunk.message_id].add(row.chunk.id)
        self._index.keep(chunk_ids)
        self._archive.put_unread(index_contents(self._embedder, self._embed_scope), unread)
        self._postpone(later)
        self._archive.done(waiting)
        return Drained(len(waiting), len(pairs), embedded, refused, sum(unread.values()), stage)

    def _is_embedded(self, chunk: Chunk) -> bool:
        return self._archive.vector(index_fingerprint(self._embedder), chunk_digest(chunk)) is not None

    def _postpone(self, message_ids: Sequence[str]) -> None:
        """Embed their tool calls after all spoken text."""
        batch = self._archive.batch()
        for message_id in message_ids:
            state = self._archive.state(message_id)
            if state is not None:
                batch.enqueue_in(TOOLS, message_id, state["created"], state["hash"])
        if len(batch):
            self._archive.commit(batch)

    def _vectors(self, chunks: Sequence[Chunk], stop: Callable[[], bool]) -> tuple[dict[str, Vector], int, int] | None:
        """Vectors by the hash of the text, from the archive or from the embedder, which gets each text once."""
        fingerprint = index_fingerprint(self._embedder)
        vectors: dict[str, Vector] = {}
        missing: dict[str, Chunk] = {}
        for chunk in chunks:
            sha = chunk_digest(chunk)
            stored = None if sha in vectors else self._archive.vector(fingerprint, sha)
            if stored is not None:
                vectors[sha] = stored
            elif sha not in vectors:
                missing[sha] = chunk
        refused = 0
        for group in _groups(list(missing.items()), self._batch):
            if stop():
                return None
            embedded = self._embedder.embed([chunk.text for _, chunk in group])
            new: list[tuple[str, Vector]] = []
            batch = self._archive.batch()
            for (sha, chunk), vector in zip(group, embedded, strict=True):
                if isinstance(vector, BadInput):
                    refused += 1
                    batch.quarantine(EMBEDDER, chunk.id, {"reason": str(vector), "size": len(chunk.text)})
                else:
                    batch.release(EMBEDDER, chunk.id)  # another model may have refused it
                    new.append((sha, vector))
            if len(batch):
                self._archive.commit(batch)
            self._archive.put_vectors(fingerprint, new)
            vectors |= dict(new)
        return vectors, len(missing) - refused, refused


def index_fingerprint(embedder: Embedder) -> str:
    """Identifies the model and the chunker; stored vectors and semantic indexes belong to it.

    With another model or chunker everything is embedded again, so old and new chunks never mix.
    """
    return f"{embedder.fingerprint}-{CHUNKER_VERSION}"


def index_contents(embedder: Embedder, embed_scope: str) -> str:
    """Identifies a semantic index's contents: model, chunker, rules of legibility, and which texts are embedded."""
    return f"{index_fingerprint(embedder)}-l{LEGIBLE_VERSION}-{embed_scope}"


def chunks_of(document: Document, embedded_kb: int, embed_scope: str) -> tuple[list[Chunk], list[Chunk]]:
    """The chunks of spoken text, and those of tool calls, numbered on; `embed_scope` is embedding.what."""
    parts = [
        [section for section in document.sections if (section.kind in PROSE) is is_spoken]
        for is_spoken in (True, False)
    ]
    spoken, tools = (chunks(replace(document, sections=tuple(part)), embedded_kb) for part in parts)
    numbered = [replace(chunk, number=chunk.number + len(spoken)) for chunk in tools]
    return spoken, numbered if embed_scope == "all" else []


def sample(archive: Archive, embedder: Embedder, kb: tuple[int, int], embed_scope: str) -> list[tuple[str, Vector]]:
    """Random chunks that the semantic index must hold, with their vectors, to check that it is whole.

    `kb` are limits.indexed_kb and limits.embedded_kb, `embed_scope` is embedding.what.
    """
    waiting = {message_id for stage in ("semantic", TOOLS) for message_id, _, _ in archive.outbox(stage, 1_000_000)}
    settled = [message_id for message_id in archive.all_message_ids() if message_id not in waiting]
    vectors: list[tuple[str, Vector]] = []
    for message_id in random.sample(settled, min(_SAMPLE, len(settled))):
        entry = entry_of(archive, message_id, kb[0])
        spoken, tools = chunks_of(entry.document, kb[1], embed_scope) if entry is not None else ([], [])
        for chunk in (spoken or tools)[:1]:
            if not reads(embedder, chunk.text):
                continue  # the archive may still have an old vector of it, but the index must not
            vector = archive.vector(index_fingerprint(embedder), chunk_digest(chunk))
            if vector is not None:
                vectors.append((chunk.id, vector))
    return vectors


def calibrated(archive: Archive, embedder: Embedder) -> Calibration | None:
    """The calibration of this model's cosines, measured once; None for the built-in model."""
    if embedder.fingerprint == Builtin().fingerprint:
        return None
    note = f"cosines {calibration.VERSION} {embedder.fingerprint}"
    measured = archive.note(note)
    if not measured:
        measured = " ".join(map(str, calibration.measure(embedder)))
        archive.set_note(note, measured)
    return calibration.calibration([float(cosine) for cosine in measured.split()])


def chunk_digest(chunk: Chunk) -> str:
    """The hash under which a chunk's vector is stored: of its text alone, so equal texts share one."""
    return hashlib.sha256(chunk.text.encode("utf-8", "replace")).hexdigest()


def _groups(items: list[tuple[str, Chunk]], size: int) -> Iterator[list[tuple[str, Chunk]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
