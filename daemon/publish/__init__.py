"""A tree's pages go to disk: staged, then renamed into place, so that after a crash it is the old tree or the new one.

Changed pages are first written beside the trees, in ``.reconstitute.next/``, and then an intent (the list of renames
and hashes) with them: that is the commit point. Before it, nothing of the published tree has changed; after it,
`recover` (and every `publish`) completes what is left. Only pages that our manifest lists and that still are as we
wrote them are replaced or removed: a page a person edited, a file we did not write and a nested tree are left and
reported (docs/reliability.md, P3). Readers may see a mixture for the moment the renames take.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from daemon.errors import OutputRefused
from daemon.fsio import Root, Step, no_step
from daemon.model import Json, Page
from daemon.publish import journal
from daemon.publish.journal import as_json, current, exists, sha256
from daemon.publish.naming import folders_above, names, safe_path
from daemon.redact import redact

__all__ = ["MANIFEST", "Published", "names", "publish", "recover"]

MANIFEST = ".reconstitute.json"
SPARE_BYTES = 200_000_000
_FORMAT = 1


@dataclass(slots=True)
class Published:
    """What became of the pages; paths are relative to the tree's folder, as written.

    `kept` were edited by a person, `taken` are names where something of theirs stands, `nested` lie in the folder of
    another target's tree; none of them was touched. `renamed` holds (page path asked for, name written) where they
    differ.
    """

    folder: str
    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)


def publish(
    output_root: Path, tree: str, pages: Sequence[Page], *, spare_bytes: int = SPARE_BYTES, step: Step = no_step
) -> Published:
    """Make ``<output_root>/<tree>/`` hold exactly `pages` (and what is not ours); `tree` has no leading slash.

    Nothing is written when nothing changed. One publisher at a time for each output directory: others wait.

    Raises:
        OutputRefused: the folder holds files but no manifest of ours, the manifest is damaged, the disk has less than
            twice the plan and `spare_bytes` left, or a write failed (then the old tree stands, or the next run or
            `recover` completes the new one).
    """
    with Root(output_root, step=step) as root, root.locked(), _reported(output_root):
        journal.recover(root)
        plan = _Plan(root, tree, pages)
        if plan.operations:
            _check_space(root, plan, spare_bytes)
            staging = journal.stage(root, plan.folder, plan.operations, plan.content)
            step("publish.committed")
            journal.roll_forward(root, staging)
        return plan.result


def recover(output_root: Path, *, step: Step = no_step) -> int:
    """Complete or discard what a crash left of earlier publishing; how many trees were completed.

    Raises:
        OutputRefused: the disk fails again, or an intent is damaged.
    """
    if not output_root.is_dir():
        return 0
    with Root(output_root, step=step) as root, root.locked(), _reported(output_root):
        return journal.recover(root)


class _Plan:
    """The difference between the folder and the pages, as a list of operations; only reads."""

    def __init__(self, root: Root, tree: str, pages: Sequence[Page]) -> None:
        self.root = root
        self.tree = tree.strip("/")
        self.folder = safe_path(self.tree) if self.tree else ""
        self.result = Published(self.folder)
        self.operations: list[Json] = []
        self.content: list[bytes] = []
        self._old, has_manifest = self._known()
        self._manifest: dict[str, Json] = {}
        self._trees: dict[str, bool] = {}
        if pages or has_manifest:
            self._visit(pages)
            self._retire()
            self._finish()

    def _known(self) -> tuple[dict[str, Json], bool]:
        """Pages we wrote here earlier: by this tree's manifest, or by that of a tree around it."""
        own = _manifest(self.root, self.folder)
        if own is not None:
            if own["tree"] != _shown(self.tree):
                folder = self.root.path / self.folder
                raise OutputRefused(
                    f"{folder}: already holds the tree of {own['tree']!r}; name another output directory"
                )
            return own["pages"], True
        enclosing = [(outer, _manifest(self.root, outer)) for outer in (*folders_above(self.folder), "") if self.folder]
        known: dict[str, Json] = {}
        for outer, manifest in reversed(enclosing):  # the nearest one's word counts
            prefix = self.folder.removeprefix(outer).lstrip("/") + "/"
            pages = manifest["pages"] if manifest else {}
            known |= {path.removeprefix(prefix): page for path, page in pages.items() if path.startswith(prefix)}
        if not known and not _is_vacant(self.root, self.folder):
            folder = self.root.path / self.folder
            raise OutputRefused(
                f"{folder}: holds files that are not ours; move them away or name another output directory"
            )
        return known, False

    def _visit(self, pages: Sequence[Page]) -> None:
        for page, name in zip(pages, names([page.path for page in pages]), strict=True):
            if name != page.path:
                self.result.renamed.append((page.path, name))
            if self._is_nested(name):
                self.result.nested.append(name)
                continue
            data = _shown(page.text).encode()
            entry = {"sha256": sha256(data), "sources": sorted(set(page.sources))}
            before, old = self._current(name), self._old.get(name)
            if before == entry["sha256"]:
                self.result.unchanged.append(name)
            elif before is None or (old and before == old["sha256"]):
                self._write(name, data, before)
                self.result.written.append(name)
            elif old:
                self.result.kept.append(name)
                entry = old
            else:
                self.result.taken.append(name)
                continue
            self._manifest[name] = entry

    def _retire(self) -> None:
        for name in sorted(self._old.keys() - self._manifest.keys() - set(self.result.taken)):
            if self._is_nested(name):
                continue
            before = self._current(name)
            if before == self._old[name]["sha256"]:
                self.operations.append({"path": self._path(name), "before": before})
                self.result.removed.append(name)
            elif before is not None:
                self.result.kept.append(name)

    def _finish(self) -> None:
        renamed = sorted([_shown(path), name] for path, name in self.result.renamed)
        data = as_json({"format": _FORMAT, "tree": _shown(self.tree), "pages": self._manifest, "renamed": renamed})
        before = self._current(MANIFEST)
        if before != sha256(data):
            self._write(MANIFEST, data, before)

    def _write(self, name: str, data: bytes, before: str | None) -> None:
        after = sha256(data)
        self.operations.append(
            {"path": self._path(name), "before": before, "after": after, "staged": len(self.content)}
        )
        self.content.append(data)

    def _current(self, name: str) -> str | None:
        return current(self.root, self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}".lstrip("/")

    def _is_nested(self, name: str) -> bool:
        folders = folders_above(name)
        for folder in folders:
            if folder not in self._trees:
                self._trees[folder] = exists(self.root, f"{self._path(folder)}/{MANIFEST}")
        return any(self._trees[folder] for folder in folders)


