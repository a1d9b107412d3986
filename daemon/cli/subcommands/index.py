"""``reconstitute index``: one full scan, everything indexed."""

from __future__ import annotations

import click

from daemon.cli import terminal
from daemon.cli.progress import progress
from daemon.cli.settings import Settings
from daemon.errors import Retry


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(settings: Settings, as_json: bool) -> int:
    """Read everything OpenCode has now into the archive and the indexes.

    The running service does this by itself; without one, run this before a search.
    Ends with 75 when nothing new came of it and not everything could be done.

    \b
    Example:
      reconstitute index
    """  # noqa: D301 - click's mark for text that is not to be filled
    with progress() as step:
        answer = settings.ask(lambda service: service.index(step))
    warnings = answer.get("warnings") or ()
    code = Retry.exit_code if warnings and not answer.get("changed") else 0
    if as_json:
        terminal.data(answer)
        return code
    for warning in warnings:
        terminal.note(warning)
    changed = answer.get("changed")
    words = {
        "changed": f"record{'' if changed == 1 else 's'} new or changed",
        "removed": "deleted by OpenCode and kept here",
        "embedded": "embedded",
        "waiting": "waiting to be embedded",
        "quarantined": "kept aside as unreadable",
    }
    shown = [f"{answer[key]} {text}" for key, text in words.items() if answer.get(key)]
    nothing = "nothing new, but not everything could be read or embedded: see above" if warnings else "nothing new"
    terminal.say(terminal.plain("; ".join(shown) or nothing) + ".")
    return code
