"""What runs until it is stopped: ``reconstitute run`` (the daemon), ``mcp`` and ``adapter`` (for other programs)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings, absolute

if TYPE_CHECKING:
    from daemon.config import Config


@click.command()
@click.option("--once", is_flag=True, help="Read, index and do what is waiting once, then exit.")
@click.pass_obj
def run(settings: Settings, once: bool) -> int:
    """Follow OpenCode's sessions until stopped, as the systemd service does.

    A SIGHUP has it read its configuration again; in a terminal, which sends one when it is closed, it stops.

    \b
    Examples:
      reconstitute run            until Ctrl-C
      reconstitute run --once     from cron, where there is no systemd
    """  # noqa: D301 - click's mark for text that is not to be filled
    config = settings.load()
    settings.log(config)
    from daemon.app import run as run_daemon  # noqa: PLC0415 - everything is loaded with it

    def reread() -> Config:
        config = settings.load()
        settings.log(config)
        return config

    is_in_terminal = sys.stdin is not None and sys.stdin.isatty()
    return run_daemon(config, once=once, reread=None if is_in_terminal else reread, file=settings.file)


@click.command()
@click.option(
    "--directory",
    type=click.Path(),
    metavar="DIR",
    default="",
    help="The directory that 'this project' means; by default the current one.",
)
@click.pass_obj
def mcp(settings: Settings, *, directory: str) -> None:
    """Serve recall and recovered files to an agent, over MCP on stdin and stdout. An agent's client starts it.

    \b
    Examples, a line or two in the client's configuration:
      OpenCode     "mcp": {"reconstitute": {"type": "local",
                     "command": ["reconstitute", "mcp"]}}
      Claude Code  claude mcp add reconstitute -- reconstitute mcp
      others       "mcpServers": {"reconstitute": {"command": "reconstitute",
                     "args": ["mcp"]}}
    """  # noqa: D301 - click's mark for text that is not to be filled
    if sys.stdin.isatty():
        terminal.note("waiting for an MCP client on stdin; press Ctrl-D to stop; --help shows how clients start it")
    from daemon import mcp  # noqa: PLC0415 - only this command loads the SDK

    current_folder = absolute(directory) if directory else os.getcwd()
    mcp.serve(settings.load, lambda config: settings.log(config, default_level="warning"), current_folder)


@click.command()
@click.option(
    "--host", metavar="HOST", default="", help="Address to listen on; by default adapter.host, which is loopback."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Port to listen on; by default adapter.port; 0: any free one.",
)
@click.option("--opencode", metavar="URL", default="", help="The OpenCode server; by default opencode.server_url.")
@click.pass_obj
def adapter(settings: Settings, *, host: str, port: int | None, opencode: str) -> int:
    """Let any client of Ollama or OpenAI use the models you have in OpenCode. Runs until Ctrl-C.

    It needs a running `opencode serve`. Tools work with every model. By default only this machine can connect, without
    a password; set one with adapter.token.

    \b
    Examples:
      opencode serve & reconstitute adapter
      reconstitute adapter --port 11434            in Ollama's own place
      reconstitute adapter --opencode http://127.0.0.1:5000
      OLLAMA_HOST=127.0.0.1:11435 ollama list      what a client then sees
    """  # noqa: D301 - click's mark for text that is not to be filled
    import msgspec  # noqa: PLC0415 - each command loads what it needs

    if opencode and not opencode.startswith(("http://", "https://")):
        raise click.UsageError(f"--opencode {opencode}: an address begins with http:// or https://")
    config = settings.load()
    settings.log(config, default_level="warning")
    options = {"host": host, "port": port}
    overrides = {key: value for key, value in options.items() if value not in ("", None)}
    config = msgspec.structs.replace(
        config,
        adapter=msgspec.structs.replace(config.adapter, **overrides),
        opencode=msgspec.structs.replace(config.opencode, server_url=opencode or config.opencode.server_url),
    )
    from daemon.adapter import serve  # noqa: PLC0415 - only this command loads the server

    return serve(config, _print_flushed, terminal.note)


def _print_flushed(text: str) -> None:
    click.echo(terminal.line(text))
    sys.stdout.flush()  # whoever started it in the background reads the address from here
