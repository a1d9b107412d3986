"""Text becomes vectors: the protocol, and what every embedder promises.

Many models embed a question in another way than the passages that answer it, so each has a method of its own. A model
gives a vector to any text, also to one that it cannot read: `legible` says how much of it can be read.

`embed` answers one entry per text, in order: a unit vector, or the BadInput that says why this text has none. One bad
text never spoils its batch, and never stops the queue. A model server that is down raises ModelUnavailable: nothing was
embedded, ask again later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from daemon.errors import BadInput
from daemon.model import Vector

__all__ = ["LEGIBLE_VERSION", "BadInput", "Embedder", "OnThisMachine", "Vector", "reads"]

LEGIBLE_VERSION = 2
"""Raise it when a rule changes that decides which texts are legible: semantic indexes are then filled again, from the
vectors that the archive has."""
_UNREAD_HALF = 0.5
"""Of a text that is no more legible the vector says as much about what is missing as about what it means."""


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
        """Unit vectors of passages, one per text, in order.

        Raises:
            ModelUnavailable: the server is down or lacks the model; nothing was embedded.
        """

    def embed_query(self, text: str) -> Vector | BadInput:
        """The unit vector of a question, to compare with those of passages.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """

    def legible(self, text: str) -> float:
        """The share of `text` that the model can read, 0 to 1 (`daemon.embed.legible`).

        Raises:
            ModelUnavailable: the model's files are missing or unreadable.
        """


@runtime_checkable
class OnThisMachine(Protocol):
    """An Embedder whose model is loaded into this process; a server loads its own."""

    def load(self) -> None:
        """Have the model in memory; harmless when it is."""


def reads(embedder: Embedder, text: str) -> bool:
    """Whether the model can read more than half of the text, so that its vector means something.

    Raises:
        ModelUnavailable: the model's files are missing or unreadable.
    """
    return embedder.legible(text) > _UNREAD_HALF
