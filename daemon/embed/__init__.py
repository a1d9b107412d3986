"""Text becomes vectors: the protocol, and what every embedder promises.

`embed` answers one entry per text, in order: a unit vector, or the BadInput that says why this text has none. One bad
text never spoils its batch, and never stops the queue. A model server that is down raises ModelUnavailable: nothing was
embedded, ask again later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from daemon.errors import BadInput
from daemon.model import Vector

__all__ = ["BadInput", "Embedder", "OnThisMachine", "Vector"]


class Embedder(Protocol):
    """What the ingest pass and recall ask of a model."""

    @property
    def fingerprint(self) -> str:
        """Names the model: name, digest, dims; 12 to 36 of ``[a-z0-9-]``. Vectors of two models never mix."""

    @property
    def dims(self) -> int:
        """Length of every vector."""

    @property
    def name(self) -> str:
        """For people: ``all-MiniLM-L6-v2 (built in)`` or ``qwen3-embedding:8b (Ollama)``."""

    def close(self) -> None:
        """Release connections; harmless when there are none."""

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """Unit vectors, one per text, in order.

        Raises:
            ModelUnavailable: the server is down or lacks the model; nothing was embedded.
        """


@runtime_checkable
class OnThisMachine(Protocol):
    """An Embedder whose model is loaded into this process; a server loads its own."""

    def load(self) -> None:
        """Have the model in memory; harmless when it is."""
