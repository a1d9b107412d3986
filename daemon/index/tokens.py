"""The words of a text for the lexical index, the same for documents and for queries.

An identifier is one word however it is written: rateLimit, rate-limit and rate_limit all become ``ratelimit``, and its
pieces are indexed too. Paths keep their segments in order. Scripts without spaces become bigrams. Irregular English
forms count as their base word, so "buy" finds "bought". Similar spellings are not handled here, because an absent
identifier must not match another one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import Stemmer

# Irregular forms, without those that are as often words of their own (left, bit, led, lay, leaves).
_FORMS = """
arise arose arisen; awake awoke awoken; become became; begin began begun; bend bent; bind bound; bite bitten; blow blew
blown; break broke broken; bring brought; build built; buy bought; catch caught; child children; choose chose chosen;
come came; deal dealt; dig dug; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
feed fed; feel felt; fight fought; find found; fly flew flown; foot feet; forget forgot forgotten; forgive forgave
forgiven; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear heard;
hide hid hidden; hold held; index indices; keep kept; know knew known; lend lent; lose lost; make made; man men; matrix
matrices; mean meant; meet met; mistake mistook mistaken; mouse mice; overcome overcame; override overrode overridden;
overwrite overwrote overwritten; pay paid; person people; rebuild rebuilt; redo redid redone; rerun reran; rewrite
rewrote rewritten; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell
sold; send sent; shake shook shaken; shoot shot; show shown; sing sang sung; sink sank sunk; sit sat; sleep slept; slide
slid; speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck; swear swore sworn;
swim swam swum; take took taken; teach taught; tear torn; tell told; think thought; throw threw thrown; tooth teeth;
understand understood; undo undid undone; vertex vertices; wake woke woken; wear wore worn; win won; withdraw withdrew
withdrawn; woman women; write wrote written
"""

WORD_OF: Mapping[str, str] = {
    form: word for word, *forms in (entry.split() for entry in _FORMS.split(";")) for form in forms
}
"""The word that each form belongs to; lower case."""


LONGEST = 64
"""Characters of one token. A longer one is cut and gets a digest of the whole, so that equal words stay equal."""

_DIGEST = 8  # bytes
_MOST_PIECES = 16
_SHORTEST = 3
_MOST_LETTERS = 32
STOP_WORDS = frozenset(
    """a am an and any are as at be been being but by can could did do does for from had has have having he her hers
    herself him himself his how i if in into is it its itself me my myself no not of on or our ours ourselves she should
    so that the their theirs them themselves then there these they this to us was we were what when where which who why
    will with would you your yours yourself yourselves
    을 를 은 는 이 가 의 에 에서 에게 로 으로 와 과 도 만 까지 부터 처럼 보다 을까 를까
    を は が の に で と も へ や か から まで より では には とは
    的 了 吗 呢 吧 是 在 用 和 与 或""".split()  # noqa: SIM905 - read as words
)
"""Words that every text has, in lower case. For Korean, Japanese and Chinese: particles after a name in other letters;
within a run of their own script nothing is removed."""

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f"
UNSPACED += "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Han, kana, Hangul, Thai, Lao, Khmer, Myanmar: written without spaces, or with suffixes attached. The inside of a
character class."""
MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Marks that belong to the letter before them; Python's \\w leaves them out."""
_LETTER = rf"(?:(?![{UNSPACED}])[\w{MARKS}])"
_NAME = rf"{_LETTER}+(?:-{_LETTER}+)*(?:['’](?:s|t|re|ve|ll|d|m)(?!{_LETTER}))?"
_RUN = f"[{UNSPACED}][{UNSPACED}{MARKS}]*"
_TERM = re.compile(rf"{_NAME}(?:(?:[/\\]{{1,2}}\.?|\.){_NAME})*|{_RUN}")
_ASCII_NAME = r"\w+(?:-\w+)*(?:'(?:s|t|re|ve|ll|d|m)(?!\w))?"
_ASCII_TERM = re.compile(rf"{_ASCII_NAME}(?:(?:[/\\]{{1,2}}\.?|\.){_ASCII_NAME})*", re.ASCII)
"""The same for ASCII texts, three times as fast."""
_SEPARATOR = re.compile(r"[/\\.]+")
_APOSTROPHE = re.compile(r"['’]s$|['’]")
_PLAIN = re.compile(r"[a-z]+|[A-Z][a-z]*|[A-Z]+s?")
_JOINERS = re.compile(r"[-_]+")
_HUMP = re.compile(r"(?<=[^A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a piece of an ASCII name begins: twice as fast as looking at each letter."""
_NUMBERS = re.compile(r"\d+(?:-\d+)+")
_UNSPACED_RUN = re.compile(_RUN)


class Form(Enum):
    """How a term is written."""

    WORD = "word"
    NAME = "name"  # an identifier of several pieces
    PATH = "path"  # several segments: a file, a dotted name, a version
    RUN = "run"  # a script without spaces


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a text, and what is indexed for it.

    `text` is as written; `whole` the folded word, or the path with forward slashes; `sequence` the tokens that stand
    in order (one for a word or a name, one a segment for a path, bigrams for a run); `pieces` the smallest parts.
    """

    text: str
    form: Form
    whole: str
    sequence: tuple[str, ...]
    pieces: tuple[str, ...]

    @property
    def bag(self) -> tuple[str, ...]:
        """Tokens findable in any order: stems of the pieces, a path as a whole, single characters of a run."""
        if self.form is Form.RUN:
            return tuple(dict.fromkeys(self.whole))
        stems = dict.fromkeys(map(stem, self.pieces))
        return (*stems, self.whole) if self.form is Form.PATH else tuple(stems)

    @property
    def spelt(self) -> tuple[str, ...]:
        """The whole names and their pieces, unstemmed, for the search for similar spellings."""
        if self.form is Form.RUN:
            return ()
        return tuple(filter(is_spelt, dict.fromkeys((*self.sequence, *self.pieces))))


_MOST_REMEMBERED = 1 << 17
_REMEMBERED = 32
"""Longer terms (paths with line numbers, hashes) are rarely repeated."""


def terms(text: str) -> Iterator[Term]:
    """The terms of `text` in order. Never raises; a text without letters or digits has none."""
    for surface in _surfaces(text):
        term = _term(surface)
        if term is not None:
            yield term


def _surfaces(text: str) -> list[str]:
    return _ASCII_TERM.findall(text) if text.isascii() else _TERM.findall(normal(text))


def normal(text: str) -> str:
    """NFKC, so that full-width, ligature and composed spellings are equal; case stays, because names split by it."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def fold(text: str) -> str:
    """Folded case, as Unicode's NFKC_Casefold; in two rounds, because either step can undo the other."""
    if text.isascii():
        return text.lower()
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return text


def caseless(text: str) -> str:
    """Folded case and composed (NFC), for comparing texts character by character."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def as_composed_in(text: str, whole: str) -> str:
    """`text` in the form, composed (NFC) or decomposed (NFD), that `whole` contains, if it contains one."""
    if text.isascii() or whole.isascii():
        return text
    lowered = whole.casefold()
    forms = (text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text))
    return next((form for form in forms if form.casefold() in lowered), text)


def stem(word: str) -> str:
    """The English stem of an ASCII word of letters, or of the base word of an irregular form; other words unchanged."""
    return _stem(word) if 2 < len(word) <= 24 and word.isascii() and word.isalpha() else word


class Fields(NamedTuple):
    """The indexed tokens of a text, separated by spaces."""

    words: str
    bag: str
    spelt: str


def loose(text: str) -> str:
    """The tokens of a text that is searched without order: its bag, names and bigrams."""
    return " ".join(tokens for line in text.split("\n") if (tokens := _loose_line(line)))


def fields(text: str) -> Fields:
    """The tokens of a text in order, its bag, and its unstemmed words, each once."""
    term_tokens = _tokenized(text)
    spelt = " ".join(dict.fromkeys(map(_SPELT, term_tokens)))
    return Fields(
        " ".join(map(_WORDS, term_tokens)), " ".join(map(_BAG, term_tokens)), " ".join(dict.fromkeys(spelt.split()))
    )  # fmt: skip


def is_spelt(word: str) -> bool:
    """Whether we search similar spellings of the word: letters only, so no number and hardly a hash."""
    return _SHORTEST <= len(word) <= _MOST_LETTERS and word.isalpha()


_TermTokens = tuple[str, str, str, str]
"""The tokens of one term: words, bag, unstemmed words, and the bag with names and bigrams."""
_WORDS, _BAG, _SPELT, _NAMED = map(itemgetter, range(4))


def _term_tokens(surface: str) -> _TermTokens:
    if surface.isalpha() and len(surface) <= LONGEST and surface.isascii() and _PLAIN.fullmatch(surface):
        word = surface.lower()
        stemmed = stem(word)
        return word, stemmed, word if is_spelt(word) else "", stemmed
    term = _term(surface)
    if term is None:
        return "", "", "", ""
    named = term.bag if term.form is Form.WORD else dict.fromkeys((*term.bag, *term.sequence))
    return " ".join(term.sequence), " ".join(term.bag), " ".join(term.spelt), " ".join(named)


class _TermCache(dict[str, _TermTokens]):
    """Caches the tokens of terms, which repeat in every message; tokenizing them is most of the work."""

    def __missing__(self, surface: str) -> _TermTokens:
        term_tokens = _term_tokens(surface)
        if len(surface) <= _REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[surface] = term_tokens
        return term_tokens


_TERM_CACHE = _TermCache()


def _tokenized(text: str) -> list[_TermTokens]:
    """The tokens of each term, without a Python step for each."""
    return list(filter(_WORDS, map(_TERM_CACHE.__getitem__, _surfaces(text))))


# Cached, because a message is in its own window and in those of the next messages.
@lru_cache(maxsize=1024)
def _loose_line(line: str) -> str:
    return " ".join(map(_NAMED, _tokenized(line)))


@lru_cache(maxsize=1 << 17)
def _stem(word: str) -> str:
    # A new stemmer for each call, because it has state.
    return str(Stemmer.Stemmer("english", 0).stemWord(WORD_OF.get(word, word)))


def _term(surface: str) -> Term | None:
    if _UNSPACED_RUN.fullmatch(surface):
        return _run(surface)
    segments = [segment for segment in _SEPARATOR.split(surface) if segment.strip("_-")]
    if len(segments) == 1 and _NUMBERS.fullmatch(segments[0]):
        segments = segments[0].split("-")  # a date: 2026-11 must meet 2026-11-21
    names = [name for name in (_name(segment) for segment in segments) if name is not None]
    if not names:
        return None
    if len(names) == 1:
        whole, pieces = names[0]
        return Term(surface, Form.NAME if len(pieces) > 1 else Form.WORD, whole, (whole,), pieces)
    whole = _capped(fold(surface.replace("\\\\", "/").replace("\\", "/")))
    pieces = tuple(piece for _, name_pieces in names for piece in name_pieces)
    return Term(surface, Form.PATH, whole, tuple(name for name, _ in names), pieces)


def _run(surface: str) -> Term | None:
    folded = fold(surface)
    whole = "".join(character for character in folded if not character.isspace())
    if not whole:
        return None
    pairs = tuple(a + b for a, b in pairwise(whole)) or (whole,)
    return Term(surface, Form.RUN, whole, pairs, pairs)


@lru_cache(maxsize=1 << 14)
def _name(segment: str) -> tuple[str, tuple[str, ...]] | None:
    """(folded whole, pieces) of one identifier or word; None if it has only joiners."""
    segment = _APOSTROPHE.sub("", segment)
    if _PLAIN.fullmatch(segment):
        word = _capped(segment.lower())
        return word, (word,)
    parts = [piece for part in _JOINERS.split(segment) if part for piece in _humps(part)]
    pieces = [part.lower() for part in parts] if segment.isascii() else [*filter(None, map(_token, parts))]
    whole = "".join(pieces)
    if not whole:
        return None
    if len(whole) > LONGEST:
        pieces = [piece for piece in pieces if len(piece) <= LONGEST]
    return _capped(whole), tuple(pieces[:_MOST_PIECES]) or (_capped(whole),)


def _token(part: str) -> str:
    folded = fold(part)
    return "" if folded.isspace() else "".join(folded.split())


def _humps(part: str) -> list[str]:
    """``HTTPServer`` becomes HTTP, Server; digits stay with the letters before them; ``IDs`` is one."""
    if part.isascii():
        return [part] if _PLAIN.fullmatch(part) else _HUMP.split(part)
    cuts = [0]
    for i in range(1, len(part)):
        before, current, after = part[i - 1], part[i], part[i + 1 : i + 2]
        starts = current.isupper() and not before.isupper()
        ends_acronym = current.isupper() and before.isupper() and after.islower()
        if starts or ends_acronym:
            cuts.append(i)
    return [part[a:b] for a, b in pairwise([*cuts, len(part)])]


def may_be_capped(token: str) -> bool:
    """Whether the token may be a longer one that was cut."""
    return len(token) == LONGEST // 2 + 2 * _DIGEST


def _capped(token: str) -> str:
    if len(token) <= LONGEST:
        return token
    return token[: LONGEST // 2] + blake2b(token.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
