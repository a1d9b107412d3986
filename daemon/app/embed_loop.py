"""The daemon's loop that feeds the semantic index, and lets go of it when nobody needs it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable

from daemon import log
from daemon.app.engine import Engine
from daemon.app.loops import IDLE_S, MODEL_S, Loop
from daemon.errors import IndexBroken

_LOG = log.get("loops")
_READS_S = 0.5
"""Of what the semantic index has, between two steps of embedding, until all is in memory."""


_LETS_GO_S = 180.0
"""Without a question by meaning or a message to embed, its index is closed and its model unloaded."""


class EmbedLoop(Loop):
    """Empties the semantic outbox; waits longer and longer for a model server that is down.

    Chroma and the model are loaded when something waits, or when a question needs them, and let go of after a rest.
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
        if upkeep.close_if_idle(_LETS_GO_S):
            _LOG.info("embedding", rest="the semantic index is closed, the model unloaded")
            give_back()
        return IDLE_S

    def _is_stopping(self) -> bool:
        self.sign()
        return self._stop.is_set()

    def failed(self, error: Exception) -> None:
        if not isinstance(error, IndexBroken):  # the engine has reported that one
            self._engine.report("embedding", error)


def give_back() -> None:
    """Have the C library return to the system what was freed; Python never does that by itself."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):  # another C library than GNU's
        ctypes.CDLL(None).malloc_trim(0)
