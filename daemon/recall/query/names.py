"""Finds names in texts, as whole names or only inside longer ones. Pure functions.

The pieces of an identifier may be joined in several ways: rateLimit, rate-limit, rate_limit and "rate limit" are one
name. All other marks distinguish names: C++ is not C, --e is not e, a.b is not a/b, getUserById_v2 is not getUserById.
A name also ends where a script without spaces begins or ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from daemon.index import tokens
from daemon.index.tokens import UNSPACED, WORD_OF

# A letter of a script without spaces beside a name does not make it a longer name.
_LETTER = rf"[^\W{UNSPACED}]"
_ANY_LETTER = r"\w"
_IS_LETTER = re.compile(_LETTER)
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_JOINER = re.compile(r"[-_ ]?")
_JOINED = r"(?:[\s_*`-]{0,3}|\s+)"  # emphasis marks in a text are not part of a name
_LOOSE = r"[\W_]{0,3}"
_MARK = re.compile(r"\s+|[/\\]+|['’]|.", re.DOTALL)
_BOUND = frozenset("-./~_+#")
"""Marks that are part of a name at its ends: with a letter beside them it is a longer name."""
_ENDS = ".,;:!?…"
_PLACE_IN_FILE = re.compile(r"(?P<path>.*(?:\.[A-Za-z]\w*|[/\\][\w.-]+))(?::\d+(?:[:-]\d+)?|#L\d+(?:-L?\d+)?)")
_MOST_FOLDED = 20_000  # characters of a text whose full-width letters are normalised
_MOST_READ = 100_000  # characters in which other forms of a word are looked for
_LONGEST_WORD = 80


class Standing(Enum):
    """How a text holds a name."""

    WHOLE = "whole"
    INSIDE = "inside"  # in a longer name, or with other marks
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Patterns of a name. `begins` is its first piece, in lower case, or "" if its beginning is not fixed.

    `whole` matches from `lead` characters before `begins`, `inside` from `lead_inside` characters before it.
    """

    begins: str
    whole: re.Pattern[str]
    inside: re.Pattern[str]
    lead: int = 0
    lead_inside: int = 0


def stands(name: str, text: str) -> Standing:
    """How `text` holds `name`, case-insensitively."""
    standing = _stands(name, text)
    if standing is Standing.NOWHERE and not text.isascii() and len(text) <= _MOST_FOLDED:
        folded = tokens.normal(text)
        return standing if folded == text else _stands(name, folded)
    return standing


def stands_loosely(name: str, text: str) -> Standing:
    """As `stands`, but any mark ends a name, also an underscore, and up to three marks of any kind join its pieces.

    Used to order texts for a question of many words. There a name is one hint among others, and good answers often have
    it inside other names.
    """
    begins, inside, whole = _loosely(name)
    places = _places(begins, text)
    if places is None:
        return Standing.WHOLE if whole.search(text) else Standing.INSIDE if inside.search(text) else Standing.NOWHERE
    best = Standing.NOWHERE
    for place in places:
        if whole.match(text, place):
            return Standing.WHOLE
        if best is Standing.NOWHERE and inside.match(text, place):
            best = Standing.INSIDE
    return best


@lru_cache(maxsize=1024)
def _loosely(name: str) -> tuple[str, re.Pattern[str], re.Pattern[str]]:
    pieces = _PIECE.findall(name)
    loose = _LOOSE.join(map(re.escape, pieces)) if pieces else re.escape(name)
    begins = pieces[0].lower() if pieces and name.startswith(pieces[0]) else ""
    whole = rf"(?<![^\W_]){loose}(?![^\W_])"
    return begins, re.compile(loose, re.IGNORECASE), re.compile(whole, re.IGNORECASE)


def stands_in(phrase: str, text: str) -> bool:
    """Whether `text` contains `phrase` as whole words, with any case and white space."""
    words = phrase.split()
    if not words:
        return False
    return any(_has(_phrase(phrase, letter), words[0].lower(), text) for letter in _letters(text))


