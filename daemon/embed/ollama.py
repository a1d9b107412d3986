"""Embeddings from an Ollama server.

One request at a time. A text the model cannot take costs that text only (docs/reliability.md, O1, O2, O4): the batch
is halved until it is alone. A server that is down, changed or wrong for everything raises ModelUnavailable and nothing
is lost (O6). It never sends a blank text, never trusts a vector it has not checked, and never pulls a model itself. A
text gets the prefix that its model was trained with (`known_models`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from daemon.embed import BadInput, Vector, legible_share
from daemon.embed.known_models import known
from daemon.errors import ModelUnavailable
from daemon.ollama_server import OllamaServer, Refused

KEEP_ALIVE = "10m"
"""A duration string: Ollama rejects a bare number in quotes (docs/reliability.md, O6)."""

_CANARY = "The quick brown fox jumps over the lazy dog."
_HALVINGS = 6
_TOO_LONG = re.compile(r"context length|too long|too large|exceed|maximum (?:length|context)", re.IGNORECASE)


class _BadAnswer(Exception):  # a verdict on an answer, never leaves this module
    """The server answered, but these texts have no usable vectors."""


class _TooLong(_BadAnswer):
    """Because they do not fit into the model's context."""


class OllamaEmbedder:
    """Embedder behind `url`. What it says of itself is asked of the server on first use, and fixed from then on.

    Args:
        num_ctx: context length asked for, tokens.
        batch: texts per request.
        timeout_s: how long one request may take; a cold model of some GB loads for a while.
    """

    def __init__(
        self,
        url: str,
        model: str,
        num_ctx: int = 32768,
        batch: int = 32,
        *,
        timeout_s: float = 300,
    ) -> None:
        self._url, self._model, self._num_ctx, self._batch = url, model, num_ctx, batch
        self._server = OllamaServer(url, timeout_s, setting="embedding.url")
        self._known = known(model)
        self._query_prefix = "" if self._known is None else self._known.query_prefix
        self._passage_prefix = "" if self._known is None else self._known.passage_prefix
        self._lock = threading.RLock()
        self._digest = ""
        self._dims = 0

    @property
    def name(self) -> str:
        """For people."""
        return f"{self._model} (Ollama)"

    @property
    def dims(self) -> int:
        """Length of the vectors, learnt by embedding one sentence.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        self._identify()
        return self._dims

    @property
    def fingerprint(self) -> str:
        """Model, digest, prefix of passages, dims: the same after a restart, another after a pull of a changed model.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        self._identify()
        # Vectors of passages that had another prefix are of another model. Those of questions are not kept.
        digest = sha256(f"{self._digest}{self._passage_prefix}".encode()).hexdigest()
        digest = digest if self._passage_prefix else self._digest
        slug = re.sub(r"[^a-z0-9]+", "-", self._model.lower().rsplit("/", 1)[-1]).strip("-")[:18].strip("-")
        return f"{slug or 'model'}-{digest[:8]}-{self._dims}"

    @staticmethod
    def probe(url: str, model: str, timeout_s: float = 2.0) -> str | None:
        """The model's digest, or None when nothing answers within `timeout_s` or the model is not there."""
        try:
            return find(url, model, timeout_s)
        except ModelUnavailable:
            return None

    def close(self) -> None:
        """Release connections."""
        self._server.close()

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """Unit vectors, one per text, in order; BadInput with the reason for a text the model cannot take.

        Raises:
            ModelUnavailable: the server is down, lacks the model, holds another one by now, or fails for any text.
        """
        return self._embed(texts, self._passage_prefix)

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder."""
        return self._embed([text], self._query_prefix)[0]

    def legible(self, text: str) -> float:
        """See Embedder; a server does not say what its models read, so an unknown one is taken to read everything."""
        if self._known is None or self._known.is_multilingual:
            return 1.0
        return legible_share(text, ("LATIN",))

    def known_words(self, text: str) -> float:
        """See Embedder; a server does not say how its models cut words, so they are taken to know them all."""
        del text
        return 1.0

    def _embed(self, texts: Sequence[str], prefix: str) -> list[Vector | BadInput]:
        with self._lock:
            self._identify()
            vectors: dict[str, Vector | BadInput] = {}
            waiting = sorted({text for text in texts if text.strip()}, key=len)
            if waiting:
                self._same_model()
            for start in range(0, len(waiting), self._batch):
                batch = waiting[start : start + self._batch]
                vectors.update(zip(batch, self._bisected(batch, prefix), strict=True))
            blank = BadInput("the text is blank: nothing to embed")
            return [vectors.get(text, blank) for text in texts]

    def _identify(self) -> None:
        with self._lock:
            if not self._dims:
                digest = self._server.digest(self._model)
                self._dims = len(self._canary())
                self._digest = digest

    def _same_model(self) -> None:
        """Vectors of two models never mix: a model pulled anew under the same name stops us (C11)."""
        digest = self._server.digest(self._model)
        if digest != self._digest:
            raise ModelUnavailable(
                f"{self._url}: {self._model} was replaced while in use; restart reconstitute to use the new one"
            )

    def _canary(self) -> Vector:
        """A plain sentence; when even that fails, it is not the texts' fault."""
        try:
            return self._request([_CANARY], self._passage_prefix)[0]
        except _BadAnswer as error:
            raise ModelUnavailable(
                f"{self._url}: {self._model} cannot embed a plain sentence: {error}; "
                f"is it an embedding model? see Ollama's log, or ollama pull {self._model}"
            ) from None

    def _bisected(self, texts: list[str], prefix: str) -> list[Vector | BadInput]:
        try:
            return list(self._request(texts, prefix))
        except _BadAnswer as error:
            if len(texts) > 1:
                half = len(texts) // 2
                return self._bisected(texts[:half], prefix) + self._bisected(texts[half:], prefix)
            return [self._single(texts[0], prefix, error)]

    def _single(self, text: str, prefix: str, error: _BadAnswer) -> Vector | BadInput:
        """The last ways for a text that failed alone: halves when it is too long, a trivial variant otherwise."""
        if isinstance(error, _TooLong):
            return self._averaged(text, prefix, _HALVINGS)
        try:
            return self._request([f"{' '.join(text.split())} ."], prefix)[0]
        except _BadAnswer as again:
            self._canary()
            return BadInput(f"{self._model} has no vector for this text of {len(text)} characters: {again}")

    def _averaged(self, text: str, prefix: str, halvings: int) -> Vector | BadInput:
        """Mean of the halves' vectors by length, halved again where a half is still too long."""
        if halvings == 0 or len(text) < 2:
            return BadInput(
                f"{self._model}: the text is still too long after {_HALVINGS} halvings; make chunks smaller"
            )
        cut = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
        total = np.zeros(self._dims, dtype=np.float32)
        for half in (text[:cut], text[cut:]):
            if not half.strip():
                continue
            try:
                vector: Vector | BadInput = self._request([half], prefix)[0]
            except _TooLong:
                vector = self._averaged(half, prefix, halvings - 1)
            except _BadAnswer as error:
                vector = self._single(half, prefix, error)
            if isinstance(vector, BadInput):
                return vector
            total += vector * len(half)
        norm = float(np.linalg.norm(total))
        return total / norm if norm > 0 else BadInput(f"{self._model}: the halves' vectors cancel out")

    def _request(self, texts: list[str], prefix: str) -> list[Vector]:
        """One call. Raises _BadAnswer for these texts, ModelUnavailable for the server."""
        safe = [f"{prefix}{text}".encode("utf-8", "replace").decode() for text in texts]
        try:
            vectors = self._server.embed(self._model, safe, num_ctx=self._num_ctx, keep_alive=KEEP_ALIVE)
        except Refused as error:
            raise self._verdict(error) from None
        return self._checked(vectors, len(texts))

    def _verdict(self, error: Refused) -> Exception:
        reason = error.reason[:300]
        if error.status == 400 and _TOO_LONG.search(reason):
            return _TooLong(reason)
        if error.status == 200:  # null, {} or no JSON where vectors should be
            return _BadAnswer(f"the answer holds no vectors: {reason}")
        if error.status in {400, 500}:
            return _BadAnswer(f"HTTP {error.status}: {reason}")
        return ModelUnavailable(f"{self._url}: {error}; is this an Ollama server?")

    def _checked(self, answer: Any, count: int) -> list[Vector]:
        if len(answer) != count:
            raise _BadAnswer(f"{len(answer)} vectors for {count} texts")
        vectors = []
        for raw in answer:
            vector = np.asarray(raw, dtype=np.float32)
            norm = float(np.linalg.norm(vector)) if vector.size else 0.0
            if vector.ndim != 1 or not np.isfinite(norm) or norm <= 0:
                raise _BadAnswer("a vector is empty, zero or not finite")
            if self._dims and len(vector) != self._dims:
                raise _BadAnswer(f"a vector of {len(vector)} dimensions where {self._dims} were expected")
            vectors.append(vector / norm)
        return vectors


def find(url: str, model: str, timeout_s: float) -> str:
    """The digest of `model` on the server at `url`.

    Raises:
        ModelUnavailable: naming the address, the cause and the fix.
    """
    server = OllamaServer(url, timeout_s, setting="embedding.url")
    try:
        return server.digest(model)
    finally:
        server.close()
