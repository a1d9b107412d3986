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
"""How many messages decide which tool is chosen; those before them are given as what led there."""
_MOST_KEPT = 64
_LABEL = "adapter"


@dataclass(slots=True)
class Lease:
    """A session in use; `known` turns of the conversation have been said in it."""

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
        """`idle_s`: how long a session waits for the next turn; 0: none does."""
        self._server = server
        self._idle_s = idle_s
        self._clock = clock
        self._idle: dict[str, _IdleSession] = {}  # digest of what it holds -> session, oldest first
        self._leased: dict[str, Lease] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def lease(self, model: str, chain: Sequence[str], reusable: Sequence[bool]) -> Lease:
        """A session for the conversation whose digests are `chain`, the one that holds most of it, else a new one.

        `reusable[n]`: whether the turns after the first n may be said to a session that knows those.

        Raises:
            ModelUnavailable: the server does not answer.
            Retry: the adapter is stopping.
        """
        with self._changed:
            for known in range(len(chain) - 2, 0, -1):
                idle = self._idle.pop(chain[known], None) if reusable[known] else None
                if idle is not None:
                    idle.lease.known = known
                    self._leased[idle.lease.session_id] = idle.lease
                    return idle.lease
        return self.new(model)

    def new(self, model: str) -> Lease:
        """A session that holds nothing. Raises as `lease` does."""
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
                doomed += [idle.lease for idle in (self._idle.pop(digest, None),) if idle]
                self._idle[digest] = _IdleSession(lease, self._clock() + self._idle_s)
                while len(self._idle) > _MOST_KEPT:
                    doomed.append(self._idle.pop(next(iter(self._idle))).lease)
                self._start()
                self._changed.notify()
        for lost in doomed:
            self._server.delete(lost.session_id)

    def drop(self, lease: Lease) -> None:
        """Delete the session: its turn failed, or nothing will follow."""
        self._server.delete(lease.session_id)
        with self._changed:
            self._leased.pop(lease.session_id, None)

    def counts(self) -> tuple[int, int]:
        """How many are (in use, waiting for a next turn)."""
        with self._changed:
            return len(self._leased), len(self._idle)

    def waiting(self) -> list[tuple[str, float]]:
        """(model, seconds until it is deleted) of every session that waits."""
        with self._changed:
            now = self._clock()
            return [(idle.lease.model, max(0.0, idle.until - now)) for idle in self._idle.values()]

    def release(self, model: str) -> None:
        """Delete the sessions of this model that wait."""
        self._delete(lambda idle: idle.lease.model == model)

    def expire(self) -> float:
        """Delete what has waited too long; how many seconds until the next one will have."""
        now = self._clock()
        self._delete(lambda idle: idle.until <= now)
        with self._changed:
            return min((idle.until - now for idle in self._idle.values()), default=self._idle_s)

    def _delete(self, is_over: Callable[[_IdleSession], bool]) -> None:
        with self._changed:
            over = [digest for digest, idle in self._idle.items() if is_over(idle)]
            doomed = [self._idle.pop(digest).lease for digest in over]
        for lease in doomed:
            self._server.delete(lease.session_id)

    def close(self) -> int:
        """Delete every session, those in use too; how many could not be deleted. No more are made."""
        with self._changed:
            self._is_closed = True
            doomed = [*self._leased.values(), *(idle.lease for idle in self._idle.values())]
            self._idle.clear()
            self._leased.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for number, lease in enumerate(doomed):
            if not self._server.delete(lease.session_id):
                return len(doomed) - number  # the others would take as long to fail
        return 0

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="adapter-sessions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            rest = self.expire()
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(min(max(rest, 0.05), 60.0))


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
            turns.append({"role": "tool", "tool_name": name, "content": message["content"]})
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
    return "\n\n".join(_result(m) if m["role"] == "tool" else str(m["content"]) for m in turns)


def digests(setup: object, turns: Sequence[OllamaMessage]) -> list[str]:
    """One for every beginning: [0] for none of the turns, [n] for the first n. `setup`: what else must be the same."""
    chain = [_digest(setup)]
    for turn in turns:
        chain.append(_digest([chain[-1], _essence(turn)]))
    return chain


def _essence(turn: OllamaMessage) -> list[Any]:
    """What a client sends back unchanged; ids, thinking and surrounding blanks need not survive with it."""
    calls = [[call.name, call.arguments] for call in calls_of(turn)]
    return [turn["role"], turn["content"].strip(), calls, turn.get("tool_name", "")]


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _turn_text(message: OllamaMessage, *, in_actions: bool) -> str:
    if message["role"] == "tool":
        return _result(message)
    if message["role"] == "assistant" and (in_actions or is_of_tools(message)):
        message = in_words([message], ())[1]
    return f"{message['role'].capitalize()}:\n{message['content']}"


def _result(message: OllamaMessage) -> str:
    return result_turn(message["tool_name"], message["content"])
