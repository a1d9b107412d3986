"""``recall-sessions``, ``recall-timeline``, ``recall-files``: lists to find one's way by."""

from __future__ import annotations

from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute, as_project
from daemon.cli.subcommands.recall_options import ask, with_options

INDENT = "    "


@click.command()
@click.argument("words", nargs=-1, metavar="[TITLE]...")
@with_options("recall_sessions", "search")
@click.pass_obj
def sessions(settings: Settings, /, *, words: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """List sessions, latest first; with TITLE those whose title contains it. Ends with 4 when there are none.

    \b
    Examples:
      reconstitute recall-sessions
      reconstitute recall-sessions rate limit --scope project
      reconstitute recall-sessions --directory ~/projects/shop --within project --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = ask(settings, "recall_sessions", as_json, given, search=" ".join(words))
    found = answer.get("sessions") or []
    if not as_json:
        for session in found:
            _show_session(session)
        if not found:
            terminal.say("There is no such session.")
        elif answer.get("hasMore"):
            terminal.say(terminal.dim(f"{len(found)} of {answer.get('total')}; --limit or --offset shows more"))
    return 0 if found else NOTHING


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
    places = [str(session[key]) for key in ("directory", "id") if session.get(key)]
    terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(places))))


@click.command()
@click.argument("anchor", default="")
@with_options("recall_timeline", "anchor")
@click.pass_obj
def timeline(settings: Settings, /, *, anchor: str, as_json: bool, **given: Any) -> int:
    """Show what happened around ANCHOR: sessions, prompts and file changes, in order of time.

    ANCHOR is a message id, a session id or a time; now when it is not given. Ends with 4 when there is nothing.

    \b
    Examples:
      reconstitute recall-timeline 2026-05-31
      reconstitute recall-timeline '3d ago' --kind file
      reconstitute recall-timeline msg_0123456789abcdefghijklmnop --format full
    """  # noqa: D301 - click's mark for text that is not to be filled
    if given.get("project"):
        given["project"] = as_project(given["project"])
    answer = ask(settings, "recall_timeline", as_json, given, anchor=anchor)
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
    what = " ".join(str(entry[key]) for key in ("operation", "path") if entry.get(key))
    text = str(entry.get("text") or "")
    head = terminal.line(what) if what else terminal.plain(text.partition("\n")[0])
    terminal.say(f"{mark} {terminal.dim(terminal.moment(entry.get('time')))}  {kind:<8} {head}")
    title = " ".join(str(entry.get("sessionTitle") or "").split())
    places = " · ".join(str(part) for part in (title, entry.get("messageID") or entry.get("sessionID")) if part)
    terminal.say(INDENT + terminal.dim(terminal.line(places)))
    rest = text if what else text.partition("\n")[2]
    # The text of a change is its operation and path from the session's directory; what is said already is not repeated.
    is_said = bool(what) and "\n" not in text and what.endswith(text.removeprefix(f"{entry.get('operation')} "))
    for line in rest.splitlines() if rest.strip() and not is_said else ():
        terminal.say(INDENT + terminal.plain(line))


@click.command()
@click.argument("path")
@with_options("recall_files", "path")
@click.pass_obj
def files(settings: Settings, /, *, path: str, as_json: bool, **given: Any) -> int:
    """Show which sessions touched PATH, or anything beneath it. Ends with 4 when none did.

    \b
    Examples:
      reconstitute recall-files src/cart.py
      reconstitute recall-files ~/projects/shop --mentions
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(path) if path.strip() else ""
    answer = ask(settings, "recall_files", as_json, given, path=path)
    found = answer.get("sessions") or []
    if not as_json:
        for session in found:
            _show_touching(session)
        if found and answer.get("total", 0) > len(found):
            terminal.say(terminal.dim(f"{len(found)} of {answer['total']}; --limit shows more"))
    return 0 if found else NOTHING


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
    places = [str(session[key]) for key in ("directory", "sessionID") if session.get(key)]
    terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(places))))
    for path in session.get("files") or ():
        terminal.say(INDENT + terminal.line(path))
    if session.get("moreFiles"):
        terminal.say(INDENT + terminal.dim(f"and {session['moreFiles']} more"))
