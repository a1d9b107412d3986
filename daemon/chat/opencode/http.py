"""HTTP to an OpenCode server: time limits that hold for whole answers, and failures in words that name the fix."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from daemon.chat import ModelUnavailable
from daemon.errors import BadRecord, ConfigError
from daemon.model import Json
from daemon.records import clean, loads, table

_LARGEST = 64 << 20
_MAX_QUOTED_CHARS = 300


class SessionGone(ModelUnavailable):
    """The session that was to be prompted is not there: make another one."""


class HttpClient:
    """Requests to the server at `url`; safe to use from several threads.

    Args:
        username, password: None takes OPENCODE_SERVER_USERNAME and OPENCODE_SERVER_PASSWORD, as the server does.
    """

    def __init__(self, url: str, connect_s: float, username: str | None = None, password: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._connect_s = connect_s
        name = os.environ.get("OPENCODE_SERVER_USERNAME", "") if username is None else username
        secret = os.environ.get("OPENCODE_SERVER_PASSWORD", "") if password is None else password
        try:
            # A proxy set in the environment must not be asked for this machine's own server.
            is_local = urlsplit(self.url).hostname in {"localhost", "127.0.0.1", "::1"}
            auth = (name or "opencode", secret) if secret else None
            # Reading the certificates takes 19 ms, and http has none.
            has_certificate = urlsplit(self.url).scheme == "https"
            self._http = httpx.Client(base_url=self.url, auth=auth, trust_env=not is_local, verify=has_certificate)
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"opencode.server_url: {self.url!r} is no address: {error}; the default is http://127.0.0.1:4096"
            ) from None

    def close(self) -> None:
        """Release connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        within_s: float,
        *,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
    ) -> Any:
        """One request and the JSON that answers it, None where the answer is empty.

        Raises:
            SessionGone: 404 for a path beneath /session/.
            ModelUnavailable: no answer within `within_s` seconds, or not a usable one.
        """
        deadline = time.monotonic() + within_s
        timeout = httpx.Timeout(within_s, connect=min(within_s, self._connect_s))
        received = bytearray()
        try:
            with self._http.stream(method, path, params=query, json=clean(body), timeout=timeout) as answer:
                for piece in answer.iter_bytes():
                    received += piece
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout(f"more than {within_s:g} s")
                    if len(received) > _LARGEST:
                        raise ModelUnavailable(f"{self.url}: {path} answers with more than {_LARGEST >> 20} MB")
                self._check(answer, path, bytes(received))
        except httpx.HTTPError as error:
            raise self.down(error) from None
        return self._parsed(bytes(received), path) if received else None

    @contextmanager
    def events(self, query: Mapping[str, Any], silence_s: float) -> Iterator[Iterator[Json]]:
        """The server's events, from the moment it listens; httpx.HTTPError from the iterator when it says nothing for
        `silence_s`, or hangs up. A comment or an unreadable line counts as an event that tells nothing.

        Raises:
            ModelUnavailable: it cannot be listened to.
        """
        timeout = httpx.Timeout(self._connect_s, read=silence_s)
        with self._http.stream("GET", "/event", params=query, timeout=timeout) as answer:
            self._check(answer, "/event", b"")
            yield (_event(line) for line in answer.iter_lines())

    def down(self, error: httpx.HTTPError) -> ModelUnavailable:
        """What to say of a request that got no answer."""
        slow = isinstance(error, httpx.TimeoutException)
        cause = "did not answer in time" if slow else "nothing answers"
        return ModelUnavailable(f"{self.url}: {cause} ({type(error).__name__}); start it with: opencode serve")

    def gone(self, session_id: str) -> SessionGone:
        """What to say of a session that is not there."""
        return SessionGone(f"{self.url}: has no session {session_id}; another one is needed")

    def _parsed(self, received: bytes, path: str) -> Any:
        try:
            return loads(received)
        except BadRecord:
            raise ModelUnavailable(
                f"{self.url}: {path} answers, but not as OpenCode does; check opencode.server_url"
            ) from None

    def _check(self, answer: httpx.Response, path: str, received: bytes) -> None:
        code = answer.status_code
        if answer.is_success:
            return
        if code in {401, 403}:
            raise ModelUnavailable(
                f"{self.url}: wants a password; set OPENCODE_SERVER_PASSWORD to what the server was started with"
            )
        if code == 404 and path.startswith("/session/"):
            raise self.gone(path.split("/")[2])
        reason = " ".join(received.decode(errors="replace").split())[:_MAX_QUOTED_CHARS]
        raise ModelUnavailable(f"{self.url}: {path}: HTTP {code} {reason}; see the log of that server")


def _event(line: str) -> Json:
    if not line.startswith("data:"):
        return {}
    try:
        return table(loads(line[5:].encode()))
    except BadRecord:
        return {}
