"""``reconstitute search``: what was said, asked and done, found by words and by meaning."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings

INDENT = "    "
SNIPPET_LINES = 8


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", metavar="N", type=click.IntRange(1, 200), default=10, show_default=True, help="Most results.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "literal", "semantic"]),
    default="hybrid",
    show_default=True,
    help="By words and meaning, by words only, by meaning only.",
)
@click.option("--context", is_flag=True, help="Add the conversation around the results.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(settings: Settings, *, words: tuple[str, ...], limit: int, mode: str, context: bool, as_json: bool) -> None:
    """Find WORDS in everything that is archived.

    \b
    Examples:
      reconstitute search rate limit
      reconstitute search --mode literal 'def rate_limit('
      reconstitute search --context --json "why a list" > context.json
    """  # noqa: D301 - click's mark for text that is not to be filled
    query = " ".join(words)
    answer = settings.ask(lambda service: service.search(query, mode=mode, limit=limit, context=context))
    if as_json:
        terminal.data(answer)
        return
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    hits = answer.get("hits") or []
    for hit in hits:
        _show_hit(hit)
    if not hits:
        terminal.say(f"Nothing found for {terminal.plain(query)!r}. Other words, or --mode semantic, may find it.")
    for message in answer.get("messages") or ():
        _show_message(message)
    if hits and not context:
        terminal.say(
            terminal.dim("For the conversation around these: the same command with --context; for programs: --json.")
        )


def _show_hit(hit: dict[str, Any]) -> None:
    kind = "/".join(str(hit[key]) for key in ("kind", "tool") if hit.get(key))
    facts = [str(hit.get("role", "")), terminal.moment(hit.get("created")), kind]
    if hit.get("deleted"):
        facts.append("deleted in OpenCode")
    title = " ".join(str(hit.get("title") or hit.get("session_id", "")).split())
    rest = " · ".join(fact for fact in facts if fact)
    room = max(20, terminal.width() - len(rest) - 3)
    terminal.say(f"{terminal.bold(textwrap.shorten(title, room, placeholder='…'))} {terminal.dim('· ' + rest)}")
    for line in _lines(str(hit.get("snippet", ""))):
        terminal.say(INDENT + terminal.mark(line, hit.get("terms")))
    terminal.say()


def _lines(snippet: str) -> list[str]:
    """The snippet folded to the terminal; its own line breaks and indentation stay, empty lines go."""
    room = terminal.width() - len(INDENT)
    lines: list[str] = []
    for line in terminal.plain(snippet).expandtabs(4).splitlines():
        lines += textwrap.wrap(line, room, drop_whitespace=True, replace_whitespace=False, tabsize=4)
    return [*lines[:SNIPPET_LINES], "…"] if len(lines) > SNIPPET_LINES else lines


def _show_message(message: dict[str, Any]) -> None:
    name = message.get("tool_name")
    terminal.say(terminal.bold(f"{message.get('role', '')}{f' ({name})' if name else ''}"))
    if message.get("content"):
        terminal.say(textwrap.indent(terminal.plain(message["content"]), INDENT))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        terminal.say(INDENT + terminal.dim(f"calls {function.get('name', '?')}"))
    terminal.say()
