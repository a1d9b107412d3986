"""``reconstitute adapter``: Ollama's API in front of an OpenCode server, in the foreground."""

from __future__ import annotations

import sys

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings


@click.command()
@click.option("--host", metavar="HOST", default="", help="Where to listen; adapter.host by default, which is loopback.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="adapter.port by default; 0: any free one.")
@click.option("--opencode", metavar="URL", default="", help="The OpenCode server; opencode.server_url by default.")
@click.pass_obj
def command(settings: Settings, *, host: str, port: int | None, opencode: str) -> int:
    """Let any client of Ollama use the models you have in OpenCode. Runs until Ctrl-C.

    It needs a running `opencode serve`. Tools work with every model. By default only this machine can ask, without a
    password; adapter.token sets one.

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
    settings.log(config, least="warning")
    asked = {"host": host, "port": port}
    changed = {key: value for key, value in asked.items() if value not in ("", None)}
    config = msgspec.structs.replace(
        config,
        adapter=msgspec.structs.replace(config.adapter, **changed),
        opencode=msgspec.structs.replace(config.opencode, server_url=opencode or config.opencode.server_url),
    )
    from daemon.adapter.server import serve  # noqa: PLC0415 - only this command loads the server

    return serve(config, _say, terminal.note)


def _say(text: str) -> None:
    click.echo(terminal.line(text))
    sys.stdout.flush()  # whoever started it in the background reads the address from here
