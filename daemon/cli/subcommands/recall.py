"""``reconstitute search``, or ``recall``: the best results first, with where, when and why."""

from __future__ import annotations

from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings
from daemon.cli.subcommands.recall_options import Searching, ask, with_options
from daemon.cli.subcommands.recall_records import show_all
from daemon.hints import command, for_commands

INDENT = "    "
SNIPPET_LINES = 8
_LABELS = {"semantic": "by meaning"}
"""Labels of match modes other than by words. A result that matched only similar words has `near`."""
_ONLY_SIMILAR = "No message contains what you searched for. These are only similar, in meaning or in spelling:"
FEW = 3
"""With fewer results than this, suggestions are shown as well."""


@click.command(cls=Searching)
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@with_options("recall", "query")
@click.pass_obj
def recall(settings: Settings, /, *, words: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Search everything that was said, done and printed in all recorded sessions.

    `search` and `recall` are the same command. If no message holds your words, the first line says so, and the results
    are messages of similar meaning. Ends with 4 if nothing is found.

    \b
    Examples:
      reconstitute search rate limit
      reconstitute search --match fuzzy ECONNREFUSD --last 30d
      reconstitute search --match literal --tool bash 'npm test'
      reconstitute search why a list --directory . --role assistant --expand context
      reconstitute search migration --group session --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    query = " ".join(words)
    answer = ask(settings, "recall", as_json, options, query=query)
    results = answer.get("results") or []
    if not as_json:
        _show(answer, results, query)
    return 0 if results else NOTHING


def _show(answer: dict[str, Any], results: list[dict[str, Any]], query: str) -> None:
    if answer.get("onlySimilar"):
        terminal.say(terminal.fold(_ONLY_SIMILAR, ""))
        terminal.say()
    for result in results:
        show_result(result)
    for expanded in answer.get("expanded") or ():
        _show_expanded(expanded)
    if not results:
        terminal.say(f"Nothing found for {terminal.plain(query)!r}.")
    if len(results) < FEW:
        for miss in answer.get("nearMisses") or ():
            terminal.say(terminal.dim(terminal.fold(_miss(miss), "", INDENT)))
        for suggestion in answer.get("suggestions") or ():
            terminal.say(terminal.dim(terminal.fold(_suggestion(suggestion), "", INDENT)))


def show_result(result: dict[str, Any]) -> None:
    """One result: what and when, where, and the words around the match."""
    kind = "/".join(str(result[key]) for key in ("kind", "toolName") if result.get(key))
    count = result.get("hitCount") or 0
    copies = (result.get("copies") or {}).get("count") or 0
    facts = [
        str(result.get("role") or ""),
        terminal.moment(result.get("time")),
        kind,
        _LABELS.get(str(result.get("matchMode")), "near match" if result.get("near") else ""),
        terminal.count(count, "hit") if count > 1 else "",
        f"and {copies} {'copy' if copies == 1 else 'copies'}" if copies else "",
        "archived" if result.get("archived") else "",
        "deleted in OpenCode" if result.get("deleted") else "",
    ]
    details = " · ".join(fact for fact in facts if fact)
    title = " ".join(str(result.get("sessionTitle") or terminal.identifier(result.get("sessionID") or "")).split())
    limit = max(20, terminal.width() - terminal.columns(details) - 3)
    terminal.say(f"{terminal.bold(terminal.shorten(title, limit))} {terminal.dim('· ' + details)}")
    places = [terminal.identifier(result[key]) for key in ("directory", "sessionID", "messageID") if result.get(key)]
    terminal.say(INDENT + terminal.dim(terminal.line(" · ".join(places))))
    for line in snippet_lines(str(result.get("snippet") or "")):
        terminal.say(INDENT + terminal.mark(line, result.get("matchedTerms")))
    for reason in _remarks(result):
        terminal.say(terminal.dim(terminal.fold(reason, INDENT, INDENT)))
    terminal.say()


def snippet_lines(snippet: str) -> list[str]:
    """The snippet folded to the terminal; its own line breaks and indentation stay, empty lines go."""
    limit = terminal.width() - len(INDENT)
    lines: list[str] = []
    for line in terminal.plain(snippet).expandtabs(4).splitlines():
        lines += terminal.wrap(line, limit)
    return [*lines[:SNIPPET_LINES], "…"] if len(lines) > SNIPPET_LINES else lines


def _remarks(result: dict[str, Any]) -> list[str]:
    """Which indexed words matched in place of the query's, and what --explain adds."""
    pairs = [pair for pair in result.get("near") or () if isinstance(pair, list) and len(pair) == 2]
    spelt = [f"{indexed_word} for {word}" for word, indexed_word in pairs]
    reasons = [str(reason) for reason in result.get("matchReasons") or ()]
    return [
        *([f"near: {', '.join(spelt)}"] if spelt else []),
        *([f"score {result.get('score')}: {'; '.join(reasons)}"] if reasons else []),
    ]


def _miss(miss: dict[str, Any]) -> str:
    """One near miss: a session and why it almost matched."""
    place = " · ".join(terminal.identifier(miss[key]) for key in ("title", "sessionID") if miss.get(key))
    terms = f" ({', '.join(map(str, miss['terms']))})" if miss.get("terms") else ""
    return f"near: {place}: {miss.get('reason', '')}{terms}"


def _suggestion(suggestion: dict[str, Any]) -> str:
    """One suggestion, with the command that follows it."""
    text = for_commands(f"try: {suggestion.get('action', '')} ({suggestion.get('reason', '')})")
    example = suggestion.get("example")
    return f"{text}: {command('recall', example)}" if isinstance(example, dict) and example.get("query") else text


def _show_expanded(expanded: dict[str, Any]) -> None:
    number = int(expanded.get("resultIndex") or 0) + 1
    terminal.say(terminal.bold(f"Result {number} in full"))
    terminal.say()
    elsewhere = {int(earlier["resultIndex"]) + 1 for earlier in expanded.get("shownBefore") or ()}
    for shown_with in sorted(elsewhere):
        terminal.say(terminal.dim(f"{INDENT}in part shown above, with result {shown_with}"))
    message = expanded.get("message")
    show_all([message] if isinstance(message, dict) else expanded.get("messages") or [])
