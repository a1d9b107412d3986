"""The models on offer: those of the OpenCode server, the user's choice or the server's default first."""

from __future__ import annotations

import threading
import time

from daemon.chat.opencode.server import OpenCodeServer, ServedModel
from daemon.errors import Skip

_FRESH_S = 30.0


class UnknownModel(Skip):
    """The server does not have the model."""


class Catalog:
    """Asks the server at most every half minute, and at once for a name that it did not have. Safe for threads."""

    def __init__(self, server: OpenCodeServer, first: str = "") -> None:
        """`first`: the name of the model that is listed first, the user's choice; else it is the server's default."""
        self._server, self._first = server, first
        self._lock = threading.Lock()
        self._models: dict[str, ServedModel] = {}
        self._fetched = 0.0

    def all(self) -> list[ServedModel]:
        """Every model, the one that is meant by default first.

        Raises:
            ModelUnavailable: the server does not answer.
        """
        return list(self._models_by_id(_FRESH_S).values())

    def find(self, name: str) -> ServedModel:
        """The model of this name; Ollama's clients may write ``:latest`` after it.

        Raises:
            UnknownModel: there is none; in Ollama's words, which clients look for.
            ModelUnavailable: the server does not answer.
        """
        for fresh_s in (_FRESH_S, 0.0):
            models = self._models_by_id(fresh_s)
            model = models.get(name) or models.get(name.removesuffix(":latest"))
            if model is not None:
                return model
        raise UnknownModel(f"model '{name}' not found")

    def _models_by_id(self, fresh_s: float) -> dict[str, ServedModel]:
        with self._lock:
            if not self._models or time.monotonic() - self._fetched > fresh_s:
                models = sorted(self._server.models(), key=lambda m: (m.id != self._first, not m.is_default))
                self._models = {model.id: model for model in models}
                self._fetched = time.monotonic()
            return self._models
