"""The loop that feeds the semantic index from the archive."""

from __future__ import annotations

import time
from collections.abc import Callable

from daemon import log
from daemon.app.engine import Engine
from daemon.app.loops import IDLE_S, MODEL_S, Loop
from daemon.errors import IndexBroken
from daemon.model import Message

_LOG = log.get("loops")

_LOAD_S = 0.5
"""Seconds of loading the semantic index into memory between two steps of embedding."""

WORKER_IDLE_S = 180.0
"""After this long without a search by meaning or a message to embed, the worker process is ended."""

_FEW = 8
"""Answers that are written at the same time, at most; if more wait, they are embedded as they are."""

_GROWS_S = 30.0
"""An unfinished message that has not changed for so long is embedded."""


class EmbedLoop(Loop):
    """Feeds the semantic index; while a model server is down, it retries after longer and longer pauses.

    The worker process with Chroma and the model starts when a message waits or a search needs it. It is ended when it
    has been idle for a while.
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("embed", engine, fatal, allowed_s=MODEL_S)
        self._is_model_known = False
        self._changed: dict[str, tuple[bytes, float]] = {}
        """Of the last few messages that waited alone: their entry in the outbox, and since when it is this one."""

    def turn(self) -> float:
        upkeep = self._engine.upkeep
        if not self._is_model_known:
            upkeep.expect_semantic()
            upkeep.expect_model()
            self._is_model_known = True
        if not self._engine.has_to_embed or self._is_growing():
            return self._pause()
        result = self._engine.drain_semantic(stop=self._is_stopping)
        if result.refused:
            _LOG.warning("embedding", refused=result.refused)
        is_more = self._engine.prepare_semantic(_LOAD_S)
        return 0.0 if result.messages or is_more else IDLE_S

    def _is_growing(self) -> bool:
        """Whether nothing waits but a few answers that are being written: each change would be embedded again."""
        archive, now = self._engine.archive, time.monotonic()
        waiting = archive.outbox("semantic", _FEW + 1)
        if not waiting or len(waiting) < self._engine.waits_for_meaning:
            return False
        growing = [self._grows(archive.message(message_id), value, now) for message_id, _, value in waiting]
        while len(self._changed) > _FEW:
            del self._changed[next(iter(self._changed))]
        return all(growing)

    def _grows(self, message: Message | None, value: bytes, now: float) -> bool:
        """Whether it is unfinished and changed lately, as far as this loop has seen it, or was begun lately.

        `message` is None if it was forgotten; `value` is its entry in the outbox.
        """
        if message is None:
            return False
        is_new = time.time() - message.created / 1000 < _GROWS_S
        known, since = self._changed.pop(message.id, (value, now if is_new else -_GROWS_S))
        self._changed[message.id] = value, since if known == value else now
        return not message.is_complete and now - self._changed[message.id][1] < _GROWS_S

    def _pause(self) -> float:
        upkeep = self._engine.upkeep
        if upkeep.is_open and self._engine.prepare_semantic(_LOAD_S):
            return 0.0
        self.at_pause()
        return IDLE_S

    def at_pause(self) -> None:
        if self._engine.upkeep.end_worker_if_idle(WORKER_IDLE_S):
            _LOG.info("embedding", worker="ended, because it was idle")

    def _is_stopping(self) -> bool:
        self.sign()
        return self._stop.is_set() or self._engine.pausing.left_s() > 0

    def failed(self, error: Exception) -> None:
        if not isinstance(error, IndexBroken):  # the engine has reported that one
            self._engine.report("embedding", error)
