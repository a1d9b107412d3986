"""Recorded files: ``files`` lists them, ``history`` shows one's revisions, ``show`` what it held.

``alias`` says that a folder was renamed.
"""

from __future__ import annotations

import base64
import posixpath
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

import click

from daemon.cli import terminal
from daemon.cli.settings import NOT_PROVEN, NOTHING, Settings, absolute
from daemon.control import calls, file_answers
from daemon.control.file_answers import FileLine, FileRevision, RecordedFile
from daemon.moments import written_local

INDENT = "    "
COLOURS = {"verified": "green", "proven": "green", "stale": "yellow", "partial": "yellow", "lost": "red"}
_MEANINGS = {
    "verified": "two independent kinds of evidence agree on every byte",
    "proven": "every byte follows from evidence",
    "stale": "this content was proven once; it may have changed since",
    "partial": "some lines are known",
    "lost": "only that it was there, or was changed, is known",
}


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--at", metavar="TIME", default="", help="As of this time, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--lost", is_flag=True, help="Only files that are missing or differ on the disk, most recoverable first.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def files(settings: Settings, *, path: str, at: str, lost: bool, as_json: bool) -> int:
    """List the recorded files at or beneath PATH (by default this folder), each with its grade.

    PATH need not exist any more. Nothing is written. The grades: verified (two independent kinds of evidence agree),
    proven (every byte follows from evidence), stale (may have changed since), partial (only some lines are known), lost
    (no content is known). Ends with 4 if nothing is recorded at or beneath PATH.

    \b
    Examples:
      reconstitute files
      reconstitute files ~/projects/shop --lost
      reconstitute files ~/projects/shop --at 2026-05-31T18:00 --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    place = absolute(path)
    answer = settings.ask(calls.Files(place, at, lost))
    terminal.notes(answer.warnings)
    if as_json:
        terminal.data(answer)
    elif not answer.files and answer.known:
        terminal.say(f"Nothing recorded at or beneath {terminal.line(place)} is missing on the disk or differs.")
    elif answer.files and lost:
        _show_lost(answer.files, place)
    elif answer.files:
        _show_folders(answer.files)
    terminal.notes(answer.hints)
    return 0 if answer.files or answer.known else NOTHING


def _show_folders(files: list[RecordedFile]) -> None:
    files = sorted(files, key=lambda file: posixpath.split(file.path))
    for folder, group in groupby(files, key=lambda file: posixpath.dirname(file.path)):
        terminal.say(terminal.bold(terminal.line(folder)))
        for file in group:
            _show_file(file, posixpath.basename(file.path) + ("/" if file.folder else ""))
    terminal.say(_total(files))


def _show_lost(files: list[RecordedFile], place: str) -> None:
    for grade, group in groupby(files, key=lambda file: file.grade):
        meaning = _MEANINGS.get(grade, "")
        terminal.say(terminal.bold(grade) + (terminal.dim(f" · {meaning}") if meaning else ""))
        for file in group:
            _show_file(file, file.path + ("/" if file.folder else ""))
    terminal.say(_total(files))
    flag = " --deleted" if any(file.deleted for file in files) else ""
    terminal.say(terminal.dim(f"To get them back: reconstitute restore {terminal.line(place)} --to NEW-FOLDER{flag}"))


def _show_file(file: RecordedFile, name: str) -> None:
    facts = [
        terminal.tint(f"{file.grade:<8}", COLOURS.get(file.grade, "white")),
        f"{terminal.size(file.size):>8}",
        terminal.dim(f"{terminal.moment(file.last_change.time) if file.last_change else 'no change known':<16}"),
        f"{_disk(file):<12}",
    ]
    terminal.say(f"  {'  '.join(facts)}  {terminal.line(name)}")


def _disk(file: RecordedFile) -> str:
    disk = terminal.plain(file.disk)
    if not file.deleted:
        return disk
    return "deleted" if disk == "absent" else "there again" if disk == "differs" else disk


def _total(recorded: list[RecordedFile]) -> str:
    files = [file for file in recorded if not file.folder]
    folders = len(recorded) - len(files)
    unlisted = f"; {terminal.count(folders, 'folder')} whose files are unknown" if folders else ""
    grades = Counter(file.grade for file in files)
    disks = Counter(_disk(file) for file in files)
    return (
        f"{terminal.count(len(files), 'file')}: {_counted(grades, COLOURS)}; "
        f"on the disk: {_counted(disks, sorted(disks)) or 'none'}{unlisted}"
    )


def _counted(counts: Counter[str], order: Iterable[str]) -> str:
    return ", ".join(f"{counts[word]} {terminal.plain(word)}" for word in order if counts[word])


@click.command()
@click.argument("file", type=click.Path())
@click.option("--diff", is_flag=True, help="Show what changed from one revision to the next.")
@click.option("--lines", is_flag=True, help="Show the last known content, each line with the message that wrote it.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def history(settings: Settings, *, file: str, diff: bool, lines: bool, as_json: bool) -> int:
    """Show every revision of FILE, newest last: its time, session, tool, grade and evidence.

    FILE need not exist any more. Ends with 4 if no session has touched it.

    \b
    Examples:
      reconstitute history src/cart.py
      reconstitute history src/cart.py --diff
      reconstitute history src/cart.py --lines
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(file)
    answer = settings.ask(calls.History(path, diff, lines))
    terminal.notes(answer.warnings)
    if as_json:
        terminal.data(answer)
    elif answer.revisions and lines:
        _show_lines(answer.lines or [])
    elif answer.revisions:
        _show_history(answer)
    return 0 if answer.revisions else NOTHING


