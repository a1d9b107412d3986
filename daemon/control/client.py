"""The caller's side of the control socket: a Service, answered by the running daemon.

Guarantees: it names the archive, sources and settings that it means, and a service with others does not answer
(control.identity); an error of the daemon's is raised here as the same type; whoever does not answer raises
DaemonUnreachable; no proxy of the environment is asked. A stream in which nothing is said for SILENCE_SECONDS counts as
dead. What the caller's own OnPart or Progress raises comes out as it is, and hangs up.

It speaks with the standard library alone: a command against a running daemon is to be over within a quarter of a
second, its interpreter's start included, and loading httpx was more than half of that.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from daemon.control import endpoint, identity
from daemon.control.answers import from_json, to_json
from daemon.control.calls import CALLS, Call, OnPart, Progress, Request, silent
from daemon.errors import DaemonUnreachable, ReconstituteError
from daemon.model import Json

if TYPE_CHECKING:
    from daemon.config import Config

A = TypeVar("A")
T = TypeVar("T")

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0
"""The daemon says at least every five seconds that a long call is alive."""
_OK = 200
_TIMES = frozenset({"at", "arguments"})
"""Fields in which days and times may stand."""


def _zone() -> str:
    """The time zone of this process, such as ``Europe/Berlin``; "" where it has no name."""
    import tzlocal  # noqa: PLC0415 - late: 18 ms, which only a call with times is worth

    try:
        return str(tzlocal.get_localzone_name() or "")
    except (LookupError, ValueError, OSError):
        return ""


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

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """See Service.

        Raises:
            DaemonUnreachable: nothing answers at the socket, or no longer.
        """
        call = CALLS[type(request)]
        with self._calling(call, request) as response:
            answer = (
                self._read(self._all(response)) if call.seconds else self._follow(response, call, progress, on_part)
            )
        return self._as(answer, call.answer)  # type: ignore[no-any-return]  # the table says which type it is

    def _follow(self, response: HTTPResponse, call: Call, progress: Progress, on_part: OnPart) -> Json:
        """The result of a stream."""
        while line := self._line(response):
            if not line.strip():
                continue
            event = self._read(line)
            if "error" in event:
                raise _error(event)
            if "result" in event:
                result: Json = event["result"]
                return result
            if call.part is not None and call.part_name in event:
                on_part(self._as(event[call.part_name], call.part))
            else:
                progress(event)
        raise DaemonUnreachable(f"{self._path}: the service ended before it had answered; see its log, then try again")

    @contextmanager
    def _calling(self, call: Call, request: Request[Any]) -> Iterator[HTTPResponse]:
        """The response to one call, when it is a good one."""
        connection = _Connection(self._path, call.seconds or SILENCE_SECONDS, self._config)
        body = to_json(request)
        placed = {name: quote(body.pop(name), safe="", errors="replace") for name in call.fields_in_address}
        address = call.address.format(**placed)
        headers = {}
        if not _TIMES.isdisjoint(request.__struct_fields__) and (zone := _zone()):
            headers[identity.ZONE] = zone
        if self._config is not None:
            # An output directory that is named does not depend on the configuration's.
            without = ("output",) if body.get("output") else ()
            headers[identity.HEADER] = identity.header(identity.meaning(self._config, address[1:], without=without))
        # Escapes carry what UTF-8 cannot: a lone surrogate from a file name.
        content = None if call.method == "GET" else json.dumps(body, ensure_ascii=True).encode()
        try:
            with self._failures_named():
                with suppress(BrokenPipeError, ConnectionResetError):
                    # A daemon that refuses answers before it has read all; if it is gone, reading says so.
                    connection.request(call.method, address, body=content, headers=headers)
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
            raise DaemonUnreachable(f"{self._path}: the service does not answer in time; {fix}") from error
        except (OSError, HTTPException) as error:
            fix = "see its log, then try again"
            raise DaemonUnreachable(
                f"{self._path}: the service stopped answering ({type(error).__name__}); {fix}"
            ) from error

    def _read(self, text: str | bytes) -> Json:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self._not_understood()
        return value

    def _as(self, value: object, kind: type[T]) -> T:
        try:
            return from_json(value, kind)
        except (msgspec.MsgspecError, ValueError):
            raise self._not_understood() from None

    def _not_understood(self) -> DaemonUnreachable:
        fix = "restart the service, it may be of another version"
        return DaemonUnreachable(f"{self._path}: what answers there is not understood; {fix}")


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
        raise DaemonUnreachable(f"{self._paths[-1]}: no service answers there; {fix}") from reason


def _error(answer: Json) -> ReconstituteError:
    """The daemon's error as one of ours; one of a newer daemon's keeps its message and exit code."""
    described = answer.get("error")
    described = described if isinstance(described, dict) else {}
    message = str(
        described.get("message") or "the service answered with an error that it did not describe; see its log"
    )
    name, kinds = described.get("type"), [ReconstituteError]
    for kind in kinds:
        if kind.__name__ == name:
            return kind(message)
        kinds.extend(kind.__subclasses__())
    error = ReconstituteError(message)
    code = described.get("exitCode")
    error.exit_code = code if isinstance(code, int) and 0 < code < 126 else ReconstituteError.exit_code
    return error
