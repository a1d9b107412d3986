"""Invented words and texts for the benchmarks of speed: two vocabularies, and prose, code and logs made of them.

*skewed* is like recorded work: about 60,000 words with Zipf's frequencies, a few hundred English and technical words
at the head, and identifiers, paths, error names and numbers among the rare ones. *small* has 800 words, so that every
word stands in a great part of all messages: the worst case for an index. The same seed makes the same texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STOP = (
    "the to a of and is in it that for this we on be with as not from are at or by an if was but have so can will "
    "when do which should has then there all no one what would also only into after before its more than they were "
    "been how now use used using does did why where some any each other out up your our my you i me let could just"
)
_COMMON = (
    "error file test function build server request data change user type value line return code call name path list "
    "message session config update version run set get key string add read write check fix cache query index database "
    "table client response token log time state event module import class object method field option default result "
    "failed missing invalid expected found handle load save start stop open close create delete remove move rename "
    "parse format render print input output stream buffer queue worker thread process memory limit timeout retry batch "
    "branch commit merge patch diff release deploy package version install docker image network socket port host proxy "
    "schema column row record model vector search filter sort page cursor token header body status code route handler "
    "service user account password login session permission role admin policy rule secret key hash encrypt sign verify "
    "button view component layout style color font screen window mouse scroll click form label text icon menu dialog "
    "number integer float boolean array map tuple queue stack tree node graph edge root leaf parent child depth level "
    "train loss metric score sample feature label weight layer kernel shape dimension random seed epoch gradient "
    "warning debug trace info fatal crash panic exception stack frame signal kill exit fork spawn wait lock mutex race "
    "directory folder link mount disk space size byte block chunk segment offset length count total average median "
    "python rust script shell command argument flag environment variable setting profile project workspace repository "
    "document section heading paragraph sentence word letter example note reason decision plan step task goal question"
)
_SYLLABLES = (
    "ba be bi bo bra bre bu ca ce cla co cra cu da de di do dra du el en er fa fe fi flo fo fra ga ge gi glo "
    "go gra ha he hi ho hu in is ja jo ka ke ki ko la le li lo lu ma me mi mo mu na ne ni no nu or pa pe pi "
    "pla po pra pu qua ra re ri ro ru sa se shi so sta ste stri su ta te ti to tra tri tu un va ve vi vo wa we "
    "wi xa ya yo za ze zi"
)
_ENDINGS = ("", "", "", "s", "ed", "ing", "er", "ion", "ity", "able")
_FOLDERS = ("src", "lib", "tests", "internal", "packages", "app", "core", "docs", "scripts", "web")
_SUFFIXES = (".py", ".ts", ".rs", ".go", ".md", ".json", ".tsx", ".sql")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by falling frequency; `cumulative[i]` is the chance of a word at or before i, up to 1."""

    name: str
    words: NDArray[np.object_]
    cumulative: NDArray[np.float64]
    content: tuple[int, ...]
    """Places of the frequent words that are no stop words, most frequent first."""

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.object_]:
        return self.words[np.searchsorted(self.cumulative, random.random(count), side="right")]

    def among(self, random: np.random.Generator, first: int, last: int) -> str:
        """A plain word of letters at a place from `first` up to `last`."""
        places = [i for i in range(first, min(last, len(self.words))) if str(self.words[i]).isalpha()]
        return str(self.words[int(random.choice(places))])


def vocabulary(name: str, seed: int) -> Vocabulary:
    """`skewed` or `small`."""
    random = np.random.default_rng(seed)
    stop = _STOP.split()
    common = [word for word in dict.fromkeys(_COMMON.split()) if word not in stop]
    if name == "small":
        invented = _invented(random, 800 - len(stop) - len(common), set(stop + common))
        words = [*stop, *common, *invented]
        weights = 1.0 / np.sqrt(np.arange(1, len(words) + 1) + 20.0)
    elif name == "skewed":
        head = _interleaved(stop, common)
        words = [*head, *_rare(random, 60_000 - len(head), set(head))]
        weights = 1.0 / (np.arange(1, len(words) + 1) + 2.7)
    else:
        raise ValueError(f"{name}: no vocabulary; there are skewed and small")
    cumulative = np.cumsum(weights / weights.sum())
    cumulative[-1] = 1.0
    places = {word: place for place, word in enumerate(words)}
    content = tuple(sorted(places[word] for word in common))
    return Vocabulary(name, np.array(words, dtype=object), cumulative, content)


