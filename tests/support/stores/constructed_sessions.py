"""Sessions as values in a few words: turns a second apart, calls within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from daemon.model import Session
from daemon.reconstitute.facts.session_values import (
    Call,
    CallStatus,
    Ending,
    Reply,
    SessionFacts,
    TakenBack,
    Todo,
    Turn,
)

FOLDER = "/work/app"
START = 1_000_000
_numbers = count(1)


def ran(command: str, code: int = 0, output: str = "", status: CallStatus | None = None, folder: str = FOLDER) -> Call:
    """A shell command that ended with `code`."""
    ended = status or (CallStatus.FAILED if code else CallStatus.OK)
    return _call("bash", command, ended, command=command, folder=folder, exit=code, output=output)


def edited(path: str, status: CallStatus = CallStatus.OK, error: str = "", tool: str = "edit") -> Call:
    changed = (f"{FOLDER}/{path}",) if status is CallStatus.OK else ()
    return _call(tool, f"{tool} {path}", status, error=error, changed=changed)


def used(tool: str, title: str, status: CallStatus = CallStatus.OK, error: str = "", **more: Any) -> Call:
    return _call(tool, f"{tool} {title}", status, error=error, **more)


def _call(tool: str, title: str, status: CallStatus, **more: Any) -> Call:
    number = next(_numbers)
    return Call(tool, title, status, f"msg_a{number:04}", f"prt_{number:04}", 0, 0, **more)


def user_turn(prompt: str, *calls: Call, reply: str = "Done.", ending: Ending = Ending.ANSWERED, **more: Any) -> Turn:
    """A prompt with its calls and the last reply."""
    number = next(_numbers)
    prompt_id, reply_id = f"msg_u{number:04}", f"msg_r{number:04}"
    replies = (Reply(reply_id, 0, reply),) if reply else ()
    ids = (prompt_id, *(call.message_id for call in calls), *([reply_id] if reply else []))
    return Turn(prompt_id, 0, 0, prompt, ending, ids, tuple(calls), replies, **more)


def session(
    *turns: Turn, at: int = 0, parent: str | None = None, reverts: Sequence[TakenBack] = (), **more: Any
) -> SessionFacts:
    """A session that begins `at` seconds after START: each turn a second after the other, its calls 10 ms apart."""
    number = next(_numbers)
    begin = START + at * 1000
    placed = tuple(_placed(turn, begin + place * 1000) for place, turn in enumerate(turns))
    record = Session(f"ses_{number:04}", "p", FOLDER, "A session", begin, begin, b"", parent)
    ids = tuple(message for turn in placed for message in turn.message_ids)
    todos = tuple(Todo(text, status) for text, status in more.pop("todos", ()))
    return SessionFacts(record, "A session", placed, ids, reverts=tuple(reverts), todos=todos, **more)


def _placed(turn: Turn, time: int) -> Turn:
    calls = tuple(
        replace(call, started=time + 10 * (place + 1), ended=time + 10 * (place + 1) + 5)
        for place, call in enumerate(turn.calls)
    )
    replies = tuple(replace(reply, time=time + 800) for reply in turn.replies)
    return replace(turn, time=time, ended=time + 900, calls=calls, replies=replies)
