"""``reconstitute trajectory``: how a model came to its answers, step by step."""

from __future__ import annotations

import json
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute
from daemon.errors import BadRequest

_INDENT = "    "
_COLOURS = {"system": "white", "user": "cyan", "assistant": "green", "tool": "yellow"}
_MOST_LINES = 40
_MOST_PATHS = 5


@click.command()
@click.argument("path", default="")
@click.option("--started", type=click.IntRange(min=1), help="The one of this id, with every message.")
@click.option("--last", is_flag=True, help="The newest one, with every message.")
@click.option("--full", is_flag=True, help=f"Long messages whole, not their first {_MOST_LINES} lines.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON: a list.")
@click.pass_obj
def command(settings: Settings, *, path: str, started: int | None, last: bool, full: bool, as_json: bool) -> int:
    """List how questions about PATH (or all targets) were answered, or show one in full.

    Each was saved after every step: what the model was told, what it called, what it saw, how it ended. Ends with 4
    when there is none.

    \b
    Examples:
      reconstitute trajectory ~/projects/shop
      reconstitute trajectory --last
      reconstitute trajectory --started 1790000000000 --full
    """  # noqa: D301 - click's mark for text that is not to be filled
    if last and started is not None:
        raise click.UsageError("--last and --started name two; give one of them")
    target = absolute(path) if path else ""
    found = settings.ask(lambda service: service.trajectories(target))["trajectories"]
    missing = ""
    if last and found:
        started = found[-1]["started"]
    if started is not None:
        found, missing = _one(settings, target, started)
    if as_json:
        terminal.data(found)
    else:
        _tell(found, full=None if started is None else full)
    if not found:
        terminal.note(missing or _none(settings, target))
    return 0 if found else NOTHING


def _one(settings: Settings, target: str, started: int) -> tuple[list[dict[str, Any]], str]:
    """The one that began then, or why there is none."""
    try:
        return settings.ask(lambda service: service.trajectories(target, started=started))["trajectories"], ""
    except BadRequest as error:  # the path was taken before: what is not there is that trajectory
        return [], str(error)


def _tell(found: list[dict[str, Any]], *, full: bool | None) -> None:
    """A line each, or with `full` given each as a whole."""
    for each in found:
        if full is None:
            terminal.say(_headline(each))
        else:
            _show(each, full=full)


def _none(settings: Settings, target: str) -> str:
    """Why nothing is listed, and where something is."""
    others = settings.ask(lambda service: service.trajectories())["trajectories"] if target else []
    paths = list(dict.fromkeys(str(each["target"]) for each in reversed(others)))
    if not paths:
        return "no question was put to a model yet; a reconstitution with a chat model leaves trajectories"
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    named = ", ".join(paths[:_MOST_PATHS]) + more
    return f"no question about {terminal.line(target)} was put to a model; there are trajectories of {named}"


def _headline(each: dict[str, Any]) -> str:
    about = each.get("question") or {}
    facts = [
        terminal.dim(each.get("started", "")),
        terminal.moment(each.get("started")),
        terminal.bold(terminal.line(each.get("target", ""))),
        terminal.line(about.get("id", "")),
        f"{terminal.count(each.get('steps', 0), 'step')}, {each.get('tokens', 0):,} tokens",
        terminal.line(each.get("state", "")),
    ]
    return "  ".join(facts)


def _show(each: dict[str, Any], *, full: bool) -> None:
    terminal.say(_headline(each))
    terminal.say(f"{terminal.line(each.get('model', ''))}, {each.get('seconds', 0)} s")
    for number, message in enumerate(each.get("messages") or ()):
        role = str(message.get("role", ""))
        tool = f" {terminal.line(message['tool_name'])}" if message.get("tool_name") else ""
        terminal.say("")
        terminal.say(terminal.tint(f"[{number}] {role}{tool}", _COLOURS.get(role, "white")))
        if message.get("thinking"):
            terminal.say(terminal.dim(_cut(str(message["thinking"]), full=full)))
        if message.get("content"):
            terminal.say(_cut(str(message["content"]), full=full))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            arguments = json.dumps(function.get("arguments"), ensure_ascii=False)
            terminal.say(_cut(f"-> {function.get('name')}({arguments})", full=full))


def _cut(text: str, *, full: bool) -> str:
    lines = terminal.plain(text).splitlines()
    if not full and len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"(and {len(lines) - _MOST_LINES} more lines: --full)"]
    return "\n".join(_INDENT + line for line in lines)
