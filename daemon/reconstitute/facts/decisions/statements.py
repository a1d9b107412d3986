"""What a sentence states in so many words: a rule, a decision, or nothing; `cues.toml` has the words of each language.

No question, wish, doubt, hearsay, quotation or code states anything (`sentences`), nor does a plain task, however
universal its words: "have all files checked" and "do not add the map" are over when they are done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.reconstitute.facts.language import cues, sentences
from daemon.reconstitute.facts.language.cues import Cues
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.shell import read_only

_LONGEST = 320
"""A sentence with more characters argues; it is no rule that can be quoted."""
_FIRST_WORD = re.compile(r"\w[\w.+#-]*\s+")
"""All that a reply such as "Tailscale instead of WireGuard." says before what it replaces."""
_CLAUSES = re.compile(r"[;,]\s+|\s[–—-]\s|[，、；]")
_SHORTEST = 8
"""Bytes, for a sign of a script without blanks says more than a letter."""
_WITH_REASON = re.compile(r"[^:：,]{3,60}[:：]\s?\S.{8,}")
_ENDS = frozenset(",;，；、で")
_MOST_OF_A_PHRASE = 4
"""Words of what is replaced, where the sentence begins with it."""
_PARTICLES = re.compile(r"(?<=\S)(?:\s*(?:了|吧|啦|呢|啊)|(?<!目)的)+$")
"""What ends a Chinese sentence, and is no part of the thing before it."""
_MOST_KEPT = 16_384


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence states: a ``rule`` or a ``decision``, with its reason and what it takes the place of."""

    kind: str
    reason: str = ""
    replaces: str = ""
    forbids: bool = False
    if_done: bool = False  # a task as much as a decision: it is one where it was carried out
    is_plain: bool = False  # an order that does not say itself for how long
    reconsiders: bool = False  # it begins by thinking better of something


def stated(sentence: Sentence, who: str, context: str = "") -> Statement | None:
    """What a sentence of the ``user`` or the ``agent`` states, or None; `context` is the text that it stands in."""
    is_short = len(sentences.words(sentence.text)) < 2 and len(sentence.text.split()) < 3
    if sentence.is_question or is_short or len(sentence.text.encode()) < _SHORTEST or len(sentence.text) > _LONGEST:
        return None
    return _stated(sentence, who, tuple(one.code for one in cues.of(sentence.bare, context)))


def with_value(sentence: Sentence, context: str, *, is_explained: bool) -> Statement | None:
    """What a sentence of the user decides if the number that it names was set: it says why, since when or what not."""
    codes = tuple(one.code for one in cues.of(sentence.bare, context))
    languages = [cues.named(code) for code in codes]
    if sentence.is_question or len(sentence.text) > _LONGEST or _is_vetoed(sentence, languages):
        return None
    for language in languages:
        if is_explained or any(language.find(kind, sentence.bare) for kind in ("contrast", "reason", "now")):
            return _completed(Statement("decision"), language, sentence)
    return None


def _is_vetoed(sentence: Sentence, languages: Sequence[Cues]) -> bool:
    kinds = ("veto", "explain", "moment", "condition")
    return any(language.find(kind, sentence.bare) for kind in kinds for language in languages)


@lru_cache(maxsize=_MOST_KEPT)
def _stated(sentence: Sentence, who: str, codes: tuple[str, ...]) -> Statement | None:
    """What it states in these languages; kept, for a service reads the same sentences again with every message."""
    languages = [cues.named(code) for code in codes]
    vetoes = ("veto", "explain", "moment") if who == "user" else ("veto", "explain")
    if any(language.find(kind, sentence.bare) for kind in vetoes for language in languages):
        return None
    for language in languages:
        bare = language.without_lead(sentence.bare)
        if who == "agent":
            statement = Statement(_of_agent(language, sentence.bare))
        elif language.find("explain", bare):
            continue
        else:
            statement = _of_user_or_clause(language, bare, sentence.bare)
        if statement.kind:
            return _completed(statement, language, sentence)
    return None


def _completed(statement: Statement, language: Cues, sentence: Sentence) -> Statement:
    return replace(
        statement,
        reason=_stretch(language, "reason", "r", sentence),
        replaces=_thing(language, _stretch(language, "contrast", "y", sentence)),
        forbids=statement.kind == "rule" and language.find("never", sentence.bare) is not None,
    )


