"""The caller's side of the control socket: the Service protocol, answered by the running daemon.

Guarantees: it names the archive, sources and settings that it means, and a service with others does not answer
(control.identity); an error of the daemon's is raised here as the same type; whoever does not answer raises
DaemonUnreachable; no proxy of the environment is asked. A stream in which nothing is said for SILENCE_SECONDS counts as
dead. What the caller's own Take or Progress raises comes out as it is.

It speaks with the standard library alone: a command against a running daemon is to be over within a quarter of a
second, its interpreter's start included, and loading httpx was more than half of that.
"""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from daemon.control import endpoint, identity
from daemon.control.calls import FileContent, Progress, Take, TakeText, silent
from daemon.errors import DaemonUnreachable, ReconstituteError
from daemon.model import Json

if TYPE_CHECKING:
    from daemon.config import Config

CONNECT_SECONDS = 5.0
STATUS_SECONDS = 15.0
SEARCH_SECONDS = 180.0
"""A search may wait for a model server to load its embedding model."""
SILENCE_SECONDS = 30.0
"""The daemon says at least every five seconds that a long call is alive."""
_OK = 200


class Client:
    """Implements control.calls.Service over the socket at `socket_path`; each call is a connection of its own.

    The socket that the archive of `config` names is tried before it.
    """

    def __init__(self, socket_path: Path, config: Config | None = None) -> None:
        """`config` is what the caller means to be answered from; None is whatever the service there has.

        With it, each call may raise ServesAnother (the service keeps another archive) or ConfigError (it has this
        archive, and settings that the answer depends on are others).
        """
        self._path = socket_path
        self._config = config

    def status(self) -> Json:
        """As Service.status.

        Raises:
            DaemonUnreachable: nothing answers at the socket.
        """
        return self._ask("GET", "/status", STATUS_SECONDS)

    def recall(self, call: str, arguments: Json, *, here: str = "") -> Json:
        """As Service.recall.

        Raises:
            BadRequest: as Service.recall.
            DaemonUnreachable: nothing answers at the socket.
        """
        where = f"/recall/{quote(call, safe='', errors='replace')}"
        return self._ask("POST", where, SEARCH_SECONDS, {"arguments": arguments, "here": here})

    def export(self, arguments: Json, *, take: TakeText, progress: Progress = silent) -> Json:
        """As Service.export; what `take` raises hangs up, and the daemon stops sending."""
        return self._follow("/export", {"arguments": arguments}, progress, "text", take)

    def index(self, progress: Progress) -> Json:
        """As Service.index.

        Raises:
            DaemonUnreachable: nothing answers at the socket, or no longer.
        """
        return self._follow("/index", {}, progress)

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> Json:
        """As Service.reconstitute.

        Raises:
            DaemonUnreachable: nothing answers at the socket, or no longer.
        """
        body = {"path": path, "questions": questions, "at": at, "output": output}
        # An output directory that is named does not depend on the configuration's.
        return self._follow("/reconstitute", body, progress, without=("output",) if output else ())

    def estimate(
        self, path: str, *, questions: list[str] | None = None, at: str = "", progress: Progress = silent
    ) -> Json:
        """As Service.estimate."""
        return self._follow("/estimate", {"path": path, "questions": questions, "at": at}, progress)

    def files(self, path: str = "/", *, at: str = "", lost: bool = False, progress: Progress = silent) -> Json:
        """As Service.files."""
        return self._follow("/files", {"path": path, "at": at, "lost": lost}, progress)

    def history(self, path: str, *, diff: bool = False, lines: bool = False, progress: Progress = silent) -> Json:
        """As Service.history."""
        return self._follow("/history", {"path": path, "diff": diff, "lines": lines}, progress)

    def content(self, path: str, *, at: str = "", raw: bool = False, progress: Progress = silent) -> Json:
        """As Service.content."""
        return self._follow("/content", {"path": path, "at": at, "raw": raw}, progress)

    def restore(
        self,
        path: str,
        *,
        at: str = "",
        deleted: bool = False,
        grade: str = "proven",
        take: Take,
        progress: Progress = silent,
    ) -> Json:
        """As Service.restore; what `take` raises hangs up, and the daemon stops sending."""
        body = {"path": path, "at": at, "deleted": deleted, "grade": grade}
        return self._follow("/restore", body, progress, "content", lambda sent: take(_content(sent)))

    def trajectories(self, path: str = "", *, started: int = 0) -> Json:
        """As Service.trajectories."""
        return self._ask("POST", "/trajectories", STATUS_SECONDS, {"path": path, "started": started})

    def alias(self, old: str = "", new: str = "", *, remove: bool = False) -> Json:
        """As Service.alias."""
        return self._ask("POST", "/alias", STATUS_SECONDS, {"old": old, "new": new, "remove": remove})

    def _ask(self, method: str, path: str, seconds: float, body: Json | None = None) -> Json:
        with self._calling(method, path, seconds, body) as response:
            return self._read(self._all(response))

    def _follow(
        self,
        path: str,
        body: Json,
        progress: Progress,
        key: str = "",
        take: Callable[[Any], None] | None = None,
        *,
        without: tuple[str, ...] = (),
    ) -> Json:
        """The result of a stream; what stands in it under `key` goes to `take`."""
        with self._calling("POST", path, SILENCE_SECONDS, body, without=without) as response:
            while line := self._line(response):
                if not line.strip():
                    continue
                event = self._read(line)
                if "error" in event:
                    raise _error(event)
                if "result" in event:
                    result: Json = event["result"]
                    return result
                if take is not None and key in event:
                    take(event[key])
                else:
                    progress(event)
        raise DaemonUnreachable(f"{self._path}: the daemon ended before its answer; see its log, then try again")

    @contextmanager
    def _calling(
        self, method: str, path: str, seconds: float, body: Json | None, *, without: tuple[str, ...] = ()
    ) -> Iterator[HTTPResponse]:
        """The response to one call, when it is a good one."""
        connection = _Connection(self._path, seconds, self._config)
        headers = {}
        if self._config is not None:
            named = identity.meaning(self._config, path[1:], without=without)
            headers[identity.HEADER] = identity.header(named)
        # Escapes carry what UTF-8 cannot: a lone surrogate from a file name.
        content = None if body is None else json.dumps(body, ensure_ascii=True).encode()
        try:
            with self._failures_named():
                with suppress(BrokenPipeError, ConnectionResetError):
                    # A daemon that refuses answers before it has read all; if it is gone, reading says so.
                    connection.request(method, path, body=content, headers=headers)
                response = connection.getresponse()
            with response:
                if response.status != _OK:
                    raise _error(self._read(self._all(response)))
                yield response
        finally:
            connection.close()

    def _all(self, response: HTTPResponse) -> bytes:
        with self._failures_named():
            return response.read()

    def _line(self, response: HTTPResponse) -> bytes:
        """The next line; empty when there are no more."""
        with self._failures_named():
            return response.readline()

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Around what reads and writes at the socket, and nothing of the caller's."""
        try:
            yield
        except TimeoutError as error:
            fix = "see its log, or restart it"
            raise DaemonUnreachable(f"{self._path}: the daemon does not answer in time; {fix}") from error
        except (OSError, HTTPException) as error:
            fix = "see its log, then try again"
            raise DaemonUnreachable(f"{self._path}: the daemon broke off ({type(error).__name__}); {fix}") from error

    def _read(self, text: str | bytes) -> Json:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            fix = "restart the daemon, it may be of another version"
            raise DaemonUnreachable(f"{self._path}: what answers there is not understood; {fix}")
        return value


