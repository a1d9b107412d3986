"""Which recorded sessions, messages and paths have to do with a target, and what was said there.

A session beneath the target belongs whole; of any other session the turns that touched or named a path beneath it. The
result is a plain value with a fingerprint: the same evidence gives the same one. Reading is bounded, and what was left
unread is said. Nothing here judges or ranks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from daemon.archive import Archive
from daemon.errors import ReconstituteError
from daemon.files import FileHistory
from daemon.files.grade import SNAPSHOT
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.model import Kind, Message, Operation, Part, Session
from daemon.recall.search import Recall
from daemon.recall.snippet import counted
from daemon.reconstitute.extract import COMMAND, QUOTED_KINDS, Passage, is_run_command, split
from daemon.reconstitute.facts import file_changes, sessions, turns
from daemon.reconstitute.facts.values import FileChange, SessionFacts
from daemon.records import table, text
from daemon.redact import redact
from daemon.transcript.document import document, readable

MOST_MESSAGES = 10_000
_MOST_MENTIONS = 100
_MOST_DIRECTORIES = 8
_SPOKEN = frozenset({"text", "reasoning", "subtask"})
_PROSE_KB = 64
"""How much text of one part is looked at for passages."""


@dataclass(frozen=True, slots=True)
class Involved:
    """A session that had to do with the target; `messages` are the ids of those that did, in order."""

    session: Session
    title: str
    messages: tuple[str, ...]
    first_prompt: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything recorded about a target up to a moment. `touched` maps a path to the messages that touched it."""

    target: str
    sessions: tuple[Involved, ...]
    touched: dict[str, frozenset[str]]
    passages: tuple[Passage, ...]
    fingerprint: str
    warnings: tuple[str, ...] = ()
    facts: tuple[SessionFacts, ...] = ()


