"""The daemon's loop that feeds the semantic index, and lets go of it when nobody needs it."""

from __future__ import annotations

from collections.abc import Callable

from daemon import log
from daemon.app.engine import Engine
from daemon.app.loops import IDLE_S, MODEL_S, Loop
from daemon.errors import IndexBroken

_LOG = log.get("loops")
_READS_S = 0.5
"""Of what the semantic index has, between two steps of embedding, until all is in memory."""


_LETS_GO_S = 180.0
"""Without a question by meaning or a message to embed, the worker that has the index and the model is ended."""


class EmbedLoop(Loop):
    """Empties the semantic outbox; waits longer and longer for a model server that is down.

    The worker that has Chroma and the model starts when something waits, or when a question needs it, and is ended
    after a rest.
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("embed", engine, fatal, allowed_s=MODEL_S)
        self._is_model_known = False

    def turn(self) -> float:
        upkeep = self._engine.upkeep
        if not self._is_model_known:
            upkeep.expect_semantic()
            upkeep.expect_model()
            self._is_model_known = True
        if not self._engine.has_to_embed:
            return self._pause()
        result = self._engine.drain_semantic(stop=self._is_stopping)
        if result.refused:
            _LOG.warning("embedding", refused=result.refused)
        is_more = self._engine.prepare_semantic(_READS_S)
        return 0.0 if result.messages or is_more else IDLE_S

    def _pause(self) -> float:
        upkeep = self._engine.upkeep
        if upkeep.is_open and self._engine.prepare_semantic(_READS_S):
            return 0.0
        if upkeep.end_worker_if_idle(_LETS_GO_S):
            _LOG.info("embedding", rest="the process that has the semantic index and the model was ended")
        return IDLE_S

    def _is_stopping(self) -> bool:
        self.sign()
        return self._stop.is_set()

    def failed(self, error: Exception) -> None:
        if not isinstance(error, IndexBroken):  # the engine has reported that one
            self._engine.report("embedding", error)
