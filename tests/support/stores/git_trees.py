"""Snapshot repositories as OpenCode makes them: a git directory apart from the work tree, trees without commits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(*arguments: str, directory: Path, worktree: Path | None = None) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    environment["GIT_DIR"] = str(directory)
    if worktree is not None:
        environment["GIT_WORK_TREE"] = str(worktree)
    done = subprocess.run(
        ["git", *arguments], cwd=worktree or directory, env=environment, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


class Repository:
    """`place` beneath ``<data>/snapshot``, of one work tree."""

    def __init__(self, data: Path, place: str, worktree: Path) -> None:
        self.directory = data / "snapshot" / place
        self.worktree = worktree
        self.directory.mkdir(parents=True)
        worktree.mkdir(parents=True, exist_ok=True)
        git("init", "-q", directory=self.directory, worktree=worktree)
        git("config", "core.autocrlf", "false", directory=self.directory)

    def track(self) -> str:
        """The tree of the work tree as it is now."""
        git("add", "-A", ".", directory=self.directory, worktree=self.worktree)
        return git("write-tree", directory=self.directory, worktree=self.worktree)

    def write(self, files: dict[str, bytes]) -> str:
        """Write files, and the tree with them."""
        for name, content in files.items():
            path = self.worktree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.track()

    def pack(self, *trees: str) -> None:
        """Everything these trees reach goes into one pack, and nothing stays loose."""
        names = [git("rev-list", "--objects", "--no-object-names", tree, directory=self.directory) for tree in trees]
        subprocess.run(
            ["git", "pack-objects", "-q", str(self.directory / "objects" / "pack" / "pack")],
            input="\n".join(names).encode(),
            env={"PATH": os.environ["PATH"], "GIT_DIR": str(self.directory)},
            capture_output=True,
            check=True,
        )
        git("prune-packed", "-q", directory=self.directory)

    def loose(self, object_id: str) -> Path:
        return self.directory / "objects" / object_id[:2] / object_id[2:]


def everything(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Each path beneath `root`: mtime, mode, content. Nothing may change there."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = status.st_mtime_ns, status.st_mode, content
    return found
