"""The texts that are indexed of a message: chunks, which are embedded, and windows, which are searched by words.

A chunk is small enough for the built-in model to read whole. Documents are cut at paragraph, line or sentence ends,
with an overlap, so that what stands on a border is whole in one of them. Same document, same chunks, same numbers.
Whoever changes a rule for chunks changes CHUNKER_VERSION: it is part of the semantic index's fingerprint, so everything
is embedded again and old and new chunks never mix.

A window is the spoken text of a message and of the few before it, so that a search also finds a message by the words of
its neighbours. Only the head and the tail of a long message count. The window starts with the session's title and the
day. Only the lexical index has windows: if you change a rule for them, raise SCHEMA in index/lexical/schema.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from daemon.model import Chunk, Document, Kind, Section
from daemon.transcript.document import capped

CHUNKER_VERSION = "c1"
WINDOW = 900
"""Characters of a window: all-MiniLM-L6-v2 reads 256 word pieces, at about 3.5 characters each."""
OVERLAP = 135
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U0001f000-\U0003ffff]")
_CUTS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"[.!?;:]\s|[。！？]"), re.compile(r"\s"))
_JOINT = "\n\n"
BEFORE = 2
"""Earlier messages in a message's window."""

SPOKEN = frozenset({Kind.PROMPT, Kind.ANSWER, Kind.REASONING, Kind.TASK, Kind.TITLE})
MOST = 2000
"""Characters of one message that count."""

_TAIL = MOST // 4
# Not the locale's: the same text on every machine.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def chunks(document: Document, embedded_kb: int) -> list[Chunk]:
    """The windows of `document`, numbered from 0; of each section at most `embedded_kb` × 1024 characters count.

    Short neighbouring sections share a window. A document without text has none.
    """
    chunks_so_far: list[Chunk] = []
    for sections, text in _gathered(document, embedded_kb * 1024):
        kinds = tuple(dict.fromkeys(str(section.kind) for section in sections))
        tools = tuple(dict.fromkeys(section.tool for section in sections if section.tool))
        for start, end in windows(text):
            chunks_so_far.append(Chunk(document.message_id, len(chunks_so_far), text[start:end].strip(), kinds, tools))
    return chunks_so_far


def windows(text: str) -> list[tuple[int, int]]:
    """(start, end) of each window; together they cover every character of `text` that is not blank."""
    spans = []
    start, size = 0, len(text)
    while start < size:
        end = _end(text, start, min(size, start + _window_chars(text, start)))
        if text[start:end].strip():
            spans.append((start, end))
        if end >= size or not text[end:].strip():
            break
        start = max(start + 1, _resume(text, start, end))
    return spans


def _gathered(document: Document, limit: int) -> Iterator[tuple[list[Section], str]]:
    """Runs of sections that fit one window together; a longer section stands alone."""
    run: list[Section] = []
    text = ""
    for section in document.sections:
        own = capped(section.text, limit).strip()
        if not own:
            continue
        joined = text + _JOINT + own if text else own
        if run and len(joined) > _window_chars(joined, 0):
            yield run, text
            run, joined = [], own
        run, text = [*run, section], joined
    if run:
        yield run, text


def _window_chars(text: str, start: int) -> int:
    """How many characters from `start` on fit a window: of wide scripts each is a word piece of its own."""
    part = text[start : start + WINDOW]
    share = len(_WIDE.findall(part)) / len(part) if part else 0.0
    return int(WINDOW / (1 + 2.5 * share))


def _end(text: str, start: int, end: int) -> int:
    """The best place to cut in the last third before `end`."""
    if end >= len(text):
        return len(text)
    earliest = start + max(1, (end - start) * 2 // 3)
    for cut in _CUTS:
        places = [match.end() for match in cut.finditer(text, earliest, end)]
        if places:
            return places[-1]
    return end


def _resume(text: str, start: int, end: int) -> int:
    """Where the next window begins: an overlap before `end`, at the beginning of a line or a word."""
    earliest = max(start + 1, end - max(1, (end - start) * OVERLAP // WINDOW))
    for cut in _CUTS[1:]:
        match = cut.search(text, earliest, end)
        if match is not None and match.end() < end:
            return match.end()
    return earliest


def spoken_text(sections: Iterable[Section]) -> str:
    """The spoken text of one message: all of it, or its first three and its last quarter of MOST characters."""
    texts = (section.text.strip() for section in sections if section.kind in SPOKEN)
    text = "\n".join(text for text in texts if text)
    if len(text) <= MOST:
        return text
    return f"{text[: MOST - _TAIL]}\n{text[len(text) - _TAIL :]}"


def window(texts: Sequence[str], title: str, created: int) -> str:
    """The text of a window: `texts` are the `spoken_text` of the messages before and of its own, in order.

    `created` is the message's time in epoch ms. Without any spoken text the window is empty.
    """
    spoken = [text for text in texts if text]
    if not spoken:
        return ""
    return "\n".join(text for text in (title, day(created), *spoken) if text)


def day(created: int) -> str:
    """The day in UTC, spelt so that a search finds its parts and the whole; "" for an impossible time."""
    try:
        moment = datetime.fromtimestamp(created / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{moment.year} {_MONTHS[moment.month - 1]} {moment.day} {moment:%Y-%m-%d}"
