"""The OpenCode sessions of the adapter: made when needed, kept for a conversation's next turn, deleted in the end.

A kept session is found by the digest of the conversation that it holds, and only where all of that is a beginning of
what a client now sends, and only messages of the user and of tools are new: then they are all that has to be said, and
the turn costs one model call. Nobody else gets a session while it is in use. Those that wait too long are deleted by a
thread, the rest by `close`; what cannot be deleted then is deleted by the server object when it can.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daemon.chat.opencode.server import OpenCodeServer
from daemon.errors import Retry

_MOST_KEPT = 64
_LABEL = "adapter"


@dataclass(slots=True)
class Lease:
    """A session in use; `known` turns of the conversation have been said in it."""

    session_id: str
    model: str
    known: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    lease: Lease
    until: float


class Sessions:
    """All sessions of one adapter. Safe to use from several threads."""

    def __init__(self, server: OpenCodeServer, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`idle_s`: how long a session waits for the next turn; 0: none does."""
        self._server = server
        self._idle_s = idle_s
        self._clock = clock
        self._kept: dict[str, _Kept] = {}  # digest of what it holds -> session, oldest first
        self._leased: dict[str, Lease] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def take(self, model: str, chain: Sequence[str], reusable: Sequence[bool]) -> Lease:
        """A session for the conversation whose digests are `chain`, the one that holds most of it, else a new one.

        `reusable[n]`: whether the turns after the first n may be said to a session that knows those.

        Raises:
            ModelUnavailable: the server does not answer.
            Retry: the adapter is stopping.
        """
        with self._changed:
            for known in range(len(chain) - 2, 0, -1):
                kept = self._kept.pop(chain[known], None) if reusable[known] else None
                if kept is not None:
                    kept.lease.known = known
                    self._leased[kept.lease.session_id] = kept.lease
                    return kept.lease
        return self.new(model)

    def new(self, model: str) -> Lease:
        """A session that holds nothing. Raises as `take` does."""
        lease = Lease(self._server.create(_LABEL), model)
        with self._changed:
            if not self._is_closed:
                self._leased[lease.session_id] = lease
                return lease
        self._server.delete(lease.session_id)
        raise Retry("the adapter is stopping; ask again when it runs")

    def keep(self, lease: Lease, digest: str) -> None:
        """Keep the session for the turn after the conversation with this digest."""
        doomed = list[Lease]()
        with self._changed:
            self._leased.pop(lease.session_id, None)
            if self._is_closed or not self._idle_s:
                doomed.append(lease)
            else:
                doomed += [kept.lease for kept in (self._kept.pop(digest, None),) if kept]
                self._kept[digest] = _Kept(lease, self._clock() + self._idle_s)
                while len(self._kept) > _MOST_KEPT:
                    doomed.append(self._kept.pop(next(iter(self._kept))).lease)
                self._start()
                self._changed.notify()
        for one in doomed:
            self._server.delete(one.session_id)

    def drop(self, lease: Lease) -> None:
        """Delete the session: its turn failed, or nothing will follow."""
        self._server.delete(lease.session_id)
        with self._changed:
            self._leased.pop(lease.session_id, None)

    def counts(self) -> tuple[int, int]:
        """How many are (in use, waiting for a next turn)."""
        with self._changed:
            return len(self._leased), len(self._kept)

    def waiting(self) -> list[tuple[str, float]]:
        """(model, seconds until it is deleted) of every session that waits."""
        with self._changed:
            now = self._clock()
            return [(kept.lease.model, max(0.0, kept.until - now)) for kept in self._kept.values()]

    def release(self, model: str) -> None:
        """Delete the sessions of this model that wait."""
        self._delete(lambda kept: kept.lease.model == model)

    def expire(self) -> float:
        """Delete what has waited too long; how many seconds until the next one will have."""
        now = self._clock()
        self._delete(lambda kept: kept.until <= now)
        with self._changed:
            return min((kept.until - now for kept in self._kept.values()), default=self._idle_s)

    def _delete(self, is_over: Callable[[_Kept], bool]) -> None:
        with self._changed:
            over = [digest for digest, kept in self._kept.items() if is_over(kept)]
            doomed = [self._kept.pop(digest).lease for digest in over]
        for lease in doomed:
            self._server.delete(lease.session_id)

    def close(self) -> int:
        """Delete every session, those in use too; how many could not be deleted. No more are made."""
        with self._changed:
            self._is_closed = True
            doomed = [*self._leased.values(), *(kept.lease for kept in self._kept.values())]
            self._kept.clear()
            self._leased.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for number, lease in enumerate(doomed):
            if not self._server.delete(lease.session_id):
                return len(doomed) - number  # the others would take as long to fail
        return 0

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="adapter-sessions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            rest = self.expire()
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(min(max(rest, 0.05), 60.0))
