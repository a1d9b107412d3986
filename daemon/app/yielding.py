"""The built-in embedder as the service uses it: it shares this machine's processor with what people wait for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from daemon.embed.builtin import WorkerEmbedder
from daemon.errors import BadInput
from daemon.model import Vector

_YIELD_S = 0.5
"""How long embedding waits for new messages at most, at each of its small steps, so that it always makes progress."""

_TEXTS_AT_ONCE = 4


class YieldingEmbedder:
    """An Embedder on this machine's processor that lets new messages go first, every few texts.

    A single text does not wait, because it is a query that somebody waits for.
    """

    def __init__(self, embedder: WorkerEmbedder, calm: threading.Event) -> None:
        """`calm` is set while no new messages are being read."""
        self._embedder = embedder
        self.load = embedder.load
        self._calm = calm

    @property
    def fingerprint(self) -> str:
        """See Embedder."""
        return self._embedder.fingerprint

    @property
    def dims(self) -> int:
        """See Embedder."""
        return self._embedder.dims

    @property
    def name(self) -> str:
        """See Embedder."""
        return self._embedder.name

    def close(self) -> None:
        """See Embedder."""
        self._embedder.close()

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """See Embedder."""
        vectors: list[Vector | BadInput] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            if len(texts) > 1:
                self._calm.wait(_YIELD_S)
            vectors += self._embedder.embed(texts[start : start + _TEXTS_AT_ONCE])
        return vectors

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder."""
        return self._embedder.embed_query(text)

    def legible(self, text: str) -> float:
        """See Embedder."""
        return self._embedder.legible(text)

    def known_words(self, text: str) -> float:
        """See Embedder."""
        return self._embedder.known_words(text)
