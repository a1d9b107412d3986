"""What came of a session in the agent's words: the last sentences of its last whole answer.

They say what no list of files does: what a review found, which way was chosen, what does not work. Questions and offers
at the end are no result, nor is an answer that says nothing but what was asked. Guarantees: the quote is made of
sentences of one message, in their order, with "…" where something between them is left out. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.session_values import Citation, Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.setbacks import own_turns

_FEWEST_NEW = 2
"""Words of an answer that neither the prompt nor the names of the files have, without the commonest ones."""
_FEWEST_IN_TALK = 4
"""The same, where no tool was called: such an answer may only confirm what was said."""
_SHORTEST_WORD = 3
"""A shorter one is a pair of signs, of which a word in a script without blanks has about two."""
_LAST_TURNS = 3
_LEFT_OUT = " … "


def last(facts: SessionFacts, most: int, told: Collection[str] = ()) -> Citation | None:
    """The message with the quote, which has at most `most` characters; None where it says nothing of its own.

    Nor where all that it says is `told` elsewhere, sentence by sentence. An answer that was stopped or taken back, and
    what was said before the last tool call, is no result. Of the last turns the newest counts that says something, and
    none where a later one may have overtaken it.
    """
    turns = [turn for turn in own_turns(facts) if turn.prompt and not turn.is_compaction and not turn.taken_back]
    for number, turn in enumerate(reversed(turns[-_LAST_TURNS:])):
        reply = _final(turn) if turn.ending is Ending.ANSWERED else None
        chosen = _chosen(reply, most) if reply is not None else []
        if reply is not None and chosen and _says_something(chosen, turn, facts):
            quote = sentences.shorten(_joined(reply.text, chosen), most)
            is_told = all(any(one.text in other for other in told) for one in chosen)
            later = turns[len(turns) - number :]
            is_overtaken = any(_overtakes(one, turn, quote) for one in later)
            return None if is_told or is_overtaken else Citation(facts.id, reply.message_id, reply.time, quote)
    return None


def _overtakes(later: Turn, turn: Turn, quote: str) -> bool:
    """Whether a later turn speaks of what the answer says, or changed the same files."""
    changed = [{path for call in one.calls for path in call.changed} for one in (later, turn)]
    return bool(changed[0] & changed[1] or subjects.of(later.prompt) & subjects.of(quote))


def _final(turn: Turn) -> Reply | None:
    """The text after the last tool call, where it is recorded to its end."""
    reply = next(reversed(turn.replies), None)
    if reply is None or reply.text.endswith("…"):
        return None
    places = {message: place for place, message in enumerate(turn.message_ids)}
    worked = max((places.get(call.message_id, 0) for call in turn.calls), default=-1)
    return reply if places.get(reply.message_id, -1) > worked else None


def _chosen(reply: Reply, most: int) -> list[Sentence]:
    """As many sentences from the end as fit, and one at least; without the questions and offers after them."""
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
    return sentence.is_question or any(one.find(kind, sentence.bare) for kind in kinds for one in languages)


def _joined(text: str, chosen: Sequence[Sentence]) -> str:
    """The sentences as they stand in `text`, with a mark where something between two of them is left out."""
    line, made, end = " ".join(text.split()), "", 0
    for one in chosen:
        start = line.find(one.text, end)
        between = line[end:start] if start >= 0 else _LEFT_OUT
        made += (between if not between.strip() else _LEFT_OUT) if made else ""
        made += one.text
        end = max(start, end) + len(one.text)
    return made


def _says_something(chosen: Sequence[Sentence], turn: Turn, facts: SessionFacts) -> bool:
    """Whether it has words of its own."""
    names = [change.path.rsplit("/", 1)[-1] for change in facts.changes]
    asked = subjects.of(" ".join([turn.prompt, *names]))
    own = subjects.of(" ".join(one.text for one in chosen)) - asked
    pairs = sum(len(one) < _SHORTEST_WORD and not one.isascii() for one in own)
    return len(own) - pairs / 2 >= (_FEWEST_NEW if turn.calls else _FEWEST_IN_TALK)
