"""The indexes: both can be opened, are whole on the disk, and hold what the archive has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from daemon.archive import TOOLS
from daemon.control.answers import Check
from daemon.display import counted
from daemon.doctor.rows import Subject, attention, broken, ok, restart
from daemon.errors import IndexBroken
from daemon.index import Filters, number_of
from daemon.index.lexical import Lexical
from daemon.ingest import Entries, claims
from daemon.ingest.outbox import sample

_SAMPLE = 60
_MOST_WAITING = 10_000


def states(subject: Subject) -> Iterator[Check]:
    """What is known of the indexes without opening one; no row where nothing is wrong."""
    waiting = subject.archive.waiting("lexical")
    if waiting and not subject.is_served:
        message = f"{counted(waiting, 'message')} not indexed yet; the next search does it"
        yield attention("words", message, "reconstitute index")
    if subject.upkeep.semantic_state.startswith("broken"):
        yield broken("meaning", subject.upkeep.semantic_state, _rebuild(subject, "semantic"))


def words(subject: Subject) -> Iterator[Check]:
    """The index of words: its files, its count, and a sample of messages that it must have."""
    waiting = subject.archive.waiting("lexical")
    try:
        Lexical.verify(subject.config.archive_dir / "index" / "lexical")
        held = subject.upkeep.lexical.count()
        missing, sampled = _missing(subject)
    except IndexBroken as error:
        yield broken("words", f"{error}", _rebuild(subject, "lexical"))
        return
    total = subject.archive.message_count()
    counts = f"{counted(held, 'text')} of {counted(total, 'message')}"
    if missing:
        yield broken(
            "words", f"{counts}; {missing} of {sampled} sampled messages are missing", _rebuild(subject, "lexical")
        )
    else:
        waits = f"; {counted(waiting, 'message')} not indexed yet" if waiting else ""
        yield ok("words", f"{counts}; none of {sampled} sampled messages is missing{waits}")


def _missing(subject: Subject) -> tuple[int, int]:
    """How many messages of a sample are not in the index of words, and how many were sampled."""
    archive, index = subject.archive, subject.upkeep.lexical
    waiting = {message_id for message_id, _, _ in archive.outbox("lexical", _MOST_WAITING)}
    if len(waiting) >= _MOST_WAITING:
        return 0, 0
    entries = Entries(archive, subject.config.limits.indexed_kb, windows=False)
    step = max(1, archive.message_count() // _SAMPLE)
    ids = [message_id for message_id in islice(archive.all_message_ids(), 0, None, step) if message_id not in waiting]
    known = [entry for message_id in ids if (entry := entries.of(message_id)) is not None and entry.document.sections]
    numbers = {number_of(entry.document.message_id) for entry in known}
    found = index.allowed_ids(Filters(), len(numbers), among=numbers) or ()
    return len(numbers - set(found)), len(numbers)


def meaning(subject: Subject) -> Iterator[Check]:
    """The index of meaning: its process opens it and finds a sample of what it must have."""
    upkeep, archive = subject.upkeep, subject.archive
    waiting = max(archive.waiting("semantic"), archive.waiting(TOOLS))
    total = archive.message_count()
    waits = f"; {counted(waiting, 'message')} not embedded yet" if waiting else ""
    fix = "reconstitute index --wait" if waiting and not subject.is_served else ""
    if upkeep.is_off:
        yield ok("meaning", 'off: embedding.what is "none"')
        return
    if upkeep.is_embedded and not claims.has_name(subject.config.archive_dir / "index" / "semantic"):
        if archive.note("semantic index") and total:
            yield broken("meaning", "it was built, and its folder is empty or gone", _rebuild(subject, "semantic"))
            return
        yield ok("meaning", f"not built yet; everything is found by words{waits}", fix)
        return
    kb = subject.config.limits.indexed_kb, subject.config.limits.embedded_kb
    try:
        index = upkeep.open_semantic()
        held = index.count()
        records = sample(archive, upkeep.embedder, kb, subject.config.embedding.what)
        index.probe(records)
    except IndexBroken as error:
        yield broken("meaning", f"{error}", _rebuild(subject, "semantic"))
        return
    counts = f"{counted(held, 'text')} of {counted(total, 'message')}, by {upkeep.embedder.name}"
    yield ok("meaning", f"{counts}; each of {len(records)} sampled texts finds itself{waits}", fix)


def _rebuild(subject: Subject, name: str) -> str:
    """The command that has an index rebuilt: what opens it next checks it, and sets a broken one aside."""
    if subject.is_served:
        return restart(os.getpid())
    return "reconstitute index" if name == "lexical" else "reconstitute index --wait"
