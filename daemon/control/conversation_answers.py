"""What the call about a session's conversation answers: its messages, taken apart to be read (docs/json.md)."""

from __future__ import annotations

from daemon.control.answers import Answer
from daemon.model import Json


class SubAgent(Answer):
    """A session that another one started; `messages` is how many it has."""

    session_id: str = ""
    title: str = ""
    messages: int = 0


class MessageChange(Answer):
    """A file that a tool call changed, or may have changed (`operation` is ``unclear``).

    `diff` has the lines of a unified diff, as recorded or made from the call's arguments; it is empty where neither
    shows the change.
    """

    path: str = ""
    operation: str = ""
    diff: str = ""


class ConversationPart(Answer):
    """A part of a message: a ``text``, ``reasoning``, a ``tool`` call, or one of another type, with its record as text.

    `text` is what it says, of a tool call nothing. `output` is also what a call that failed had printed until then.
    `child` is the session of a sub-agent that the call started. `cut` is how many characters are left out of all texts.
    `deleted`: OpenCode has the part no more.
    """

    id: str = ""
    type: str = ""
    text: str = ""
    synthetic: bool = False
    tool: str = ""
    status: str = ""
    summary: str = ""
    start: int = 0
    end: int = 0
    input: str = ""
    output: str = ""
    error: str = ""
    changes: list[MessageChange] = []
    child: SubAgent | None = None
    cut: int = 0
    deleted: bool = False


class ConversationMessage(Answer):
    """A message; `number` is its place in the session, from 0.

    `reverted` is empty, ``whole``, ``part`` or ``perhaps``: a revert took it back, some of it, or may have. `orphan`:
    only its parts were found. `changed`: one of its calls changed a file.
    """

    id: str = ""
    number: int = 0
    role: str = ""
    created: int = 0
    completed: int | None = None
    model: str = ""
    agent: str = ""
    system: str = ""
    error: str = ""
    deleted: bool = False
    orphan: bool = False
    reverted: str = ""
    changed: bool = False
    parts: list[ConversationPart] = []


class Conversation(Answer):
    """A session and the messages from number `start` on, of `total`; `target` is the number of the one asked for.

    `children` are the sub-agents that it started. `todos` is its todo list in its last state, as recorded.
    """

    session_id: str = ""
    title: str = ""
    directory: str = ""
    project_id: str = ""
    version: str = ""
    parent: SubAgent | None = None
    created: int = 0
    updated: int = 0
    archived: bool = False
    deleted: bool = False
    total: int = 0
    start: int = 0
    target: int | None = None
    children: list[SubAgent] = []
    todos: list[Json] = []
    messages: list[ConversationMessage] = []
    warnings: list[str] = []
