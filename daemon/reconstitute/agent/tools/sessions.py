"""The tools that search and read sessions, and the one that searches notes.

They change nothing. What they show of a message is entered in the ledger; a command only where its text stands in the
message. Nothing later than the moment in question is shown.

Notes are what was found out before, about this target or another. They are not entered in the ledger: a conclusion is
no source. Nothing is shown that answered the very question being asked: a model must not quote itself.
"""

from __future__ import annotations

import difflib

from daemon.display import counted, one_line
from daemon.errors import BadRequest, Retry
from daemon.index import Filters
from daemon.model import Hit
from daemon.recall.search import SearchResults
from daemon.reconstitute.agent.context.blocks import MIN_BYTES, body_bytes, clean, cut, fenced, name, shorten, size, utc
from daemon.reconstitute.agent.context.ledger import VerifiedNotes
from daemon.reconstitute.agent.context.messages import hit_block, message_block, message_page
from daemon.reconstitute.agent.notes import Note
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.call import Evidence, Paths, Result
from daemon.reconstitute.facts.session_values import Call, CallStatus, FileChange, SessionFacts
from daemon.redact import redact

_WIDEST_HIT = 1600
"""Bytes of one search result."""
_LEAST_MESSAGE = 500
"""Bytes of one message that are worth showing; where there is little room, a result has fewer messages."""
_MOST_MESSAGES = 12
_MOST_CHANGES = 6
_LONGEST = 300
_ENDED_BADLY = frozenset({CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED})
_QUOTED = " \t\n[](){}<>`'\""


