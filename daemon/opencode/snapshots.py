"""OpenCode's git snapshots, read object by object: the only importer of dulwich.

Both layouts, loose objects, packs and alternates (opencode-formats.md, Directory and Snapshots). Nothing is ever
written there and no git process started; every object is checked against its id before it is returned. A failure is
returned as a reason and never raised, because OpenCode's git prunes and repacks while we read. The number of open packs
is bounded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import RawObjectID
from dulwich.pack import Pack, PackData, PackIndex, load_pack_index_file

from daemon.filesystem import regular_file

_MOST_PACKS = 48
"""Open at once; each holds two descriptors."""

_DEPTH = 5
"""Alternates of alternates are followed this far, as git does."""

_TYPES = {2: "tree", 3: "blob"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_HEAD = 4096
_LONGEST_LIST = 1 << 20
"""Bytes of a list of alternates."""


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object, or why there is none.

    `kind` is ``blob`` or ``tree``, or empty if there is no object. `size` is set if it is larger than the limit, and
    `raw` is then empty. Otherwise `reason` says what is wrong; trying again later may help. `waits`: the system refused
    to read something now, so the object may well be there.
    """

    kind: str = ""
    raw: bytes = b""
    size: int = 0
    reason: str = ""
    waits: bool = False


class Snapshots:
    """Every snapshot repository beneath some data directories. One thread at a time."""

    def __init__(self, *data_dirs: Path) -> None:
        self._roots = [data_dir / "snapshot" for data_dir in data_dirs]
        self._unread: list[GitObject] = []
        """What could not be listed: any object may be there."""
        self._folders: OrderedDict[str, _Folder] = OrderedDict()
        """By real path; the folder with the last found object is last, and is searched first."""

    def refresh(self) -> None:
        """List the repositories and alternates that exist now."""
        self._unread.clear()
        listed = dict.fromkeys(path for root in self._roots for path in _object_folders(root, self._unread))
        if not any(problem.waits for problem in self._unread):
            for path in self._folders.keys() - listed.keys():
                self._folders.pop(path).close()
        for path in listed:
            if path not in self._folders:
                self._folders[path] = _Folder(path)
                self._folders.move_to_end(path, last=False)

    @property
    def number(self) -> int:
        """Folders of objects known at the last refresh, alternates included."""
        return len(self._folders)

    @property
    def open_packs(self) -> int:
        """Packs that hold descriptors at this moment."""
        return sum(len(folder.packs) for folder in self._folders.values())

    def read(self, object_id: str, most: int) -> GitObject:
        """The object with this id (40 hexadecimal digits), wherever it lies, unless it is larger than `most` bytes."""
        tries = [GitObject()]
        for path in reversed(list(self._folders)):
            git_object = self._folders[path].read(object_id, most)
            if git_object.kind:
                self._folders.move_to_end(path)
                self._bound()
                return git_object
            tries.append(git_object)
        self._bound()
        best = _best(*tries, *(problem for problem in self._unread if problem.waits))
        if best.reason:
            return best
        unread = (problem.reason for problem in self._unread)
        return GitObject(reason="; ".join([f"gone: in none of {len(self._folders)} folders of git objects", *unread]))

    def close(self) -> None:
        """Release all descriptors; reading opens them again."""
        for folder in self._folders.values():
            folder.close()

    def _bound(self) -> None:
        for folder in self._folders.values():
            if self.open_packs <= _MOST_PACKS:
                return
            folder.close()


def _best(*tries: GitObject) -> GitObject:
    """What several tries tell of one object: the object, else that it may be there, else why it cannot be read."""
    return max(tries, key=lambda git_object: (bool(git_object.kind), git_object.waits, bool(git_object.reason)))


def _problem(path: str, error: Exception) -> GitObject:
    cause = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
    return GitObject(reason=f"{path}: cannot be read: {cause}", waits=regular_file.is_refusal(error))


def _object_folders(root: Path, unread: list[GitObject]) -> Iterator[str]:
    """``<project>/objects`` of older versions, ``<project>/<worktree hash>/objects`` of newer, and their alternates.

    What cannot be listed goes into `unread`, with the reason.
    """
    projects = [os.path.join(root, name) for name in _names(str(root), unread)]
    worktrees = [os.path.join(project, name) for project in projects for name in _names(project, unread)]
    waiting = [(os.path.join(folder, "objects"), 0) for folder in (*projects, *worktrees)]
    visited: set[str] = set()
    while waiting:
        folder, depth = waiting.pop(0)
        real = os.path.realpath(folder)
        if real in visited or not _is_folder(real, unread):
            continue  # an alternate that is gone: what it held alone is gone with it
        visited.add(real)
        yield real
        if depth < _DEPTH:
            waiting += [(alternate, depth + 1) for alternate in _alternates(real, unread)]


def _names(folder: str, unread: list[GitObject]) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unread.append(_problem(folder, error))
        return []


def _is_folder(path: str, unread: list[GitObject]) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        unread.append(_problem(path, error))
        return False


def _alternates(folder: str, unread: list[GitObject]) -> list[str]:
    path = os.path.join(folder, "info", "alternates")
    try:
        raw = regular_file.read(path, _LONGEST_LIST)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unread.append(_problem(path, error))
        return []
    lines = [line for line in raw.split(b"\n") if line and not line.startswith(b"#") and b"\0" not in line]
    return [os.path.join(folder, os.fsdecode(line)) for line in lines]


