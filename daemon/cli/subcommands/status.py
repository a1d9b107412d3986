"""``reconstitute status``: what is archived, indexed, waiting and wrong, in 80 columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings

LABEL = 10
_WORKS = {
    "intake": "reading and capturing",
    "words": "indexing words",
    "embed": "embedding",
    "views": "file lists",
    "jobs": "requests and pages",
}
SET_ASIDE = 5
"""Most entries shown of a kind: of what a source could not give (the newest first), of a target's warnings."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(settings: Settings, as_json: bool) -> None:
    """Show what is archived, indexed and waiting, and the last errors.

    \b
    Example:
      reconstitute status
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = settings.ask(lambda service: service.status())
    if as_json:
        terminal.data(answer)
        return
    terminal.say(_headline(answer))
    sections: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
        "Disk": _disk,
        "Settings": _settings,
        "Archive": _archive,
        "Sources": _sources,
        "Waiting": _waiting,
        "Indexes": _indexes,
        "Answers": _answers,
        "Targets": _targets,
        "Jobs": _jobs,
        "Watching": _watching,
        "Errors": _errors,
    }
    for label, rows in sections.items():
        for number, row in enumerate(rows(answer)):
            head = label if number == 0 else ""
            folded = terminal.fold(row, " " * LABEL, "  ")
            terminal.say(terminal.bold(head.ljust(LABEL)) + folded[LABEL:])


def _headline(answer: dict[str, Any]) -> str:
    name = f"Reconstitute {terminal.plain(answer.get('version', '?'))}"
    if answer.get("running"):
        return f"{name}, running as process {answer.get('pid', '?')} since {terminal.moment(answer.get('started'))}"
    return f"{name}, not running; start it with: reconstitute service install"


def _disk(answer: dict[str, Any]) -> Iterator[str]:
    disk = answer.get("disk")
    if disk:
        works = ", ".join(_WORKS.get(work, str(work)) for work in disk.get("paused") or ())
        yield f"full since {terminal.moment(disk.get('since'))}: {disk.get('reason', '')}"
        yield f"  waiting for room: {works}; goes on by itself, nothing is lost"


def _settings(answer: dict[str, Any]) -> Iterator[str]:
    if answer.get("differs"):
        keys = ", ".join(map(str, answer["differs"]))
        yield f"the running service works with another configuration than this command's: {keys}; restart it with yours"


def _archive(answer: dict[str, Any]) -> Iterator[str]:
    archive = answer.get("archive") or {}
    counts = [terminal.count(archive[f"{one}s"], one) for one in ("session", "message", "part") if f"{one}s" in archive]
    if "bytes" in archive:
        counts.append(terminal.size(archive["bytes"]))
    if counts:
        yield ", ".join(counts)
    if archive.get("dir"):
        yield str(archive["dir"])
    large = archive.get("large") or {}
    if large.get("count"):
        which = terminal.count(large["count"], "record")
        yield f"{which} over limits.record_mb, {terminal.size(large['bytes'])}, kept whole as files, not searched:"
        for one in (large.get("records") or [])[:SET_ASIDE]:
            of_part = f", part {one['part']}" if one.get("part") else ""
            yield f"  message {one.get('message', '?')}{of_part}: {one.get('file', '?')}"


def _sources(answer: dict[str, Any]) -> Iterator[str]:
    sources = answer.get("sources") or []
    if not sources:
        yield "none found; OpenCode has written nothing yet, or see opencode.data_dir"
    for source in sources:
        scanned = f", last scan {terminal.moment(source['last_scan'])}" if source.get("last_scan") else ""
        yield f"{source.get('name', '?')}: {source.get('state', '?')}, {source.get('kind', '?')}{scanned}"
        words = {"seen": "seen", "kept": "kept", "skipped": "skipped", "quarantined": "kept aside as unreadable"}
        counts = [f"{source[key]} {text}" for key, text in words.items() if source.get(key) is not None]
        if counts:
            yield "  " + ", ".join(counts)
        for entry in (source.get("set_aside") or [])[:SET_ASIDE]:
            yield "    " + _cut(f"{entry.get('place', '?')}: {entry.get('reason', '')}", LABEL + 4)
        unknown = source.get("unknown") or {}
        if unknown:
            yield "  of unknown type, archived but not searchable: " + ", ".join(
                f"{count} {kind}" for kind, count in sorted(unknown.items())
            )
    here = os.environ.get("OPENCODE_DB", "")
    rows = [row for row in sources if not str(row.get("state")).startswith("not followed")]
    followed = [str(row.get("name")).removeprefix("db:").removeprefix("db2:") for row in rows]
    if here not in ("", ":memory:") and not any(name == here or name.endswith(f"/{here}") for name in followed):
        yield (
            f"OPENCODE_DB is {here} in this shell, and the service does not follow it; name it in opencode.databases, "
            f"or type again: reconstitute service install"
        )


def _cut(text: str, indent: int) -> str:
    """`text` on one line of the terminal behind `indent` columns."""
    return terminal.shorten(terminal.plain(text), terminal.width() - indent)


def _waiting(answer: dict[str, Any]) -> Iterator[str]:
    outbox = answer.get("outbox") or {}
    if outbox:
        yield f"{outbox.get('lexical', 0)} to index by words, {outbox.get('semantic', 0)} to embed"


def _indexes(answer: dict[str, Any]) -> Iterator[str]:
    names = {"lexical": "words", "semantic": "meaning"}
    for key, index in (answer.get("index") or {}).items():
        facts = [str(index.get("state", "?"))] if isinstance(index, dict) else [str(index)]
        if isinstance(index, dict):
            facts += [terminal.count(index["count"], "entry", "entries")] if index.get("count") is not None else []
            facts += [str(index["embedder"])] if index.get("embedder") else []
            facts += [terminal.count(index["notes"], "note")] if index.get("notes") else []
            facts += [f"{index['refused']} refused by the model"] if index.get("refused") else []
        yield f"{names.get(key, key)}: {', '.join(facts)}"


def _answers(answer: dict[str, Any]) -> Iterator[str]:
    if answer.get("answers"):
        yield str(answer["answers"])


def _targets(answer: dict[str, Any]) -> Iterator[str]:
    for target in answer.get("targets") or ():
        when = target.get("schedule") or target.get("refresh") or ""
        last = f"last run {terminal.moment(target['last_run'])}" if target.get("last_run") else ""
        facts = ", ".join(str(fact) for fact in (target.get("state"), when, last) if fact)
        yield f"{target.get('path', '?')}: {facts}"
        if target.get("unanswered"):
            waits = "waits" if target["unanswered"] == 1 else "wait"
            yield f"  {terminal.count(target['unanswered'], 'question')} {waits} for the model"
        warnings = target.get("warnings") or []
        yield from (f"  {warning}" for warning in warnings[:SET_ASIDE])
        if len(warnings) > SET_ASIDE:
            yield f"  and {terminal.count(len(warnings) - SET_ASIDE, 'warning')} more; status --json has them all"


def _jobs(answer: dict[str, Any]) -> Iterator[str]:
    jobs = answer.get("jobs") or {}
    if jobs:
        yield f"{jobs.get('running') or 'none'} running, {jobs.get('queued') or 0} queued"


def _watching(answer: dict[str, Any]) -> Iterator[str]:
    if answer.get("watch"):
        yield str(answer["watch"])


def _errors(answer: dict[str, Any]) -> Iterator[str]:
    for error in (answer.get("errors") or [])[-5:]:
        yield f"{terminal.moment(error.get('time'))} {error.get('where', '')}: {error.get('message', '')}"