def _show_history(answer: file_answers.History) -> None:
    state = f"{'deleted, ' if answer.deleted else ''}{answer.grade}"
    name = terminal.bold(terminal.line(answer.path))
    terminal.say(f"{name}: {terminal.plain(state)}, {terminal.count(len(answer.revisions), 'revision')}")
    for revision in answer.revisions:
        _show_revision(revision)


def _show_revision(revision: FileRevision) -> None:
    operation, tool = revision.operation, revision.tool
    facts = [
        terminal.moment(revision.time),
        terminal.tint(f"{revision.grade:<8}", COLOURS.get(revision.grade, "white")),
        f"{'deleted' if revision.deleted else terminal.size(revision.size):>8}",
        terminal.line(operation if tool in {"", operation} else f"{operation} by {tool}"),
        terminal.bold(" ".join((revision.session_title or terminal.identifier(revision.session_id)).split())),
    ]
    terminal.say("  ".join(facts))
    for remark in _remarks(revision):
        terminal.say(terminal.dim(terminal.fold(remark, INDENT)))
    if revision.diff:
        show_diff(revision.diff)
    if revision.diff_note:
        terminal.say(terminal.dim(INDENT + terminal.line(revision.diff_note)))


def _remarks(revision: FileRevision) -> list[str]:
    remarks = [
        "; ".join(revision.evidence),
        revision.note,
        "something outside OpenCode had changed it before" if revision.outside_change else "",
        f"moved from {terminal.line(revision.moved_from)}" if revision.moved_from else "",
        f"message {terminal.identifier(revision.message_id)}" if revision.message_id else "",
    ]
    return [remark for remark in remarks if remark]


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


def _show_lines(lines: list[FileLine]) -> None:
    for number, line in enumerate(lines, start=1):
        author = f"{terminal.moment(line.time)}  {terminal.line(terminal.identifier(line.message_id or '-'))}"
        terminal.say(f"{terminal.dim(author)}  {number:>5}  {terminal.plain(line.text)}")


@click.command()
@click.argument("file", type=click.Path())
@click.option("--at", metavar="TIME", default="", help="As of this time, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--raw", is_flag=True, help="Print the exact bytes, secrets included.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, the content in base64.")
@click.pass_obj
def show(settings: Settings, *, file: str, at: str, raw: bool, as_json: bool) -> int:
    """Print the recorded content of FILE, now or at a time. FILE need not exist any more.

    Secrets are hidden unless --raw is given; a line on stderr says so. Ends with 0 if every byte is proven, with 3 if
    not (stderr says why), with 4 if there is nothing to print.

    \b
    Examples:
      reconstitute show src/cart.py
      reconstitute show src/cart.py --at 2026-05-31T18:00
      reconstitute show logo.png --raw > logo.png
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = absolute(file)
    answer = settings.ask(calls.Content(path, at, raw))
    terminal.notes(answer.warnings)
    encoded = answer.content_base64
    if as_json:
        terminal.data(answer)
    elif encoded is None:
        _say_nothing(answer, path)
    else:
        _print(base64.b64decode(encoded), answer, raw=raw)
    if encoded is None:
        return NOTHING
    return 0 if answer.proven else NOT_PROVEN


def _print(content: bytes, answer: file_answers.Content, *, raw: bool) -> None:
    if not answer.proven:
        terminal.note(f"not proven ({answer.grade}): {answer.note or 'no recorded call tells its whole content'}")
    if answer.redacted:
        terminal.note("secrets in it are hidden; use --raw for the exact bytes")
    if raw or not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif _is_text(content):
        click.echo(terminal.plain(content.decode()), nl=False)
    else:
        terminal.note(f"not text, {terminal.size(len(content))}; write it to a file with --raw > FILE")


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _say_nothing(answer: file_answers.Content, path: str) -> None:
    if not answer.known:
        return  # a warning says so, and which paths are like it
    reason = f"was deleted {terminal.moment(answer.time)}" if answer.deleted else "nothing is known of its content"
    if answer.last and (at := written_local(answer.last.time)):
        fix = f"its last content is {answer.last.grade}; add --at {at} to see it"
    else:
        fix = answer.note or "no recorded call tells what it held"
    terminal.note(f"{path!r}: {reason}; {fix}")


@click.command()
@click.argument("old", default="", type=click.Path())
@click.argument("new", default="", type=click.Path())
@click.option("--remove", is_flag=True, help="Remove the alias of OLD.")
@click.option("--list", "only_list", is_flag=True, help="List all aliases.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def alias(settings: Settings, *, old: str, new: str, remove: bool, only_list: bool, as_json: bool) -> None:
    """Record that the folder OLD of the sessions is now NEW, so that its files are found there.

    \b
    Examples:
      reconstitute alias ~/projects/shop ~/projects/web-shop
      reconstitute alias ~/projects/shop --remove
      reconstitute alias --list
    """  # noqa: D301 - click's mark for text that is not to be filled
    _check_alias(old, new, remove=remove, only_list=only_list)
    before, after = (absolute(path) if path else "" for path in (old, new))
    answer = settings.ask(calls.Alias(before, after, remove))
    terminal.notes(answer.warnings)
    if as_json:
        terminal.data(answer)
        return
    for entry in answer.aliases:
        terminal.say(f"{terminal.line(entry.old)} is now {terminal.line(entry.new)}")
    if not answer.aliases:
        terminal.say("There are no aliases.")


def _check_alias(old: str, new: str, *, remove: bool, only_list: bool) -> None:
    if only_list and (old or new or remove):
        raise click.UsageError("--list cannot be combined with folders or --remove")
    if remove and (not old or new):
        raise click.UsageError("--remove takes only OLD")
    if not only_list and not remove and not (old and new):
        raise click.UsageError("give OLD and NEW, or --list")
