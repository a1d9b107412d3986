"""Warnings beside the results, so that nobody mistakes other names or similar texts for what was searched.

Also warnings about messages that are not indexed or embedded yet, or that the model cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from daemon.display import counted, shorten
from daemon.hints import not_searchable
from daemon.index import TOOLS
from daemon.model import Kind
from daemon.recall.query import names
from daemon.recall.query.names import Standing
from daemon.recall.query.parse import Query, Tier, searched_terms, split
from daemon.recall.ranking.grouping import Result
from daemon.redact import redact

_MOST_LISTED = 8
_LONGEST_QUOTE = 80
_SAYS_LITTLE = frozenset({"many", "much", "often", "ever"})
"""Words of a question that are not worth a warning if no text has them."""


_UNSPELT = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
"""Names with digits, for which the index knows no similar spellings."""


@dataclass(frozen=True, slots=True)
class MissingTerms:
    """Terms of a query that were not found: `parts` are its names and words that no candidate holds.

    `unwritten` are those of its words that no text has at all. A word of a long question may be in some text and in
    none of the candidates.
    """

    parts: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()


def absent(query: Query, held: set[str], frequencies: Mapping[str, int]) -> MissingTerms:
    """The terms that no candidate holds; `held` are those that some do, in lower case.

    `frequencies` says in how many texts each term of the query is, in lower case.
    """
    pieces = split(held)
    words = [word for word in query.words if word not in pieces]
    if set(query.words) - _SAYS_LITTLE or query.named:
        words = [word for word in words if word not in _SAYS_LITTLE]
    names = [name for name in query.named if name.lower() not in held]
    return MissingTerms((*names, *words), tuple(word for word in words if frequencies.get(word) == 0))


_UNSEARCHABLE = (
    "the query contains what looks like a secret; secrets are removed from texts before a search, so nothing can match"
)


def is_only_similar(query: Query, mode: str, results: Sequence[Result]) -> bool:
    """Whether there are results, but none holds a word of the query, or the name if the query is a bare name.

    Always False for mode semantic, which does not search words.
    """
    if mode == "semantic":
        return False
    if not any(result.is_by_words for result in results):
        return bool(results)
    is_bare_name = query.is_exact and not query.words
    return is_bare_name and mode in {"smart", "hybrid"} and all(result.grade == Tier.NONE for result in results)


def word_warnings(
    query: Query,
    mode: str,
    results: Sequence[Result],
    missing: MissingTerms,
    *,
    is_inside: bool,
    is_limited: bool,
    is_sure: bool,
) -> list[str]:
    """Warnings if results hold other names, or are only similar.

    `is_inside`: the words are only inside longer ones; `is_limited`: filters excluded texts; `is_sure`: the search by
    words was complete.
    """
    if redact(query.text) != query.text:  # do not reveal whether the secret is recorded
        return [_UNSEARCHABLE]
    texts = "current text" if is_sure else "text that could be searched"
    nothing = f"no {texts} within the filters contains" if is_limited else f"no {texts} contains"
    if mode == "literal":
        return _inside_only((query.text.strip(),), results) if _is_single_name(query) else []
    if mode not in {"smart", "hybrid", "fuzzy"}:
        return []
    if not any(result.is_by_words for result in results):
        unsought = [] if is_inside or any(result.spelling_pairs for result in results) else _unsought(query.named)
        return [_wordless(query, results, nothing, is_inside=is_inside), *unsought]
    unwritten = missing.unwritten
    held = "a part of that" if set(unwritten).issuperset(searched_terms(query)) else "the other words"
    absent_words = [f"{nothing} {_as_words(unwritten)}; these results contain {held}"] if unwritten else []
    if query.is_exact and mode != "fuzzy":
        return _name_warnings(query, results, nothing) + absent_words
    if mode == "fuzzy":  # similar spellings have no tiers
        warnings = _absent_names(query, missing, nothing, is_inside=is_inside)
    else:
        alike = sum(result.mode == "semantic" for result in results)
        warnings = [f"the last {_results(alike)} only similar in meaning"] if alike and query.is_short else []
    if not query.is_exact and _is_single_name(query):
        warnings += _inside_only((query.phrase,), results)
    similar = sum(bool(result.spelling_pairs) for result in results)
    return absent_words + warnings + ([f"{_results(similar)} only spelt similarly: see near"] if similar else [])


def _wordless(query: Query, results: Sequence[Result], nothing: str, *, is_inside: bool) -> str:
    """The warning if no result holds a word of the query."""
    terms = searched_terms(query)
    query_terms = _listed(terms) or _quoted(query.text)
    has_spellings = any(result.spelling_pairs for result in results)
    remark = "these results are only similar in meaning" if results else "nothing was found"
    if results and all(not result.is_own for result in results):
        remark = "only the titles or dates of these messages, or messages before them, contain some of it"
    if is_inside:
        advice = (
            ": see near" if has_spellings else f"; `match=literal` finds it there{f'; {remark}' if results else ''}"
        )
        inside = [query.phrase] if query.phrase else terms
        return _inside_longer(inside, "words") + advice
    if has_spellings:
        return f"{nothing} {query_terms}; these results contain words with similar spellings"
    is_looked_up = query.is_exact or len(terms) <= 1
    return f"{nothing} {query_terms if is_looked_up else _as_words(terms)}; {remark}"


def _name_warnings(query: Query, results: Sequence[Result], nothing: str) -> list[str]:
    named = _listed(query.named)
    best = min((result.grade for result in results), default=int(Tier.NONE))
    without = sum(result.grade == Tier.NONE for result in results)
    if best == Tier.NONE:
        remark = "contain other words of the query" if query.words else "are only similar"
        return [f"{nothing} {named}; these results {remark}", *_unsought(query.named)]
    warnings = []
    if best == Tier.SOME:
        warnings.append(f"no message contains all of {named}")
    if best == Tier.INSIDE:
        warnings.append(_inside_longer(query.named))
    if without:
        warnings.append(f"the last {'result does' if without == 1 else f'{without} results do'} not contain {named}")
    return warnings


def _absent_names(query: Query, missing: MissingTerms, nothing: str, *, is_inside: bool) -> list[str]:
    """Warnings of mode fuzzy about names that no result holds."""
    absent = [name for name in query.named if name in missing.parts]
    remark = "these results contain other words of the query, or words with similar spellings"
    if not absent:
        return []
    if not is_inside:
        return [f"{nothing} {_listed(absent)}; {remark}", *_unsought(absent)]
    return [f"{_inside_longer(absent)}; {remark}"]


def _unsought(absent: Sequence[str]) -> list[str]:
    """A warning about absent names for which no similar spellings were searched."""
    unsought = [name for name in absent if _UNSPELT.search(name)]
    return [f"similar spellings are searched only for words without digits, so not for {_listed(unsought)}"] * bool(
        unsought
    )


def _inside_longer(named: Sequence[str], longer: str = "names") -> str:
    if len(named) == 1:
        return f"{_listed(named)} occurs only inside longer {longer}{_otherwise(named)}"
    return f"{_listed(named)} occur only inside longer {longer}{_otherwise(named)}"


def _is_single_name(query: Query) -> bool:
    """Whether the whole query is a name, or a compound such as ``max-shard`` that may be one."""
    return query.named == (query.text.strip(),) or ("-" in query.phrase and " " not in query.phrase)


def _inside_only(named: Sequence[str], results: Sequence[Result]) -> list[str]:
    """A warning if the query looks like a name, and each result has it only inside a longer one."""
    texts = [result.match.text for result in results if result.is_by_words and result.match.text]
    if not texts or any(names.stands(name, text) is Standing.WHOLE for text in texts for name in named):
        return []
    return [f"these results contain {_listed(named)} only inside longer names{_otherwise(named)}"]


def _otherwise(named: Sequence[str]) -> str:
    """An addition for names with marks, which may be in the text with other marks."""
    is_plain = all(re.fullmatch(r"[^\W_][\w -]*[^\W_]", name) for name in named)
    return "" if is_plain else ", or with other marks"


def _as_words(words: Sequence[str]) -> str:
    """Terms that were searched as whole words; they may be inside longer ones."""
    return f"{_listed(words)} as {'a word' if len(words) == 1 else 'words'}"


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_LISTED} more" if len(words) > _MOST_LISTED else ""
    return ", ".join(map(_quoted, words[:_MOST_LISTED])) + more


def _quoted(text: str) -> str:
    return repr(shorten(redact(text), _LONGEST_QUOTE))


def _results(number: int) -> str:
    return "result is" if number == 1 else f"{number} results are"


# -- days, and what was searched for instead ---------------------------------------------------------------------------


def substituted_names(instead: Sequence[tuple[str, str]], *, is_limited: bool, is_any: bool) -> list[str]:
    """Warnings if no text has a name: `instead` are (name, name that was searched for instead)."""
    nothing = "no current text within the filters contains" if is_limited else "no current text contains"
    remark = "these are results for" if is_any else "searched instead for"
    return [f"{nothing} {_quoted(name)}; {remark} {_quoted(substitute)}" for name, substitute in instead]


def days_alone(query: Query, kinds: Collection[str]) -> list[str]:
    """The warning for a query that names only days; `kinds` are those of the results."""
    days = ", ".join(map(str, query.days))
    if not kinds:
        return [f"none of the newest messages from {days} matches the filters"]
    listed = "prompts" if set(kinds) == {Kind.PROMPT} else "messages within the filters"
    return [f"the query names only days: these are the {listed} from {days}"]


def empty_days(query: Query, *, is_limited: bool) -> list[str]:
    """Warnings about dates without messages, which were therefore searched as words."""
    nothing = "no message within the filters is" if is_limited else "no message is"
    return [f"{nothing} from {_quoted(text)} ({days})" for text, days in query.empty_days]


def outside_days(query: Query, times: Sequence[int]) -> list[str]:
    """A warning if results, of these epoch ms, are not of the days that the query names beside other words."""
    bounds = [days.bounds for _, days in query.nonempty_days]
    outside = sum(not any(first <= time < past for first, past in bounds) for time in times)
    if not bounds or not outside:
        return []
    named = " or ".join(f"{_quoted(text)} ({days})" for text, days in query.nonempty_days)
    count = f"{outside} of {len(times)} results {'is' if outside == 1 else 'are'} not"
    subject = "none of these results is" if outside == len(times) else count
    return [f"{subject} from {named}; `after` and `before` limit a search to days"]


# -- what is not indexed yet -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many of the `messages` each index, lexical or semantic, does not hold yet.

    `unread` messages are never embedded, because the model cannot read them. `is_served`: the service answers.
    `has_tools`: tool calls are embedded too; `missing["tools"]` counts messages whose calls are not embedded yet.
    """

    messages: int
    missing: Mapping[str, int]
    unread: int = 0
    is_served: bool = False
    has_tools: bool = True

    def shortfalls(
        self, states: Mapping[str, str], model: str, *, by_meaning_alone: bool, kinds: Collection[str] = ()
    ) -> list[str]:
        """What the searched indexes lack: a sentence about what waits, others about what will never be there.

        Messages that the model cannot read count only for a search by meaning alone. `kinds`: the only kinds searched.
        """
        searched = {index for index, state in states.items() if state != "off"}
        unread = self.unread if by_meaning_alone and "semantic" in searched else 0
        waits = {stage: self.missing.get(stage, 0) if stage in searched else 0 for stage in ("lexical", "semantic")}
        shows_tools = "semantic" in searched and (not kinds or TOOLS & set(kinds))
        tools = self.missing.get("tools", 0) if shows_tools else 0
        waiting = not_searchable(waits["lexical"], waits["semantic"], tools, is_served=self.is_served)
        sentences = [waiting] if waiting else []
        if unread:
            share = f"{self._share(self.missing['semantic'] + unread)} % of the messages are indexed by meaning"
            sentences.append(f"{share}; {model} cannot read {counted(unread, 'message')}; search by words for them")
        if not self.has_tools and by_meaning_alone and kinds and set(kinds) <= TOOLS:
            sentences.append('embedding.what is "said", so tool calls are found by words only; use `match=smart`')
        return sentences

    def _share(self, missing: int) -> int:
        return max(0, self.messages - missing) * 100 // max(1, self.messages)
