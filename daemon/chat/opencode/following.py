"""One turn of a session on an OpenCode server, from its prompt to its last message: sent, followed, read.

The server's events say how a turn goes on, its messages what came of it. Where the events fall silent the server is
asked instead, so that a lost event costs seconds and never the answer.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from daemon.chat import ModelUnavailable
from daemon.chat.opencode.http import Wire
from daemon.chat.opencode.turn import Turn, answers_to, is_finished
from daemon.model import Json
from daemon.opencode_ids import OWN_MARK
from daemon.records import integer, table, text

_SILENCE_S = 15.0
"""After so long without a word of the session the server is asked whether it is still at work."""
_AGAIN_S = 0.2
_SETTLED_S = 1.0
"""1.1 says that a session is idle a moment before it records why."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each phase may take, in seconds, and how often the server may ask a failing provider."""

    create: float = 10.0
    prompt: float = 600.0
    read: float = 30.0
    delete: float = 5.0
    attempts: int = 3


class Following:
    """Takes one turn; made for it and thrown away.

    Args:
        where: the query that says in which folder the session runs.
        limit_s: how long the turn may take, from now.
    """

    def __init__(self, wire: Wire, where: Mapping[str, Any], turn: Turn, patience: Patience, limit_s: float) -> None:
        self._wire, self._where, self._turn, self._patience = wire, where, turn, patience
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._path = f"/session/{turn.session_id}"

    def take(self, prompt: Json, text_: str) -> list[Json]:
        """Say `text_` with the fields of `prompt`; the assistant messages that answer it.

        Raises:
            SessionGone: it was deleted meanwhile.
            ModelUnavailable: the server is down or too slow, or the provider keeps failing.
        """
        mark = secrets.token_hex(8)
        unsent: Json | None = prompt | {"parts": [{"type": "text", "text": text_, "metadata": {OWN_MARK: mark}}]}
        while True:
            if not self._listen(unsent):
                self._turn.is_over = not self._is_busy()
            unsent = None
            if self._turn.is_deleted:
                raise self._wire.gone(self._turn.session_id)
            if self._turn.is_over:
                answers = self._answers(mark)
                if answers is not None:
                    return answers
                self._turn.is_over = False
            time.sleep(_AGAIN_S)

    def _listen(self, unsent: Json | None) -> bool:
        """Follow the events, sending the prompt once the server listens to us; whether the turn's end was told.

        False after some silence, or when the server hung up.
        """
        heard = time.monotonic()
        silence_s = max(0.1, min(_SILENCE_S, self._deadline - heard))
        try:
            with self._wire.events(self._where, silence_s) as events:
                for event in events:
                    if unsent is not None:
                        path = f"{self._path}/prompt_async"
                        self._wire.ask("POST", path, self._patience.create, query=self._where, body=unsent)
                        unsent = None
                    now = time.monotonic()
                    if self._turn.feed(event):
                        heard = now
                    self._look_at_the_clock()
                    if self._turn.is_over:
                        return True
                    if now - heard > _SILENCE_S:
                        return False
        except httpx.HTTPError as error:
            if unsent is not None:
                raise self._wire.down(error) from None
        if unsent is not None:
            raise ModelUnavailable(f"{self._wire.url}: tells no events; is this an OpenCode server?")
        self._look_at_the_clock()
        return False

    def _look_at_the_clock(self) -> None:
        """Whether to go on waiting: a server asks a failing provider again, ever more slowly and without end."""
        if time.monotonic() > self._deadline:
            raise ModelUnavailable(
                f"{self._wire.url}: no answer within {self._limit_s:g} s; allow more time, or take a faster model"
            )
        retry = self._turn.retry
        if retry is None:
            return
        until = time.monotonic() + integer(retry.get("next")) / 1000 - time.time()
        if integer(retry.get("attempt")) >= self._patience.attempts or until > self._deadline:
            reason = " ".join(text(retry.get("message")).split())[:300]
            raise ModelUnavailable(f"{self._wire.url}: the provider keeps failing: {reason}; it is asked again later")

    def _is_busy(self) -> bool:
        states = table(self._wire.ask("GET", "/session/status", self._patience.read, query=self._where))
        return table(states.get(self._turn.session_id)).get("type") in {"busy", "retry"}

    def _answers(self, mark: str) -> list[Json] | None:
        """The messages of a turn that is over; None when it turns out that it is not."""
        begun = time.monotonic()
        by = min(self._deadline, begun + self._patience.read)
        while True:
            is_idle = time.monotonic() - begun > _SETTLED_S and not self._is_busy()
            listed = self._wire.ask("GET", f"{self._path}/message", self._patience.read, query=self._where)
            answers = answers_to([table(m) for m in listed] if isinstance(listed, list) else [], mark)
            if self._turn.error is not None or is_finished(answers, is_idle=is_idle):
                return answers
            if not is_idle and self._is_busy():
                return None
            if not answers:  # 1.1 lists messages, rather than an error, for a session that is not there
                self._wire.ask("GET", self._path, self._patience.read, query=self._where)
            if time.monotonic() > by:
                raise ModelUnavailable(
                    f"{self._wire.url}: the turn ended without an answer or a reason; see the log of that server"
                )
            time.sleep(_AGAIN_S)
