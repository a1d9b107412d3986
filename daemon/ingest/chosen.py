"""A lazy embedder, so that Upkeep chooses the real one only when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daemon.archive import Archive
from daemon.embed import Embedder, Vector, calibration
from daemon.embed.builtin import Builtin
from daemon.embed.calibration import Calibration
from daemon.errors import BadInput
from daemon.ingest.outbox import index_fingerprint


class Chosen:
    """See Embedder; the real one is chosen at the first call."""

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        """See Embedder."""
        return index_fingerprint(self._embedder())

    @property
    def dims(self) -> int:
        """See Embedder."""
        return self._embedder().dims

    @property
    def name(self) -> str:
        """See Embedder."""
        return self._embedder().name

    def close(self) -> None:
        """Its owner closes it."""

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """See Embedder."""
        return self._embedder().embed(texts)

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder."""
        return self._embedder().embed_query(text)

    def legible(self, text: str) -> float:
        """See Embedder."""
        return self._embedder().legible(text)

    def known_words(self, text: str) -> float:
        """See Embedder."""
        return self._embedder().known_words(text)


def calibrated(archive: Archive, embedder: Embedder) -> Calibration | None:
    """The calibration of this model's cosines, measured once; None for the built-in model."""
    if embedder.fingerprint == Builtin().fingerprint:
        return None
    note = f"cosines {calibration.VERSION} {embedder.fingerprint}"
    measured = archive.note(note)
    if not measured:
        measured = " ".join(map(str, calibration.measure(embedder)))
        archive.set_note(note, measured)
    return calibration.calibration([float(cosine) for cosine in measured.split()])
