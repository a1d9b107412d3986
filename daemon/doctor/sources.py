"""The sources: found, readable, followed, and archived up to their newest message."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.archive.forgotten import MESSAGE
from daemon.control.answers import Check
from daemon.display import counted
from daemon.doctor.rows import Subject, attention, broken, ok, parted, restart
from daemon.errors import BadRecord, SourceBusy, SourceMissing
from daemon.exclude import AGENTS, Exclusion
from daemon.ingest.screened_source import ScreenedSource
from daemon.ingest.versions import is_own
from daemon.opencode import Source
from daemon.opencode.discover import Sources
from daemon.opencode.newest import Newest

_LATE_MS = 60_000
"""The service archives a message within seconds; after so long something holds it up."""
_OLD_MS = 86_400_000
"""Without a service nobody follows. After so long a person should know."""
_READ = "reconstitute index"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a source is archived: its newest message (epoch ms), and the newest that is not archived, if any."""

    newest: int | None
    waiting: Newest | None


def progress(archive: Archive, sources: Sources, source: Source, exclusion: Exclusion) -> Progress:
    """How far a source is archived, by its newest messages, without what is never archived.

    Raises:
        SourceBusy, SourceMissing: it cannot be read now.
    """
    newest: int | None = None
    for message in sources.newest(source):
        state = archive.state(message.message_id)
        if state is None and message.message_id not in archive.marks(source.name, message.session_id):
            if _is_left_out(archive, source, message, exclusion):
                continue
            return Progress(max(message.time, newest or 0), message)
        newest = max(newest or 0, state["created"] if state else message.time)
    return Progress(newest, None)


def _is_left_out(archive: Archive, source: Source, message: Newest, exclusion: Exclusion) -> bool:
    """Whether it was forgotten, is of a session of ours, or excluded by the configuration."""
    forgotten = archive.forgotten
    if forgotten.has_session(message.session_id) or forgotten.has(MESSAGE, message.message_id):
        return True
    try:
        session = source.read_session(message.session_id)
        if forgotten.has_session(session.id, session.parent_id):
            return True
        if is_own(session, ()) or exclusion.project(session.directory):
            return True
        reading = ScreenedSource(source, exclusion).read_message(message.session_id, message.message_id)
    except (BadRecord, SourceBusy):
        return False
    return exclusion.has_agents and AGENTS in reading.excluded


def sources(subject: Subject) -> Iterator[Check]:
    """Each source that is there, and each that cannot be used."""
    current = subject.sources.current()
    for source in current:
        yield from _source(subject, source)
    for place, reason in subject.sources.troubles.items():
        cause, fix = parted(reason.removeprefix(f"{place}: "))
        if "no such directory" in cause:
            yield attention(f"source {place}", f"{cause}: {fix}", "set opencode.data_dir")
        else:
            yield broken(f"source {place}", cause, fix)
    if not current and not subject.sources.troubles and subject.sources.has_looked:
        message = "OpenCode has written nothing yet, or writes elsewhere"
        yield attention("sources", f"none found in {subject.config.opencode_dir}: {message}", "set opencode.data_dir")


def _source(subject: Subject, source: Source) -> Iterator[Check]:
    what = f"source {source.name}"
    reason = subject.unread.get(source.name, "")
    if reason:
        cause, fix = parted(reason)
        yield broken(what, cause, fix or _READ)
        return
    try:
        state = progress(subject.archive, subject.sources, source, subject.exclusion)
    except SourceBusy as error:
        yield ok(what, f"locked by OpenCode at this moment: {error}")
        return
    except SourceMissing as error:
        yield broken(what, *parted(str(error)))
        return
    aside = len(subject.archive.quarantined(source.name))
    kept = (
        f"; {counted(aside, 'record')} could not be read and {'is' if aside == 1 else 'are'} kept aside"
        if aside
        else ""
    )
    if state.waiting is None:
        yield ok(what, f"{source.kind}, readable, archived up to its newest message{kept}")
        return
    waits_ms = subject.now - state.waiting.time
    message = f"its newest message has not been archived for {_duration(waits_ms)}{kept}"
    if subject.is_served:
        yield attention(what, message, restart(os.getpid())) if waits_ms > _LATE_MS else ok(what, message)
    elif waits_ms > _OLD_MS:
        yield attention(what, f"{message}, and no service runs", "reconstitute service install")
    else:
        yield ok(what, f"{message}; the next search reads it", _READ)


def unfollowed(subject: Subject) -> Iterator[Check]:
    """Databases of OpenCode that nobody follows; one that was written to lately may be in use."""
    for path in subject.sources.unfollowed:
        is_in_use = subject.now - path.stat().st_mtime_ns // 1_000_000 < _OLD_MS
        message = f"{path} is a database of OpenCode and is not followed"
        if is_in_use:
            yield attention("sources", f"{message}, but was written to lately", "name it in opencode.databases")
        else:
            yield ok("sources", f"{message}; it has not been written to for a day")


def watch(subject: Subject) -> Iterator[Check]:
    """Changes are told by file events, or found by scans."""
    if subject.watch is None:
        yield ok("watch", "no service runs; a command reads what is new before it answers")
    elif not subject.config.watch.enabled:
        yield ok("watch", "off (watch.enabled); only scans find changes")
    elif subject.watch.startswith("following"):
        yield ok("watch", subject.watch)
    else:
        yield attention("watch", *parted(subject.watch))


def targets(subject: Subject) -> Iterator[Check]:
    """Folders that are kept up to date: how their last runs went."""
    failed = [target for target in subject.targets if "failed" in target.state]
    for target in failed:
        message = f"its pages could not be made: {'; '.join(target.warnings[:1]) or target.state}"
        yield attention(f"target {target.path}", message, shlex.join(["reconstitute", target.path]))
    if subject.targets and not failed:
        yield ok("targets", f"{counted(len(subject.targets), 'target')}, the last run of each went well")


def _duration(ms: int) -> str:
    seconds = max(1, ms // 1000)
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return counted(seconds // size, unit)
    return counted(seconds, "second")
