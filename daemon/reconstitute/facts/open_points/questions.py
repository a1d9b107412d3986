"""Which questions of the agent ask for something, and whether a prompt answers one.

A courtesy or an offer at the end of an answer asks for nothing: who goes on has answered it. Pure, never raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.mentions import History
from daemon.reconstitute.facts.session_values import SessionFacts, Turn

LAST_SENTENCES = 3
"""A question stands among the last sentences of a reply; what stands before them is rhetoric or has been answered."""
_SHORTEST_QUESTION = 3
_FEWEST_SUBJECTS = 2
_MANY = 2
"""So many earlier prompts with a word make it one of the folder's, which says nothing of an answer."""
_ANY_WORD = re.compile(r"[^\W_]+(?:[./:_-][^\W_]+)*")
_OPENING = re.compile(r"[.,:](?=\s|$)|[!?;\n。！？，、；：–—]")
_SHORT_ANSWER = 3
"""Words of a short answer; where there are no blanks, signs."""
_WITHOUT_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_YES_OR_NO = frozenset(
    "yes yeah yep sure no nope ok okay ja jo doch nein nö oui ouais si non sí sì vale certo sim não nao nee jawel tak "  # noqa: SIM905
    "nie да нет ага так ні ano ne nej evet olur hayır نعم لا 네 예 아니요 아니 응 はい いいえ うん".split()
)
_ORDERS = frozenset({"use", "usa"})
"""Small words of the cue table that begin a task."""


def is_real(sentence: sentences.Sentence, context: str = "") -> bool:
    """Whether a sentence asks for a decision or for something to be told; a courtesy or an offer does not."""
    words = max(len(sentences.words(sentence.text)), len(_ANY_WORD.findall(sentence.text)))
    if not sentence.is_question or words < _SHORTEST_QUESTION or len(sentences.words(sentence.text)) < _FEWEST_SUBJECTS:
        return False
    languages = cues.of(sentence.bare, context)
    kinds = {kind for kind in ("closer", "offer", "either") for one in languages if one.find(kind, sentence.bare)}
    return "closer" not in kinds and ("offer" not in kinds or "either" in kinds)


def is_closer(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it only asks whether there is anything else."""
    return any(language.find("closer", sentence.bare) for language in cues.of(sentence.bare, context))


def opening(prompt: str) -> str:
    """What a prompt begins with, up to its first stop: which may be all of an answer."""
    return _OPENING.split(prompt.strip().lstrip("¿¡"), maxsplit=1)[0].strip()


def may_answer(prompt: str, question: str) -> bool:
    """Whether the first prompt after a question begins as an answer to it does: very short, and no order.

    It is one word, yes or no, a number, begins with a small word ("On Monday."), or has a word of the question.
    """
    said = opening(prompt)
    if _WITHOUT_BLANKS.search(said):
        return len(said) <= _SHORT_ANSWER or said in _YES_OR_NO or _shares(said, question)
    words = [word.casefold() for word in _ANY_WORD.findall(said)]
    if not 0 < len(words) <= _SHORT_ANSWER:
        return False
    is_small = words[0] in cues.common() - _ORDERS or words[0] in _YES_OR_NO
    return len(words) == 1 or is_small or any(word[0].isdigit() for word in words) or _shares(said, question)


def is_nod(prompt: str) -> bool:
    """Whether a prompt is hardly more than a yes or a no."""
    return length(prompt) <= _SHORT_ANSWER


def length(text: str) -> int:
    """The number of its words; in scripts without blanks two signs are taken for one."""
    return len(_ANY_WORD.findall(_WITHOUT_BLANKS.sub(" ", text))) + (len(_WITHOUT_BLANKS.findall(text)) + 1) // 2


def is_other_matter(following: Turn, turn: Turn, history: History) -> bool:
    """Whether the prompt after an answer surely does not speak of it: it goes on with what an earlier prompt was about.

    So it shares nothing with the answer, neither does its own answer, and several subjects with the earlier prompt.
    """
    said = subjects.of(following.prompt)
    if may_answer(following.prompt, "") or not history.goes_back(said, turn.time):
        return False
    common = {word for word in said if history.count(word, turn.time)[0] >= _MANY}
    if any((said - common) & subjects.of(reply.text) for reply in turn.replies):
        return False
    asked = [one.text for reply in turn.replies for one in sentences.split(reply.text) if one.is_question]
    return not any(_shares(reply.text, one) for reply in following.replies for one in asked)


def following(sessions: Sequence[SessionFacts], time: int) -> str:
    """The next prompt of the folder, if it is the first of its session."""
    prompts = [
        (turn.time, number, turn.prompt)
        for facts in sessions
        if not facts.session.parent_id
        for number, turn in enumerate(one for one in facts.turns[facts.copied :] if one.prompt)
        if turn.time > time and not turn.taken_back
    ]
    _, number, prompt = min(prompts, default=(0, 0, ""))
    return "" if number else prompt


def _shares(said: str, question: str) -> bool:
    return bool(subjects.of(said) & subjects.of(question))
