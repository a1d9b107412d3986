"""The type of an embedding, for every room that passes one on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]
"""A unit vector; its length is the embedder's `dims`."""
