"""``reconstitute config``: is it right, what could stand in it, where is it.

``reconstitute models``: which embedding models are at hand, and which of them fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.control import calls
from daemon.control.model_answers import EmbeddingModel, Models
from daemon.errors import ConfigError

if TYPE_CHECKING:
    from daemon.config import Config


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
def check(settings: Settings) -> int:
    """Check the configuration as the service reads it; list every mistake.

    If there is none, it also checks that the folders can be used; it creates nothing.
    Ends with 78 if anything is wrong.

    \b
    Example:
      reconstitute --config ./new.toml config check
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.config import ENVIRONMENT  # noqa: PLC0415
    from daemon.config.checks import Blame  # noqa: PLC0415
    from daemon.doctor.machine import unusable  # noqa: PLC0415

    path, config, mistakes = checked(settings)
    if not mistakes:  # otherwise a place may be the default in place of a wrong one
        overridden = {".".join(key): name for name, key in ENVIRONMENT.items() if name in os.environ}
        blame = Blame(path, overridden)
        mistakes += [blame.error(key, reason) for key, reason in unusable(config)]
    if mistakes:
        terminal.notes(map(str, mistakes))
        return ConfigError.exit_code
    terminal.say(f"{terminal.plain(path)}: {'correct' if path.exists() else 'not found; the defaults apply'}")
    _show_places(config)
    for variable in sorted(set(ENVIRONMENT) & set(os.environ)):
        terminal.note(f"{variable} overrides {'.'.join(ENVIRONMENT[variable])} in this shell")
    return 0


def checked(settings: Settings) -> tuple[Path, Config, list[ConfigError]]:
    """The file, what it says with defaults in place of what is wrong, and all its mistakes.

    Raises:
        ConfigError: the file is missing, cannot be read, or is not TOML.
    """
    from daemon.config import check as all_mistakes  # noqa: PLC0415 - each command loads what it needs
    from daemon.config import default_path  # noqa: PLC0415
    from daemon.schedule import parse  # noqa: PLC0415

    path = settings.config or default_path()
    config, mistakes = all_mistakes(settings.config)
    for number, target in enumerate(config.targets):
        try:
            parse(target.schedule or "@daily", key=f"{path}: targets[{number}].schedule")
        except ConfigError as error:
            mistakes.append(error)
    return path, config, mistakes


def _show_places(config: Config) -> None:
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
    for place in config.opencode_dirs:
        if not place.exists():
            terminal.note(f"{place} is not there yet; it is followed as soon as OpenCode makes it")


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


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def models(settings: Settings, as_json: bool) -> None:
    """Show which embedding models are at hand, and which fits this archive.

    These are the built-in one, that of embedding.model_dir, and those that Ollama has at embedding.url.
    Each one embeds some texts of the archive, which takes some seconds, more where a server has to load it.

    \b
    Examples:
      reconstitute models
      reconstitute models --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = settings.ask(calls.Models())
    if as_json:
        terminal.data(answer)
        return
    terminal.notes(answer.warnings)
    for model in answer.models:
        terminal.say(terminal.bold(model.name) + (", in use" if model.in_use else ""))
        for fact in _facts(model, answer):
            terminal.say(terminal.fold(fact, "  ", "  "))
    terminal.say(terminal.fold(f"{answer.advice}.", ""))


def _facts(model: EmbeddingModel, answer: Models) -> Iterator[str]:
    if model.error:
        yield f"does not work: {model.error}"
    else:
        facts = [f"{model.dims} dimensions", f"{model.texts_per_second:g} texts a second"]
        if model.readable is not None:
            facts.insert(0, f"reads {model.readable:.0%} of {terminal.count(answer.sample, 'message')}")
            facts.append(f"{terminal.duration(model.seconds)} for the whole archive")
        yield ", ".join(facts)
    if model.setting:
        yield f"to use it: {model.setting}"