def _of_user_or_clause(language: Cues, bare: str, whole: str) -> Statement:
    """What the sentence states, or else the rule that one of its clauses states without a condition."""
    told = _of_user(language, bare)
    begins = language.find("rethink", whole)
    if begins and begins.start() == 0:
        rest = whole[begins.end() :]
        if not told.kind and (language.find("task", rest) or _WITH_REASON.match(rest)):
            told = Statement("decision", if_done=True)
        return replace(told, reconsiders=True)
    clauses = [clause for clause in _CLAUSES.split(bare) if len(clause.encode()) >= _SHORTEST]
    is_limited = any(language.find(kind, clause) for kind in ("condition", "explain") for clause in clauses)
    if told.kind or len(clauses) < 2 or is_limited:
        return told
    stating = (_of_user(language, clause) for clause in clauses)
    return next((one for one in stating if one.kind == "rule" and not one.is_plain), told)


def _of_user(language: Cues, bare: str) -> Statement:
    if language.find("rule", bare):
        return Statement("rule")
    if language.find("condition", bare):
        return Statement("")
    is_lasting = language.find("bare", bare) and language.find("lasting", _CLAUSES.split(bare)[0])
    is_norm = bool(is_lasting or language.find("norm", bare))
    if language.find("choice", bare) and not (is_norm and not language.find("contrast", bare)):
        return Statement("decision")
    if is_norm:
        return Statement("rule", is_plain=True)
    return Statement("decision", if_done=True) if _is_exchange(language, bare) else Statement("")


def _is_exchange(language: Cues, bare: str) -> bool:
    """Whether it asks for one thing in place of another, in words that compare them or with a reason."""
    if language.find("swap", bare):
        return True
    contrast, reason = language.find("contrast", bare), language.find("reason", bare)
    if contrast is None or (reason and reason.start("r") <= contrast.start("y") < reason.end("r")):
        return False
    if reason is None and contrast.re is not next(language.patterns("contrast")):
        return False  # to put one for another may be any task; to compare them is a choice
    return language.find("task", bare) is not None


def _of_agent(language: Cues, bare: str) -> str:
    if language.find("condition", bare) or language.find("offer", bare):
        return ""
    contrast = language.find("contrast", bare)
    if contrast and read_only.is_tool(contrast["y"]):
        return ""  # how it worked, and not what it decided
    explained = contrast or language.find("reason", bare)
    is_decision = (
        language.find("chosen", bare)
        or (explained and language.find("weak", bare))
        or (contrast and (language.find("now", bare) or _names_first(language, contrast, bare)))
    )
    return "decision" if is_decision else ""


def _names_first(language: Cues, contrast: re.Match[str], bare: str) -> bool:
    """Whether it names the one thing and then, by the first way to compare of its language, the other."""
    return contrast.re is next(language.patterns("contrast")) and bool(_FIRST_WORD.fullmatch(bare[: contrast.start()]))


def _thing(language: Cues, phrase: str) -> str:
    """What was replaced, as a thing or value; empty where the words begin like a part of a sentence."""
    thing = _PARTICLES.sub("", phrase) if language.code == "zh" else phrase
    return "" if language.find("no_thing", thing) else thing


def _stretch(language: Cues, kind: str, group: str, sentence: Sentence) -> str:
    match = language.find(kind, sentence.bare)
    is_cut = match is not None and match.start() == 0 and match.end() == match.end(group) and group == "y"
    if match and is_cut and not _is_whole(language, match[group], sentence.bare[match.end() :].lstrip()):
        return ""  # it begins the sentence, and nothing tells where it ends
    return sentence.text[slice(*match.span(group))].strip(" .。!！,，、;") if match else ""


def _is_whole(language: Cues, phrase: str, rest: str) -> bool:
    """Whether a phrase at the start ends with the comma: in many languages the verb comes before it, with a reason."""
    if rest[:1] not in _ENDS:
        return False
    reason = language.find("reason", rest)
    return len(phrase.split()) <= _MOST_OF_A_PHRASE and (reason is None or reason.start() > 1 + len(rest[:1]))
