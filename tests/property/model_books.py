"""The books of the small OpenCode: its clock, the journal of its records, the truth of the folder, git trees of it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.property import model_rules as rules
from tests.property.model_rules import OLD, ToolError

Json = dict[str, Any]
START = 1_795_230_000_000
QUIET = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
    "GIT_OPTIONAL_LOCKS": "0",
}


@dataclass(frozen=True)
class Entry:
    """One record as written: kind is session, message, part or removed (its data then has only the id)."""

    kind: str
    data: Json
    checkpoints: int
    """How many checkpoints of the truth stood when it was written."""


@dataclass
class Checkpoint:
    """All files at `time` (epoch ms); `settled` is False while calls overlap or share this millisecond."""

    time: int
    files: dict[str, bytes]
    blind: frozenset[str]
    settled: bool = True


@dataclass
class Talk:
    """One session as far as OpenCode's own memory goes."""

    data: Json
    directory: str
    messages: list[str] = field(default_factory=list)
    tree: str = ""
    first_tree: str = ""
    step: str = ""
    user: str = ""
    blind_before: dict[str, bytes | None] = field(default_factory=dict)
    """What was blind when a revert that is pending began."""
    patches: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """Message id -> (tree before the step, files changed)."""


class Books:
    """The folder is `root`: the project is ``root/app`` with ``docs`` in it, ``root/elsewhere`` lies outside."""

    def __init__(self, root: Path, trees: Path, version: str, *, git: bool) -> None:
        self.root, self.trees, self.version, self.git = root, trees, version, git
        self.project = root / "app"
        self.clock = START
        self.journal: list[Entry] = []
        self.truth: list[Checkpoint] = []
        self.talks: dict[str, Talk] = {}
        self.records: dict[str, Json] = {}
        self.parts: dict[str, dict[str, Json]] = {}
        self._counter = itertools.count(1)
        self._blind: dict[str, bytes | None] = {}
        self._tracked: set[str] = set()
        self._frozen = False
        for folder in (self.project / "docs", root / "elsewhere"):
            folder.mkdir(parents=True)
        if git:
            subprocess.run(["git", "init", "-q", "--bare", str(trees)], check=True, env=QUIET)

    # -- clock, ids, books ---------------------------------------------------------------------------------------

    def tick(self, ms: int = 10) -> int:
        if not self._frozen:
            self.clock += ms
        return self.clock

    def _id(self, prefix: str) -> str:
        number = next(self._counter)
        bits = (self.clock * 4096 + number % 4096) & ((1 << 48) - 1)
        bits = ~bits & ((1 << 48) - 1) if prefix == "ses" else bits
        return f"{prefix}_{bits:012x}{number:014d}"

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}

    def look(self, *, settled: bool = True) -> None:
        """Write down the truth of now."""
        self.truth.append(Checkpoint(self.clock, self.files(), frozenset(self._blind), settled))

    def _write(self, kind: str, data: Json) -> None:
        self.journal.append(Entry(kind, json.loads(json.dumps(data)), len(self.truth)))

    def _message(self, data: Json) -> None:
        self.records[data["id"]] = data
        self.parts.setdefault(data["id"], {})
        self._write("message", data)

    def _part(self, message_id: str, session_id: str, data: Json) -> Json:
        data = {"id": self._id("prt"), "sessionID": session_id, "messageID": message_id} | data
        self.parts[message_id][data["id"]] = data
        self._write("part", data)
        return data

    def _unblind(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._blind.pop(path, None)

    # -- snapshots -----------------------------------------------------------------------------------------------

    def _git(self, *words: str, cwd: str = "") -> str:
        command = ["git", "--git-dir", str(self.trees), "--work-tree", str(self.project), "-c", "core.autocrlf=false"]
        done = subprocess.run([*command, *words], cwd=cwd or self.project, capture_output=True, env=QUIET, check=False)
        if done.returncode:
            raise ToolError(done.stderr.decode())
        return done.stdout.decode("utf-8", "surrogateescape")

    def _snapshot(self, talk: Talk, *, told: bool = True) -> str:
        """The tree of now; `told` when a part will name it, so that everybody can see what it shows."""
        if not self.git:
            return ""
        Path(talk.directory).mkdir(parents=True, exist_ok=True)
        self._git("add", ".", cwd=talk.directory)
        tree = self._git("write-tree").strip()
        if told:
            listed = {str(self.project / name) for name in self.names(tree)}
            scope = f"{talk.directory}/"
            self._unblind([path for path in listed | self._tracked if path.startswith(scope)])
            self._tracked |= listed
        return tree

    def names(self, tree: str) -> list[str]:
        return self._git("ls-tree", "-r", "-z", "--name-only", tree).split("\0")[:-1]

    def _changed(self, one: str, other: str, talk: Talk) -> list[str]:
        words = ("-c", "core.quotepath=false", "diff", "--no-ext-diff", "--name-only", one, other, "--", ".")
        return [str(self.project / name) for name in self._git(*words, cwd=talk.directory).splitlines()]

    def _diffs(self, one: str, other: str, talk: Talk) -> list[Json]:
        found = []
        for path in self._changed(one, other, talk):
            name = rules.relative(path, str(self.project))
            sides = [self._shown_blob(tree, name) for tree in (one, other)]
            status = "added" if sides[0] is None else "deleted" if sides[1] is None else "modified"
            before, after = (side or "" for side in sides)
            diff = {"file": name, "additions": 1, "deletions": 1, "status": status}
            text = {"before": before, "after": after} if self.version == OLD else {}
            found.append(diff | (text or {"patch": rules.diff(name, before, after)}))
        return found

    def _shown_blob(self, tree: str, name: str) -> str | None:
        try:
            text = self._git("show", f"{tree}:{name}")
        except ToolError:
            return None
        return "" if "\0" in text else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    # -- what leaves no record -----------------------------------------------------------------------------------

    def outside(self, change: Callable[[], object]) -> None:
        """Somebody changes files beside OpenCode."""
        before = self.files()
        self.tick()
        change()
        self._lost_sight(before)
        self.look()

    def _lost_sight(self, before: dict[str, bytes]) -> None:
        after = self.files()
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                self._blind.setdefault(path, before.get(path))

    def forget(self, since: int) -> None:
        """What was different from now since checkpoint `since` can no longer be told (an undone revert)."""
        now = self.truth[-1].files
        for point in self.truth[since:]:
            changed = {path for path in point.files.keys() | now.keys() if point.files.get(path) != now.get(path)}
            point.blind |= changed