def _has(pattern: re.Pattern[str], begins: str, text: str) -> bool:
    places = _places(begins, text)
    if places is None:
        return pattern.search(text) is not None
    return any(pattern.match(text, place) for place in places)


def around(name: str, text: str) -> str:
    """The longer word of `text` that contains `name`, or `name` with other marks; "" if there is none."""
    inside = _spelling(name, _ANY_LETTER).inside.pattern
    match = re.search(rf"[\w-]*?(?:{inside})[\w-]*", text, re.IGNORECASE)
    return match.group()[:_LONGEST_WORD] if match else ""


def written(word: str, text: str) -> str:
    """The form of `word` in `text`, if the text has only another form; else `word`."""
    if not (word.isascii() and word.isalpha()) or word.lower() in text.lower():
        return word
    base = WORD_OF.get(word.lower(), word.lower())
    for piece in _PIECE.finditer(text, 0, _MOST_READ):
        form = WORD_OF.get(piece.group().lower(), piece.group().lower())
        if form[:2] == base[:2] and tokens.stem(form) == tokens.stem(base):
            return piece.group()
    return word


def without_line(name: str) -> str:
    """The path of ``cart.py:88``, ``cart.py:88:5`` or ``cart.py#L88``; "" for any other name."""
    match = _PLACE_IN_FILE.fullmatch(name)
    return match["path"] if match else ""


def as_written(word: str, text: str) -> str:
    """A folded word of the index as `text` spells it: rateLimit or rate_limit for ``ratelimit``; "" if it has none."""
    spelt = "[-_ ]?".join(map(re.escape, word))
    match = re.search(rf"(?<![^\W_{UNSPACED}]){spelt}(?![^\W_{UNSPACED}])", text, re.IGNORECASE)
    return match.group() if match else ""


def is_plain(name: str) -> bool:
    """Whether it is written like an ordinary word."""
    return name.isalpha() and (name.islower() or name.isupper() or name.istitle())


# -- spellings -------------------------------------------------------------------------------------------------------


def _stands(name: str, text: str) -> Standing:
    standing = Standing.NOWHERE
    for letter in _letters(text):
        standing = _spelt(_spelling(name, letter), text)
        if standing is not Standing.INSIDE:
            break
    return standing


def _letters(text: str) -> Iterator[str]:
    """Classes of letters that may not be beside a name, to be tried in turn.

    First any letter, then letters of scripts with spaces only. The second class takes 1 ms to compile, and few texts
    need it.
    """
    yield _ANY_LETTER
    if not text.isascii() and _IS_UNSPACED.search(text):
        yield _LETTER


def _spelt(spelling: _Spelling, text: str) -> Standing:
    places = _places(spelling.begins, text)
    if places is None:
        if spelling.whole.search(text):
            return Standing.WHOLE
        return Standing.INSIDE if spelling.inside.search(text) else Standing.NOWHERE
    best = Standing.NOWHERE
    for place in places:
        if place >= spelling.lead and spelling.whole.match(text, place - spelling.lead):
            return Standing.WHOLE
        start = place - spelling.lead_inside
        if best is Standing.NOWHERE and start >= 0 and spelling.inside.match(text, start):
            best = Standing.INSIDE
    return best


