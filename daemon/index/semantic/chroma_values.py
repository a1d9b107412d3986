"""What becomes of texts and vectors before Chroma gets them (docs/reliability.md, S14, C7)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from daemon.errors import BadInput
from daemon.model import Vector

PAGE = 500
"""Rows of one call; Chroma refuses more than 5461, and SQLite more than some thousand variables."""

NUDGE = 3e-3
"""How far each stored vector is moved, in a direction that its id gives; similarity changes by 0.000005.

Equal vectors make an HNSW graph fall apart: with 400 equal texts ("continue", one file read again and again) Chroma
1.5.9 found none of three others, with a filter neither (measured). Moved apart, all are found.
"""


def plain(text: str) -> str:
    """`text` without lone surrogates, at which Chroma raises."""
    return text.encode("utf-8", "replace").decode()


def unit(vector: Any) -> Vector:
    """As 32-bit floats of length 1."""
    values = np.asarray(vector, dtype=np.float32)
    return values / max(float(np.linalg.norm(values)), 1e-12)


def nudged(record: str, vector: Vector) -> Vector:
    """`vector` as it is stored for a record."""
    seed = int.from_bytes(blake2b(record.encode(), digest_size=8).digest(), "little")
    direction = np.random.default_rng(seed).standard_normal(len(vector), dtype=np.float32)
    return unit(unit(vector) + NUDGE * unit(direction))


def check(name: str, vector: Vector, dims: int) -> None:
    """Chroma would take a useless vector and never find it.

    Raises:
        BadInput: it has another length than `dims`, or is not finite, or zero.
    """
    if vector.shape != (dims,) or not np.isfinite(vector).all() or not float(np.linalg.norm(vector)) > 0:
        raise BadInput(f"{name}: a vector of shape {vector.shape} that is not {dims} finite numbers, not all 0")