class SessionTools:
    """Each method answers one call. It raises BadRequest, in words for the model, for what cannot be answered."""

    def __init__(self, evidence: Evidence, paths: Paths) -> None:
        self._evidence, self._paths = evidence, paths
        self._archive, self._ledger = evidence.archive, evidence.ledger
        self._sessions = evidence.scope.sessions
        self._session_ids = frozenset(session.session.id for session in self._sessions)
        self._verified = VerifiedNotes(evidence.archive, evidence.ledger)

    def search_sessions(self, request: schemas.SearchSessions, result: Result) -> None:
        filters = Filters(
            kinds=tuple(request.kinds),
            before=None if self._evidence.moment is None else self._evidence.moment + 1,
            sessions=None if request.everywhere else self._session_ids,
            path=self._paths.readings(request.path)[0] if request.path else "",
        )
        if not self._sessions and not request.everywhere:
            raise BadRequest("no recorded session is about this folder; search with everywhere: true")
        results = self._search(request, filters)
        hits, recent = results.hits, tuple[Hit, ...]()
        if request.kinds and len(hits) < request.limit:  # who names a kind wants to see what there is of it
            hit_ids = {hit.message_id for hit in hits}
            recent = self._evidence.holdings.recall.newest(filters, request.limit - len(hits), hit_ids)
        omitted = 0
        for hit in (*hits, *recent):
            block = hit_block(self._archive, hit, min(_WIDEST_HIT, result.bytes_left))
            if block is None:
                omitted += 1
            else:
                result.add_block(self._ledger.add(block))
        if not hits and not recent:
            hint = "" if request.everywhere else "; everywhere: true searches all sessions"
            result.add_line(f"Nothing was found. Try other words, or fewer{hint}.")
        elif omitted:
            result.add_line(f"{counted(omitted, 'result')} more did not fit; ask for fewer, or for something narrower.")
        else:
            result.add_line("These are excerpts; read_message and read_context show more.")
        if recent:
            last = "last result is" if len(recent) == 1 else f"last {len(recent)} results are"
            result.add_line(f"Note: the {last} just the newest other messages of kind {' or '.join(request.kinds)}.")
        for warning in results.warnings:
            # It may repeat words of the query, which are the model's.
            result.add_line(f"Note: {one_line(clean(warning))}.")

    def _search(self, request: schemas.SearchSessions, filters: Filters) -> SearchResults:
        try:
            results = self._evidence.holdings.recall.search(request.query, limit=request.limit, filters=filters)
        except BadRequest:
            raise
        except Retry as error:  # the owner of the index was told; other tools still answer
            self._evidence.warn(f"a search of the model was not answered: {redact(str(error))}")
            raise BadRequest(
                "search does not work at the moment; use read_message, list_files, file_history"
            ) from error
        for warning in results.degraded:
            self._evidence.warn(warning)
        return results

    def read_message(self, request: schemas.ReadMessage, result: Result) -> None:
        message_id = self._visible(request.message_id)
        block = message_page(self._archive, message_id, result.bytes_left, request.offset)
        if block is None:
            raise BadRequest(f"message {name(message_id)} cannot be shown: results may not be as long as needed")
        result.add_block(self._ledger.add(block))
        if block.more is not None:
            result.add_line(f"It goes on: call read_message with offset {block.more}.")

    def read_context(self, request: schemas.ReadContext, result: Result) -> None:
        message_id = self._visible(request.message_id)
        state = self._archive.state(message_id)
        order = self._archive.message_ids(state["session"]) if state is not None else []
        place = order.index(message_id) if message_id in order else 0
        around = order[max(0, place - request.before) : place + request.after + 1] or [message_id]
        around = [id_ for id_ in around if self._evidence.is_visible(id_)]
        omitted = []
        for number, id_ in enumerate(around):
            later = around[number:]
            shares = len(later) + (message_id in later)
            block = message_block(self._archive, id_, result.bytes_left * (2 if id_ == message_id else 1) // shares)
            if block is None:
                omitted.append(id_)
            else:
                result.add_block(self._ledger.add(block))
        if omitted:
            result.add_line(f"Not shown for want of room: {', '.join(map(name, omitted))}; call read_message with one.")
        else:
            result.add_line("Long messages are shortened; read_message shows all of one.")

    def list_sessions(self, request: schemas.ListSessions, result: Result) -> None:
        lines = [self._session(session) for session in reversed(self._sessions)]
        heading = "sessions of the folder, newest first: id | title | time | prompts | how it ended | what came of it"
        if not lines:
            raise BadRequest("no recorded session is about this folder")
        count = result.add_table(heading, lines[request.offset :])
        if request.offset + count < len(lines):
            result.add_line(f"It goes on: call list_sessions with offset {request.offset + count}.")

    def read_session(self, request: schemas.ReadSession, result: Result) -> None:
        session_id = request.session_id.strip(" \t\n`'\"[]()")
        order = [id_ for id_ in self._archive.message_ids(session_id) if self._evidence.is_visible(id_)]
        if not order:
            similar = difflib.get_close_matches(session_id[:100], [session.id for session in self._sessions], 3)
            hint = (
                f"did you mean {' or '.join(map(name, similar))}?" if similar else "list_sessions names those there are"
            )
            raise BadRequest(f"there is no session {name(session_id)!r}; {hint}")
        limit = max(1, min(_MOST_MESSAGES, result.bytes_left // _LEAST_MESSAGE))
        page = order[request.offset : request.offset + limit]
        count = 0
        for number, message_id in enumerate(page):
            block = message_block(self._archive, message_id, result.bytes_left // (len(page) - number))
            if block is None:
                break
            result.add_block(self._ledger.add(block))
            count += 1
        end = request.offset + count
        if not count:
            raise BadRequest(f"the session has {counted(len(order), 'message')}; give a smaller offset")
        result.add_line(
            f"Messages {request.offset + 1} to {end} of {len(order)}, shortened; read_message shows all of one."
        )
        if end < len(order):
            result.add_line(f"It goes on: call read_session with offset {end}.")

    def list_calls(self, request: schemas.ListCalls, result: Result) -> None:
        calls = [call for session in self._sessions for turn in session.turns for call in turn.calls]
        if request.only == "commands":
            calls = [call for call in calls if call.command]
        elif request.only == "failed":
            calls = [call for call in calls if call.status in _ENDED_BADLY]
        calls.sort(key=lambda call: (-call.started, call.part_id))
        if not calls:
            raise BadRequest("no such call is recorded of this folder")
        page = calls[request.offset :]
        heading = "calls, newest first: time | message | tool | how it ended | what | error or end of the output"
        count = result.add_table(heading, [self._call(call) for call in page])
        for call in page[:count]:
            self._verified.note(call.message_id, [_call_summary(call), _outcome(call)])
        if count < len(page):
            result.add_line(f"It goes on: call list_calls with offset {request.offset + count}.")

    def _visible(self, id_: str) -> str:
        """The id of a message that may be shown."""
        message_id = id_ if self._archive.state(id_) is not None else id_.strip(_QUOTED)
        if self._archive.state(message_id) is None:
            similar = ", ".join(map(name, self._ledger.similar(message_id)))
            hint = f"ids that were shown: {similar}" if similar else "search_sessions gives ids"
            raise BadRequest(f"there is no message {name(message_id)!r}; {hint}")
        if not self._evidence.is_visible(message_id):
            raise BadRequest(
                f"message {name(message_id)} is later than {utc(self._evidence.moment or 0)}, which this is about"
            )
        return message_id

    def _session(self, session: SessionFacts) -> str:
        prompts = counted(sum(bool(turn.prompt.strip()) for turn in session.turns), "prompt")
        ending = session.turns[-1].ending if session.turns else ""
        times = f"{utc(session.session.created)} to {utc(session.last)}"
        head = f'{name(session.id)} | "{name(session.title, 160) or "without title"}" | {times} | {prompts} | {ending}'
        return f"{head} | {'; '.join(self._outcomes(session)) or 'nothing recorded'}"

    def _outcomes(self, session: SessionFacts) -> list[str]:
        came = [self._change(change) for change in session.changes[:_MOST_CHANGES]]
        if len(session.changes) > _MOST_CHANGES:
            came.append(f"{counted(len(session.changes) - _MOST_CHANGES, 'file')} more")
        came += [
            f"{'passed' if run.passed else 'FAILED'}: {cut(one_line(clean(run.command)), 80)}" for run in session.tests
        ]
        came += [f"commit {cut(one_line(clean(subject)), 80)}" for subject in session.commits]
        reverted = sum(turn.taken_back for turn in session.turns)
        came += [f"{counted(reverted, 'turn')} taken back"] if reverted else []
        still_open = sum(todo.is_open for todo in session.todos)
        came += [f"{counted(still_open, 'todo')} open"] if still_open else []
        came += ["deleted in OpenCode"] if session.deleted else []
        return came

    def _change(self, change: FileChange) -> str:
        lines = "" if change.added is None or change.removed is None else f" +{change.added} -{change.removed}"
        undone = ", undone" if change.undone else ""
        return f"{change.kind} {name(self._paths.relative(change.path), 160)}{lines}{undone}"

    def _call(self, call: Call) -> str:
        status = call.status.value + (f" (exit {call.exit})" if call.exit is not None else "")
        line = f"{utc(call.started)} | {name(call.message_id)} | {name(call.tool)} | {status} | {_call_summary(call)}"
        return f"{line} | {_outcome(call)}" if _outcome(call) else line


def _call_summary(call: Call) -> str:
    return cut(one_line(clean(call.command or call.title)), _LONGEST)


def _outcome(call: Call) -> str:
    if call.status in _ENDED_BADLY:
        return cut(one_line(clean(call.error or call.output)), _LONGEST)
    output = one_line(clean(call.output)) if call.command else ""
    return output if len(output) <= 120 else f"…{output[-120:]}"


_PATH_BYTES = 200
_MOST_PATHS, _MOST_SOURCES = 3, 8
_MAX_NAMES = 8
_WIDEST = 1800
"""Bytes of one note."""


def note_block(note: Note, limit: int) -> str | None:
    """Delimited text of at most `limit` bytes; None where that is too little for any of it."""
    heading = (
        f"{note.kind} about {_names(note.paths or (note.target,), _MOST_PATHS, _PATH_BYTES)} | found out about folder "
        f"{name(note.target, _PATH_BYTES)} | newest source {utc(note.created)} | from messages "
        f"{_names(note.sources, _MOST_SOURCES)}"
    )
    body, free = clean(note.text), body_bytes(heading, limit)
    if free < min(size(body), MIN_BYTES):
        return None
    return fenced(heading, body if size(body) <= free else "".join(shorten(body, free)))


def _names(names: tuple[str, ...], limit: int, widest: int = 80) -> str:
    note = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(name(entry, widest) for entry in names[:limit]) + note


class NoteTools:
    """Searches the notes, but for those that answered `question_id` about this target."""

    def __init__(self, evidence: Evidence, question_id: str) -> None:
        self._evidence, self._question_id = evidence, question_id

    def search_notes(self, request: schemas.SearchNotes, result: Result) -> None:
        """Add the nearest notes.

        Raises:
            BadRequest: in words for the model, there is nothing to search for or in.
        """
        evidence, index = self._evidence, self._evidence.holdings.notes
        if index is None:
            raise BadRequest("nothing was noted before; use search_sessions")
        try:
            notes = index.search(
                request.query, _MAX_NAMES, target=evidence.target, question_id=self._question_id, moment=evidence.moment
            )
        except Retry as error:  # the owner of the index was told; other tools still answer
            evidence.warn(f"a search of the model in notes was not answered: {redact(str(error))}")
            raise BadRequest("notes cannot be searched at the moment; use search_sessions") from error
        omitted = 0
        for note in notes:
            block = note_block(note, min(_WIDEST, result.bytes_left))
            if block is None:
                omitted += 1
            else:
                result.add_block(block)
        if not notes:
            result.add_line("Nothing like it was noted before; search_sessions searches the records themselves.")
        if omitted:
            result.add_line(f"{counted(omitted, 'note')} did not fit; ask for something narrower.")
        if omitted < len(notes):
            result.add_line(
                "These are earlier conclusions, no records: read_message the messages they name, and cite those."
            )
