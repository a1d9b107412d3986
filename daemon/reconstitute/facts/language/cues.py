"""The cue words of each language (`cues.toml`), and which language a text is in.

The table is the only place that knows a language; whoever asks it sees kinds of cues. A text whose language is not in
the table has no cues: nothing is said of it, rather than something wrong.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

_KINDS = (
    "rule", "norm", "bare", "lasting", "choice", "rethink", "because",
    "chosen", "weak", "now", "never", "contrast", "reason", "veto", "condition", "explain",
    "task", "swap", "moment", "undone", "undone_not", "offer", "closer", "either", "retract", "keeps",
    "back", "no_thing",
)  # fmt: skip
_WITH_GROUPS = {"contrast", "reason", "back"}
_OWN_LETTERS = {"tr": re.compile(r"[ığİĞ]"), "cs": re.compile(r"[ěřůĚŘŮ]")}
"""Letters of a language that none of the others here has."""
_WITHOUT_BLANKS = frozenset({"zh", "ja", "ko"})
"""Languages without blanks, or whose endings stand directly behind a word."""
_BY_SCRIPT = frozenset({"zh", "ja", "ko", "ru", "uk", "ar"})
_FEW = 2
"""So few small words may be common to two languages: then the next best counts, too."""
_WORD = re.compile(r"[^\W\d_]+")
_CONTEXT = 4000
_MOST_KEPT = 32_768
"""Sentences whose languages are kept: several facts ask of the same ones, and a service reads them with every run."""
"""Characters of the context that are looked at."""
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
    """The cues of one language by kind; `words` are its commonest ones."""

    code: str
    words: frozenset[str]
    lead: str
    sources: dict[str, tuple[str, ...]]

    def patterns(self, kind: str) -> Iterator[re.Pattern[str]]:
        """The cues of `kind`; compiled where they are first looked for, as few projects use more than two languages."""
        return map(_compiled, self.sources[kind])

    def find(self, kind: str, bare: str) -> re.Match[str] | None:
        """The first cue of `kind` in a sentence without its quotations."""
        return next((match for pattern in self.patterns(kind) if (match := pattern.search(bare))), None)

    def without_lead(self, bare: str) -> str:
        """A sentence without what leads up to it: "btw", "oh and", "one more thing:", a label such as "storage:"."""
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
        pattern = pattern.replace("VERBS", f"(?:{table['verbs']})").replace("nAPOt", "n['’]?t").replace("APO", "['’]")
        return re.sub(r"(?<![A-Z])Y(?![A-Z])", lambda _: phrase, pattern)

    joined = {
        kind: table[kind] if kind in _WITH_GROUPS else ["|".join(f"(?:{one})" for one in table[kind]) or "(?!)"]
        for kind in _KINDS
    }
    sources = {kind: tuple(expand(pattern) for pattern in joined[kind]) for kind in _KINDS}
    ends = "" if without_blanks else r"(?!\w)"
    lead = expand(rf"(?:(?:(?:{table['lead']}){ends}|(?!(?:VERBS)\b)\w+(?=:\s)){_BETWEEN_LEADS})+")
    return Cues(code, frozenset(str(table["words"]).split()), lead, sources)


@cache
def common() -> frozenset[str]:
    """The commonest small words of all these languages."""
    return frozenset[str]().union(*(cues.words for cues in _languages().values()))


def named(code: str) -> Cues:
    """The cues of one language of the table."""
    return _languages()[code]


@lru_cache(maxsize=_MOST_KEPT)
def of(text: str, context: str = "") -> tuple[Cues, ...]:
    """The cues for `text`, by its script and its small words; where these leave it open, also by its `context`.

    Several where nothing decides between them, none for a language that the table does not have.
    """
    languages = _languages()
    codes = _by_script(text, context)
    if codes is not None:
        return tuple(languages[code] for code in codes)
    spaced = [cues for code, cues in languages.items() if code not in _BY_SCRIPT]
    said = _words(text)
    own = _counts(said, spaced)
    best = max(own)
    if best > _FEW and own.count(best) == 1:
        return (spaced[own.index(best)],)
    own_letters = [code for code, letters in _OWN_LETTERS.items() if letters.search(text)]
    if len(own_letters) == 1:
        return (languages[own_letters[0]],)
    around = _counts(said | _words(context[:_CONTEXT]), spaced)
    likely = max(around) if max(around) > _FEW else max(around) - 1
    return tuple(
        cues
        for cues, alone, besides in zip(spaced, own, around, strict=True)
        if besides >= likely or (alone and alone >= best - 1)
    )


def _by_script(text: str, context: str) -> tuple[str, ...] | None:
    """The languages of a script of their own; None where the script is that of many."""
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
    """By the letters that only one of them has; both where nothing decides, none for a third language."""
    for said in (text, context[:_CONTEXT]):
        if _OTHER_CYRILLIC.search(said):
            return ()
        if _UKRAINIAN.search(said):
            return ("uk",)
        if _RUSSIAN.search(said):
            return ("ru",)
    return ("ru", "uk")


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _counts(said: frozenset[str], languages: Sequence[Cues]) -> list[int]:
    return [len(said & cues.words) for cues in languages]
