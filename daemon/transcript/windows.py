"""A message read together with the few before it: so it is found also when its neighbours have the words.

Only what was said counts, not what tools took and gave; of a long message its head and its tail. In front stand the
session's title and the day, for whoever remembers no more than these. Same texts, same window; pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from daemon.model import Document, Kind

BEFORE = 2
"""How many of the messages before it a message is read with."""

SAID = frozenset({Kind.PROMPT, Kind.ANSWER, Kind.REASONING, Kind.TASK, Kind.TITLE})
MOST = 2000
"""Characters of one message that count."""

_TAIL = MOST // 4
# Not the locale's: the same text on every machine.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def said(document: Document) -> str:
    """What was said in one message: all of it, or its first three and its last quarter of MOST characters."""
    texts = (section.text.strip() for section in document.sections if section.kind in SAID)
    text = "\n".join(text for text in texts if text)
    if len(text) <= MOST:
        return text
    return f"{text[: MOST - _TAIL]}\n{text[len(text) - _TAIL :]}"


def window(texts: Sequence[str], title: str, created: int) -> str:
    """The text of a window: `texts` are what `said` gave for the messages before and for its own, in their order.

    `created` is the message's time in epoch ms. Where nothing was said at all there is no window, only "".
    """
    spoken = [text for text in texts if text]
    if not spoken:
        return ""
    return "\n".join(text for text in (title, day(created), *spoken) if text)


def day(created: int) -> str:
    """The day in UTC, spelt so that each part of it and the whole can be asked for; "" for a time out of all reason."""
    try:
        moment = datetime.fromtimestamp(created / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{moment.year} {_MONTHS[moment.month - 1]} {moment.day} {moment:%Y-%m-%d}"
