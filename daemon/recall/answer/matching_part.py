"""What is shown of a chunk when only some kinds, or one tool, are asked for: the part of it that is of them.

Short parts of a message share a chunk, whatever their kinds; it passes a filter if one of them does, and is known by
the first. So the part that the filter means is looked for in it, in the message as it is archived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from daemon.index import Match
from daemon.model import Kind, Message, Section
from daemon.redact import redact
from daemon.transcript.document import document

_LONG = 8192
"""Characters of a text that surely has chunks of its own; to redact it would take longer than all the rest."""
_JOINT = "\n\n"
_WHOLE_KB = 1024


@dataclass(frozen=True, slots=True)
class Allowed:
    """Kinds and a tool that are asked for; empty means any."""

    kinds: tuple[str, ...] = ()
    tool: str = ""

    def has(self, kind: str, tool: str) -> bool:
        """Whether a text of this kind, of this tool, is meant."""
        return (not self.kinds or kind in self.kinds) and (not self.tool or tool == self.tool)


ANYTHING = Allowed()


def meant(match: Match, message: Message, title: str, allowed: Allowed, words: Sequence[str]) -> Match | None:
    """`match`, of a chunk of `message`, as a match of the part that is `allowed`; None where the message has none.

    `title` is the session's. Of several parts the one with most of `words`, then the longest, is taken. What was found
    in another way than by meaning is of a part already, and comes back as it is.
    """
    if not match.record or match.part_id or allowed == ANYTHING:
        return match
    some = [section for section in _sections(message, title, is_light=True) if allowed.has(section.kind, section.tool)]
    whole = _JOINT + match.text + _JOINT
    pieces = [section for section in some if _JOINT + section.text.strip() + _JOINT in whole]
    if pieces:
        return _as_match(match, _best(pieces, words))
    if match.text and allowed.has(match.kind, match.tool):
        return match  # a window of a long text, which shares it with nothing
    if not some:
        every = _sections(message, title, is_light=False)
        some = [section for section in every if allowed.has(section.kind, section.tool)]
    return _as_match(match, _best(some, words)) if some else None


def _sections(message: Message, title: str, *, is_light: bool) -> Iterator[Section]:
    """The searchable texts of the message, redacted; `is_light`: without the long ones."""
    if title.strip():
        yield Section("title", Kind.TITLE, redact(title))
    if is_light:
        parts = tuple(replace(part, data=_light(part.data)) for part in message.parts)
        message = replace(message, parts=parts)
    yield from document(message, None, _WHOLE_KB).sections


def _light(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONG else ""
    if isinstance(value, dict):
        return {key: _light(item) for key, item in value.items()}
    return [_light(item) for item in value] if isinstance(value, list) else value


def _best(pieces: Sequence[Section], words: Sequence[str]) -> Section:
    def worth(section: Section) -> tuple[int, int]:
        text = section.text.casefold()
        return sum(word.casefold() in text for word in words), len(text)

    return max(pieces, key=worth)


def _as_match(match: Match, section: Section) -> Match:
    text = section.text.strip()
    return replace(match, part_id=section.part_id, kind=str(section.kind), tool=section.tool, text=text)
