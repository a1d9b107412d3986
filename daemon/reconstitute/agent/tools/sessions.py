"""The tools that go through the folder's sessions: which there are, one from its start, and the calls made in them.

What is shown of messages is noted in the ledger, a command only where its text stands in its message.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from daemon.archive import Archive
from daemon.display import counted, one_line
from daemon.errors import BadRequest
from daemon.reconstitute.agent.context.blocks import clean, cut, name, utc
from daemon.reconstitute.agent.context.ledger import Shown
from daemon.reconstitute.agent.context.messages import message_block
from daemon.reconstitute.agent.pieces import Pieces
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.paths import Paths
from daemon.reconstitute.agent.tools.result import Sheet
from daemon.reconstitute.facts.session_values import Call, CallStatus, FileChange, SessionFacts

_LEAST_MESSAGE = 500
"""Bytes of one message that are worth to be shown; fewer messages come in one result where there is little room."""
_MOST_MESSAGES = 12
_MOST_CHANGES = 6
_LONGEST = 300
_ENDED_BADLY = frozenset({CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED})


class SessionTools:
    """Answers one call onto a sheet; every method raises BadRequest, in words for the model."""

    def __init__(
        self, archive: Archive, sessions: Sequence[SessionFacts], paths: Paths, shown: Shown, moment: int | None
    ) -> None:
        """`sessions` are the folder's, oldest first; nothing later than `moment` (epoch ms) is shown."""
        self._archive, self._sessions, self._paths = archive, sessions, paths
        self._shown, self._moment = shown, moment
        self._pieces = Pieces(archive, shown)

    def list_sessions(self, asked: schemas.ListSessions, sheet: Sheet) -> None:
        lines = [self._session(one) for one in reversed(self._sessions)]
        heading = "sessions of the folder, newest first: id | title | time | prompts | how it ended | what came of it"
        if not lines:
            raise BadRequest("no recorded session is about this folder")
        shown = sheet.lines(heading, lines[asked.offset :])
        if asked.offset + shown < len(lines):
            sheet.say(f"It goes on: call list_sessions with offset {asked.offset + shown}.")

    def read_session(self, asked: schemas.ReadSession, sheet: Sheet) -> None:
        session_id = asked.session_id.strip(" \t\n`'\"[]()")
        order = [each for each in self._archive.message_ids(session_id) if self._is_visible(each)]
        if not order:
            near = difflib.get_close_matches(session_id[:100], [one.id for one in self._sessions], 3)
            hint = f"did you mean {' or '.join(map(name, near))}?" if near else "list_sessions names those there are"
            raise BadRequest(f"there is no session {name(session_id)!r}; {hint}")
        most = max(1, min(_MOST_MESSAGES, sheet.room // _LEAST_MESSAGE))
        page = order[asked.offset : asked.offset + most]
        shown = 0
        for number, message_id in enumerate(page):
            block = message_block(self._archive, message_id, sheet.room // (len(page) - number))
            if block is None:
                break
            sheet.put(self._shown.add(block))
            shown += 1
        end = asked.offset + shown
        if not shown:
            raise BadRequest(f"the session has {counted(len(order), 'message')}; give a smaller offset")
        sheet.say(f"Messages {asked.offset + 1} to {end} of {len(order)}, shortened; read_message shows all of one.")
        if end < len(order):
            sheet.say(f"It goes on: call read_session with offset {end}.")

    def list_calls(self, asked: schemas.ListCalls, sheet: Sheet) -> None:
        calls = [call for one in self._sessions for turn in one.turns for call in turn.calls]
        if asked.only == "commands":
            calls = [call for call in calls if call.command]
        elif asked.only == "failed":
            calls = [call for call in calls if call.status in _ENDED_BADLY]
        calls.sort(key=lambda call: (-call.started, call.part_id))
        if not calls:
            raise BadRequest("no such call is recorded of this folder")
        page = calls[asked.offset :]
        heading = "calls, newest first: time | message | tool | how it ended | what | error or end of the output"
        shown = sheet.lines(heading, [self._call(call) for call in page])
        for call in page[:shown]:
            self._pieces.note(call.message_id, [_what(call), _outcome(call)])
        if shown < len(page):
            sheet.say(f"It goes on: call list_calls with offset {asked.offset + shown}.")

    def _is_visible(self, message_id: str) -> bool:
        state = self._archive.state(message_id)
        return state is not None and (self._moment is None or state["created"] <= self._moment)

    def _session(self, one: SessionFacts) -> str:
        prompts = counted(sum(bool(turn.prompt.strip()) for turn in one.turns), "prompt")
        ending = one.turns[-1].ending if one.turns else ""
        times = f"{utc(one.session.created)} to {utc(one.last)}"
        head = f'{name(one.id)} | "{name(one.title, 160) or "without title"}" | {times} | {prompts} | {ending}'
        return f"{head} | {'; '.join(self._outcomes(one)) or 'nothing recorded'}"

    def _outcomes(self, one: SessionFacts) -> list[str]:
        came = [self._change(change) for change in one.changes[:_MOST_CHANGES]]
        if len(one.changes) > _MOST_CHANGES:
            came.append(f"{counted(len(one.changes) - _MOST_CHANGES, 'file')} more")
        came += [
            f"{'passed' if run.passed else 'FAILED'}: {cut(one_line(clean(run.command)), 80)}" for run in one.tests
        ]
        came += [f"commit {cut(one_line(clean(subject)), 80)}" for subject in one.commits]
        taken_back = sum(turn.taken_back for turn in one.turns)
        came += [f"{counted(taken_back, 'turn')} taken back"] if taken_back else []
        still_open = sum(todo.is_open for todo in one.todos)
        came += [f"{counted(still_open, 'todo')} open"] if still_open else []
        came += ["deleted in OpenCode"] if one.deleted else []
        return came

    def _change(self, change: FileChange) -> str:
        lines = "" if change.added is None or change.removed is None else f" +{change.added} -{change.removed}"
        undone = ", undone" if change.undone else ""
        return f"{change.kind} {name(self._paths.relative(change.path), 160)}{lines}{undone}"

    def _call(self, call: Call) -> str:
        status = call.status.value + (f" (exit {call.exit})" if call.exit is not None else "")
        said = f"{utc(call.started)} | {name(call.message_id)} | {name(call.tool)} | {status} | {_what(call)}"
        return f"{said} | {_outcome(call)}" if _outcome(call) else said


def _what(call: Call) -> str:
    return cut(one_line(clean(call.command or call.title)), _LONGEST)


def _outcome(call: Call) -> str:
    if call.status in _ENDED_BADLY:
        return cut(one_line(clean(call.error or call.output)), _LONGEST)
    said = one_line(clean(call.output)) if call.command else ""
    return said if len(said) <= 120 else f"…{said[-120:]}"
