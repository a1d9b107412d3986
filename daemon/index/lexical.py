"""The lexical index: tantivy over the redacted text of every part, behind the LexicalIndex protocol.

The only importer of tantivy. It guarantees that a commit is whole or absent after any kill, that what it opens passed
its checksums, and that a hit contains what was asked: an absent identifier finds nothing, a literal is verified
against the stored text. It is derived data: damage raises IndexBroken, the caller parks the directory and rebuilds.
It does not redact, rank across indexes or cut snippets.
"""

from __future__ import annotations

import contextlib
import posixpath
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tantivy
from tantivy import FieldType, Occur, Order, Query, TextAnalyzerBuilder, Tokenizer

from daemon.errors import ArchiveLocked, IndexBroken, ReconstituteError, Retry
from daemon.index import Entry, Filters, Match, segments, tokens
from daemon.index.tokens import Form, Term
from daemon.model import Kind, Section

SCHEMA = 1
"""Raised whenever fields or tokens change; an index of another number is rebuilt."""

WEIGHTS = (
    ({"prompt", "answer", "title"}, 1.0),
    ({"reasoning", "task"}, 0.8),
    ({"tool_input"}, 0.6),
    ({"tool_output"}, 0.4),
)
"""What was said ranks above what tools printed; each group is searched for itself, so none crowds out another."""

