"""Request files: a file dropped into a directory requests a reconstitution, and its result is written beside it.

A file is claimed by renaming it into ``running/``. It ends in ``done/``, or in ``failed/`` if any part of it failed,
with ``<name>.result.json``. The number of attempts is in the running file's name, so it survives a crash
(docs/reliability.md, J2). A call that the disk fails may have moved the file or not, so the next claim looks. Anything
but a small regular file of this user is moved to ``failed/`` unopened. Only the process that holds the archive may use
the directory, in one thread. The caller watches it, and calls `claim` when something may have changed.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon.errors import BadRequest, OutputRefused, described
from daemon.filesystem import is_git
from daemon.filesystem.durable import Root, Step, make_private_dir, no_step
from daemon.model import Json
from daemon.redact import redact, redact_value
from daemon.requests.parse import Request, parse, printable

__all__ = ["Claimed", "Request", "Requests", "parse"]

MOST_BYTES = 64 * 1024
MOST_ATTEMPTS = 3
_UNFINISHED = ("~", ".tmp", ".part", ".swp", ".swx", ".crdownload")
_RESULT = ".result.json"
_LONGEST_NAME = 200
_STUCK_S = 60.0
"""When a file that could not be moved is tried again."""

_EMPTY_S = 600.0
"""A file that is still empty after so long is refused; until then its author may be about to write."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request file in ``running/``; `name` is its later name in ``done/`` or ``failed/``."""

    name: str
    attempt: int
    requests: tuple[Request, ...]


