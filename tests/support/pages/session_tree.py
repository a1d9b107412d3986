"""The pages of a tree with recorded sessions, made by the real parts from an archive of our own making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from daemon.model import Page
from daemon.reconstitute.answer import Record, Statement
from daemon.reconstitute.facts.session import page_size, read_session
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.values import Facts
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.recover import Recovered
from daemon.reconstitute.scope import Conversations
from tests.support.pages.page_material import material
from tests.support.stores.recorded_sessions import Recorded, call

ROOT = "/home/dev/shop"


def facts(house: Recorded, sid: str, only: Sequence[str] = (), **more) -> SessionFacts:
    """What the records of a session say, of all its messages or `only` some, as scope hands it to the pages."""
    session, ids = house.archive.session(sid), house.archive.message_ids(sid)
    assert session is not None
    read = [m for one in ids if (not only or one in only) and (m := house.archive.message(one)) is not None]
    made = read_session(house.archive, session, read, (), is_whole=not only, until=None)
    numbers = tuple(ids.index(message.id) + 1 for message in read)
    return replace(made, numbers=numbers, sizes=tuple(map(page_size, read)), **more)


def tree(
    house: Recorded,
    *told: SessionFacts,
    files: Sequence[Recovered] = (),
    most: int = 5000,
    summaries: Mapping[str, Statement] | None = None,
) -> list[Page]:
    """All pages."""
    conversation = Conversations(house.archive, told)
    found = Record({}, {}, summaries=dict(summaries or {}))
    made = material(files, found, facts=Facts(told), conversation=conversation)
    return Renderer(made, most).pages()


def session_pages(house: Recorded, *told: SessionFacts, **more: Any) -> dict[str, str]:
    """The text of the session pages by path."""
    return {page.path: page.text for page in tree(house, *told, **more) if page.path.startswith("sessions/")}


def hostile_session(house: Recorded, sid: str, payload: str) -> SessionFacts:
    """A session with `payload` in every place that a text can stand."""
    path = f"{ROOT}/{payload.replace(chr(0), '')}"
    house.session(sid, path, payload)
    file = {"type": "file", "mime": payload, "filename": payload, "url": "file:///x"}
    task = {"type": "subtask", "prompt": payload, "description": payload, "agent": payload}
    synthetic = {"type": "text", "text": payload, "synthetic": True}
    agent = {"type": "agent", "name": payload}
    house.say(
        sid, "user", payload, synthetic, file, agent, task, f"- {payload}\n  > {payload}\n\n```{payload}\n{payload}"
    )
    patch = f"--- a\n+++ b\n@@ -1 +1 @@\n-{payload}\n+{payload}"
    todos = [{"content": payload, "status": payload, "priority": payload}]
    house.say(
        sid, "assistant", payload, {"type": "reasoning", "text": payload}, f"para\n{payload}\n\n1. {payload}",
        call("bash", output=payload, command=payload, description=payload),
        call("bash", output=payload, command=f"{payload}\n{payload}", metadata={"exit": 1}),
        call("edit", filePath=path, oldString=payload, newString=f"{payload}x", metadata={"diff": patch}),
        call("edit", filePath=path, oldString=payload, newString=f"{payload}x"),
        call("write", filePath=path, content=payload), call("read", output=payload, filePath=path),
        call("task", output=payload, prompt=payload, description=payload, metadata={"sessionId": payload}),
        call("todowrite", todos=todos), call(payload, output=payload, argument=payload), call("x", payload, payload),
        {"type": payload or "odd", "value": payload},
    )  # fmt: skip
    house.count += 1
    error = {"name": payload, "data": {"message": payload}}
    house.put(sid, f"msg_{house.count:04d}", "assistant", (), error=error, agent=payload, modelID=payload)
    return facts(house, sid)
