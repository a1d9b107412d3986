"""Collects the recorded sessions, messages and paths that concern a target.

Of a session beneath the target, all messages count; of any other session, the turns that touched or named a path
beneath the target. The result is a plain value with a fingerprint: the same evidence gives the same one. The number of
messages is limited, and a warning says how many were not read. Nothing is judged or ranked here.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import chain

from daemon import records
from daemon.archive import Archive
from daemon.display import counted
from daemon.errors import Retry, Skip
from daemon.exports import Export
from daemon.exports.content import MessageContent
from daemon.exports.sessions import open_session
from daemon.files import FileHistory
from daemon.files.history import SNAPSHOT
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.model import Message, Operation, Session
from daemon.recall.search import RecallEngine
from daemon.reconstitute.facts.session import file_changes, finish, page_size, read_session, turns
from daemon.reconstitute.facts.session.reverts import with_kept
from daemon.reconstitute.facts.session_values import FileChange, SessionFacts
from daemon.redact import fingerprint, known
from daemon.transcript.document import readable

MOST_MESSAGES = 10_000
_MOST_MENTIONS = 100
_MOST_DIRECTORIES = 8


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything recorded about a target up to a moment; `touched` has the messages that touched each path."""

    target: str
    sessions: tuple[SessionFacts, ...]
    touched: dict[str, frozenset[str]]
    fingerprint: str
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    target: str
    remaining: int
    newest: int
    sessions: list[SessionFacts] = field(default_factory=list)
    changes: dict[str, tuple[FileChange, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unread: int = 0


def collect(
    archive: Archive,
    recall: RecallEngine,
    target: str,
    histories: Iterable[FileHistory],
    until: int | None,
    *,
    limit: int = MOST_MESSAGES,
) -> Scope:
    """The scope of `target`, with the `histories` of the paths beneath it, up to `until` (epoch ms; None: now).

    At most `limit` messages are read, those of the newest sessions first.
    """
    histories = list(histories)
    newest = max((session.updated for session in archive.sessions()), default=0)
    draft = _Draft(
        target, limit, newest if until is None else min(newest, until), changes=file_changes.by_session(histories)
    )
    names = _names(archive, target)
    touched: dict[str, set[str]] = {}
    message_ids: dict[str, set[str]] = {}
    for path, session_id, message_id in _touches(archive, names, histories, until):
        touched.setdefault(path, set()).add(message_id)
        message_ids.setdefault(session_id, set()).add(message_id)
    whole_sessions = {
        session.id
        for session in archive.sessions()
        if any(is_beneath(session.directory, old) for old, _ in names) and _started(session, until)
    }
    for session_id, message_id in _mentions(archive, recall, target, draft):
        message_ids.setdefault(session_id, set()).add(message_id)
    involved_sessions = [s for i in {*whole_sessions, *message_ids} if (s := archive.session(i)) and _started(s, until)]
    for session in sorted(involved_sessions, key=lambda s: (-s.created, s.id)):
        _read(archive, session, None if session.id in whole_sessions else message_ids[session.id], until, draft)
    if draft.unread:
        draft.warnings.append(
            f"{target}: not read: {counted(draft.unread, 'message')} of older sessions (limit {limit})"
        )
    by_path = {path: frozenset(messages) for path, messages in touched.items()}
    involved = finish(with_kept(session, histories) for session in draft.sessions)
    if all(history.path != target for history in histories):  # of a single file, everything is elsewhere
        inside = [name for name, _ in names]
        involved = tuple(replace(session, outside=_outside(session, target, inside)) for session in involved)
    return Scope(target, involved, by_path, _fingerprint(archive, involved), tuple(draft.warnings))


def _touches(
    archive: Archive, names: Sequence[tuple[str, str]], histories: Iterable[FileHistory], until: int | None
) -> Iterator[tuple[str, str, str]]:
    """(path, session, message) of everything that changed or read a path of `histories`.

    These are the recorded edits, read at once for each of the target's `names`, and the events that made a revision,
    because moving a folder records no edits of the files in it. Snapshots do not count, nor do commands that may have
    changed a whole folder, because they concern every file of a project.
    """
    paths = set()
    for history in histories:
        paths.add(history.path)
        for revision in history.revisions:
            if revision.tool != SNAPSHOT and revision.operation is not Operation.UNCLEAR:
                yield history.path, revision.session_id, revision.message_id
    for old, now in names:
        for edit in chain(archive.files.edits(old), archive.files.beneath(old)):
            path = now + edit.path[len(old) :]
            if path in paths and edit.tool != SNAPSHOT and (until is None or edit.time <= until):
                yield path, edit.session_id, edit.message_id


def _names(archive: Archive, target: str) -> list[tuple[str, str]]:
    """The target, and the folders that became it or a part of it: (former path, current path)."""
    names = [(target, target)]
    for old, new in sorted(archive.files.aliases().items()):
        if is_beneath(target, new):
            names.append((old + target[len(new) :], target))
        elif is_beneath(new, target):
            names.append((old, new))
    return names


def _started(session: Session, until: int | None) -> bool:
    return until is None or session.created <= until


def _mentions(archive: Archive, recall: RecallEngine, target: str, draft: _Draft) -> Iterator[tuple[str, str]]:
    """Messages that name the target: by its absolute path, or relative to a session's directory above it."""
    folders = {session.directory for session in archive.sessions()} - {"", target}
    above = [folder for folder in folders if is_beneath(target, folder)]
    asks = [(target, "")]
    for directory in sorted(above, key=lambda d: (-len(d), d))[:_MOST_DIRECTORIES]:
        relative = target[len(directory.rstrip("/")) + 1 :]
        asks.append((relative if "/" in relative or "." in relative else relative + "/", directory))
    for phrase, directory in asks:
        try:
            results = recall.search(phrase, "literal", _MOST_MENTIONS, Filters(directory=directory))
        except (Retry, Skip) as error:
            draft.warnings.append(f"messages that only mention {target} were not looked for: {error}")
            return
        if results.degraded:
            draft.warnings.append(f"not all messages that mention {target} were found: {'; '.join(results.degraded)}")
        pattern = _standing_alone(phrase)
        for hit in results.hits:
            message = archive.message(hit.message_id) if directory in {"", hit.directory} else None
            if message is not None and any(pattern.search(readable(part.data)) for part in message.parts):
                yield hit.session_id, hit.message_id


def _standing_alone(path: str) -> re.Pattern[str]:
    """A pattern for `path` as a whole name: /home/shopping is not /home/shop, and lib/src/ is not src/."""
    start = r"(?<![\w.-])" if path.startswith("/") else r"(?<![\w./-])(?:\./)?"
    end = "" if path.endswith("/") else r"(?![\w-]|\.\w)"
    return re.compile(start + re.escape(path) + end)


def _read(archive: Archive, session: Session, selected: set[str] | None, until: int | None, draft: _Draft) -> None:
    """Add one session to the draft: all of its messages, or the turns around `selected`.

    A session beyond the limit of messages is added too, but its messages are not read.
    """
    all_ids = archive.message_ids(session.id)
    order, unread = all_ids[: draft.remaining], all_ids[draft.remaining :]
    draft.remaining -= len(order)
    draft.unread += len(unread)
    messages = [m for i in order if (m := archive.message(i)) and (until is None or m.created <= until)]
    read = messages if selected is None else _turns(messages, selected)
    message_ids = [m.id for m in read]
    message_ids += [message_id for message_id in unread if selected is None or message_id in selected]
    if not message_ids:
        return
    changes = draft.changes.get(session.id, ())
    facts = read_session(archive, session, read, changes, is_whole=selected is None, until=until, newest=draft.newest)
    number = {message_id: place for place, message_id in enumerate(all_ids, start=1)}
    size = {message.id: page_size(message) for message in read}
    numbers, of_size = (
        tuple(number[message_id] for message_id in message_ids),
        tuple(size.get(message_id, 0) for message_id in message_ids),
    )
    draft.sessions.append(replace(facts, message_ids=tuple(message_ids), numbers=numbers, sizes=of_size))


def _outside(session: SessionFacts, target: str, inside: Sequence[str]) -> tuple[str, ...]:
    """Files outside the folder (all its names) that a session's own calls changed, relative to `target`.

    Empty for a session that worked elsewhere, because the folder's page is not about what it did there.
    """
    if not session.is_whole:
        return ()
    calls = (call for turn in session.own_turns if not turn.taken_back for call in turn.calls)
    paths = {path for call in calls for path in call.changed if path.startswith("/")}
    elsewhere = sorted(path for path in paths if not any(is_beneath(path, name) for name in inside))
    return tuple(min(path, posixpath.relpath(path, target), key=len) for path in elsewhere)


def _turns(messages: Sequence[Message], selected: set[str]) -> list[Message]:
    """The messages of the turns that have a selected one."""
    selected_turns = (turn for turn in turns.divided(messages) if any(message.id in selected for message in turn))
    return list(chain.from_iterable(selected_turns))


def _fingerprint(archive: Archive, involved: Sequence[SessionFacts]) -> str:
    """Changes with every message, and with titles, todo lists, reverts and interrupted answers, which are in none."""
    total = hashlib.sha256()
    for session in involved:
        endings = [(turn.ending, turn.taken_back, turn.in_doubt, turn.in_part, turn.kept) for turn in session.turns]
        content = (session.id, session.title, session.deleted, session.todos, session.reverts, endings)
        total.update(repr(content).encode("utf-8", "replace"))
        for message_id in session.message_ids:
            state = archive.state(message_id) or {}
            total.update(f"{message_id}\0{state.get('hash')}\0{state.get('deleted')}\n".encode())
    return total.hexdigest()


class Conversations:
    """The messages of `sessions`, for pages that quote them in full."""

    def __init__(self, archive: Archive, sessions: Sequence[SessionFacts]) -> None:
        self._archive = archive
        self._secrets: dict[str, str] = {}
        for session in sessions:
            self._secrets |= archive.secrets.of(session.id)
        self._secrets_digest = records.digest(fingerprint().encode(), records.dumps(sorted(self._secrets.items())))

    def digest(self, message_ids: Sequence[str]) -> str:
        """Changes whenever the result of `messages` may change, except for the time when a deletion was noticed."""
        states = [self._archive.state(message_id) or {} for message_id in message_ids]
        contents = [
            [message_id, state.get("hash"), state.get("deleted") is not None, state.get("gone")]
            for message_id, state in zip(message_ids, states, strict=True)
        ]
        return records.digest(self._secrets_digest.encode(), records.dumps(contents))

    def hiding(self) -> AbstractContextManager[None]:
        """While this is active, redaction hides the secrets of these sessions and no others."""
        return known.only(self._secrets)

    def messages(self, session_id: str, message_ids: Sequence[str]) -> Iterator[MessageContent]:
        """These messages of a session, in this order, without those that the archive does not have."""
        session = open_session(self._archive, Export(session=session_id, results="full"), session_id)
        return replace(session, only=message_ids).messages()
