"""A conversation in an OpenCode session: what is said in it, and which session a next turn goes on in.

A new session is given all messages, a kept one only the new ones, so the turn costs one model call. A conversation has
a digest for every beginning of it. A kept session is used again only where its digest is a beginning of what a client
now sends, and only messages of the user and of tools are new. Nobody else gets a session while it is in use. Those that
wait too long are deleted by a thread, the rest by `close`; what cannot be deleted then, the server object deletes when
it can.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.chat.actions import calls_of, in_words, is_of_tools, result_turn
from daemon.chat.opencode.server import OpenCodeServer
from daemon.errors import Retry
from daemon.model import OllamaMessage

RECENT = 10
"""How many of the last messages decide which tool is chosen; earlier ones are given as context."""
_MAX_IDLE = 64
_LABEL = "adapter"


@dataclass(slots=True)
class Lease:
    """A session in use; it has `known` turns of the conversation."""

    session_id: str
    model: str
    known: int = 0


@dataclass(frozen=True, slots=True)
class _IdleSession:
    lease: Lease
    until: float


class Sessions:
    """All sessions of one adapter. Safe to use from several threads."""

    def __init__(self, server: OpenCodeServer, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`idle_s`: how long an idle session is kept for the next turn; 0: not at all."""
        self._server = server
        self._idle_s = idle_s
        self._clock = clock
        self._idle_sessions: dict[str, _IdleSession] = {}  # by digest of the conversation, oldest first
        self._leased: dict[str, Lease] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def lease(self, model: str, chain: Sequence[str], reusable: Sequence[bool]) -> Lease:
        """The idle session that has most of the conversation with the digests `chain`, else a new session.

        `reusable[n]`: whether the turns after the first n may be sent to a session that has the first n.

        Raises:
            ModelUnavailable: the server does not answer.
            Retry: the adapter is stopping.
        """
        with self._changed:
            for count in range(len(chain) - 2, 0, -1):
                session = self._idle_sessions.pop(chain[count], None) if reusable[count] else None
                if session is not None:
                    session.lease.known = count
                    self._leased[session.lease.session_id] = session.lease
                    return session.lease
        return self.new(model)

    def new(self, model: str) -> Lease:
        """An empty session. Raises as `lease` does."""
        lease = Lease(self._server.create(_LABEL), model)
        with self._changed:
            if not self._is_closed:
                self._leased[lease.session_id] = lease
                return lease
        self._server.delete(lease.session_id)
        raise Retry("the adapter is stopping; ask again when it runs")

    def keep(self, lease: Lease, digest: str) -> None:
        """Keep the session for the turn after the conversation with this digest."""
        doomed = list[Lease]()
        with self._changed:
            self._leased.pop(lease.session_id, None)
            if self._is_closed or not self._idle_s:
                doomed.append(lease)
            else:
                doomed += [session.lease for session in (self._idle_sessions.pop(digest, None),) if session]
                self._idle_sessions[digest] = _IdleSession(lease, self._clock() + self._idle_s)
                while len(self._idle_sessions) > _MAX_IDLE:
                    doomed.append(self._idle_sessions.pop(next(iter(self._idle_sessions))).lease)
                self._start()
                self._changed.notify()
        for old_lease in doomed:
            self._server.delete(old_lease.session_id)

    def drop(self, lease: Lease) -> None:
        """Delete the session, because its turn failed or it cannot be continued."""
        self._server.delete(lease.session_id)
        with self._changed:
            self._leased.pop(lease.session_id, None)

    def counts(self) -> tuple[int, int]:
        """How many sessions are (in use, idle)."""
        with self._changed:
            return len(self._leased), len(self._idle_sessions)

    def waiting(self) -> list[tuple[str, float]]:
        """(model, seconds until it is deleted) of every idle session."""
        with self._changed:
            now = self._clock()
            return [(session.lease.model, max(0.0, session.until - now)) for session in self._idle_sessions.values()]

    def release(self, model: str) -> None:
        """Delete the idle sessions of this model."""
        self._delete(lambda session: session.lease.model == model)

    def expire(self) -> float:
        """Delete expired sessions; returns the seconds until the next one expires."""
        now = self._clock()
        self._delete(lambda session: session.until <= now)
        with self._changed:
            return min((session.until - now for session in self._idle_sessions.values()), default=self._idle_s)

    def _delete(self, is_over: Callable[[_IdleSession], bool]) -> None:
        with self._changed:
            over = [digest for digest, session in self._idle_sessions.items() if is_over(session)]
            doomed = [self._idle_sessions.pop(digest).lease for digest in over]
        for lease in doomed:
            self._server.delete(lease.session_id)

    def close(self) -> int:
        """Delete all sessions, also those in use, and make no more; returns how many could not be deleted."""
        with self._changed:
            self._is_closed = True
            doomed = [*self._leased.values(), *(session.lease for session in self._idle_sessions.values())]
            self._idle_sessions.clear()
            self._leased.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for number, lease in enumerate(doomed):
            if not self._server.delete(lease.session_id):
                return len(doomed) - number  # the remaining deletions would fail as slowly
        return 0

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="adapter-sessions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            wait = self.expire()
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(min(max(wait, 0.05), 60.0))


