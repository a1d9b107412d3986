"""``recall-get``, ``recall-context``, ``recall-messages``: messages as recorded: one, those around it, a page."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings
from daemon.cli.subcommands.recall_options import ask, with_options

INDENT = "    "


@click.command()
@click.argument("message")
@with_options("recall_get", "messageID")
@click.pass_obj
def get(settings: Settings, /, *, message: str, as_json: bool, **given: Any) -> None:
    """Show MESSAGE (its id, as recall gives it) in full, tool outputs as they were before OpenCode pruned them.

    \b
    Example:
      reconstitute recall-get msg_0123456789abcdefghijklmnop
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_get", as_json, given, messageID=message)
    if not as_json:
        _show_where(answer)
        _show_item(answer)


@click.command()
@click.argument("message")
@with_options("recall_context", "messageID")
@click.pass_obj
def context(settings: Settings, /, *, message: str, as_json: bool, **given: Any) -> None:
    """Show the messages around MESSAGE (its id, as recall gives it).

    \b
    Examples:
      reconstitute recall-context msg_0123456789abcdefghijklmnop --window 2
      reconstitute recall-context msg_0123456789abcdefghijklmnop --format messages --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_context", as_json, given, messageID=message)
    if as_json:
        return
    _show_where(answer)
    if answer.get("hasMoreBefore"):
        terminal.say(terminal.dim("… more before; --before N shows it"))
    show_all(answer.get("messages") or [])
    if answer.get("hasMoreAfter"):
        terminal.say(terminal.dim("… more after; --after N shows it"))


@click.command()
@click.argument("session", default="")
@with_options("recall_messages", "sessionID")
@click.pass_obj
def messages(settings: Settings, /, *, session: str, as_json: bool, **given: Any) -> int:
    """Show the messages of SESSION (its id) in order, a page at a time; without it, of this folder's latest session.

    Ends with 4 when there are none.

    \b
    Examples:
      reconstitute recall-messages --role user --limit 5
      reconstitute recall-messages ses_0123456789abcdefghijklmnop --offset 10
      reconstitute recall-messages --query npm --reverse
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_messages", as_json, given, sessionID=session)
    shown = answer.get("messages") or []
    if not as_json:
        _show_where(answer)
        show_all(shown)
        _show_page(answer.get("pagination") or {})
    return 0 if shown else NOTHING


def _show_item(item: dict[str, Any]) -> None:
    """One message with its parts."""
    message = item.get("message") or {}
    facts = [
        terminal.moment(message.get("time")),
        str(message.get("agent") or ""),
        str(message.get("model") or ""),
        str(message.get("id") or ""),
        "deleted in OpenCode" if message.get("deleted") else "",
    ]
    mark = "▶ " if item.get("center") else ""
    rest = " · ".join(fact for fact in facts if fact)
    terminal.say(f"{terminal.bold(mark + str(message.get('role') or ''))} {terminal.dim('· ' + terminal.line(rest))}")
    if message.get("error"):
        terminal.say(INDENT + terminal.tint(terminal.line(message["error"]), "red"))
    for part in item.get("parts") or ():
        _show_part(part)
    if item.get("partsOmitted"):
        terminal.say(INDENT + terminal.dim(f"{terminal.count(item['partsOmitted'], 'part')} left out"))
    terminal.say()


def _show_part(part: dict[str, Any]) -> None:
    kind = str(part.get("type") or "")
    if kind == "tool":
        facts = [str(part.get(key) or "") for key in ("toolName", "status", "title")]
        facts += ["pruned in OpenCode"] if part.get("pruned") else []
        terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(fact for fact in facts if fact))))
    elif kind not in ("", "text") and part.get("content"):
        terminal.say(INDENT + terminal.dim(terminal.line(kind)))
    for key in ("content", "input", "output", "error"):
        if part.get(key):
            value = part[key] if isinstance(part[key], str) else _lines(part[key])
            terminal.say(textwrap.indent(terminal.plain(value), INDENT + ("  " if kind == "tool" else "")))


def _lines(value: Any) -> str:
    """What a tool was given, a line a field."""
    if not isinstance(value, dict):
        return str(value)
    return "\n".join(f"{name}: {given}" for name, given in value.items())


def _show_message(message: dict[str, Any]) -> None:
    """One chat message, as a model is sent it."""
    name = message.get("tool_name")
    terminal.say(terminal.bold(f"{message.get('role', '')}{f' ({name})' if name else ''}"))
    if message.get("content"):
        terminal.say(textwrap.indent(terminal.plain(message["content"]), INDENT))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        terminal.say(INDENT + terminal.dim(f"calls {terminal.line(function.get('name', '?'))}"))
    terminal.say()


def show_all(messages: list[dict[str, Any]]) -> None:
    """Messages as recorded, or as a model is sent them."""
    for message in messages:
        if "parts" in message:
            _show_item(message)
        else:
            _show_message(message)


def _show_where(answer: dict[str, Any]) -> None:
    where = answer.get("context") or {}
    title = " ".join(str(where.get("sessionTitle") or "").split())
    places = [str(where[key]) for key in ("directory", "sessionID") if where.get(key)]
    terminal.say(f"{terminal.bold(title)} {terminal.dim('· ' + terminal.line(' · '.join(places)))}")
    terminal.say()


def _show_page(page: dict[str, Any]) -> None:
    offset, returned, total = (int(page.get(key) or 0) for key in ("offset", "returned", "total"))
    if page.get("hasMore"):
        more = f"; more: --offset {offset + returned}"
        terminal.say(terminal.dim(f"{offset + 1} to {offset + returned} of {terminal.count(total, 'message')}{more}"))
