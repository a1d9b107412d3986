"""Parses a query, and says how well a text holds it; pure functions.

If a query names an identifier or quotes a phrase, texts that hold it rank above texts that are merely similar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

from daemon.days import CalendarDate, Days, mentions
from daemon.errors import BadRequest
from daemon.index.tokens import MARKS, STOP_WORDS, UNSPACED
from daemon.recall.query import names
from daemon.recall.query.names import Standing

LONGEST_QUERY = 10_000
MOST_SHORT = 2
"""Content words of a short query: one or two words are looked up verbatim, more are a question."""

_QUOTED = re.compile(r'"([^"\n]{2,})"|“([^”\n]{2,})”|`([^`\n]{2,})`|「([^」\n]{2,})」|『([^』\n]{2,})』')
_WORD = re.compile(rf"[\w{MARKS}{UNSPACED}]+")
_TRIM = ".,;:!?()[]{}<>'\"`…"
# What separates words: white space, ideographic and full-width marks, but not 々 or 〇.
_BETWEEN = re.compile(r"[\s\u3000-\u3004\u3008-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+")
# The border between a script without spaces and another one; a path of both (docs/设计.md) stays whole.
_BORDER = re.compile(rf"(?<=[{UNSPACED}])(?=[^\W_{UNSPACED}])|(?:(?<=[^\W_{UNSPACED}])|(?<=\(\)))(?=[{UNSPACED}])")
_SPACED_LETTER = re.compile(rf"[^\W_{UNSPACED}]")
_ROW_MARK = re.compile(r"[/:]")
_OF_DAYS = frozenset({"happen", "happened", "happening", "work", "worked", "working", "done", "doing", "ask", "asked"})
"""Words, besides stop words, that a question about days alone may have."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|am|pm)", re.IGNORECASE)
_COMPOUND = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)+")
_SHAPES = (
    re.compile(r"\w_+\w|^_+\w|\w_+$"),  # snake_case, __dunder__, trailing_
    re.compile(r"[a-z0-9][A-Z]"),  # camelCase, iPhone12Case
    re.compile(r"[A-Za-z]\d|\d[A-Za-z]"),  # E1234, x86, ses_4f, hashes
    re.compile(r"\w[./\\:#@]+\w"),  # app.py, src/app, a::b, user@host
    re.compile(r"^[./~-]+\w*[a-z]"),  # /etc, ./run, --flag
    re.compile(r"\w-\w+-\w"),  # kebab-case-name; one hyphen is an ordinary word
    re.compile(r"\w(?:\+\+|#)(?!\w)"),  # C++, c#
)


class Tier(IntEnum):
    """How well a text holds the names of a query; a better tier always ranks above a worse one."""

    WHOLE = 0  # every name, verbatim
    SOME = 1  # some of them
    INSIDE = 2  # only inside a longer name
    NONE = 3


