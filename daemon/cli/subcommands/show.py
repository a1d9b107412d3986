"""``reconstitute show``: what one file held."""

from __future__ import annotations

import base64
import sys
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.progress import progress
from daemon.cli.settings import NOT_PROVEN, NOTHING, Settings, absolute


@click.command()
@click.argument("file")
@click.option("--at", metavar="TIME", default="", help="As it was then, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--raw", is_flag=True, help="The exact bytes, secrets included.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, the content in base64.")
@click.pass_obj
def command(settings: Settings, *, file: str, at: str, raw: bool, as_json: bool) -> int:
    """Print what FILE held, now or at a time. FILE need not exist any more.

    Secrets are hidden unless --raw is given, and stderr says when that was done. Ends with 0 when every byte is
    proven, with 3 when what is printed is not (stderr says why), with 4 when there is nothing to print.

    \b
    Examples:
      reconstitute show src/cart.py
      reconstitute show src/cart.py --at 2026-05-31T18:00
      reconstitute show logo.png --raw > logo.png
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(file)
    with progress(brief=True) as step:
        answer = settings.ask(lambda service: service.content(path, at=at, raw=raw, progress=step))
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    encoded = answer.get("content_base64")
    if as_json:
        terminal.data(answer)
    elif encoded is None:
        _say_nothing(answer, path)
    else:
        _print(base64.b64decode(encoded), answer, raw=raw)
    if encoded is None:
        return NOTHING
    return 0 if answer.get("proven") else NOT_PROVEN


def _print(content: bytes, answer: dict[str, Any], *, raw: bool) -> None:
    if not answer.get("proven"):
        why = answer.get("note") or "no recorded call tells its whole content"
        terminal.note(f"not proven ({answer.get('grade', '?')}): {why}")
    if answer.get("redacted"):
        terminal.note("secrets in it are hidden; --raw prints the file's exact bytes")
    if raw or not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif _is_text(content):
        click.echo(terminal.plain(content.decode()), nl=False)
    else:
        terminal.note(f"not text, {terminal.size(len(content))}; write it to a file: --raw > FILE")


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _say_nothing(answer: dict[str, Any], path: str) -> None:
    if not answer.get("known"):
        return  # a warning says so, and what is near
    when = terminal.moment(answer.get("time"))
    reason = f"was deleted {when}" if answer.get("deleted") else "nothing is known of its content"
    last = answer.get("last")
    if last:
        fix = f"what it held before ({last.get('grade', '?')}): the same command with --at {last.get('time')}"
    else:
        fix = answer.get("note") or "no recorded call tells what it held"
    terminal.note(f"{path!r}: {reason}; {fix}")
