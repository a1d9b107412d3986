"""The call that reads a session: a page of its messages, taken apart, with the files that each call changed.

Guarantees: everything is redacted before it is cut or compared. Messages come in the order of the conversation, also
those that OpenCode has deleted or a revert took back, which say so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from daemon import records
from daemon.app.calls.message_changes import changed_paths, diffs, with_diffs
from daemon.archive import Archive
from daemon.archive.ids import whole_id
from daemon.control import calls
from daemon.control import conversation_answers as answers
from daemon.control.calls import Progress
from daemon.display import shorten
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.exports.content import Item, MessageContent, Text, Thought, ToolCall, message_content, pretty, shortened
from daemon.exports.sessions import open_session
from daemon.files.events.revert_records import marks
from daemon.model import Json, Message, Session
from daemon.recall.catalog import Catalog
from daemon.redact import redact, redact_value
from daemon.transcript.tool_calls import first_text, partial_output

MOST_MESSAGES: Final = 500
"""Messages of one answer."""
_FEWEST_CHARS = 100


class ConversationCalls:
    """A part of the engine: it has the archive and the list of its sessions."""

    archive: Archive
    catalog: Catalog

    def current(self, _progress: Progress) -> list[str]:
        """Scan the sources; returns warnings if they cannot be read. In the daemon the loops do it."""
        return []

    @cached_property
    def _marks(self) -> _Marks:
        return _Marks(self.archive)

    def conversation(self, request: calls.Conversation, progress: Progress) -> answers.Conversation:
        """See calls.Conversation.

        Raises:
            BadRequest: the session, or the message in it, is not in the archive; a number is out of range.
        """
        if not 0 < request.count <= MOST_MESSAGES or request.start < 0 or request.most_chars < _FEWEST_CHARS:
            raise BadRequest(
                f"conversation: ask for 1 to {MOST_MESSAGES} messages from 0 on, of at least {_FEWEST_CHARS} characters"
            )
        about_archive = self.current(progress)
        session_id = whole_id(self.archive, request.session_id)
        ids = self.archive.message_ids(session_id)
        if not ids and self.archive.session(session_id) is None:
            raise BadRequest(
                f"session {request.session_id!r} is not in the archive; `recall_sessions()` lists those that are"
            )
        start, target = self._place(request, session_id, ids)
        page = ids[start : start + request.count]
        content = open_session(self.archive, Export(session=session_id, results="full"), session_id)
        session = content.session
        answer = answers.Conversation(
            session_id=session_id,
            title=session.title,
            directory=session.directory,
            project_id=session.project_id,
            version=session.version,
            parent=self._sub_agent(session.parent_id or ""),
            created=session.created,
            updated=session.updated,
            archived=session.archived is not None,
            deleted=content.deleted is not None,
            total=len(ids),
            start=start,
            target=target,
            children=self._children(session_id),
            todos=content.todos(),
            warnings=[redact(warning) for warning in about_archive],
        )
        if not content.has_record:
            answer.warnings.append("the session's own record is missing; its times and directory are of its messages")
        marked = self._marks.of(session_id)
        reader = _MessageReader(self, session, request.most_chars)
        for number, message_id in enumerate(page, start=start):
            message, state = self.archive.message(message_id), self.archive.state(message_id)
            if message is None or state is None:
                answer.warnings.append(f"message {message_id} is not in the archive any more")
                continue
            answer.messages.append(reader.read(message, state, number, marked.get(message_id, "")))
        return answer

    def _place(self, request: calls.Conversation, session_id: str, ids: Sequence[str]) -> tuple[int, int | None]:
        """The number of the page's first message, and of the one that was asked for."""
        target = None
        if request.message_id:
            message_id = whole_id(self.archive, request.message_id)
            if message_id not in ids:
                raise BadRequest(f"message {request.message_id!r} is not in session {session_id}")
            target = ids.index(message_id)
        elif request.change_after is not None:
            session = self.archive.session(session_id)
            numbers = range(max(0, request.change_after + 1), len(ids))
            target = next((number for number in numbers if self._changes_files(ids[number], session)), None)
        if target is None:
            return request.start, None
        return target - target % request.count, target

    def _changes_files(self, message_id: str, session: Session | None) -> bool:
        state = self.archive.state(message_id)
        if state is None or not state.get("edits"):
            return False
        message = self.archive.message(message_id)
        paths = {} if message is None else changed_paths(message, session)
        return any(operation != "unclear" for by_path in paths.values() for operation in by_path.values())

    def _children(self, session_id: str) -> list[answers.SubAgent]:
        rows = [row for row in self.catalog.rows().values() if row.parent_id == session_id]
        rows.sort(key=lambda row: (row.created, row.id))
        return [child for row in rows if (child := self._sub_agent(row.id)) is not None]

    def _sub_agent(self, session_id: str) -> answers.SubAgent | None:
        session = self.archive.session(session_id) if session_id else None
        if session is None:
            return None
        return answers.SubAgent(session.id, redact(session.title), len(self.archive.message_ids(session.id)))


