"""From the outbox into the indexes: the lexical one at once, the semantic one when the embedder gets to it.

An entry leaves the outbox only after its index has it, and not if its message changed meanwhile. Vectors are kept in
the archive under the hash of their text, so a chunk is embedded once, and a lost index is rebuilt without the model. A
text that the embedder cannot take is set aside with the reason. One that the model cannot read gets no vector, because
vectors of unknown tokens are similar to the wrong texts. A model server that is down leaves the outbox as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from daemon.archive import TOOLS, Archive
from daemon.embed import LEGIBLE_VERSION, Embedder, reads
from daemon.errors import BadInput
from daemon.index import SAID, Entry, LexicalIndex, SemanticIndex, VectorRow
from daemon.model import Chunk, Document, Json, Kind, Message, Section, Session, Vector, parts_where
from daemon.redact import known, redact
from daemon.transcript.chunks import BEFORE, CHUNKER_VERSION, chunks, spoken_text, window
from daemon.transcript.document import document, sections

_MOST_TEXT = 16 << 20
"""Characters of messages that are held at once to be indexed, about."""

EMBEDDER = "embedder"
"""The quarantine's name for texts without a vector."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What one step did; `messages` 0 means the outbox of this stage is empty."""

    messages: int = 0
    chunks: int = 0
    embedded: int = 0
    refused: int = 0
    unread: int = 0
    """Messages that have text, none of which the model can read."""
    stage: str = ""
    """Of the outbox, where they waited."""


def entry_of(archive: Archive, message_id: str, indexed_kb: int) -> Entry | None:
    """A message as the indexes take it; the first message of a session carries its title."""
    return Entries(archive, indexed_kb).of(message_id)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """What the entries of one session share, under the secrets known in it."""

    secrets: Mapping[str, str]
    session: Session | None
    title: str
    order: list[str]
    places: dict[str, int]
    made: dict[str, tuple[Message, Document]] = field(default_factory=dict)
    """Messages that are waiting and of which only what was said was asked for so far."""
    spoken: dict[str, str] = field(default_factory=dict)


class Entries:
    """Messages of one moment as the indexes take them; what several of them need is made once.

    With `windows` false they have no window, which only the lexical index asks for. `ids` are the messages that will be
    asked for: the window of a neighbour takes what was said from the same document.
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
        """The entry of one message; None where the archive has none.

        What is recognised in it is hidden in the whole session from now on, and in the entry itself.
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
        made = conversation.made.pop(message_id, None) or self._made(message_id, conversation)
        if made is None:
            return None
        message, text = made
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
        if conversation is None or conversation.secrets is not secrets:  # else what is kept may show a secret
            session = self._archive.session(session_id)
            order = self._archive.message_ids(session_id)
            places = {message_id: place for place, message_id in enumerate(order)}
            title = redact(session.title) if session is not None else ""
            conversation = _Conversation(secrets, session, title, order, places)
            self._conversations[session_id] = conversation
        return conversation

    def _made(self, message_id: str, conversation: _Conversation) -> tuple[Message, Document] | None:
        message = self._archive.message(message_id)
        if message is None:
            return None
        return message, document(message, conversation.session, self._indexed_kb)

    def _window(self, message: Message, text: Document, conversation: _Conversation) -> str:
        place = conversation.places.get(message.id, 0)
        before = [self._spoken(other, conversation) for other in conversation.order[max(0, place - BEFORE) : place]]
        if message.id not in conversation.spoken:
            conversation.spoken[message.id] = spoken_text(text.sections)
        return window([*before, conversation.spoken[message.id]], conversation.title, message.created)

    def _spoken(self, message_id: str, conversation: _Conversation) -> str:
        """What was said in a neighbour."""
        if message_id not in conversation.spoken:
            conversation.spoken[message_id] = self._said(message_id, conversation)
        return conversation.spoken[message_id]

    def _said(self, message_id: str, conversation: _Conversation) -> str:
        if message_id in self._ids:
            made = self._made(message_id, conversation)
            if made is not None:
                conversation.made[message_id] = made
                return spoken_text(made[1].sections)
            return ""
        message = self._archive.message(message_id)
        if message is None:
            return ""
        # Its tool calls are left out first: redacting them takes time.
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
        """Index up to `limit` messages, newest first; fewer where they are large, or `stop` says so after one.

        Raises:
            IndexBroken: the index must be rebuilt; the outbox is as it was.
        """
        waiting = self._archive.outbox(self.stage, limit)
        entries = Entries(self._archive, self._indexed_kb, ids={message_id for message_id, _, _ in waiting})
        made: list[Entry] = []
        gone: list[str] = []
        size = 0
        for message_id, _, _ in waiting:
            entry = entries.of(message_id)
            if entry is None:
                gone.append(message_id)
            else:
                made.append(entry)
                size += sum(len(section.text) for section in entry.document.sections)
            if size > _MOST_TEXT or stop():
                break
        done = len(made) + len(gone)
        self._index.replace(made)
        if gone:
            self._index.remove(gone)
        self._archive.done(waiting[:done])
        return Drained(messages=done)


