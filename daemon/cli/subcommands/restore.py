"""``reconstitute restore``: recorded files, byte for byte, into a new folder.

The service finds the contents; this process writes them, so that they are the user's own, readable for nobody else,
wherever the user may write. What is written and why something is not is said for every file.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daemon.cli import terminal
from daemon.cli.settings import NOT_PROVEN, NOTHING, Settings, absolute
from daemon.control import calls
from daemon.control.answers import Answer
from daemon.control.calls import FileContent
from daemon.control.file_answers import SkippedFile
from daemon.errors import OutputRefused

if TYPE_CHECKING:
    from daemon.filesystem.new_folder import NewFolder

_MAX_LISTED = 20
_MAX_PER_REASON = 5
"""More files than this that are left out for the same reason are counted, not listed."""


@click.command()
@click.argument("path", type=click.Path())
@click.option("--to", metavar="DIR", default="", type=click.Path(), help="A new or empty folder to write into.")
@click.option("--dry-run", is_flag=True, help="Write nothing; list what would be written.")
@click.option("--include", metavar="PATTERN", multiple=True, help="Only these files, as in a .gitignore. Repeatable.")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Not these files. Repeatable.")
@click.option("--at", metavar="TIME", default="", help="As of this time, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--deleted", is_flag=True, help="Also restore the last content of deleted files.")
@click.option(
    "--grade",
    type=click.Choice(["verified", "proven", "stale", "partial"]),
    default="proven",
    show_default=True,
    help="The lowest grade to write; a file with missing lines gets a name that ends in .partial.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def restore(settings: Settings, /, *, path: str, to: str, dry_run: bool, as_json: bool, **chosen: Any) -> int:
    """Write the recorded files at or beneath PATH into DIR, each with exactly the bytes it had.

    Only proven files are written unless --grade asks for less; each skipped file is listed with its reason. Paths in
    DIR are those beneath PATH. Ends with 0 if everything was written, with 3 if something was skipped or is not proven,
    and with 4 if there was nothing to write. Deleted files count only with --deleted.

    \b
    Examples:
      reconstitute restore ~/projects/shop --to ~/shop-back
      reconstitute restore ~/projects/shop --to ~/shop-back --at 2026-05-31T18:00
      reconstitute restore ~/projects/shop --to ~/shop-back --deleted --grade partial
      reconstitute restore ~/projects/shop --dry-run --include 'src/' --exclude '*.min.js'
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.filesystem.new_folder import NewFolder  # noqa: PLC0415 - each command loads what it needs

    if not to and not dry_run:
        raise click.UsageError("--to: say which new or empty folder to write into, or use --dry-run")
    request, config = calls.Restore(absolute(path), **_lists(chosen)), settings.load()
    with NewFolder(Path(absolute(to)), (*config.opencode_dirs, config.archive_dir)) if to else nullcontext() as folder:
        writing = _Writing(None if dry_run else folder)
        answer = settings.ask(request, on_part=writing.write, before=writing.begin)
        if folder is not None and not dry_run:
            folder.finish()
    terminal.notes(answer.warnings)
    skipped = writing.skipped + answer.skipped
    if as_json:
        files = {"dryRun": True, "chosen": writing.written} if dry_run else {"written": writing.written}
        terminal.data({"path": request.path, **files, "skipped": skipped, "warnings": answer.warnings})
    else:
        _show(writing.written, skipped, None if dry_run or folder is None else folder.path)
    if not writing.written:
        return NOTHING
    is_whole = len(skipped) == answer.deleted and all(file.grade in _CERTAIN for file in writing.written)
    return 0 if is_whole else NOT_PROVEN


def _lists(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}


_CERTAIN = ("verified", "proven")


class WrittenFile(Answer):
    """A file that was written: `file` is its path in the new folder."""

    path: str
    file: str
    grade: str
    sha256: str
    size: int


class _Writing:
    """What has been written so far, and what could not be; without a folder, what would be written."""

    def __init__(self, folder: NewFolder | None) -> None:
        self._folder = folder
        self.written: list[WrittenFile] = []
        self.skipped: list[SkippedFile] = []

    def begin(self) -> None:
        """Before the service is asked.

        Raises:
            OutputRefused: the daemon broke off in the middle, and this would be the second time.
        """
        if self._folder is None:
            self.written.clear()
        elif self._folder.files:
            count = terminal.count(self._folder.files, "file")
            raise OutputRefused(
                f"{self._folder.path}: the service stopped answering; {count} there and complete, the rest is missing; "
                "remove the folder and run the command again"
            )
        self.skipped.clear()

    def write(self, content: FileContent) -> None:
        """Write one file."""
        reason = ""
        if self._folder is not None:
            reason = self._folder.write(content.relative, content.data, executable=content.executable)
        if reason:
            self.skipped.append(SkippedFile(content.path, reason))
            return
        size = len(content.data)
        self.written.append(WrittenFile(content.path, content.relative, content.grade, content.sha256, size))


def _show(written: list[WrittenFile], skipped: list[SkippedFile], folder: Path | None) -> None:
    """Say what was written into `folder`; without one, list what would be written."""
    for file in written if folder is None else ():
        terminal.say(f"{file.grade:<8}  {terminal.size(file.size):>8}  {terminal.line(file.file)}")
    if written:
        grades = [f"{n} {g}" for g in (*_CERTAIN, "stale", "partial") if (n := sum(w.grade == g for w in written))]
        size = terminal.size(sum(file.size for file in written))
        did, where = ("Would write", "") if folder is None else ("Wrote", f", into {terminal.line(folder)}")
        terminal.say(f"{did} {terminal.count(len(written), 'file')} ({', '.join(grades)}), {size}{where}.")
    else:
        terminal.say("Nothing would be written." if folder is None else "Nothing was written.")
    reasons = Counter(file.reason for file in skipped)
    frequent = {reason: number for reason, number in reasons.items() if number > _MAX_PER_REASON}
    for reason, number in frequent.items():
        terminal.note(f"skipped {number} files: {reason}")
    single = [file for file in skipped if file.reason not in frequent]
    for left_out in single[:_MAX_LISTED]:
        terminal.note(f"skipped {terminal.line(left_out.path)}: {left_out.reason}")
    if len(single) > _MAX_LISTED:
        terminal.note(f"skipped {len(single) - _MAX_LISTED} more files; --json lists them all")
