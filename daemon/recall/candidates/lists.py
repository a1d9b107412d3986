"""The candidates of a search: one ranked list for each way of matching, not merged yet, and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from daemon.index import Match
from daemon.recall.candidates.stats import QueryStats
from daemon.recall.query import parse
from daemon.recall.weights import LEAST_COSINE, LEAST_OF_BEST_COSINE, SHORT_COSINE

WORDS = ("named", "phrase", "lexical", "tools", "printed")
"""The lists of matches by words; a message is shown by its match in the first list that has it.

Names and phrases come newest first. For these, tool outputs have lists of their own (`tools`, `printed`), because they
would crowd out prose.
"""
STANDING = ("named", "tools", "phrase", "printed")
"""The lists of texts that hold a name or phrase verbatim; in `named` and `tools` perhaps inside a longer name."""
WITHOUT_WORDS = ("windows", "semantic")
"""The lists whose messages need not hold a word of the query themselves."""
_ALL = (*WORDS, *WITHOUT_WORDS)


_WORD = re.compile(r"(?<!\S)(?=\S*\w)\S\S+")  # "x = 1" has none, and no meaning
_LETTERS_OF_A_WORD = 8  # at most, in scripts without spaces


def least_cosine(text: str) -> float:
    """The least similarity for a result by meaning alone: higher for short texts. "" is an unknown text."""
    words = _WORD.findall(text)
    count = max(len(words), sum(map(len, words)) / _LETTERS_OF_A_WORD)
    return LEAST_COSINE + (SHORT_COSINE / max(1.0, count) ** 2 if text else 0.0)


def is_similar(match: Match) -> bool:
    """Whether a match by meaning is similar enough to be a result without a word of the query."""
    return match.score >= least_cosine(match.text)


@dataclass(slots=True)
class CandidateLists:
    """Candidates by list, and what went wrong; `late` names what the deadline cut off.

    `more` has the scores of candidates that only other lists have (index_query.missing_scores), by list. They do not
    count when we check whether a list is full.
    """

    lists: dict[str, list[Match]] = field(default_factory=dict)
    more: dict[str, list[Match]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    stats: QueryStats = field(default_factory=lambda: QueryStats(0, {}))
    legible: float = 1.0  # the share of the question that the model can read
    known: float = 1.0  # the share of the question in words that the model knows
    legible_texts: float = 1.0  # the share of the messages with words of the question that the model can read
    waits_for: str = ""  # the model that is embedding the question
    is_inside: bool = False  # no text has the short query as words, but some have it inside longer ones

    def ids(self, name: str) -> list[str]:
        return parse.once(match.message_id for match in self.lists.get(name, []))

    def all_matches(self, name: str) -> list[Match]:
        """The matches of a list, and those that were scored for candidates of other lists."""
        return [*self.lists.get(name, []), *self.more.get(name, [])]

    def best(self) -> dict[str, Match]:
        """The match to show for each message: words before meaning, since they can be pointed at."""
        best: dict[str, Match] = {}
        for name in (*WORDS, "semantic", "windows"):
            for match in self.lists.get(name, []):
                best.setdefault(match.message_id, match)
        return best

    def terms(self) -> dict[str, list[str]]:
        """The words of the query that the word index found in each message.

        Verbatim matches are left out, because they may have a name inside a longer one, which is another name.
        """
        terms: dict[str, list[str]] = {}
        for match in self.all_matches("lexical"):
            terms.setdefault(match.message_id, []).extend(match.terms)
        return terms

    def similar_alone(self) -> set[str]:
        """The messages that are similar enough in meaning to be results even without a word of the query."""
        scores: dict[str, float] = {}
        for match in self.all_matches("semantic"):
            scores[match.message_id] = max(match.score, scores.get(match.message_id, match.score))
        floor = LEAST_OF_BEST_COSINE * max(scores.values(), default=0.0)
        return {
            match.message_id for match in self.all_matches("semantic") if match.score >= floor and is_similar(match)
        }

    def add_texts(self, with_texts: Callable[[Sequence[Match]], list[Match]]) -> None:
        """Add the texts of matches by meaning whose length decides whether they are similar enough."""
        matches = self.lists.get("semantic", [])
        unsure = [match for match in matches if LEAST_COSINE <= match.score < LEAST_COSINE + SHORT_COSINE]
        if unsure and not self.by_words():
            known = {match.record: match for match in with_texts(unsure)}
            self.lists["semantic"] = [known.get(match.record, match) for match in matches]

    def similar(self) -> set[str]:
        """The messages that are similar enough in meaning, or similar and with words of the query."""
        return self.similar_alone() | ({match.message_id for match in self.all_matches("semantic")} & self.by_words())

    def by_words(self) -> set[str]:
        """The messages that hold a word of the query, also inside a longer one."""
        return {match.message_id for name in WORDS for match in self.all_matches(name)}

    def texts(self) -> dict[str, list[str]]:
        """The texts of each message's matches, each once."""
        texts: dict[str, dict[str, None]] = {}
        for match in (match for matches in self.lists.values() for match in matches):
            texts.setdefault(match.message_id, {})[match.text] = None
        return {message_id: list(unique_texts) for message_id, unique_texts in texts.items()}

    def is_full(self, depth: int, among: Container[str] = _ALL) -> bool:
        """Whether one of the lists `among` may have had more than `depth`."""
        return any(len(matches) >= depth for name, matches in self.lists.items() if name in among)
