"""Checks every backup in a folder: each file is read, and its content compared with the hash in its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.making import Progress
from daemon.archive.backup.manifest import LargeRecord, Manifest, Segment
from daemon.errors import BadBackup


@dataclass
class Checked:
    """One backup: its manifest, None if that is damaged, and what is wrong; nothing if it is whole."""

    name: str
    manifest: Manifest | None = None
    damage: list[str] = field(default_factory=list)


def check(folder: BackupFolder, progress: Progress, names: list[str] | None = None) -> list[Checked]:
    """Check the backups with these manifests, or all, oldest first. A file that they share is read once."""
    results = []
    for name in folder.manifests() if names is None else names:
        result = Checked(name)
        try:
            result.manifest = folder.manifest(name)
        except BadBackup as error:
            result.damage.append(str(error))
        results.append(result)
    manifests = [result.manifest for result in results if result.manifest is not None]
    files = {file: "" for manifest in manifests for file in _files(manifest)}
    for number, file in enumerate(files, start=1):
        files[file] = _damage(folder, file)
        progress("checking files", number, len(files))
    for result in results:
        if result.manifest is not None:
            result.damage += [files[file] for file in _files(result.manifest) if files[file]]
    return results


def _files(manifest: Manifest) -> list[Segment | LargeRecord]:
    """The files that a backup consists of."""
    return [*manifest.segments, *(file for file in manifest.large if file.sha256 not in manifest.missing)]


def _damage(folder: BackupFolder, file: Segment | LargeRecord) -> str:
    try:
        if isinstance(file, LargeRecord):
            folder.check_large(file)
        elif len(folder.segment(file.sha256)) != file.size:
            return f"{file.sha256}: has another size than its manifest says"
    except BadBackup as error:
        return str(error)
    return ""
