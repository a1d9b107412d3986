"""``reconstitute files`` lists recorded files and how the disk compares; ``alias`` says that a folder was renamed."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute
from daemon.cli.terminal import progress
from daemon.control import calls
from daemon.control.answers import RecordedFile

COLOURS = {"verified": "green", "proven": "green", "stale": "yellow", "partial": "yellow", "lost": "red"}
_MEANINGS = {
    "verified": "two independent kinds of evidence agree on every byte",
    "proven": "every byte follows from evidence",
    "stale": "this content was proven once; it may have changed since",
    "partial": "some lines are known",
    "lost": "only that it was there, or was changed, is known",
}


@click.command()
@click.argument("path", default=".")
@click.option("--at", metavar="TIME", default="", help="As it was then, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--lost", is_flag=True, help="Only what is missing or differs on the disk, most recoverable first.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def files(settings: Settings, *, path: str, at: str, lost: bool, as_json: bool) -> int:
    """List the recorded files at or beneath PATH (this folder when none is given), each with its grade.

    PATH need not exist any more. Nothing is written. The grades: verified (two independent kinds of evidence agree),
    proven (every byte follows from evidence), stale (may have changed since), partial (some lines known), lost (nothing
    known). Ends with 4 when nothing is recorded at or beneath PATH.

    \b
    Examples:
      reconstitute files
      reconstitute files ~/projects/shop --lost
      reconstitute files ~/projects/shop --at 2026-05-31T18:00 --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    place = absolute(path)
    with progress(brief=True) as step:
        answer = settings.ask(calls.Files(place, at, lost), progress=step)
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
            _show_file(file, posixpath.basename(file.path))
    terminal.say(_total(files))


def _show_lost(files: list[RecordedFile], place: str) -> None:
    for grade, group in groupby(files, key=lambda file: file.grade):
        meaning = _MEANINGS.get(grade, "")
        terminal.say(terminal.bold(grade) + (terminal.dim(f" · {meaning}") if meaning else ""))
        for file in group:
            _show_file(file, file.path)
    terminal.say(_total(files))
    more = " --deleted" if any(file.deleted for file in files) else ""
    terminal.say(terminal.dim(f"To get them back: reconstitute restore {terminal.line(place)} --to NEW-FOLDER{more}"))


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
    return "deleted" if disk == "identical" else "there again" if disk == "differs" else disk


def _total(files: list[RecordedFile]) -> str:
    grades = Counter(file.grade for file in files)
    disks = Counter(_disk(file) for file in files)
    return (
        f"{terminal.count(len(files), 'file')}: {_counted(grades, COLOURS)}; "
        f"on the disk: {_counted(disks, sorted(disks))}"
    )


def _counted(counts: Counter[str], order: Iterable[str]) -> str:
    return ", ".join(f"{counts[word]} {terminal.plain(word)}" for word in order if counts[word])


@click.command()
@click.argument("old", default="")
@click.argument("new", default="")
@click.option("--remove", is_flag=True, help="Take it back.")
@click.option("--list", "only_list", is_flag=True, help="Show those there are.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def alias(settings: Settings, *, old: str, new: str, remove: bool, only_list: bool, as_json: bool) -> None:
    """Say that the folder that sessions knew as OLD is NEW today, so that its files are found there.

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
        terminal.say("No folder has another name.")


def _check_alias(old: str, new: str, *, remove: bool, only_list: bool) -> None:
    if only_list and (old or new or remove):
        raise click.UsageError("--list takes nothing else")
    if remove and (not old or new):
        raise click.UsageError("--remove takes OLD alone")
    if not only_list and not remove and not (old and new):
        raise click.UsageError("it takes OLD and NEW, or --list")