class SemanticDrain:
    """Feeds the semantic index: what was said first, newest first; tool calls when nothing else waits.

    Tool calls of which the archive has the vectors already do not wait, so an index is rebuilt in one pass.
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
        what: str = "all",
    ) -> None:
        """`what`: embedding.what of the configuration."""
        self._archive = archive
        self._index = index
        self._embedder = embedder
        self._indexed_kb = indexed_kb
        self._embedded_kb = embedded_kb
        self._batch = batch
        self._what = what

    def step(self, limit: int = 16, stop: Callable[[], bool] = lambda: False) -> Drained:
        """Embed and index up to `limit` messages, newest first.

        `stop` is called between batches; vectors made until then are kept, the messages stay in the outbox.

        Raises:
            ModelUnavailable: the model server is down; the outbox is as it was.
            IndexBroken: the index must be rebuilt; the vectors are in the archive, the outbox is as it was.
        """
        stage = "semantic" if self._archive.waiting("semantic") or self._what != "all" else TOOLS
        waiting = self._archive.outbox(stage, limit)
        pairs: list[tuple[Chunk, Entry]] = []
        unread: dict[str, bool] = {}
        later: list[str] = []
        entries = Entries(self._archive, self._indexed_kb, windows=False)
        for message_id, _, _ in waiting:
            entry = entries.of(message_id)
            said, tools = chunks_of(entry.document, self._embedded_kb, self._what) if entry is not None else ([], [])
            now = tools if stage == TOOLS else [chunk for chunk in tools if self._is_embedded(chunk)]
            if len(now) < len(tools):
                later.append(message_id)
            legible = [chunk for chunk in (*said, *now) if reads(self._embedder, chunk.text)]
            unread[message_id] = bool(said or tools) and not legible and len(now) == len(tools)
            pairs += [(chunk, entry) for chunk in legible if entry is not None]
        made = self._vectors([chunk for chunk, _ in pairs], stop)
        if made is None:
            return Drained()
        vectors, embedded, refused = made
        rows = [
            VectorRow(chunk, vectors[chunk_digest(chunk)], entry)
            for chunk, entry in pairs
            if chunk_digest(chunk) in vectors
        ]  # fmt: skip
        self._index.upsert(rows)
        kept: dict[str, set[str]] = {message_id: set() for message_id in unread}
        for row in rows:
            kept[row.chunk.message_id].add(row.chunk.id)
        self._index.keep(kept)
        self._archive.put_unread(index_contents(self._embedder, self._what), unread)
        self._postpone(later)
        self._archive.done(waiting)
        return Drained(len(waiting), len(pairs), embedded, refused, sum(unread.values()), stage)

    def _is_embedded(self, chunk: Chunk) -> bool:
        return self._archive.vector(index_fingerprint(self._embedder), chunk_digest(chunk)) is not None

    def _postpone(self, message_ids: Sequence[str]) -> None:
        """Have their tool calls embedded after everything that was said."""
        batch = self._archive.batch()
        for message_id in message_ids:
            state = self._archive.state(message_id)
            if state is not None:
                batch.enqueue_in(TOOLS, message_id, state["created"], state["hash"])
        if len(batch):
            self._archive.commit(batch)

    def _vectors(self, wanted: Sequence[Chunk], stop: Callable[[], bool]) -> tuple[dict[str, Vector], int, int] | None:
        """Vectors by the hash of the text, from the archive or from the embedder, which is asked once a text."""
        fingerprint = index_fingerprint(self._embedder)
        vectors: dict[str, Vector] = {}
        missing: dict[str, Chunk] = {}
        for chunk in wanted:
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
            made = self._embedder.embed([chunk.text for _, chunk in group])
            new: list[tuple[str, Vector]] = []
            batch = self._archive.batch()
            for (sha, chunk), vector in zip(group, made, strict=True):
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
    """Names the model and the chunker: what vectors are kept under, and a semantic index is filled with.

    With another model or chunker everything is embedded again, so old and new chunks never mix.
    """
    return f"{embedder.fingerprint}-{CHUNKER_VERSION}"


def index_contents(embedder: Embedder, what: str) -> str:
    """Names what a semantic index holds: vectors of this model and chunker, of what is legible and to be embedded."""
    return f"{index_fingerprint(embedder)}-l{LEGIBLE_VERSION}-{what}"


def chunks_of(document: Document, embedded_kb: int, what: str) -> tuple[list[Chunk], list[Chunk]]:
    """The chunks of what was said, and those of tool calls, numbered on; `what` is embedding.what."""
    parts = [[section for section in document.sections if (section.kind in SAID) is said] for said in (True, False)]
    said, tools = (chunks(replace(document, sections=tuple(some)), embedded_kb) for some in parts)
    numbered = [replace(chunk, number=chunk.number + len(said)) for chunk in tools]
    return said, numbered if what == "all" else []


def chunk_digest(chunk: Chunk) -> str:
    """The hash under which a chunk's vector is kept: of its text alone, so equal texts share one."""
    return hashlib.sha256(chunk.text.encode("utf-8", "replace")).hexdigest()


def _groups(items: list[tuple[str, Chunk]], size: int) -> Iterator[list[tuple[str, Chunk]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