class _Connection(HTTPConnection):
    """HTTP/1.1 over a Unix socket; `seconds` bounds each wait for bytes."""

    def __init__(self, path: Path, seconds: float, config: Config | None) -> None:
        super().__init__("reconstitute")
        recorded = None if config is None else endpoint.recorded(config.archive_dir)
        self._paths = (path,) if recorded in (None, path) else (recorded, path)
        self._seconds = seconds

    def connect(self) -> None:
        """Be heard by whoever listens.

        Raises:
            DaemonUnreachable: nobody does.
        """
        reason: OSError | None = None
        for path in self._paths:
            caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                caller.settimeout(CONNECT_SECONDS)
                caller.connect(os.fspath(path))
                caller.settimeout(self._seconds)
            except OSError as error:
                caller.close()
                reason = error
            else:
                self.sock = caller
                return
        fix = "start one with: reconstitute service install"
        raise DaemonUnreachable(f"{self._paths[-1]}: no daemon answers there; {fix}") from reason


def _content(sent: Json) -> FileContent:
    """One file of a stream; what a newer daemon adds is passed over."""
    known = {field.name: sent[field.name] for field in fields(FileContent) if field.name in sent}
    return FileContent(**known | {"data": base64.b64decode(sent["data"])})


def _error(answer: Json) -> ReconstituteError:
    """The daemon's error as one of ours; one of a newer daemon's keeps its message and exit code."""
    described = answer.get("error")
    described = described if isinstance(described, dict) else {}
    message = str(described.get("message") or "the daemon answered with an error it did not describe; see its log")
    wanted, kinds = described.get("type"), [ReconstituteError]
    for kind in kinds:
        if kind.__name__ == wanted:
            return kind(message)
        kinds.extend(kind.__subclasses__())
    error = ReconstituteError(message)
    code = described.get("exit_code")
    error.exit_code = code if isinstance(code, int) and 0 < code < 126 else ReconstituteError.exit_code
    return error
