"""``reconstitute alias``: a folder that was renamed, moved or cloned is told to be another."""

from __future__ import annotations

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings, absolute


@click.command()
@click.argument("old", default="")
@click.argument("new", default="")
@click.option("--remove", is_flag=True, help="Take it back.")
@click.option("--list", "only_list", is_flag=True, help="Show those there are.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON: a list.")
@click.pass_obj
def command(settings: Settings, *, old: str, new: str, remove: bool, only_list: bool, as_json: bool) -> None:
    """Say that the folder that sessions knew as OLD is NEW today, so that its files are found there.

    \b
    Examples:
      reconstitute alias ~/projects/shop ~/projects/web-shop
      reconstitute alias ~/projects/shop --remove
      reconstitute alias --list
    """  # noqa: D301 - click's mark for text that is not to be filled
    _check(old, new, remove=remove, only_list=only_list)
    before, after = (absolute(path) if path else "" for path in (old, new))
    answer = settings.ask(lambda service: service.alias(before, after, remove=remove))
    aliases = answer.get("aliases") or []
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    if as_json:
        terminal.data(aliases)
        return
    for entry in aliases:
        terminal.say(f"{terminal.line(entry.get('old', ''))} is now {terminal.line(entry.get('new', ''))}")
    if not aliases:
        terminal.say("No folder has another name.")


def _check(old: str, new: str, *, remove: bool, only_list: bool) -> None:
    if only_list and (old or new or remove):
        raise click.UsageError("--list takes nothing else")
    if remove and (not old or new):
        raise click.UsageError("--remove takes OLD alone")
    if not only_list and not remove and not (old and new):
        raise click.UsageError("it takes OLD and NEW, or --list")
