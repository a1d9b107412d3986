"""What the call `models` answers (docs/json.md)."""

from __future__ import annotations

from daemon.control.answers import Answer


class EmbeddingModel(Answer):
    """A model for search by meaning. `readable` is the share of the sampled messages that it can read, None where
    there are none; `seconds` is what it would take to embed the whole archive; `setting` is how to choose it.
    """

    name: str = ""
    in_use: bool = False
    dims: int = 0
    readable: float | None = None
    texts_per_second: float = 0.0
    seconds: float = 0.0
    setting: str = ""
    error: str = ""


class Models(Answer):
    """The models at hand, the one in use first, judged by a `sample` of the archive's messages."""

    models: list[EmbeddingModel] = []
    messages: int = 0
    sample: int = 0
    advice: str = ""
    warnings: list[str] = []
