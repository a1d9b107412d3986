"""A cheap look at what pages say and no record tells: the files on this disk, and the pages themselves.

It only compares stamps and sizes, so that it may be taken every few seconds: a file that differs and goes on changing,
such as a log, is no news until it is gone or has the size that was recorded.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from daemon.files.disk import Disk
from daemon.publish.edits import SLACK_NS, PageLook, Stamp, stamp
from daemon.reconstitute.recover import Recovered, State


@dataclass(slots=True)
class _File:
    """`size` is that of the content it was compared with; `known` its stamp, () where it is to be looked at anew."""

    path: str
    said: Disk
    size: int | None
    known: Stamp | tuple[()] | None


class Look:
    """What a run that began at `began_ns` (epoch ns) said of the disk, and the pages it published in `folder`."""

    def __init__(self, output_root: Path, folder: str, files: Iterable[Recovered], began_ns: int) -> None:
        self._pages = PageLook(output_root, folder, began_ns)
        self._files = [_file(one, began_ns) for one in files]

    def has_changed(self) -> bool:
        """Whether the next run may say something else; reads no file that was recorded."""
        return any(_is_other(one) for one in self._files) or self._pages.has_changed()


def _file(one: Recovered, began_ns: int) -> _File:
    size = None
    if one.disk in {Disk.IDENTICAL, Disk.DIFFERS} and one.state is not State.DELETED and one.shown is not None:
        size = one.shown.size
    found = _File(one.path, one.disk, size, ())
    try:
        now = stamp(one.path)
    except (OSError, ValueError):
        return found
    is_as_said = (now is None) == (one.disk is Disk.MISSING)
    if is_as_said and (now is None or now[2] < began_ns - SLACK_NS):
        found.known = now
    return found


def _is_other(one: _File) -> bool:
    try:
        now = stamp(one.path)
    except (OSError, ValueError):
        return one.said is not Disk.UNREADABLE
    if now == one.known:
        return False
    one.known = now
    return _rough(one, now) is not one.said


def _rough(one: _File, now: Stamp | None) -> Disk | None:
    """What can be told without reading the file; None: it may be identical."""
    if now is None:
        return Disk.MISSING
    if one.size is None:
        return Disk.PRESENT if one.said is not Disk.DIFFERS else None
    return None if stat.S_ISREG(now[0]) and now[1] == one.size else Disk.DIFFERS
