"""Detects that a run would only repeat the last one: then nothing is collected, rendered or written.

A complete run (no warning, no unanswered question, no page edited by hand) stores a mark with two digests: one of
everything that its pages follow from, and one of the disk: the stamps of its pages and of the files they describe. A
later run with the same digests would write the same bytes. An incomplete run stores no mark, so the next one is full.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict

from daemon.archive import Archive
from daemon.markdown import zone
from daemon.model import Json, Target
from daemon.publish.edits import MANIFEST, SLACK_NS, stamp
from daemon.reconstitute.output import ChangeCheck, FileChangeCheck
from daemon.reconstitute.pages.destinations import LinkedPage
from daemon.reconstitute.pages.material import code_version
from daemon.records import digest, dumps
from daemon.redact import fingerprint

_MOST_SHOWN = 20
_UNFINISHED = ("warnings", "unanswered", "edited", "retired", "kept")
"""Fields of a result that are empty or 0 if the run was complete."""


def inputs(archive: Archive, target: Target, settings: Sequence[object]) -> str:
    """A digest of everything but the disk that a target's pages follow from; `settings` are those of the caller."""
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
    """Mark a run that has just ended, if it was complete. `check` knows its pages and files."""
    mark: Json | None = None
    if not any(result[name] for name in _UNFINISHED):
        time.sleep(SLACK_NS / 1e9)  # so that every later write changes a stamp
        paths = [*check.paths, os.path.join(result["output"], MANIFEST)]
        disk = _stamps(paths)
        if disk and not check.has_changed():  # in this order, so that no edit between the run and the stamps is missed
            mark = {"inputs": made_from, "paths": paths, "disk": disk, "result": result}
    if mark != archive.target_get(target.path, _name(target)):
        archive.target_put(target.path, _name(target), mark)


class ShownPages:
    """The pages that were shown last without being published, in memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, int | None], tuple[str, FileChangeCheck, LinkedPage]] = OrderedDict()
        self.generation = 0
        """How often they were forgotten; `keep` takes that of the time before the page was made."""

    def find(self, target: Target, made_from: str) -> LinkedPage | None:
        """The page, if it would be the same again. One that would not is dropped."""
        with self._lock:
            kept = self._pages.pop((target.path, target.at), None)
            if kept is None or kept[0] != made_from or kept[1].has_changed():
                return None
            self._pages[target.path, target.at] = kept
            return kept[2]

    def keep(self, target: Target, made_from: str, check: FileChangeCheck, page: LinkedPage, generation: int) -> None:
        """Keep it, in place of the one that was shown longest ago, unless all were forgotten meanwhile."""
        with self._lock:
            if generation != self.generation:
                return
            self._pages[target.path, target.at] = made_from, check, page
            if len(self._pages) > _MOST_SHOWN:
                self._pages.popitem(last=False)

    def clear(self) -> None:
        """Forget them all, also those that are being made."""
        with self._lock:
            self._pages.clear()
            self.generation += 1


def _name(target: Target) -> str:
    return "repeat" if target.at is None else "repeat-at"


def _stamps(paths: Sequence[str]) -> str:
    """A digest of the stamps of these paths; "" if one cannot be read."""
    try:
        return digest(dumps([stamp(path) for path in paths]))
    except (OSError, ValueError):
        return ""