class Hold(IntEnum):
    """Which words of a short query a message holds; better ones rank above worse ones."""

    PHRASE = 0  # the query, verbatim
    ALL = 1
    SOME = 2
    NONE = 3  # only similar in meaning


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    * `named`: names and quotations, which are searched verbatim; `words`: all other content words
    * `plain`: tokens that look like names but count as words
    * `days`: the days that it names; `without`: the stretches of text that name days and are not searched as words
    * `empty_days`: (text, days) of relative dates without messages
    * `nonempty_days`: (text, days) of dates with messages, if the query has other words
    """

    text: str
    named: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    days: tuple[CalendarDate | Days, ...] = ()
    without: tuple[str, ...] = ()
    empty_days: tuple[tuple[str, Days], ...] = ()
    nonempty_days: tuple[tuple[str, Days], ...] = ()

    @property
    def searched(self) -> str:
        """The text that is searched by words and meaning; names that count as words are split into them."""
        return with_names(self._without_days, {name: _ROW_MARK.sub(" ", name) for name in self.plain})

    @property
    def undated(self) -> Query:
        """The query without its dates, so that a month that no text has as a word does not count as missing."""
        return (
            parse(self.text, self.plain, self.days, [text for text, _ in self.nonempty_days])
            if self.nonempty_days
            else self
        )

    @property
    def is_of_days(self) -> bool:
        """Whether it asks only about certain days."""
        return bool(self.without) and not self.named and not self.words

    @property
    def is_exact(self) -> bool:
        """Whether it names an identifier or quotes a phrase."""
        return bool(self.named)

    @property
    def is_short(self) -> bool:
        """Whether it is a word or two, and not a question."""
        return not self.named and len(self.words) <= MOST_SHORT and len(self._without_days.split()) <= MOST_SHORT + 1

    @property
    def phrase(self) -> str:
        """A short query as a phrase; "" for a longer one."""
        return " ".join(self._without_days.split()).strip(_TRIM) if self.is_short else ""

    @property
    def _without_days(self) -> str:
        return _without(self.text, self.without)


def check(query: str) -> None:
    """Check the length of a query.

    Raises:
        BadRequest: it is empty, or too long to be one.
    """
    if not query.strip():
        raise BadRequest("the query is empty: give a word, a name or a question")
    if len(query) > LONGEST_QUERY:
        raise BadRequest(f"the query has {len(query)} characters: at most {LONGEST_QUERY} are searched")


def parse(
    text: str,
    plain: Collection[str] = (),
    days: Sequence[CalendarDate | Days] | None = None,
    without: Sequence[str] = (),
) -> Query:
    """Split a query into names (quoted phrases, identifiers) and other words, in order, each once.

    A query of marks alone is a name. Names in `plain` count as words; the stretches `without` are ignored. `days`: the
    days that it names; None: calendar dates are read here.
    """
    if not _WORD.search(text):
        return Query(text, (text.strip(),) if text.strip() else ())
    named: list[str] = []
    words: list[str] = []
    if days is None:
        days = [mention.days for mention in mentions(text)]
    searchable = _without(text, without)
    for quoted in ("".join(groups).strip() for groups in _QUOTED.findall(searchable)):
        if quoted in plain:
            words += _content(quoted)
        else:
            named.append(quoted)
    for token, bare in dict.fromkeys(_tokens(searchable)):
        if _is_name(token, bare) and bare not in plain:
            named.append(bare)
        else:
            words += _content(bare)
    if without and words and not named and _OF_DAYS.issuperset(words):
        words = []
    return Query(
        text,
        tuple(dict.fromkeys(name for name in named if name)),
        tuple(dict.fromkeys(words)),
        tuple(sorted(plain)),
        tuple(days),
        tuple(without),
    )


def with_days(query: Query, now: datetime, has_messages: Callable[[Days], bool]) -> Query:
    """The query with the days that it names, relative to `now`, which is naive and local.

    If there are messages of these days (`has_messages`), a relative date is not searched as words: "last week" is not
    "most recent call last". A calendar date stays among the words, unless the query asks for nothing else.
    """
    named = mentions(_QUOTED.sub(' " ', query.text), now)  # a date does not span a quotation
    days = [mention.days for mention in named]
    day_mentions = [(mention, span) for mention in named if (span := _latest(mention.days, now))]
    nonempty = [(mention, span) for mention, span in day_mentions if has_messages(span)]
    empty_days = tuple(
        (mention.text, span)
        for mention, span in day_mentions
        if mention.is_relative and (mention, span) not in nonempty
    )
    parsed = parse(query.text, query.plain, days, [mention.text for mention, _ in nonempty])
    if parsed.is_of_days:
        return replace(parsed, days=tuple(span for _, span in nonempty), empty_days=empty_days)
    parsed = parse(query.text, query.plain, days, [mention.text for mention, _ in nonempty if mention.is_relative])
    return replace(
        parsed, empty_days=empty_days, nonempty_days=tuple((mention.text, span) for mention, span in nonempty)
    )


def _latest(days: CalendarDate | Days, now: datetime) -> Days | None:
    return days if isinstance(days, Days) else days.latest(now.date())


def _without(text: str, stretches: Collection[str]) -> str:
    """The text without these stretches, where they are whole words and not quoted."""
    if not stretches:
        return text
    longest_first = "|".join(re.escape(stretch) for stretch in sorted(stretches, key=len, reverse=True))
    shape = re.compile(rf"(?P<quoted>{_QUOTED.pattern})|(?<![\w./-])(?:{longest_first})(?![\w/-]|\.\w)")
    return shape.sub(lambda match: match.group() if match["quoted"] else " ", text)


def with_names(text: str, replacements: Mapping[str, str]) -> str:
    """The text of a query with names replaced, wherever one is a whole token or a quotation; `replacements` by name."""
    replaced, end = "", 0
    for quotation in _QUOTED.finditer(text):
        quoted = "".join(filter(None, quotation.groups())).strip()
        replaced += _with_tokens(text[end : quotation.start()], replacements)
        replaced += quotation.group().replace(quoted, replacements.get(quoted, quoted), 1)
        end = quotation.end()
    return replaced + _with_tokens(text[end:], replacements)


def _with_tokens(text: str, replacements: Mapping[str, str]) -> str:
    replaced, end = "", 0
    for between in (*_BETWEEN.finditer(text), None):
        for token in _BORDER.split(text[end : between.start() if between else len(text)]):
            bare = _bare(token)
            replaced += token.replace(bare, replacements.get(bare, bare), 1) if bare else token
        if between:
            replaced, end = replaced + between.group(), between.end()
    return replaced


def searched_terms(query: Query) -> tuple[str, ...]:
    """The terms of a query as they were searched: names, words, and ``don't`` and ``foo-bar`` each as one."""
    terms = dict.fromkeys(query.named)
    for token, bare in dict.fromkeys(_tokens(_without(query.text, query.without))):
        if (not _is_name(token, bare) or bare in query.plain) and (words := _content(bare)):
            terms |= dict.fromkeys(words if bare.isalnum() else (bare,))
    return tuple(terms)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(token, token without sentence marks), split at white space and borders of scripts, without quotations."""
    for run in filter(None, _BETWEEN.split(_QUOTED.sub(" ", text))):
        for token in _BORDER.split(run):
            yield token, _bare(token)


def _bare(token: str) -> str:
    return token.strip(_TRIM) if not token.startswith((".", "<")) else token.rstrip(_TRIM)


def _content(bare: str) -> list[str]:
    return [word for word in _WORD.findall(bare.lower()) if word not in STOP_WORDS]


def _is_name(token: str, bare: str) -> bool:
    if (
        bare.lower() in {"e.g", "i.e"}
        or _ORDINAL.fullmatch(bare)
        or not (bare.isascii() or _SPACED_LETTER.search(bare))
    ):
        return False
    if _COMPOUND.fullmatch(bare) and not STOP_WORDS.isdisjoint(bare.lower().split("-")):
        return False  # step-by-step, out-of-memory
    return token.rstrip(".,;:!?").endswith("()") or any(shape.search(bare) for shape in _SHAPES)


def tier(query: Query, text: str, stands: Callable[[str, str], Standing] = names.stands) -> Tier:
    """How well `text` holds the query's names, according to `stands`; WHOLE if it has none."""
    held = [stands(name, text) for name in query.named]
    if all(standing is Standing.WHOLE for standing in held):
        return Tier.WHOLE
    if Standing.WHOLE in held:
        return Tier.SOME
    return Tier.INSIDE if Standing.INSIDE in held else Tier.NONE


def split(terms: Iterable[str]) -> set[str]:
    """The words of `terms` in lower case, split as `parse` splits a query: ``foo-bar`` is foo and bar."""
    return {word for term in terms for word in _WORD.findall(term.lower())}


def hold(query: Query, has_phrase: bool, terms: Iterable[str]) -> Hold:
    """How well a message holds a short query; `terms` are the words that the word index found in it."""
    if has_phrase:
        return Hold.PHRASE
    held = split(terms)
    if not held:
        return Hold.NONE
    return Hold.ALL if held.issuperset(query.words) else Hold.SOME


def once(ids: Iterable[str]) -> list[str]:
    """`ids` in order, each at its best place only."""
    return list(dict.fromkeys(ids))
