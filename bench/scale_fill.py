"""The program as it is, but for its embedding, which the environment's SCALE_EMBEDDING changes in one of two ways:

    SCALE_EMBEDDING=cheap|paused python bench/scale_fill.py [arguments of reconstitute]

`cheap`: a text's vector is the sum of one random direction for each word, in place of what the built-in model makes of
it. Texts that share words are near, and vectors are 384 numbers long as the model's are, so Chroma's index gets its
real size and shape. What is filled so is afterwards opened by the program unchanged, which embeds each query with the
real model. `paused`: nothing is put into the semantic index, queries are embedded by the real model. Real vectors for
144,000 messages would take hours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from daemon.app.embed_loop import EmbedLoop
from daemon.cli import main
from daemon.embed import BadInput, Vector
from daemon.embed.builtin import WorkerEmbedder

_ROWS, _DIMS = 8192, 384


@lru_cache(maxsize=1)
def _directions() -> np.ndarray[Any, Any]:
    return np.random.default_rng(11).standard_normal((_ROWS, _DIMS), dtype=np.float32)


def embed(_self: WorkerEmbedder, texts: Sequence[str]) -> list[Vector | BadInput]:
    """As Embedder.embed, in about 60 µs a text."""
    return [_vector(text) if text.strip() else BadInput("the text is blank") for text in texts]


def embed_query(self: WorkerEmbedder, text: str) -> Vector | BadInput:
    """As Embedder.embed_query."""
    return embed(self, [text])[0]


def _vector(text: str) -> Vector:
    rows = [crc32(word.encode("utf-8", "replace")) % _ROWS for word in text.lower().split()]
    total = _directions()[rows].sum(axis=0)
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), dtype=np.float32)


def run() -> int:
    if os.environ["SCALE_EMBEDDING"] == "cheap":
        WorkerEmbedder.embed_query = embed_query  # type: ignore[method-assign]  # the purpose of this script
        WorkerEmbedder.embed = embed  # type: ignore[method-assign, assignment]  # the purpose of this script
    else:
        EmbedLoop.turn = lambda _self: 2.0  # type: ignore[method-assign, assignment]  # likewise
    return main()


if __name__ == "__main__":
    sys.exit(run())