@dataclass(slots=True)
class _Draft:
    target: str
    left: int
    newest: int
    involved: list[Involved] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    facts: list[SessionFacts] = field(default_factory=list)
    changes: dict[str, tuple[FileChange, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unread: int = 0


def collect(
    archive: Archive,
    recall: Recall,
    target: str,
    histories: Iterable[FileHistory],
    until: int | None,
    *,
    most: int = MOST_MESSAGES,
) -> Scope:
    """The scope of `target`, with the `histories` of the paths beneath it, up to `until` (epoch ms; None: now).

    At most `most` messages are read for passages, those of the newest sessions first.
    """
    histories = list(histories)
    newest = max((session.updated for session in archive.sessions()), default=0)
    draft = _Draft(
        target, most, newest if until is None else min(newest, until), changes=file_changes.by_session(histories)
    )
    names = _names(archive, target)
    touched: dict[str, set[str]] = {}
    wanted: dict[str, set[str]] = {}
    for path, session_id, message_id in _touches(archive, names, histories, until):
        touched.setdefault(path, set()).add(message_id)
        wanted.setdefault(session_id, set()).add(message_id)
    whole = {
        session.id
        for session in archive.sessions()
        if any(is_beneath(session.directory, old) for old, _ in names) and _started(session, until)
    }
    for session_id, message_id in _mentions(archive, recall, target, draft):
        wanted.setdefault(session_id, set()).add(message_id)
    involved_sessions = [s for i in {*whole, *wanted} if (s := archive.session(i)) and _started(s, until)]
    for session in sorted(involved_sessions, key=lambda s: (-s.created, s.id)):
        _read(archive, session, None if session.id in whole else wanted[session.id], until, draft)
    if draft.unread:
        draft.warnings.append(
            f"{target}: not read for passages: {counted(draft.unread, 'message')} of older sessions (limit {most})"
        )
    involved = tuple(sorted(draft.involved, key=lambda i: (i.session.created, i.session.id)))
    passages = tuple(sorted(draft.passages, key=lambda p: (p.created, p.message_id)))
    by_path = {path: frozenset(messages) for path, messages in touched.items()}
    facts = tuple(sorted(draft.facts, key=lambda one: (one.session.created, one.id)))
    return Scope(target, involved, by_path, passages, _fingerprint(archive, involved), tuple(draft.warnings), facts)


def _touches(
    archive: Archive, names: Sequence[tuple[str, str]], histories: Iterable[FileHistory], until: int | None
) -> Iterator[tuple[str, str, str]]:
    """(path, session, message) of everything that a session did to a path of `histories`, or saw of it.

    The recorded edits tell it, read in one go for each of the target's `names`, and what made a revision, since a moved
    folder has no edits of the files in it. Snapshots, and commands that may have changed a whole folder, do not: they
    are about every file of a project.
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
    """The target, and the folders that have become it or a part of it: (former path, path now)."""
    names = [(target, target)]
    for old, new in sorted(archive.files.aliases().items()):
        if is_beneath(target, new):
            names.append((old + target[len(new) :], target))
        elif is_beneath(new, target):
            names.append((old, new))
    return names


def _started(session: Session, until: int | None) -> bool:
    return until is None or session.created <= until


def _mentions(archive: Archive, recall: Recall, target: str, draft: _Draft) -> Iterator[tuple[str, str]]:
    """Messages that name the target: by its absolute path, or relative to a session's directory above it."""
    folders = {session.directory for session in archive.sessions()} - {"", target}
    above = [folder for folder in folders if is_beneath(target, folder)]
    asks = [(target, "")]
    for directory in sorted(above, key=lambda d: (-len(d), d))[:_MOST_DIRECTORIES]:
        relative = target[len(directory.rstrip("/")) + 1 :]
        asks.append((relative if "/" in relative or "." in relative else relative + "/", directory))
    for phrase, directory in asks:
        try:
            found = recall.search(phrase, "literal", _MOST_MENTIONS, Filters(directory=directory))
        except ReconstituteError as error:
            draft.warnings.append(f"messages that only mention {target} were not looked for: {error}")
            return
        whole = _standing_alone(phrase)
        for hit in found.hits:
            message = archive.message(hit.message_id) if directory in {"", hit.directory} else None
            if message is not None and any(whole.search(readable(part.data)) for part in message.parts):
                yield hit.session_id, hit.message_id


def _standing_alone(path: str) -> re.Pattern[str]:
    """A pattern for `path` as a whole name: /home/shopping is not /home/shop, and lib/src/ is not src/."""
    start = r"(?<![\w.-])" if path.startswith("/") else r"(?<![\w./-])(?:\./)?"
    end = "" if path.endswith("/") else r"(?![\w-]|\.\w)"
    return re.compile(start + re.escape(path) + end)


def _read(archive: Archive, session: Session, wanted: set[str] | None, until: int | None, draft: _Draft) -> None:
    """Take up one session's messages: all of them, or the turns around `wanted`.

    A session that is not read, because enough were, is still one that had to do with the target.
    """
    every = archive.message_ids(session.id)
    order, unread = every[: draft.left], every[draft.left :]
    draft.left -= len(order)
    draft.unread += len(unread)
    messages = [m for i in order if (m := archive.message(i)) and (until is None or m.created <= until)]
    read = messages if wanted is None else _turns(messages, wanted)
    kept = [m.id for m in read]
    kept += [message_id for message_id in unread if wanted is None or message_id in wanted]
    if not kept:
        return
    title = redact(session.title)
    found = {message.id: list(_passages(message, session, title)) for message in messages}
    first = next((p for group in found.values() for p in group if p.kind == Kind.PROMPT), None)
    is_about_a_part = session.directory != draft.target and is_beneath(session.directory, draft.target)
    for message_id in kept:
        opens = first is not None and message_id == first.message_id and not is_about_a_part
        draft.passages += [replace(p, opening=True) if opens else p for p in found.get(message_id, ())]
    deleted = (archive.session_state(session.id) or {}).get("deleted") is not None
    draft.involved.append(Involved(session, title, tuple(kept), first.text if first else "", deleted))
    changes = draft.changes.get(session.id, ())
    draft.facts.append(
        sessions.of(archive, session, read, changes, is_whole=wanted is None, until=until, newest=draft.newest)
    )


def _turns(messages: Sequence[Message], wanted: set[str]) -> list[Message]:
    """The messages of the turns that have a wanted one."""
    kept = (turn for turn in turns.divided(messages) if any(message.id in wanted for message in turn))
    return list(chain.from_iterable(kept))


def _passages(message: Message, session: Session, title: str) -> Iterator[Passage]:
    """What was said in a message, and the shell commands in it that ended well, as passages."""
    spoken = replace(message, parts=tuple(part for part in message.parts if part.type in _SPOKEN))
    for section in document(spoken, session, _PROSE_KB).sections:
        if section.kind in QUOTED_KINDS:
            for piece, code in split(section.text):
                yield Passage(piece, section.kind, message.id, session.id, title, message.created, code=code)
    for part in message.parts:
        command = _completed_command(part)
        if command and is_run_command(command):
            yield Passage(redact(command), COMMAND, message.id, session.id, title, message.created, code=True)


def _completed_command(part: Part) -> str:
    """The command of a shell call that ended with exit code 0 (formats section 3: another code is completed too)."""
    state = table(part.data.get("state"))
    if part.type != "tool" or part.data.get("tool") != "bash" or state.get("status") != "completed":
        return ""
    ended_well = table(state.get("metadata")).get("exit") == 0
    return text(table(state.get("input")).get("command")).strip() if ended_well else ""


def _fingerprint(archive: Archive, involved: Sequence[Involved]) -> str:
    total = hashlib.sha256()
    for one in involved:
        total.update(f"{one.session.id}\0{one.title}\0{one.deleted}\n".encode("utf-8", "replace"))
        for message_id in one.messages:
            state = archive.state(message_id) or {}
            total.update(f"{message_id}\0{state.get('hash')}\0{state.get('deleted')}\n".encode())
    return total.hexdigest()
