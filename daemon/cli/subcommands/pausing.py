"""``reconstitute pause`` stops the work of the service for a while, all but archiving, and resumes it."""

from __future__ import annotations

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.control import calls


@click.command()
@click.option("--until", metavar="TIME", default="", help="Go on then: 2h, 90m, 2026-05-31 or 2026-05-31T18:00.")
@click.option("--resume", is_flag=True, help="End the pause.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def pause(settings: Settings, until: str, resume: bool, as_json: bool) -> int:
    """Stop indexing, embedding and all runs until TIME, or until --resume; new messages are still archived.

    What is paused is not lost: it waits, and `status` says so. A pause holds over restarts of the service. What you ask
    for yourself, such as a search, `index` or pages of a folder, is done in a pause, too.

    \b
    Examples:
      reconstitute pause
      reconstitute pause --until 2h
      reconstitute pause --resume
    """  # noqa: D301 - click's mark for text that is not to be filled
    if until and resume:
        raise click.UsageError("--until and --resume exclude each other; give one of them")
    answer = settings.ask(calls.Pause(until=until, resume=resume))
    if as_json:
        terminal.data(answer)
    elif not answer.since:
        terminal.say("The work goes on.")
    elif answer.until is None:
        terminal.say("Paused; to go on: reconstitute pause --resume")
    else:
        terminal.say(f"Paused until {terminal.moment(answer.until)}; to go on before: reconstitute pause --resume")
    return 0