@lru_cache(maxsize=1024)
def _spelling(name: str, letter: str) -> _Spelling:
    name = tokens.normal(name)
    matches = list(_PIECE.finditer(name))
    is_phrase = any(character.isspace() for character in name)
    if not matches:  # a name of marks alone may be anywhere
        exact = re.compile(_strict(name), re.IGNORECASE)
        return _Spelling("" if is_phrase else name.lower(), exact, exact)
    pieces = [piece.group() for piece in matches]
    lead, trail = name[: matches[0].start()], name[matches[-1].end() :]
    between = [name[piece.end() : following.start()] for piece, following in pairwise(matches)]
    is_word = not any(between)
    if is_phrase:
        trail = trail.rstrip(_ENDS)
    elif is_word:  # marks at the ends of a word are part of the name
        trail = trail.rstrip(_ENDS + "/\\")
    else:
        lead, trail = lead.removeprefix("./"), trail[: len(trail) - len(trail.lstrip("_+#"))]
    marked = _strict(lead) + _row(pieces, [_joined(mark) for mark in between]) + _strict(trail)
    inside = _row(pieces, [f"(?:{_joined(mark)}|{_LOOSE})" for mark in between])
    if is_word:
        inside = _strict(lead) + inside + _strict(trail)
    whole = _before(lead + pieces[0], name, letter) + marked + _after(pieces[-1] + trail, name, letter)
    return _Spelling(
        begins="" if any(character.isspace() for character in lead) else pieces[0].lower(),
        whole=re.compile(whole, re.IGNORECASE),
        inside=re.compile(inside, re.IGNORECASE),
        lead=len(lead),
        lead_inside=len(lead) if is_word else 0,
    )


def _row(pieces: Sequence[str], between: Sequence[str]) -> str:
    escaped = [re.escape(piece) for piece in pieces]
    return escaped[0] + "".join(mark + piece for mark, piece in zip(between, escaped[1:], strict=True))


def _joined(mark: str) -> str:
    """A pattern for the marks between two pieces of a name, where the name of the query has `mark`."""
    return _JOINED if _JOINER.fullmatch(mark) else _strict(mark)


def _strict(marks: str) -> str:
    """A pattern for these marks: any white space for white space, either slash, also doubled as in escaped texts."""
    pattern = ""
    for mark in _MARK.findall(marks):
        if mark.isspace():
            pattern += r"\s+"
        else:
            pattern += r"[/\\]{1,2}" if mark[0] in "/\\" else "['’]" if mark in "'’" else re.escape(mark)
    return pattern


def _before(begins: str, name: str, letter: str) -> str:
    first = begins[0]
    if _IS_UNSPACED.match(first) or not (_IS_LETTER.match(first) or first in _BOUND):
        return ""
    hyphen = rf"(?<!{letter}-)" if _IS_LETTER.match(first) and _is_identifier(name) else ""
    return rf"(?<!{letter})" + hyphen + (r"(?<!\d\.)" if first.isdigit() else "")


def _after(ends: str, name: str, letter: str) -> str:
    last = ends[-1]
    if _IS_UNSPACED.match(last) or not (_IS_LETTER.match(last) or last in _BOUND):
        return ""
    hyphen = rf"(?!-{letter})" if _IS_LETTER.match(last) and _is_identifier(name) else ""
    return rf"(?!{letter})" + hyphen + (r"(?!\.\d)" if last.isdigit() else "")


def _is_identifier(name: str) -> bool:
    """Whether a hyphen beside it makes a longer name, which is not so for an ordinary word in a compound."""
    return not is_plain(name) and not any(character.isspace() for character in name)


@lru_cache(maxsize=256)
def _phrase(phrase: str, letter: str) -> re.Pattern[str]:
    pattern = r"\s+".join(re.escape(word) for word in phrase.split())
    before = "" if _IS_UNSPACED.match(phrase.strip()[0]) else rf"(?<!{letter})"
    after = "" if _IS_UNSPACED.match(phrase.strip()[-1]) else rf"(?!{letter})"
    return re.compile(before + pattern + after, re.IGNORECASE)


# -- looking through a text ------------------------------------------------------------------------------------------


def _places(begins: str, text: str) -> Iterator[int] | None:
    """The places of `begins` in `text`, case-insensitively; None if only a regular expression can find them.

    Searching plain characters first is faster than a case-insensitive regular expression, which tries every character,
    and a tool's output may have a million.
    """
    lowered = text.lower()
    if not begins.isascii() or not begins or len(lowered) != len(text):
        return None
    return _occurrences(begins, lowered)


def _occurrences(begins: str, lowered: str) -> Iterator[int]:
    place = lowered.find(begins)
    while place >= 0:
        yield place
        place = lowered.find(begins, place + 1)
