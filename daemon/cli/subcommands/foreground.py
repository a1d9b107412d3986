"""``reconstitute run``: the daemon in the foreground."""

from __future__ import annotations

import click

from daemon.cli.settings import Settings


@click.command()
@click.option("--once", is_flag=True, help="Read, index, do the waiting requests and targets, and end.")
@click.pass_obj
def command(settings: Settings, once: bool) -> int:
    """Follow OpenCode's sessions until stopped; what the systemd service does.

    \b
    Examples:
      reconstitute run            until Ctrl-C
      reconstitute run --once     from cron, where there is no systemd
    """  # noqa: D301 - click's mark for text that is not to be filled
    config = settings.load()
    settings.log(config)
    from daemon.app import run  # noqa: PLC0415 - everything is loaded with it

    return run(config, once=once)
