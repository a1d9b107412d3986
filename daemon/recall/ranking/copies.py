"""One result for a message and its copies: a fork repeats its session's messages, and a command prints the same again.

Copies are equal in role and in all that was said, called and printed; what differs in anything is never folded. Reading
messages takes time, so only those are compared that may be copies: they were made in the same millisecond, as in a
fork, or were found by an equal text, or by meaning with an equal score.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from daemon import records
from daemon.archive import Archive
from daemon.model import Kind
from daemon.recall.ranking.grouping import Result
from daemon.transcript.replay import replay

_MOST_READ = 200
"""Messages read for one answer; each takes a part of a millisecond."""


def folded(results: Sequence[Result], content_of: Callable[[Result], bytes]) -> list[Result]:
    """The first result of each content, in order, with its copies; `content_of` is empty where it cannot be compared.

    A title is what its session is called: a result by it is a copy of nothing.
    """
    kept: list[Result] = []
    places: dict[Hashable, list[int]] = {}
    for result in results:
        signs = list(_signs(result))
        original = _original(result, [place for sign in signs for place in places.get(sign, ())], kept, content_of)
        if original is None:
            original = len(kept)
            kept.append(result)
        else:
            copies = (*kept[original].copies, (result.message_id, result.session_id), *result.copies)
            kept[original] = replace(kept[original], copies=copies)
        for sign in signs:
            places.setdefault(sign, []).append(original)
    return kept


def _signs(result: Result) -> Iterator[Hashable]:
    """What a result has in common with its copies, and hardly with anything else."""
    if result.match.kind == Kind.TITLE:
        return
    yield result.created
    if result.match.text:
        yield result.match.kind, result.match.text
    elif result.mode == "semantic":
        yield result.match.score


def _original(
    result: Result, places: Sequence[int], kept: Sequence[Result], content_of: Callable[[Result], bytes]
) -> int | None:
    for place in dict.fromkeys(places):
        if kept[place].message_id == result.message_id:
            continue  # another part of it
        content = content_of(result)
        if content and content == content_of(kept[place]):
            return place
    return None


class Contents:
    """What results are compared by, each read once: with `is_part` the part that matched, else its whole message."""

    def __init__(self, archive: Archive, *, is_part: bool) -> None:
        self._archive, self._is_part = archive, is_part
        self._known: dict[tuple[str, str], bytes] = {}

    def __call__(self, result: Result) -> bytes:
        """A digest of what a result says; empty where its message is gone, or _MOST_READ were read."""
        part_id = result.match.part_id if self._is_part else ""
        key = (result.message_id, part_id)
        if key not in self._known:
            self._known[key] = self._digest(result.message_id, part_id) if len(self._known) < _MOST_READ else b""
        return self._known[key]

    def _digest(self, message_id: str, part_id: str) -> bytes:
        said = [] if part_id else self._archive.replay(message_id)
        if not said:  # a part, or a large message
            message = self._archive.message(message_id)
            parts = tuple(part for part in message.parts if part_id in {"", part.id}) if message is not None else ()
            said = replay(replace(message, parts=parts)) if message is not None else []
        return sha256(records.dumps(said)).digest() if said else b""