def _interleaved(stop: list[str], common: list[str]) -> list[str]:
    """Mostly stop words first, then fewer and fewer: as a word count of English on programming looks."""
    head: list[str] = []
    stop_words, common_words = list(stop), list(common)
    while stop_words or common_words:
        take_common = common_words and (not stop_words or len(head) % 3 == 2)
        head.append(common_words.pop(0) if take_common else stop_words.pop(0))
    return head


def _invented(random: np.random.Generator, count: int, used_words: set[str]) -> list[str]:
    """Pronounceable words that exist nowhere, none of them in `used_words`, which grows."""
    syllables = _SYLLABLES.split()
    invented: list[str] = []
    while len(invented) < count:
        stem = "".join(random.choice(syllables, size=int(random.integers(2, 5))))
        word = stem + _ENDINGS[int(random.integers(len(_ENDINGS)))]
        if len(word) > 3 and word not in used_words:
            used_words.add(word)
            invented.append(word)
    return invented


def _rare(random: np.random.Generator, count: int, used_words: set[str]) -> list[str]:
    plain = _invented(random, int(count * 0.66), used_words)
    base = [*_COMMON.split(), *plain[:6000]]
    picks = random.integers(len(base), size=(count, 3))
    kinds = random.choice(5, size=count, p=[0.35, 0.3, 0.18, 0.09, 0.08])
    unique_names = dict.fromkeys(plain)
    for (a, b, c), kind in zip(picks.tolist(), kinds.tolist(), strict=True):
        if len(unique_names) >= count:
            break
        unique_names.setdefault(_name(int(kind), base[a], base[b], base[c]))
    names = list(unique_names)
    order = random.permutation(len(names))
    return [names[place] for place in order][:count]


def _name(kind: int, a: str, b: str, c: str) -> str:
    if kind == 0:
        return f"{a}{b.capitalize()}{c.capitalize() if len(a) % 2 else ''}"
    if kind == 1:
        return f"{a}_{b}"
    if kind == 2:
        return f"{_FOLDERS[len(a + b) % 10]}/{a}/{b}{_SUFFIXES[len(b + c) % 8]}"
    if kind == 3:
        return f"{a.capitalize()}{b.capitalize()}Error" if len(c) % 2 else f"E{a.upper()}_{b.upper()}"
    return f"{sum(map(ord, a + b)) * 7919 % 99991}"


class Texts:
    """Endless invented text: words are drawn in large lots, which is what makes this fast."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._random = np.random.default_rng(seed)
        self._lots = self._draw()
        self._lot: list[str] = []
        self._at = 0

    def _draw(self) -> Iterator[list[str]]:
        while True:
            yield self._vocabulary.draw(self._random, 2_000_000).tolist()

    def words(self, count: int) -> list[str]:
        if self._at + count > len(self._lot):
            self._lot, self._at = next(self._lots), 0
        self._at += count
        return self._lot[self._at - count : self._at]

    def prose(self, count: int) -> str:
        """Sentences of about twelve words, a line break after each fifth."""
        words, at, sentences = self.words(count), 0, []
        while at < len(words):
            size = 6 + (len(words[at]) * 5 + at) % 13
            sentences.append(" ".join(words[at : at + size]))
            at += size
        paragraphs = [". ".join(sentences[i : i + 5]) + "." for i in range(0, len(sentences), 5)]
        return "\n\n".join(paragraphs)

    def code(self, count: int) -> str:
        words = self.words(count)
        lines = [words[i : i + 6] for i in range(0, len(words), 6)]
        forms = ("    {0} = {1}({2})", "def {0}({1}, {2}):", "    if {0} != {1}:", "    return {0}.{1}", "    # {0}")
        return "\n".join(
            forms[(at + len(line[0])) % 5].format(line[0], line[1], line[2]) + " " + " ".join(line[3:])
            if len(line) > 3
            else "    # " + " ".join(line)
            for at, line in enumerate(lines)
        )

    def log(self, count: int) -> str:
        words = self.words(count)
        levels = ("INFO", "DEBUG", "WARN", "INFO", "ERROR")
        return "\n".join(
            f"{levels[(at + len(words[i])) % 5]} {' '.join(words[i : i + 10])}"
            for at, i in enumerate(range(0, len(words), 10))
        )
