"""``reconstitute config``: is it right, what could stand in it, where is it."""

from __future__ import annotations

import os

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings


@click.group()
def config() -> None:
    """Check, show or locate the configuration. Every key is optional.

    \b
    Examples:
      reconstitute config check
      reconstitute config example > "$(reconstitute config path)"
    """  # noqa: D301 - click's mark for text that is not to be filled


@config.command()
@click.pass_obj
def check(settings: Settings) -> None:
    """Check the configuration as the service reads it; report the first mistake.

    \b
    Example:
      reconstitute --config ./new.toml config check
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.config import ENVIRONMENT, default_path  # noqa: PLC0415
    from daemon.schedule import parse  # noqa: PLC0415

    config = settings.load()
    for number, target in enumerate(config.targets):
        if target.schedule:
            parse(target.schedule, key=f"{settings.config or default_path()}: targets[{number}].schedule")
    path = settings.config or default_path()
    terminal.say(f"{terminal.plain(path)}: {'correct' if path.exists() else 'not found; the defaults apply'}")
    places = {
        "opencode.data_dir": config.opencode_dir,
        "archive.dir": config.archive_dir,
        "output.dir": config.output_dir,
        "requests": config.requests_dir,
        "socket": config.socket_path,
    }
    for name, place in places.items():
        terminal.say(f"  {name:<18} {terminal.plain(place)}")
    for place in (*config.opencode_dirs[1:], *config.databases):
        terminal.say(f"  {'also followed':<18} {terminal.plain(place)}")
    for variable in sorted(set(ENVIRONMENT) & set(os.environ)):
        terminal.note(f"{variable} overrides {'.'.join(ENVIRONMENT[variable])} in this shell")


@config.command()
def example() -> None:
    """Print every key with its default and its meaning.

    \b
    Example:
      reconstitute config example > "$(reconstitute config path)"
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.config import example as text  # noqa: PLC0415

    click.echo(text(), nl=False)


@config.command()
@click.pass_obj
def path(settings: Settings) -> None:
    """Print the path of the configuration.

    \b
    Example:
      "$EDITOR" "$(reconstitute config path)"
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.config import default_path  # noqa: PLC0415

    click.echo(settings.config or default_path())
