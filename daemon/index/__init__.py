"""The derived indexes: protocols, and their values.

All are disposable: they can be rebuilt from the archive, the semantic one without a model call. Their texts are
redacted already. `IndexBroken` from any call means: park the directory and rebuild.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from daemon.model import Chunk, Document, Kind, Vector

TOOLS = frozenset({str(Kind.TOOL_INPUT), str(Kind.TOOL_OUTPUT)})
PROSE = frozenset(map(str, Kind)) - TOOLS
"""The kinds of text that people and models write; the others are inputs and outputs of tools."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy; None or empty means any. Times are epoch ms, `after` inclusive, `before` exclusive.

    * `sessions`: only these (an empty set finds nothing); `besides`: not these, which are few
    * `path`: a path that the message touched or mentioned, or one beneath it; `former`: earlier names of this path
    * `deleted`: True: only messages that every source has deleted; False: only those that a source still has
    """

    session_id: str = ""
    project_id: str = ""
    directory: str = ""
    role: str = ""
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    after: int | None = None
    before: int | None = None
    sessions: frozenset[str] | None = None
    besides: frozenset[str] = frozenset()
    path: str = ""
    former: tuple[str, ...] = ()
    deleted: bool | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A message to be indexed: its document, and the fields of its session that filters and hits need.

    `window` is the redacted prose of this message and the few before it, so that a message is found by words of its
    neighbours. `deleted`: no source has the message any more; `gone`: ids of parts that no source has any more.
    """

    document: Document
    role: str
    created: int
    message_index: int
    session_title: str
    project_id: str
    directory: str
    window: str = ""
    deleted: bool = False
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One chunk with its vector and the entry it belongs to."""

    chunk: Chunk
    vector: Vector
    entry: Entry


@dataclass(frozen=True, slots=True)
class Match:
    """One candidate: a part (lexical) or a chunk (semantic) of a message; a higher score is better.

    `terms` are the words of the query that it holds, or the longest part of a long run of Chinese or the like.
    `spelling_pairs` are (word of the query, word of the text) for similar spellings. `record` is the chunk's id.
    `length`, of a window, is the number of characters of prose in the message itself.
    """

    message_id: str
    score: float
    part_id: str = ""
    kind: str = ""
    tool: str = ""
    text: str = ""
    terms: tuple[str, ...] = ()
    spelling_pairs: tuple[tuple[str, str], ...] = ()
    record: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class NoteRow:
    """One finding of a model, to be indexed. `id` names its content, `text` is redacted, `created` is epoch ms.

    `owner` is its archive; `target` and `question` (of that target) are keys for filters; `facts`, redacted, are for
    people who look into the collection.
    """

    id: str
    owner: str
    target: str
    question: str
    created: int
    text: str
    vector: Vector
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoteMatch:
    """A matching row: its id and target key; `score` is cosine similarity."""

    id: str
    target: str
    score: float


def number_of(name: str) -> int:
    """A number of 63 bits for a message id or another name, used where comparing texts is too slow."""
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class AllowedIds(Protocol):
    """Supplies the ids of the messages that pass filters."""

    def __call__(self, filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
        """The numbers (`number_of`) of the messages that pass; None where that would be more than `most`.

        A message passes a filter of kind or tool if one of its parts does. `among`: only these are checked; `most` must
        be at least their number.
        """


class LexicalIndex(Protocol):
    """Words, identifiers and substrings over redacted text."""

    def replace(self, entries: Iterable[Entry]) -> None:
        """Write these messages' documents and remove their older ones; durable on return."""

    def remove(self, message_ids: Sequence[str]) -> None:
        """Remove these messages; durable on return."""

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        """Best parts for the words of `query` in any order, best first, at most one per part and kind.

        Returns more than `limit` if needed to have `least_prose` matches of PROSE, if there are as many.
        """

    def literal(self, text: str, filters: Filters, limit: int) -> list[Match]:
        """Parts whose text contains `text`, case-insensitively; verified, newest first."""

    def windows(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """Best messages for the words of `query` when a message and the few before it are read as one text.

        One match a message, without part, kind, tool and text.
        """

    def scores(
        self, query: str, filters: Filters, of_parts: Collection[str], of_windows: Collection[str]
    ) -> tuple[list[Match], list[Match]]:
        """The scores of these messages, however low: for parts as in `search`, for windows as in `windows`.

        Both arguments are message ids. A message that holds no word of `query` has no score.
        """

    def fuzzy(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """As `search`, but a similar spelling of a word counts too; `spelling_pairs` says which.

        A part with a word of the query ranks above one that only has a similar spelling.
        """

    def regex(self, pattern: str, filters: Filters, limit: int, within_s: float) -> tuple[list[Match], bool]:
        """Parts whose text a regular expression (case-insensitive) matches, newest first; whether all were checked.

        `terms` are the first matched texts.

        Raises:
            BadRequest: it is not a regular expression.
        """

    def by_time(self, time: int, filters: Filters, limit: int, *, before: bool) -> list[Match]:
        """Parts of messages made before `time`, newest first; or made at `time` or later, oldest first."""

    def counts(self, filters: Filters, bounds: Sequence[int], without: Collection[str] = ()) -> list[int]:
        """How many messages were made from each of the ascending times in `bounds` until before the next one.

        Messages of the ids in `without` do not count, nor do those without text. Nothing is read but times.
        """

    def frequencies(self, query: str) -> tuple[int, dict[str, int]]:
        """The number of windows, and how many hold each content term of `query`, spelt as in `query`."""

    def spellings(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Words of the index that are spelt like `word`, the most similar first, each with the number of its parts."""

    def allowed_ids(self, filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
        """See AllowedIds."""

    def count(self) -> int:
        """How many parts it holds."""

    def close(self) -> None:
        """Release files."""


class SemanticIndex(Protocol):
    """Vectors of one fingerprint."""

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        """Write these chunks; they replace those of the same ids."""

    def keep(self, chunks: Mapping[str, Collection[str]]) -> None:
        """Remove the chunks of these messages whose ids are not named."""

    def query(
        self,
        vector: Vector,
        filters: Filters,
        limit: int,
        allowed_ids: AllowedIds | None = None,
        *,
        without_texts: bool = False,
    ) -> list[Match]:
        """Nearest chunks, best first; `score` is cosine similarity as the built-in model has it, `text` the chunk's.

        `allowed_ids` supplies the ids of the messages that pass the filters; without it the index filters by itself,
        which takes longer. `without_texts`: matches may lack kind, tool and text, which are slow to fetch; `with_texts`
        adds them.
        """

    def similarities(self, vector: Vector, filters: Filters, message_ids: Collection[str]) -> list[Match]:
        """The nearest chunk of each of these messages, of the kinds and tools asked for, as `query` has it.

        The messages pass the other filters already. One without vectors is not among them.
        """

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """These matches with kind, tool and text; unchanged if their chunk is not there any more."""

    def probe(self, sample: Sequence[tuple[str, Vector]]) -> None:
        """Check that each sampled (record id, vector) finds itself and that ids, texts and vectors can be read.

        Raises:
            IndexBroken: naming what failed.
        """

    def count(self) -> int:
        """How many chunks it holds (from Chroma's SQLite, so no proof of health)."""

    def close(self) -> None:
        """Release files."""


class NotesIndex(Protocol):
    """Findings of models, as vectors of one fingerprint. Every method raises IndexBroken or Retry."""

    is_whole: bool
    """Whether all notes of the archive were added since the index was opened; set by the caller that adds them."""

    def ids(self, owner: str, target: str = "") -> set[str]:
        """The rows of an archive, all or those of one target."""

    def upsert(self, rows: Sequence[NoteRow]) -> None:
        """Add these."""

    def remove(self, ids: Sequence[str]) -> None:
        """Remove these; a missing one is no error."""

    def query(
        self, vector: Vector, owner: str, limit: int, *, besides: str = "", until: int | None = None
    ) -> list[NoteMatch]:
        """Nearest notes of an archive, best first; none of the question `besides`, none newer than `until`."""

    def count(self) -> int:
        """How many notes it holds, of every archive."""
