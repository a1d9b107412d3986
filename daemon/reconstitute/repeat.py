"""Whether a run would only repeat the last one: then nothing is collected, rendered or written.

A run that leaves nothing to be desired (no warning, no unanswered question, no page edited by hand) keeps a mark: a
digest of what its pages follow from, and a digest of the disk: the stamps of its pages and of the files they speak of.
A later run with the same digests would write the same bytes. Anything unusual leaves no mark, and so a full run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict

from daemon.archive import Archive
from daemon.markdown import zone
from daemon.model import Json, Target
from daemon.publish.edits import MANIFEST, SLACK_NS
from daemon.reconstitute.output import ChangeCheck
from daemon.reconstitute.pages.material import code_version
from daemon.records import digest, dumps
from daemon.redact import fingerprint

_UNFINISHED = ("warnings", "unanswered", "edited", "retired", "kept")
"""Parts of a result that are empty or 0 if there is nothing to do better the next time."""


def inputs(archive: Archive, target: Target, settings: Sequence[object]) -> str:
    """A digest of what a target's pages follow from, the disk apart. `settings`: what the caller decides besides."""
    return digest(
        f"{archive.revision} {code_version()} {fingerprint()} {zone()}".encode(),
        dumps([asdict(target), settings]),
    )


def find(archive: Archive, target: Target, made_from: str) -> Json | None:
    """The result of the last run if a run with these `inputs` would only repeat it; else None."""
    mark = archive.target_get(target.path, _name(target))
    if mark is None or mark["inputs"] != made_from or _stamps(mark["paths"]) != mark["disk"]:
        return None
    result: Json = mark["result"]
    return result | {"written": 0, "unchanged": result["pages"], "model_calls": 0}


def keep(archive: Archive, target: Target, made_from: str, result: Json, check: ChangeCheck) -> None:
    """Mark a run that has just ended, unless it is worth repeating. `check` knows its pages and files."""
    mark: Json | None = None
    if not any(result[name] for name in _UNFINISHED):
        time.sleep(SLACK_NS / 1e9)  # so that whoever writes from now on leaves another stamp
        paths = [*check.paths, os.path.join(result["output"], MANIFEST)]
        disk = _stamps(paths)
        if disk and not check.has_changed():  # after the stamps: a page that was edited since the run wrote it is read
            mark = {"inputs": made_from, "paths": paths, "disk": disk, "result": result}
    if mark != archive.target_get(target.path, _name(target)):
        archive.target_put(target.path, _name(target), mark)


def _name(target: Target) -> str:
    return "repeat" if target.at is None else "repeat-at"


def _stamps(paths: Sequence[str]) -> str:
    """A digest of the stamps of these paths; "" if one cannot be told."""
    try:
        return digest(dumps([_stamp(path) for path in paths]))
    except (OSError, ValueError):
        return ""


def _stamp(path: str) -> tuple[int, ...] | None:
    """What changes with every write; None where nothing is. The change time, since programs can set all the others."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
