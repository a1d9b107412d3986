"""The records by themselves: one message, those around it, a session page by page; lists to find one's way by."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute, as_project
from daemon.cli.subcommands.recall_options import ask, with_options

INDENT = "    "


@click.command()
@click.argument("message")
@with_options("recall_get", "messageID")
@click.pass_obj
def get(settings: Settings, /, *, message: str, as_json: bool, **options: Any) -> None:
    """Show MESSAGE (its id, as recall gives it) in full, tool outputs as they were before OpenCode pruned them.

    \b
    Example:
      reconstitute recall-get msg_0123456789abcdefghijklmnop
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_get", as_json, options, messageID=message)
    if not as_json:
        _show_where(answer)
        _show_item(answer)


@click.command()
@click.argument("message")
@with_options("recall_context", "messageID")
@click.pass_obj
def context(settings: Settings, /, *, message: str, as_json: bool, **options: Any) -> None:
    """Show the messages around MESSAGE (its id, as recall gives it).

    \b
    Examples:
      reconstitute recall-context msg_0123456789abcdefghijklmnop --window 2
      reconstitute recall-context msg_0123456789abcdefghijklmnop --format messages --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_context", as_json, options, messageID=message)
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
def messages(settings: Settings, /, *, session: str, as_json: bool, **options: Any) -> int:
    """Show the messages of SESSION (its id) in order, a page at a time; by default of this folder's latest.

    Ends with 4 if there are none.

    \b
    Examples:
      reconstitute recall-messages --role user --limit 5
      reconstitute recall-messages ses_0123456789abcdefghijklmnop --offset 10
      reconstitute recall-messages --query npm --reverse
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_messages", as_json, options, sessionID=session)
    page = answer.get("messages") or []
    if not as_json:
        _show_where(answer)
        show_all(page)
        _show_page(answer.get("pagination") or {})
    return 0 if page else NOTHING


def _show_item(item: dict[str, Any]) -> None:
    """One message with its parts."""
    message = item.get("message") or {}
    facts = [
        terminal.moment(message.get("time")),
        str(message.get("agent") or ""),
        str(message.get("model") or ""),
        terminal.identifier(message.get("id") or ""),
        "deleted in OpenCode" if message.get("deleted") else "",
    ]
    mark = "▶ " if item.get("center") else ""
    details = " · ".join(fact for fact in facts if fact)
    terminal.say(
        f"{terminal.bold(mark + str(message.get('role') or ''))} {terminal.dim('· ' + terminal.line(details))}"
    )
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
    return "\n".join(f"{name}: {content}" for name, content in value.items())


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
    places = [terminal.identifier(where[key]) for key in ("directory", "sessionID") if where.get(key)]
    terminal.say(f"{terminal.bold(title)} {terminal.dim('· ' + terminal.line(' · '.join(places)))}")
    terminal.say()


def _show_page(page: dict[str, Any]) -> None:
    offset, returned, total = (int(page.get(key) or 0) for key in ("offset", "returned", "total"))
    if page.get("hasMore"):
        next_page = f"; more: --offset {offset + returned}"
        terminal.say(
            terminal.dim(f"{offset + 1} to {offset + returned} of {terminal.count(total, 'message')}{next_page}")
        )


