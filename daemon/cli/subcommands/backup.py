"""``reconstitute backup`` and ``restore-archive``: the archive into a folder of backups, and back.

The service reads the archive; this process writes the folder, so a backup goes wherever the user may write.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon import supervisor
from daemon.cli import terminal
from daemon.cli.progress import display
from daemon.cli.settings import NOT_PROVEN, NOTHING, Settings, absolute
from daemon.control.answers import Answer
from daemon.errors import ArchiveLocked, BadBackup, DaemonUnreachable, DiskFull, ReconstituteError, Retry

if TYPE_CHECKING:
    from daemon.archive.backup.checking import Checked
    from daemon.archive.backup.folder import BackupFolder
    from daemon.archive.backup.making import Making
    from daemon.archive.backup.manifest import Manifest
    from daemon.config import Config
    from daemon.control.calls import Progress

_MOST_LISTED = 20
_TRIES = 5


class BackedUp(Answer):
    """A backup as `--json` shows it; `damage` is what is wrong with it."""

    name: str
    made: int | None
    archive: str
    version: str
    schema: int | None
    counts: dict[str, int]
    segments: int
    large: int
    size: int
    missing: list[str]
    damage: list[str]


@click.command()
@click.argument("to", metavar="TO", type=click.Path())
@click.option("--check", "checks", is_flag=True, help="Write nothing; check every backup in TO.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=1), default=3, show_default=True, help="Keep the newest N backups."
)
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def backup(settings: Settings, to: str, checks: bool, keep: int, as_json: bool) -> int:
    """Back up the archive into the folder TO, while the service goes on.

    A backup is one moment of the archive. What did not change since an earlier backup in TO is not written again. Every
    file is read back. restic, borg or rsync can carry TO on. The indexes are not in it, because they are rebuilt from
    the archive. Nothing in it is redacted or encrypted; only you can read the files.

    Ends with 0 if the backup is whole, with 3 if it was made but something is damaged or missing, with 65 if --check
    finds damage, and with 4 if it finds no backup.

    \b
    Examples:
      reconstitute backup /mnt/disk/reconstitute
      reconstitute backup /mnt/disk/reconstitute --check
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = Path(absolute(to))
    return _check(path, as_json) if checks else _back_up(settings, path, keep, as_json)


def _back_up(settings: Settings, path: Path, keep: int, as_json: bool) -> int:
    from daemon.archive.backup.folder import BackupFolder  # noqa: PLC0415 - each command loads what it needs
    from daemon.archive.backup.making import Making  # noqa: PLC0415
    from daemon.filesystem import disk_space  # noqa: PLC0415

    config = settings.load()
    with (
        BackupFolder.to_write(path, config.archive_dir, (config.archive_dir, *config.opencode_dirs)) as folder,
        display() as step,
    ):
        making = Making(folder, _counting(step))
        try:
            manifest, warnings = _made(settings, config, folder, making, step)
        except (DiskFull, OSError) as error:
            if disk_space.is_full(error):
                with suppress(OSError):
                    making.undo()
            raise
        removed, problems = 0, list[str]()
        try:
            removed = folder.remove_old(keep)
        except BadBackup as error:
            problems.append(f"{error}; no older backup was removed; remove this file once you do not need it")
        stored = set(folder.stored_segments())
        problems += [f"an older backup: {damage}" for sha256, damage in making.damaged.items() if sha256 in stored]
        problems += [
            f"{config.archive_dir / 'large' / sha256}: is missing or damaged in the archive, so it is not in the backup"
            for sha256 in manifest.missing
        ]
    new_bytes = sum(making.written.values()) + sum(making.copied.values())
    warnings += problems
    terminal.notes(warnings)
    if as_json:
        counts = {"newSegments": len(making.written), "newLarge": len(making.copied), "newBytes": new_bytes}
        entry = _entry(manifest.name, manifest, [])
        terminal.data({"path": str(path), "backup": entry, **counts, "removed": removed, "warnings": warnings})
    else:
        terminal.say(f"Backed up {_described(manifest)}, into {terminal.line(path)}.")
        large = f", {terminal.count(len(making.copied), 'large record')}" if making.copied else ""
        new = f"{len(making.written)} of {terminal.count(len(manifest.segments), 'segment')}{large}"
        terminal.say(f"New since the last one: {new}, {terminal.size(new_bytes)}.")
        if removed:
            terminal.say(f"Removed {terminal.count(removed, 'older backup')}.")
    return NOT_PROVEN if problems else 0


def _made(
    settings: Settings, config: Config, folder: BackupFolder, making: Making, step: Progress
) -> tuple[Manifest, list[str]]:
    """Write one backup, its manifest last; returns it with warnings about what could not be read from OpenCode."""
    from daemon.archive.backup.making import Piece  # noqa: PLC0415 - each command loads what it needs
    from daemon.archive.backup.manifest import LargeRecord, Manifest, Segment  # noqa: PLC0415
    from daemon.control import calls  # noqa: PLC0415
    from daemon.control.calls import BackupSegment  # noqa: PLC0415
    from daemon.filesystem.large_files import LargeFiles  # noqa: PLC0415

    def put(part: BackupSegment) -> None:
        making.put(Piece(Segment(part.sha256, part.size, part.rows), part.data))

    source = LargeFiles(config.archive_dir / "large")
    missing: list[str] | None = None
    for _ in range(_TRIES):
        with folder.batched():
            request = calls.Backup(making.whole_segments()[:_MOST_NAMED])
            answer = settings.ask(request, progress=step, on_part=put, before=making.begin)
        large = [LargeRecord(record.sha256, record.size) for record in answer.large]
        before, missing = missing, making.copy_large(large, source)
        # The archive removes a large record that a newer version replaces. So one may be gone because it was replaced
        # after the moment of this backup; then a later moment does not name it any more.
        if not missing or missing == before:
            break
    else:
        raise Retry(f"{config.archive_dir}: its large records changed all the time; run the backup again")
    manifest = Manifest(
        schema=answer.schema, version=answer.version, archive=answer.archive, made=folder.time_for(answer.made),
        counts=answer.counts, segments=making.segments, large=large, missing=missing,
    )  # fmt: skip
    folder.add(manifest)
    return manifest, list(answer.warnings)