def system_of(messages: Sequence[OllamaMessage]) -> str:
    """What the client says to the model itself."""
    return "\n\n".join(m["content"] for m in messages if m["role"] == "system" and m["content"].strip())


def turns_of(messages: Sequence[OllamaMessage]) -> list[OllamaMessage]:
    """The conversation without system messages; each result with the name of the tool that gave it."""
    turns, waiting = list[OllamaMessage](), list[str]()
    for message in messages:
        if message["role"] == "assistant":
            waiting = [call.name for call in calls_of(message)]
        if message["role"] == "tool":
            # Clients that name no tool answer calls in their order.
            expected = waiting.pop(0) if waiting else ""
            name = message.get("tool_name") or message.get("name") or expected
            images = {"images": message["images"]} if "images" in message else {}
            turns.append({"role": "tool", "tool_name": name, "content": message["content"]} | images)
        elif message["role"] != "system":
            turns.append(message)
    return turns


def user_texts(turns: Sequence[OllamaMessage]) -> list[str]:
    """What the user said, latest first."""
    return [m["content"] for m in reversed(turns) if m["role"] == "user"]


def awaits_answer(turns: Sequence[OllamaMessage]) -> bool:
    """Whether the latest message is a tool's result. An older one says how things were, not how they are."""
    return bool(turns) and turns[-1]["role"] == "tool"


def opening(turns: Sequence[OllamaMessage], *, in_actions: bool) -> str:
    """All of the conversation, for a session that knows nothing; a single message as it is."""
    turns = _with_images_named(turns)
    if len(turns) == 1 and turns[0]["role"] == "user":
        return str(turns[0]["content"])
    texts = [_turn_text(message, in_actions=in_actions) for message in turns]
    earlier, recent = texts[:-RECENT], texts[-RECENT:]
    blocks = ["This conversation was held so far, oldest message first."]
    if earlier:
        blocks += ["What led here:", *earlier, "The latest messages, from which the next turn follows:"]
    return "\n\n".join([*blocks, *recent, "Write the next turn of the assistant, without its label."])


def continuing(turns: Sequence[OllamaMessage]) -> str:
    """Messages of the user and of tools, for the session that knows what was before them."""
    return "\n\n".join(_result(m) if m["role"] == "tool" else str(m["content"]) for m in _with_images_named(turns))


def images_of(turns: Sequence[OllamaMessage]) -> list[str]:
    """The images of these turns, in the order in which `opening` and `continuing` name them."""
    return [image for turn in turns for image in turn.get("images", ())]


def digests(setup: object, turns: Sequence[OllamaMessage]) -> list[str]:
    """One for every beginning: [0] for none of the turns, [n] for the first n. `setup`: what else must be the same."""
    chain = [_digest(setup)]
    for turn in turns:
        chain.append(_digest([chain[-1], _essence(turn)]))
    return chain


def _essence(turn: OllamaMessage) -> list[Any]:
    """What a client sends back unchanged; ids, thinking and surrounding blanks need not survive with it."""
    calls = [[call.name, call.arguments] for call in calls_of(turn)]
    return [turn["role"], turn["content"].strip(), calls, turn.get("tool_name", ""), turn.get("images", [])]


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_images_named(turns: Sequence[OllamaMessage]) -> list[OllamaMessage]:
    """The turns, each text with the names of its images: OpenCode takes all images of a prompt after one text."""
    named, count = list[OllamaMessage](), 0
    for turn in turns:
        names = [f"[attached image {count + number + 1}]" for number in range(len(turn.get("images", ())))]
        count += len(names)
        named.append(turn | {"content": "\n".join(text for text in (turn["content"], *names) if text)})
    return named


def _turn_text(message: OllamaMessage, *, in_actions: bool) -> str:
    if message["role"] == "tool":
        return _result(message)
    if message["role"] == "assistant" and (in_actions or is_of_tools(message)):
        message = in_words([message], ())[1]
    return f"{message['role'].capitalize()}:\n{message['content']}"


def _result(message: OllamaMessage) -> str:
    return result_turn(message["tool_name"], message["content"])
