"""``reconstitute mcp``: recall for agents, as an MCP server on stdin and stdout."""

from __future__ import annotations

import os
import sys

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings, absolute


@click.command()
@click.option(
    "--directory", metavar="DIR", default="", help="What 'this project' is; the directory it is started in by default."
)
@click.pass_obj
def command(settings: Settings, *, directory: str) -> None:
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
        terminal.note("an MCP server, waiting for a client on stdin; Ctrl-D ends it, --help says how clients start it")
    from daemon.mcp import server  # noqa: PLC0415 - only this command loads the SDK

    here = absolute(directory) if directory else os.getcwd()
    server.serve(settings.load, lambda config: settings.log(config, least="warning"), here)
