"""Who may see the page: a link that works once becomes a session, and a session has a token for its forms.

Everything is in this process's memory: a restart of the service ends all sessions. Keys are kept as their hashes, and
compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

LINK_SECONDS = 60
SESSION_SECONDS = 12 * 3600
_KEY_BYTES = 32
_MOST = 64
"""Links, and sessions, that are kept; beyond that the oldest is dropped."""


class Entrance:
    """The keys of one page. Thread-safe: links are made by control calls, sessions by requests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._secret = secrets.token_bytes(_KEY_BYTES)
        self._links = _Keys(LINK_SECONDS, clock)
        self._sessions = _Keys(SESSION_SECONDS, clock)

    def new_link(self) -> str:
        """A key that `enter` takes once, within LINK_SECONDS."""
        with self._lock:
            return self._links.new()

    def enter(self, key: str) -> str | None:
        """A new session for a link's key; None if the key is wrong, too old or used."""
        with self._lock:
            return self._sessions.new() if self._links.take(key) else None

    def is_open(self, session: str) -> bool:
        """Whether this is a session that has not expired."""
        with self._lock:
            return self._sessions.has(session)

    def form_token(self, session: str) -> str:
        """What a form of this session has to send along."""
        return hmac.new(self._secret, session.encode(errors="replace"), hashlib.sha256).hexdigest()

    def is_form_token(self, session: str, token: str) -> bool:
        """Whether a form that came with `token` is one of this session's."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode(errors="replace"))


class _Keys:
    """Random keys that expire, by their hashes."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._ends = dict[bytes, float]()

    def new(self) -> str:
        self._expire()
        while len(self._ends) >= _MOST:
            del self._ends[next(iter(self._ends))]
        key = secrets.token_urlsafe(_KEY_BYTES)
        self._ends[_hash(key)] = self._clock() + self._seconds
        return key

    def has(self, key: str) -> bool:
        return self._place(key) is not None

    def take(self, key: str) -> bool:
        place = self._place(key)
        if place is not None:
            del self._ends[place]
        return place is not None

    def _place(self, key: str) -> bytes | None:
        self._expire()
        wanted, place = _hash(key), None
        for kept in self._ends:  # all of them, whichever it is
            if hmac.compare_digest(kept, wanted):
                place = kept
        return place

    def _expire(self) -> None:
        now = self._clock()
        self._ends = {key: end for key, end in self._ends.items() if end > now}


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
