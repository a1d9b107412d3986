"""Sessions, calls and recovered files of a folder, made as the rest of the product would make them."""

from __future__ import annotations

from typing import Any

from daemon.files import Disk, Grade, Revision
from daemon.files.content import Content
from daemon.model import Operation, Session
from daemon.reconstitute.facts.session_values import Call, CallStatus, Ending, SessionFacts, Turn
from daemon.reconstitute.recover import Recovered, State

TARGET = "/home/dev/shop"
START = 1_795_000_000_000


def revision(content: str | bytes | None, **fields: Any) -> Revision:
    """A revision that a write made, unless `fields` say otherwise."""
    data = content.encode() if isinstance(content, str) else content
    given = {"time": START, "grade": Grade.PROVEN, "session_id": "ses_1", "message_id": "msg_1", "part_id": "prt_1"}
    given |= {"tool": "write", "operation": Operation.WRITE} | fields
    return Revision(whole=None if data is None else Content(data), **given)


def file(relative: str, content: str | bytes | None = "x\n", *revisions: Revision, **fields: Any) -> Recovered:
    """A proven file of this content, unless `fields` say otherwise; `revisions` in place of the one write."""
    made = revisions or (revision(content),)
    certain = next((one for one in reversed(made) if one.proven and one.whole is not None), None)
    given = {"state": State.PROVEN, "disk": Disk.MISSING, "revisions": made, "certain": certain} | fields
    return Recovered(f"{TARGET}/{relative}", relative, **given)


def call(command: str, exit_: int | None = 0, **fields: Any) -> Call:
    """A shell call in the folder that ended with an exit status; None: it was stopped."""
    status = CallStatus.STOPPED if exit_ is None else CallStatus.FAILED if exit_ else CallStatus.OK
    given = {"status": status, "message_id": "msg_2", "part_id": f"prt_{command}", "started": START}
    given |= {"ended": START + 1000, "folder": TARGET} | fields
    return Call("bash", command, command=command, exit=exit_, **given)


def turn(prompt: str, *calls: Call, **fields: Any) -> Turn:
    """An answered turn with these calls."""
    given = {"prompt_id": "msg_0", "time": START, "ended": START + 60_000, "ending": Ending.ANSWERED}
    given |= {"message_ids": ("msg_0", "msg_1", "msg_2")} | fields
    return Turn(prompt=prompt, calls=calls, **given)


def session(*turns: Turn, id_: str = "ses_1", directory: str = TARGET, parent: str = "", **fields: Any) -> SessionFacts:
    """A session in the folder."""
    record = Session(id_, "global", directory, "title", START, START, b"{}", parent_id=parent or None)
    return SessionFacts(record, "title", turns, tuple(m for one in turns for m in one.message_ids), **fields)