# -- lists -----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("words", nargs=-1, metavar="[TITLE]...")
@with_options("recall_sessions", "search")
@click.pass_obj
def sessions(settings: Settings, /, *, words: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """List sessions, latest first; with TITLE those whose title contains it. Ends with 4 if there are none.

    \b
    Examples:
      reconstitute recall-sessions
      reconstitute recall-sessions rate limit --scope project
      reconstitute recall-sessions --directory ~/projects/shop --within project --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_sessions", as_json, options, search=" ".join(words))
    matches = answer.get("sessions") or []
    if not as_json:
        for session in matches:
            _show_session(session)
        if not matches:
            terminal.say("There is no such session.")
        elif answer.get("hasMore"):
            terminal.say(terminal.dim(f"{len(matches)} of {answer.get('total')}; --limit or --offset shows more"))
    return 0 if matches else NOTHING


def _show_session(session: dict[str, Any]) -> None:
    times = session.get("time") or {}
    facts = [
        terminal.moment(times.get("updated")),
        terminal.count(session.get("messages", 0), "message"),
        "archived" if session.get("archived") else "",
        "deleted in OpenCode" if session.get("deleted") else "",
        "sub-agent" if session.get("parentID") else "",
    ]
    title = " ".join(str(session.get("title") or "(no title)").split())
    terminal.say(f"{terminal.bold(title)} {terminal.dim('· ' + ' · '.join(fact for fact in facts if fact))}")
    places = [terminal.identifier(session[key]) for key in ("directory", "id") if session.get(key)]
    terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(places))))


@click.command()
@click.argument("anchor", default="")
@with_options("recall_timeline", "anchor")
@click.pass_obj
def timeline(settings: Settings, /, *, anchor: str, as_json: bool, **options: Any) -> int:
    """Show what happened around ANCHOR: sessions, prompts and file changes, in order of time.

    ANCHOR is a message id, a session id or a time; by default now. Ends with 4 if there is nothing.

    \b
    Examples:
      reconstitute recall-timeline 2026-05-31
      reconstitute recall-timeline '3d ago' --kind file
      reconstitute recall-timeline msg_0123456789abcdefghijklmnop --format full
    """  # noqa: D301 - click's mark for text that is not to be filled
    if options.get("project"):
        options["project"] = as_project(options["project"])
    answer = ask(settings, "recall_timeline", as_json, options, anchor=anchor)
    entries = answer.get("entries") or []
    if not as_json:
        if answer.get("hasMoreBefore"):
            terminal.say(terminal.dim("… more before; --depth-before N shows it"))
        for entry in entries:
            _show_entry(entry)
        if answer.get("hasMoreAfter"):
            terminal.say(terminal.dim("… more after; --depth-after N shows it"))
        if not entries:
            terminal.say("Nothing is recorded there.")
    return 0 if entries else NOTHING


def _show_entry(entry: dict[str, Any]) -> None:
    mark = "▶" if entry.get("anchor") else " "
    kind = str(entry.get("type") or "")
    change = " ".join(str(entry[key]) for key in ("operation", "path") if entry.get(key))
    text = str(entry.get("text") or "")
    head = terminal.line(change) if change else terminal.plain(text.partition("\n")[0])
    terminal.say(f"{mark} {terminal.dim(terminal.moment(entry.get('time')))}  {kind:<8} {head}")
    title = " ".join(str(entry.get("sessionTitle") or "").split())
    anchor = terminal.identifier(entry.get("messageID") or entry.get("sessionID") or "")
    places = " · ".join(part for part in (title, anchor) if part)
    terminal.say(INDENT + terminal.dim(terminal.line(places)))
    body = text if change else text.partition("\n")[2]
    # The text of a change is its operation and path from the session's directory; what is said already is not repeated.
    is_repeated = bool(change) and "\n" not in text and change.endswith(text.removeprefix(f"{entry.get('operation')} "))
    for line in body.splitlines() if body.strip() and not is_repeated else ():
        terminal.say(INDENT + terminal.plain(line))


@click.command()
@click.argument("path", type=click.Path())
@with_options("recall_files", "path")
@click.pass_obj
def files(settings: Settings, /, *, path: str, as_json: bool, **options: Any) -> int:
    """Show which sessions touched PATH, or anything beneath it. Ends with 4 if none did.

    \b
    Examples:
      reconstitute recall-files src/cart.py
      reconstitute recall-files ~/projects/shop --mentions
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(path) if path.strip() else ""
    answer = ask(settings, "recall_files", as_json, options, path=path)
    matches = answer.get("sessions") or []
    if not as_json:
        for session in matches:
            _show_touching(session)
        if matches and answer.get("total", 0) > len(matches):
            terminal.say(terminal.dim(f"{len(matches)} of {answer['total']}; --limit shows more"))
    return 0 if matches else NOTHING


def _show_touching(session: dict[str, Any]) -> None:
    title = " ".join(str(session.get("title") or "(no title)").split())
    facts = [
        terminal.moment(session.get("last")),
        *(terminal.count(session[key], key[:-1]) for key in ("changes", "reads") if session.get(key)),
        f"{session['unclear']} unclear" if session.get("unclear") else "",
        "only mentioned" if session.get("mentionOnly") else "",
        "archived" if session.get("archived") else "",
        "deleted in OpenCode" if session.get("deleted") else "",
    ]
    terminal.say(f"{terminal.bold(title)} {terminal.dim('· ' + ' · '.join(fact for fact in facts if fact))}")
    places = [terminal.identifier(session[key]) for key in ("directory", "sessionID") if session.get(key)]
    terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(places))))
    for path in session.get("files") or ():
        terminal.say(INDENT + terminal.line(path))
    if session.get("moreFiles"):
        terminal.say(INDENT + terminal.dim(f"and {session['moreFiles']} more"))