class _Folder:
    """One ``objects`` directory."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: list[str] = []
        self.packs: dict[str, Pack] = {}

    def close(self) -> None:
        for pack in self.packs.values():
            pack.close()
        self.packs.clear()

    def read(self, object_id: str, most: int) -> GitObject:
        """Look in known packs, loose objects, then new packs, because git repacks at any moment."""
        git_object = self._packed(object_id, most)
        if git_object.kind:
            return git_object
        loose = self._loose(object_id, most)
        if loose.kind:
            return loose
        unread: list[GitObject] = []
        if self._list(unread) or git_object.reason:
            self.close()
            git_object = self._packed(object_id, most)
        return _best(git_object, loose, *unread)

    def _list(self, unread: list[GitObject]) -> bool:
        """List the packs; True if they have changed. If that is refused, the ones known before stay."""
        names = set(_names(os.path.join(self._path, "pack"), unread))
        if unread:
            return False
        before = self._names
        self._names = sorted(name[:-4] for name in names if name.endswith(".idx") and name[:-4] + ".pack" in names)
        return self._names != before

    def _loose(self, object_id: str, most: int) -> GitObject:
        path = os.path.join(self._path, object_id[:2], object_id[2:])
        try:
            with regular_file.opened(path) as file:
                return _checked(_inflate(file, most), object_id, path)
        except FileNotFoundError:
            return GitObject()
        except OSError as error:
            return _problem(path, error)
        except (zlib.error, ValueError) as error:
            return GitObject(reason=f"{path}: damaged: {error}")

    def _packed(self, object_id: str, most: int) -> GitObject:
        sha = RawObjectID(bytes.fromhex(object_id))
        problem = GitObject()
        for name in self._names:
            path = os.path.join(self._path, "pack", name)
            try:
                git_object = self._in_pack(path, sha, most)
            except KeyError:
                git_object = GitObject()
            except Exception as error:  # noqa: BLE001 - a damaged or vanished pack raises whatever its bytes lead to
                self._drop(path)
                problem = _best(problem, _problem(f"{path}.pack", error))
                continue
            if git_object.kind:
                git_object = _checked(git_object, object_id, path + ".pack")
            if git_object.kind:
                return git_object
            problem = _best(problem, git_object)
            if len(self._names) > _MOST_PACKS:
                self._drop(path)
        return problem

    def _in_pack(self, path: str, sha: RawObjectID, most: int) -> GitObject:
        if path not in self.packs:
            self.packs[path] = Pack.from_lazy_objects(lambda: _pack_data(path + ".pack"), lambda: _index(path + ".idx"))
        pack = self.packs[path]
        offset: int | None = pack.index.object_offset(sha)
        if offset is None:
            return GitObject()
        size = _packed_size(path + ".pack", offset)
        if size > most:
            return GitObject("blob", size=size)
        number, raw = pack.get_raw(sha)
        return GitObject(_TYPES[number], raw) if number in _TYPES else GitObject(reason="neither a file nor a folder")

    def _drop(self, path: str) -> None:
        pack = self.packs.pop(path, None)
        if pack is not None:
            pack.close()


def _pack_data(path: str) -> PackData:
    with regular_file.opened(path) as file:  # it is mapped, and needs no descriptor
        return PackData(path, DEFAULT_OBJECT_FORMAT, file)


def _index(path: str) -> PackIndex:
    file = regular_file.opened(path)
    try:
        return load_pack_index_file(path, file, DEFAULT_OBJECT_FORMAT)
    except BaseException:
        file.close()
        raise


def _checked(git_object: GitObject, object_id: str, place: str) -> GitObject:
    """The object, or a reason if its content does not match its id."""
    if git_object.size or not git_object.kind:
        return git_object
    head = f"{git_object.kind} {len(git_object.raw)}\0".encode()
    if hashlib.sha1(head + git_object.raw, usedforsecurity=False).hexdigest() != object_id:
        return GitObject(reason=f"{place}: damaged: {object_id} has another content than its id says")
    return git_object


def _inflate(file: IO[bytes], most: int) -> GitObject:
    """A loose object: deflated ``<type> <size>NUL<content>``. The size is checked before the content is unpacked.

    Raises:
        zlib.error, ValueError: it is damaged.
    """
    stream = zlib.decompressobj()
    start = stream.decompress(file.read(_HEAD), 64)
    head, nul, content = start.partition(b"\0")
    kind, _, digits = head.decode("ascii").partition(" ")
    if not nul or not digits.isdigit():
        raise ValueError("no header")
    if kind not in _TYPES.values():
        return GitObject(reason="neither a file nor a folder")
    size = int(digits)
    if size > most:
        return GitObject(kind, size=size)
    remainder = stream.decompress(stream.unconsumed_tail + file.read(size + size // 100 + _HEAD), size + 1)
    return GitObject(kind, content + remainder)


def _packed_size(path: str, offset: int) -> int:
    """The unpacked size of the object at `offset` of a pack, which git's format has before the content.

    Raises:
        OSError, zlib.error, IndexError: the pack is gone or damaged.
    """
    with regular_file.opened(path) as file:
        file.seek(offset)
        head = file.read(512)
    kind = head[0] >> 4 & 7
    high_bits, place = _number(head, 1) if head[0] & 0x80 else (0, 1)
    if kind == _OFFSET_DELTA:
        _, place = _number(head, place)
    elif kind == _NAMED_DELTA:
        place += 20
    else:
        return high_bits << 4 | head[0] & 15
    delta = zlib.decompressobj().decompress(head[place:], 32)  # size of the base, size of the outcome, instructions
    _, place = _number(delta, 0)
    return _number(delta, place)[0]


def _number(raw: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        value |= (raw[place] & 0x7F) << shift
        shift += 7
        place += 1
        if not raw[place - 1] & 0x80:
            return value, place
