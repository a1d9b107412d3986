"""``reconstitute search``: what was said, asked and done, found by words and by meaning."""

from __future__ import annotations

from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.cli.subcommands.recall import show_result
from daemon.cli.subcommands.recall_messages import show_all
from daemon.cli.subcommands.recall_options import Searching

_NAMES = {
    "role": "role", "created": "time", "kind": "kind", "tool": "toolName", "title": "sessionTitle",
    "session_id": "sessionID", "message_id": "messageID", "directory": "directory", "snippet": "snippet",
    "terms": "matchedTerms", "deleted": "deleted",
}  # fmt: skip


@click.command(cls=Searching)
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
        show_result(_as_result(hit))
    if not hits:
        terminal.say(f"Nothing found for {terminal.plain(query)!r}. Other words, or --mode semantic, may find it.")
    show_all(answer.get("messages") or [])
    if hits and not context:
        terminal.say(
            terminal.dim("For the conversation around these: the same command with --context; for programs: --json.")
        )


def _as_result(hit: dict[str, Any]) -> dict[str, Any]:
    """A hit of `search` by the names that `recall` has for the same."""
    return {new: hit.get(old) for old, new in _NAMES.items()}
