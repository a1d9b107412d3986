"""The models that are offered: those of the OpenCode server, by the names it has for them."""

from __future__ import annotations

import threading
import time

from daemon.chat.opencode.server import OpenCodeServer, ServedModel
from daemon.errors import ReconstituteError

_FRESH_S = 30.0


class UnknownModel(ReconstituteError):  # noqa: N818 - what it says
    """The server does not have the model."""


class Catalog:
    """Asks the server at most every half minute, and at once for a name that it did not have. Safe for threads."""

    def __init__(self, server: OpenCodeServer, first: str = "") -> None:
        """`first`: the name of the model that is listed first, the user's choice; else it is the server's default."""
        self._server, self._first = server, first
        self._lock = threading.Lock()
        self._models: dict[str, ServedModel] = {}
        self._asked = 0.0

    def all(self) -> list[ServedModel]:
        """Every model, the one that is meant by default first.

        Raises:
            ModelUnavailable: the server does not answer.
        """
        return list(self._known(_FRESH_S).values())

    def find(self, name: str) -> ServedModel:
        """The model of this name; Ollama's clients may write ``:latest`` after it.

        Raises:
            UnknownModel: there is none; in Ollama's words, which clients look for.
            ModelUnavailable: the server does not answer.
        """
        for fresh_s in (_FRESH_S, 0.0):
            known = self._known(fresh_s)
            found = known.get(name) or known.get(name.removesuffix(":latest"))
            if found is not None:
                return found
        raise UnknownModel(f"model '{name}' not found")

    def _known(self, fresh_s: float) -> dict[str, ServedModel]:
        with self._lock:
            if not self._models or time.monotonic() - self._asked > fresh_s:
                found = sorted(self._server.models(), key=lambda m: (m.id != self._first, not m.is_default))
                self._models = {model.id: model for model in found}
                self._asked = time.monotonic()
            return self._models