def _shown(text: str) -> str:
    """`text` as it may leave the archive and be encoded: redacted, lone surrogates spelt out."""
    return redact(text).encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def _reported(output_root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fix = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "check the disk and the permissions"
        text = f"{output_root}: cannot be written: {error.strerror}; {fix}, the next run completes the tree"
        raise OutputRefused(text) from error


def _check_space(root: Root, plan: _Plan, spare_bytes: int) -> None:
    planned = sum(map(len, plan.content))
    needed, free = 2 * planned + spare_bytes, root.free_bytes()
    if planned and free < needed:
        text = f"{root.path}: {free // 1_000_000} MB free, {needed // 1_000_000} MB needed to publish; free some space"
        raise OutputRefused(text) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _manifest(root: Root, folder: str) -> Json | None:
    path = f"{folder}/{MANIFEST}".lstrip("/")
    data = root.read(path)
    if data is None:
        return None
    try:
        found = orjson.loads(data)
        is_sound = found["format"] == _FORMAT and isinstance(found["tree"], str)
        if is_sound and all(isinstance(page["sha256"], str) for page in found["pages"].values()):
            return dict(found)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        pass
    raise OutputRefused(f"{root.path / path}: damaged, or of another version; move the folder away to write it anew")


def _is_vacant(root: Root, folder: str) -> bool:
    """Whether a folder holds nothing but other trees of ours, and folders on the way to them."""
    for name in root.list(folder):
        path = f"{folder}/{name}".lstrip("/")
        if path == journal.STAGING or exists(root, f"{path}/{MANIFEST}"):
            continue
        found = root.stat(path)
        if found is None or not stat.S_ISDIR(found.st_mode) or not _is_vacant(root, path):
            return False
    return True
