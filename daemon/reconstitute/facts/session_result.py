"""What came of a session in the agent's words: the last sentences of its last whole answer.

They say what no list of files does: what a review found, which way was chosen, what does not work. Questions and offers
at the end are no result, nor is an answer that only repeats the prompt. The quote consists of sentences of one message,
in their order, with "…" where something between them is left out. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.session_values import Citation, Ending, Reply, SessionFacts, Turn

_FEWEST_NEW = 2
"""Words that an answer must have beyond the prompt, the names of the files and the commonest words."""
_FEWEST_IN_TALK = 4
"""The same without tool calls: such an answer may only confirm what was said."""
_SHORTEST_WORD = 3
"""A shorter one is a pair of characters; in a script without blanks a word has about two of these."""
_LAST_TURNS = 3
_LEFT_OUT = " … "


def last(facts: SessionFacts, most: int, known: Collection[str] = ()) -> Citation | None:
    """The result, quoted in at most `most` characters; None if the answer says nothing of its own.

    None, too, if each of its sentences is in one of the `known` texts. An answer that was stopped or taken back, and
    what was said before the last tool call, is no result. The newest of the last turns that says something counts,
    unless a later turn overtakes it.
    """
    turns = [turn for turn in facts.exchanges if turn.prompt and not turn.taken_back]
    for number, turn in enumerate(reversed(turns[-_LAST_TURNS:])):
        reply = _final(turn) if turn.ending is Ending.ANSWERED else None
        chosen = _chosen(reply, most) if reply is not None else []
        if reply is not None and chosen and _says_something(chosen, turn, facts):
            quote = sentences.shorten(_joined(reply.text, chosen), most)
            is_known = all(any(sentence.text in other for other in known) for sentence in chosen)
            later = turns[len(turns) - number :]
            is_overtaken = any(_overtakes(other, turn, quote) for other in later)
            return None if is_known or is_overtaken else Citation(facts.id, reply.message_id, reply.time, quote)
    return None


def _overtakes(later: Turn, turn: Turn, quote: str) -> bool:
    """Whether a later turn is about what the answer says, or changed the same files."""
    changed = [{path for call in each.calls for path in call.changed} for each in (later, turn)]
    return bool(changed[0] & changed[1] or subjects.of(later.prompt) & subjects.of(quote))


def _final(turn: Turn) -> Reply | None:
    """The text after the last tool call, if it is recorded to its end."""
    reply = next(reversed(turn.replies), None)
    if reply is None or reply.text.endswith("…"):
        return None
    places = {message: place for place, message in enumerate(turn.message_ids)}
    worked = max((places.get(call.message_id, 0) for call in turn.calls), default=-1)
    return reply if places.get(reply.message_id, -1) > worked else None


def _chosen(reply: Reply, most: int) -> list[Sentence]:
    """As many sentences from the end as fit, at least one; without the questions and offers after them."""
    pieces = [*sentences.split(reply.text)]
    while pieces and _asks(pieces[-1], reply.text):
        pieces.pop()
    chosen: list[Sentence] = []
    for piece in reversed(pieces):
        if chosen and len(_joined(reply.text, [piece, *chosen])) > most:
            break
        chosen.insert(0, piece)
    return chosen


def _asks(sentence: Sentence, context: str) -> bool:
    languages = cues.of(sentence.bare, context)
    kinds = ("offer", "closer")
    return sentence.is_question or any(language.find(kind, sentence.bare) for kind in kinds for language in languages)


def _joined(text: str, chosen: Sequence[Sentence]) -> str:
    """The sentences as they stand in `text`, with "…" where something between two of them is left out."""
    line, quote, end = " ".join(text.split()), "", 0
    for sentence in chosen:
        start = line.find(sentence.text, end)
        between = line[end:start] if start >= 0 else _LEFT_OUT
        quote += (between if not between.strip() else _LEFT_OUT) if quote else ""
        quote += sentence.text
        end = max(start, end) + len(sentence.text)
    return quote


def _says_something(chosen: Sequence[Sentence], turn: Turn, facts: SessionFacts) -> bool:
    """Whether the sentences have words of their own."""
    names = [change.path.rsplit("/", 1)[-1] for change in facts.changes]
    given = subjects.of(" ".join([turn.prompt, *names]))
    own = subjects.of(" ".join(sentence.text for sentence in chosen)) - given
    pairs = sum(len(word) < _SHORTEST_WORD and not word.isascii() for word in own)
    return len(own) - pairs / 2 >= (_FEWEST_NEW if turn.calls else _FEWEST_IN_TALK)
