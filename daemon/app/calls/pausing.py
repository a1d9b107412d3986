"""The call `pause`: the user stops the work that takes the machine's power, for a while or until it is resumed.

New messages are still archived, so that none is lost, and what was forgotten is still erased. A pause is kept in the
archive, so it holds over restarts. What a client asks for directly is done in a pause, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated

import msgspec

from daemon import log
from daemon.archive import Archive
from daemon.control import answers, calls
from daemon.errors import BadRequest
from daemon.moments import parse_span, parse_time
from daemon.records import dumps

_NOTE = "pause"
_FOREVER_S = 86_400.0
_LOG = log.get("pause")
_Moment = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62))]


class _Stored(msgspec.Struct):
    since: _Moment
    until: _Moment | None


_STORED = msgspec.json.Decoder(_Stored)


class Pausing:
    """The pause of one archive. Thread-safe; each loop asks it before each turn, so it reads the archive once."""

    def __init__(self, archive: Archive, clock: Callable[[], float] = time.time) -> None:
        self._archive = archive
        self._clock = clock
        self._lock = threading.Lock()
        self._pause = _stored(archive)

    def state(self) -> answers.Pause | None:
        """The pause; None if there is none, or if its end has come."""
        with self._lock:
            if self._pause is None or not self._left_s():
                return None
            return answers.Pause(*self._pause)

    def left_s(self) -> float:
        """Seconds until the work goes on, at most a day; 0.0 if there is no pause."""
        with self._lock:
            return self._left_s()

    def begin(self, until: int | None) -> None:
        """Pause until then, in epoch ms, or until `end`; a pause that is on gets the new end."""
        with self._lock:
            now = int(self._clock() * 1000)
            since = self._pause[0] if self._pause is not None and self._left_s() else now
            self._store((since, until))

    def end(self) -> None:
        """End the pause."""
        with self._lock:
            if self._pause is not None:
                self._store(None)

    def _store(self, pause: tuple[int, int | None] | None) -> None:
        text = "" if pause is None else dumps({"since": pause[0], "until": pause[1]}).decode()
        self._archive.set_note(_NOTE, text)
        self._pause = pause  # assigned last, because writing may fail

    def _left_s(self) -> float:
        if self._pause is None:
            return 0.0
        _, until = self._pause
        return _FOREVER_S if until is None else min(_FOREVER_S, max(0.0, until / 1000 - self._clock()))


def _stored(archive: Archive) -> tuple[int, int | None] | None:
    """The pause that is stored. A damaged note counts as none, because the archive must open all the same."""
    try:
        text = archive.note(_NOTE)
        if not text:
            return None
        stored = _STORED.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        _LOG.warning("damaged", note=_NOTE, means="the work is not paused", error=type(error).__name__)
        return None
    return stored.since, stored.until


class PauseCalls:
    """A part of the engine: it has the pause."""

    pausing: Pausing
    on_resumed: Callable[[], None] = staticmethod(lambda: None)
    """Called when the user has ended a pause."""

    def pause(self, request: calls.Pause) -> answers.Pause:
        """See calls.Pause.

        Raises:
            BadRequest: `until` is no time to come.
        """
        if request.resume:
            if request.until.strip():
                raise BadRequest("`resume` and `until` exclude each other; give one of them")
            self.pausing.end()
            self.on_resumed()
        else:
            self.pausing.begin(end_of_pause(request.until, int(time.time() * 1000)))
        return self.pausing.state() or answers.Pause()


def end_of_pause(text: str, now: int) -> int | None:
    """When a pause ends, in epoch ms: a date, a time, or a while from `now` on such as ``2h``; None for an empty text.

    Raises:
        BadRequest: it is none of these, or not in the future.
    """
    if not text.strip():
        return None
    try:
        span = parse_span(text, "until")
    except BadRequest:
        until = parse_time(text, now, "until", is_end=True)
    else:
        until = None if span is None else now + span
    if until is None or until <= now:
        raise BadRequest(f"`until` {text!r}: is not in the future; write 2h, 2026-11-22 or 2026-11-22T18:00")
    return until
