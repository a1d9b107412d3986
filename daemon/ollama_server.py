"""An Ollama server, over its official client: the only importer of it.

What every caller would have to know stands here once: which failures mean that the server is down, busy or lacks the
model (ModelUnavailable, with the address, the cause and the fix), how a reply is read without losing it to the client's
types, and that nothing asked here lasts longer than its time. What else a server refuses is passed on as `Refused`, for
the caller to judge. Importing this takes 0.4 s: import it late.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import ollama

from daemon.errors import ConfigError, ModelUnavailable
from daemon.model import Json

_BUSY = (408, 429, 502, 503, 504)
_CONNECT_S = 5.0
_REASON = 600


class Refused(Exception):  # a verdict that the caller is to make, never leaves it
    """The server answered with an error that is neither its being busy nor a missing model.

    `status` is HTTP's; None where the error came in the middle of a reply, 200 where what came makes no sense.
    """

    def __init__(self, status: int | None, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}" if status else reason)
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a server says of a model; None where it is too old to tell. `context_tokens`: what the model was made for.

    Capabilities are Ollama's words: ``completion``, ``tools``, ``thinking``, ``embedding``, ``vision``.
    """

    capabilities: frozenset[str] | None
    context_tokens: int | None

    def can(self, capability: str) -> bool | None:
        """Whether it can; None: the server does not tell."""
        return None if self.capabilities is None else capability in self.capabilities


class OllamaServer:
    """The server at `url`; no request lasts longer than `timeout_s`. Thread-safe, as its client is.

    Args:
        setting: the configuration's key that `url` comes from, for messages.

    Raises:
        ConfigError: `url` is no address.
    """

    def __init__(self, url: str, timeout_s: float, *, setting: str) -> None:
        self.url = url
        self._setting, self._timeout_s = setting, timeout_s
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))
        # A connection for each request: one that the server closed meanwhile is never taken for the server being
        # down, and `_Deadline` sees every connection being made.
        limits = httpx.Limits(max_keepalive_connections=0)
        try:
            # A proxy set in the environment must not be asked for this machine's own server.
            local = urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}
            trusted = _certificates(trust_env=not local)
            self._client = _Client(url, timeout=timeout, trust_env=not local, limits=limits, verify=trusted)
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"{setting}: {url!r} is no address: {error}; the default is http://127.0.0.1:11434"
            ) from None

    def close(self) -> None:
        """Release connections."""
        _close(self._client)

    def models(self) -> dict[str, str]:
        """Name and digest (hexadecimal) of every model it has.

        Raises:
            ModelUnavailable: the server is down, or is no Ollama.
        """
        try:
            with _Deadline(self._timeout_s) as deadline, self._request("", deadline):
                models = self._client.listed(deadline.extensions).models
        except Refused as error:
            if error.status == 200:
                raise self._foreign() from None
            raise ModelUnavailable(
                f"{self.url}: HTTP {error.status} instead of a list of models; is this Ollama?"
            ) from None
        return {
            entry.model: re.sub(r"^sha256:", "", entry.digest or "") or "unknown0" for entry in models if entry.model
        }

    def digest(self, model: str) -> str:
        """The digest of `model`, which may be written without ``:latest``.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        models = self.models()
        for name in (model, full_name(model)):
            if name in models:
                return models[name]
        raise self._missing(model)

    def show(self, model: str) -> ModelInfo:
        """What a model of `models` can do, and how much it can read; nothing known where the server cannot tell.

        Raises:
            ModelUnavailable: the server is down or busy.
        """
        try:
            with _Deadline(self._timeout_s) as deadline, self._request("", deadline):
                info = self._client.show_model(model, deadline.extensions)
        except Refused:  # servers that only resemble Ollama have no such page, or another one
            return ModelInfo(None, None)
        lengths = [
            value
            for key, value in (info.modelinfo or {}).items()
            if key.endswith(".context_length") and isinstance(value, int) and value > 0
        ]
        capabilities = None if info.capabilities is None else frozenset(info.capabilities)
        return ModelInfo(capabilities, min(lengths, default=None))

    def embed(self, model: str, texts: Sequence[str], *, num_ctx: int, keep_alive: str) -> Sequence[Sequence[float]]:
        """Whatever vectors the server sends for `texts`, unchecked.

        Raises:
            Refused: these texts have none.
            ModelUnavailable: the server is down, busy, or lacks the model.
        """
        # truncate=False: a cut text would be embedded as if it were whole.
        body = {"model": model, "input": list(texts), "truncate": False, "keep_alive": keep_alive}
        with _Deadline(self._timeout_s) as deadline, self._request(model, deadline):
            answer = self._client.embedded({**body, "options": {"num_ctx": num_ctx}}, deadline.extensions)
        return answer.embeddings

    def chat(self, body: Json) -> Generator[Json, None, None]:
        """The lines of one streamed reply to `body` (as /api/chat takes it), as they come; the last one is ``done``.
        Whoever stops reading before closes it, which hangs up.

        Raises:
            Refused: the server cannot answer this.
            ModelUnavailable: the server is down, busy, too slow, stops in the middle, or lacks the model.
        """
        ended = False
        with _Deadline(self._timeout_s) as deadline, self._request(str(body.get("model")), deadline):
            lines: Any = self._client.lines("/api/chat", {**body, "stream": True}, deadline.extensions)
            with closing(lines):
                for line in lines:
                    ended = ended or line.get("done") is True
                    for key in line:  # 0.11 wrote the cause in the key's place
                        if key.startswith("error "):
                            raise Refused(None, f"{key}: {line[key]}")
                    yield line
        if not ended:
            if deadline.passed:
                raise self._down(TimeoutError(), deadline)
            raise ModelUnavailable(f"{self.url}: the reply ended in the middle; see Ollama's log; it is asked again")

    @contextmanager
    def _request(self, model: str, deadline: _Deadline) -> Iterator[None]:
        try:
            yield
        except ollama.ResponseError as error:
            raise self._verdict(error, model) from None
        except (httpx.RequestError, ConnectionError) as error:
            raise self._down(error, deadline) from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            if deadline.passed:  # it cut what came in the middle of a line
                raise self._down(error, deadline) from None
            if type(error) in {ValueError, RecursionError}:  # JSON, but with numbers or nesting beyond all reason
                raise Refused(None, f"failed to parse JSON: {error}") from None
            # null, {}, a web page or anything else where the client expects Ollama's records
            raise Refused(200, f"what came is not Ollama's ({type(error).__name__})") from None

    def _verdict(self, error: ollama.ResponseError, model: str) -> Exception:
        status, reason = error.status_code, str(error.error)[:_REASON]
        if status == 404 and model:
            return self._missing(model)
        if status in _BUSY:
            return ModelUnavailable(f"{self.url}: busy ({status}: {reason}); it is asked again later")
        return Refused(status if status > 0 else None, reason)

    def _down(self, error: Exception, deadline: _Deadline) -> ModelUnavailable:
        cause = "the connection broke"
        if isinstance(error, httpx.TimeoutException) or deadline.passed:
            cause = "did not answer in time"
        elif isinstance(error, httpx.ConnectError | ConnectionError):
            cause = "nothing answers"
        return ModelUnavailable(f"{self.url}: {cause} ({type(error).__name__}); start it with: ollama serve")

    def _missing(self, model: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self.url}: does not have {model}; get it with: ollama pull {model}")

    def _foreign(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.url}: answers, but not as Ollama does; check {self._setting}")


def full_name(model: str) -> str:
    """The name that a server lists: with ``:latest`` where no tag is given."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


