"""``reconstitute index``: one full scan, everything indexed."""

from __future__ import annotations

import click

from daemon.cli import show
from daemon.cli.progress import progress
from daemon.cli.settings import Settings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(settings: Settings, as_json: bool) -> None:
    """Read everything OpenCode has now into the archive and the indexes.

    The running service does this by itself; without one, run this before a search.

    \b
    Example:
      reconstitute index
    """  # noqa: D301 - click's mark for text that is not to be filled
    with progress() as step:
        answer = settings.ask(lambda service: service.index(step))
    if as_json:
        show.data(answer)
        return
    for warning in answer.get("warnings") or ():
        show.note(warning)
    words = {
        "changed": "messages new or changed",
        "removed": "deleted by OpenCode and kept here",
        "embedded": "embedded",
        "waiting": "waiting to be embedded",
        "quarantined": "kept aside as unreadable",
    }
    shown = [f"{answer[key]} {text}" for key, text in words.items() if answer.get(key)]
    show.say(show.plain("; ".join(shown) or "nothing new") + ".")
