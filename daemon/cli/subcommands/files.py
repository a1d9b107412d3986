"""``reconstitute files``: what is known of each file, and how the disk compares."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.progress import progress
from daemon.cli.settings import NOTHING, Settings, absolute

COLOURS = {"verified": "green", "proven": "green", "stale": "yellow", "partial": "yellow", "lost": "red"}
FIELDS = ("path", "grade", "evidence", "sha256", "size", "deleted", "disk", "last_change", "note")
"""Of each file in --json, in this order."""

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
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON: a list, one entry a file.")
@click.pass_obj
def command(settings: Settings, *, path: str, at: str, lost: bool, as_json: bool) -> int:
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
        answer = settings.ask(lambda service: service.files(place, at=at, lost=lost, progress=step))
    files = answer.get("files") or []
    known = files or answer.get("known")
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    if as_json:
        terminal.data([{name: file.get(name) for name in FIELDS} for file in files])
    elif not files and known:
        terminal.say(f"Nothing recorded at or beneath {terminal.line(place)} is missing on the disk or differs.")
    elif files and lost:
        _show_lost(files, place)
    elif files:
        _show_folders(files)
    for hint in answer.get("hints") or ():
        terminal.note(hint)
    return 0 if known else NOTHING


def _show_folders(files: list[dict[str, Any]]) -> None:
    files = sorted(files, key=lambda file: posixpath.split(str(file.get("path", ""))))
    for folder, group in groupby(files, key=lambda file: posixpath.dirname(str(file.get("path", "")))):
        terminal.say(terminal.bold(terminal.line(folder)))
        for file in group:
            _show_file(file, posixpath.basename(str(file.get("path", ""))))
    terminal.say(_total(files))


def _show_lost(files: list[dict[str, Any]], place: str) -> None:
    for grade, group in groupby(files, key=lambda file: str(file.get("grade", ""))):
        meaning = _MEANINGS.get(grade, "")
        terminal.say(terminal.bold(grade) + (terminal.dim(f" · {meaning}") if meaning else ""))
        for file in group:
            _show_file(file, str(file.get("path", "")))
    terminal.say(_total(files))
    more = " --deleted" if any(file.get("deleted") for file in files) else ""
    terminal.say(terminal.dim(f"To get them back: reconstitute restore {terminal.line(place)} --to NEW-FOLDER{more}"))


def _show_file(file: dict[str, Any], name: str) -> None:
    grade = str(file.get("grade", ""))
    size = terminal.size(file.get("size"))
    change = file.get("last_change") or {}
    facts = [
        terminal.tint(f"{grade:<8}", COLOURS.get(grade, "white")),
        f"{terminal.plain(size):>8}",
        terminal.dim(f"{terminal.moment(change['time']) if change else 'no change known':<16}"),
        f"{_disk(file):<12}",
    ]
    terminal.say(f"  {'  '.join(facts)}  {terminal.line(name)}")


def _disk(file: dict[str, Any]) -> str:
    disk = terminal.plain(file.get("disk", ""))
    if not file.get("deleted"):
        return disk
    return "deleted" if disk == "identical" else "there again" if disk == "differs" else disk


def _total(files: list[dict[str, Any]]) -> str:
    grades = Counter(str(file.get("grade", "")) for file in files)
    disks = Counter(_disk(file) for file in files)
    return (
        f"{terminal.count(len(files), 'file')}: {_counted(grades, COLOURS)}; "
        f"on the disk: {_counted(disks, sorted(disks))}"
    )


def _counted(counts: Counter[str], order: Iterable[str]) -> str:
    return ", ".join(f"{counts[word]} {terminal.plain(word)}" for word in order if counts[word])