class _Marks:
    """What reverts took back of the sessions that were read last; worked out again after a change of the archive."""

    _MOST = 8

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, dict[str, str]]] = {}

    def of(self, session_id: str) -> dict[str, str]:
        """``whole``, ``part`` or ``perhaps`` by the id of a message."""
        revision = self._archive.revision
        with self._lock:
            known = self._known.get(session_id)
        if known is not None and known[0] == revision:
            return known[1]
        marked = marks(self._archive, session_id)
        with self._lock:
            self._known = dict([*self._known.items(), (session_id, (revision, marked))][-self._MOST :])
        return marked


class _MessageReader:
    """Takes the messages of one session apart."""

    def __init__(self, owner: ConversationCalls, visible: Session, most_chars: int) -> None:
        self._owner = owner
        self._session = owner.archive.session(visible.id)
        self._directory = visible.directory
        self._most_chars = most_chars

    def read(self, message: Message, state: Json, number: int, reverted: str) -> answers.ConversationMessage:
        content = message_content(
            message,
            results="full",
            clean=_clean,
            deleted=state["deleted"],
            deleted_parts=tuple(state["gone"]),
        )
        by_part = changed_paths(message, self._session)
        parts = [self._part(item, by_part, content) for item in content.items]
        changes = [change for part in parts for change in part.changes]
        return answers.ConversationMessage(
            id=message.id,
            number=number,
            role=content.role,
            created=content.created,
            completed=content.completed,
            model=content.model,
            agent=content.agent,
            system=shorten(content.system, self._most_chars),
            error=shorten(pretty(content.error), self._most_chars) if content.error else "",
            deleted=content.deleted is not None,
            orphan=content.orphan,
            reverted=reverted,
            changed=any(change.operation != "unclear" for change in changes),
            parts=parts,
        )

    def _part(
        self, item: Item, by_part: dict[str, dict[str, str]], content: MessageContent
    ) -> answers.ConversationPart:
        if isinstance(item, ToolCall):
            part = self._call(item, by_part.get(item.part_id, {}))
        elif isinstance(item, Text):
            part = answers.ConversationPart(type="text", text=item.text, synthetic=item.is_synthetic)
        elif isinstance(item, Thought):
            subject = "" if item.subject == "Thinking" else item.subject
            part = answers.ConversationPart(type="reasoning", text=item.text, summary=subject, start=item.time)
        else:
            name = records.text(item.data.get("filename"))
            part = answers.ConversationPart(id=item.part_id, type=item.type, text=pretty(item.data), summary=name)
        part.deleted = part.id in content.gone
        for field in ("text", "input", "output", "error"):
            whole = getattr(part, field)
            setattr(part, field, whole[: self._most_chars])
            part.cut += max(0, len(whole) - self._most_chars)
        return part

    def _call(self, item: ToolCall, paths: dict[str, str]) -> answers.ConversationPart:
        state = item.state or {}
        output = state.get("output") or partial_output(state)
        if state.get("attachments"):
            output = f"{_text(output)}\n{pretty(state['attachments'])}"
        found = diffs(item.tool, state, self._directory)
        child_id = first_text(records.table(state.get("metadata")), ("sessionId", "sessionID"))
        part = answers.ConversationPart(
            id=item.part_id,
            type="tool",
            tool=item.tool,
            status=item.status,
            summary=item.summary,
            start=item.start,
            end=item.end,
            input=pretty(state.get("input")) if state.get("input") else "",
            output=_text(output),
            error=_text(state.get("error")),
            child=self._owner._sub_agent(child_id) if item.tool == "task" else None,  # noqa: SLF001 - its own reader
        )
        for path, operation, diff in with_diffs(paths, found):
            text = diff[: diff.rfind("\n", 0, self._most_chars) + 1] if len(diff) > self._most_chars else diff
            part.cut += len(diff) - len(text)
            part.changes.append(answers.MessageChange(path, operation, text))
        return part


def _clean(value: object) -> Any:
    return redact_value(shortened(value))


def _text(value: object) -> str:
    return value if isinstance(value, str) else pretty(value) if value else ""
