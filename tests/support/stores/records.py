"""Small builders of sessions, messages and parts from plain values, for everybody's unit tests.

    message(text("hello"))                               a user's prompt
    message(write("/w/a.py", "x = 1\n"), role="assistant")

Ids are numbered per builder call order unless given; times are epoch ms.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from daemon.model import Message, Part, Session

BASE = "/home/dev/projects/app"
START = 1_795_230_000_000
_NUMBERS = itertools.count(1)


def _raw(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode("utf-8", "surrogatepass")


def session(**fields: Any) -> Session:
    """A session in BASE, by default of 1.18.33; `revert` and others of the record go into `raw`."""
    known = {"id", "project_id", "directory", "title", "created", "updated", "parent_id", "archived", "version"}
    values: dict[str, Any] = {
        "id": "ses_1",
        "project_id": "global",
        "directory": BASE,
        "title": "A session",
        "created": START,
        "updated": START,
        "version": "1.18.33",
    }
    values |= {name: value for name, value in fields.items() if name in known}
    record = {"id": values["id"], "version": values["version"]}
    record |= {name: value for name, value in fields.items() if name not in known}
    return Session(raw=_raw(record), **values)


def part(data: dict[str, Any], message_id: str = "msg_1", session_id: str = "ses_1") -> Part:
    """A part from its record; an id is made where it has none."""
    data = {"id": f"prt_{next(_NUMBERS):08d}", "messageID": message_id, "sessionID": session_id, **data}
    return Part(data["id"], data["messageID"], data["sessionID"], str(data.get("type", "")), data, _raw(data))


def message(*parts: dict[str, Any], role: str = "user", **fields: Any) -> Message:
    """A message with these part records; `cwd` sets `path`, other fields go into its record."""
    number = next(_NUMBERS)
    identity = {"id": fields.pop("id", f"msg_{number:08d}"), "sessionID": fields.pop("session_id", "ses_1")}
    created = fields.pop("created", START + number)
    time: dict[str, Any] = {"created": created}
    if role == "assistant" and fields.pop("complete", True):
        time["completed"] = created + 1
    cwd = fields.pop("cwd", BASE)
    path = {"path": {"cwd": cwd, "root": cwd}} if role == "assistant" and cwd else {}
    data = {**identity, "role": role, "time": time, **path, **fields}
    made = tuple(part(record, identity["id"], identity["sessionID"]) for record in parts)
    return Message(
        identity["id"], identity["sessionID"], role, created, data, _raw(data), made, time.get("completed")
    )  # fmt: skip


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def reasoning(words: str) -> dict[str, Any]:
    return {"type": "reasoning", "text": words}


def tool(name: str, given: Any, output: Any = "", *, status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A tool part. `start` and `end` are its times, `id` its part id; other fields go into its state."""
    identity = {"id": fields.pop("id")} if "id" in fields else {}
    start = fields.pop("start", START)
    time = {"start": start, "end": fields.pop("end", start)}
    state: dict[str, Any] = {"status": status, "input": given, "metadata": {}, "time": time, **fields}
    if status == "completed":
        state["output"] = output
    elif status == "error":
        state["error"] = output
    return {"type": "tool", "callID": f"call_{next(_NUMBERS)}", "tool": name, "state": state, **identity}


def write(path: str, content: str, **fields: Any) -> dict[str, Any]:
    fields.setdefault("metadata", {"filepath": path, "exists": False})
    return tool("write", {"filePath": path, "content": content}, "Wrote file successfully.", **fields)


def edit(path: str, old: str, new: str, *, replace_all: bool = False, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"filePath": path, "oldString": old, "newString": new}
    if replace_all:
        given["replaceAll"] = True
    return tool("edit", given, "Edit applied successfully.", **fields)


def apply_patch(patch: str, **fields: Any) -> dict[str, Any]:
    return tool("apply_patch", {"patchText": patch}, "Success. Updated the following files:", **fields)


def bash(command: str, output: str = "", **fields: Any) -> dict[str, Any]:
    return tool("bash", {"command": command, "description": "Run it"}, output, **fields)


def read_output(path: str, content: str, version: str = "1.18.33") -> str:
    """What the read tool of 1.0.61, 1.1.65 or 1.18.33 answers for a whole file."""
    if version == "1.18.33":
        lines = content.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
    else:
        lines = content.removeprefix("\ufeff").split("\n")
    if version == "1.0.61":
        return "<file>\n" + "\n".join(f"{n:05d}| {line}" for n, line in enumerate(lines, 1)) + "\n</file>"
    body = "\n".join(f"{n}: {line}" for n, line in enumerate(lines, 1))
    gap = "\n" if version == "1.18.33" else ""
    head = f"<path>{path}</path>\n<type>file</type>\n<content>{gap}"
    return f"{head}{body}\n\n(End of file - total {len(lines)} lines)\n</content>"


def read(path: str, content: str, version: str = "1.18.33", **fields: Any) -> dict[str, Any]:
    return tool("read", {"filePath": path}, read_output(path, content, version), **fields)
