"""The cue words of each language (`cues.toml`), and which language a text is in.

Only the table knows a language; the code knows kinds of cues. A text whose language is not in the table has no cues, so
nothing is concluded from it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from daemon.transcript.shell.names import words as words_of

_KINDS = (
    "rule", "norm", "bare", "lasting", "choice", "rethink", "because",
    "chosen", "weak", "now", "never", "contrast", "reason", "veto", "condition", "explain",
    "task", "swap", "moment", "undone", "undone_not", "offer", "closer", "either", "retract", "keeps",
    "back", "no_thing", "unchecked", "left_over", "provisional", "subordinate", "pronoun",
)  # fmt: skip
_WITH_GROUPS = {"contrast", "reason", "back"}
_OWN_LETTERS = {"tr": re.compile(r"[ığİĞ]"), "cs": re.compile(r"[ěřůĚŘŮ]")}
"""Letters that no other language of the table has."""
_WITHOUT_BLANKS = frozenset({"zh", "ja", "ko"})
"""Languages without blanks, or with endings directly behind a word."""
_BY_SCRIPT = frozenset({"zh", "ja", "ko", "ru", "uk", "ar"})
_MIN_HITS = 2
"""Two languages may share so few small words: then the next best counts, too."""
_WORD = re.compile(r"[^\W\d_]+")
_CONTEXT = 4000
"""Characters of the context that are searched."""
_CACHE_SIZE = 32_768
"""Sentences whose languages are cached: several facts need the same ones, and a service reads them with every run."""
_KANA = re.compile(r"[\u3040-\u30ff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_UKRAINIAN = re.compile(r"[іїєґ]", re.IGNORECASE)
_RUSSIAN = re.compile(r"[ыэёъ]", re.IGNORECASE)
_OTHER_CYRILLIC = re.compile(r"[ўјљњћђџѓќѕәңғүұқөһ]", re.IGNORECASE)
_ARABIC = re.compile(r"[\u0600-\u06ff]")
_OTHER_ARABIC = re.compile(r"[\u067e\u0686\u0698\u06a9\u06af\u06cc\u0679\u0688\u0691\u06ba\u06d2]")
"""Letters of Persian, Urdu and others that Arabic does not have."""
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_BETWEEN_LEADS = r"[\s,.:;!،。，、：–—-]*"
_PHRASE = r"(?P<y>\S.{0,60}?)(?=\s*(?:[,;()!?。，、；—–]|\.(?:\s|$)|$)|\s*(?:STOP))"


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues of one language by kind; `words` are its commonest words."""

    code: str
    words: frozenset[str]
    small: frozenset[str]
    answers: frozenset[str]
    lead: str
    sources: dict[str, tuple[str, ...]]

    def patterns(self, kind: str) -> Iterator[re.Pattern[str]]:
        """The cues of `kind`. They are compiled at first use, because few projects need more than two languages."""
        return map(_compiled, self.sources[kind])

    def find(self, kind: str, bare: str) -> re.Match[str] | None:
        """The first cue of `kind` in a sentence without its quotations."""
        return next((match for pattern in self.patterns(kind) if (match := pattern.search(bare))), None)

    def without_lead(self, bare: str) -> str:
        """A sentence without its lead: "btw", "oh and", "one more thing:", a label such as "storage:"."""
        match = _compiled(self.lead).match(bare)
        return bare[match.end() :] if match else bare


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


@cache
def _languages() -> dict[str, Cues]:
    text = (files(__package__) / "cues.toml").read_text(encoding="utf-8")
    return {code: _expanded(code, table) for code, table in tomllib.loads(text).items()}


