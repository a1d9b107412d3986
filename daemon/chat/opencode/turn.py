"""One turn of a session on an OpenCode server: the prompt is sent, its events are followed, its messages read.

The events say how the turn goes on, the messages what came of it. When the events fall silent, the server is asked, so
a lost event costs seconds and never the answer. 1.1 sends a part's whole text with every event, 1.18 only what is new.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from daemon.chat import BadReply, ContextLost, ModelUnavailable, OnText, Reply
from daemon.chat.ollama_reply import without_thinking
from daemon.chat.opencode.http import HttpClient
from daemon.errors import BadRequest, ReconstituteError
from daemon.model import Json
from daemon.records import OWN_MARK, integer, table, text

_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|limit)|too (?:long|large|many tokens)|maximum.{0,20}tokens", re.IGNORECASE
)
_BAD_IMAGE = re.compile(r"\bImageDecodeError\b")
"""1.18 decodes images before it sends them."""
_NO_MODEL = re.compile(r"model not found", re.IGNORECASE)
_CUT_OFF = "the reply was cut off at its largest length; say it in fewer words"
_CONTENT = frozenset({400, 413, 422})
_MAX_QUOTED_CHARS = 300
_SILENCE_S = 15.0
"""After so long without a word of the session the server is asked whether it is still at work."""
_AGAIN_S = 0.2
_SETTLED_S = 1.0
"""1.1 says that a session is idle a moment before it records why."""


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
    _passed_on: dict[str, int] = field(default_factory=dict)  # text part -> characters passed on
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
        name, content = text(part.get("id")), text(part.get("text"))
        if part.get("messageID") not in self._answers:
            return  # the prompt
        if part.get("type") == "text":
            self._piece(name, content[self._passed_on.setdefault(name, 0) :])
        else:
            self._piece(name, delta)

    def _piece(self, part_id: str, piece: str) -> None:
        """Pass on an answer's text; for thinking an empty one, as a sign of life."""
        if not piece:
            return
        is_text = part_id in self._passed_on
        if is_text:
            self._passed_on[part_id] += len(piece)
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
        ModelUnavailable, BadReply, ContextLost, BadRequest: as `failure` has it; BadReply for an answer without text.
    """
    infos = [table(answer.get("info")) for answer in answers]
    error = error or next((table(info["error"]) for info in reversed(infos) if info.get("error")), None)
    if error is not None:
        raise failure(error, address)
    if infos and infos[-1].get("finish") == "length":
        raise BadReply(_CUT_OFF)
    texts = [(_joined(answer, "text"), _joined(answer, "reasoning")) for answer in answers]
    content, leaked = without_thinking(next((piece for piece, _ in reversed(texts) if piece.strip()), ""))
    if not content.strip():
        tools = sorted({text(p.get("tool")) for a in answers for p in _parts(a) if p.get("type") == "tool"})
        cause = f"it called {', '.join(tools)}, which are not there" if tools else "it holds no text"
        raise BadReply(f"the reply is empty: {cause}; answer with text")
    tokens = [table(info.get("tokens")) for info in infos]
    cached = [table(count.get("cache")) for count in tokens]
    read = sum(integer(t.get("input")) for t in tokens)
    read += sum(integer(c.get("read")) + integer(c.get("write")) for c in cached)
    reply_tokens = sum(integer(t.get("output")) + integer(t.get("reasoning")) for t in tokens)
    thinking = "\n\n".join(thought for thought in (*(t for _, t in texts), leaked) if thought.strip())
    return Reply(content, thinking=thinking, prompt_tokens=read or None, reply_tokens=reply_tokens or None)


def _joined(answer: Json, kind: str) -> str:
    return "\n\n".join(text(part.get("text")) for part in _parts(answer) if part.get("type") == kind)


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [table(part) for part in parts] if isinstance(parts, list) else []


def failure(error: Json, address: str) -> ReconstituteError:
    """What an error record of OpenCode's means to us: about the content, about the context, or about the server."""
    name, data = text(error.get("name")), table(error.get("data"))
    reason = " ".join(text(data.get("message")).split())[:_MAX_QUOTED_CHARS] or name or "no reason given"
    status = integer(data.get("statusCode"))
    if name == "ContextOverflowError" or (status in _CONTENT and _TOO_LONG.search(reason)):
        return ContextLost(f"{address}: the conversation does not fit into the model's context: {reason}")
    if _BAD_IMAGE.search(reason):
        return BadRequest(f"{address}: an image cannot be decoded; send another one: {reason}")
    if name == "MessageOutputLengthError":
        return BadReply(_CUT_OFF)
    if status in _CONTENT:
        return BadReply(f"the provider refused the request ({status}): {reason}")
    cause, fix = f"the provider failed: {reason}", "it is asked again later"
    if name == "ProviderAuthError" or status in {401, 403}:
        cause, fix = f"the provider refused the key there: {reason}", "renew it with: opencode auth login"
    elif name == "MessageAbortedError":
        cause = "the turn was aborted there"
    elif _NO_MODEL.search(reason):
        cause, fix = reason, "list what it has with: opencode models"
    return ModelUnavailable(f"{address}: {cause}; {fix}")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each phase may take, in seconds, and how often the server may ask a failing provider."""

    create: float = 10.0
    prompt: float = 600.0
    read: float = 30.0
    delete: float = 5.0
    attempts: int = 3


class TurnFollower:
    """Takes one turn; made for it and thrown away.

    Args:
        where: the query that says in which folder the session runs.
        limit_s: how long the turn may take, from now.
    """

    def __init__(
        self, http: HttpClient, where: Mapping[str, Any], turn: Turn, patience: Patience, limit_s: float
    ) -> None:
        self._http, self._where, self._turn, self._patience = http, where, turn, patience
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._path = f"/session/{turn.session_id}"

    def run(self, prompt: Json, text_: str, images: Sequence[str] = ()) -> list[Json]:
        """Say `text_`, and show `images` (data: URLs), with the fields of `prompt`; the assistant messages that answer.

        Raises:
            SessionGone: it was deleted meanwhile.
            ModelUnavailable: the server is down or too slow, or the provider keeps failing.
        """
        mark = secrets.token_hex(8)
        parts: list[Json] = [{"type": "text", "text": text_, "metadata": {OWN_MARK: mark}}]
        parts += [{"type": "file", "mime": url[len("data:") : url.index(";")], "url": url} for url in images]
        unsent: Json | None = prompt | {"parts": parts}
        while True:
            if not self._listen(unsent):
                # Of one that is deleted from another folder we hear nothing, and the server goes on with its turn.
                self._http.ask("GET", self._path, self._patience.read, query=self._where)
                self._turn.is_over = not self._is_busy()
            unsent = None
            if self._turn.is_deleted:
                raise self._http.gone(self._turn.session_id)
            if self._turn.is_over:
                answers = self._answers(mark)
                if answers is not None:
                    return answers
                self._turn.is_over = False
            time.sleep(_AGAIN_S)

    def _listen(self, unsent: Json | None) -> bool:
        """Follow the events, sending the prompt once the server listens to us; whether its end came.

        False after some silence, or when the server hung up.
        """
        last_event = time.monotonic()
        silence_s = max(0.1, min(_SILENCE_S, self._deadline - last_event))
        try:
            with self._http.events(self._where, silence_s) as events:
                for event in events:
                    if unsent is not None:
                        path = f"{self._path}/prompt_async"
                        self._http.ask("POST", path, self._patience.create, query=self._where, body=unsent)
                        unsent = None
                    now = time.monotonic()
                    if self._turn.feed(event):
                        last_event = now
                    self._look_at_the_clock()
                    if self._turn.is_over:
                        return True
                    if now - last_event > _SILENCE_S:
                        return False
        except httpx.HTTPError as error:
            if unsent is not None:
                raise self._http.down(error) from None
        if unsent is not None:
            raise ModelUnavailable(f"{self._http.url}: tells no events; is this an OpenCode server?")
        self._look_at_the_clock()
        return False

    def _look_at_the_clock(self) -> None:
        """Whether to go on waiting: a server asks a failing provider again, ever more slowly and without end."""
        if time.monotonic() > self._deadline:
            raise ModelUnavailable(
                f"{self._http.url}: no answer within {self._limit_s:g} s; allow more time, or take a faster model"
            )
        retry = self._turn.retry
        if retry is None:
            return
        until = time.monotonic() + integer(retry.get("next")) / 1000 - time.time()
        if integer(retry.get("attempt")) >= self._patience.attempts or until > self._deadline:
            reason = " ".join(text(retry.get("message")).split())[:300]
            raise ModelUnavailable(f"{self._http.url}: the provider keeps failing: {reason}; it is asked again later")

    def _is_busy(self) -> bool:
        states = table(self._http.ask("GET", "/session/status", self._patience.read, query=self._where))
        return table(states.get(self._turn.session_id)).get("type") in {"busy", "retry"}

    def _answers(self, mark: str) -> list[Json] | None:
        """The messages of a turn that is over; None when it turns out that it is not."""
        begun = time.monotonic()
        by = min(self._deadline, begun + self._patience.read)
        while True:
            is_idle = time.monotonic() - begun > _SETTLED_S and not self._is_busy()
            listed = self._http.ask("GET", f"{self._path}/message", self._patience.read, query=self._where)
            answers = answers_to([table(m) for m in listed] if isinstance(listed, list) else [], mark)
            if self._turn.error is not None or is_finished(answers, is_idle=is_idle):
                return answers
            if not is_idle and self._is_busy():
                return None
            if not answers:  # 1.1 lists messages, rather than an error, for a session that is not there
                self._http.ask("GET", self._path, self._patience.read, query=self._where)
            if time.monotonic() > by:
                raise ModelUnavailable(
                    f"{self._http.url}: the turn ended without an answer or a reason; see the log of that server"
                )
            time.sleep(_AGAIN_S)
