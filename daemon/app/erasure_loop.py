"""The loop that completes a forgetting which a stop, a crash or a full disk ended in the middle.

Then it writes the pages anew that were made of what is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from daemon.app.engine import Engine
from daemon.app.indexing import Interrupted
from daemon.app.jobs import BESIDE_MODEL_S
from daemon.app.loops import MODEL_S, Loop
from daemon.model import Json

_IDLE_S = 60.0


class ErasureLoop(Loop):
    """It mostly waits: `Engine.forget` itself does the erasing, unless it is ended."""

    stops_in_pause = False  # what the user has removed must not stay

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        allowed_s = max(MODEL_S, engine.config.chat.timeout_seconds + BESIDE_MODEL_S)
        super().__init__("erasure", engine, fatal, allowed_s=allowed_s)

    def turn(self) -> float:
        self._engine.complete_forgetting(self._sign)
        self._engine.write_pages_anew(self._sign)
        return _IDLE_S

    def _sign(self, _event: Json) -> None:
        self.sign()
        if self._stop.is_set():
            raise Interrupted("stopping; what was forgotten is erased from the files after the next start")

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Interrupted):
            self._engine.report("forgetting", error)
