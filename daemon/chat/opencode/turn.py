"""What an OpenCode server tells of one turn: its events while it goes on, its messages when it is over. No network.

Both generations of the server are read: 1.1 sends a part's text so far with every piece, 1.18 the pieces alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from daemon.chat import BadReply, ContextLost, ModelUnavailable, OnText, Reply
from daemon.chat.ollama_reply import without_thinking
from daemon.errors import ReconstituteError
from daemon.model import Json
from daemon.opencode_ids import OWN_MARK
from daemon.records import integer, table, text

_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|limit)|too (?:long|large|many tokens)|maximum.{0,20}tokens", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model not found", re.IGNORECASE)
_CUT_OFF = "the reply was cut off at its largest length; say it in fewer words"
_CONTENT = frozenset({400, 413, 422})
_SHOWN = 300


@dataclass(slots=True)
class Turn:
    """One turn of `session_id` as its events tell of it; `feed` them in order."""

    session_id: str
    on_text: OnText | None = None
    is_over: bool = False
    is_deleted: bool = False
    """Somebody deleted the session meanwhile: there is nothing to read."""
    error: Json | None = None
    retry: Json | None = None
    """``{"attempt", "message", "next"}`` while the server waits to ask the provider again; `next` is epoch ms."""
    _said: dict[str, int] = field(default_factory=dict)  # text part -> characters told
    _answers: set[str] = field(default_factory=set)  # assistant messages
    _busy: bool = False

    def feed(self, event: Json) -> bool:
        """Take note of one event; whether it was of this session."""
        properties = table(event.get("properties"))
        part, info = table(properties.get("part")), table(properties.get("info"))
        owner = text(properties.get("sessionID")) or text(part.get("sessionID")) or text(info.get("sessionID"))
        owner = owner or text(info.get("id"))  # 1.1 on a session itself
        if owner != self.session_id:
            return False
        match event.get("type"):
            case "session.status":
                self._status(table(properties.get("status")))
            case "session.error":
                self.error = self.error or table(properties.get("error")) or {"name": "UnknownError"}
                self.is_over = True
            case "session.deleted":
                self.is_over = self.is_deleted = True
            case "session.idle":
                self.is_over |= self._busy
            case "message.updated" if info.get("role") == "assistant":
                self._answers.add(text(info.get("id")))
            case "message.part.updated":
                self._part(part, text(properties.get("delta")))
            case "message.part.delta" if properties.get("field") == "text":
                self._piece(text(properties.get("partID")), text(properties.get("delta")))
        return True

    def _status(self, status: Json) -> None:
        kind = status.get("type")
        self.retry = status if kind == "retry" else None
        self.is_over |= kind == "idle" and self._busy
        self._busy |= kind != "idle"

    def _part(self, part: Json, delta: str) -> None:
        name, said = text(part.get("id")), text(part.get("text"))
        if part.get("messageID") not in self._answers:
            return  # the prompt
        if part.get("type") == "text":
            self._piece(name, said[self._said.setdefault(name, 0) :])
        else:
            self._piece(name, delta)

    def _piece(self, part_id: str, piece: str) -> None:
        """Only what is known to be an answer's text is told; of thinking an empty text, as a sign of life."""
        if not piece:
            return
        is_text = part_id in self._said
        if is_text:
            self._said[part_id] += len(piece)
        if self.on_text is not None:
            self.on_text(piece if is_text else "")


def answers_to(messages: Sequence[Json], mark: str) -> list[Json]:
    """The assistant messages of the turn whose prompt was marked `mark`."""
    for message in messages:
        if any(table(part.get("metadata")).get(OWN_MARK) == mark for part in _parts(message)):
            prompt_id = text(table(message.get("info")).get("id"))
            break
    else:
        return []
    return [m for m in messages if table(m.get("info")).get("parentID") == prompt_id]


def is_finished(answers: Sequence[Json], *, is_idle: bool = False) -> bool:
    """Whether the last of them is an end: failed, or done. One that called tools has another step to come, unless the
    server `is_idle`.
    """
    if not answers:
        return False
    info = table(answers[-1].get("info"))
    is_done = bool(table(info.get("time")).get("completed"))
    return bool(info.get("error")) or (is_done and (is_idle or info.get("finish") not in {"tool-calls", None}))


def reply_of(answers: Sequence[Json], error: Json | None, address: str) -> Reply:
    """The turn's answer. A model that called tools in vain speaks more than once: its last words count.

    Raises:
        ModelUnavailable, BadReply, ContextLost: as `failure` has it; BadReply for an answer without text.
    """
    infos = [table(answer.get("info")) for answer in answers]
    error = error or next((table(info["error"]) for info in reversed(infos) if info.get("error")), None)
    if error is not None:
        raise failure(error, address)
    if infos and infos[-1].get("finish") == "length":
        raise BadReply(_CUT_OFF)
    spoken = [(_joined(answer, "text"), _joined(answer, "reasoning")) for answer in answers]
    content, leaked = without_thinking(next((said for said, _ in reversed(spoken) if said.strip()), ""))
    if not content.strip():
        tools = sorted({text(p.get("tool")) for a in answers for p in _parts(a) if p.get("type") == "tool"})
        cause = f"it called {', '.join(tools)}, which are not there" if tools else "it holds no text"
        raise BadReply(f"the reply is empty: {cause}; answer with text")
    tokens = [table(info.get("tokens")) for info in infos]
    cached = [table(count.get("cache")) for count in tokens]
    read = sum(integer(t.get("input")) for t in tokens)
    read += sum(integer(c.get("read")) + integer(c.get("write")) for c in cached)
    written = sum(integer(t.get("output")) + integer(t.get("reasoning")) for t in tokens)
    thinking = "\n\n".join(thought for thought in (*(t for _, t in spoken), leaked) if thought.strip())
    return Reply(content, thinking=thinking, prompt_tokens=read or None, reply_tokens=written or None)


def _joined(answer: Json, kind: str) -> str:
    return "\n\n".join(text(part.get("text")) for part in _parts(answer) if part.get("type") == kind)


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [table(part) for part in parts] if isinstance(parts, list) else []


def failure(error: Json, address: str) -> ReconstituteError:
    """What an error record of OpenCode's means to us: about the content, about the context, or about the server."""
    name, data = text(error.get("name")), table(error.get("data"))
    said = " ".join(text(data.get("message")).split())[:_SHOWN] or name or "no reason given"
    status = integer(data.get("statusCode"))
    if name == "ContextOverflowError" or (status in _CONTENT and _TOO_LONG.search(said)):
        return ContextLost(f"{address}: the conversation does not fit into the model's context: {said}")
    if name == "MessageOutputLengthError":
        return BadReply(_CUT_OFF)
    if status in _CONTENT:
        return BadReply(f"the provider refused the request ({status}): {said}")
    cause, fix = f"the provider failed: {said}", "it is asked again later"
    if name == "ProviderAuthError" or status in {401, 403}:
        cause, fix = f"the provider refused the key there: {said}", "renew it with: opencode auth login"
    elif name == "MessageAbortedError":
        cause = "the turn was aborted there"
    elif _NO_MODEL.search(said):
        cause, fix = said, "list what it has with: opencode models"
    return ModelUnavailable(f"{address}: {cause}; {fix}")
