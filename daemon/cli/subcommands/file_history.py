"""``reconstitute history``: every revision of one file, what made it and what proves it."""

from __future__ import annotations

from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.progress import progress
from daemon.cli.settings import NOTHING, Settings, absolute
from daemon.cli.subcommands.files import COLOURS

INDENT = "    "


@click.command()
@click.argument("file")
@click.option("--diff", is_flag=True, help="With the changes from one revision to the next.")
@click.option("--lines", is_flag=True, help="The newest known content, each line with the message that last wrote it.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(settings: Settings, *, file: str, diff: bool, lines: bool, as_json: bool) -> int:
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
        answer = settings.ask(lambda service: service.history(path, diff=diff, lines=lines, progress=step))
    revisions = answer.get("revisions") or []
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    if as_json:
        terminal.data(answer)
    elif revisions and lines:
        _show_lines(answer.get("lines") or [])
    elif revisions:
        _show(answer, revisions)
    return 0 if revisions else NOTHING


def _show(answer: dict[str, Any], revisions: list[dict[str, Any]]) -> None:
    state = f"{'deleted, ' if answer.get('deleted') else ''}{answer.get('grade', '')}"
    name = terminal.bold(terminal.line(answer.get("path", "")))
    terminal.say(f"{name}: {terminal.plain(state)}, {terminal.count(len(revisions), 'revision')}")
    for revision in revisions:
        _show_revision(revision)


def _show_revision(revision: dict[str, Any]) -> None:
    grade = str(revision.get("grade", ""))
    what = "deleted" if revision.get("deleted") else terminal.size(revision.get("size"))
    operation, tool = str(revision.get("operation", "")), str(revision.get("tool", ""))
    facts = [
        terminal.moment(revision.get("time")),
        terminal.tint(f"{grade:<8}", COLOURS.get(grade, "white")),
        f"{what:>8}",
        terminal.line(operation if tool in {"", operation} else f"{operation} by {tool}"),
        terminal.bold(" ".join(str(revision.get("session_title") or revision.get("session_id", "")).split())),
    ]
    terminal.say("  ".join(facts))
    for remark in _remarks(revision):
        terminal.say(terminal.dim(terminal.fold(remark, INDENT)))
    if revision.get("diff"):
        show_diff(str(revision["diff"]))
    if revision.get("diff_note"):
        terminal.say(terminal.dim(INDENT + terminal.line(revision["diff_note"])))


def _remarks(revision: dict[str, Any]) -> list[str]:
    said = [
        "; ".join(map(str, revision.get("evidence") or ())),
        str(revision.get("note") or ""),
        "something outside OpenCode had changed it before" if revision.get("outside_change") else "",
        f"moved from {terminal.line(revision['moved_from'])}" if revision.get("moved_from") else "",
        f"message {revision['message_id']}" if revision.get("message_id") else "",
    ]
    return [remark for remark in said if remark]


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


def _show_lines(lines: list[dict[str, Any]]) -> None:
    for number, line in enumerate(lines, start=1):
        who = f"{terminal.moment(line.get('time'))}  {terminal.line(line.get('message_id') or '-')}"
        terminal.say(f"{terminal.dim(who)}  {number:>5}  {terminal.plain(line.get('text', ''))}")
