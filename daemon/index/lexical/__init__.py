"""The lexical index: tantivy over the redacted text of every part, behind the LexicalIndex protocol.

This package is the only importer of tantivy. A commit is whole or absent after any kill, what is opened has passed its
checksums, and a match contains what was searched for: an absent identifier finds nothing, unless similar spellings are
requested, and a literal is verified against the stored text. The index is derived data: damage raises IndexBroken, the
caller parks the directory and rebuilds. It does not redact, rank across indexes or cut snippets.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Query, TextAnalyzerBuilder, Tokenizer

from daemon.errors import ArchiveLocked, DiskFull, IndexBroken, ReconstituteError, Retry
from daemon.filesystem.disk_space import is_full
from daemon.index import PROSE, Entry, Filters, Match, number_of
from daemon.index.lexical import files, fuzzy, scan
from daemon.index.lexical.fuzzy import Vocabulary
from daemon.index.lexical.patterns import pattern as compiled
from daemon.index.lexical.query_terms import content, quotation, term_match_for
from daemon.index.lexical.ranking import (
    Candidate,
    Ranking,
    best_first,
    groups_for,
    unique_matches,
    window_matches,
    windows_with,
)
from daemon.index.lexical.schema import GROUPS, WINDOW, clean, documents, mark, schema
from daemon.index.lexical.searcher import Snapshot

__all__ = ["Lexical"]

_HEAP_BYTES = 64_000_000
_PARTS_PER_MESSAGE = 4
"""Parts per message, on average, that we score for given messages; the best ones."""
_LEAST_HEAP_BYTES = 15_000_000  # tantivy takes no less


class Lexical:
    """LexicalIndex in one directory, or in memory where none is given. Thread-safe; one process at a time.

    Raises:
        IndexBroken: damaged, partly deleted, or of another schema or tantivy version.
        ArchiveLocked: another process has it open.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._dir = directory or "in memory"
        self._lock = threading.RLock()
        self._writer: Any = None
        self._is_open = True
        self._vocabulary: Vocabulary | None = None
        self._loaded = 0
        with self._translated("opening it"):
            self._schema = schema()
            if directory is None:
                self._index = self._registered(tantivy.Index(self._schema))
            else:
                self._index = self._opened(directory)
            self._open_writer(_HEAP_BYTES if directory is not None else _LEAST_HEAP_BYTES)
            self._reload()
            if directory is not None:
                self._check_counts(directory)

    def _opened(self, directory: Path) -> tantivy.Index:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = not any(directory.iterdir())
        if not fresh:
            files.verify(directory, mark())
        index = self._registered(tantivy.Index(self._schema, path=str(directory), reuse=True))
        if fresh:
            files.stamp(directory, mark())
        return index

    @staticmethod
    def _registered(index: tantivy.Index) -> tantivy.Index:
        index.register_tokenizer("trigram", TextAnalyzerBuilder(Tokenizer.ngram(3, 3)).build())
        # By default tantivy reloads in a thread of its own, which may finish after ours and restore an older state:
        # matches disappeared again (seen once in a stress test).
        index.config_reader("manual")
        return index

    @staticmethod
    def verify(directory: Path) -> None:
        """Check every file of the index in a directory, which may be open.

        Raises:
            IndexBroken: naming the file and what is wrong with it.
        """
        try:
            files.verify(directory, mark())
        except IndexBroken:  # a commit or a merge may have replaced files since they were listed
            files.verify(directory, mark())

    # -- writing -------------------------------------------------------------------------------------------------

    def replace(self, entries: Iterable[Entry]) -> None:
        """Write these messages' documents and remove their older ones; durable on return."""
        words: set[str] = set()
        with self._lock, self._translated("writing to it"), self._transaction() as writer:
            for entry in entries:
                writer.delete_documents_by_term("message_id", clean(entry.document.message_id))
                for document, document_words in documents(entry):
                    writer.add_document(document)
                    if self._vocabulary is not None:
                        words.update(document_words.split())
            if self._vocabulary is not None:
                self._vocabulary.add(words)  # before the commit, so that no reader sees a text without its words

    def remove(self, message_ids: Sequence[str]) -> None:
        """Remove these messages; durable on return."""
        with self._lock, self._translated("removing from it"), self._transaction() as writer:
            for message_id in message_ids:
                writer.delete_documents_by_term("message_id", clean(message_id))

    # -- asking --------------------------------------------------------------------------------------------------

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        """Best parts for the words of `query` in any order, best first, at most one per part and kind.

        Parts that hold every word come before parts that hold some. A query of one identifier finds only that
        identifier, in any spelling: rateLimit, rate-limit, rate_limit, "rate limit". If no part holds any word, we
        return parts with a good part of a long run of a script without spaces.
        `least_prose`: see LexicalIndex.
        """
        terms = content(query)
        if not terms or limit < 1:
            return []
        with self._translated("searching it"):
            snapshot = self._snapshot()
            candidates: list[Candidate] = []
            for group, group_filters in groups_for(filters):
                most = max(limit, least_prose) if group.is_prose else limit
                ranked = Ranking(snapshot, group, terms, quotation(query)).best(group_filters, most)
                for candidate in ranked:
                    candidate.score *= group.weight
                candidates += ranked
            best = [match for match, _ in unique_matches(snapshot, best_first(candidates), terms, limit)]
            if len(best) < limit or sum(match.kind in PROSE for match in best) >= least_prose:
                return best
            statements = best_first([candidate for candidate in candidates if candidate.group.is_prose])
            known = {(match.message_id, match.part_id, match.kind) for match in best}
            for match, _ in unique_matches(snapshot, statements, terms, least_prose):
                if (match.message_id, match.part_id, match.kind) not in known:
                    best.append(match)
            return sorted(best, key=lambda match: -match.score)

    def windows(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """Best messages for the words of `query` when a message and the few before it are read as one text.

        One match a message, without part, kind, tool and text.
        """
        terms = content(query)
        if not terms or limit < 1:
            return []
        with self._translated("searching it"):
            snapshot = self._snapshot()
            return window_matches(snapshot, Ranking(snapshot, WINDOW, terms).best(filters, limit)[:limit], terms)

    def scores(
        self, query: str, filters: Filters, of_parts: Collection[str], of_windows: Collection[str]
    ) -> tuple[list[Match], list[Match]]:
        """The scores of these messages, however low: for parts as in `search`, for windows as in `windows`.

        Both arguments are message ids. A message that holds no word of `query` has no score.
        """
        terms = content(query)
        if not terms:
            return [], []
        with self._translated("searching it"):
            snapshot = self._snapshot()
            candidates: list[Candidate] = []
            messages = snapshot.of_messages(of_parts)
            for group, group_filters in groups_for(filters) if of_parts else ():
                ranking = Ranking(snapshot, group, terms, quotation(query))
                for candidate in ranking.best(group_filters, _PARTS_PER_MESSAGE * len(of_parts), messages):
                    candidate.score *= group.weight
                    candidates.append(candidate)
            matches = unique_matches(snapshot, best_first(candidates), terms, len(candidates))
            numbered = snapshot.keyed(map(number_of, of_windows))
            windows = Ranking(snapshot, WINDOW, terms).best(filters, len(of_windows), numbered) if of_windows else []
            return [match for match, _ in matches], window_matches(snapshot, windows, terms)

    def fuzzy(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """As `search`, but a similar spelling of a word counts too; `spelling_pairs` says which.

        One letter more, less, other or exchanged with its neighbour in words of 4 to 7 letters, two from 8 on, none in
        shorter words and in what has digits. A part with a word of the query ranks above one with a similar spelling.
        """
        terms = content(query)
        if not terms or limit < 1:
            return []
        with self._translated("searching it"):
            vocabulary, snapshot = self._known_words(), self._snapshot()
            spelt = fuzzy.similar_words(snapshot, vocabulary, terms)
            fuzzy_query = fuzzy.FuzzyQuery(terms, quotation(query), spelt)
            candidates: list[Candidate] = []
            for group, group_filters in groups_for(filters):
                candidates += fuzzy.by_closeness(snapshot, group, fuzzy_query, group_filters, limit)
            return [
                replace(match, spelling_pairs=fuzzy.pairs(match, candidate, terms))
                for match, candidate in unique_matches(snapshot, best_first(candidates), terms, limit)
            ]

    def literal(self, text: str, filters: Filters, limit: int) -> list[Match]:
        """Parts whose text contains `text`, case-insensitively; verified, newest first."""
        if not text or limit < 1:
            return []
        with self._translated("searching it"):
            return scan.literal(self._snapshot(), text, filters, limit)

    def regex(self, pattern: str, filters: Filters, limit: int, within_s: float) -> tuple[list[Match], bool]:
        """Parts whose text a regular expression (case-insensitive) matches, newest first; whether all were checked.

        `terms` are the first matched texts. If the pattern has neither a literal of three characters nor classes that
        few texts match, we read all parts, the newest first, until `limit` are found or the time is over.

        Raises:
            BadRequest: it is not a regular expression.
        """
        expression = compiled(pattern)
        if limit < 1:
            return [], True
        with self._translated("searching it"):
            return scan.matching(self._snapshot(), expression, filters, limit, within_s)

    def by_time(self, time: int, filters: Filters, limit: int, *, before: bool) -> list[Match]:
        """Parts of messages made before `time`, newest first; or made at `time` or later, oldest first."""
        if limit < 1:
            return []
        with self._translated("searching it"):
            return scan.by_time(self._snapshot(), time, filters, limit, before=before)

    def counts(self, filters: Filters, bounds: Sequence[int], without: Collection[str] = ()) -> list[int]:
        """See LexicalIndex."""
        with self._translated("counting"):
            return scan.counts(self._snapshot(), filters, bounds, without)

    def allowed_ids(self, filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
        """See AllowedIds."""
        with self._translated("searching it"):
            snapshot = self._snapshot()
            messages = snapshot.flag("part", "0") if among is None else snapshot.keyed(among)
            hits = snapshot.best(snapshot.restricted(messages, filters), most + 1)
            return None if len(hits) > most else snapshot.keys([address for _, address in hits])

    def frequencies(self, query: str) -> tuple[int, dict[str, int]]:
        """The number of windows, and how many hold each content term of `query`, spelt as in `query`.

        Windows that were replaced and not yet merged away count too.
        """
        with self._translated("counting"):
            snapshot = self._snapshot()
            term_matches = [term_match_for(term, WINDOW) for term in content(query)]
            windows = snapshot.frequency("part", "0")
            return windows, {term_match.term.text: windows_with(snapshot, term_match) for term_match in term_matches}

    def spellings(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Words of the index that are spelt like `word`, the most similar first, each with the number of its parts.

        Nothing is spelt like "". Such a call is used to load all words into memory.
        """
        if limit < 1:
            return []
        with self._translated("searching it"):
            vocabulary = self._known_words()
            if not word:
                self._read_endings(vocabulary)
            similar = fuzzy.spellings(self._snapshot(), vocabulary, word, limit)
            return [(similar_word, parts) for _, similar_word, parts in similar]

    def count(self) -> int:
        """How many parts it holds (a tool's input and output count apart)."""
        with self._translated("counting"):
            return self._count_flag("part")

    def close(self) -> None:
        """Wait for merges and release files. Never fails, because the caller parks a broken index anyway."""
        with self._lock:
            writer, self._writer, self._is_open = self._writer, None, False
            if writer is not None:
                with contextlib.suppress(IndexBroken, Retry), self._translated("closing it"):
                    writer.wait_merging_threads()

    # -- one state of the index ----------------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        vocabulary = self._vocabulary
        return Snapshot(self._schema, self._searcher(), vocabulary.endings if vocabulary is not None else None)

    def _known_words(self) -> Vocabulary:
        """All words among which similar spellings are searched: read once, then updated with each write."""
        vocabulary = self._vocabulary
        if vocabulary is None:
            with self._lock:  # no commit may come between reading the words and adding new ones
                if self._vocabulary is None:
                    searcher: Any = self._searcher()
                    self._vocabulary = Vocabulary(
                        word for group in GROUPS for word, _ in searcher.terms_with_prefix(group.spelt, "")
                    )
                vocabulary = self._vocabulary
        return vocabulary

    def _read_endings(self, vocabulary: Vocabulary) -> None:
        with self._lock:  # likewise
            if vocabulary.endings is None:
                searcher: Any = self._searcher()
                vocabulary.know_endings(
                    word for group in GROUPS for word, _ in searcher.terms_with_prefix(group.words, "")
                )

    def _count_flag(self, flag: str) -> int:
        query = Query.term_query(self._schema, flag, "1", "basic")
        result: Any = self._searcher().search(query, 1, True)  # tantivy's stub lacks `count`
        return int(result.count)

    def _check_counts(self, directory: Path) -> None:
        """Check the number of documents in meta.json, which has no checksum, against the postings of a common term."""
        searcher = self._searcher()
        stated = sum(int(segment["max_doc"]) for segment in files.meta(directory)["segments"])
        if searcher.doc_freq("every", "1") != stated or self._count_flag("every") != searcher.num_docs:
            raise IndexBroken(
                f"{self._dir}: meta.json states {stated} documents, the segments hold others; rebuild the index"
            )

    # -- tantivy's writer and its errors -------------------------------------------------------------------------

    def _open_writer(self, heap_bytes: int) -> None:
        try:
            self._writer = self._index.writer(heap_bytes, 1)
        except ValueError as error:
            if "lock" not in str(error).lower():
                raise
            raise ArchiveLocked(
                f"{self._dir}: another process writes this index; stop the other daemon, or ask it instead"
            ) from None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        """One commit, rolled back on any error."""
        if self._writer is None and self._is_open:  # closed after a full disk, when its rollback failed too
            self._open_writer(_HEAP_BYTES if isinstance(self._dir, Path) else _LEAST_HEAP_BYTES)
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
        self._reload()

    def _reload(self) -> None:
        self._loaded = self._changed()
        self._index.reload()

    def _changed(self) -> int:
        """When the directory's state was last written, by a commit or by a merge in the background."""
        return files.changed(self._dir) if isinstance(self._dir, Path) else 0

    def _searcher(self) -> Any:
        if self._changed() != self._loaded and self._lock.acquire(blocking=False):  # a writer reloads by itself
            try:
                self._reload()
            finally:
                self._lock.release()
        return self._index.searcher()

    @contextlib.contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
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
            if is_full(error):
                raise DiskFull(f"{self._dir}: the disk is full; free some space, writing goes on by itself") from error
            raise IndexBroken(
                f"{self._dir}: the lexical index failed while {doing}: {error}; it is rebuilt from the archive"
            ) from error