_MOST_NAMED = 25_000
"""Segments that fit into one request; others are sent again, which is slower and does no harm."""


def _check(path: Path, as_json: bool) -> int:
    from daemon.archive.backup.checking import check  # noqa: PLC0415 - each command loads what it needs
    from daemon.archive.backup.folder import BackupFolder  # noqa: PLC0415

    with BackupFolder.to_read(path) as folder, display() as step:
        results = check(folder, _counting(step))
    if as_json:
        entries = [_entry(result.name, result.manifest, result.damage) for result in results]
        terminal.data({"path": str(path), "backups": entries, "whole": not any(result.damage for result in results)})
    else:
        _show(results)
    if not results:
        terminal.note(f"{path}: no backup there is finished")
        return NOTHING
    return BadBackup.exit_code if any(result.damage for result in results) else 0


def _show(results: list[Checked]) -> None:
    listed = dict.fromkeys(damage for result in results for damage in result.damage)
    for result in results:
        state = terminal.tint("damaged", "red") if result.damage else "whole  "
        terminal.say(f"{state}  {_described(result.manifest) if result.manifest else terminal.line(result.name)}")
    for damage in list(listed)[:_MOST_LISTED]:
        terminal.note(damage)
    if len(listed) > _MOST_LISTED:
        terminal.note(f"{len(listed) - _MOST_LISTED} more damaged files; --json lists them all")


@click.command("restore-archive")
@click.argument("source", metavar="FROM", type=click.Path())
@click.option("--to", metavar="DIR", default="", type=click.Path(), help="New or empty; without it archive.dir.")
@click.option("--at", metavar="TIME", default="", help="The newest backup that was made until then.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def restore_archive(settings: Settings, source: str, to: str, at: str, as_json: bool) -> int:
    """Make an archive of a backup in the folder FROM.

    The directory must not exist, or must be empty: nothing is written over an archive. Stop the service first. Every
    file of the backup is checked before, and every row is compared after. Then start the service: it rebuilds the
    indexes and reads what OpenCode has written since.

    Ends with 3 if the archive had lost a large record before the backup, and with 65 if the backup is damaged or of a
    newer version; then nothing is changed.

    \b
    Examples:
      reconstitute restore-archive /mnt/disk/reconstitute
      reconstitute restore-archive /mnt/disk/reconstitute --at 2026-05-31 --to ~/archive-of-may
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.archive import SCHEMA  # noqa: PLC0415 - each command loads what it needs
    from daemon.archive.backup.folder import BackupFolder  # noqa: PLC0415
    from daemon.archive.backup.restoring import restore  # noqa: PLC0415
    from daemon.moments import parse_moment  # noqa: PLC0415

    config, path, until = settings.load(), Path(absolute(source)), parse_moment(at)
    goal = Path(absolute(to)) if to else config.archive_dir
    _refuse_running(config, goal)
    with BackupFolder.to_read(path) as folder, display() as step:
        name = folder.newest(until)
        manifest = restore(folder, name, goal, SCHEMA, _counting(step))
    warnings = [f"{sha256}: the archive had lost this large record before the backup" for sha256 in manifest.missing]
    terminal.notes(warnings)
    if as_json:
        terminal.data({"path": str(goal), "backup": _entry(name, manifest, []), "warnings": warnings})
    else:
        terminal.say(f"Restored {_described(manifest)}, into {terminal.line(goal)}.")
        terminal.say("Start the service now: it rebuilds the indexes and reads what OpenCode has written since.")
    return NOT_PROVEN if warnings else 0


def _refuse_running(config: Config, goal: Path) -> None:
    """Refuse while a service runs for this place, which may hold an archive that was moved aside.

    Raises:
        ArchiveLocked: one does.
    """
    from daemon.control import calls  # noqa: PLC0415 - each command loads what it needs
    from daemon.control.client import Client  # noqa: PLC0415

    if goal != config.archive_dir:
        return
    locked = ArchiveLocked(f"{goal}: a service runs for this archive; stop it first: {supervisor.stop()}")
    try:
        Client(config.socket_path, config).call(calls.Status())
    except DaemonUnreachable:
        return
    except ReconstituteError as error:  # it runs, whatever its trouble is
        raise locked from error
    raise locked


def _counting(step: Progress) -> Callable[[str, int, int | None], None]:
    return lambda phase, done, total: step({"phase": phase, "done": done, "total": total})


def _entry(name: str, manifest: Manifest | None, damage: list[str]) -> BackedUp:
    if manifest is None:
        return BackedUp(name, None, "", "", None, {}, 0, 0, 0, [], damage)
    return BackedUp(
        name, manifest.made, manifest.archive, manifest.version, manifest.schema, manifest.counts,
        len(manifest.segments), len(manifest.large), manifest.size, manifest.missing, damage,
    )  # fmt: skip


def _described(manifest: Manifest) -> str:
    messages = terminal.count(manifest.counts.get("messages", 0), "message")
    return f"{messages} ({terminal.size(manifest.size)}) as of {terminal.moment(manifest.made)}"