def _expanded(code: str, table: dict[str, str | list[str]]) -> Cues:
    without_blanks = code in _WITHOUT_BLANKS
    stop = str(table["stop"]) if without_blanks else rf"\b(?:{table['stop']})\b"
    phrase = _PHRASE.replace("STOP", stop)

    def expand(pattern: str) -> str:
        pattern = pattern.replace("VERBS", f"(?:{table['verbs']})").replace("DONE", f"(?:{table['done']})")
        pattern = pattern.replace("nAPOt", "n['’]?t").replace("APO", "['’]")
        return re.sub(r"(?<![A-Z])Y(?![A-Z])", lambda _: phrase, pattern)

    joined = {
        kind: table[kind] if kind in _WITH_GROUPS else ["|".join(f"(?:{pattern})" for pattern in table[kind]) or "(?!)"]
        for kind in _KINDS
    }
    sources = {kind: tuple(expand(pattern) for pattern in joined[kind]) for kind in _KINDS}
    ends = "" if without_blanks else r"(?!\w)"
    lead = expand(rf"(?:(?:(?:{table['lead']}){ends}|(?!(?:VERBS)\b)\w+(?=:\s)){_BETWEEN_LEADS})+")
    words, small, answers = (words_of(str(table.get(name, ""))) for name in ("words", "small", "answers"))
    return Cues(code, words, small, answers, lead, sources)


@cache
def common() -> frozenset[str]:
    """The commonest small words of all languages of the table."""
    return frozenset[str]().union(*(cues.words for cues in _languages().values()))


@cache
def small() -> frozenset[str]:
    """The words of all languages of the table that say nothing of a subject."""
    return common().union(*(cues.small for cues in _languages().values()))


@cache
def answers() -> frozenset[str]:
    """The words of all languages of the table that answer yes or no."""
    return frozenset[str]().union(*(cues.answers for cues in _languages().values()))


def named(code: str) -> Cues:
    """The cues of one language of the table."""
    return _languages()[code]


@lru_cache(maxsize=_CACHE_SIZE)
def of(text: str, context: str = "") -> tuple[Cues, ...]:
    """The cues for `text`, by its script and its small words; if these do not decide, also by its `context`.

    Several languages if nothing decides between them, none for a language that the table does not have.
    """
    languages = _languages()
    codes = _by_script(text, context)
    if codes is not None:
        return tuple(languages[code] for code in codes)
    spaced = [cues for code, cues in languages.items() if code not in _BY_SCRIPT]
    words = _words(text)
    counts = _counts(words, spaced)
    best = max(counts)
    if best > _MIN_HITS and counts.count(best) == 1:
        return (spaced[counts.index(best)],)
    own_letters = [code for code, letters in _OWN_LETTERS.items() if letters.search(text)]
    if len(own_letters) == 1:
        return (languages[own_letters[0]],)
    around = _counts(words | _words(context[:_CONTEXT]), spaced)
    likely = max(around) if max(around) > _MIN_HITS else max(around) - 1
    return tuple(
        cues
        for cues, count, besides in zip(spaced, counts, around, strict=True)
        if besides >= likely or (count and count >= best - 1)
    )


def _by_script(text: str, context: str) -> tuple[str, ...] | None:
    """The languages that have a script of their own; None if many languages share the script."""
    if _KANA.search(text):
        return ("ja",)
    if _HAN.search(text):
        return ("ja" if _KANA.search(context) else "zh",)
    if _HANGUL.search(text):
        return ("ko",)
    if _CYRILLIC.search(text):
        return _cyrillic(text, context)
    if _ARABIC.search(text):
        return () if _OTHER_ARABIC.search(text) else ("ar",)
    return None


def _cyrillic(text: str, context: str) -> tuple[str, ...]:
    """By the letters that only one of them has; both if nothing decides, none for a third language."""
    for sample in (text, context[:_CONTEXT]):
        if _OTHER_CYRILLIC.search(sample):
            return ()
        if _UKRAINIAN.search(sample):
            return ("uk",)
        if _RUSSIAN.search(sample):
            return ("ru",)
    return ("ru", "uk")


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _counts(words: frozenset[str], languages: Sequence[Cues]) -> list[int]:
    return [len(words & cues.words) for cues in languages]
