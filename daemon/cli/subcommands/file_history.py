"""One file: ``reconstitute history`` shows its revisions, ``show`` prints what it held."""

from __future__ import annotations

import base64
import sys

import click

from daemon.cli import terminal
from daemon.cli.settings import NOT_PROVEN, NOTHING, Settings, absolute
from daemon.cli.subcommands.files import COLOURS
from daemon.cli.terminal import progress
from daemon.control import answers, calls
from daemon.control.answers import FileLine, FileRevision

INDENT = "    "


@click.command()
@click.argument("file")
@click.option("--diff", is_flag=True, help="With the changes from one revision to the next.")
@click.option("--lines", is_flag=True, help="The newest known content, each line with the message that last wrote it.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def history(settings: Settings, *, file: str, diff: bool, lines: bool, as_json: bool) -> int:
    """Show every revision of FILE, newest last: when, by which session and tool, how well known, proven by what.

    FILE need not exist any more. Ends with 4 when no session has touched it.

    \b
    Examples:
      reconstitute history src/cart.py
      reconstitute history src/cart.py --diff
      reconstitute history src/cart.py --lines
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(file)
    with progress(brief=True) as step:
        answer = settings.ask(calls.History(path, diff, lines), progress=step)
    terminal.notes(answer.warnings)
    if as_json:
        terminal.data(answer)
    elif answer.revisions and lines:
        _show_lines(answer.lines or [])
    elif answer.revisions:
        _show_history(answer)
    return 0 if answer.revisions else NOTHING


def _show_history(answer: answers.History) -> None:
    state = f"{'deleted, ' if answer.deleted else ''}{answer.grade}"
    name = terminal.bold(terminal.line(answer.path))
    terminal.say(f"{name}: {terminal.plain(state)}, {terminal.count(len(answer.revisions), 'revision')}")
    for revision in answer.revisions:
        _show_revision(revision)


def _show_revision(revision: FileRevision) -> None:
    operation, tool = revision.operation, revision.tool
    facts = [
        terminal.moment(revision.time),
        terminal.tint(f"{revision.grade:<8}", COLOURS.get(revision.grade, "white")),
        f"{'deleted' if revision.deleted else terminal.size(revision.size):>8}",
        terminal.line(operation if tool in {"", operation} else f"{operation} by {tool}"),
        terminal.bold(" ".join((revision.session_title or revision.session_id).split())),
    ]
    terminal.say("  ".join(facts))
    for remark in _remarks(revision):
        terminal.say(terminal.dim(terminal.fold(remark, INDENT)))
    if revision.diff:
        show_diff(revision.diff)
    if revision.diff_note:
        terminal.say(terminal.dim(INDENT + terminal.line(revision.diff_note)))


def _remarks(revision: FileRevision) -> list[str]:
    remarks = [
        "; ".join(revision.evidence),
        revision.note,
        "something outside OpenCode had changed it before" if revision.outside_change else "",
        f"moved from {terminal.line(revision.moved_from)}" if revision.moved_from else "",
        f"message {revision.message_id}" if revision.message_id else "",
    ]
    return [remark for remark in remarks if remark]


def show_diff(text: str) -> None:
    """A unified diff, in the colours that diffs have."""
    for line in text.split("\n"):
        clean = terminal.plain(line[:-1] + "^M" if line.endswith("\r") else line)
        if line.startswith("@@"):
            terminal.say(terminal.tint(clean, "cyan"))
        elif line.startswith("+"):
            terminal.say(terminal.tint(clean, "green"))
        elif line.startswith("-"):
            terminal.say(terminal.tint(clean, "red"))
        else:
            terminal.say(clean)


def _show_lines(lines: list[FileLine]) -> None:
    for number, line in enumerate(lines, start=1):
        who = f"{terminal.moment(line.time)}  {terminal.line(line.message_id or '-')}"
        terminal.say(f"{terminal.dim(who)}  {number:>5}  {terminal.plain(line.text)}")


@click.command()
@click.argument("file")
@click.option("--at", metavar="TIME", default="", help="As it was then, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--raw", is_flag=True, help="The exact bytes, secrets included.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, the content in base64.")
@click.pass_obj
def show(settings: Settings, *, file: str, at: str, raw: bool, as_json: bool) -> int:
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
        answer = settings.ask(calls.Content(path, at, raw), progress=step)
    terminal.notes(answer.warnings)
    encoded = answer.content_base64
    if as_json:
        terminal.data(answer)
    elif encoded is None:
        _say_nothing(answer, path)
    else:
        _print(base64.b64decode(encoded), answer, raw=raw)
    if encoded is None:
        return NOTHING
    return 0 if answer.proven else NOT_PROVEN


def _print(content: bytes, answer: answers.Content, *, raw: bool) -> None:
    if not answer.proven:
        terminal.note(f"not proven ({answer.grade}): {answer.note or 'no recorded call tells its whole content'}")
    if answer.redacted:
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


def _say_nothing(answer: answers.Content, path: str) -> None:
    if not answer.known:
        return  # a warning says so, and which paths are like it
    reason = f"was deleted {terminal.moment(answer.time)}" if answer.deleted else "nothing is known of its content"
    if answer.last:
        fix = f"what it held before ({answer.last.grade}): the same command with --at {answer.last.time}"
    else:
        fix = answer.note or "no recorded call tells what it held"
    terminal.note(f"{path!r}: {reason}; {fix}")
