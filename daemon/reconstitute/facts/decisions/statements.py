"""What a sentence states in so many words: a rule, a decision, or nothing; and what an answer chooses of two things.

No question, wish, doubt, hearsay, quotation or code states anything. Nor does a plain task, however universal its
words: "have all files checked" and "do not add the map" are over when they are done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.cues import Cues
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.shell import failures

_LONGEST = 320
"""A longer sentence argues; it is no rule that can be quoted."""
_FIRST_WORD = re.compile(r"\w[\w.+#-]*\s+")
"""What precedes the comparison in a reply such as "Tailscale instead of WireGuard."."""
_CLAUSES = re.compile(r"[;,]\s+|\s[–—-]\s|[，、；]")
_SHORTEST = 8
"""Bytes, because a character of a script without blanks says more than a letter."""
_WITH_REASON = re.compile(r"[^:：,]{3,60}[:：]\s?\S.{8,}")
_ENDS = frozenset(",;，；、で")
_MOST_OF_A_PHRASE = 4
"""Words of what is replaced, if the sentence begins with it."""
_PARTICLES = re.compile(r"(?<=\S)(?:\s*(?:了|吧|啦|呢|啊)|(?<!目)的)+$")
"""What ends a Chinese sentence, and is no part of the thing before it."""
_MOST_CACHED = 16_384


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence states: a ``rule`` or a ``decision``, with its reason and what it takes the place of."""

    kind: str
    reason: str = ""
    replaces: str = ""
    forbids: bool = False
    if_done: bool = False  # a task as much as a decision: it counts if it was carried out
    is_plain: bool = False  # an order that does not say for how long it holds
    reconsiders: bool = False  # it begins by changing its mind


def stated(sentence: Sentence, who: str, context: str = "") -> Statement | None:
    """What a sentence of the ``user`` or the ``agent`` states, or None; `context` is the text around it."""
    is_short = len(sentences.words(sentence.text)) < 2 and len(sentence.text.split()) < 3
    if sentence.is_question or is_short or len(sentence.text.encode()) < _SHORTEST or len(sentence.text) > _LONGEST:
        return None
    return _stated(sentence, who, tuple(language.code for language in cues.of(sentence.bare, context)))


def with_number(sentence: Sentence, context: str, *, is_explained: bool) -> Statement | None:
    """What a sentence of the user decides if the number in it was set: it says why, since when or instead of what."""
    codes = tuple(language.code for language in cues.of(sentence.bare, context))
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


@lru_cache(maxsize=_MOST_CACHED)
def _stated(sentence: Sentence, who: str, codes: tuple[str, ...]) -> Statement | None:
    """What it states in these languages; cached, because a service reads the same sentences with every message."""
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
        replaces=_noun(language, _stretch(language, "contrast", "y", sentence)),
        forbids=statement.kind == "rule" and language.find("never", sentence.bare) is not None,
    )


def _of_user_or_clause(language: Cues, bare: str, sentence_text: str) -> Statement:
    """What the sentence states; else the rule that one of its clauses states without a condition."""
    statement = _of_user(language, bare)
    begins = language.find("rethink", sentence_text)
    if begins and begins.start() == 0:
        remainder = sentence_text[begins.end() :]
        if not statement.kind and (language.find("task", remainder) or _WITH_REASON.match(remainder)):
            statement = Statement("decision", if_done=True)
        return replace(statement, reconsiders=True)
    clauses = [clause for clause in _CLAUSES.split(bare) if len(clause.encode()) >= _SHORTEST]
    is_limited = any(language.find(kind, clause) for kind in ("condition", "explain") for clause in clauses)
    if statement.kind or len(clauses) < 2 or is_limited:
        return statement
    in_clauses = (_of_user(language, clause) for clause in clauses)
    return next((clause_ for clause_ in in_clauses if clause_.kind == "rule" and not clause_.is_plain), statement)


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
    """Whether it asks for one thing instead of another, in words that compare them or with a reason."""
    if language.find("swap", bare):
        return True
    contrast, reason = language.find("contrast", bare), language.find("reason", bare)
    if contrast is None or (reason and reason.start("r") <= contrast.start("y") < reason.end("r")):
        return False
    if reason is None and contrast.re is not next(language.patterns("contrast")):
        return False  # replacing one by another may be any task; comparing them is a choice
    return language.find("task", bare) is not None