_HEAP_BYTES = 64_000_000
_MOST_TERMS = 48
_MOST_GRAMS = 96
_PAGE = 64
_END = "\0\0"  # stands after every text, so that each of its characters begins a trigram
_STOP_TEXT = (
    "a an and are as at be but by can could did do does for from had has have how i if in into is it its me my no "
    "not of on or our should so that the their them then there these they this to was we were what when where "
    "which who why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def _version() -> str:
    return f"{SCHEMA} {version('tantivy')}"


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in ("message_id", "part_id", "session_id", "kind", "role", "tool", "project_id"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("directory", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("every", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("created", stored=True, indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("bag", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("trigrams", tokenizer_name="trigram", index_option="basic")
    builder.add_bytes_field("text", stored=True)
    return builder.build()


class Lexical:
    """LexicalIndex in one directory. Thread-safe; one process at a time.

    Raises:
        IndexBroken: damaged, partly deleted, or of another schema or tantivy version.
        ArchiveLocked: another process has it open.
    """

    def __init__(self, directory: Path) -> None:
        self._dir = directory
        self._lock = threading.RLock()
        self._writer: Any = None
        with self._named("opening it"):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = not any(directory.iterdir())
            if not fresh:
                segments.verify(directory, _version())
            self._schema = _schema()
            self._index = tantivy.Index(self._schema, path=str(directory), reuse=True)
            self._index.register_tokenizer("trigram", TextAnalyzerBuilder(Tokenizer.ngram(3, 3)).build())
            if fresh:
                segments.stamp(directory, _version())
            self._open_writer()
            self._index.reload()
            self._check_counts()

    def replace(self, entries: Iterable[Entry]) -> None:
        """Put these messages' documents in, in place of what was there for the same messages; durable on return."""
        with self._lock, self._named("writing to it"), self._transaction() as writer:
            for entry in entries:
                writer.delete_documents_by_term("message_id", entry.document.message_id)
                for number, section in enumerate(entry.document.sections):
                    writer.add_document(_document(entry, section, number))

    def remove(self, message_ids: Sequence[str]) -> None:
        """Forget these messages; durable on return."""
        with self._lock, self._named("removing from it"), self._transaction() as writer:
            for message_id in message_ids:
                writer.delete_documents_by_term("message_id", message_id)

    def search(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """Best parts for the words of `query` in any order, best first, at most one per part.

        Parts that hold every word come before parts that hold some. A query of one identifier finds only that
        identifier, however it is spelt: rateLimit, rate-limit, rate_limit, "rate limit".
        """
        wanted = _content(query)
        if not wanted or limit < 1:
            return []
        with self._named("searching it"):
            clauses = [self._clause(term) for term in wanted]
            found: list[tuple[float, Any]] = []
            searcher = self._index.searcher()
            for kinds, weight in WEIGHTS:
                chosen = kinds & set(filters.kinds) if filters.kinds else kinds
                if chosen:
                    restricted = self._restricted(self._ranked(wanted, clauses), filters, sorted(chosen))
                    hits = searcher.search(restricted, limit * 2 + 8, False).hits
                    found += [(score * weight, address) for score, address in hits]
            found.sort(key=lambda pair: -pair[0])
            matches = self._unique(searcher, found, limit)
            return self._with_terms(searcher, matches, wanted, clauses)

    def literal(self, text: str, filters: Filters, limit: int) -> list[Match]:
        """Parts whose text contains `text` as it stands, case-insensitively: verified, newest first."""
        needle = text.casefold()
        if not needle or limit < 1:
            return []
        with self._named("searching it"):
            searcher = self._index.searcher()
            candidates = self._restricted(self._candidates(searcher, needle), filters, filters.kinds)
            found: dict[tuple[str, str], Match] = {}
            offset = 0
            while len(found) < limit:
                page = searcher.search(candidates, _PAGE, False, "created", offset, Order.Desc).hits
                for created, address in page:
                    match = _match(searcher.doc(address), float(created), (text,))[1]
                    if needle in match.text.casefold():
                        found.setdefault((match.message_id, match.part_id), match)
                if len(page) < _PAGE:
                    break
                offset += _PAGE
            return list(found.values())[:limit]

    def count(self) -> int:
        """How many parts it holds (a tool's input and output count apart)."""
        with self._named("counting"):
            return int(self._index.searcher().num_docs)

    def close(self) -> None:
        """Wait for merges and release files. Never fails: what is broken is parked by the caller all the same."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(IndexBroken, Retry), self._named("closing it"):
                    writer.wait_merging_threads()

    def _open_writer(self) -> None:
        try:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
        except ValueError as error:
            if "lock" not in str(error).lower():
                raise
            raise ArchiveLocked(
                f"{self._dir}: another process writes this index; stop the other daemon, or ask it instead"
            ) from None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        """One commit, or nothing: what failed halfway is rolled back."""
        if self._writer is None:
            raise IndexBroken(f"{self._dir}: the lexical index is closed; open it again")
        try:
            yield self._writer
            self._writer.commit()
        except BaseException:
            try:
                self._writer.rollback()
            except Exception:  # noqa: BLE001 - the failure that led here is the one to tell
                self._writer = None
            raise
        self._index.reload()

    @contextlib.contextmanager
    def _named(self, doing: str) -> Iterator[None]:
        """Turn whatever tantivy raises, Rust panics too, into an error that names the directory and the cause."""
        try:
            yield
        except ReconstituteError:
            raise
        except BaseException as error:
            # A panic in Rust arrives as a BaseException of a class that cannot be imported.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if isinstance(error, TypeError | AttributeError | NameError):
                raise  # ours
            if "No space left" in str(error):
                raise Retry(f"{self._dir}: the disk is full; free some space, writing goes on by itself") from error
            raise IndexBroken(
                f"{self._dir}: the lexical index failed while {doing}: {error}; it is rebuilt from the archive"
            ) from error

    def _check_counts(self) -> None:
        """meta.json carries no checksum; the postings of a term that every document has must bear it out."""
        searcher = self._index.searcher()
        stated = sum(int(segment["max_doc"]) for segment in segments.meta(self._dir)["segments"])
        every = Query.term_query(self._schema, "every", "1", "basic")
        result: Any = searcher.search(every, 1, True)  # tantivy's stub lacks `count`
        if searcher.doc_freq("every", "1") != stated or result.count != searcher.num_docs:
            raise IndexBroken(
                f"{self._dir}: meta.json states {stated} documents, the segments hold others; rebuild the index"
            )

    def _clause(self, term: Term) -> Query:
        """What a document must hold to match one term of the query."""
        if term.form is Form.WORD:
            return _any([(self._term("words", term.whole), 1.0), (self._term("bag", tokens.stem(term.whole)), 0.7)])
        if term.form is Form.NAME:
            return _any([(self._term("words", term.whole), 2.0), (self._phrase(term.pieces), 1.0)])
        if term.form is Form.PATH:
            return _any([(self._phrase(term.sequence), 1.0), (self._term("bag", term.whole), 2.0)])
        if len(term.whole) == 1:
            return self._term("bag", term.whole)
        if len(term.whole) <= 4:
            return self._phrase(term.sequence)
        return _any([(self._term("words", pair), 1.0) for pair in term.sequence[:_MOST_TERMS]])

    def _ranked(self, wanted: list[Term], clauses: list[Query]) -> Query:
        if len(clauses) == 1:
            return clauses[0]
        should = [(Occur.Should, clause) for clause in clauses]
        complete = Query.boolean_query([(Occur.Must, clause) for clause in clauses])
        should.append((Occur.Should, Query.boost_query(complete, 3.0)))
        sequence = [token for term in wanted for token in term.sequence]
        should.append((Occur.Should, Query.boost_query(self._phrase(sequence), 2.0)))
        plain = [term.whole for term in wanted if term.form is Form.WORD]
        if len(plain) == len(wanted) <= 4:  # "rate limit" means rateLimit as well
            should.append((Occur.Should, Query.boost_query(self._term("words", "".join(plain)), 3.0)))
        return Query.boolean_query(should)

    def _term(self, field: str, token: str) -> Query:
        return Query.term_query(self._schema, field, token, "freq")

    def _phrase(self, sequence: Sequence[str]) -> Query:
        if len(sequence) == 1:
            return self._term("words", sequence[0])
        return Query.phrase_query(self._schema, "words", list(sequence))

    def _candidates(self, searcher: Any, needle: str) -> Query:
        """Documents that may contain `needle`: all its trigrams, or for a shorter one any trigram it begins."""
        needle = _storable(needle).decode()
        if len(needle) < 3:
            grams = [gram for gram, _ in searcher.terms_with_prefix("trigrams", needle)]
            return Query.term_set_query(self._schema, "trigrams", grams) if grams else Query.empty_query()
        grams = list(dict.fromkeys(needle[i : i + 3] for i in range(len(needle) - 2)))[:_MOST_GRAMS]
        return Query.boolean_query(
            [(Occur.Must, Query.term_query(self._schema, "trigrams", gram, "basic")) for gram in grams]
        )

    def _restricted(self, query: Query, filters: Filters, kinds: Sequence[str]) -> Query:
        """`query` and the filters, which do not score."""
        exact = {
            "session_id": filters.session_id,
            "project_id": filters.project_id,
            "directory": _normal_directory(filters.directory),
            "role": filters.role,
            "tool": filters.tool,
        }
        limits = [Query.term_query(self._schema, name, value, "basic") for name, value in exact.items() if value]
        if kinds:
            limits.append(Query.term_set_query(self._schema, "kind", list(kinds)))
        if filters.after is not None or filters.before is not None:
            after, before = filters.after, filters.before
            integer, open_end = FieldType.Integer, before is None
            limits.append(Query.range_query(self._schema, "created", integer, after, before, True, open_end))
        if not limits:
            return query
        silent = [(Occur.Must, Query.const_score_query(limit, 0.0)) for limit in limits]
        return Query.boolean_query([(Occur.Must, query), *silent])

    def _unique(self, searcher: Any, found: list[tuple[float, Any]], limit: int) -> dict[str, Match]:
        """The best `limit` matches by key, one per part."""
        matches: dict[str, Match] = {}
        seen: set[tuple[str, str]] = set()
        for score, address in found:
            key, match = _match(searcher.doc(address), score, ())
            part = (match.message_id, match.part_id)
            if part not in seen:
                seen.add(part)
                matches[key] = match
            if len(matches) == limit:
                break
        return matches

    def _with_terms(
        self, searcher: Any, matches: dict[str, Match], wanted: list[Term], clauses: list[Query]
    ) -> list[Match]:
        """Name the words of the query that each match holds: one small query a word, not a reading of the texts."""
        if not matches:
            return []
        among = Query.term_set_query(self._schema, "key", list(matches))
        held: dict[str, list[str]] = {key: [] for key in matches}
        for term, clause in zip(wanted, clauses, strict=True):
            both = Query.boolean_query([(Occur.Must, clause), (Occur.Must, among)])
            for _, address in searcher.search(both, len(matches), False).hits:
                held[searcher.doc(address).get_first("key")].append(term.text)
        return [
            Match(m.message_id, m.score, m.part_id, m.kind, m.tool, m.text, tuple(held[key]))
            for key, m in matches.items()
        ]


def _content(query: str) -> list[Term]:
    """The distinct terms of a query without the words that every text has, unless it has no others."""
    distinct = {(term.form, term.whole): term for term in reversed(list(tokens.terms(query)))}
    every = list(reversed(distinct.values()))
    return [term for term in every if term.whole not in _STOP_WORDS][:_MOST_TERMS] or every[:_MOST_TERMS]


def _any(clauses: Sequence[tuple[Query, float]]) -> Query:
    return Query.boolean_query([(Occur.Should, Query.boost_query(query, boost)) for query, boost in clauses])


def _storable(text: str) -> bytes:
    # A lone surrogate cannot be stored (docs/reliability.md, S14); what comes in should be free of them.
    return text.encode("utf-8", "replace")


def _normal_directory(directory: str) -> str:
    return posixpath.normpath(directory) if directory else ""


def _above(directory: str) -> Iterator[str]:
    """The directory and every one above it, so that one term answers "here or below"."""
    directory = _normal_directory(directory)
    while directory:
        yield directory
        parent = posixpath.dirname(directory)
        directory = parent if parent != directory else ""


def _document(entry: Entry, section: Section, number: int) -> tantivy.Document:
    text = _storable(section.text)
    clean = text.decode()
    words, bag = tokens.fields(clean)
    document = tantivy.Document()
    for name, value in (
        ("message_id", entry.document.message_id),
        ("part_id", section.part_id),
        ("session_id", entry.document.session_id),
        ("kind", str(Kind(section.kind))),
        ("role", entry.role),
        ("tool", section.tool),
        ("project_id", entry.project_id),
        ("key", f"{entry.document.message_id}/{number}"),
        ("every", "1"),
        ("words", words),
        ("bag", bag),
        ("trigrams", clean.casefold() + _END),
    ):
        document.add_text(name, value)
    for directory in _above(entry.directory):
        document.add_text("directory", directory)
    document.add_integer("created", entry.created)
    document.add_bytes("text", text)
    return document


def _match(document: Any, score: float, held: tuple[str, ...]) -> tuple[str, Match]:
    def value(name: str) -> str:
        return str(document.get_first(name) or "")

    text = bytes(document.get_first("text") or b"").decode()
    match = Match(value("message_id"), score, value("part_id"), value("kind"), value("tool"), text, held)
    return value("key"), match
