"""What `make score` prints: how much of three recorded sets of work comes back, and that none of it is wrong.

Each set was written by a real OpenCode while the true content of every file was noted after every turn. A file counts
as exact when it is proven or verified and equals the truth byte by byte, as refused when we do not vouch for it, as
wrong when we do and it differs. The exit code is 1 when anything is wrong.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.app.engine import Engine
from daemon.config import ArchiveSection, Config, OpenCode
from daemon.files import FileHistory, Files, Revision

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
SETS = {
    "1.1.65, JSON files": "opencode-1.1.65-json",
    "1.1.65 imported by 1.15.13": "opencode-1.15.13-migrated",
    "1.18.33, database": "opencode-1.18.33-sqlite",
}
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@dataclass
class Count:
    """How many there are, and what became of each."""

    exact: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.exact) + len(self.refused) + len(self.wrong)

    def add(self, name: str, *, vouched: bool, right: bool) -> None:
        (self.refused if not vouched else self.exact if right else self.wrong).append(name)

    def row(self) -> str:
        return f"{self.total:>6} {len(self.exact):>6} {len(self.refused):>8} {len(self.wrong):>6}"


@dataclass
class Score:
    """The four questions asked of one set."""

    changed: Count = field(default_factory=Count)
    untouched: Count = field(default_factory=Count)
    deleted: Count = field(default_factory=Count)
    states: Count = field(default_factory=Count)

    def rows(self) -> dict[str, Count]:
        return {
            "files changed by tools or commands, at the end": self.changed,
            "files no tool changed, at the end": self.untouched,
            "deleted files, their last content": self.deleted,
            "states after each turn": self.states,
        }


def main() -> int:
    """Print the score of each set; 1 when anything is wrong."""
    wrong = 0
    show_names = "-v" in sys.argv[1:]
    for title, name in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(FIXTURES / f"{name}.tar.gz") as tar:
                tar.extractall(folder, **SAFELY)
            place = next(path for path in (Path(folder), *Path(folder).iterdir()) if (path / "truth").is_dir())
            score = measured(place, Path(folder) / "archive")
        print(f"OpenCode {title}\n{'':<50} {'files':>6} {'exact':>6} {'refused':>8} {'wrong':>6}")
        for question, count in score.rows().items():
            print(f"  {question:<48} {count.row()}")
            wrong += len(count.wrong)
            for label, names in (("refused", count.refused), ("WRONG", count.wrong)):
                if names and (show_names or label == "WRONG"):
                    print("".join(f"      {label}: {path}\n" for path in names), end="")
    return 1 if wrong else 0


def measured(place: Path, archive: Path) -> Score:
    """Archive the records at `place` and compare every history with the truth beside them."""
    config = Config(opencode=OpenCode(data_dir=str(place / "opencode")), archive=ArchiveSection(dir=str(archive)))
    with Engine(config) as engine:
        engine.scan(everything=True, patient=False)
        histories = {history.path: history for history in Files(engine.archive).histories("/")}
        return compared(place / "truth", histories)


def compared(truth_folder: Path, histories: dict[str, FileHistory]) -> Score:
    """How the histories compare with what the files really were."""
    truth = json.loads((truth_folder / "truth.json").read_text())
    lines = [json.loads(line) for line in (truth_folder / "timeline.jsonl").read_text().splitlines()]
    score = Score()
    for path, entry in truth["files"].items():
        count = score.changed if entry["changed"] else score.untouched
        _end(count, path, histories.get(path), entry["sha256"])
    for path, sha256 in _last_contents(lines, truth["deleted"]):
        _end(score.deleted, path, histories.get(path), sha256, is_deleted=True)
    for line in lines:
        if line["after"] == "initial":
            continue  # before the first session nobody was there to see it
        _state(score.states, line, histories.get(line["path"]))
    return score


def _end(count: Count, path: str, history: FileHistory | None, sha256: str, *, is_deleted: bool = False) -> None:
    last = None if history is None else history.latest
    if is_deleted and history is not None and last is not None:
        right_state = last.deleted
        content = history.last_content
        vouched = last.proven and (content is None or content.proven)
        count.add(path, vouched=vouched and content is not None, right=right_state and _is(content, sha256))
        return
    count.add(path, vouched=last is not None and last.proven, right=_is(last, sha256))


def _state(count: Count, line: dict[str, Any], history: FileHistory | None) -> None:
    """The state right after a turn; a revision that is older than the turn says nothing about it."""
    revision = None if history is None else history.at(int(line["time"] * 1000) + 1)
    name = f"{line['after']} {line['path']}"
    right = revision is not None and (revision.deleted if line["sha256"] is None else _is(revision, line["sha256"]))
    count.add(name, vouched=revision is not None and revision.proven, right=right)


def _is(revision: Revision | None, sha256: str) -> bool:
    content = None if revision is None else revision.content
    return content is not None and hashlib.sha256(content).hexdigest() == sha256


def _last_contents(lines: list[dict[str, Any]], deleted: list[str]) -> Iterator[tuple[str, str]]:
    for path in deleted:
        known = [line["sha256"] for line in lines if line["path"] == path and line["sha256"]]
        if known:
            yield path, known[-1]


if __name__ == "__main__":
    raise SystemExit(main())