@cache
def _certificates(*, trust_env: bool) -> ssl.SSLContext:
    """Read once, for all servers: that takes 20 ms, longer than most of what is asked."""
    return httpx.create_ssl_context(trust_env=trust_env)


class _Client(ollama.Client):
    """The client's own calls, with what the HTTP client takes besides: `extensions`."""

    def listed(self, extensions: Json) -> ollama.ListResponse:
        """What `list` does."""
        return self._request(ollama.ListResponse, "GET", "/api/tags", extensions=extensions)

    def show_model(self, model: str, extensions: Json) -> ollama.ShowResponse:
        """What `show` does."""
        return self._request(ollama.ShowResponse, "POST", "/api/show", json={"model": model}, extensions=extensions)

    def embedded(self, body: Json, extensions: Json) -> ollama.EmbedResponse:
        """What `embed` does."""
        return self._request(ollama.EmbedResponse, "POST", "/api/embed", json=body, extensions=extensions)

    def lines(self, path: str, body: Json, extensions: Json) -> Iterator[Json]:
        """What `chat` does, without its types: they lose a whole reply to one odd tool call, drop what they do not
        know of a tool's schema, and read a file where an image is a string that names one.
        """
        return self._request(dict, "POST", path, json=body, stream=True, extensions=extensions)


class _Deadline:
    """Ends a request that lasts too long. The client's own limit is for the pause between two bytes: a server that
    sends one now and then would hold us for ever.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True
        self.extensions: Json = {"trace": self.trace}
        """Pass this to the HTTP client with the request."""

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by the HTTP client for each of its events; the last connection is the one to close."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._pass()

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            if self._socket is not None:
                with suppress(OSError):  # it may have ended by itself
                    self._socket.shutdown(socket.SHUT_RDWR)


def _close(client: Any) -> None:
    client.close()  # not annotated there
