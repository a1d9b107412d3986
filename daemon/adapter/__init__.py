"""Ollama's and OpenAI's HTTP APIs in front of an OpenCode server: their clients can use the models a user has there.

A request becomes one prompt in an OpenCode session (`exchange`), in which a model without tools is given the client's
tools in words. `ollama_api` and `openai_api` read what comes in and write what goes out; sessions are kept for a
client's next turn and always deleted in the end (`sessions`). Here is the foreground server: it binds, says what is
offered and answers until a signal.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable

import uvicorn

from daemon import http_server
from daemon.adapter.catalog import Catalog
from daemon.adapter.guard import Connection, Guard, is_loopback
from daemon.adapter.routes import Routes
from daemon.adapter.sessions import Sessions
from daemon.chat.opencode.server import OpenCodeServer, Patience
from daemon.config import Config
from daemon.errors import ConfigError, Retry

_BACKLOG = 64
_DRAIN_S = 3.0
Print = Callable[[str], None]


class Adapter:
    """The server of one configuration. `start`, then `stop`; `url` is where it listens."""

    def __init__(self, config: Config) -> None:
        self._config = config.adapter
        self._opencode = OpenCodeServer(
            config.opencode.server_url, patience=Patience(prompt=config.adapter.prompt_seconds)
        )
        self._sessions = Sessions(self._opencode, config.adapter.session_minutes * 60)
        self.catalog = Catalog(self._opencode, config.opencode.server_model)
        self._routes = Routes(self._opencode, self._sessions, self.catalog, config.adapter.prompt_seconds)
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self.url = ""
        self.is_stopped = False
        self.is_local = is_loopback(self._config.host)

    async def start(self) -> None:
        """Bind and answer; when this returns, a client can ask.

        Raises:
            ConfigError: the address cannot be had.
        """
        self._socket = _bound(self._config.host, self._config.port)
        port = self._socket.getsockname()[1]
        self.url = f"http://{f'[{self._config.host}]' if ':' in self._config.host else self._config.host}:{port}"
        guard = Guard(self._routes.application(), self._config, local=self.is_local)
        self._server = await http_server.serve(
            guard, Connection, self._socket, backlog=_BACKLOG, drain_seconds=int(_DRAIN_S)
        )

    async def stop(self) -> int:
        """Take no more requests, call off those under way, delete every session; how many could not be deleted."""
        self.is_stopped = True
        await self._routes.deliveries.end(_DRAIN_S)
        if self._server is not None and self._socket is not None:
            server, self._server = self._server, None
            await server.shutdown(sockets=[self._socket])
        undeleted = await asyncio.to_thread(self._sessions.close)
        await asyncio.to_thread(self._opencode.close)
        return undeleted

    def sweep(self) -> None:
        """Delete the sessions that an adapter left which was killed.

        Raises:
            ModelUnavailable: OpenCode does not answer.
        """
        self._opencode.sweep()


def serve(config: Config, print_line: Print, warn: Print) -> int:
    """Serve until SIGINT or SIGTERM; the answer is the exit code. A second signal ends it at once.

    Raises:
        ConfigError: the address cannot be had.
    """
    return asyncio.run(_serve(config, print_line, warn))


async def _serve(config: Config, print_line: Print, warn: Print) -> int:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    adapter = Adapter(config)

    def end() -> None:
        ended.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        await adapter.start()
        print_line(f"listening on {adapter.url}")
        if not adapter.is_local and not config.adapter.token:
            warn(f"{adapter.url} can be reached from other machines, and asks nobody who he is; set adapter.token")
        # A thread that nobody waits for: OpenCode may not answer for long.
        threading.Thread(
            target=_print_models, args=(config, adapter, print_line, warn), name="adapter-tell", daemon=True
        ).start()
        await ended.wait()
    finally:
        undeleted = await adapter.stop()
    if undeleted:
        warn(f"{config.opencode.server_url}: {undeleted} of our sessions could not be deleted; the next start does it")
    print_line("stopped")
    return 0


def _print_models(config: Config, adapter: Adapter, print_line: Print, warn: Print) -> None:
    try:
        adapter.sweep()
        models = [model.id for model in adapter.catalog.all()]
    except Retry as error:
        warn(f"{error}; requests are answered with an error until then")
        return
    except RuntimeError:
        if adapter.is_stopped:
            return  # the connection was closed under its hands
        raise
    chosen = config.opencode.server_model
    if chosen and chosen not in models:
        warn(f"opencode.server_model: {config.opencode.server_url} does not have {chosen}")
    for name in models:
        print_line(f"  {name}")
    if not models:
        warn(f"{config.opencode.server_url} has no models; add a provider with: opencode auth login")


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"adapter.host: {host}: {error.strerror}; name an address of this machine") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{host}:{port}: cannot be listened on: {error.strerror}; choose another with --host or --port"
        ) from None
    return listener
