"""``reconstitute status`` shows what is archived, indexed, waiting and wrong; ``index`` reads everything now."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import click
from msgspec import UNSET

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.control import calls
from daemon.control.answers import SourceStatus, Status
from daemon.doctor.rows import exit_code
from daemon.errors import Retry
from daemon.hints import not_searchable

LABEL = 10
_WORKS = {
    "intake": "reading sessions",
    "words": "indexing words",
    "embed": "embedding",
    "views": "file lists",
    "erasure": "erasing what was forgotten",
    "jobs": "requests and pages",
}
_EXCLUDED = {
    "sessionsByProjects": ("session", "{} excluded by projects"),
    "sessionsByAgents": ("session", "{} excluded by agents"),
    "messagesByAgents": ("message", "{} excluded by agents"),
    "messagesWithExcludedTasks": ("message", "{} with tasks of excluded agents"),
    "messagesByPaths": ("message", "{} with content excluded by paths"),
    "messagesWithPrivateBlocks": ("message", "{} with private blocks"),
    "messagesWithLargeRecords": ("message", "{} with a large record that may hold what is excluded"),
}
LISTED = 5
"""Most entries shown of a kind: of what a source could not give (the newest first), of a target's warnings."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def status(settings: Settings, as_json: bool) -> int:
    """Show what is archived, indexed and waiting, how far it is behind, and the last errors.

    It reads nothing new. Ends with 0, with 1 if something needs attention, and with 2 if something is broken; see
    `reconstitute doctor`.

    \b
    Example:
      reconstitute status
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = settings.ask(calls.Status())
    if as_json:
        terminal.data(answer)
        return exit_code(answer.troubles)
    terminal.say(_headline(answer))
    sections: dict[str, Callable[[Status], Iterator[str]]] = {
        "Attention": _troubles,
        "Disk": _disk,
        "Paused": _paused,
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
    return exit_code(answer.troubles)


def _headline(answer: Status) -> str:
    name = f"Reconstitute {terminal.plain(answer.version)}"
    if answer.running:
        return f"{name}, running as process {answer.pid} since {terminal.moment(answer.started)}"
    return f"{name}, not running; start it with: reconstitute service install"


def _troubles(answer: Status) -> Iterator[str]:
    for row in answer.troubles:
        yield f"{row.what}: {row.message}"
        if row.fix:
            yield f"  → {row.fix}"


def _disk(answer: Status) -> Iterator[str]:
    if answer.disk:
        works = ", ".join(_WORKS.get(work, work) for work in answer.disk.paused)
        yield f"full since {terminal.moment(answer.disk.since)}: {answer.disk.reason}"
        yield f"  waiting for free space: {works}; work goes on by itself when there is some, and nothing is lost"


def _paused(answer: Status) -> Iterator[str]:
    if answer.pause:
        until = "until it is resumed" if answer.pause.until is None else f"until {terminal.moment(answer.pause.until)}"
        yield f"by you since {terminal.moment(answer.pause.since)}, {until}: new messages are archived, but neither"
        yield "  indexed nor embedded, and no pages are made; to go on: reconstitute pause --resume"


def _settings(answer: Status) -> Iterator[str]:
    if answer.config_file:
        is_there = os.path.exists(answer.config_file)
        yield f"{answer.config_file}{'' if is_there else ' (not there; the defaults apply)'}"
    if answer.differs:
        keys = ", ".join(answer.differs)
        yield f"the running service uses another configuration than this command: {keys}; restart it to use yours"


def _archive(answer: Status) -> Iterator[str]:
    archive = answer.archive
    counted = {"session": archive.sessions, "message": archive.messages, "part": archive.parts}
    counts = [terminal.count(number, noun) for noun, number in counted.items() if number is not UNSET]
    if archive.bytes is not UNSET:
        counts.append(terminal.size(archive.bytes))
    if counts:
        yield ", ".join(counts)
    if archive.dir:
        yield archive.dir
    if archive.backup_before_migration:
        yield f"{archive.backup_before_migration}: from before the upgrade; remove it when all is well"
    if answer.sizes.total:
        sizes = answer.sizes
        parts = {"archive": sizes.archive, "words": sizes.words, "meaning": sizes.meaning, "large records": sizes.large}
        listed = ", ".join(f"{name} {terminal.size(count)}" for name, count in parts.items() if count)
        free = "" if answer.free_bytes is None else f"; {terminal.size(answer.free_bytes)} free"
        yield f"{terminal.size(sizes.total)} on the disk ({listed}){free}"
    if answer.newest:
        yield f"newest message {terminal.moment(answer.newest)}{_behind(answer.lag_seconds)}"
    large = archive.large
    if large.count:
        records = terminal.count(large.count, "record")
        yield f"{records} over limits.record_mb, {terminal.size(large.bytes)}, kept whole as files, not searched:"
        for record in large.records[:LISTED]:
            of_part = f", part {record['part']}" if record.get("part") else ""
            yield f"  message {terminal.identifier(record.get('message', '?'))}{of_part}: {record.get('file', '?')}"


def _behind(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", {terminal.duration(seconds)} behind the sources" if seconds else ", up to date with the sources"


def _sources(answer: Status) -> Iterator[str]:
    if not answer.sources:
        yield "none found: OpenCode has written nothing yet, or writes elsewhere; then set opencode.data_dir"
    for source in answer.sources:
        yield from _source(source)
    db = os.environ.get("OPENCODE_DB", "")
    rows = [row for row in answer.sources if not row.state.startswith("not followed")]
    followed = [row.name.removeprefix("db:").removeprefix("db2:") for row in rows]
    if db not in ("", ":memory:") and not any(name == db or name.endswith(f"/{db}") for name in followed):
        yield (
            f"OPENCODE_DB is {db} in this shell, but the service does not follow it; add it to opencode.databases, "
            f"or run again: reconstitute service install"
        )


def _source(source: SourceStatus) -> Iterator[str]:
    scanned = f", last scan {terminal.moment(source.last_scan)}" if source.last_scan else ""
    yield f"{source.name}: {source.state}, {source.kind}{scanned}"
    words = {
        "messages found": source.seen,
        "archived": source.kept,
        "skipped": source.skipped or UNSET,
        "unreadable, kept aside": source.quarantined or UNSET,
    }
    counts = [f"{number} {text}" for text, number in words.items() if number is not UNSET]
    if counts:
        yield "  " + ", ".join(counts)
    if source.excluded:
        shown = [
            text.format(terminal.count(source.excluded[name], noun))
            for name, (noun, text) in _EXCLUDED.items()
            if source.excluded.get(name)
        ]
        yield "  " + ", ".join(shown)
    for entry in (source.set_aside or [])[:LISTED]:
        yield "    " + _shortened(f"{entry.get('place', '?')}: {entry.get('reason', '')}", LABEL + 4)
    if source.unknown:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(source.unknown.items()))
        yield f"  of unknown type, so not searchable: {kinds}"


def _shortened(text: str, indent: int) -> str:
    """`text` on one line of the terminal behind `indent` columns."""
    return terminal.shorten(terminal.plain(text), terminal.width() - indent)


def _waiting(answer: Status) -> Iterator[str]:
    if answer.outbox:
        by_words, by_meaning = (answer.outbox.get(stage, 0) for stage in ("lexical", "semantic"))
        tools = answer.outbox.get("tools", 0)
        counts = not_searchable(by_words, by_meaning, tools)
        seconds_left = max(table.get("secondsLeft") or 0 for table in ({}, *answer.index.values()))
        counts += f"; about {terminal.duration(seconds_left)} left" if counts and seconds_left else ""
        yield counts or "nothing; every message is indexed"
        rates, is_behind = answer.rates, bool(answer.lag_seconds)
        measured = {
            "{} messages archived": rates.archived if is_behind else None,
            "{} messages indexed by words": rates.words if by_words else None,
            "{} texts embedded": rates.embedded if by_meaning or tools else None,
        }
        shown = [text.format(f"{rate:,.3g}") for text, rate in measured.items() if rate]
        if shown:
            yield f"in a second: {', '.join(shown)}"


def _indexes(answer: Status) -> Iterator[str]:
    names = {"lexical": "words", "semantic": "meaning"}
    for key, index in answer.index.items():
        facts = [str(index.get("state", "?"))]
        facts += [terminal.count(index["count"], "entry", "entries")] if index.get("count") is not None else []
        facts += [str(index["embedder"])] if index.get("embedder") else []
        facts += [terminal.count(index["notes"], "note")] if index.get("notes") else []
        facts += [f"{index['refused']} refused by the model"] if index.get("refused") else []
        yield f"{names.get(key, key)}: {', '.join(facts)}"
        if index.get("unread"):
            unread = terminal.count(index["unread"], "message")
            yield f"  the model cannot read {unread}, found by words only; a multilingual one can (embedding.model_dir)"


def _answers(answer: Status) -> Iterator[str]:
    if answer.answers:
        yield answer.answers


def _targets(answer: Status) -> Iterator[str]:
    for target in answer.targets:
        last = f"last run {terminal.moment(target.last_run)}" if target.last_run else ""
        facts = ", ".join(fact for fact in (target.state, target.schedule or target.refresh, last) if fact)
        yield f"{target.path}: {facts}"
        if target.unanswered:
            waits = "waits" if target.unanswered == 1 else "wait"
            yield f"  {terminal.count(target.unanswered, 'question')} {waits} for the model"
        yield from (f"  {warning}" for warning in target.warnings[:LISTED])
        if len(target.warnings) > LISTED:
            yield f"  and {terminal.count(len(target.warnings) - LISTED, 'warning')} more; status --json has them all"


def _jobs(answer: Status) -> Iterator[str]:
    if answer.jobs:
        yield f"{answer.jobs.running or 'none'} running, {answer.jobs.queued} queued"


def _watching(answer: Status) -> Iterator[str]:
    if answer.watch:
        yield answer.watch


def _errors(answer: Status) -> Iterator[str]:
    for error in answer.errors[-LISTED:]:
        yield f"{terminal.moment(error.time)} {error.where}: {error.message}"


@click.command()
@click.option("--wait", is_flag=True, help="Wait until everything can be searched by meaning, too.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def index(settings: Settings, wait: bool, as_json: bool) -> int:
    """Read everything OpenCode has now into the archive, and index its words.

    The running service does this by itself; without one, run this before a search.
    Search by meaning needs more time: see --wait.
    Ends with 75 if nothing was new and not everything could be done.

    \b
    Examples:
      reconstitute index
      reconstitute index --wait
    """  # noqa: D301 - click's mark for text that is not to be filled
    answer = settings.ask(calls.Index(wait=wait))
    code = Retry.exit_code if answer.warnings and not answer.changed else 0
    if as_json:
        terminal.data(answer)
        return code
    terminal.notes(answer.warnings)
    counts = {
        f"record{'' if answer.changed == 1 else 's'} new or changed": answer.changed,
        "deleted by OpenCode and kept here": answer.removed,
        "embedded": answer.embedded,
        "unreadable, kept aside": answer.quarantined,
    }
    changes = [f"{count} {text}" for text, count in counts.items() if count]
    no_change = (
        "nothing new, but not everything could be read or embedded; see above" if answer.warnings else "nothing new"
    )
    terminal.say(terminal.plain("; ".join(changes) or no_change) + ".")
    if answer.waiting:
        terminal.note(not_searchable(meaning=answer.waiting, is_served=answer.running))
    return code