class Requests:
    """The directory of request files."""

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.time,
        *,
        quiet_seconds: float = 0.3,
        home: Path | None = None,
        step: Step = no_step,
    ) -> None:
        """Make the directory and its three folders; files that a crash left in ``running/`` are queued again.

        `clock` gives seconds since the epoch. A file is claimed once it has not changed for `quiet_seconds`.

        Raises:
            OutputRefused: the directory cannot be made or is not ours.
        """
        self._root = Root(directory, step=step)
        for folder in ("running", "done", "failed"):
            make_private_dir(directory / folder)
        self._clock = clock
        self._quiet = quiet_seconds
        self._home = home or Path.home()
        self._step = step
        self.on_refused: Callable[[str, Exception], None] = lambda _name, _error: None
        """Called with the name of a file that is moved to ``failed/`` without having been tried, and the reason."""
        self._unfinished = self._root.list("running")
        self._is_unsure = False
        """Whether files in ``running/`` may be in no queue."""
        for name in (f"{folder}/{name}" for folder in ("done", "failed") for name in self._root.list(folder)):
            if name.endswith(".tmp") and "/." in name:  # an unfinished result, from a crash
                self._root.remove(name)
        self._queue: list[str] = []
        self._released: list[str] = []
        self._observations: dict[str, tuple[tuple[int, int, int], float]] = {}
        self._stuck: dict[str, float] = {}
        """When to try files again that could not be moved."""

    def close(self) -> None:
        """Release the directory."""
        self._root.close()

    def pending(self) -> bool:
        """Whether a request waits, or a file that may become one: then call `claim`, now or shortly."""
        return bool(self._is_unsure or self._unfinished or self._released or self._candidates())

    def claim(self) -> Claimed | None:
        """Claim a request that is ready; None if there is none. Unusable files are moved to ``failed/``.

        Requests that a crash or the disk interrupted come first, then new files, the oldest first, then released
        requests. Call it only when the request before has been finished, failed, released or dropped.

        Raises:
            OSError: the disk fails; nothing is lost.
        """
        with self._looking_again():
            if self._is_unsure:
                running = self._root.list("running")
                self._unfinished = [name for name in running if not self._is_stuck(f"running/{name}")]
                self._released = []
                self._is_unsure = len(self._unfinished) < len(running)
            return self._next()

    def drop(self, _claimed: Claimed) -> None:
        """Let the claimed request go because the disk failed: it is claimed again, and this attempt counts."""
        self._is_unsure = True

    def _next(self) -> Claimed | None:
        claimed = self._reclaim_from(self._unfinished)
        if claimed:
            return claimed
        # The directory is read once for all the files in it, not once for each.
        self._queue = self._queue or [name for name, _ in self._candidates()]
        while self._queue:
            name = self._queue.pop(0)
            info = self._root.stat(name)
            if info and self._is_acceptable(name, info) and self._is_quiet(name, info):
                claimed = self._claim(name)
                if claimed:
                    return claimed
        return self._reclaim_from(self._released)

    def finish(self, claimed: Claimed, result: Json) -> None:
        """Put the result (redacted) beside the request in ``done/``.

        Raises:
            OSError: the disk is full or fails; the request is still in ``running/``.
        """
        body = {"status": "done", "request": claimed.name, "attempt": claimed.attempt, "result": redact_value(result)}
        self._end("done", claimed.attempt, claimed.name, body)

    def fail(self, claimed: Claimed, error: Exception, result: Json | None = None) -> None:
        """Put the reason, and the result if a part was done, (redacted) beside the request in ``failed/``.

        Raises as `finish`.
        """
        body = _failure(claimed.name, claimed.attempt, error)
        if result is not None:
            body |= {"status": "partly failed", "result": redact_value(result)}
        self._end("failed", claimed.attempt, claimed.name, body)

    def release(self, claimed: Claimed) -> None:
        """Queue a request again that could not run now (shutdown, no model); this attempt does not count."""
        running, name = f"{claimed.attempt}.{claimed.name}", f"{claimed.attempt - 1}.{claimed.name}"
        with self._looking_again():
            self._move(f"running/{running}", f"running/{name}")
        self._released.append(name)

    @contextmanager
    def _looking_again(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._is_unsure = True
            raise

    def _candidates(self) -> list[tuple[str, os.stat_result]]:
        """Files in the directory that may be requests, oldest first; forgets observations of files that are gone."""
        candidates = []
        for name in self._root.list():
            if name in {"running", "done", "failed"} or name.startswith(".") or name.lower().endswith(_UNFINISHED):
                continue
            entry = self._root.stat(name)
            if entry is not None and not self._is_stuck(name):
                candidates.append((name, entry))
        names = {name for name, _ in candidates}
        self._observations = {name: observation for name, observation in self._observations.items() if name in names}
        return sorted(candidates, key=lambda item: (item[1].st_mtime_ns, item[0]))

    def _is_acceptable(self, name: str, info: os.stat_result) -> bool:
        """Whether this can be a request file; any other file is moved to ``failed/`` without being opened."""
        if not stat.S_ISREG(info.st_mode):
            reason = "is not a regular file; drop a text file"
        elif info.st_uid != os.geteuid():
            reason = f"belongs to user id {info.st_uid}; drop a file of your own"
        elif info.st_size > MOST_BYTES:
            reason = f"is larger than {MOST_BYTES // 1024} KiB; a request is a short text"
        else:
            return True
        self._set_aside(name, BadRequest(f"{_printable_name(name)}: {reason}"))
        return False

    def _is_quiet(self, name: str, info: os.stat_result) -> bool:
        now, mark = self._clock(), (info.st_size, info.st_mtime_ns, info.st_ino)
        quiet = self._quiet if info.st_size else max(self._quiet, _EMPTY_S)
        if now - info.st_mtime >= quiet:
            return True
        # The file's time may be in the future, or the clock set back. Then it counts how long we saw it unchanged.
        last_mark, since = self._observations.get(name, (None, now))
        if last_mark != mark or now < since:
            since = now
        self._observations[name] = (mark, since)
        return now - since >= quiet

    def _claim(self, name: str) -> Claimed | None:
        new_name = self._free_name(name)
        try:
            self._move(name, f"running/1.{new_name}")
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up(name, error)
            return None
        self._step("requests.claimed")
        return self._read(1, new_name)

    def _reclaim_from(self, running: list[str]) -> Claimed | None:
        while running:
            name = running.pop(0)
            try:
                claimed = self._reclaim(name)
            except FileNotFoundError:
                continue
            except OSError as error:  # it must not stop the others
                self._give_up(f"running/{name}", error)
                self._is_unsure = True
                continue
            if claimed:
                return claimed
        return None

    def _reclaim(self, running: str) -> Claimed | None:
        number, _, name = running.partition(".")
        if not (name and number.isascii() and number.isdigit()):
            error = BadRequest(f"running/{_printable_name(running)}: not put there by us; drop it one folder above")
            self._refuse(running, self._free_name(running), 0, error)
            return None
        attempts = int(number)
        for folder in ("done", "failed"):
            if self._root.stat(f"{folder}/{name}{_RESULT}"):
                # The crash came between the result and the move.
                self._move(f"running/{running}", f"{folder}/{name}")
                return None
        if attempts >= MOST_ATTEMPTS:
            error = BadRequest(f"{name}: was started {attempts} times and never ended; see the log, then drop it again")
            self._refuse(running, name, attempts, error)
            return None
        self._move(f"running/{running}", f"running/{attempts + 1}.{name}")
        self._step("requests.claimed")
        return self._read(attempts + 1, name)

    def _read(self, attempt: int, name: str) -> Claimed | None:
        try:
            data = self._root.read(f"running/{attempt}.{name}", MOST_BYTES)
            return Claimed(name, attempt, parse(name, data or b"", self._home))
        except (BadRequest, OutputRefused) as error:
            self._refuse(f"{attempt}.{name}", name, attempt, error)
            return None

    def _refuse(self, running: str, name: str, attempt: int, error: Exception) -> None:
        self._finish_in("failed", running, name, _failure(name, attempt, error))
        self.on_refused(name, error)

    def _set_aside(self, name: str, error: BadRequest) -> None:
        new_name = self._free_name(name)
        try:
            self._move(name, f"failed/{new_name}")
        except OSError as failure:
            self._give_up(name, failure)
            return
        try:
            self._root.write(f"failed/{new_name}{_RESULT}", _json(_failure(new_name, 0, error)))
        except OSError as failure:
            text = "the result of request file %s cannot be written (%s)"
            logging.getLogger(__name__).warning(text, new_name, failure.strerror)
        self.on_refused(new_name, error)

    def _move(self, old: str, new: str) -> None:
        """Rename. That only its sync failed is no failure: a crash now would be as one before it."""
        try:
            self._root.rename(old, new)
        except OSError:
            if self._root.stat(old) is not None or self._root.stat(new) is None:
                raise

    def _is_stuck(self, name: str) -> bool:
        return self._clock() < self._stuck.get(name, 0.0)

    def _give_up(self, name: str, error: OSError) -> None:
        if name not in self._stuck:
            text = "request file %s cannot be moved (%s) and is left; it is tried again every minute, or remove it"
            logging.getLogger(__name__).warning(text, _printable_name(name), error.strerror)
        self._stuck[name] = self._clock() + _STUCK_S

    def _end(self, folder: str, attempt: int, name: str, body: Json) -> None:
        with self._looking_again():
            self._finish_in(folder, f"{attempt}.{name}", name, body)

    def _finish_in(self, folder: str, running: str, name: str, body: Json) -> None:
        """Write the result, then move the request; `_reclaim` completes the move after a crash between the two."""
        self._root.write(f"{folder}/{name}{_RESULT}", _json(body))
        self._step("requests.result")
        self._move(f"running/{running}", f"{folder}/{name}")

    def _free_name(self, name: str) -> str:
        """`name` made printable and short, with a number if an earlier request has that name."""
        stem, dot, suffix = _printable_name(name).rpartition(".")
        if not stem or len(suffix) > 16:
            stem, dot, suffix = _printable_name(name), "", ""
        stem = stem.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
        chosen, number = f"{stem}{dot}{suffix}", 1
        while self._is_used(chosen):
            number += 1
            chosen = f"{stem}-{number}{dot}{suffix}"
        return chosen

    def _is_used(self, name: str) -> bool:
        places = [f"running/{attempt}.{name}" for attempt in range(MOST_ATTEMPTS + 1)]
        places += [f"{folder}/{name}{end}" for folder in ("done", "failed") for end in ("", _RESULT)]
        return any(self._root.stat(place) for place in places)


def _failure(name: str, attempt: int, error: Exception) -> Json:
    reason = described(error, redact(str(error)))
    return {"status": "failed", "request": name, "attempt": attempt, "error": reason}


def _printable_name(name: str) -> str:
    """The name of a file in the directory, safe to write and to display."""
    plain = printable(name).replace("\\", "_")
    return f"_{plain}" if is_git(plain) else plain


def _json(body: Json) -> bytes:
    return (json.dumps(body, ensure_ascii=False, indent=2, default=str) + "\n").encode("utf-8", "backslashreplace")
