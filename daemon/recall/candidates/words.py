"""Candidates by words, with lists for each mode: smart, literal, fuzzy, regex, and the messages of days.

The word index also decides which names of a query are names in this archive. "declare/create", `int()` and "best
practices" may be names or words. They are names if the archive writes them as code, if few texts have them, or if a
short query quotes them. Otherwise they count as words, because as a name they would put every text that holds them
above the texts that answer the question.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from daemon.days import Days
from daemon.index import PROSE, TOOLS, Filters, LexicalIndex, Match
from daemon.index.tokens import STOP_WORDS
from daemon.model import Kind
from daemon.recall.candidates import fuzzy
from daemon.recall.candidates.index_query import is_over
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.candidates.stats import stats_of
from daemon.recall.query import names, parse
from daemon.recall.query.parse import MOST_SHORT, Query

_MOST_NAMES = 5
_LEAST_PROSE = 20
"""The least number of prose parts among the candidates by words, because tools print most words far more often."""


@dataclass(frozen=True, slots=True)
class WordSearch:
    """One search of the word index; each method fills lists of at most `depth` matches.

    `deadline` is on time.monotonic's clock; `with_windows`: also messages that are found by their neighbours.
    """

    lexical: LexicalIndex
    query: Query
    filters: Filters
    depth: int
    deadline: float
    with_windows: bool = True

    def in_mode(self, mode: str) -> Callable[[CandidateLists], None]:
        """The method that fills the lists in this mode."""
        return {"literal": self.literal, "fuzzy": self.fuzzy, "regex": self.regex}.get(mode, self.smart)

    def smart(self, candidates: CandidateLists) -> None:
        """Words, stemmed and in any order; names and phrases verbatim."""
        query, filters = self.query, self.filters
        candidates.stats = stats_of(self.lexical, query)
        least_prose = 0 if filters.kinds or filters.tools else _LEAST_PROSE
        candidates.lists["lexical"] = self.lexical.search(query.searched, filters, self.depth, least_prose=least_prose)
        held = {term for match in candidates.lists["lexical"] for term in match.terms}
        for name in query.named[:_MOST_NAMES]:
            if name not in held:  # the word index finds whole names, this all others
                for list_, matches in self._standing(name, ("named", "tools")):
                    candidates.lists[list_] = [*candidates.lists.get(list_, []), *matches]
        if query.phrase and (len(query.words) > 1 or " " in query.phrase or not candidates.lists["lexical"]):
            self._add_phrase(candidates)
        is_filtered = bool(filters.kinds or filters.tools or filters.role)  # a window spans several messages and kinds
        if self.with_windows and not is_filtered and not is_over(self.deadline):
            candidates.lists["windows"] = self.lexical.windows(query.searched, filters, self.depth)

    def _add_phrase(self, candidates: CandidateLists) -> None:
        # The word index also finds content words that are next to each other. More tool output would not help, so only
        # prose is searched completely. A phrase with stop words is found only here.
        phrase, lists = self.query.phrase, candidates.lists
        is_indexed = bool(lists["lexical"]) and len(self.query.words) == len(phrase.split())
        is_inside = False
        for list_, matches in self._standing(phrase, ("phrase", "printed")):
            lists[list_] = [match for match in matches if names.stands_in(phrase, match.text)]
            is_inside |= bool(matches)
            if is_indexed or len(lists[list_]) >= self.depth:
                break
        candidates.is_inside = is_inside and not lists.get("phrase") and not lists.get("printed")

    def literal(self, candidates: CandidateLists) -> None:
        """Every text that contains the query verbatim."""
        for list_, matches in self._standing(self.query.text, ("named", "tools")):
            candidates.lists[list_] = matches
        kinds = set(self.filters.kinds) or PROSE | TOOLS
        if len(candidates.lists) < sum(bool(kinds & group) for group in (PROSE, TOOLS)):
            candidates.late.append("not all texts were looked at")

    def fuzzy(self, candidates: CandidateLists) -> None:
        """Similar spellings, and what smart finds; a name that the word index found verbatim is not searched again."""
        query = self.query
        ranked = candidates.lists["lexical"] = self.lexical.fuzzy(query.searched, self.filters, self.depth)
        standing: list[Match] = []
        held = fuzzy.held_whole(query, ranked, is_all=len(ranked) < self.depth)
        missing = {*query.named[:_MOST_NAMES], query.phrase} - held - {""}
        for text in sorted(missing):
            for _, matches in self._standing(text, ("named", "tools")):
                standing += matches
        if standing or query.is_exact:
            candidates.lists["lexical"], candidates.is_inside = fuzzy.merged(query, ranked, standing)

    def regex(self, candidates: CandidateLists) -> None:
        """Every text that the pattern matches.

        Raises:
            BadRequest: it is not a regular expression.
        """
        within_s = max(0.05, self.deadline - time.monotonic())
        matches, is_complete = self.lexical.regex(self.query.text, self.filters, self.depth, within_s * 0.9)
        candidates.lists["named"] = matches
        if not is_complete and len(matches) < self.depth:
            candidates.late.append("not all texts were looked at")

    def of_days(self, candidates: CandidateLists) -> None:
        """The prompts of the days of a query that names only days, newest first, as matches by name.

        With a filter of kinds we list these kinds. If no prompt passes the filters, we list all kinds that do.
        """
        filters = self.filters
        days = [day for day in self.query.days if isinstance(day, Days)]

        def of_kinds(kinds: tuple[str, ...]) -> list[Match]:
            kind_filters = replace(filters, kinds=kinds)
            return [match for day in days for match in newest(self.lexical, day, kind_filters, self.depth)]

        contents = tuple(kind for kind in Kind if kind != Kind.TITLE)
        matches = of_kinds(filters.kinds or (Kind.PROMPT,)) or of_kinds(filters.kinds or contents)
        candidates.lists["named"] = sorted(matches, key=lambda match: -match.score)[: self.depth]

    def _standing(self, text: str, lists: tuple[str, str]) -> Iterator[tuple[str, list[Match]]]:
        """(name of the list, verbatim matches of `text`, newest first), until the deadline.

        Prose first, then tool inputs and outputs.
        """
        for list_, kinds in zip(lists, (PROSE, TOOLS), strict=True):
            chosen = kinds & set(self.filters.kinds) if self.filters.kinds else kinds
            if chosen and not is_over(self.deadline):
                kind_filters = replace(self.filters, kinds=tuple(sorted(chosen)))
                yield list_, self.lexical.literal(text, kind_filters, self.depth)


def newest(lexical: LexicalIndex, days: Days, filters: Filters, limit: int) -> list[Match]:
    """The newest messages of these days that pass the filters, newest first."""
    first, past = days.bounds
    first, past = max(first, filters.after or first), min(past, filters.before or past)
    return lexical.by_time(past, replace(filters, after=first, before=past), limit, before=True)


# -- what the archive's words say of a query's names -------------------------------------------------------------------


LEAST_COMMON = 10
"""A common word is in at least so many texts, however small the archive."""
COMMON_WORD = 0.01
"""From this share of all texts on, a word is so common that ``word()``, or a phrase of such words, is no name."""
COMMON_NAME = 0.05
"""The same for a name without marks, such as JavaScript, in a question of several other words."""
_MOST_LOOKED_AT = 20  # texts that have two words with a slash between them
_MOST_DOUBTFUL = 5
_ROW = re.compile(r"[^\W\d_]+(?:[/:][^\W\d_]+){1,2}")  # of more words it is a path
_LETTERS = re.compile(r"[A-Za-z]+")
_PIECE = re.compile(r"[^\W_]+")


def resolve_names(query: Query, lexical: LexicalIndex) -> Query:
    """The query, where names that are none in this archive count as plain words."""
    doubtful = [name for name in query.named if _is_doubtful(name, query)][:_MOST_DOUBTFUL]
    if not doubtful:
        return query
    texts, counts = lexical.frequencies(" ".join(piece for name in doubtful for piece in (name, *_words(name))))
    known = _Counts(texts, {term.casefold(): count for term, count in counts.items()})
    plain = [name for name in doubtful if _is_plain(name, known, lexical)]
    return parse.parse(query.text, frozenset(plain)) if plain else query


def closest_spelling(name: str, lexical: LexicalIndex) -> str:
    """The most similar spelling of `name` in any text, of the whole or word by word; "" if there is none."""
    return _closest_word(name, lexical) or _closest_words(name, lexical)


def _closest_word(word: str, lexical: LexicalIndex) -> str:
    for spelling, _ in lexical.spellings(word, 1):
        for match in lexical.search(spelling, Filters(), 1):
            return names.as_written(spelling, match.text)
    return ""


def _closest_words(name: str, lexical: LexicalIndex) -> str:
    """The name with the most similar spelling for each word that no text has; "" if a word has none."""
    _, counts = lexical.frequencies(_LETTERS.sub(r"\g<0> ", name))
    unknown = [word for word in _LETTERS.findall(name) if not counts.get(word, 1)]
    similar = {word: _closest_word(word, lexical) for word in unknown}
    if not similar or not all(similar.values()):
        return ""
    return _LETTERS.sub(lambda word: similar.get(word[0], word[0]), name)


@dataclass(frozen=True, slots=True)
class _Counts:
    texts: int
    having: Mapping[str, int]

    def of(self, word: str) -> int:
        return self.having.get(word.casefold(), 0)

    def is_common(self, word: str, share: float = COMMON_WORD) -> bool:
        return self.of(word) >= max(LEAST_COMMON, share * self.texts)


def _is_doubtful(name: str, query: Query) -> bool:
    is_long = len(query.words) > MOST_SHORT
    if _ROW.fullmatch(name):
        return all(map(names.is_plain, re.split("[/:]", name)))
    if names.is_plain(name):
        return f"{name}()" in query.text
    if " " in name:
        return is_long and all(map(names.is_plain, name.split()))
    return is_long and name.isalpha()


def _is_plain(name: str, known: _Counts, lexical: LexicalIndex) -> bool:
    if _ROW.fullmatch(name):
        return all(map(known.of, _words(name))) and not _is_code(name, lexical)
    if names.is_plain(name) or " " in name:
        return all(map(known.is_common, _words(name)))
    return known.is_common(name, COMMON_NAME)


def _words(name: str) -> Iterator[str]:
    """The words of the name, without stop words, which are not counted."""
    words = _PIECE.findall(name)
    yield from [word for word in words if word.lower() not in STOP_WORDS]


def _is_code(name: str, lexical: LexicalIndex) -> bool:
    """Whether at least half of the newest texts with the name have it as code: quoted, in a path, for a tool."""
    matches = lexical.literal(name, Filters(), _MOST_LOOKED_AT)
    escaped = re.escape(name)
    code = re.compile(rf"[/\\.~@`'\"-]{escaped}(?!\w)|(?<!\w){escaped}(?:[/\\`'\"(]|\.\w)", re.IGNORECASE)
    in_code = sum(match.kind == Kind.TOOL_INPUT or code.search(match.text) is not None for match in matches)
    return bool(matches) and 2 * in_code >= len(matches)