def _of_agent(language: Cues, bare: str) -> str:
    if language.find("condition", bare) or language.find("offer", bare):
        return ""
    contrast = language.find("contrast", bare)
    if contrast and failures.is_tool(contrast["y"]):
        return ""  # this is how it worked, not what it decided
    explained = contrast or language.find("reason", bare)
    is_decision = (
        language.find("chosen", bare)
        or (explained and language.find("weak", bare))
        or (contrast and (language.find("now", bare) or _names_first(language, contrast, bare)))
    )
    return "decision" if is_decision else ""


def _names_first(language: Cues, contrast: re.Match[str], bare: str) -> bool:
    """Whether it names one thing and then the other, in the language's first form of comparison."""
    return contrast.re is next(language.patterns("contrast")) and bool(_FIRST_WORD.fullmatch(bare[: contrast.start()]))


def _noun(language: Cues, phrase: str) -> str:
    """What was replaced, as a thing or value; empty if the words begin like a part of a sentence."""
    noun = _PARTICLES.sub("", phrase) if language.code == "zh" else phrase
    return "" if language.find("no_thing", noun) else noun


def _stretch(language: Cues, kind: str, group: str, sentence: Sentence) -> str:
    match = language.find(kind, sentence.bare)
    is_cut = match is not None and match.start() == 0 and match.end() == match.end(group) and group == "y"
    if match and is_cut and not _is_whole(language, match[group], sentence.bare[match.end() :].lstrip()):
        return ""  # it begins the sentence, and its end is not certain
    return sentence.text[slice(*match.span(group))].strip(" .。!！,，、;") if match else ""


def _is_whole(language: Cues, phrase: str, remainder: str) -> bool:
    """Whether a phrase at the start ends at the comma, not before a verb and a reason."""
    if remainder[:1] not in _ENDS:
        return False
    reason = language.find("reason", remainder)
    return len(phrase.split()) <= _MOST_OF_A_PHRASE and (reason is None or reason.start() > 1 + len(remainder[:1]))


# -- an answer that chooses one of two things --------------------------------------------------------------------

_MOST_ANSWER_WORDS = 5
"""Words of an answer that names one of two things; a longer one states something of its own."""
_MOST_ANSWER_SIGNS = 12
"""Its characters in a script without blanks."""
_CHOICE_CLAUSE = re.compile(r",\s|[，、；;]|\s[–—-]\s")
_SHORT_STEM = 2
_NO_CHOICE = ("veto", "explain", "moment", "condition", "never")
_MOST_OF_OTHER = 4
"""Words of what was not chosen, if it can be quoted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question that was answered with one of two things, and the `other` thing; empty if its ends are not certain."""

    question: str
    other: str = ""


def choice(text: str, answer: Sentence) -> Choice | None:
    """Which of the two things that `text` asks about at its end an answer chooses.

    None if the answer names both, neither, or anything else, or says no to one.
    """
    question = next(reversed(sentences.split(text)), None)
    if question is None or not question.is_question or answer.is_question:
        return None
    first = sentences.whole(_CHOICE_CLAUSE.split(answer.text)[0])
    languages = cues.of(question.bare, text)
    choices = (_chosen(language, question, sentence) for sentence in (answer, first) for language in languages)
    return next(filter(None, choices), None)


def _is_long(answer: str) -> bool:
    return len(answer.split()) > _MOST_ANSWER_WORDS or (" " not in answer and len(answer) > _MOST_ANSWER_SIGNS)


def _chosen(language: Cues, question: Sentence, answer: Sentence) -> Choice | None:
    separator = language.find("either", question.bare)
    if separator is None or language.find("closer", question.bare) or _is_long(answer.text):
        return None
    if any(language.find(kind, answer.bare) for kind in _NO_CHOICE):
        return None
    first, second = question.text[: separator.start()], question.text[separator.end() :]
    of_first, of_second = subjects.of(first), subjects.of(second)
    answer_words = subjects.of(language.without_lead(answer.text))
    in_first, in_second = _alike(answer_words, of_first - of_second), _alike(answer_words, of_second - of_first)
    if not answer_words <= _alike(answer_words, of_first | of_second) or bool(in_first) == bool(in_second):
        return None
    alternative = second.strip(" ?？؟") if in_first else ""
    return Choice(question.text, alternative if 0 < len(alternative.split()) <= _MOST_OF_OTHER else "")


def _alike(words: frozenset[str], stems: frozenset[str]) -> frozenset[str]:
    """The words that begin like one of the stems: either may have an ending."""
    return frozenset(word for word in words if word in stems or any(_is_beginning(word, stem) for stem in stems))


def _is_beginning(word: str, full_word: str) -> bool:
    short, long = sorted((word, full_word), key=len)
    return len(short) > _SHORT_STEM and long.startswith(short)
